import multiprocessing
import os
import pickle
import subprocess
import sys
from dataclasses import dataclass, field

import numpy as np
import pytest

from canaryproof.verify.papers.training.data.federation import (
    Federation,
    PerProcess,
    StreamedFederation,
    equal_lots,
    held_out,
)

SIZES = (3, 1, 5)


@pytest.fixture
def federation():
    """Example j of client i is the image of 10 i + j, and so is its label."""
    clients = []
    for i, size in enumerate(SIZES):
        labels = 10 * i + np.arange(size, dtype=np.int32)
        clients.append((np.ones((1, 2, 2, 1), np.float32) * labels[:, None, None, None].astype(np.float32), labels))
    test = clients[:1]
    return Federation.of("numbers", clients, test, classes=30)


def test_of_puts_clients_one_after_the_other(federation):
    assert federation.clients == 3
    np.testing.assert_array_equal(federation.starts, [0, 3, 4, 9])
    np.testing.assert_array_equal(federation.labels, [0, 1, 2, 10, 20, 21, 22, 23, 24])
    np.testing.assert_array_equal(federation.labels[slice(*federation.starts[2:4])], [20, 21, 22, 23, 24])
    np.testing.assert_array_equal(federation.test_labels, [0, 1, 2])
    assert federation.inputs.shape == (9, 2, 2, 1)
    assert federation.starts.dtype == np.int64
    assert federation.vocabulary is None


def test_cohort_takes_the_first_examples_and_masks_the_rest(federation):
    inputs, labels, mask = federation.cohort([2, 1, 0], 4)
    np.testing.assert_array_equal(labels, [[20, 21, 22, 23], [10, 10, 10, 10], [0, 1, 2, 2]])
    np.testing.assert_array_equal(mask, [[1, 1, 1, 1], [1, 0, 0, 0], [1, 1, 1, 0]])
    np.testing.assert_array_equal(inputs[..., 0, 0, 0], labels)
    assert (inputs.shape, inputs.dtype) == ((3, 4, 2, 2, 1), np.float32)
    assert (labels.dtype, mask.dtype) == (np.int32, np.float32)


def test_cohort_of_nobody_and_of_one_twice(federation):
    inputs, labels, mask = federation.cohort(np.zeros(0, np.int64), 4)
    assert (inputs.shape, labels.shape, mask.shape) == ((0, 4, 2, 2, 1), (0, 4), (0, 4))
    np.testing.assert_array_equal(federation.cohort([1, 1], 1)[1], [[10], [10]])


@pytest.mark.parametrize(("count", "each"), [(10, 3), (10, 10), (10, 1), (60_000, 7)])
def test_equal_lots_give_no_example_twice(count, each):
    order, starts = equal_lots(count, each, seed=5)
    np.testing.assert_array_equal(np.diff(starts), each)
    assert (starts[0], starts[-1]) == (0, len(order))
    assert len(order) == count - count % each
    assert len(np.unique(order)) == len(order)
    assert order.min() >= 0
    assert order.max() < count


def test_equal_lots_depend_on_the_seed_alone():
    first, again, other = (equal_lots(1000, 10, seed)[0] for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    # Two shuffles of 1,000 agree in Poisson(1) places: in more than 30 with probability 1e-34.
    assert np.sum(first == other) < 30


@pytest.mark.parametrize("each", [0, -1, 11])
def test_lots_that_cannot_be_dealt_are_refused(each):
    with pytest.raises(ValueError, match=f"examples_per_client must be between 1 and 10, not {each}"):
        equal_lots(10, each, seed=0)


def test_held_out_is_the_last_tenth_of_each():
    clients = [(list(range(size)), [-i for i in range(size)]) for size in (9, 10, 19, 20, 1)]
    kept, held = held_out(clients)
    assert [len(inputs) for inputs, _ in kept] == [9, 9, 18, 18, 1]
    assert [inputs for inputs, _ in held] == [[9], [18], [18, 19]]
    assert [labels for _, labels in held] == [[-9], [-18], [-18, -19]]


def test_data_need_no_library_before_it_is_used():
    names = ", ".join(
        f"canaryproof.verify.papers.training.data.{name}" for name in ("digits", "idx", "leaf", "plays", "tff")
    )
    libraries = {"flax", "google.protobuf", "h5py", "jax", "sklearn"}
    code = f"import sys, {names}; sys.exit(sorted({libraries} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr == "[]\n"


def examples(client):
    labels = 10 * client + np.arange(SIZES[client], dtype=np.int32)
    return np.ones((1, 2, 2, 1), np.float32) * labels[:, None, None, None].astype(np.float32), labels


@dataclass(frozen=True)
class Made:
    """A source in memory that counts what is read."""

    read_so_far: list[int] = field(default_factory=list)
    clients: int = len(SIZES)
    digest: str = "made"

    def read(self, client, most):
        self.read_so_far.append(client)
        return tuple(values[:most] for values in examples(client))


@pytest.fixture
def streamed():
    held_out = examples(0)
    return StreamedFederation("made", Made(), (held_out[0][:1], held_out[1][:1]), *held_out, classes=30)


def test_cohorts_are_those_of_a_federation_in_memory(streamed):
    in_memory = Federation.of("made", [examples(i) for i in range(3)], [examples(0)], 30)
    for clients, count in (([2, 1, 0], 4), ([1, 1], 1), ([0, 2, 0, 2], 9), ([], 3)):
        for found, expected in zip(streamed.cohort(clients, count), in_memory.cohort(clients, count), strict=True):
            np.testing.assert_array_equal(found, expected)
            assert found.dtype == expected.dtype
    assert streamed.clients == in_memory.clients


def test_nobody_is_read_twice_for_a_cohort(streamed):
    streamed.cohort([2, 0, 2, 2, 0], 2)
    assert sorted(streamed.source.read_so_far) == [0, 2]


def test_the_digest_tells_sources_and_held_out_examples_apart(streamed):
    others = [
        StreamedFederation("made", Made(digest="other"), streamed.template, *examples(0), classes=30),
        StreamedFederation("made", Made(), streamed.template, *examples(1), classes=30),
    ]
    assert len({streamed.digest, *(other.digest for other in others)}) == 3


def opened(path):
    return path.open("rb"), os.getpid()


def who_opened(held):
    return held.get()[1], held.get()[0].read(2)


def test_every_process_opens_a_file_for_itself(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"abcd")
    held = PerProcess(opened, path)
    assert held.get() is held.get()
    assert who_opened(held) == (os.getpid(), b"ab")
    with multiprocessing.get_context("fork").Pool(1) as pool:
        process, read = pool.apply_async(who_opened, (held,)).get()
    assert process != os.getpid()
    assert read == b"ab"
    sent = pickle.loads(pickle.dumps(held))
    assert sent.get()[0] is not held.get()[0]
    assert who_opened(sent)[1] == b"ab"
    for one in (held, sent):
        one.get()[0].close()


def test_a_file_that_was_forked_is_not_shared(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"abcd")
    held = PerProcess(opened, path)
    file, _ = held.get()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writer, bytes([held.get()[0] is not file, held.get()[1] == os.getpid()]))
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reader, 2) == b"\1\1"
    for end in (reader, writer):
        os.close(end)
    file.close()
