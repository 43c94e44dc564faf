"""Suite ``accountants``: ε and noise multipliers of other people's accountants, against proven enclosures.

The Gaussian mechanism is known exactly, and so is its composition: T rounds of noise multiplier σ are one of σ/√T. With
Poisson sampling there is no enclosure here. Values are compared with two privacy loss distributions: one is rounded
down, and no true ε is below it; one is rounded up.

One method, or its questions of one kind at one δ::

    python -m other_tools.accountants TOOL METHOD [KIND DELTA] [quick|full]
"""

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, partial
from typing import Any

from canaryproof.kernels.certified import gaussian_mechanism
from canaryproof.verify.papers.check.results import Check, Context, Effort, Outcome, Subject, Verdict
from other_tools.process import LIMIT, EndedToolError, MissingToolError, ask, today

# Relative, below which an error is taken for rounding or the tolerance of a solver.
TOLERANCE = 1e-6
_SIGMAS = {Effort.QUICK: (0.3, 1.0, 10.0), Effort.FULL: (0.1, 0.3, 1.0, 3.0, 10.0, 100.0)}
_EPSILONS = {Effort.QUICK: (0.1, 1.0, 50.0), Effort.FULL: (0.01, 0.1, 1.0, 10.0, 50.0, 500.0)}
_DELTAS = {Effort.QUICK: (1e-5, 1e-12), Effort.FULL: (1e-5, 1e-9, 1e-12, 1e-15)}
# Rounds are a square, so that σ/√T is exact.
_STEPS, _COMPOSED = 100, (3.0, 10.0, 50.0)
# Noise multiplier, sampling rate and rounds.
_SAMPLED = ((1.0, 0.01, 1000), (0.7, 0.001, 10_000), (2.0, 0.1, 100), (0.5, 0.01, 100))
_SAMPLED_DELTAS = {Effort.QUICK: (1e-5,), Effort.FULL: (1e-5, 1e-9)}
_WORDS = {"epsilon": "ε of one round", "noise": "noise multiplier", "composed": "ε of 100 rounds", "sampled": "sampled"}


@dataclass(frozen=True)
class Accountant:
    """An accountant, and what its documentation says of its numbers."""

    tool: str
    name: str
    kinds: tuple[str, ...]  # what it answers
    called: str
    source: str
    # Whether it is documented as exact or as an upper bound; an estimate is measured only.
    safe: bool = True

    @property
    def id(self) -> str:
        """Id of its check."""
        words = "".join(letter if letter.isalnum() else " " for letter in f"{self.tool} {self.name}".lower()).split()
        return f"accountants.{'-'.join(words)}"


_ALL = ("epsilon", "noise", "composed", "sampled")
_NO_NOISE = ("epsilon", "composed", "sampled")
_ONE_ROUND = ("epsilon", "noise")
METHODS = (
    Accountant(
        "dp-accounting",
        "gaussian_mechanism",
        _ONE_ROUND,
        "“Functions for exact calibration and accounting for the Gaussian mechanism”",
        "dp_accounting/gaussian_mechanism.py",
    ),
    Accountant(
        "dp-accounting",
        "PLDAccountant",
        _NO_NOISE,
        "“Privacy accountant that uses Privacy Loss Distributions”",
        "dp_accounting/pld/pld_privacy_accountant.py",
    ),
    Accountant(
        "dp-accounting", "RdpAccountant", _NO_NOISE, "“Privacy accountant that uses Renyi differential privacy”",
        "dp_accounting/rdp/rdp_privacy_accountant.py",
    ),
    Accountant("opacus", "rdp", _ALL, "“Return privacy budget (epsilon) expended so far”", "opacus/accountants/rdp.py"),
    Accountant(
        "opacus", "prv", _ALL, "“return upper bound as we want guarantee, not just estimate”",
        "opacus/accountants/prv.py",
    ),
    Accountant(
        "opacus",
        "gdp",
        _ALL,
        "“GDP accounting is experimental and can underestimate privacy expenditure”",
        "opacus/accountants/gdp.py",
        safe=False,
    ),
    *(
        Accountant(
            "jax-privacy",
            name,
            _ALL,
            "“Compute DP epsilon”, “Computes the noise multiplier”, “tol: tolerance of the optimizer for the "
            "calibration” (0.01 by default)",
            "jax_privacy/accounting/analysis.py and calibrate.py",
        )
        for name in ("PLD", "RDP")
    ),
    Accountant(
        "diffprivlib", "GaussianAnalytic", ("noise",), "“The analytic Gaussian mechanism in differential privacy”",
        "diffprivlib/mechanisms/gaussian.py",
    ),
    Accountant(
        "opendp", "make_gaussian", ("epsilon", "noise", "composed"),
        "“casted from `ZeroConcentratedDivergence` to `SmoothedMaxDivergence`”", "opendp/combinators.py",
    ),
    Accountant(
        "autodp", "ExactGaussianMechanism", _ALL,
        "“The Gaussian mechanism to use in practice with tight direct computation of everything”",
        "autodp/mechanism_zoo.py; autodp/calibrator_zoo.py, ana_gaussian_calibrator",
    ),
    Accountant(
        "prv-accountant", "PRVAccountant", _NO_NOISE,
        "“Return lower bound …, estimate … and upper bound”, of which the upper one is taken",
        "prv_accountant/accountant.py, PRVAccountant.compute_epsilon",
    ),
    Accountant(
        "riskcal", "CTDAccountant", _ALL, "“Opacus-compatible Connect the Dots accountant”",
        "riskcal/accountants/ctd.py; riskcal/calibration/blackbox.py, find_noise_multiplier_for_epsilon_delta",
    ),
    Accountant(
        "canaryproof", "gaussian_mechanism", ("epsilon", "noise", "composed"), "within 64 ulps of the exact result",
        "kernels/gaussian_mechanism.py",
    ),
    *(
        Accountant("canaryproof", name, _NO_NOISE, called, "verify/papers/accounting/analytical.py")
        for name, called in (("rdp", "ε by Rényi accounting"), ("pld", "ε by privacy loss distributions"))
    ),
)  # fmt: skip


@dataclass(frozen=True)
class EnclosedAnswer:
    """A question, and the enclosure of its answer."""

    asked: Mapping[str, Any]
    low: float
    high: float
    proven: bool = True

    @property
    def label(self) -> str:
        """Name it."""
        asked = self.asked
        of = f"ε = {asked['epsilon']:g}" if "epsilon" in asked else f"σ = {asked['sigma']:g}"
        sampled = f", q = {asked['sampling']:g}" if asked.get("sampling", 1.0) < 1.0 else ""
        rounds = f", T = {asked['steps']:,}" if asked.get("steps", 1) > 1 else ""
        return f"{_WORDS[self.asked['of']]}, {of}{sampled}{rounds}, δ = {asked['delta']:g}"


@cache
def questions(level: Effort) -> tuple[EnclosedAnswer, ...]:
    """Return all questions with their enclosures."""
    result = []
    for delta in _DELTAS[level]:
        for sigma in _SIGMAS[level]:
            exact = gaussian_mechanism.epsilon(delta, sigma)
            asked = {"of": "epsilon", "kind": "epsilon", "sigma": sigma, "delta": delta, "steps": 1, "sampling": 1.0}
            result.append(EnclosedAnswer(asked, exact.lo, exact.hi))
        for epsilon in _EPSILONS[level]:
            exact = gaussian_mechanism.noise_multiplier(epsilon, delta)
            result.append(
                EnclosedAnswer({"of": "noise", "kind": "noise", "epsilon": epsilon, "delta": delta}, exact.lo, exact.hi)
            )
        for sigma in _COMPOSED:
            exact = gaussian_mechanism.epsilon(delta, Fraction(sigma) / math.isqrt(_STEPS))
            asked = {"of": "composed", "kind": "epsilon", "sigma": sigma, "delta": delta}
            result.append(EnclosedAnswer({**asked, "steps": _STEPS, "sampling": 1.0}, exact.lo, exact.hi))
    for delta in _SAMPLED_DELTAS[level]:
        for sigma, sampling, steps in _SAMPLED:
            asked = {"of": "sampled", "kind": "epsilon", "sigma": sigma, "delta": delta}
            ends = _distributions(sigma, sampling, steps, delta)
            result.append(EnclosedAnswer({**asked, "steps": steps, "sampling": sampling}, *ends, proven=False))
    return tuple(result)


def _distributions(sigma: float, sampling: float, steps: int, delta: float) -> tuple[float, float]:
    """Return ε by a privacy loss distribution rounded down and one rounded up."""
    # It takes a second to import, and only this suite's run needs it.
    from dp_accounting.pld import privacy_loss_distribution as distributions

    ends = []
    for pessimistic in (False, True):
        rounded = distributions.from_gaussian_mechanism(
            sigma,
            sampling_prob=sampling,
            value_discretization_interval=1e-4,
            pessimistic_estimate=pessimistic,
            use_connect_dots=pessimistic,
        )
        ends.append(float(rounded.self_compose(steps).get_epsilon_for_delta(delta)))
    return ends[0], ends[1]


def measure(method: Accountant, asked: Sequence[EnclosedAnswer]) -> tuple[str, list[dict[str, Any]]]:
    """Ask a method those of the questions that it answers; return the tool's version and a row for each."""
    chosen = [case for case in asked if case.asked["of"] in method.kinds]
    answer = ask("accountants", method.tool, method.name, [case.asked for case in chosen])
    return answer.version, [_row(case, *call) for case, call in zip(chosen, answer.calls, strict=True)]


def _row(case: EnclosedAnswer, value: float | None, raised: str, seconds: float) -> dict[str, Any]:
    error = None
    if value is not None and math.isfinite(value):
        # By how much it lies outside the enclosure.
        outside = min(0.0, value - case.low) + max(0.0, value - case.high)
        error = outside / case.high if case.high > 0.0 else outside
    return {
        "label": case.label,
        "of": case.asked["of"],
        "delta": case.asked["delta"],
        "enclosure": (case.low, case.high),
        "proven": case.proven,
        "value": value,
        "error": error,
        "raised": raised,
        "seconds": seconds,
    }


def _judge(context: Context, method: Accountant) -> Outcome:
    evidence: dict[str, Any] = {
        "tool": method.tool, "method": method.name, "called": method.called, "source": method.source,
        "safe": method.safe, "tolerance": TOLERANCE,
    }  # fmt: skip
    try:
        version, rows = measure(method, questions(context.level))
    except MissingToolError as reason:
        return Outcome(Verdict.NEEDS_DATA, str(reason), {**evidence, "missing": str(reason)})
    except EndedToolError as reason:
        return Outcome(Verdict.INCONCLUSIVE, str(reason), {**evidence, "missing": str(reason)})
    answered = [row for row in rows if row["error"] is not None]
    unsafe = [row for row in answered if row["error"] < -TOLERANCE]
    parts = [f"version {version}: below the truth in {len(unsafe)} of {len(answered)} answers"]
    if unsafe:
        worst = min(unsafe, key=lambda row: row["error"])
        parts.append(f"most so by {-worst['error']:.2g} of it ({worst['label']})")
    if answered and (loosest := max(answered, key=lambda row: row["error"]))["error"] > TOLERANCE:
        parts.append(f"above it by {loosest['error']:.2g} of it at most ({loosest['label']})")
    parts.append(f"{len(rows) - len(answered)} of {len(rows)} questions without a finite answer")
    if not answered:
        verdict = Verdict.INCONCLUSIVE
    elif method.safe:
        verdict = Verdict.REFUTED if unsafe else Verdict.CONFIRMED
    else:
        verdict = Verdict.CONFIRMED if unsafe else Verdict.INCONCLUSIVE
    return Outcome(
        verdict, "; ".join(parts), {**evidence, "version": version, "date": today(), "limit": LIMIT, "rows": rows}
    )


def _check(method: Accountant) -> Check:
    own = method.tool == "canaryproof"
    statement = (
        f"is never below the truth by more than {TOLERANCE:g} of it"
        if method.safe
        else f"can be below the truth by more than {TOLERANCE:g} of it, as it says"
    )
    source = "verify.audit.accounting" if own else f"{method.tool}: {method.source}"
    subject = Subject.IMPLEMENTATION if own else Subject.TOOL
    return Check(method.id, subject, source, f"{method.name} {statement}", partial(_judge, method=method))


CHECKS = tuple(_check(method) for method in METHODS)


def main(tool: str, name: str, *rest: str) -> str:
    """Ask one method all questions, or those of one kind at one δ; return the rows as text."""
    method = next((candidate for candidate in METHODS if (candidate.tool, candidate.name) == (tool, name)), None)
    if method is None:
        known = "; ".join(f"{candidate.tool!r} {candidate.name!r}" for candidate in METHODS)
        raise SystemExit(f"there is no method {name!r} of {tool!r}; there are {known}")
    level = Effort(rest[-1]) if rest and rest[-1] in _SIGMAS else Effort.QUICK
    chosen = questions(level)
    if len(rest) >= 2:
        where = (rest[0], float(rest[1]))
        chosen = tuple(case for case in chosen if (case.asked["of"], case.asked["delta"]) == where)
    try:
        candidate, rows = measure(method, chosen)
    except (MissingToolError, EndedToolError) as reason:
        raise SystemExit(str(reason)) from None
    lines = [
        f"{row['label']}: {row['value']!r} in {row['enclosure']}"
        + (f", error {row['error']:+.2g}" if row["error"] is not None else f", {row['raised']}")
        for row in rows
    ]
    return "\n".join([f"{tool} {candidate}, {name}", *lines])


if __name__ == "__main__":
    sys.stdout.write(main(*sys.argv[1:]) + "\n")
