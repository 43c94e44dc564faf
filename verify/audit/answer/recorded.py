"""A training's record, held against the claimed mechanism: how rounds were drawn, and the ε of all of them."""

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy import optimize, special

from canaryproof.kernels.public import set_module
from canaryproof.verify.audit import rules
from canaryproof.verify.audit.accounting.accountant import Claim, gaussian
from canaryproof.verify.audit.accounting.sampling import Sampling
from canaryproof.verify.audit.answer.misuse import SHORT
from canaryproof.verify.audit.canaries.scores import RoundsRecord
from canaryproof.verify.audit.levels import POWER

# Relative and absolute difference of two accountings of one mechanism, also of an ε that was rounded to three digits.
_RELATIVE, _ABSOLUTE = 0.01, 1e-3


@set_module("canaryproof.typing")
@dataclass(frozen=True)
class SamplingTest:
    """The test that members of a training took part no more often than the claimed sampling lets them.

    Attributes
    ----------
    rate
        Claimed rate of a round.
    members, rounds
        Number of members whose rounds were recorded, and of rounds.
    taken, most
        Rounds in which they took part, all together, and those of the one that took part most often.
    p_value
        P-value of the claimed rate or a smaller one.
    noticed_rate
        Least rate that the test rejects with probability 90%.
    """

    rate: float
    members: int
    rounds: int
    taken: int
    most: int
    p_value: float
    noticed_rate: float

    def is_as_claimed(self, level: float, notice: float) -> bool:
        """Whether the test does not reject at a level, and ``has_power``."""
        return self.p_value >= level and self.has_power(notice)

    def has_power(self, notice: float) -> bool:
        """Whether the claimed rate divided by ``notice``, or a smaller one, would have been noticed."""
        return self.noticed_rate * notice <= self.rate


def sampling_test(claim: Claim | None, record: RoundsRecord, level: float) -> SamplingTest | None:
    """Test recorded participations against the claimed rate; None where either is not known."""
    sampling = None if claim is None else claim.sampling
    if sampling is None or sampling.rate is None or record.members is None or record.taken is None:
        return None
    rate, members, rounds, taken = float(sampling.rate), record.members, record.rounds, record.taken
    trials, most = members * rounds, record.participations
    whole = _upper_tail(taken, trials, rate, exact=sampling.kind == "poisson")
    # One member is in each round by a coin of the rate, whatever the law of the whole batch is.
    largest = min(1.0, members * float(special.bdtrc(most - 1, rounds, rate))) if most else 1.0
    limit = _critical_count(trials, rate, 0.5 * level, exact=sampling.kind == "poisson")
    noticed = float(special.betaincinv(limit, trials - limit + 1, POWER)) if limit <= trials else math.inf
    return SamplingTest(rate, members, rounds, taken, most, min(1.0, 2.0 * min(whole, largest)), noticed)


def _upper_tail(taken: int, trials: int, rate: float, *, exact: bool) -> float:
    """Return P(X ≥ taken), binomial; or Chernoff's bound, which batches of fixed size keep too (Hoeffding 1963)."""
    if taken <= trials * rate or not taken:
        return 1.0
    if exact:
        return float(special.bdtrc(taken - 1, trials, rate))
    if rate >= 1.0:
        return 1.0
    share = taken / trials
    divergence = float(special.rel_entr(share, rate) + special.rel_entr(1.0 - share, 1.0 - rate))
    return math.exp(-trials * divergence)


def _critical_count(trials: int, rate: float, level: float, *, exact: bool) -> int:
    """Return the least number of participations that is rejected; one more than possible if none is."""
    low, high = math.floor(trials * rate), trials + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _upper_tail(middle, trials, rate, exact=exact) < level else (middle, high)
    return high


def apply_noise(claim: Claim | None, noise: float | None) -> Claim | None:
    """Return a claimed mechanism with a noise multiplier that is stated next to it, where that is smaller."""
    if claim is None or claim.noise_multiplier is None or noise is None:
        return claim
    return claim.with_noise_multiplier(noise) if _is_above(claim.noise_multiplier, noise) else claim


def apply_record(claim: Claim | None, record: RoundsRecord) -> Claim | None:
    """Return a claimed mechanism with the noise and the rate that the loop was given, where they are less private."""
    if claim is None or claim.noise_multiplier is None or claim.event is not None:
        return claim
    claim, rate = apply_noise(claim, record.noise_multiplier), record.rate
    assert claim is not None
    if claim.rate is not None and rate is not None and _is_above(rate, claim.rate):
        claim = replace(claim, rate=rate)
    return claim


def has_larger_rate(record: RoundsRecord, sampling: Sampling) -> bool:
    """Tell whether a record's schedule draws rounds at a larger rate than claimed."""
    return record.rate is not None and sampling.rate is not None and _is_above(record.rate, float(sampling.rate))


def _is_above(value: float, limit: float) -> bool:
    """Tell whether a number is larger than another by more than the rounding of a quotient."""
    return value > limit * (1.0 + 1e-9)


def recorded_mechanism(claim: Claim | None, record: RoundsRecord, *, sampled: bool) -> Claim | None:
    """Return the claimed mechanism in the rounds that were recorded; None where the claim does not say one.

    Sampling counts where it was found to be as claimed (``sampled``); else rounds are taken as known.
    """
    if claim is None or claim.statement is not None:
        return None
    taken, rounds = record.participations, max(record.rounds, 1)
    if claim.epochs is not None and claim.rounds is not None and taken <= claim.epochs and rounds <= claim.rounds:
        return claim
    if sampled and claim.participations is None:
        try:
            return claim if claim.rounds == rounds else claim.with_rounds(rounds)
        except ValueError:
            return claim if claim.rounds is not None and rounds <= claim.rounds else None
    if claim.noise_multiplier is not None:
        return gaussian(
            claim.noise_multiplier, participations=taken, rounds=max(rounds, taken), neighbours=claim.neighbours
        )
    return claim if claim.participations is not None and taken <= claim.participations else None


def holds(mechanism: Claim, claim: float, delta: float, *, exact: bool) -> bool | None:
    """Tell whether a mechanism has at most the claimed ε; None between what it reaches and what is proven.

    An ε of another accountant, or a rounded one, may be smaller by 1% or 0.001.
    """
    limit = claim * (1.0 + 1e-9) if exact else claim + max(_RELATIVE * claim, _ABSOLUTE)
    return mechanism.bracket(delta).is_private(limit)


def checked_rounds(name: str, value: object) -> int | None:
    """Return a number of rounds that was asked for."""
    return None if value is None else int(rules.ROUNDS.number(name, value))


def least_noise_share(noise_multiplier: float, dim: int, data_norm: float, level: float) -> float:
    """Return the largest share of the claimed noise that the length of a release notices with probability 90%.

    Others' data are stated to be no longer than ``data_norm``. The release is too short if its squared length is below
    the quantile of σ²χ²_d at the level, which data only make rarer, and its length below what rounding explains.
    """
    quantile = min(float(special.chdtri(dim, 1.0 - level)), SHORT**2 * dim)

    def excess(share: float) -> float:
        noise = share * noise_multiplier
        # Patnaik: a noncentral χ² with the mean and the variance of this multiple of a central one.
        shift = (data_norm / noise) ** 2
        factor = (dim + 2.0 * shift) / (dim + shift)
        freedom = (dim + shift) ** 2 / (dim + 2.0 * shift)
        below = special.chdtr(freedom, quantile / share**2 / factor)
        return float(below) - POWER

    with np.errstate(all="ignore"):
        return float(optimize.brentq(excess, 1e-6, 1.0)) if excess(1e-6) > 0.0 else 0.0


def mechanism_text(claim: Claim) -> str:
    """Describe a mechanism in a few words."""
    rounds = "1 round" if claim.rounds == 1 else f"{claim.rounds:,} rounds"
    if claim.noise_multiplier is None or claim.event is not None:
        return f"the claimed mechanism in {rounds}"
    noise = f"noise multiplier {claim.noise_multiplier:.4g}"
    if claim.epochs is not None:
        return f"{noise}, {claim.epochs:,} shuffled epochs of {rounds} in all"
    if claim.rate is not None:
        return f"{noise}, rate {claim.rate:.4g}, {rounds}"
    taken = claim.participations
    return f"{noise}, {'one participation' if taken == 1 else f'{taken:,} participations'}"
