import multiprocessing
import os
import pickle
from dataclasses import dataclass, field

import numpy as np
import pytest

from canaryproof.verify.training.data.federation import Federation, PerProcess, StreamedFederation

SIZES = (3, 1, 5)


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
        process, read = pool.apply_async(who_opened, (held,)).get(timeout=60)
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
