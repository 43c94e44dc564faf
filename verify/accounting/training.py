"""The analytical ε of a training, beside which an empirical one is put: for which neighbours, and by which rule.

Each value is an upper bound on ε for an attacker who sees all deltas, and knows who takes part when unless the rule
counts on chance. Where no rule is known to us, there is no value.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

from scipy import optimize

from canaryproof.kernels import gaussian_mechanism
from canaryproof.verify.accounting import analytical as accountants
from canaryproof.verify.accounting.sampled_gaussian import rdp
from canaryproof.verify.canaries.participation import SCHEDULED, Members, Participation, Sampling, patterns
from canaryproof.verify.training.clipping import Clip, joined
from canaryproof.verify.training.noise import Independent, Noise

# Of the Gaussian mechanism: both the average's divisor m and the other members' updates are as they were.
ADD_OR_REMOVE = "one member more or less, the divisor m unchanged"
REPLACE = "one member replaced by another"

_SAMPLING = {"clients": "client_sampling", "canaries": "canary_sampling"}
_UNCOUNTED = "for the sums before division by m, whose value tells how many took part"


@dataclass(frozen=True)
class Accounting:
    """An analytical ε.

    Attributes
    ----------
    epsilon
        Upper bound on ε, infinite without noise; None where none is known to us.
    relation
        Which data sets are neighbours.
    rule
        How it was found, or why it was not.
    """

    epsilon: float | None
    relation: str
    rule: str


def analytical_epsilon(
    noise: Noise, delta: float, participation: Participation, clip: Clip, members: Members = "canaries"
) -> Accounting:
    """Account for a training with differential privacy.

    Parameters
    ----------
    noise
        Noise on the sums of updates.
    delta
        Target δ in (0, 1), not subnormal.
    participation
        Who takes part when. One that does not say by ``client_sampling`` and ``canary_sampling`` how it was drawn is
        taken to be known to the attacker.
    clip
        Clip norm, which gives away something of its own where it adapts.
    members
        Whose privacy: that of a canary who is included, or of a client.

    Returns
    -------
    The analytical ε of the one who is least protected.

    Raises
    ------
    ValueError
        If δ or the noise is beyond what ``gaussian_mechanism`` serves.
    """
    drawn: Sampling = getattr(participation, _SAMPLING[members], SCHEDULED)
    # Who takes part in every round leaves nothing to chance.
    sampling = SCHEDULED if drawn.rate == 1 else drawn
    taken = patterns(participation, members)
    if sampling.rate == 0 or (sampling.kind == "scheduled" and not taken):
        return Accounting(0.0, ADD_OR_REMOVE, "nobody takes part")
    if noise.noise_multiplier == 0.0 or clip.count_noise == 0.0:
        return Accounting(math.inf, ADD_OR_REMOVE, "no noise")
    if sampling.kind == "scheduled":
        return _scheduled(noise, delta, taken, clip)
    if sampling.kind == "poisson number":
        return Accounting(None, ADD_OR_REMOVE, "none known: a Poisson number of rounds among the last ones")
    if not isinstance(noise, Independent):
        return Accounting(None, ADD_OR_REMOVE, f"none known: correlated noise with sampling ({sampling.kind})")
    together = joined(noise.noise_multiplier, clip.count_noise)
    rounds = participation.rounds
    if isinstance(sampling.rate, Fraction):
        return _without_replacement(together / 2.0, delta, rounds, sampling.rate)
    assert sampling.rate is not None
    try:
        epsilon = accountants.pld(together, delta, rounds, float(sampling.rate))
    except OverflowError:
        # So little noise gives dp-accounting losses whose exponentials are no floats.
        return _always(together, delta, rounds, ADD_OR_REMOVE)
    rule = f"privacy loss distributions (dp-accounting) of {rounds} rounds of Poisson sampling at {sampling.rate:.4g}"
    return Accounting(epsilon, ADD_OR_REMOVE, f"{rule}, {_UNCOUNTED}")


def _scheduled(noise: Noise, delta: float, taken: set[tuple[int, ...]], clip: Clip) -> Accounting:
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
    correlated = "" if isinstance(noise, Independent) else ", with correlated noise"
    counts = "" if math.isinf(clip.count_noise) else ", with the counts of unclipped updates"
    rule = f"{rule} known to the attacker{correlated}{counts}"
    return Accounting(float(gaussian_mechanism.epsilon(delta, sigma)), ADD_OR_REMOVE, rule)


def _without_replacement(sigma: float, delta: float, rounds: int, rate: Fraction) -> Accounting:
    """Account for cohorts of fixed size, σ in units of how far a replaced update moves a sum: two clip norms."""
    cohort, population = rate.as_integer_ratio()
    by_chance = accountants.without_replacement(sigma, delta, rounds, cohort, population)
    # Rényi bounds are coarse at low noise, where they may exceed those for taking part in every round.
    always = _always(sigma, delta, rounds, REPLACE)
    assert always.epsilon is not None
    if always.epsilon <= by_chance:
        return always
    rule = f"Rényi accounting (dp-accounting) of {rounds} samples without replacement, of {cohort}/{population} each"
    return Accounting(by_chance, REPLACE, rule)


def _always(sigma: float, delta: float, rounds: int, relation: str) -> Accounting:
    """Account as if chance decided nothing."""
    epsilon = accountants.gaussian(sigma, delta, rounds)
    return Accounting(epsilon, relation, f"Gaussian mechanism, as if in all of {rounds} rounds")


# Noise multipliers that are searched: at the ends of one round's accounting ε is far above 1e5, or no longer falls.
_LEAST, _MOST = 1e-3, 1e4


@cache
def poisson_noise_multiplier(epsilon: float, delta: float, rounds: int, sampling: float) -> float:
    """Return the noise multiplier at which Rényi accounting of Poisson sampling gives a training its ε.

    Parameters
    ----------
    epsilon
        ε of the training, at most 1e5; 0 noise if it is infinite.
    delta
        δ.
    rounds
        Number of rounds.
    sampling
        Probability that a client takes part in a round.

    Raises
    ------
    ValueError
        If the accounting, whose orders are finitely many, gives no noise so small an ε.

    Notes
    -----
    Maddock et al. (arXiv 2210.02912), Appendix C.1: the accounting of Mironov et al. (arXiv 1908.10530) at Opacus's
    orders, with the conversion of Balle et al. (2020).
    """
    if math.isinf(epsilon):
        return 0.0
    least = rdp(_MOST, delta, rounds, sampling)
    if least > epsilon:
        raise ValueError(f"training.epsilon: must be at least {least:.3g}, as Rényi accounting ends there")

    def excess(log: float) -> float:
        return math.log(rdp(math.exp(log), delta, rounds, sampling) / epsilon)

    return math.exp(optimize.brentq(excess, math.log(_LEAST), math.log(_MOST), xtol=1e-10))
