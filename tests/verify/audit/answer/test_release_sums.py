import dataclasses
import json
import math
import os
import re
import tracemalloc
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import ml_dtypes
import mpmath
import numpy as np
import pytest

from canaryproof.kernels import canaries as kernel
from canaryproof.kernels import slices
from canaryproof.kernels.canaries import Canaries, noise
from canaryproof.kernels.orthonormal_canaries import OrthonormalCanaries
from canaryproof.verify.audit.accounting.accountant import gaussian
from canaryproof.verify.audit.answer import release_sums as module
from canaryproof.verify.audit.answer.findings import Question, Status
from canaryproof.verify.audit.answer.release_sums import all_sums, as_source, release_sums
from canaryproof.verify.audit.answer.run_audit import audit_release
from canaryproof.verify.audit.engine.executors import call
from canaryproof.verify.audit.files import checkpoint
from canaryproof.verify.audit.files.errors import InputError
from canaryproof.verify.audit.files.stored_release import open_release

BLOCK, DELTA = 4096, 1e-6
DIM = 3 * BLOCK + 77
KINDS = (Canaries, OrthonormalCanaries)


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "BLOCK", BLOCK)
    monkeypatch.setattr(kernel, "_HELD", BLOCK)


@pytest.fixture(name="path")
def _path(tmp_path: Path) -> Path:
    np.save(tmp_path / "r.npy", released(OrthonormalCanaries(7, 200, DIM)))
    return tmp_path / "r.npy"


def released(canaries: Any) -> np.ndarray:
    return (canaries.sum() + 1.2 * noise(3, canaries.dim)).astype(np.float32)


def elsewhere(function: str, tasks: Iterable[tuple[int, tuple[Any, ...]]]) -> Iterator[tuple[int, Any]]:
    """Score blocks from the last one to the first, as other processes might."""
    for number, arguments in sorted(tasks, reverse=True):
        yield number, call(function, arguments)


def numbers(audit: Any) -> Any:
    return json.loads(audit.to_json())


@pytest.mark.deep(beyond=1)
@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("kind", KINDS)
def test_blocks_shards_and_processes_have_the_same_bits(kind: type, tmp_path: Path) -> None:
    canaries = kind(7, 200, DIM)
    release = released(canaries)
    np.save(tmp_path / "r.npy", release)
    stored = open_release(tmp_path / "r.npy")
    asked: dict[str, Any] = {"delta": DELTA, "noise_multiplier": 1.2}
    whole = audit_release(release, kind(7, 200, DIM), **asked)
    parts = [release_sums(release[b], canaries, b.start) for b in slices.blocks(DIM)]
    for other in (
        audit_release(np.load(tmp_path / "r.npy", mmap_mode="r"), kind(7, 200, DIM), **asked),
        audit_release(sum(parts[1:], start=parts[0]), kind(7, 200, DIM), **asked),
        audit_release(stored, kind(7, 200, DIM), **asked, scoring=elsewhere),
    ):
        np.testing.assert_array_equal(other.scores.observed, whole.scores.observed)
        assert numbers(other) | {"coordinates": None} == numbers(whole)
    if kind is OrthonormalCanaries:
        np.testing.assert_array_equal(whole.scores.observed, canaries.cosines(release))


def test_independent_canaries_are_scored_without_the_others() -> None:
    """By the unit vectors of all canaries, and mpmath's own sums."""
    canaries = Canaries(7, 5, 300)
    release = released(canaries)
    vectors = [canaries.vector(j).astype(np.float64) for j in range(5)]
    sums = all_sums(as_source(release), canaries)
    for j, cosine in enumerate(sums.cosines()):
        rest = [mpmath.mpf(float(x)) for x in release]
        for i, other in enumerate(vectors):
            if i != j:
                rest = [x - mpmath.mpf(float(y)) for x, y in zip(rest, other, strict=True)]
        product = mpmath.fdot(rest, map(float, vectors[j]))
        lengths = mpmath.sqrt(mpmath.fdot(rest, rest) * mpmath.fdot(map(float, vectors[j]), map(float, vectors[j])))
        assert cosine == pytest.approx(float(product / lengths), abs=1e-7)


@pytest.mark.parametrize("kind", KINDS)
def test_the_trace_is_that_of_the_canaries_sum(kind: type) -> None:
    canaries = kind(7, 50, DIM)
    release = released(canaries)
    total, sums = canaries.sum(), all_sums(as_source(release), canaries)
    cosine, length = sums.trace(50)
    assert length == pytest.approx(float(np.linalg.norm(total)), rel=1e-12)
    expected = float(total @ release) / float(np.linalg.norm(total)) / float(np.linalg.norm(release))
    assert cosine == pytest.approx(expected, abs=1e-7)
    assert sums.residual_norm(50) == pytest.approx(float(np.linalg.norm(release - total)), rel=1e-6)
    assert sums.crowd(50) == 0.0


def test_beyond_the_coordinates_that_are_held_norms_are_taken_for_their_mean(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SUMMED_AT_ONCE", 5000)
    canaries = Canaries(7, 50, DIM)
    release = released(canaries)
    total, sums = canaries.sum(), all_sums(as_source(release), canaries)
    cosine, length = sums.trace(50)
    # The sum's length errs by √(k/2)/d, and its direction by 1/√(2d).
    assert length == pytest.approx(float(np.linalg.norm(total)), abs=6.0 * 5.0 / DIM)
    expected = float(total @ release) / float(np.linalg.norm(total)) / float(np.linalg.norm(release))
    assert cosine == pytest.approx(expected, abs=6.0 * 1.2 / math.sqrt(2.0 * DIM) / sums.norm)
    rest = float(np.linalg.norm(release - total))
    assert sums.residual_norm(50) == pytest.approx(rest, rel=1e-4)


def test_canaries_that_such_norms_leave_in_a_release_withhold_its_estimate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SUMMED_AT_ONCE", 100)
    canaries = Canaries(7, 1000, 200)
    total, chance = canaries.sum(), np.random.default_rng(3).normal(size=200)
    for noise_multiplier, share in ((0.1, 0.556), (3.0, 1.0 / 721.0)):
        release = total + noise_multiplier * chance
        sums = all_sums(as_source(release), canaries)
        # The share of k/(2d²) in itself and the variance of the noise, which 200 coordinates leave to chance.
        assert sums.crowd(1000) == pytest.approx(share, rel=0.5)
        found = audit_release(release, canaries, DELTA)
        assert ("crowded" in {warning.kind for warning in found.warnings}) == (share > 0.01)
        assert (found.estimate is None) == (share > 0.01)


def test_the_interval_keeps_its_promise_however_many_canaries_there_are() -> None:
    """Where √d for each norm would leave ten times the variance of the noise, no interval reached ε."""
    epsilon, covered = gaussian(0.1).epsilon(DELTA), 0
    for seed in range(20):
        canaries = Canaries(seed, 1000, 70)
        release = canaries.sum() + 0.1 * np.random.default_rng([seed, 5]).normal(size=70)
        estimate = audit_release(release, canaries, DELTA).estimate
        assert estimate is not None
        covered += estimate.low <= epsilon <= estimate.high
    # At 95% each, 10 or fewer of 20 have a probability of 1.1e-8.
    assert covered > 10


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("noise_multiplier", "dim", "count", "dtype", "asked"),
    [
        (0.0, 1000, 90, np.float64, {}),
        (0.0, 1000, 90, np.float32, {"data_norm": 0.0}),
        (0.001, 1000, 90, np.float32, {"difference": True}),
        (0.0, 20, 8, np.float64, {"force": True}),
    ],
)
def test_a_release_without_noise_is_not_passed(
    kind: type, noise_multiplier: float, dim: int, count: int, dtype: type, asked: dict[str, Any]
) -> None:
    canaries = kind(7, count, dim)
    release = (canaries.sum() + noise_multiplier * noise(3, dim)).astype(dtype)
    sums = release_sums(release[: dim // 2], canaries), release_sums(release[dim // 2 :], canaries, dim // 2)
    for given in (release, sums[0] + sums[1]):
        found = audit_release(given, canaries, DELTA, noise_multiplier=1.0, **asked)
        assert found.decision is not None
        assert found.decision.outcome == "NOT PASSED"
        finding = found.finding(Question.NOISE)
        assert (finding.status, bool(finding.do)) == (Status.FAILED, True)
        assert found.finding(Question.INPUT).status is not Status.FAILED
        json.loads(found.to_json())
    # Without a claim nothing fails, and hardly any noise is pointed out.
    unclaimed = audit_release(release, canaries, DELTA)
    assert ("bare" in {warning.kind for warning in unclaimed.warnings}) == (unclaimed.estimate is None)
    assert unclaimed.estimate is None or noise_multiplier


@pytest.mark.parametrize(("dim", "coverage"), [(3, "heuristic"), (49, "heuristic"), (50, "asymptotic")])
def test_few_dimensions_prove_no_bound_of_one_release(dim: int, coverage: str) -> None:
    canaries = Canaries(910, 300, dim)
    release = canaries.sum() + np.random.default_rng(10).normal(size=dim)
    found = audit_release(release, canaries, DELTA, noise_multiplier=1.0, bounds=("fixed-sequence",))
    assert [row.coverage for row in found.bounds] == [coverage]
    assert ("cosines in so few dimensions" in " ".join(str(found.details()).split())) == (coverage == "heuristic")


@pytest.mark.parametrize("kind", KINDS)
def test_blocks_change_rounding_alone(kind: type, monkeypatch: pytest.MonkeyPatch) -> None:
    canaries = Canaries(7, 50, DIM)
    release = released(canaries)
    single = all_sums(as_source(release), canaries)
    monkeypatch.setattr(slices, "BLOCK", BLOCK)
    monkeypatch.setattr(kernel, "_HELD", BLOCK)
    canaries = kind(7, 50, DIM)
    several = all_sums(as_source(release), canaries)
    assert (several.zeros, several.largest, several.dim) == (single.zeros, single.largest, single.dim)
    assert math.isclose(several.square, single.square, rel_tol=1e-14)
    if kind is Canaries:
        np.testing.assert_allclose(several.cosines(), single.cosines(), rtol=0, atol=1e-14)
        assert several.trace(50) == pytest.approx(single.trace(50), rel=1e-12)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scoring", [None, elsewhere])
def test_a_killed_call_loses_a_block_at_most(kind: type, scoring: Any, path: Path, tmp_path: Path) -> None:
    canaries, stored, state = kind(7, 200, DIM), open_release(path), tmp_path / "state.npz"
    whole = all_sums(stored, canaries)
    blocks = len(slices.blocks(DIM))
    assert blocks == 3
    begun: list[int] = []

    def killed(function: str, tasks: Iterable[tuple[int, tuple[Any, ...]]]) -> Iterator[tuple[int, Any]]:
        for number, arguments in tasks:
            begun.append(number)
            if number == 2 and len(begun) == 3:
                raise KeyboardInterrupt
            yield number, call(function, arguments)

    with pytest.raises(KeyboardInterrupt):
        all_sums(stored, canaries, scoring=killed, state=state)
    assert begun == [0, 1, 2]
    steps: list[int] = []
    again = all_sums(stored, kind(7, 200, DIM), steps.append, scoring or killed, state)
    assert scoring is not None or begun == [0, 1, 2, 2]
    assert sum(steps) == 200 * blocks
    np.testing.assert_array_equal(again.products.products, whole.products.products)
    assert dataclasses.replace(again, products=whole.products) == whole
    # A call that finds all sums scores nothing.
    done = all_sums(stored, kind(7, 200, DIM), scoring=lambda _, tasks: [(0, None) for _ in tasks], state=state)
    np.testing.assert_array_equal(done.products.cosines(), whole.products.cosines())


@pytest.mark.usefixtures("small_blocks")
def test_a_state_of_others_is_refused(path: Path, tmp_path: Path) -> None:
    state = tmp_path / "state.npz"
    all_sums(open_release(path), Canaries(7, 20, DIM), state=state)
    for release, canaries, rule in (
        (open_release(path), Canaries(8, 20, DIM), "seed: must be the same as here"),
        (open_release(path, canary_norm=2.0), Canaries(7, 20, DIM), "canary_norm: must be 2.0 here, not 1.0"),
    ):
        with pytest.raises(InputError, match=re.escape(rule)):
            all_sums(release, canaries, state=state)
    gone = open_release(path)
    path.unlink()
    with pytest.raises(InputError, match=r"r\.npy: No such file or directory$"):
        all_sums(gone, Canaries(7, 20, DIM), state=state)
    np.save(path, noise(4, DIM))
    with pytest.raises(InputError, match=r"state\.npz: is of another release, or of another base: block 0 has other"):
        all_sums(open_release(path), Canaries(7, 20, DIM), state=state)
    state.write_bytes(b"junk")
    with pytest.raises(InputError, match=r"state\.npz: is not a checkpoint"):
        all_sums(open_release(path), Canaries(7, 20, DIM), state=state)
    with pytest.raises(InputError, match=r"missing/state\.npz: No such file or directory$"):
        all_sums(open_release(path), Canaries(7, 20, DIM), state=tmp_path / "missing" / "state.npz")
    with pytest.raises(ValueError, match="state: needs a release in files"):
        all_sums(as_source(noise(4, DIM)), Canaries(7, 20, DIM), state=state)


def copied(source: Path, target: Path, changed: int | None = None) -> Path:
    """Copy a release, with one coordinate changed, so that size and times of the target stay as they were."""
    values = np.load(source)
    if changed is not None:
        values[changed] += 1.0
    times = target.stat() if target.exists() else source.stat()
    np.save(target, values)
    os.utime(target, ns=(times.st_atime_ns, times.st_mtime_ns))
    return target


def unscored(_: str, tasks: Iterable[tuple[int, tuple[Any, ...]]]) -> Iterator[tuple[int, Any]]:
    assert not list(tasks)
    return iter(())


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("changed", [0, BLOCK, DIM - 1])
@pytest.mark.parametrize("role", ["release", "base"])
def test_a_release_is_what_it_has_not_what_its_file_is_called(
    changed: int, role: str, path: Path, tmp_path: Path
) -> None:
    canaries, state = Canaries(7, 20, DIM), tmp_path / "state.npz"
    base = tmp_path / "base.npy"
    np.save(base, noise(5, DIM))
    whole = all_sums(open_release(path, base=base), canaries, state=state)
    # The same coordinates, elsewhere and later.
    moved = copied(path, tmp_path / "moved.npy")
    os.utime(moved, ns=(1, 1))
    again = all_sums(open_release(moved, base=base), canaries, scoring=unscored, state=state)
    np.testing.assert_array_equal(again.products.products, whole.products.products)
    other = path if role == "release" else base
    before = other.stat()
    copied(other, other, changed)
    assert (other.stat().st_size, other.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    block = min(changed // BLOCK, 2)
    with pytest.raises(InputError, match=rf"state\.npz: is of another release, .*: block {block} has other values$"):
        all_sums(open_release(path, base=base), canaries, state=state)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("in_file", [True, False])
def test_a_worker_with_another_file_of_the_name_is_refused(
    kind: type, in_file: bool, path: Path, tmp_path: Path
) -> None:
    other = copied(path, tmp_path / "other.npy", BLOCK)

    def mistaken(function: str, tasks: Iterable[tuple[int, tuple[Any, ...]]]) -> Iterator[tuple[int, Any]]:
        for number, (_, *rest) in tasks:
            yield number, call(function, (open_release(other), *rest))

    release = open_release(path) if in_file else np.load(path)
    with pytest.raises(ValueError, match=r"^release: the worker that scored block 1 has read other values than"):
        audit_release(release, kind(7, 20, DIM), DELTA, scoring=mistaken)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("products", lambda products: 0.1 * products),
        ("products", np.flip),
        ("squares", np.negative),
        ("numbers", lambda numbers: numbers * [100.0, 1.0, 1.0, 1.0, 1.0, 1.0]),
        ("numbers", np.zeros_like),
        ("counts", lambda counts: counts - [0, 0, DIM - 2 * BLOCK, 1]),
        ("counts", np.flip),
        ("digests", np.zeros_like),
    ],
)
def test_a_tampered_state_is_refused_by_its_name(name: str, change: Any, path: Path, tmp_path: Path) -> None:
    canaries, state = Canaries(7, 20, DIM), tmp_path / "state.npz"
    all_sums(open_release(path), canaries, state=state)
    with np.load(state) as stored:
        arrays = dict(stored)
    arrays[name] = change(arrays[name]).astype(arrays[name].dtype)
    np.savez(state, **arrays)
    with pytest.raises(InputError, match=r"state\.npz: its arrays are not those that were written$"):
        all_sums(open_release(path), canaries, state=state)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("products", lambda products: 1e6 * products),
        *(("numbers", lambda numbers, i=i: numbers * np.where(np.arange(6) == i, -1.0, 1.0)) for i in (0, 1, 5)),
        ("numbers", lambda numbers: numbers * [0.0, 1.0, 1.0, 1.0, 1.0, 1.0]),
        ("numbers", lambda numbers: numbers * [1.0, 0.0, 1.0, 1.0, 1.0, 1.0]),
        ("numbers", lambda numbers: numbers * [1e4, 1.0, 1.0, 1.0, 1.0, 1.0]),
        ("numbers", lambda numbers: numbers * [1.0, 1.0, 1.0, 1.0, 1.0, 1e300]),
    ],
)
def test_sums_that_no_release_has_are_refused_though_they_are_sealed(
    kind: type, name: str, change: Any, path: Path, tmp_path: Path
) -> None:
    canaries, state = kind(7, 20, DIM), tmp_path / "state.npz"
    all_sums(open_release(path), canaries, state=state)
    with np.load(state) as stored:
        arrays = {each: stored[each] for each in stored.files if each not in ("description", "seal")}
        description = json.loads(stored["description"].tobytes())
    checkpoint.write(state, description, {**arrays, name: change(arrays[name])})
    with pytest.raises(InputError, match=r"state\.npz: its sums cannot be those of a release$"):
        all_sums(open_release(path), canaries, state=state)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["one canary", "canaries without noise", "signs", "one coordinate"])
def test_a_state_of_an_extreme_release_goes_on(kind: type, name: str, tmp_path: Path) -> None:
    """Cauchy and Schwarz's inequalities are equations here."""
    canaries, state = kind(7, 20, 5000), tmp_path / "state.npz"
    values = {
        "one canary": canaries.vector(3),
        "canaries without noise": canaries.sum(),
        "signs": np.sign(noise(4, 5000)),
        "one coordinate": np.eye(1, 5000, 7)[0],
    }[name]
    np.save(tmp_path / "r.npy", values.astype(np.float32))
    release = open_release(tmp_path / "r.npy")
    whole = all_sums(release, canaries, state=state)
    again = all_sums(release, canaries, scoring=unscored, state=state)
    np.testing.assert_array_equal(again.products.products, whole.products.products)


def test_a_state_of_zeros_goes_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(slices, "BLOCK", BLOCK)
    values, state = noise(4, DIM), tmp_path / "state.npz"
    values[:BLOCK] = 0.0
    np.save(tmp_path / "r.npy", values)
    release, canaries = open_release(tmp_path / "r.npy"), OrthonormalCanaries(7, 20, DIM)
    whole = all_sums(release, canaries, state=state)

    def first(function: str, tasks: Iterable[tuple[int, tuple[Any, ...]]]) -> Iterator[tuple[int, Any]]:
        for number, arguments in tasks:
            if number == 1:
                raise KeyboardInterrupt
            yield number, call(function, arguments)

    state.unlink()
    with pytest.raises(KeyboardInterrupt):
        all_sums(release, canaries, scoring=first, state=state)
    assert all_sums(release, canaries, state=state).square == whole.square


@pytest.mark.deep
def test_a_release_in_the_files_own_unit_is_audited_as_in_canary_norms(path: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "twice.npy", 2.0 * np.load(path))
    canaries = OrthonormalCanaries(7, 200, DIM)
    asked: dict[str, Any] = {"delta": DELTA, "noise_multiplier": 1.2}
    single = numbers(audit_release(open_release(path), canaries, **asked))
    two = numbers(audit_release(open_release(tmp_path / "twice.npy", canary_norm=2.0), canaries, **asked))
    assert single.pop("coordinates")["canary_norm"] == 1.0
    assert two.pop("coordinates")["canary_norm"] == 2.0
    assert single == two


@pytest.mark.deep(beyond=1)
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_half_precision_is_audited_as_it_is(dtype: type) -> None:
    canaries = OrthonormalCanaries(7, 200, DIM)
    release = released(canaries).astype(dtype)
    half = audit_release(release, canaries, DELTA, noise_multiplier=1.2)
    single = audit_release(release.astype(np.float32), canaries, DELTA, noise_multiplier=1.2)
    assert numbers(half) == numbers(single)


@pytest.mark.usefixtures("small_blocks")
def test_beside_many_directions_a_few_are_scored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_UNOBSERVED", 100)
    canaries = OrthonormalCanaries(7, 60, DIM)
    release = released(canaries)
    result = audit_release(release, canaries, DELTA, noise_multiplier=1.2)
    assert (result.count, result.null_count) == (60, 100)
    every = OrthonormalCanaries(7, 160, DIM).cosines(release)
    np.testing.assert_array_equal(result.scores.observed, every[:60])
    np.testing.assert_array_equal(result.scores.unobserved, every[60:])
    # The norm is of all coordinates, not of those that are scored.
    assert result.release_norm == pytest.approx(np.linalg.norm(release.astype(np.float64)), rel=1e-12)
    assert result.warnings == ()
    # Of more canaries there are as many others.
    more = audit_release(release, OrthonormalCanaries(7, 150, DIM), DELTA)
    assert (more.count, more.null_count) == (150, 150)
    most = OrthonormalCanaries(7, BLOCK - 1, DIM)
    with pytest.raises(ValueError, match="canaries: must leave 2 of 4,096 directions to compare with, not 1"):
        audit_release(release, most, DELTA)


def on_grid(step: float, rng: np.random.Generator, dim: int) -> np.ndarray:
    """A release with noise of deviation 1 that is rounded to a grid."""
    return np.asarray(np.rint((Canaries(7, 100, dim).sum() + rng.normal(size=dim)) / step) * step)


def skellam(rng: np.random.Generator, dim: int) -> np.ndarray:
    """A release with the difference of two Poisson variables as its noise, of deviation 1 and step 1/50."""
    summed = np.rint(50.0 * Canaries(7, 100, dim).sum())
    return np.asarray((summed + rng.poisson(1250.0, dim) - rng.poisson(1250.0, dim)) / 50.0)


GRIDS: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "Skellam": skellam,
    **{f"step {step}": partial(on_grid, step) for step in (0.01, 0.02, 0.1, 0.3, 0.45)},
    "8 bits": lambda rng, dim: on_grid(2.0**-5, rng, dim),
    "10 bits, float32": lambda rng, dim: on_grid(2.0**-7, rng, dim).astype(np.float32),
    "a difference in float32": lambda rng, dim: np.float32(on_grid(0.05, rng, dim) + 3.0) - np.float32(3.0),
}


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("dim", [2000, DIM])
@pytest.mark.parametrize("grid", GRIDS)
def test_noise_on_a_grid_is_noise(grid: str, dim: int) -> None:
    for seed in range(5):
        release = GRIDS[grid](np.random.default_rng([seed, 3]), dim)
        kinds = {warning.kind for warning in audit_release(release, Canaries(7, 100, dim), DELTA).warnings}
        assert not kinds & {"zeros", "coarse-grid"}
        # Half of a model that is not trained.
        release[: dim // 2] = 0.0
        kinds = {warning.kind for warning in audit_release(release, Canaries(7, 100, dim), DELTA, force=True).warnings}
        assert "zeros" in kinds


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("step", [0.7, 1.0, 3.0])
def test_of_noise_on_a_coarse_grid_nobody_can_tell(step: float) -> None:
    release = on_grid(step, np.random.default_rng(3), DIM)
    (found,) = audit_release(release, Canaries(7, 100, DIM), DELTA, force=True).warnings
    assert found.kind == "coarse-grid"
    assert "nobody can say whether more zeros lack noise" in found.message


@pytest.mark.usefixtures("small_blocks")
def test_a_coordinate_that_is_not_finite_is_named_where_it_is() -> None:
    release = noise(4, DIM)
    release[2 * BLOCK + 5] = math.nan
    with pytest.raises(ValueError, match=rf"release\[{2 * BLOCK + 5}\]: must be finite, not nan"):
        audit_release(release, Canaries(7, 20, DIM), DELTA)
    release[2 * BLOCK + 5] = math.inf
    with pytest.raises(ValueError, match=rf"release\[{2 * BLOCK + 5}\]: must be finite, not inf"):
        audit_release(release, OrthonormalCanaries(7, 20, DIM), DELTA)


@pytest.mark.deep
def test_scores_of_a_file_take_little_beyond_its_float32_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MOST_UNOBSERVED", 1000)
    # The largest block. Temporary arrays of a fixed length are a smaller share of it than of shorter ones.
    dim = 2**26
    np.save(tmp_path / "r.npy", np.ones(dim, np.float16))
    stored, canaries = open_release(tmp_path / "r.npy"), OrthonormalCanaries(7, 1000, dim)
    tracemalloc.start()
    try:
        all_sums(stored, canaries)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1.25 * 4 * dim
