"""What the claims of CANIFE and of the reviews share: printed roundings, the three trainings, calibration."""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

from scipy.optimize import brentq

from canaryproof.verify.results import Context, Outcome

PAPER = "Maddock et al., arXiv 2210.02912, "
# Attack scores an audit, and δ of the per-round estimate as Section 3.4 sets it: 1/n.
TRIALS = 100
SCORES_DELTA = 1.0 / TRIALS
# Half the trials have the canary, half do not (Section 4.1).
HALF = TRIALS // 2
# δ of training is printed nowhere; the authors' public code (github.com/facebookresearch/canife) has this one as the
# default, for one round's ε and for ε̂_r too.
CODE_DELTA = 1e-5
# What ε̂_r is said not to exceed.
CAP = "3.89"
TRAINED_EPSILON = 50.0


@dataclass(frozen=True)
class Task:
    """A training of Appendix C.3 at ε = 50.

    Attributes
    ----------
    id, name
        For ids, and in words.
    cohort, users
        Clients a round, and clients to train on.
    epochs, epoch_rounds, rounds
        Epochs; rounds an epoch; rounds of training in all.
    every, audits
        Rounds between audits, and audits in all, as printed.
    """

    id: str
    name: str
    cohort: int
    users: int
    epochs: int
    epoch_rounds: int
    rounds: int
    every: int
    audits: int

    @property
    def data(self) -> str:
        """What decides its results."""
        return f"{self.name} in LEAF's split"

    @property
    def sampling(self) -> float:
        """Probability that a client takes part in a round."""
        return self.cohort / self.users


CELEBA = Task("celeba", "CelebA", 100, 8408, 30, 85, 2550, 40, 64)
SENT140 = Task("sent140", "Sent140", 100, 59214, 15, 593, 8895, 100, 90)
SHAKESPEARE = Task("shakespeare", "Shakespeare", 60, 1016, 30, 17, 510, 8, 64)
TASKS = (CELEBA, SENT140, SHAKESPEARE)


def rounding(printed: str) -> tuple[Decimal, Decimal]:
    """Return the least and the largest number that print so: half a unit of the last digit either side."""
    value = Decimal(printed)
    half = Decimal(5).scaleb(int(value.as_tuple().exponent) - 1)
    return value - half, value + half


def prints(value: float, printed: str) -> bool:
    """Whether a number prints so."""
    least, most = rounding(printed)
    return float(least) <= value <= float(most)


def fixed(judge: Callable[..., Outcome], *arguments: object) -> Callable[[Context], Outcome]:
    """Return the judge of a claim that depends on printed numbers only, and on nothing of the run."""
    return lambda _: judge(*arguments)


def noise_for(epsilon: float, curve: Callable[[float], float], least: float, most: float) -> float:
    """Return the noise multiplier between two bounds whose ε on a falling curve is the one given."""
    return float(brentq(lambda sigma: curve(sigma) - epsilon, least, most, xtol=1e-4))
