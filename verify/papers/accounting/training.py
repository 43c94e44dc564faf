"""The analytical ε of a training, to compare an empirical one with: for which neighbours, and by which rule.

Each value is an upper bound on ε for an attacker who sees all deltas, and knows who takes part when unless the rule
counts on chance. Where no rule is known, there is no value.
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from canaryproof.kernels import gaussian_mechanism
from canaryproof.verify.audit.accounting.accountant import Claim
from canaryproof.verify.audit.accounting.sampling import SCHEDULED, Members, Sampling
from canaryproof.verify.papers.accounting import analytical as accountants
from canaryproof.verify.papers.records.training_record import Analytical

# Neighbours of the Gaussian mechanism: both the average's divisor m and the other members' updates are as they were.
ADD_OR_REMOVE = "one member more or less, the divisor m unchanged"
REPLACE = "one member replaced by another"

_DRAWN_BY = {"clients": "client_sampling", "canaries": "canary_sampling"}
_UNCOUNTED = "for the sums before division by m, whose value tells how many took part"


class AccountedRounds(Protocol):
    """Who takes part when; by ``client_sampling`` and ``canary_sampling`` it may say how that was drawn."""

    @property
    def rounds(self) -> int: ...  # noqa: D102

    def clients(self, round: int) -> NDArray[np.int64]: ...  # noqa: A002, D102

    def canaries(self, round: int) -> NDArray[np.int64]: ...  # noqa: A002, D102


class AccountedNoise(Protocol):
    """Noise on the sums of updates; ``independent`` is true of noise that is independent from round to round."""

    @property
    def noise_multiplier(self) -> float: ...  # noqa: D102

    def sensitivity(self, rounds: Sequence[int]) -> float: ...  # noqa: D102


class AccountedClip(Protocol):
    """Clipping, which gives away something of its own where the clip norm adapts."""

    @property
    def count_noise(self) -> float: ...  # noqa: D102


def analytical_epsilon(
    noise: AccountedNoise,
    delta: float,
    participation: AccountedRounds,
    clip: AccountedClip,
    members: Members = "canaries",
) -> Analytical:
    """Account for the one who is least protected: of the included canaries, or of the clients.

    A participation that does not say how it was drawn is taken to be known to the attacker. A ``ValueError`` says that
    δ or the noise is beyond what ``gaussian_mechanism`` serves.
    """
    drawn: Sampling = getattr(participation, _DRAWN_BY[members], SCHEDULED)
    # Who takes part in every round leaves nothing to chance.
    sampling = SCHEDULED if drawn.rate == 1 else drawn
    taken = patterns(participation, members)
    if sampling.rate == 0 or (sampling.kind == "scheduled" and not taken):
        return Analytical(0.0, ADD_OR_REMOVE, "nobody takes part")
    if noise.noise_multiplier == 0.0 or clip.count_noise == 0.0:
        return Analytical(math.inf, ADD_OR_REMOVE, "no noise")
    if sampling.kind == "scheduled":
        return _scheduled(noise, delta, taken, clip)
    if sampling.kind == "poisson number":
        return Analytical(None, ADD_OR_REMOVE, "none known: a Poisson number of rounds among the last ones")
    if not _independent(noise):
        return Analytical(None, ADD_OR_REMOVE, f"none known: correlated noise with sampling ({sampling.kind})")
    together = noise_with_counts(noise.noise_multiplier, clip.count_noise)
    rounds = participation.rounds
    if isinstance(sampling.rate, Fraction):
        return _without_replacement(together / 2.0, delta, rounds, sampling.rate)
    assert sampling.rate is not None
    claim = Claim("add-or-remove", together, rounds, rate=float(sampling.rate))
    return Analytical(claim.epsilon(delta), ADD_OR_REMOVE, f"{claim.basis(delta)}, {_UNCOUNTED}")


def _scheduled(noise: AccountedNoise, delta: float, taken: set[tuple[int, ...]], clip: AccountedClip) -> Analytical:
    """Account for members whose rounds the attacker knows: one Gaussian mechanism each, since squares of μ add up."""
    try:
        squares = {
            rounds: (noise.sensitivity(rounds) / noise.noise_multiplier) ** 2
            + len(rounds) / (2.0 * clip.count_noise) ** 2
            for rounds in taken
        }
    except OverflowError:
        raise ValueError(f"a noise multiplier of {noise.noise_multiplier} is too small to be accounted for") from None
    worst = max(squares, key=squares.__getitem__)
    sigma = 1.0 / math.sqrt(squares[worst])
    rule = f"Gaussian mechanism (Balle and Wang 2018) at noise multiplier {sigma:.6g}: {len(worst)} rounds"
    correlated = "" if _independent(noise) else ", with correlated noise"
    counts = "" if math.isinf(clip.count_noise) else ", with the counts of unclipped updates"
    rule = f"{rule} known to the attacker{correlated}{counts}"
    return Analytical(float(gaussian_mechanism.epsilon(delta, sigma)), ADD_OR_REMOVE, rule)


def _without_replacement(sigma: float, delta: float, rounds: int, rate: Fraction) -> Analytical:
    """Account for cohorts of fixed size, σ in units of how far a replaced update moves a sum: two clip norms."""
    cohort, population = rate.as_integer_ratio()
    by_chance = accountants.without_replacement(sigma, delta, rounds, cohort, population)
    # Rényi bounds are coarse at low noise, where they may exceed those for taking part in every round.
    always = accountants.gaussian(sigma, delta, rounds)
    if always <= by_chance:
        return Analytical(always, REPLACE, f"Gaussian mechanism, as if in all of {rounds} rounds")
    rule = f"Rényi accounting (dp-accounting) of {rounds} samples without replacement, of {cohort}/{population} each"
    return Analytical(by_chance, REPLACE, rule)


def _independent(noise: AccountedNoise) -> bool:
    return bool(getattr(noise, "independent", False))


def patterns(participation: AccountedRounds, members: Members) -> set[tuple[int, ...]]:
    """Return the distinct sets of rounds in which clients or canaries take part; of those who ever do."""
    rounds_of: defaultdict[int, list[int]] = defaultdict(list)
    for t in range(participation.rounds):
        for member in np.asarray(getattr(participation, members)(t)).tolist():
            rounds_of[member].append(t)
    return {tuple(rounds) for rounds in rounds_of.values()}


def noise_without_counts(noise_multiplier: float, count_noise: float) -> float:
    """Return the noise multiplier z_Δ of updates such that they and their counts together are worth z ≥ 0.

    Theorem 1 of Andrew et al. 2021 (arXiv 1905.03871): z_Δ = (z⁻² − (2σ_b)⁻²)^(−1/2), z itself where the count is not
    released (σ_b infinite). A ``ValueError`` says that the count alone gives away as much: z ≥ 2σ_b.
    """
    if noise_multiplier == 0.0:
        return 0.0
    if noise_multiplier >= 2.0 * count_noise:
        raise ValueError(
            f"count_noise must be more than half the noise multiplier {noise_multiplier:g}: {count_noise:g}"
        )
    # In this form infinity needs no case of its own.
    return noise_multiplier / math.sqrt(1.0 - (noise_multiplier / (2.0 * count_noise)) ** 2)


def noise_with_counts(noise_multiplier: float, count_noise: float) -> float:
    """Return what updates and counts together are worth, the inverse: z = (z_Δ⁻² + (2σ_b)⁻²)^(−1/2).

    A count's sensitivity is ½, in its centred form Σ(b_i − ½), and squares of sensitivity over noise add up.
    """
    if count_noise == 0.0:
        return 0.0
    return noise_multiplier / math.sqrt(1.0 + (noise_multiplier / (2.0 * count_noise)) ** 2)
