"""Audits give the numbers that they gave in the last release, unless the CHANGELOG names the change.

``reference_audits/`` has the input of each audit, and ``numbers.csv`` what every method made of it in the last release,
whose version is in the corner. Where a method gives another number now, a row ``unreleased`` follows. If you meant to
change a number:

1. Raise the ``version`` of its method, which reports carry.
2. Run ``python -m tests.verify.audit.answer.test_reference_audits`` and read the diff of ``numbers.csv``.
3. Copy the lines that the command prints to the section "Unreleased" of CHANGELOG.md, and say there why.

When the CHANGELOG has a new release, the same command makes its numbers the ones to hold.
"""

import csv
import math
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import astuple, dataclass, fields, replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from canaryproof.kernels.canaries import Canaries
from canaryproof.kernels.orthonormal_canaries import OrthonormalCanaries
from canaryproof.verify.audit.accounting import accountant
from canaryproof.verify.audit.answer.result import COMPOSED, COMPOSED_BOUND, PARTICIPATIONS
from canaryproof.verify.audit.answer.run_audit import Audit, audit, audit_release
from canaryproof.verify.audit.bounds.catalogue import METHODS
from canaryproof.verify.audit.canaries.scores import Scores

FOLDER = Path(__file__).with_name("reference_audits")
NUMBERS = FOLDER / "numbers.csv"
CHANGELOG = Path(__file__).parents[4] / "CHANGELOG.md"
UNRELEASED = "unreleased"
# CPUs and BLAS libraries differ in the last bits of exp, log and sums, which accounting and quadratures amplify: the
# largest difference is 2.4e-12 without AVX and FMA (in numba, numpy and libm) and with another kernel of OpenBLAS.
# ``check-report`` forgives as much.
ROUNDING = 1e-9
# Catalogued bounds that serve scores with an exact null, and others.
EXACT, GROUPS = (
    tuple(name for name, method in METHODS.items() if method.needs in ("", needs)) for needs in ("null", "unobserved")
)


def scores(name: str) -> Scores:
    return Scores.load(FOLDER / f"{name}.json")


def release(column: int) -> np.ndarray:
    return np.loadtxt(FOLDER / "releases.csv", delimiter=",", skiprows=1, usecols=column)


CANARIES = {"count": 40, "dim": 300}
AUDITS: dict[str, Callable[[], Audit]] = {
    "cosines": lambda: audit(scores("cosines"), 1e-6, claim=3.0, bounds=EXACT),
    "cosines, claimed noise": lambda: audit(scores("cosines"), 1e-9, 0.999, noise_multiplier=1.0),
    "cosines, δ = 0": lambda: audit(scores("cosines"), 0.0, claim=0.1),
    "cosines, δ = 1e-300": lambda: audit(scores("cosines"), 1e-300, claim=40.0),
    "cosines, δ = 0.1": lambda: audit(scores("cosines"), 0.1, 0.8, claim=0.5),
    "strong cosines": lambda: audit(scores("strong"), 1e-5, claim=2.0),
    "wide cosines": lambda: audit(scores("wide"), 1e-5, claim=accountant.epsilon_delta(8.0, 1e-6)),
    "two cosines": lambda: audit(scores("few"), 1e-5, claim=1.0),
    "absent canaries": lambda: audit(scores("absent"), 1e-6, claim=3.0),
    "separated cosines": lambda: audit(scores("separated"), 1e-12, claim=2000.0, bounds=EXACT),
    "two groups": lambda: audit(scores("groups"), 1e-5, claim=3.0, bounds=GROUPS),
    "coins": lambda: audit(scores("coins"), 1e-3, claim=1.0, bounds=GROUPS),
    "refuted coins": lambda: audit(scores("refuted_coins"), 1e-5, claim=3.0),
    "independent": lambda: audit(scores("independent"), 1e-5, claim=3.0),
    "replaced": lambda: audit(scores("replaced"), 1e-5, claim=accountant.gaussian(1.0, neighbours="replace")),
    "maxima": lambda: audit(scores("maxima"), 1e-5, claim=4.0),
    "losses": lambda: audit(scores("losses"), 1e-5, claim=1.0),
    "infinite scores": lambda: audit(scores("infinite"), 1e-5),
    "tied scores": lambda: audit(scores("tied"), 1e-5, claim=0.5),
    "release": lambda: audit_release(release(0), Canaries(5, **CANARIES), 1e-5, noise_multiplier=1.0),
    "orthonormal": lambda: audit_release(
        release(1), OrthonormalCanaries(5, **CANARIES), 1e-5, claim=9.0, noise_multiplier=1.0, neighbours="replace"
    ),
    "diluted release": lambda: audit_release(release(2), Canaries(5, **CANARIES), 1e-5, noise_multiplier=1.0),
    "another seed": lambda: audit_release(release(0), Canaries(6, **CANARIES), 1e-5, noise_multiplier=1.0),
    "another seed, forced": lambda: audit_release(release(0), Canaries(6, **CANARIES), 1e-5, claim=2.0, force=True),
    "known rounds": lambda: audit(scores("known_rounds"), 1e-5, claim=accountant.gaussian(1.0)),
    "residuals": lambda: audit(scores("residuals"), 1e-5, claim=accountant.gaussian(1.0)),
    "unequal rounds": lambda: audit(scores("unequal_rounds"), 1e-5),
    "unequal residuals": lambda: audit(
        scores("unequal_residuals"), 1e-5, claim=accountant.gaussian(1.0, participations=6)
    ),
    "likelihood": lambda: audit(scores("likelihood"), 1e-5, claim=accountant.poisson(1.0, rate=0.4, rounds=6)),
    "largest": lambda: audit(scores("largest"), 1e-5, claim=accountant.gaussian(1.0)),
}


@dataclass(frozen=True)
class Numbers:
    """The numbers of a method, or of a test, in one audit; None where it has none."""

    version: float | None = None
    value: float | None = None
    low: float | None = None
    high: float | None = None
    standard_error: float | None = None
    cap: float | None = None
    p_value: float | None = None

    def is_near(self, other: "Numbers") -> bool:
        return not list(differences(self, other))


NOTHING = Numbers()
COLUMNS = [field.name for field in fields(Numbers)]
# By audit and method.
Table = dict[tuple[str, str], Numbers]


def differences(one: Numbers, other: Numbers) -> Iterator[tuple[str, float | None, float | None]]:
    for name in COLUMNS:
        pair = getattr(one, name), getattr(other, name)
        if (None in pair and pair != (None, None)) or (None not in pair and not math.isclose(*pair, rel_tol=ROUNDING)):
            yield name, *pair


@cache
def numbers_of(audit_name: str) -> Table:
    result, rows = AUDITS[audit_name](), {}
    for estimate in result.estimates:
        numbers = estimate.epsilon, estimate.low, estimate.high, estimate.standard_error
        rows[estimate.name] = Numbers(estimate.version, *numbers)
    for bound in result.bounds:
        rows[bound.name] = Numbers(bound.version, bound.epsilon, bound.low, bound.high, cap=bound.cap)
    if (mechanism := result.mechanism) is not None:
        noise = mechanism.measured
        numbers = noise.value, noise.low, noise.high, noise.standard_error
        rows["noise multiplier"] = Numbers(None, *numbers, p_value=mechanism.p_value)
    rows["noticed share of the noise"] = Numbers(value=result.noticed_share)
    rows["equal variances"] = Numbers(p_value=result.variance_p_value)
    rows["shape"] = Numbers(p_value=result.shape.p_value)
    for name, test in (("normal scores", result.normality), ("null law", result.null_law)):
        if test is not None:
            rows[name] = Numbers(value=test.statistic, p_value=test.p_value)
    for warning in result.warnings:
        rows[f"sign of misuse: {warning.kind}"] = Numbers(p_value=warning.p_value)
    return {(audit_name, name): numbers for name, numbers in rows.items() if numbers != NOTHING}


def read() -> tuple[str, Table, Table]:
    """Return the version of the release, its numbers, and those that are others now."""
    tables: dict[str, Table] = {"": {}, UNRELEASED: {}}
    with NUMBERS.open(encoding="utf-8", newline="") as file:
        (release_version, *_), *lines = csv.reader(file)
    for which, audit_name, method, *numbers in lines:
        tables[which][audit_name, method] = Numbers(*(float(number) if number else None for number in numbers))
    return release_version, tables[""], tables[UNRELEASED]


def write(release_version: str, released: Table, unreleased: Table) -> None:
    order = list(AUDITS)
    keys = sorted(dict.fromkeys([*released, *unreleased]), key=lambda key: order.index(key[0]))
    with NUMBERS.open("w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file, lineterminator="\n")
        lines.writerow([release_version, "audit", "method", *COLUMNS])
        for key in keys:
            for which, table in (("", released), (UNRELEASED, unreleased)):
                if key in table:
                    numbers = astuple(table[key])
                    lines.writerow([which, *key, *("" if number is None else f"{number:.12g}" for number in numbers)])


def changes(released: Table, unreleased: Table) -> dict[str, str]:
    """Return what the CHANGELOG must say of each method: its versions, and the number that changed most."""
    lines: dict[str, list[tuple[float, str]]] = {}
    known = {audit_name for audit_name, _ in released}
    for (audit_name, method), now in unreleased.items():
        if audit_name not in known:
            continue
        before = released.get((audit_name, method), NOTHING)
        versions = before.version, now.version
        head = f"`{method}`" if versions == (None, None) else f"`{method}` {arrow(*versions)}"
        of_method = lines.setdefault(method, [(-1.0, head)])
        for column, old, new in differences(before, now):
            if column != "version":
                of_method.append((size(old, new), f"{head}: {column} of “{audit_name}” {arrow(old, new)}"))
    return {method: max(of_method)[1] for method, of_method in lines.items()}


def size(old: float | None, new: float | None) -> float:
    if old is None or new is None or math.isinf(old) or math.isinf(new):
        return math.inf
    return abs(new - old) / max(abs(old), abs(new))


def arrow(old: float | None, new: float | None) -> str:
    """Print two numbers with as few digits as tell them apart, at least four."""
    for digits in range(4, 13):
        one, other = ("none" if number is None else f"{number:.{digits}g}" for number in (old, new))
        if one != other:
            break
    return f"{one} → {other}"


def changelog() -> tuple[str, str]:
    """Return the version of the last release in the CHANGELOG, and what it says of changes since."""
    text = CHANGELOG.read_text(encoding="utf-8")
    before, *releases = re.split(r"^## (?=\d)", text, flags=re.MULTILINE)
    return releases[0].split()[0], " ".join(before.partition("## Unreleased")[2].split())


@pytest.mark.parametrize("audit_name", AUDITS)
def test_numbers_are_as_they_were(audit_name: str) -> None:
    _, released, unreleased = read()
    held = {key: numbers for key, numbers in {**released, **unreleased}.items() if key[0] == audit_name}
    now = numbers_of(audit_name)
    changed = {
        key: (held.get(key), now.get(key))
        for key in {**held, **now}
        if not held.get(key, NOTHING).is_near(now.get(key, NOTHING))
    }
    assert not changed, __doc__


def test_the_changelog_names_each_changed_number() -> None:
    last, said = changelog()
    release_version, released, unreleased = read()
    assert release_version == last, __doc__
    for line in changes(released, unreleased).values():
        assert line in said, f'the section "Unreleased" of CHANGELOG.md must have: {line}'


def test_a_changed_number_is_of_a_new_version_of_its_method() -> None:
    _, released, unreleased = read()
    for key, now in unreleased.items():
        before = released.get(key, NOTHING).version
        assert before is None or now.version is None or now.version > before, f"raise the version of {key[1]}"


def test_every_method_is_in_some_audit() -> None:
    _, released, unreleased = read()
    methods = {method for (_, method), numbers in {**released, **unreleased}.items() if numbers.version is not None}
    others = {COMPOSED, COMPOSED_BOUND, PARTICIPATIONS, "norm", "adaptive", "pinned", "fitted", "threshold"}
    assert methods == {*METHODS, *others}


def test_a_change_is_seen_and_must_be_named() -> None:
    one = Numbers(1, 2.0, 1.0, math.inf, p_value=1e-200)
    assert one.is_near(replace(one, low=1.0 + 1e-10))
    for change in ({"low": 1.0 + 1e-8}, {"p_value": 1.01e-200}, {"high": 3.0}, {"value": None}, {"version": 2}):
        assert not one.is_near(replace(one, **change))
    before = {("coins", "band"): one, ("losses", "band"): one, ("losses", "shape"): Numbers(p_value=0.5)}
    now = {
        ("coins", "band"): replace(one, version=2, value=2.00001),
        ("losses", "band"): replace(one, version=2, low=1.5),
        ("losses", "shape"): Numbers(p_value=0.25),
        ("coins", "andrew"): Numbers(1, 3.5),
        ("maxima", "band"): one,
    }
    assert changes(before, now) == {
        "band": "`band` 1 → 2: low of “losses” 1 → 1.5",
        "shape": "`shape`: p_value of “losses” 0.5 → 0.25",
        "andrew": "`andrew` none → 1: value of “coins” none → 3.5",
    }
    assert changes(before, {("coins", "band"): replace(one, version=2)}) == {"band": "`band` 1 → 2"}
    assert changes(before, {("coins", "band"): NOTHING})["band"].startswith("`band` 1 → none: ")
    assert arrow(2.0, 2.00001) == "2 → 2.00001"


def main() -> None:
    last, said = changelog()
    release_version, released, unreleased = read()
    if release_version != last:
        released = {key: numbers for key, numbers in {**released, **unreleased}.items() if numbers != NOTHING}
        unreleased = {}
    now = {key: numbers for audit_name in AUDITS for key, numbers in numbers_of(audit_name).items()}
    anew = {}
    for key in {**released, **now}:
        numbers = now.get(key, NOTHING)
        if not released.get(key, NOTHING).is_near(numbers):
            old = unreleased.get(key, numbers)
            # Another processor changes no line.
            anew[key] = old if old.is_near(numbers) else numbers
    write(last, released, anew)
    for line in changes(released, anew).values():
        sys.stdout.write("" if line in said else f"- {line}\n")


if __name__ == "__main__":
    main()
