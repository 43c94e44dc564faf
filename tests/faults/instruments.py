"""Faults of the instruments of an auditor: of the tests of residuals and sampling, and of a replay."""

from collections.abc import Callable

import numpy as np

from tests.faults.fault import Fault, Function

_AUDIT = "canaryproof.verify.audit.answer"


def _fault(name: str, description: str, target: str, make: Callable[[Function], Function], *checks: str) -> Fault:
    own = tuple(check if ":" in check else f"blindspots.instruments.{check}" for check in checks)
    return Fault(f"instruments.{name}", description, f"{_AUDIT}.{target}", make, own)


FAULTS = (
    _fault(
        "noise-is-long",
        "the test of the noise asks whether it is too long",
        "instruments:norm_p_value",
        lambda f: lambda *arguments: 1.0 - f(*arguments),
        "level",
        "power",
    ),
    _fault(
        "signs",
        "the bound of sums of signs has half of its exponent",
        "instruments:_hoeffding",
        lambda f: lambda ratio, tests: f(ratio / np.sqrt(2.0), tests),
        "tests.verify.audit.answer.test_instruments:test_the_bound_of_many_sums_is_hoeffdings",
    ),
    _fault(
        "many-signs",
        "the largest of many sums of signs is taken for one sum",
        "instruments:_hoeffding",
        lambda f: lambda ratio, _tests: f(ratio, 1),
        "level",
    ),
    _fault(
        "expected-counts",
        "coordinates beyond a limit are compared with those below it",
        "instruments:_chernoff",
        lambda f: lambda counts, expected, number, **side: f(counts, 0.9 * expected, number, **side),
        "level",
    ),
    _fault(
        "jump",
        "a count becomes a normal number without the draw within its jump",
        "instruments:_normal",
        lambda f: lambda counts, sizes, rate, _rng: f(counts, sizes, rate, _Ends()),
        "level",
    ),
    _fault(
        "one-side",
        "sizes that spread too little are let through",
        "instruments:_spread",
        lambda f: (
            lambda name, observed, normal, notices: f(
                name, observed, normal if np.square(normal).mean() > 1.0 else normal / normal, notices
            )
        ),
        "power",
    ),
    _fault(
        "search",
        "what the search of a replay finds is dropped",
        "replay:_smallest",
        lambda f: lambda *arguments: None,  # noqa: ARG005
        "power",
    ),
    _fault(
        "long-members",
        "no extreme member is long",
        "replay:_unit",
        lambda f: lambda vector: 1e-9 * f(vector),
        "tests.verify.audit.answer.test_replay:test_four_members_are_very_long_and_differ",
    ),
)


class _Ends:
    def random(self, shape: tuple[int, ...]) -> np.ndarray:
        return np.ones(shape)
