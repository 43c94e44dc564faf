"""Claimed mechanisms: the ε of noise, rounds and sampling, and the attacker whom it is about.

This module is ``canaryproof.accounting``. A ``Claim`` is made by ``gaussian``, ``poisson``, ``fixed_batches``,
``shuffled``, ``epsilon_delta``, ``from_event`` or ``best_of``; ``as_claim`` takes any of what an audit takes. Each ε
is an upper bound, and ``Claim.basis`` names it. ``Claim.bracket`` has a lower one, too:

- Known rounds with Gaussian noise are one Gaussian mechanism. Its ε is exact, but for the kernel's rounding.
- One sampled round in which a record is removed has a closed form: δ(log(1 + q(e^ε − 1))) is q times δ(ε) of the round
  without sampling, and the other direction has less. Where ε ≥ 0, they differ by (1 − q)(e^ε − 1)(N₁(S) − N₀(S)).
- Shuffled epochs have the ε of an attacker who knows the record's batch in each, which counts on no amplification.
- Sampled rounds of Gaussian noise have dominating pairs (Zhu, Dong and Wang 2022). ``loss_distribution`` composes
  them. Where the noise is very low, rounds that the attacker knows, whose number is binomial, or all rounds can give
  less.
- Any other event has the least ε of dp-accounting's two accountants, of its pure ε if it has one, and of all rounds if
  their noise is Gaussian. The library's transforms round to floats, so that δ below 2e-14 a round is left to its Rényi
  accounting.

Under replacement the pair of a Poisson-sampled round is (1 − q)N(0) + qN(±1). It dominates that of any two updates x
and x′ in the unit ball. Given the others' data, a hockey-stick divergence is E[(c + qX − qe^ε·X′)₊], where X and X′ are
log-normal with logarithms ⟨x, z⟩ − ‖x‖²/2. By Plackett's identity it grows with both variances, and falls with the
covariance of the logarithms, as the integrand is convex in each and its mixed derivative is not positive. Opposite unit
vectors have the largest variances and the least covariance.

For example:

>>> import canaryproof as cp
>>> claim = cp.accounting.poisson(1.0, rate=1 / 8, rounds=64)
>>> print(f"{claim.epsilon(1e-6):.2f}")
8.20
"""

import logging
import math
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from threading import get_ident
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import optimize, special

from canaryproof.kernels import gaussian_mechanism
from canaryproof.kernels.arguments import checked_reals
from canaryproof.kernels.arrays import Array
from canaryproof.kernels.public import set_module
from canaryproof.kernels.refusals import check_flag
from canaryproof.kernels.successors import current_name
from canaryproof.verify.audit import rules
from canaryproof.verify.audit.accounting import shuffled_batches
from canaryproof.verify.audit.accounting.loss_distribution import LossDistribution, Pair, Rounds, saddle_epsilon
from canaryproof.verify.audit.accounting.sampling import SCHEDULED, Sampling
from canaryproof.verify.audit.files.json_records import Count, Event, OmittedIfNone
from canaryproof.verify.audit.rules import NumberRange

if TYPE_CHECKING:
    from dp_accounting import DpEvent
else:
    # Hidden from type checkers, for which every name would exist.

    def __getattr__(name: str) -> Any:
        successor = current_name("canaryproof.accounting", name)
        if successor == name:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return globals()[successor]


Neighbours = Literal["add-or-remove", "replace"]
Attacker = Literal["known rounds", "sampling", "unstated"]

_RATE = NumberRange("lie between 0 and 1", 0.0, 1.0)
_RECORDS = NumberRange("be a whole number from 1 to 1e12", 1, 10**12, whole=True)
_PROBABILITY = NumberRange("lie between 0 and 1", 0.0, 1.0)
_MEAN = NumberRange("lie between 1 and 1e6", 1.0, 1e6)
_SHAPE = NumberRange("lie between 0 and 100", 0.0, 100.0)
NEIGHBOURS = ("add-or-remove", "replace")
# Events of dp-accounting whose ε needs no sampling; any other may count on it.
_UNSAMPLED = ("GaussianDpEvent", "LaplaceDpEvent", "DiscreteLaplaceDpEvent", "RandomizedResponseDpEvent", "ZCDpEvent")

# The transforms of privacy loss distributions may lose so much of δ in a round. Without sampling, where δ is known, at
# most 1e-16 was found.
_LOST = 1e-14
# Beyond, e^−ε is subnormal, and dp-accounting's sums lose their digits.
_LARGEST_LOSS = 700.0
# Largest number of losses that a distribution is rounded to, about.
_MOST_LOSSES = 2e6
# Most different mechanisms whose losses are composed one by one: for one δ, and for a trade-off function, which has 17.
_MOST_MECHANISMS, _MOST_IN_CURVE = 256, 16
# The library's distance of losses, in nats.
_INTERVAL = 1e-4
# First step of the logarithm of a noise multiplier from an estimate of it to another on the other side.
_FIRST_STEP = 0.01
# δ that a loss distribution serves ends at 1e-307; trade-off functions are made of these decades.
_LAST_DECADE = 306
_DECADES = (0, 1, 2, 3, 4, 6, 8, 11, 15, 20, 28, 40, 60, 90, 130, 200, 306)
# Orders less 1 that are tried besides the library's: the noise is low where the best are near 1.
_LOW_ORDERS = np.geomspace(0.01, 0.9, 24)
# Rounding of log A in Rényi accounting, a round: absolute, for its sums of logarithms up to 1e4, and relative.
_RENYI_ERROR = (1e-11, 1e-12)


# The kind of a Gaussian event, its noise multiplier, its rate, and how often it comes.
_SampledNoise = tuple[str, float, float, int]


@set_module("canaryproof.typing")
@dataclass(frozen=True)
class Bracket:
    """Both ends of what is known of a mechanism's ε at one δ.

    Attributes
    ----------
    attained
        Largest known lower bound: what an attacker reaches against some records.
    dominated
        Least known upper bound: what no attacker exceeds.
    """

    attained: float
    dominated: float

    def is_private(self, epsilon: float) -> bool | None:
        """Tell whether the mechanism is (ε, δ)-private; None where that cannot be said, between both ends."""
        if epsilon >= self.dominated:
            return True
        return False if epsilon < self.attained else None


@set_module("canaryproof.typing")
@dataclass(frozen=True)
class Claim:
    """A claimed mechanism, which answers how private it is, and for whom. The functions of this module make claims.

    Attributes
    ----------
    neighbours
        ``add-or-remove``: one record more or less; ``replace``: one record replaced, so that a sum moves by two clip
        norms.
    noise_multiplier
        Standard deviation of the noise of a round in clip norms; None if rounds differ or have no Gaussian noise.
    rounds
        Rounds of the training; None where an ε is stated.
    participations
        Rounds in which the record takes part; None where they are drawn, or an ε is stated.
    rate
        Probability with which a record takes part in a round, by Poisson sampling; None without it.
    statement
        Stated (ε, δ), of which nothing else is known; else None.
    event
        Mechanism of another kind, as ``dp_accounting`` describes it; else None.
    epochs
        Number of epochs, each of which is shuffled anew and cut into ``rounds``/``epochs`` batches; else None.

    Notes
    -----
    Two claims are equal if they claim the same mechanism for the same neighbours.
    """

    neighbours: Neighbours
    noise_multiplier: float | None = None
    rounds: Count | None = None
    participations: Count | None = None
    rate: float | None = None
    statement: tuple[float, float] | None = None
    event: Event = None
    epochs: OmittedIfNone[Count] = None

    @property
    def attacker(self) -> Attacker:
        """The attacker whom the claim is about: knows a record's rounds, or only the law of sampling."""
        if self.statement is not None:
            return "unstated"
        leaves = () if self.event is None else _mechanisms(self.event)
        drawn = self.rate is not None or self.epochs is not None
        sampled = drawn or any(type(leaf).__name__ not in _UNSAMPLED for _, leaf in leaves)
        return "sampling" if sampled else "known rounds"

    @property
    def sampling(self) -> Sampling | None:
        """How a record's rounds are drawn: the same way in all of them. None of a stated ε, or where rounds differ."""
        if self.attacker != "sampling" or self.epochs is not None:
            # In a shuffled epoch a record takes part once, whatever its batch.
            return None if self.statement is not None else SCHEDULED
        if self.rate is not None:
            return Sampling("poisson", self.rate)
        leaves = {_hashable(leaf) for _, leaf in _leaves(self.event)}
        kinds = {"PoissonSampledDpEvent": "poisson", "SampledWithoutReplacementDpEvent": "without replacement"}
        laws = {(kinds.get(type(leaf).__name__), _rate_of(leaf)) for leaf in leaves}
        if len(laws) > 1:
            return None
        ((kind, rate),) = laws
        return None if kind is None else Sampling(kind, rate)  # type: ignore[arg-type]

    def epsilon(self, delta: float) -> float:
        """Least known upper bound of ε.

        Parameters
        ----------
        delta
            δ in (0, 1), not subnormal; also 0 for mechanisms of a pure ε, such as Laplace noise and randomised
            response.

        Returns
        -------
        ε in nats; infinite where no bound is known, as below the δ of a stated ε.

        Raises
        ------
        ValueError
            If δ lies outside its range.

        Notes
        -----
        The module's documentation has the accountings, ``basis`` the one that gave the value.
        """
        return float(_bound(self, _checked_delta(self, delta))[0])

    def basis(self, delta: float) -> str:
        """Accounting that gave ``epsilon`` at δ, in a few words; arguments and errors as there."""
        return _bound(self, _checked_delta(self, delta))[1]

    def attained_epsilon(self, delta: float) -> float:
        """Largest known lower bound of ε: what an attacker reaches against some records.

        Parameters
        ----------
        delta
            δ in (0, 1), not subnormal.

        Returns
        -------
        ε in nats, at most ``epsilon``; 0 where nothing is known, as of a stated ε. A claimed ε below it is refuted,
        one above ``epsilon`` holds, and of one between them the mechanism alone does not decide.

        Raises
        ------
        ValueError
            If δ lies outside its range.

        Notes
        -----
        Exact at known rounds and in one round that is sampled, unless a record is replaced under Poisson sampling. With
        sampling, the records are unit vectors in one direction. Under Poisson sampling the one that differs is alone,
        or is replaced by its opposite; in batches of fixed size all others are its opposites. The pair of outputs is
        composed with itself, in the better of its two directions. Where the accountant is at most 1% or 0.001 above,
        that is subtracted; elsewhere nothing is known. In shuffled epochs all others are opposites of the one that
        differs, too, and what is subtracted is proven (``shuffled``).
        """
        return float(_attained_epsilon(self, float(rules.DELTA.number("delta", delta))))

    def bracket(self, delta: float) -> Bracket:
        """Both ends of what is known of ε, against which a stated ε is held.

        Parameters
        ----------
        delta
            δ in (0, 1), not subnormal.

        Returns
        -------
        ``attained_epsilon`` and ``epsilon``. They are equal at known rounds, whose ε is exact, and 0 and ε where
        nothing but an upper bound is known.

        Raises
        ------
        ValueError
            If δ lies outside its range.

        Examples
        --------
        >>> import canaryproof as cp
        >>> epochs = {"batches": 100, "epochs": 10, "neighbours": "add-or-remove"}
        >>> bracket = cp.accounting.shuffled(0.5, **epochs).bracket(1e-6)
        >>> print(f"{bracket.attained:.2f} to {bracket.dominated:.2f}")
        48.90 to 49.32
        >>> [bracket.is_private(epsilon) for epsilon in (8.0, 49.0, 50.0)]
        [False, None, True]
        """
        least = float(rules.DELTA.number("delta", delta))
        return Bracket(self.attained_epsilon(least), self.epsilon(least))

    def power(self, false_positive_rate: ArrayLike) -> NDArray[np.float64]:
        """Largest true positive rate that the claim allows a test, at a false positive rate.

        Parameters
        ----------
        false_positive_rate
            α in [0, 1], any shape.

        Returns
        -------
        1 − f(α) with the claim's trade-off function f, to full relative precision at small α. A p-value that is exact
        without the record is thus turned into one that holds under the claim.

        Raises
        ------
        ValueError
            If an α lies outside [0, 1].

        Notes
        -----
        Φ(Φ⁻¹(α) + √n/σ) for n known rounds (Dong, Roth and Su 2022, equation 6), with 2√n under replacement; so for n
        shuffled epochs. Otherwise
        the least, over pairs (ε, δ) that hold, of δ + e^ε·α and 1 − e^−ε·(1 − δ − α), and 1.
        """
        alpha = _checked_rates(false_positive_rate)
        noise = _dominating_noise(self)
        if noise is not None:
            return np.asarray(special.ndtr(special.ndtri(alpha) + 1.0 / noise))
        epsilons, deltas = _pairs(self)
        with np.errstate(divide="ignore", over="ignore"):
            low = deltas + np.exp(epsilons + np.log(alpha[..., None]))
        high = 1.0 - np.exp(-epsilons) * np.maximum(0.0, 1.0 - deltas - alpha[..., None])
        return np.asarray(np.minimum(low, high).min(axis=-1, initial=1.0))

    def tradeoff(self, false_positive_rate: ArrayLike) -> NDArray[np.float64]:
        """Least false negative rate f(α) that the claim leaves a test; 1 − ``power``, precise where it is small."""
        alpha = _checked_rates(false_positive_rate)
        noise = _dominating_noise(self)
        if noise is not None:
            return np.asarray(special.ndtr(-special.ndtri(alpha) - 1.0 / noise))
        epsilons, deltas = _pairs(self)
        with np.errstate(divide="ignore", over="ignore"):
            low = 1.0 - deltas - np.exp(epsilons + np.log(alpha[..., None]))
        high = np.exp(-epsilons) * (1.0 - deltas - alpha[..., None])
        return np.asarray(np.maximum(low, high).max(axis=-1, initial=0.0))

    def with_known_rounds(self, participations: int) -> "Claim":
        """Claim of the same noise for an attacker who knows the rounds in which the record took part.

        Parameters
        ----------
        participations
            Number n of those rounds, from 0 to ``rounds``.

        Returns
        -------
        The claim; its ε is exact.

        Raises
        ------
        ValueError
            If n lies outside its range, or the claim does not say the noise of a round.
        """
        if self.noise_multiplier is None or self.rounds is None:
            raise ValueError("with_known_rounds: must be asked of a claim with one noise multiplier for all rounds")
        return gaussian(
            self.noise_multiplier, participations=participations, rounds=self.rounds, neighbours=self.neighbours
        )

    def with_noise_multiplier(self, noise_multiplier: float) -> "Claim":
        """Claim of the same rounds with another noise multiplier.

        Parameters
        ----------
        noise_multiplier
            Standard deviation of the noise of a round in clip norms, from 0.01 to 1e6.

        Returns
        -------
        The claim.

        Raises
        ------
        ValueError
            If the multiplier lies outside its range, or the claim does not say one for all rounds.
        """
        sigma = float(rules.NOISE_MULTIPLIER.number("noise_multiplier", noise_multiplier))
        if self.noise_multiplier is None:
            raise ValueError("with_noise_multiplier: must be asked of a claim with one noise multiplier for all rounds")
        if self.event is None:
            return replace(self, noise_multiplier=sigma)
        import dp_accounting

        noise = dp_accounting.GaussianDpEvent(sigma)
        parts = [
            dp_accounting.SelfComposedDpEvent(
                noise if type(leaf) is dp_accounting.GaussianDpEvent else _with(leaf, {"event": noise}), count
            )
            for count, leaf in _leaves(self.event)
        ]
        return from_event(dp_accounting.ComposedDpEvent(parts), neighbours=self.neighbours)

    def with_rounds(self, rounds: int) -> "Claim":
        """Claim of the same sampled rounds, another number of them.

        Parameters
        ----------
        rounds
            Number of rounds, from 1 to 1e9.

        Returns
        -------
        The claim.

        Raises
        ------
        ValueError
            If the number lies outside its range, or rounds are not sampled, or not all in one way.
        """
        if self.rate is not None and self.noise_multiplier is not None:
            return poisson(self.noise_multiplier, rate=self.rate, rounds=rounds, neighbours=self.neighbours)
        leaves = {} if self.event is None else {_hashable(leaf) for _, leaf in _leaves(self.event)}
        if self.attacker != "sampling" or len(leaves) != 1:
            raise ValueError("with_rounds: must be asked of a claim whose rounds are all sampled in one way")
        import dp_accounting

        (leaf,) = leaves
        count = int(rules.ROUNDS.number("rounds", rounds))
        return from_event(dp_accounting.SelfComposedDpEvent(leaf, count), neighbours=self.neighbours)

    def participation_quantile(self, probability: float, records: float = 1) -> int:
        """Least n such that no record takes part in more than n rounds with a probability; else, the claim's rounds.

        Parameters
        ----------
        probability
            Probability in [0, 1].
        records
            Number of records, from 1 to 1e12, of which none takes part more often.

        Returns
        -------
        The quantile of the binomial number of rounds; of several records at least that of their most, by a sum of
        probabilities.

        Raises
        ------
        ValueError
            If the probability lies outside its range, or the claim says neither rounds nor rate.
        """
        p = _PROBABILITY.number("probability", probability)
        if self.participations is not None:
            return self.participations
        if self.epochs is not None:
            return self.epochs
        if self.rate is None or self.rounds is None:
            raise ValueError("participation_quantile: must be asked of a claim with rounds or with a sampling rate")
        share = (1.0 - p) / _RECORDS.number("records", records)
        low, high = -1, self.rounds
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if special.bdtrc(middle, self.rounds, self.rate) <= share else (middle, high)
        return high

    def __str__(self) -> str:
        """Return the claim in one line."""
        if self.statement is not None:
            mechanism = "ε = {:g} at δ = {:g}".format(*self.statement)
        elif self.event is not None:
            mechanism = " and ".join(f"{count} × {leaf}" for count, leaf in _leaves(self.event))
        elif self.epochs is not None:
            mechanism = f"noise multiplier {self.noise_multiplier:g}, {_epochs(self)}"
        else:
            taken = f"{self.participations} of {_number_of(self.rounds)} known to the attacker"
            drawn = f"{_number_of(self.rounds)} of Poisson sampling at {self.rate}"
            mechanism = f"noise multiplier {self.noise_multiplier:g}, {taken if self.rate is None else drawn}"
        return f"{mechanism} (neighbours: {self.neighbours})"


def gaussian(
    noise_multiplier: float,
    *,
    participations: int | None = None,
    rounds: int | None = None,
    neighbours: Neighbours = "add-or-remove",
) -> Claim:
    """Claim of Gaussian noise for an attacker who knows in which rounds a record takes part.

    Parameters
    ----------
    noise_multiplier
        Standard deviation σ of the noise of a round in clip norms, from 0.01 to 1e6.
    participations
        Number n of rounds in which the record takes part, at most ``rounds``; 1 where neither is given.
    rounds
        Rounds of the training, from 1 to 1e9, which need ``participations``; by default all are the record's.
    neighbours
        ``add-or-remove`` or ``replace``.

    Returns
    -------
    The claim. It is one Gaussian mechanism of noise multiplier σ/√n, or σ/(2√n) for ``replace``.

    Raises
    ------
    ValueError
        If an argument lies outside its range.

    Examples
    --------
    >>> import canaryproof as cp
    >>> claim = cp.accounting.gaussian(1.0, participations=8, rounds=64)
    >>> print(round(claim.epsilon(1e-5), 3))
    15.456
    >>> print(claim.basis(1e-5))
    exact Gaussian mechanism (Balle and Wang 2018), 8 rounds known to the attacker
    """
    sigma = rules.NOISE_MULTIPLIER.number("noise_multiplier", noise_multiplier)
    whole = None if rounds is None else int(rules.ROUNDS.number("rounds", rounds))
    taken = _participations(participations, whole)
    most = int(rules.ROUNDS.high) if whole is None else whole
    rule = NumberRange(f"be a whole number from 0 to {_plain(most)}", 0, most, whole=True)
    taken = int(rule.number("participations", taken))
    return Claim(_relation(neighbours), sigma, max(1, taken) if whole is None else whole, taken)


def poisson(noise_multiplier: float, *, rate: float, rounds: int, neighbours: Neighbours = "add-or-remove") -> Claim:
    """Claim of Gaussian noise for an attacker who knows that rounds were drawn by Poisson sampling, and not which.

    Parameters
    ----------
    noise_multiplier
        Standard deviation σ of the noise of a round in clip norms, from 0.01 to 1e6.
    rate
        Probability q with which a record takes part in a round, independently of all else, in [0, 1]. At 0 and 1
        nothing is left to chance, and the claim is that of ``gaussian``.
    rounds
        Number of rounds, from 1 to 1e9.
    neighbours
        ``add-or-remove`` or ``replace``.

    Returns
    -------
    The claim. It does not hold against an attacker who knows the rounds: ``Claim.with_known_rounds`` does.

    Raises
    ------
    ValueError
        If an argument lies outside its range.

    Examples
    --------
    >>> import canaryproof as cp
    >>> claim = cp.accounting.poisson(1.0, rate=1 / 8, rounds=64)
    >>> print(round(claim.epsilon(1e-5), 3))
    7.151
    >>> print(claim.basis(1e-5))
    privacy loss distributions of 64 rounds of Poisson sampling at 0.125
    >>> print(round(claim.epsilon(1e-30), 1))
    27.4
    """
    sigma = rules.NOISE_MULTIPLIER.number("noise_multiplier", noise_multiplier)
    q, number = _RATE.number("rate", rate), int(rules.ROUNDS.number("rounds", rounds))
    if q in (0.0, 1.0):
        return Claim(_relation(neighbours), sigma, number, number * int(q))
    return Claim(_relation(neighbours), sigma, number, rate=q)


def fixed_batches(noise_multiplier: float, *, batch: int, records: int, rounds: int, neighbours: Neighbours) -> Claim:
    """Claim of Gaussian noise for an attacker who knows that each round draws a batch of fixed size, and not which.

    Parameters
    ----------
    noise_multiplier
        Standard deviation σ of the noise of a round in clip norms, from 0.01 to 1e6.
    batch
        Records of a batch, drawn without replacement and anew in each round, from 1 to ``records``.
    records
        Records of the training, from 1 to 1e9.
    rounds
        Number of rounds, from 1 to 1e9.
    neighbours
        ``add-or-remove`` or ``replace``; it has no default, as the two differ much. In both, another record takes the
        place of one that is missing in a batch, so that a sum moves by two clip norms.

    Returns
    -------
    The claim. Its ε is that of the dominating pair of Zhu, Dong and Wang (2022), an upper bound; records reach
    ``Claim.attained_epsilon`` (Lebeda, Regehr, Kamath and Steinke 2024).

    Raises
    ------
    ValueError
        If an argument lies outside its range.

    Examples
    --------
    >>> import canaryproof as cp
    >>> claim = cp.accounting.fixed_batches(
    ...     1.0, batch=100, records=10_000, rounds=200, neighbours="replace"
    ... )
    >>> print(f"{claim.attained_epsilon(1e-5):.2f} to {claim.epsilon(1e-5):.2f}")
    7.65 to 8.05
    """
    import dp_accounting

    sigma = float(rules.NOISE_MULTIPLIER.number("noise_multiplier", noise_multiplier))
    size = int(rules.ROUNDS.number("records", records))
    drawn = int(NumberRange(f"be a whole number from 1 to {_plain(size)}", 1, size, whole=True).number("batch", batch))
    number = int(rules.ROUNDS.number("rounds", rounds))
    event = dp_accounting.SampledWithoutReplacementDpEvent(size, drawn, dp_accounting.GaussianDpEvent(sigma))
    return from_event(dp_accounting.SelfComposedDpEvent(event, number), neighbours=neighbours)


def shuffled(noise_multiplier: float, *, batches: int, epochs: int = 1, neighbours: Neighbours) -> Claim:
    """Claim of Gaussian noise for an attacker who knows that each epoch shuffles the records, and not how.

    Parameters
    ----------
    noise_multiplier
        Standard deviation σ of the noise of a batch in clip norms, from 0.01 to 1e6.
    batches
        Batches of equal size into which an epoch is cut, in each of which a record takes part once.
    epochs
        Number of epochs, each of which is shuffled anew. There are at most 1e9 batches in all.
    neighbours
        ``add-or-remove``: the update of one record is zero, and its place stays in the shuffle (zero-out);
        ``replace``: it is any other one, so that a sum moves by two clip norms. It has no default, as the two differ
        much.

    Returns
    -------
    The claim. Its ε is that of an attacker who knows the record's batch in each epoch, so that nothing is gained by
    shuffling. ``Claim.attained_epsilon`` is below it, and holds, too: against the worst gradients that are known (Chua
    et al. 2024, arXiv 2403.17673), 1 for the record and −1 for all others, by the largest sum of each epoch or by the
    sum of all. Where the noise is low, both ends nearly meet. The ε of Poisson sampling, which is often stated in their
    place, may lie below both.

    Raises
    ------
    ValueError
        If an argument lies outside its range.

    Examples
    --------
    >>> import canaryproof as cp
    >>> claim = cp.accounting.shuffled(0.5, batches=100, neighbours="add-or-remove")
    >>> print(f"{claim.attained_epsilon(1e-6):.2f} to {claim.epsilon(1e-6):.2f}")
    11.00 to 11.00
    >>> sampled = cp.accounting.poisson(0.5, rate=0.01, rounds=100)
    >>> print(f"{sampled.epsilon(1e-6):.2f}")
    7.92
    """
    sigma = float(rules.NOISE_MULTIPLIER.number("noise_multiplier", noise_multiplier))
    cut, times = int(rules.ROUNDS.number("batches", batches)), int(rules.ROUNDS.number("epochs", epochs))
    rounds = int(rules.ROUNDS.number("epochs: all batches", cut * times))
    if cut == 1:
        return gaussian(sigma, participations=times, neighbours=neighbours)
    return Claim(_relation(neighbours), sigma, rounds, epochs=times)


@set_module("canaryproof.accounting")
@dataclass(frozen=True, kw_only=True)
class RandomTrainings:
    """A random number of trainings, and what private selection of the best one needs. ``best_of`` takes it.

    Attributes
    ----------
    law
        Law from which the number was drawn before the first training, and without looking at the records:
        ``truncated negative binomial`` or ``Poisson``.
    mean
        Its mean, from 1 to 1e6.
    shape
        Shape η of the negative binomial law, from 0 to 100: 0 is the logarithmic law, and 1 the geometric one.
    made
        Trainings that were made, which composition counts; nobody else may learn it.
    settings_drawn_anew
        Each training drew its settings anew from one law, which the records did not choose.
    only_winner_released
        Nothing is released but the best training, neither the others nor their number.
    score_covered
        The score by which the best one is chosen is a part of what each training's ε covers: it is computed from the
        trained model and public data, say, and not from the records themselves.
    """

    law: Literal["truncated negative binomial", "Poisson"]
    mean: float
    made: int
    shape: float = 1.0
    settings_drawn_anew: bool = False
    only_winner_released: bool = False
    score_covered: bool = False

    def __post_init__(self) -> None:
        rules.choice("law", self.law, ("truncated negative binomial", "Poisson"))
        _MEAN.number("mean", self.mean)
        rules.ROUNDS.number("made", self.made)
        _SHAPE.number("shape", self.shape)
        for name in ("settings_drawn_anew", "only_winner_released", "score_covered"):
            check_flag(f"{name}:", getattr(self, name))

    @property
    def is_private_selection(self) -> bool:
        """Whether all is affirmed that private selection needs."""
        return self.settings_drawn_anew is self.only_winner_released is self.score_covered is True


def best_of(claim: Claim, *, trainings: int | RandomTrainings) -> Claim:
    """Claim of the best of several trainings, such as those of a search for hyperparameters.

    Parameters
    ----------
    claim
        Claim of one training.
    trainings
        Number of trainings on the same records, from 1 to 1e9, the best of which is released; or ``RandomTrainings``
        if the number was drawn from a law.

    Returns
    -------
    The claim of all trainings by composition, which holds however the best is chosen, and whatever is released of the
    others. A random number of trainings has the claim of private selection (Papernot and Steinke 2022, theorems 2 and
    6) if it affirms all three conditions, and if dp-accounting has the Rényi divergences of one training: not of a
    stated ε, and not of Poisson sampling where records are replaced. Else it, too, has that of composition.

    Raises
    ------
    ValueError
        If an argument lies outside its range, or all trainings together exceed the range of a claim.

    Examples
    --------
    >>> import canaryproof as cp
    >>> training = cp.accounting.gaussian(4.0)
    >>> print(round(cp.accounting.best_of(training, trainings=16).epsilon(1e-5), 3))
    4.377
    >>> drawn = cp.accounting.RandomTrainings(
    ...     law="truncated negative binomial", mean=16, made=21,
    ...     settings_drawn_anew=True, only_winner_released=True, score_covered=True,
    ... )
    >>> print(round(cp.accounting.best_of(training, trainings=drawn).epsilon(1e-5), 3))
    2.283
    """
    if not isinstance(claim, Claim):
        raise ValueError(f"claim: {rules.refusal('a Claim', claim)}")
    if isinstance(trainings, RandomTrainings):
        shape = math.inf if trainings.law == "Poisson" else trainings.shape
        selection = _private_selection(claim, trainings.mean, shape) if trainings.is_private_selection else None
        if selection is not None:
            return selection
        trainings = trainings.made
    number = int(rules.ROUNDS.number("trainings", trainings))
    if claim.statement is not None:
        epsilon, delta = claim.statement
        return epsilon_delta(number * epsilon, number * delta, neighbours=claim.neighbours)
    assert claim.rounds is not None
    rounds = int(rules.ROUNDS.number("trainings: all rounds", number * claim.rounds))
    taken = None if claim.participations is None else number * claim.participations
    if claim.event is None:
        epochs = None if claim.epochs is None else number * claim.epochs
        return replace(claim, rounds=rounds, participations=taken, epochs=epochs)
    import dp_accounting

    return from_event(dp_accounting.SelfComposedDpEvent(claim.event, number), neighbours=claim.neighbours)


def _private_selection(claim: Claim, mean: float, shape: float) -> Claim | None:
    """Return the claim of private selection, or None where no accountant has it."""
    if claim.statement is not None:
        return None
    from dp_accounting.dp_event import RepeatAndSelectDpEvent

    try:
        return from_event(RepeatAndSelectDpEvent(_event_of(claim), float(mean), shape), neighbours=claim.neighbours)
    except ValueError:
        return None


def _event_of(claim: Claim) -> Any:
    """Return a mechanism as an event; shuffled epochs as the rounds that their upper bound is of."""
    import dp_accounting

    if claim.event is not None:
        return claim.event
    assert claim.noise_multiplier is not None
    event: Any = dp_accounting.GaussianDpEvent(claim.noise_multiplier)
    if claim.rate is not None:
        return dp_accounting.SelfComposedDpEvent(dp_accounting.PoissonSampledDpEvent(claim.rate, event), claim.rounds)
    taken = claim.participations if claim.epochs is None else claim.epochs
    return dp_accounting.SelfComposedDpEvent(event, taken)


def epsilon_delta(epsilon: float, delta: float, *, neighbours: Neighbours = "add-or-remove") -> Claim:
    """Claim of an ε at one δ, with nothing known of the mechanism.

    Parameters
    ----------
    epsilon
        ε in nats, from 0.001 to 10,000.
    delta
        δ in (0, 1), not subnormal.
    neighbours
        ``add-or-remove`` or ``replace``.

    Returns
    -------
    The claim. Its ε is infinite below δ, and its trade-off function that of (ε, δ)-privacy.

    Raises
    ------
    ValueError
        If an argument lies outside its range.

    Examples
    --------
    >>> import canaryproof as cp
    >>> print(round(float(cp.accounting.epsilon_delta(1.0, 1e-5).tradeoff(0.5)), 4))
    0.1839
    """
    value, least = rules.CLAIM.number("epsilon", epsilon), rules.DELTA.number("delta", delta)
    return Claim(_relation(neighbours), statement=(float(value), float(least)))


def from_event(event: "DpEvent", *, neighbours: Neighbours = "add-or-remove") -> Claim:
    """Claim of a mechanism that ``dp_accounting`` describes.

    Parameters
    ----------
    event
        A ``dp_accounting.DpEvent``. Compositions of Gaussian events, and of those that are sampled, have this package's
        accountings; any other event has what the module's documentation says.
    neighbours
        ``add-or-remove`` or ``replace``. For ``replace`` an event's noise multiplier is per clip norm, as dp-accounting
        defines it, and the sum moves by two.

    Returns
    -------
    The claim: that of ``gaussian`` or ``poisson`` if the event is one of those.

    Raises
    ------
    ValueError
        If no accountant serves the event for these neighbours, or Gaussian noise lies outside its range.

    Examples
    --------
    >>> import dp_accounting
    >>> import canaryproof as cp
    >>> noise = dp_accounting.GaussianDpEvent(1.0)
    >>> event = dp_accounting.PoissonSampledDpEvent(1 / 8, noise)
    >>> claim = cp.accounting.from_event(dp_accounting.SelfComposedDpEvent(event, 64))
    >>> claim == cp.accounting.poisson(1.0, rate=1 / 8, rounds=64)
    True
    """
    from dp_accounting import ComposedDpEvent, DpEvent, SelfComposedDpEvent

    relation = _relation(neighbours)
    if not isinstance(event, DpEvent):
        raise ValueError(f"event: {rules.refusal('a dp_accounting.DpEvent', event)}")
    counts: Counter[Any] = Counter()
    for count, leaf in _leaves(event):
        counts[_hashable(leaf)] += count
    noises = {_noise_of(leaf) for leaf in counts}
    for noise in noises - {None}:
        rules.NOISE_MULTIPLIER.number("event: noise_multiplier", noise)
    if len(counts) == 1:
        ((leaf, count),) = counts.items()
        match type(leaf).__name__:
            case "GaussianDpEvent":
                return gaussian(leaf.noise_multiplier, participations=count, neighbours=relation)
            case "PoissonSampledDpEvent" if None not in noises:
                return poisson(
                    leaf.event.noise_multiplier, rate=leaf.sampling_probability, rounds=count, neighbours=relation
                )
    whole = ComposedDpEvent(tuple(SelfComposedDpEvent(leaf, count) for leaf, count in counts.items()))
    common = next(iter(noises)) if len(noises) == 1 else None
    # A training of which the best of many is released counts its rounds once.
    rounds = sum(count * sum(each for each, _ in _mechanisms(leaf)) for leaf, count in counts.items())
    rules.ROUNDS.number("event: all rounds", max(1, rounds))
    claim = Claim(relation, common, rounds, event=whole)
    if claim.attacker == "known rounds":
        claim = Claim(relation, common, rounds, rounds, event=whole)
    if not counts or not _is_supported(claim):
        rule = f"one that dp-accounting accounts for where neighbours are {relation}"
        raise ValueError(f"event: {rules.refusal(rule, event)}")
    return claim


def as_claim(value: "float | Claim | DpEvent", delta: float, neighbours: Neighbours | None = None) -> Claim:
    """Claim that is meant by a number, a claim or an event.

    Parameters
    ----------
    value
        A stated ε, a ``Claim``, or a ``dp_accounting.DpEvent``.
    delta
        δ at which a number is stated, in (0, 1).
    neighbours
        ``add-or-remove`` or ``replace``; by default those of a ``Claim``, and else ``add-or-remove``.

    Returns
    -------
    The claim.

    Raises
    ------
    ValueError
        If it is none of these, lies outside its range, or is a ``Claim`` for other neighbours.

    Examples
    --------
    >>> import canaryproof as cp
    >>> print(cp.accounting.as_claim(3.0, 1e-6))
    ε = 3 at δ = 1e-06 (neighbours: add-or-remove)
    """
    if isinstance(value, Claim):
        if neighbours is not None and _relation(neighbours) != value.neighbours:
            raise ValueError(f"neighbours: must be {value.neighbours}, as in the claim, not {neighbours}")
        return value
    relation = _relation("add-or-remove" if neighbours is None else neighbours)
    # An event can only be made where its library is loaded, and loading that takes seconds.
    library = sys.modules.get("dp_accounting")
    if library is not None and isinstance(value, library.DpEvent):
        return from_event(value, neighbours=relation)
    epsilon = float(rules.CLAIM.number("claim", value))
    return epsilon_delta(epsilon, delta, neighbours=relation)


def batch_size(claim: Claim) -> int | None:
    """Return the size of the batches that a claim of fixed ones has; None of any other claim."""
    if claim.sampling is None or claim.sampling.kind != "without replacement":
        return None
    return next(int(leaf.sample_size) for _, leaf in _leaves(claim.event))


def noise_multiplier(
    epsilon: float,
    delta: float,
    *,
    rounds: int | None = None,
    rate: float | None = None,
    participations: int | None = None,
    neighbours: Neighbours = "add-or-remove",
) -> float:
    """Return a noise multiplier, close to the smallest, for which the claim's ε is at most the given one.

    Parameters
    ----------
    epsilon
        ε in nats, from 0.001 to 10,000.
    delta
        δ in (0, 1), not subnormal.
    rounds
        Rounds of the training, from 1 to 1e9.
    rate
        Rate of Poisson sampling in [0, 1], for ``poisson``.
    participations
        Known rounds of the record, for ``gaussian``; 1 where no rounds are given. It excludes ``rate``.
    neighbours
        ``add-or-remove`` or ``replace``.

    Returns
    -------
    Noise multiplier, at least 0.01. It is exact but for rounding at known rounds; with sampling it is at most 1e-5 of
    itself above the least that ``poisson`` accounts for.

    Raises
    ------
    ValueError
        If an argument lies outside its range, or more noise than 1e6 would be needed.

    Examples
    --------
    >>> import canaryproof as cp
    >>> print(round(cp.accounting.noise_multiplier(3.0, 1e-6), 4))
    1.5439
    """
    target, least = rules.CLAIM.number("epsilon", epsilon), float(rules.DELTA.number("delta", delta))
    if rate is not None and participations is not None:
        raise ValueError("participations: must be left out where a rate is given")
    if rate is not None and rounds is None:
        raise ValueError("rounds: must be given with a rate")

    def claim(sigma: float) -> Claim:
        if rate is not None and rounds is not None:
            return poisson(sigma, rate=rate, rounds=rounds, neighbours=neighbours)
        return gaussian(sigma, participations=participations, rounds=rounds, neighbours=neighbours)

    low, high = rules.NOISE_MULTIPLIER.low, rules.NOISE_MULTIPLIER.high
    unit = claim(1.0)
    taken = unit.rounds if unit.participations is None else unit.participations
    assert taken is not None
    distance = _distance(unit) * math.sqrt(taken)
    # Enough where the rounds are known, and so for any sampling.
    most = max(low, distance * float(gaussian_mechanism.noise_multiplier(target, least)))
    if unit.participations is None:
        most = _least_sampled_noise(claim, target, least, min(most, high))
    if most > high or (most == high and claim(high).epsilon(least) > target):
        raise ValueError(f"epsilon: must be at least {claim(high).epsilon(least):.3g} for these rounds, not {epsilon}")
    return most


def _least_sampled_noise(claim: Callable[[float], Claim], target: float, delta: float, most: float) -> float:
    """Return noise below which ε is above the target, to 1e-5; the most if that is not enough."""
    low, high = math.log(rules.NOISE_MULTIPLIER.low), math.log(most)

    def excess(log: float, account: Callable[[float], float] = lambda sigma: claim(sigma).epsilon(delta)) -> float:
        # ε is 0 where δ covers all, and infinite beyond every accounting.
        return float(np.clip(math.log(max(account(math.exp(log)), 1e-300) / target), -5.0, 50.0))

    def about(log: float) -> float:
        return excess(log, lambda sigma: max(saddle_epsilon(each, delta) for each in _directions(claim(sigma))))

    # A saddle point is mostly off by a few percent, so that few of the accountings are needed, which take seconds.
    end, step = low if about(low) <= 0.0 else high, _FIRST_STEP
    if about(low) > 0.0 > about(high):
        end = optimize.brentq(about, low, high, xtol=_FIRST_STEP)
    start, is_enough = end, excess(end) <= 0.0
    while (excess(end) <= 0.0) is is_enough:
        if end == (low if is_enough else high):
            return rules.NOISE_MULTIPLIER.low if is_enough else most
        start, end, step = end, min(high, max(low, end - step if is_enough else end + step)), 4.0 * step
    sigma, step = math.exp(optimize.brentq(excess, start, end, xtol=2e-6)), 2e-6
    while sigma < most and claim(sigma).epsilon(delta) > target:
        sigma, step = sigma * (1.0 + step), 2.0 * step
    return min(sigma, most)


def _participations(participations: int | None, rounds: int | None) -> int:
    """Return the rounds in which a record takes part: 1 unless they are given, which rounds require."""
    if participations is not None:
        return participations
    if rounds is not None:
        raise ValueError(
            f"rounds: must be given with the record's participations: participations={rounds} if it takes part in all, "
            f"participations=1, rounds={rounds} if in one"
        )
    return 1


def _relation(neighbours: object) -> Neighbours:
    return "replace" if rules.choice("neighbours", neighbours, NEIGHBOURS) == "replace" else "add-or-remove"


def _distance(claim: Claim) -> float:
    """Return how far a neighbour moves the sum of a round, in clip norms."""
    return 2.0 if claim.neighbours == "replace" else 1.0


def _checked_delta(claim: Claim, delta: float) -> float:
    """Return δ, which may be 0 where the claim has a pure ε."""
    if type(delta) in (float, int) and delta == 0.0 and _pure_epsilon(claim) < math.inf:
        return 0.0
    return float(rules.DELTA.number("delta", delta))


def _checked_rates(rates: ArrayLike) -> Array:
    alpha = checked_reals("false_positive_rate:", rates)
    wrong = alpha[~((alpha >= 0.0) & (alpha <= 1.0))]
    if wrong.size:
        raise ValueError(f"false_positive_rate: must lie between 0 and 1, not {wrong.flat[0]:g}")
    return alpha


def _plain(count: int) -> str:
    return "1e9" if count == rules.ROUNDS.high else str(count)


def _number_of(rounds: int | None) -> str:
    return "1 round" if rounds == 1 else f"{rounds} rounds"


def _epochs(claim: Claim) -> str:
    assert claim.epochs is not None
    assert claim.rounds is not None
    number = "1 epoch" if claim.epochs == 1 else f"{claim.epochs} epochs"
    return f"{number} of {claim.rounds // claim.epochs} shuffled batches"


# Events of dp-accounting, which takes seconds to import: functions that need it import it.


def _leaves(event: Any, count: int = 1) -> Iterator[tuple[int, Any]]:
    """Yield the events that are composed, each with how often; Gaussian noise on one sample is one event."""
    import dp_accounting

    match type(event).__name__:
        case "NoOpDpEvent":
            pass
        case "SelfComposedDpEvent":
            yield from _leaves(event.event, count * event.count)
        case "ComposedDpEvent":
            for part in event.events:
                yield from _leaves(part, count)
        case "SingleEpochTreeAggregationDpEvent":
            # A record that takes part once is in one node of each level of one tree.
            steps = event.step_counts if isinstance(event.step_counts, list | tuple) else [event.step_counts]
            levels = max(int(step).bit_length() for step in steps)
            yield count, dp_accounting.GaussianDpEvent(event.noise_multiplier / math.sqrt(levels))
        case "PoissonSampledDpEvent" | "SampledWithoutReplacementDpEvent":
            gaussian_only = all(type(leaf) is dp_accounting.GaussianDpEvent for _, leaf in _leaves(event.event))
            noise = _joint_noise(event.event) if gaussian_only else None
            yield count, event if noise is None else _with(event, {"event": dp_accounting.GaussianDpEvent(noise)})
        case _:
            yield count, event


def _mechanisms(event: Any) -> Iterator[tuple[int, Any]]:
    """Yield the events that are composed, and those of which the best is selected."""
    for count, leaf in _leaves(event):
        if type(leaf).__name__ == "RepeatAndSelectDpEvent":
            yield from ((count * inner, part) for inner, part in _mechanisms(leaf.event))
        else:
            yield count, leaf


def _hashable(event: Any) -> Any:
    """Return the event with tuples in place of lists."""
    from dp_accounting import DpEvent

    changes: dict[str, Any] = {}
    for name in _fields(event):
        value = getattr(event, name)
        if isinstance(value, list):
            changes[name] = tuple(value)
        elif isinstance(value, DpEvent):
            changes[name] = _hashable(value)
    return _with(event, changes)


def _fields(event: Any) -> list[str]:
    """Return the names of an event's fields, by the protocol of the library attrs."""
    return [field.name for field in type(event).__attrs_attrs__]


def _with(event: Any, changes: Mapping[str, Any]) -> Any:
    """Return an event with other values of some fields."""
    return type(event)(**{name: changes.get(name, getattr(event, name)) for name in _fields(event)})


def _noise_of(leaf: Any) -> float | None:
    """Return the noise multiplier of a Gaussian event, sampled or not."""
    if type(leaf).__name__ in ("PoissonSampledDpEvent", "SampledWithoutReplacementDpEvent"):
        leaf = leaf.event
    return float(leaf.noise_multiplier) if type(leaf).__name__ == "GaussianDpEvent" else None


def _rate_of(leaf: Any) -> float:
    """Return the share of records that a Gaussian event's rounds draw."""
    match type(leaf).__name__:
        case "PoissonSampledDpEvent":
            return float(leaf.sampling_probability)
        case "SampledWithoutReplacementDpEvent":
            return float(min(1.0, leaf.sample_size / leaf.source_dataset_size))
    return 1.0


def _joint_noise(event: Any, claim: Claim | None = None) -> float | None:
    """Return the noise of all Gaussian events together, as if in every sample; None with any other event.

    It is per clip norm, or per distance of a claim's neighbours.
    """
    precision = 0.0
    for count, leaf in _leaves(event):
        noise = _noise_of(leaf)
        if not noise:
            return None
        distance = 1.0 if claim is None else _distance(claim)
        if claim is not None and type(leaf).__name__ == "SampledWithoutReplacementDpEvent" and _rate_of(leaf) < 1.0:
            # Where the number of records in a batch is fixed, another one takes the place.
            distance = 2.0
        precision += count * (distance / noise) ** 2
    return 1.0 / math.sqrt(precision) if precision else None


def _library_relation(claim: Claim) -> Any:
    import dp_accounting

    relation = dp_accounting.NeighboringRelation
    return relation.REPLACE_ONE if claim.neighbours == "replace" else relation.ADD_OR_REMOVE_ONE


# The accountings.


def _known_noise(claim: Claim) -> float | None:
    """Return noise per distance of neighbours, as if in all rounds that the claim leaves open; None if not Gaussian."""
    if claim.statement is not None:
        return None
    if claim.event is not None:
        return _joint_noise(claim.event, claim)
    taken = claim.rounds if claim.participations is None else claim.participations
    taken = taken if claim.epochs is None else claim.epochs
    assert taken is not None
    assert claim.noise_multiplier is not None
    return claim.noise_multiplier / (_distance(claim) * math.sqrt(taken)) if taken else math.inf


def _exact_noise(claim: Claim) -> float | None:
    """Return the noise multiplier of the one Gaussian mechanism that the claim is, or None."""
    return _known_noise(claim) if claim.attacker == "known rounds" else None


def _dominating_noise(claim: Claim) -> float | None:
    """Return the noise multiplier of the one Gaussian mechanism that the claim is, or that is its upper bound."""
    return _known_noise(claim) if claim.epochs is not None else _exact_noise(claim)


@lru_cache(maxsize=256)
def _bound(claim: Claim, delta: float) -> tuple[float, str]:
    """Return the upper bound of ε, and its basis."""
    if claim.statement is not None:
        epsilon, least = claim.statement
        return (epsilon, "stated") if delta >= least else (math.inf, f"nothing is stated below δ = {least:g}")
    noise = _dominating_noise(claim)
    if noise is not None:
        if math.isinf(noise):
            return 0.0, "the record takes part in no round"
        taken = f"{_number_of(claim.participations)} known to the attacker"
        if claim.epochs is not None:
            taken = f"as if the attacker knew the record's batch in each of {_epochs(claim)}"
        return float(
            gaussian_mechanism.epsilon(delta, noise)
        ), f"exact Gaussian mechanism (Balle and Wang 2018), {taken}"
    rounds = claim.rounds
    assert rounds is not None
    where = f"{_number_of(rounds)} of " + (
        f"Poisson sampling at {claim.rate:.4g}" if claim.event is None else "several mechanisms"
    )
    pure = _pure_epsilon(claim)
    if delta == 0.0:
        return pure, "pure ε of the mechanism"
    single = _one_round(claim)
    if single is not None:
        return _in_one_round(single, delta), f"exact ε of one round that is sampled at {single.rate:.4g}"
    bounds = [(pure, "pure ε of the mechanism")]
    bounds += [(_in_all_rounds(claim, delta), f"exact Gaussian mechanism, as if in all of {_number_of(rounds)}")]
    if _directions(claim):
        bounds += [
            (_by_loss_distribution(claim, delta), f"privacy loss distributions of {where}"),
            (_by_known_rounds(claim, delta), f"rounds that the attacker knows, their number binomial, of {where}"),
        ]
    else:
        bounds += [
            (_by_library_losses(claim, delta), f"privacy loss distributions (dp-accounting) of {where}"),
            (_by_divergences(claim, delta), f"Rényi divergences (dp-accounting) of {where}"),
        ]
    best = min(bounds, key=lambda bound: bound[0])
    return best if best[0] < math.inf else (math.inf, "no accounting gives a finite ε")


def _pure_epsilon(claim: Claim) -> float:
    """Return the sum of the pure ε of all events, which holds at every δ; infinite if one has none."""
    if claim.event is None:
        return math.inf
    sides = 2.0 if claim.neighbours == "replace" else 1.0
    return math.fsum(count * _pure_loss(leaf, sides) for count, leaf in _leaves(claim.event))


def _pure_loss(leaf: Any, sides: float) -> float:
    """Return the largest loss of a round; a replacement is a removal and an addition, but for randomised response."""
    match type(leaf).__name__:
        case "PoissonSampledDpEvent":
            whole = _pure_loss(leaf.event, 1.0)
            return sides * math.log1p(leaf.sampling_probability * math.expm1(whole)) if whole < 700.0 else math.inf
        case "LaplaceDpEvent" if leaf.noise_multiplier > 0.0:
            return sides / float(leaf.noise_multiplier)
        case "DiscreteLaplaceDpEvent":
            return sides * float(leaf.noise_parameter * leaf.sensitivity)
        case "RandomizedResponseDpEvent" if leaf.noise_parameter > 0.0 and sides == 2.0:
            return math.log1p((1.0 - leaf.noise_parameter) * leaf.num_buckets / leaf.noise_parameter)
        case "RepeatAndSelectDpEvent":
            # Where the order of every Rényi divergence goes to infinity; a Poisson number has none.
            return (2.0 + float(leaf.shape)) * math.fsum(
                count * _pure_loss(part, sides) for count, part in _leaves(leaf.event)
            )
    return math.inf


def _one_round(claim: Claim) -> Rounds | None:
    """Return the one sampled round that the claim is, if it has a closed form; else None."""
    if claim.rounds != 1 or claim.epochs is not None or not (directions := _directions(claim)):
        return None
    (only,) = directions[0]
    return None if only.pair == "replace" else only


def _in_one_round(only: Rounds, delta: float) -> float:
    if delta >= only.rate:
        return 0.0
    whole = float(gaussian_mechanism.epsilon(delta / only.rate, only.noise))
    # Beyond, the sampled ε is the whole one, less log(1/q), to the last digit.
    return math.log1p(only.rate * math.expm1(whole)) if whole < _LARGEST_LOSS else whole + math.log(only.rate)


def _is_supported(claim: Claim) -> bool:
    """Tell whether an accountant of dp-accounting takes the claim's event."""
    from dp_accounting.pld import PLDAccountant

    if _directions(claim):
        return True
    renyi, event = _renyi_accountant(claim)
    losses = PLDAccountant(_library_relation(claim))
    return bool(losses.supports(claim.event) or renyi.supports(event))


def _directions(claim: Claim, *, are_lower: bool = False, most: int | None = None) -> list[tuple[Rounds, ...]]:
    """Return the rounds of each dominating pair, one of which has the larger ε; none unless all noise is Gaussian.

    Where more than ``most`` of them differ, by default ``_MOST_MECHANISMS``, they are rounds that leak more, or less if
    ``are_lower``.
    """
    if claim.rate is not None:
        assert claim.noise_multiplier is not None
        assert claim.rounds is not None
        leaves = [("PoissonSampledDpEvent", claim.noise_multiplier, claim.rate, claim.rounds)]
    else:
        leaves = []
        for count, leaf in _leaves(claim.event):
            noise, rate = _noise_of(leaf), _rate_of(leaf)
            if noise is None or not 0.0 < rate <= 1.0:
                return []
            leaves.append((type(leaf).__name__, noise, rate, count))
    most = _MOST_MECHANISMS if most is None else most
    if len(leaves) > most:
        leaves = _fewer(leaves, most, are_lower)
    if claim.neighbours == "replace":
        return [tuple(_replacement(*leaf) for leaf in leaves)]
    return [tuple(_removal("remove", *leaf) for leaf in leaves), tuple(_removal("add", *leaf) for leaf in leaves)]


def _fewer(leaves: list[_SampledNoise], most: int, are_lower: bool) -> list[_SampledNoise]:
    """Round noises down and rates up to common ones, or the other way, until few enough differ."""
    # All rounds without sampling are one mechanism.
    precision = math.fsum(count / noise**2 for _, noise, rate, count in leaves if rate == 1.0)
    unsampled = [("GaussianDpEvent", 1.0 / math.sqrt(precision), 1.0, 1)] if precision else []
    step = 1e-4
    while True:
        down, up = (math.ceil, math.floor) if are_lower else (math.floor, math.ceil)
        counts: Counter[tuple[str, float, float]] = Counter()
        for kind, noise, rate, count in leaves:
            if rate < 1.0:
                common = math.exp(step * down(math.log(noise) / step)), math.exp(step * up(math.log(rate) / step))
                counts[kind, *common] += count
        if len(counts) < most:
            return unsampled + [(*each, count) for each, count in counts.items()]
        step *= 1.5


def _replacement(kind: str, noise: float, rate: float, count: int) -> Rounds:
    """Return the rounds in which a record is replaced."""
    if rate == 1.0:
        return Rounds("remove", 0.5 * noise / math.sqrt(count), 1.0, 1)
    return (
        Rounds("replace", noise, rate, count)
        if kind == "PoissonSampledDpEvent"
        else Rounds("mirrored", 0.5 * noise, rate, count)
    )


def _removal(pair: Pair, kind: str, noise: float, rate: float, count: int) -> Rounds:
    """Return the rounds in which a record is removed or added."""
    if rate == 1.0:
        return Rounds(pair, noise / math.sqrt(count), 1.0, 1)
    # Where the number of records in a batch is fixed, another one takes the place.
    distance = 2.0 if kind == "SampledWithoutReplacementDpEvent" else 1.0
    return Rounds(pair, noise / distance, rate, count)


@lru_cache(maxsize=4)
def _distribution(rounds: tuple[Rounds, ...], decade: int) -> LossDistribution | None:
    """Return what serves a decade of δ, or None where the losses are too large."""
    try:
        return LossDistribution(rounds, 10.0 ** -(decade + 1.001), 10.0**-decade)
    except OverflowError:
        return None


def _at_decade(claim: Claim, decade: int, delta: float) -> float:
    largest = 0.0
    for rounds in _directions(claim):
        distribution = _distribution(rounds, decade)
        epsilon = math.inf if distribution is None else distribution.epsilon(delta)
        # Where the losses are too many or too alike for a grid, the largest sum of them is small.
        largest = max(largest, min(epsilon, math.fsum(each.largest_sum for each in rounds)))
    return largest


def _is_at_least(claim: Claim, decade: int, epsilon: float, delta: float) -> bool:
    """Tell whether ε is at least the one at a δ; this takes an evaluation where that takes a search."""
    served = [_distribution(rounds, decade) for rounds in _directions(claim)]
    return all(each is not None and each.log_delta(epsilon) <= math.log(delta) for each in served)


@lru_cache(maxsize=256)
def _attained_epsilon(claim: Claim, delta: float) -> float:
    """Return what the worst pair reaches that is composed with itself."""
    if _exact_noise(claim) is not None:
        return _bound(claim, delta)[0]
    if claim.statement is not None:
        return 0.0
    if claim.epochs is not None:
        assert claim.noise_multiplier is not None
        assert claim.rounds is not None
        attained = shuffled_batches.attained_epsilon(
            claim.noise_multiplier, claim.rounds // claim.epochs, claim.epochs, claim.neighbours == "replace", delta
        )
        return min(attained, _bound(claim, delta)[0])
    if _one_round(claim) is not None:
        return _bound(claim, delta)[0]
    decade, largest = min(_LAST_DECADE, max(0, math.floor(-math.log10(delta)))), 0.0
    for rounds in _directions(claim, are_lower=True):
        sides: tuple[Pair, ...] = ("remove", "add")
        mirrored = any(each.pair == "mirrored" for each in rounds)
        for side in sides if mirrored else sides[:1]:
            pairs = tuple(replace(each, pair=side) if each.pair == "mirrored" else each for each in rounds)
            distribution = _distribution(pairs, decade)
            if distribution is not None:
                epsilon = distribution.epsilon(delta)
                largest = max(largest, epsilon if distribution.is_close(epsilon) else 0.0)
    return max(0.0, min(largest / 1.01, largest - 1e-3))


def _by_loss_distribution(claim: Claim, delta: float) -> float:
    """Return ε, which may not fall where δ does, though each decade of δ has a grid of its own."""
    # The smallest decade is that of the least δ.
    decade = min(_LAST_DECADE, max(0, math.floor(-math.log10(delta))))
    epsilon = _at_decade(claim, decade, delta)
    if decade < _LAST_DECADE:
        end = 10.0 ** -(decade + 1)
        # An ε that holds at a smaller δ holds here, too.
        if epsilon < math.inf and _is_at_least(claim, decade, (epsilon + 1e-3) / 0.998, end):
            epsilon = min(epsilon, _at_decade(claim, decade + 1, end))
    return epsilon


@lru_cache(maxsize=4)
def _library_losses(claim: Claim) -> Any:
    """Return dp-accounting's accountant of privacy loss distributions with the event, or None where it fails."""
    from dp_accounting.pld import PLDAccountant

    interval = _discretisation_interval(claim)
    return None if interval is None else _compose(PLDAccountant(_library_relation(claim), interval), claim.event)


@contextmanager
def silence_orders() -> Iterator[None]:
    """Silence this thread's warnings about orders with a diverging series; without these, ε is still an upper bound.

    dp-accounting warns through ``absl``, which would also give a root logger without handlers one of its own.
    """
    thread, logger, handler = get_ident(), logging.getLogger("absl"), logging.NullHandler()

    def is_passed(record: logging.LogRecord) -> bool:
        return record.levelno > logging.WARNING or get_ident() != thread

    logger.addFilter(is_passed)
    logging.root.addHandler(handler)
    try:
        yield
    finally:
        logging.root.removeHandler(handler)
        logger.removeFilter(is_passed)


def _compose(accountant: Any, event: Any) -> Any:
    """Return the accountant with the event, or None where it fails."""
    try:
        with np.errstate(all="ignore"), silence_orders():
            return accountant.compose(event) if accountant.supports(event) else None
    except (ArithmeticError, ValueError, NotImplementedError):
        return None


def _discretisation_interval(claim: Claim) -> float | None:
    """Return the PLD's discretisation interval, or None if ε is too large for it."""
    finest, largest, variance, mean = _INTERVAL, 0.0, 0.0, 0.0
    for count, leaf in _leaves(claim.event):
        noise = _noise_of(leaf)
        if noise is None:
            # 3 of what is unknown, for the library's interval.
            loss = _pure_loss(leaf, 1.0)
            loss = loss if loss < math.inf else 3.0
            largest, variance = max(largest, loss), variance + count * loss**2
            continue
        # A replacement's loss in a sampled round is that of a removal and of an addition.
        q, sigma, sides = getattr(leaf, "sampling_probability", 1.0), noise, _distance(claim)
        if q == 1.0:
            # The library composes these rounds in one.
            sigma, sides, count = noise / (sides * math.sqrt(count)), 1.0, 1
        loss = float(gaussian_mechanism.epsilon(1e-12, sigma))
        largest = max(largest, sides * (math.log1p(q * math.expm1(loss)) if loss < _LARGEST_LOSS else loss))
        spread = math.sqrt(q) * (1.0 / sigma + 0.5 / sigma**2)
        spread = sides * min(spread, q * math.sqrt(math.expm1(min(_LARGEST_LOSS, sigma**-2))))
        finest = min(finest, 0.25 * spread)
        variance += count * spread**2
        # A Kullback–Leibler divergence of a mixture is at least the part's, less the entropy of the coin.
        mean += count * (0.5 * q / sigma**2 - float(special.entr(q) + special.entr(1.0 - q)))
    if mean > 2.0 * _LARGEST_LOSS:
        return None
    return max(finest, largest / 3e4, 18.0 * math.sqrt(variance) / _MOST_LOSSES)


def _by_library_losses(claim: Claim, delta: float) -> float:
    assert claim.rounds is not None
    lost = _LOST * claim.rounds
    # With less left of δ, other bounds are lower.
    if delta < 2.0 * lost or sum(1 for _ in _leaves(claim.event)) > _MOST_MECHANISMS:
        return math.inf
    accountant = _library_losses(claim)
    if accountant is None:
        return math.inf
    try:
        with np.errstate(all="ignore"):
            epsilon = float(accountant.get_epsilon(delta - lost))
    except (ArithmeticError, ValueError):
        return math.inf
    return epsilon if epsilon <= _LARGEST_LOSS else math.inf


@lru_cache(maxsize=16)
def _divergences(claim: Claim) -> tuple[Array, Array] | None:
    """Return orders and upper bounds of Rényi divergences, or None where dp-accounting has none."""
    assert claim.rounds is not None
    accountant = _compose(*_renyi_accountant(claim))
    if accountant is None:
        return None
    absolute, relative = _RENYI_ERROR
    # Private selection counts the divergences of one training up to 2 + η times, and those of a Poisson number twice.
    shapes = [leaf.shape for _, leaf in _leaves(claim.event) if type(leaf).__name__ == "RepeatAndSelectDpEvent"]
    times = 2.0 + max((shape for shape in shapes if shape < math.inf), default=0.0)
    rounding = times * absolute * claim.rounds / (accountant.orders - 1.0)
    divergences = np.nan_to_num(accountant.rdp, nan=math.inf, posinf=math.inf)
    return accountant.orders, np.maximum(0.0, divergences) * (1.0 + relative) + rounding


def _renyi_accountant(claim: Claim) -> tuple[Any, Any]:
    """Return a Rényi accountant, and the event that it is to compose."""
    from dp_accounting import UnsupportedDpEvent
    from dp_accounting.rdp import RdpAccountant

    event = claim.event
    if claim.neighbours == "replace":
        # This accountant takes a replacement to move a Gaussian's sum by one clip norm.
        event = _at_half_noise(event) or UnsupportedDpEvent()
    orders = np.union1d(1.0 + _LOW_ORDERS, RdpAccountant().orders)
    return RdpAccountant(orders, _library_relation(claim)), event


def _at_half_noise(event: Any) -> Any:
    """Return an event of Gaussian noise with half of it; None for any other."""
    from dp_accounting import ComposedDpEvent, GaussianDpEvent, SampledWithoutReplacementDpEvent, SelfComposedDpEvent
    from dp_accounting.dp_event import RepeatAndSelectDpEvent

    halved = []
    for count, leaf in _leaves(event):
        match leaf:
            case GaussianDpEvent():
                half = GaussianDpEvent(leaf.noise_multiplier / 2.0)
            case SampledWithoutReplacementDpEvent(event=GaussianDpEvent()):
                noise = GaussianDpEvent(leaf.event.noise_multiplier / 2.0)
                half = SampledWithoutReplacementDpEvent(leaf.source_dataset_size, leaf.sample_size, noise)
            case RepeatAndSelectDpEvent() if (inner := _at_half_noise(leaf.event)) is not None:
                half = _with(leaf, {"event": inner})
            case _:
                return None
        halved.append(SelfComposedDpEvent(half, count))
    return ComposedDpEvent(halved)


def _by_divergences(claim: Claim, delta: float) -> float:
    from dp_accounting.rdp import compute_epsilon

    orders_and_divergences = _divergences(claim)
    return math.inf if orders_and_divergences is None else float(compute_epsilon(*orders_and_divergences, delta)[0])


def _in_all_rounds(claim: Claim, delta: float) -> float:
    noise = _known_noise(claim)
    return math.inf if noise is None else float(gaussian_mechanism.epsilon(delta, noise))


def _by_known_rounds(claim: Claim, delta: float) -> float:
    """Return ε for an attacker who knows the rounds, whose number is binomial.

    Hockey-stick divergences are jointly convex, so that δ(ε) is at most its mean over the rounds that are drawn.
    """
    noise = _known_noise(claim)
    # Below 1e-290, products of probabilities would be subnormal.
    if noise is None or claim.rate is None or delta < 1e-290:
        return math.inf
    assert claim.rounds is not None
    mean, variance = claim.rounds * claim.rate, claim.rounds * claim.rate * (1.0 - claim.rate)
    # By Bernstein's inequality a binomial number is further from its mean than this with probability e^−700.
    width = 467.0 + math.sqrt(1400.0 * variance)
    span = np.linspace(max(1.0, mean - width), min(claim.rounds, mean + width), 1025)
    numbers = np.unique(np.append(np.ceil(span), claim.rounds))
    more = special.bdtrc(np.append(0.0, numbers[:-1]), claim.rounds, claim.rate)
    # The tail's last bits, and those of the root, are given away.
    more = np.maximum(more * (1.0 + 1e-6), 1e-300)
    sigmas = noise * np.sqrt(claim.rounds / numbers)

    def excess(epsilon: float) -> float:
        # A sum by parts: P(N > n) times what one block of numbers has more of δ than the one before.
        steps = np.diff(gaussian_mechanism.delta(epsilon, sigmas), prepend=0.0)
        return math.log(max(float((more * np.maximum(steps, 0.0)).sum()), 1e-300) / delta)

    every = _in_all_rounds(claim, delta)
    if excess(0.0) <= 0.0:
        return 0.0
    if excess(every) >= 0.0:
        return every
    epsilon = optimize.brentq(excess, 0.0, every, xtol=1e-12 * max(1.0, every))
    return float(min(every, epsilon * (1.0 + 1e-8) + 1e-10))


@lru_cache(maxsize=16)
def _pairs(claim: Claim) -> tuple[Array, Array]:
    """Return pairs of ε and δ that hold, from which a trade-off function is made."""
    if claim.statement is not None:
        epsilon, delta = claim.statement
        return np.array([epsilon]), np.array([delta])
    if not _directions(claim):
        deltas = 10.0 ** -np.geomspace(0.1, 300.0, 40)
        epsilons = np.array([_bound(claim, float(delta))[0] for delta in deltas])
    else:
        pairs: list[tuple[float, float]] = []
        directions = _directions(claim, most=_MOST_IN_CURVE)
        for decade in _DECADES:
            served = [_distribution(rounds, decade) for rounds in directions]
            distributions = [each for each in served if each is not None]
            if len(distributions) < len(directions):
                continue
            top = max(each.epsilon(10.0 ** -(decade + 1)) for each in distributions)
            if top < math.inf:
                low = max(each.low for each in distributions)
                grid = np.linspace(low, max(low, top), 64)
                logs = [max(each.log_delta(epsilon) for each in distributions) for epsilon in grid]
                pairs += zip(grid, np.exp(np.minimum(logs, 0.0)), strict=True)
        # Noise that is too low for a distribution is served by bounds without one.
        tails = [10.0**-decade for decade in _DECADES[1:]]
        pairs += [(min(_in_all_rounds(claim, delta), _by_known_rounds(claim, delta)), delta) for delta in tails]
        epsilons, deltas = np.array(pairs).T
    there = np.isfinite(epsilons)
    return epsilons[there], deltas[there]
