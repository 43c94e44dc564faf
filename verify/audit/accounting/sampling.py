"""How the rounds of canaries or clients were drawn, from which accounting may profit."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from canaryproof.kernels.public import set_module

Members = Literal["clients", "canaries"]


@set_module("canaryproof.typing")
@dataclass(frozen=True)
class Sampling:
    """How the rounds of one member of the population were drawn, which privacy accounting may profit from.

    Attributes
    ----------
    kind
        ``scheduled``: nothing to profit from; ``poisson``: in each round with probability ``rate``, independently of
        all others; ``without replacement``: each round's cohort is a uniform sample of fixed size; ``poisson number``:
        in a random number of rounds.
    rate
        Probability to take part in a round; a fraction cohort/population for ``without replacement``.
    """

    kind: Literal["scheduled", "poisson", "without replacement", "poisson number"]
    rate: float | Fraction | None = None


SCHEDULED = Sampling("scheduled")
