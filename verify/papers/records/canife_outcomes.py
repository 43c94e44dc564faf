"""Results and costs of the methods that ``canaryproof benchmark canife`` compares."""

from dataclasses import dataclass

from canaryproof.kernels.public import set_module
from canaryproof.verify.audit.files.json_records import Count

KNOWN_ROUNDS = "random canaries"
ALGORITHM_3, ALGORITHM_3_BOUND = "Algorithm 3", "Algorithm 3, bound"
CANIFE_PRINTED, CANIFE_REDESIGNED = "CANIFE as printed", "CANIFE redesigned"
# Budgets of a comparison.
AS_USED, EQUAL_CANARIES, EQUAL_SECONDS = "as used", "equal canaries", "equal seconds"


@set_module("canaryproof.typing")
@dataclass(frozen=True)
class ComparedOutcome:
    """Estimate or bound of one method in a training, and its costs.

    Attributes
    ----------
    budget
        ``as used``: each method at its own size, as many random canaries as asked for, and CANIFE's audits and scores
        as in Section 5.4; ``equal canaries``: a method with as many as the other has; ``equal seconds``: random
        canaries for as long as CANIFE as printed takes.
    name
        The method.
    kind
        ``estimate``, or ``lower bound`` at 95%.
    epsilon, low, high
        ε̂ of the median training, and between which values 95 of 100 trainings are, or all that were made.
    cap
        The largest finite value that the method can give, whatever leaks; infinite if there is none.
    canaries
        Canaries that are inserted or designed.
    trainings
        Cost in trainings: the audited one, and trial rounds as a share of one.
    seconds
        Cost without the trainings: scoring random canaries, an upper limit where rounds are known; designing CANIFE's
        and scoring its trial rounds.
    """

    budget: str
    name: str
    kind: str
    epsilon: float
    low: float
    high: float
    cap: float
    canaries: Count
    trainings: float
    seconds: float
