"""Claims of the final version outside its experiments: introduction, Equation (1), footnote 6, conclusion."""

import math
from collections.abc import Mapping
from datetime import date
from typing import Any

from flint import arb

from canaryproof.kernels.certified import binomial, gaussian_mechanism, null_cosine
from canaryproof.verify.claims.final_printed import (
    CANARIES,
    EMNIST_USERS,
    PARAMETERS,
    STACKOVERFLOW_CLIENTS,
    rounds_to,
)
from canaryproof.verify.claims.judging import claim, found, holds
from canaryproof.verify.oneshot.threshold_attack import threshold_epsilon
from canaryproof.verify.results import Context, Outcome, Verdict

DOCUMENT = "Andrew et al., arXiv 2302.03098, final version"
_THOUSANDS = (1000, 10_000)
# Pairs (δ, noise multiplier), from little privacy to much.
_MECHANISMS = ((1e-6, 0.2), (1e-6, 0.541), (1e-6, 4.22), (1e-5, 1.0), (1e-3, 10.0))
_USERS = {"StackOverflow": STACKOVERFLOW_CLIENTS, "EMNIST": EMNIST_USERS}
# "Orthogonal" is a cosine no larger; "with high probability" all but this.
_COSINE, _RARE = 0.01, 1e-6
# What "existence" of SHA-3 may count from, by NIST's public announcements.
_SHA_3 = {
    "submission of Keccak, October 2008": date(2008, 10, 31),
    "NIST's choice, October 2012": date(2012, 10, 2),
    "FIPS 202, August 2015": date(2015, 8, 5),
}
_WRITTEN = date(2023, 9, 28)  # the last access date in the references


def largest_bound(runs: int, confidence: float = 0.95) -> tuple[float, float]:
    """Enclose the largest ε that Equation (1) gives at δ = 0 with Clopper–Pearson limits, half of the runs a side."""
    limit = binomial.upper(0, runs // 2, confidence)
    return math.log1p(-limit.hi) - math.log(limit.hi), math.log1p(-limit.lo) - math.log(limit.lo)


def _judge_retrainings(_: Context) -> Outcome:
    reach = {runs: largest_bound(runs)[0] for runs in (100, *_THOUSANDS, 100_000)}
    low, high = (reach[runs] for runs in _THOUSANDS)
    # Retrainings by which the faultless attack certifies ε: (1 - limit)^(n/2) = 0.05.
    needed = {e: 2 * math.ceil(math.log(0.05) / math.log1p(-1.0 / (1.0 + math.exp(e)))) for e in (1, 3, 5, 7, 10)}
    listed = ", ".join(f"{models:,} for ε = {e}" for e, models in needed.items())
    finding = (
        f"read as what a 95% lower bound takes: at best, 1,000 to 10,000 models certify ε from {low:.2f} to "
        f"{high:.2f}; needed are {listed}"
    )
    typical = needed[5] <= _THOUSANDS[1] and needed[7] >= _THOUSANDS[0]
    return found(Verdict.QUALIFIED if typical else Verdict.REFUTED, finding, reach=reach, needed=needed)


def _judge_equation_1(_: Context) -> Outcome:
    rows: list[dict[str, Any]] = []
    for delta, sigma in _MECHANISMS:
        best = float(threshold_epsilon(delta, 1.0 / sigma, 1.0))
        exact = gaussian_mechanism.epsilon(delta, sigma)
        rows.append(
            {"delta": delta, "noise_multiplier": sigma, "epsilon": (exact.lo, exact.hi), "best threshold": best}
        )
    worst = max(abs(row["best threshold"] / row["epsilon"][0] - 1.0) for row in rows)
    finding = (
        f"for the Gaussian mechanism its largest value over all thresholds is the exact ε to {worst:.0e} in "
        f"{len(rows)} cases: no threshold exceeds it and one attains it"
    )
    return found(holds(worst < 1e-11), finding, rows=rows)


def _not_orthogonal(pairs: Mapping[str, int], parameters: Mapping[str, int]) -> dict[str, float]:
    """Bound the probability that any of so many pairs has a cosine that is not small, by model (union bound)."""
    return {name: 2 * pairs[name] * null_cosine.sf(_COSINE, dim).hi for name, dim in parameters.items()}


def judge_orthogonal(parameters: Mapping[str, int] = PARAMETERS) -> Outcome:
    """Judge that 1,000 random canaries are nearly orthogonal to one another at the models' dimensions."""
    pairs = CANARIES * (CANARIES - 1) // 2
    bounds = _not_orthogonal(dict.fromkeys(parameters, pairs), parameters)
    finding = (
        f"any of {pairs:,} pairs of 1,000 canaries has |cosine| > {_COSINE} with probability at most "
        f"{max(bounds.values()):.0e} (union bound, d = {min(parameters.values()):,})"
    )
    return found(holds(max(bounds.values()) < _RARE), finding, bounds=bounds)


def judge_orthogonal_to_clients(parameters: Mapping[str, int] = PARAMETERS) -> Outcome:
    """Judge that random canaries are nearly orthogonal to all clients' updates, one of each client."""
    bounds = _not_orthogonal({name: CANARIES * _USERS[name] for name in parameters}, parameters)
    listed = ", ".join(f"{bound:.0e} on {name}" for name, bound in bounds.items())
    finding = (
        f"only for updates that do not depend on the canaries, as all before their first round: any cosine with one "
        f"update of each client exceeds {_COSINE} with probability at most {listed} (union bound); later updates are "
        "computed at parameters that hold the canaries"
    )
    return found(Verdict.QUALIFIED if max(bounds.values()) < _RARE else Verdict.REFUTED, finding, bounds=bounds)


def judge_posterior(epsilon: int = 5, prior: str = "0.1", printed: str = "0.94") -> Outcome:
    """Judge the largest belief that an attacker may reach from a prior under ε-DP."""
    before = arb(prior)
    odds = arb(epsilon).exp() * before / (1 - before)
    after = odds / (1 + odds)
    low, high = float(after.lower()), float(after.upper())
    finding = f"e^{epsilon}·{prior}/(e^{epsilon}·{prior} + 1 − {prior}) lies in [{low:.6f}, {high:.6f}]"
    return found(holds(rounds_to(printed, low, high)), finding, posterior=(low, high), printed=printed)


def _judge_scale(_: Context) -> Outcome:
    reached = min(PARAMETERS.values()) >= 10**6 and 10**5 <= STACKOVERFLOW_CLIENTS < 10**6
    finding = "341k clients and 4.1M parameters on StackOverflow; EMNIST has 1.2M parameters but 3,383 clients"
    return found(holds(reached), finding, clients=STACKOVERFLOW_CLIENTS)


def _judge_sha_3(_: Context) -> Outcome:
    years = {name: (_WRITTEN - start).days / 365.2425 for name, start in _SHA_3.items()}
    reading = [name for name, value in years.items() if round(value) == 11]
    listed = ", ".join(f"{value:.1f} years since {name}" for name, value in years.items())
    verdict = Verdict.QUALIFIED if reading else Verdict.REFUTED
    return found(verdict, f"counted from {' or '.join(reading)}: {listed}", years=years)


CHECKS = (
    claim(
        "final.abstract.retrainings",
        f"{DOCUMENT}, abstract and Section 1",
        "existing estimates of ε need retraining typically on the order of thousands of times",
        _judge_retrainings,
    ),
    claim(
        "final.section2.equation1",
        f"{DOCUMENT}, Section 2, Equation (1)",
        "ε̂ = max{log((1 − δ − FPR)/FNR), log((1 − δ − FNR)/FPR)} turns error rates into ε",
        _judge_equation_1,
    ),
    claim(
        "final.section5.3.orthogonal",
        f"{DOCUMENT}, Sections 1, 4 and 5.3",
        "at the experiments' dimensions, 1.2M and 4.1M, random canaries are essentially mutually orthogonal",
        lambda _: judge_orthogonal(),
    ),
    claim(
        "final.section4.orthogonal",
        f"{DOCUMENT}, Section 4",
        "random canaries are nearly orthogonal to all true client updates where d is large beside the clients",
        lambda _: judge_orthogonal_to_clients(),
    ),
    claim(
        "final.section5.1.posterior",
        f"{DOCUMENT}, footnote 6",
        "at ε = 5 an attacker can go from a suspicion of 10% to a certainty of 94%",
        lambda _: judge_posterior(),
    ),
    claim(
        "final.section6.scale",
        f"{DOCUMENT}, Section 6",
        "the experiments speak of millions of parameters and hundreds of thousands of clients",
        _judge_scale,
    ),
    claim(
        "final.section6.sha3",
        f"{DOCUMENT}, Section 6",
        "SHA-3 has stood for 11 years",
        _judge_sha_3,
    ),
)
