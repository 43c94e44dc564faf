"""Suite ``numerics``: the fast kernels against certified enclosures, these against the twins, and all beside others."""

from collections.abc import Iterable
from itertools import islice
from typing import Any

import mpmath as mp
import numpy as np

from canaryproof.kernels.certified import Enclosure
from canaryproof.kernels.reference import binomial, gaussian_mechanism, null_cosine, two_gaussians
from canaryproof.verify.results import Check, Context, Outcome, Subject, Verdict
from canaryproof.verify.suites import comparison
from canaryproof.verify.worst_case.search import BUDGETS, Case, Domain, search
from canaryproof.verify.worst_case.table import Row, read
from canaryproof.verify.worst_case.targets import TARGETS, Arguments, Target

# Decimal digits of the twins, nearly four times what a float holds.
_DIGITS = 60
_MOST_TRIALS = 1e4
_MOST_DRAWS = 10_000

_MODULES = {
    "null-cosine": null_cosine,
    "two-gaussians": two_gaussians,
    "gaussian-mechanism": gaussian_mechanism,
    "binomial": binomial,
}


def judge_errors(target: Target, known: Iterable[Row], context: Context) -> Outcome:
    """Search for the worst error of a kernel, from the worst inputs known on."""
    rng = np.random.default_rng(context.key(f"numerics/{target.name}"))
    effort = context.pick(100, 3000)
    starts = [row.arguments for row in known if row.function == target.name]
    worst: dict[Domain, Case] = {}
    evidence: dict[str, Any] = {}
    for domain in Domain:
        # What is found in the domain of practice lies in the whole domain too.
        found = [case.arguments for case in worst.values()]
        case, judged = search(target, domain, effort, rng, [*starts, *found])
        worst[domain] = case
        evidence[domain] = {
            "judged": judged,
            "ulps": case.ulps,
            "budget": BUDGETS[domain],
            "share_of_budget": case.share,
            "arguments": dict(zip(target.names, case.arguments, strict=True)),
            "value": case.value,
            "enclosure": [case.enclosure.lo, case.enclosure.hi],
        }
    holds = all(case.share <= 1.0 for case in worst.values())
    practice, whole = worst.values()
    finding = (
        f"worst error found {practice.ulps:.2g} ulps in practice, {whole.ulps:.2g} anywhere, "
        f"at {_show(whole.arguments)}; {sum(row['judged'] for row in evidence.values()):,} inputs"
    )
    return Outcome(Verdict.CONFIRMED if holds else Verdict.REFUTED, finding, evidence)


def _show(arguments: Arguments) -> str:
    return "(" + ", ".join(f"{a:.6g}" for a in arguments) + ")"


def _twin(target: Target, arguments: Arguments) -> mp.mpf:
    topic, function, *variant = target.name.replace("log-delta", "log_delta").split(".")
    twin = getattr(_MODULES[topic], function.replace("-", "_"))
    if topic == "binomial":
        return twin(int(arguments[0]), int(arguments[1]), arguments[2], *variant, digits=_DIGITS)
    return twin(*arguments, *variant, digits=_DIGITS)


def _twin_serves(target: Target, arguments: Arguments) -> bool:
    """Whether the twin's plain formulas get by with the digits and the time that they have."""
    if target.name.startswith("binomial"):
        return arguments[1] <= _MOST_TRIALS
    if target.name.startswith("gaussian-mechanism"):
        return all(x == 0.0 or 1e-12 <= x <= 1e5 for x in arguments)
    if target.name.startswith("two-gaussians"):
        _, mu1, sigma1, mu2, sigma2 = arguments
        return 1e-3 <= sigma1 / sigma2 <= 1e3 and abs(mu1 - mu2) <= 300.0 * min(sigma1, sigma2)
    return True


def _holds(enclosure: Enclosure, exact: mp.mpf) -> bool:
    """Whether the ends contain the exact value, as far as the twin's digits tell."""
    if mp.isinf(exact):
        return bool(enclosure.lo == enclosure.hi == exact)
    with mp.workdps(_DIGITS):
        slack = abs(exact) * mp.mpf(10) ** (5 - _DIGITS)
        return bool(enclosure.lo - slack <= exact <= enclosure.hi + slack)


def judge_enclosures(targets: Iterable[Target], context: Context) -> Outcome:
    """Compare enclosures with multiprecision twins at random inputs, where the twins serve."""
    compared, undecided, missed, wide = 0, 0, [], 0
    for target in targets:
        rng = np.random.default_rng(context.key(f"numerics/enclosures/{target.name}"))
        draws = (target.draw(rng) for _ in range(_MOST_DRAWS))
        served = (draw for draw in draws if target.inside(*draw) and _twin_serves(target, draw))
        for arguments in islice(served, context.pick(3, 25)):
            enclosure = target.certified(*arguments)
            wide += not enclosure.tight
            try:
                twin = _twin(target, arguments)
            except mp.mp.NoConvergence:
                # The plain formulas lose more digits at some extremes than the twins are ready to add.
                undecided += 1
                continue
            compared += 1
            if not _holds(enclosure, twin):
                missed.append(f"{target.name}{_show(arguments)}")
    finding = f"{compared} inputs: {len(missed)} outside, {wide} wider than 2 ulps"
    if undecided:
        finding += f"; at {undecided} more the twin does not converge"
    if missed:
        finding += f"; first {missed[0]}"
    evidence = {
        "compared": compared,
        "undecided": undecided,
        "missed": missed,
        "wide": wide,
        "digits": _DIGITS,
    }
    if missed or wide:
        return Outcome(Verdict.REFUTED, finding, evidence)
    return Outcome(Verdict.CONFIRMED if compared else Verdict.INCONCLUSIVE, finding, evidence)


def _error_check(target: Target) -> Check:
    kernel: Any = target.kernel
    floor = ", or by 1e-15 where it is below 0.1" if target.absolute else ""
    return Check(
        f"numerics.{target.name}",
        Subject.IMPLEMENTATION,
        f"{kernel.__module__.removeprefix('canaryproof.')}.{kernel.__name__}",
        f"differs from the exact result by at most {BUDGETS[Domain.PRACTICE]:g} ulps in practice and "
        f"{BUDGETS[Domain.WHOLE]:g} anywhere{floor}",
        lambda context: judge_errors(target, read(), context),
    )


def _enclosure_check(topic: str) -> Check:
    targets = [target for target in TARGETS if target.name.startswith(f"{topic}.")]
    return Check(
        f"numerics.enclosures.{topic}",
        Subject.IMPLEMENTATION,
        f"kernels.certified.{topic.replace('-', '_')}",
        f"enclosures contain the {_DIGITS}-digit twin where that serves, and are at most 2 ulps wide",
        lambda context: judge_enclosures(targets, context),
    )


CHECKS = (*map(_error_check, TARGETS), *map(_enclosure_check, _MODULES), *comparison.CHECKS)
