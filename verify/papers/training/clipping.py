"""The clip norm S(t) of Algorithms 2 and 3 of Andrew et al. (arXiv 2302.03098): fixed, or adapted to a quantile.

Adaptive clipping is that of Andrew et al. 2021 (arXiv 1905.03871). A noisy count of the updates that were not clipped
tells whether the clip norm is above or below a quantile of their norms.

A canary client's update has exactly the clip norm and counts as unclipped, as it would in a system that does not know
its canaries. With a share f of canaries among those who take part, the clip norm tends to another quantile of the
clients' norms: (γ − f)/(1 − f) instead of γ. It tends to 0 if f ≥ γ.
"""

import math
from dataclasses import dataclass
from typing import Protocol

from canaryproof.kernels.refusals import checked_integer
from canaryproof.verify.audit.canaries.seeds import Purpose, Seed, generator


class Clip(Protocol):
    """A clip norm as a training loop and its accounting see it."""

    @property
    def initial(self) -> float:
        """Clip norm of the first round."""

    @property
    def count_noise(self) -> float:
        """Standard deviation of the noise on the number of unclipped updates; infinite if it is not released."""

    def following(self, clip_norm: float, unclipped: int, participants: int, round: int) -> float:  # noqa: A002
        """Return the clip norm of the round after this one."""


@dataclass(frozen=True)
class FixedClip:
    """The same clip norm in all rounds."""

    initial: float
    count_noise = math.inf

    def __post_init__(self) -> None:
        _check_positive("initial", self.initial)

    def following(self, clip_norm: float, unclipped: int, participants: int, round: int) -> float:  # noqa: A002, ARG002
        """Return the clip norm of the round after this one: the same."""
        return clip_norm


@dataclass(frozen=True)
class AdaptiveClip:
    """A clip norm that follows a quantile of the updates' norms, by geometric steps.

    Recommended values are the authors', as TensorFlow Privacy's documentation of ``QuantileAdaptiveClipSumQuery`` has
    them.
    """

    initial: float  # clip norm of the first round
    quantile: float  # share γ of updates that should not be clipped; the median is recommended
    rate: float  # learning rate η of log S; 0.2 is recommended
    count_noise: float  # standard deviation σ_b on the number of unclipped updates; cohort/20 is recommended
    seed: Seed

    def __post_init__(self) -> None:
        _check_positive("initial", self.initial)
        if not 0.0 <= self.quantile <= 1.0:
            raise ValueError(f"quantile must lie in [0, 1], not {self.quantile!r}")
        for name, value in (("rate", self.rate), ("count_noise", self.count_noise)):
            if not 0.0 <= value < math.inf:
                raise ValueError(f"{name} must be finite and not negative, not {value!r}")

    def following(self, clip_norm: float, unclipped: int, participants: int, round: int) -> float:  # noqa: A002
        """Return the clip norm of the next round: S·exp(−η(b̃ − γ)), b̃ = (Σb_i + N(0, σ_b²))/m; S if nobody took part.

        ``unclipped`` of the m ``participants`` had an update of at most the clip norm, canaries among them. The round
        decides the noise. A ``ValueError`` says that the clip norm leaves the range of floats.
        """
        _check_positive("clip_norm", clip_norm)
        checked_integer("participants", participants, 0)
        checked_integer("unclipped", unclipped, 0, participants)
        if participants == 0:
            return clip_norm
        share = (
            unclipped + self.count_noise * generator(self.seed, Purpose.COUNTS, round).standard_normal()
        ) / participants
        following = clip_norm * math.exp(min(-self.rate * (share - self.quantile), 700.0))
        _check_positive(f"clip_norm after round {round}", following)
        return following


def _check_positive(name: str, value: float) -> None:
    if not 0.0 < value < math.inf:
        raise ValueError(f"{name} must be positive and finite, not {value!r}")
