"""The accountings that a printed "analytical ε" could have meant.

The exact Gaussian mechanism is our own kernel; Rényi (RDP) and privacy loss distribution (PLD) accounting are
dp-accounting's. Without sampling, T rounds of noise multiplier σ are one round of σ/√T, under RDP, PLD and exactly.
"""

from functools import cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import special

from canaryproof.kernels import gaussian_mechanism
from canaryproof.verify.audit.accounting.accountant import silence_orders
from canaryproof.verify.papers.accounting import sampled_gaussian

Conversion = Literal["improved", "classical"]


def _dense(orders: NDArray[np.float64]) -> tuple[float, ...]:
    # dp-accounting's list starts at 1.1 in steps of 0.1, too coarse where the noise is low and the best order near 1.
    return tuple(np.union1d(1.0 + np.geomspace(0.01, 1.0, 200), orders))


def gaussian(noise_multiplier: float, delta: float, participations: int = 1) -> float:
    """ε of the Gaussian mechanism, exactly (Balle and Wang 2018).

    The rounds in which a record takes part are known to the adversary.
    """
    return float(gaussian_mechanism.epsilon(delta, noise_multiplier / participations**0.5))


def loss_tail(noise_multiplier: float, delta: float, participations: int = 1) -> float:
    """ε that the Gaussian mechanism's privacy loss exceeds with probability δ: an upper bound of the exact ε.

    Equal to 1/(2σ²) + z/σ with z the upper δ quantile of the standard normal. It drops the second term of the exact
    δ(ε), and is what the σ printed by Andrew et al. for ε = 300, 100 and 30 were calibrated with.
    """
    sigma = noise_multiplier / participations**0.5
    return float(0.5 / sigma**2 - special.ndtri(delta) / sigma)


def _event(noise_multiplier: float, sampling: float) -> Any:
    """One round, as dp-accounting describes it."""
    # dp-accounting takes a second to import, and only a ledger's run needs it.
    import dp_accounting

    event = dp_accounting.GaussianDpEvent(noise_multiplier)
    return dp_accounting.PoissonSampledDpEvent(sampling, event) if sampling < 1.0 else event


@cache
def _divergences(
    noise_multiplier: float, rounds: int, sampling: float, dense: bool
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Orders and Rényi divergences, which serve every δ."""
    from dp_accounting import rdp as accounting

    accountant = accounting.RdpAccountant()
    if dense:
        accountant = accounting.RdpAccountant(_dense(accountant.orders))
    with silence_orders():
        accountant.compose(_event(noise_multiplier, sampling), rounds)
    return accountant.orders, accountant.rdp


def rdp(
    noise_multiplier: float,
    delta: float,
    rounds: int = 1,
    sampling: float = 1.0,
    conversion: Conversion = "improved",
    orders: Literal["library", "dense"] = "library",
) -> float:
    """ε by Rényi accounting, under Poisson sampling where the rate is below 1.

    The conversion ``classical`` is Mironov's Proposition 3, ``improved`` Proposition 12 of Canonne, Kamath and Steinke
    (2020). The orders are dp-accounting's own, or also 200 between 1 and 2.
    """
    found_orders, divergences = _divergences(noise_multiplier, rounds, sampling, orders == "dense")
    return _converted(found_orders, divergences, delta, conversion)


@cache
def without_replacement(
    noise_multiplier: float,
    delta: float,
    rounds: int,
    cohort: int,
    population: int,
    conversion: Conversion = "improved",
) -> float:
    """ε by Rényi accounting where each round draws a cohort of fixed size, and neighbours differ by a replacement."""
    import dp_accounting
    from dp_accounting import rdp as accounting

    accountant = accounting.RdpAccountant(neighboring_relation=dp_accounting.NeighboringRelation.REPLACE_ONE)
    event = dp_accounting.GaussianDpEvent(noise_multiplier)
    with silence_orders():
        accountant.compose(dp_accounting.SampledWithoutReplacementDpEvent(population, cohort, event), rounds)
    return _converted(accountant.orders, accountant.rdp, delta, conversion)


def _converted(
    orders: NDArray[np.float64], divergences: NDArray[np.float64], delta: float, conversion: Conversion
) -> float:
    from dp_accounting import rdp as accounting

    if conversion == "improved":
        return float(accounting.compute_epsilon(orders, divergences, delta)[0])
    return float(np.min(divergences - np.log(delta) / (orders - 1.0)))


@cache
def _pld_accountant(noise_multiplier: float, rounds: int, sampling: float) -> Any:
    from dp_accounting import pld as accounting

    # A grid of about 3e4 losses a round, however large they are; the library's own 1e-4 where it suffices.
    scale = noise_multiplier / (rounds**0.5 if sampling == 1.0 else 1.0)
    largest = float(gaussian_mechanism.epsilon(1e-12, scale))
    accountant = accounting.PLDAccountant(value_discretization_interval=max(1e-4, largest / 3e4))
    if sampling == 1.0:
        accountant.compose(_event(scale, sampling))
    else:
        accountant.compose(_event(noise_multiplier, sampling), rounds)
    return accountant


def pld(noise_multiplier: float, delta: float, rounds: int = 1, sampling: float = 1.0) -> float:
    """ε by privacy loss distributions, an upper bound within the interval of discretisation."""
    return float(_pld_accountant(noise_multiplier, rounds, sampling).get_epsilon(delta))


def sampled_readings(noise_multiplier: float, delta: float, rounds: int, sampling: float) -> dict[str, float]:
    """Rényi accountings under Poisson sampling that a printed ε could have meant, by name."""
    arguments = noise_multiplier, delta, rounds, sampling
    return {
        "RDP improved, Poisson sampling": rdp(*arguments),
        "RDP classical, Poisson sampling": rdp(*arguments, conversion="classical"),
        "RDP improved, signed series, Poisson sampling": sampled_gaussian.rdp(*arguments),
    }


def readings(
    noise_multiplier: float, delta: float, *, rounds: int = 1, sampling: float = 1.0, participations: int = 1
) -> dict[str, float]:
    """Every accounting of a training run that a printed ε could have meant, by name.

    The first is the exact Gaussian mechanism for the rounds in which one record takes part.
    """
    counts = {participations: f"{participations} of {rounds} rounds", rounds: "every round", 1: "one round"}
    epsilons = {}
    for count in sorted(counts, key=lambda count: (count != participations, count)):
        where = counts[count]
        epsilons[f"exact Gaussian, {where}"] = gaussian(noise_multiplier, delta, count)
        epsilons[f"exact Gaussian, {where}, replacing a record"] = gaussian(0.5 * noise_multiplier, delta, count)
        epsilons[f"tail of the privacy loss, {where}"] = loss_tail(noise_multiplier, delta, count)
        choices: tuple[tuple[str, Literal["library", "dense"]], ...] = (("", "library"), (", dense orders", "dense"))
        for suffix, orders in choices:
            epsilons[f"RDP improved, {where}{suffix}"] = rdp(noise_multiplier, delta, count, orders=orders)
            epsilons[f"RDP classical, {where}{suffix}"] = rdp(
                noise_multiplier, delta, count, conversion="classical", orders=orders
            )
    if sampling < 1.0:
        epsilons |= sampled_readings(noise_multiplier, delta, rounds, sampling)
        epsilons["PLD, Poisson sampling"] = pld(noise_multiplier, delta, rounds, sampling)
    return epsilons
