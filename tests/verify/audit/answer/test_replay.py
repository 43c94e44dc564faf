import math

import numpy as np
import pytest

import canaryproof as cp
from canaryproof.verify.audit.answer.replay import Replay, Replayed

DIM, MEMBERS = 400, 30
UPDATES = np.random.default_rng(0).normal(size=(MEMBERS, DIM)) * np.linspace(0.01, 0.1, MEMBERS)[:, np.newaxis] + 0.01


def clipped(updates):
    finite = np.where(np.isfinite(updates).all(axis=1, keepdims=True), updates, 0.0)
    return finite * np.minimum(1.0, 1.0 / np.maximum(np.linalg.norm(finite, axis=1, keepdims=True), 1e-12))


def noise(deviation=1.0):
    return deviation * np.random.default_rng(9).normal(size=DIM)


def honest(updates):
    return (clipped(updates).sum(axis=0) + noise()) / MEMBERS


@pytest.mark.parametrize("kind", ["float64", "float32"])
@pytest.mark.parametrize("neighbours", ["add-or-remove", "replace"])
def test_an_honest_step_is_not_refuted(kind, neighbours):
    sensitivity = (2.0 if neighbours == "replace" else 1.0) / MEMBERS
    found = cp.replay(lambda updates: honest(updates).astype(kind), UPDATES, sensitivity, neighbours=neighbours)
    assert not found.has_failed
    assert len(found.cases) == 8
    largest = max(case.distance for case in found.cases)
    # A replacement is as long as two clip norms only where two members point away from each other.
    assert largest <= sensitivity * 1.001
    assert largest > 0.5 * sensitivity
    assert "of the claimed sensitivity" in str(found)


def by_layer(updates):
    return np.concatenate([clipped(part).sum(axis=0) for part in np.split(updates, 2, axis=1)])


FAULTS = {
    "nothing is clipped": (lambda updates: (updates.sum(axis=0) + noise()) / MEMBERS, 0),
    "the mean is clipped": (
        lambda updates: (len(updates) * clipped(updates.mean(axis=0)[np.newaxis])[0] + noise()) / MEMBERS,
        1,
    ),
    "each layer is clipped": (lambda updates: (by_layer(updates) + noise()) / MEMBERS, 0),
    "divided by the number drawn": (lambda updates: (clipped(updates).sum(axis=0) + noise()) / len(updates), 0),
    "less noise for more members": (
        lambda updates: (clipped(updates).sum(axis=0) + noise(1.0 / math.sqrt(1 + len(updates)))) / MEMBERS,
        0,
    ),
    "a long member passes": (
        lambda updates: (np.where(np.abs(updates).max() > 1e4, updates, clipped(updates)).sum(axis=0)) / MEMBERS,
        0,
    ),
}


@pytest.mark.deep(every=2)
@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_step_that_changes_more_is_refuted_and_shrunk(name):
    step, others = FAULTS[name]
    # A mean over no member has no value.
    found = cp.replay(lambda updates: step(updates) if len(updates) else noise() / MEMBERS, UPDATES, 1.0 / MEMBERS)
    assert found.has_failed
    assert len(found.smallest.batch) <= others
    assert "Refuted: one member more" in str(found)


@pytest.mark.parametrize("neighbours", ["add-or-remove", "replace"])
def test_a_member_that_is_too_long_alone_is_shrunk_to_itself(neighbours):
    found = cp.replay(
        lambda updates: updates.sum(axis=0), UPDATES, 1.0, neighbours=neighbours, extremes={"long": noise()}
    )
    # In place of another member, or beside none.
    assert (found.smallest.member, found.smallest.batch) == ("long", ())
    other = UPDATES[0] if neighbours == "replace" else 0.0
    assert found.smallest.distance == pytest.approx(np.linalg.norm(noise() - other))
    # All others stay where one is replaced.
    assert found.cases[0].batch == tuple(range(1 if neighbours == "replace" else 0, MEMBERS))


def test_not_a_number_that_gets_through_is_seen():
    step = lambda updates: (np.where(np.isnan(updates), updates, clipped(updates)).sum(axis=0) + noise()) / MEMBERS  # noqa: E731
    found = cp.replay(step, UPDATES, 1.0 / MEMBERS)
    assert [case.member for case in found.cases if case.is_excessive] == ["not a number"]
    assert "makes a release that is not finite" in str(found)
    assert math.isnan(found.smallest.distance)


def test_a_member_that_the_step_refuses_is_said_and_no_fault():
    def step(updates):
        if not np.isfinite(updates).all():
            raise ValueError("gradients must be finite")
        return honest(updates)

    found = cp.replay(step, UPDATES, 1.0 / MEMBERS)
    assert not found.has_failed
    assert "refused: not a number (ValueError: gradients must be finite)" in str(found)


def test_bits_of_half_precision_are_within_the_limit():
    step = lambda updates: honest(updates).astype(np.float16)  # noqa: E731
    found = cp.replay(step, UPDATES, 1.0 / MEMBERS)
    assert not found.has_failed
    assert max(case.limit for case in found.cases) > 1.0 / MEMBERS


def test_extremes_of_half_precision_are_finite_and_said():
    members = UPDATES.astype(np.float16)
    longest = max(1.0, np.linalg.norm(members.astype(np.float64), axis=1).max())
    found = cp.replay(lambda updates: honest(updates.astype(np.float64)), members, 1.0 / MEMBERS)
    assert f"{0.99 * 65504 / longest:,.0f} times the longest, along the sum" in str(found)
    summed = cp.replay(lambda updates: updates.astype(np.float64).sum(axis=0), members, 1.0)
    along = next(case.distance for case in summed.cases if "along the sum" in case.member)
    assert along == pytest.approx(0.99 * 65504, rel=1e-3)


@pytest.mark.parametrize("unit", [1e-4, 1.0, 1e4])
def test_the_limit_is_a_share_of_the_sensitivity_in_every_unit(unit):
    long = {"a long one": 1e6 * UPDATES[0]}
    for factor, exceeds in ((1.0009, False), (1.0011, True)):
        found = cp.replay(lambda updates: unit * factor * clipped(updates).sum(axis=0), UPDATES, unit, extremes=long)  # noqa: B023
        assert found.has_failed == exceeds
    # Each of the two sums is rounded to its number format.
    step = lambda updates: (unit * clipped(updates).sum(axis=0)).astype(np.float32)  # noqa: E731
    (case,) = cp.replay(step, UPDATES, unit, extremes=long, tolerance=0.01).cases
    sums = (np.linalg.norm(step(batch)) for batch in (UPDATES, np.vstack([UPDATES, *long.values()])))
    assert case.limit == pytest.approx(1.01 * unit + 2.0**-23 * sum(map(float, sums)), rel=1e-9)


def test_four_members_are_very_long_and_differ():
    seen = []
    cp.replay(lambda updates: seen.append(updates[-1:].sum(axis=0)) or np.zeros(DIM), UPDATES, 1.0)
    lengths = np.array([np.linalg.norm(update) for update in seen[2:]])
    huge = np.unique(np.array(seen[2:])[np.isfinite(lengths) & (lengths > 1e5)], axis=0)
    assert len(huge) == 4
    assert np.linalg.norm(huge, axis=1) == pytest.approx(1e6 * np.linalg.norm(UPDATES, axis=1).max())


def test_members_of_any_kind_are_taken():
    texts = ["a", "bb", "ccc"]
    step = lambda batch: np.array([float(min(2, len(text))) for text in batch] + [0.0]).sum(keepdims=True)  # noqa: E731
    assert not cp.replay(step, texts, 2.0, extremes={"a long text": "x" * 10**6}).has_failed
    assert cp.replay(step, texts, 1.0, extremes={"a long text": "x" * 10**6}).has_failed
    images = np.random.default_rng(0).normal(size=(5, 4, 4))
    assert not cp.replay(lambda batch: clipped(batch.reshape(len(batch), 16)).sum(axis=0), images, 1.0).has_failed


@pytest.mark.parametrize("neighbours", ["add-or-remove", "replace"])
def test_a_replay_prints_what_each_member_changes(neighbours):
    cases = (
        Replayed("one", (0, 1), 0.5, 2.1),
        Replayed("two", (0, 1), 2.5, 2.1),
        Replayed("three", (0, 1), math.nan, 2.1),
        Replayed("four", (0, 1), math.nan, 2.0, "ValueError: no"),
    )
    assert [case.is_excessive for case in cases] == [False, True, True, False]
    beside = [
        "Beside the whole batch:",
        "  changes it by 0.25 of the claim: one",
        "  changes it by 1.25 of the claim: two",
        "  makes a release that is not finite: three",
        "  refused: four (ValueError: no)",
    ]
    act = "Replacing a member" if neighbours == "replace" else "One member more"
    honest = Replay(2.0, neighbours, (cases[0], cases[3]), None)
    answer = (
        f"{act} changes the release by at most 0.25 of the claimed sensitivity in the cases below, and by no more than "
        "claimed, up to the tolerance, in the batches that were drawn."
    )
    assert str(honest).splitlines() == [answer, *beside[:2], beside[4]]
    refuted = Replay(2.0, neighbours, cases, Replayed("five", (7,), 3.0, 2.1))
    assert (honest.has_failed, refuted.has_failed) == (False, True)
    assert str(refuted).splitlines() == [
        f"Refuted: {act.lower()} changes it by 1.5 of the claim.",
        "Smallest batch: five, and 1 other [7]",
        *beside,
    ]
    assert "and 2 others [7, 8]" in str(Replay(2.0, neighbours, cases, Replayed("five", (7, 8), 3.0, 2.1)))
    assert "Smallest batch: five, alone" in str(Replay(2.0, neighbours, cases, Replayed("five", (), 3.0, 2.1)))


@pytest.mark.parametrize("error", [ZeroDivisionError, RuntimeError, IndexError])
def test_a_step_that_refuses_an_empty_batch_is_replayed_with_members(error):
    def refuse(updates):
        if not len(updates):
            raise error("no gradients")
        return updates

    found = cp.replay(lambda updates: honest(refuse(updates)), UPDATES, 1.0 / MEMBERS)
    assert not found.has_failed
    assert str(found).splitlines()[-1] == f"  refused: no member at all ({error.__name__}: no gradients)"
    # Beside one other at least.
    found = cp.replay(lambda updates: refuse(updates).sum(axis=0), UPDATES, 1.0)
    assert found.has_failed
    assert len(found.smallest.batch) == 1
    found = cp.replay(lambda updates: honest(refuse(updates)), UPDATES, 2.0 / MEMBERS, neighbours="replace")
    assert "refused" not in str(found)


EXAMPLES = list(np.random.default_rng(3).normal(size=(24, 6)))
WEIGHTS = np.random.default_rng(4).normal(size=(DIM, 6)) / 10


def contrasted(examples, is_coupled):
    """Clip the gradients of a loss that pulls an example to itself and pushes it away from the others, if coupled."""
    total = np.zeros(DIM)
    outputs = [WEIGHTS @ each for each in examples]
    for i, output in enumerate(outputs):
        others = [np.tanh(output @ other) * other for j, other in enumerate(outputs) if j != i]
        gradient = output - (np.mean(others, axis=0) if is_coupled and others else 0.0)
        total += clipped(gradient[np.newaxis])[0]
    return total


def of_texts(texts, is_padded):
    """Clip the gradients of texts' means: over their own lengths, or over that of the longest in the batch."""
    longest = max(map(len, texts), default=0)
    total = np.zeros(DIM)
    for text in texts:
        counts = np.bincount(text, minlength=DIM)
        total += clipped(4.0 * counts[np.newaxis] / (longest if is_padded else len(text)))[0]
    return total


TEXTS = [np.random.default_rng(seed).integers(DIM, size=6) for seed in range(12)]
LONG = {"a text of 4,096 words": np.random.default_rng(99).integers(DIM, size=4096)}


@pytest.mark.parametrize(
    ("step", "members", "extremes"),
    [(contrasted, EXAMPLES, {"far from all": 30.0 * EXAMPLES[0]}), (of_texts, TEXTS, LONG)],
)
def test_a_loss_that_couples_members_is_found_by_their_examples(step, members, extremes):
    """Each gradient is clipped by itself, so that no look at the gradients sees it."""
    coupled = cp.replay(lambda batch: step(batch, True), members, 1.0, extremes=extremes)
    assert coupled.has_failed
    assert max(case.distance for case in coupled.cases) > 2.0
    assert not cp.replay(lambda batch: step(batch, False), members, 1.0, extremes=extremes).has_failed
