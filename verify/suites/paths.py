"""Public functions that no target of the search covers: both directions, the reverse one, and two-sided limits."""

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Any

from canaryproof.kernels import binomial, two_gaussians
from canaryproof.kernels.certified import Enclosure
from canaryproof.kernels.certified import binomial as certified_binomial
from canaryproof.kernels.certified import two_gaussians as certified_two_gaussians
from canaryproof.verify.late import late
from canaryproof.verify.results import Check, Context, Outcome, Subject
from canaryproof.verify.suites.numerics import judge_errors
from canaryproof.verify.worst_case.search import BUDGETS, Domain
from canaryproof.verify.worst_case.targets import TARGETS, Target

_BY_NAME = {target.name: target for target in TARGETS}


def _like(name: str, other: str, kernel: Callable[..., Any], certified: Callable[..., Enclosure]) -> Target:
    return dataclasses.replace(_BY_NAME[other], name=name, kernel=kernel, certified=certified)


def _direction(function: str, direction: str) -> Target:
    topic = f"two-gaussians.{function.replace('_', '-')}"
    return _like(
        f"{topic}.{direction}",
        f"{topic}.forward",
        late(two_gaussians, function, direction=direction),
        late(certified_two_gaussians, function, direction=direction),
    )


def _two_sided(end: int, name: str, method: str) -> Target:
    return _like(
        f"binomial.interval.{name}.{method}",
        f"binomial.{name}.{method}",
        lambda s, n, c: binomial.interval(s, n, c, method)[end],  # type: ignore[arg-type]
        lambda s, n, c: certified_binomial.interval(int(s), int(n), c, method)[end],  # type: ignore[arg-type]
    )


PATHS = (
    _direction("log_delta", "reverse"),
    _direction("log_delta", "both"),
    _direction("epsilon", "reverse"),
    *(
        _two_sided(end, name, method)
        for method in ("clopper-pearson", "jeffreys")
        for end, name in enumerate(("lower", "upper"))
    ),
)


def _judge(target: Target, context: Context) -> Outcome:
    return judge_errors(target, (), context)


def _check(target: Target) -> Check:
    floor = ", or by 1e-15 where it is below 0.1" if target.absolute else ""
    return Check(
        f"numerics.paths.{target.name}",
        Subject.IMPLEMENTATION,
        f"kernels.{target.name.partition('.')[0].replace('-', '_')}",
        f"differs from the exact result by at most {BUDGETS[Domain.PRACTICE]:g} ulps in practice and "
        f"{BUDGETS[Domain.WHOLE]:g} anywhere{floor}",
        partial(_judge, target),
    )


CHECKS = tuple(map(_check, PATHS))
