import os
import pickle
import subprocess
import sys
from dataclasses import replace

import made
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from canaryproof.verify.audit.files.errors import InputError
from canaryproof.verify.papers.training import assembly
from canaryproof.verify.papers.training.configuration import read as read_configuration
from canaryproof.verify.papers.training.data import tff
from canaryproof.verify.papers.training.data.federation import check_same

RELEASES = ("hdf5", "sqlite")
DATA = replace(read_configuration("presentations", "quick").cells[0].settings.data, format="tff", length=6, words=4)
WRITERS, TEST_WRITERS = made.images([3, 1, 5]), made.images([2, 1, 4], seed=1)
USERS, TEST_USERS = made.sentences([3, 1, 40]), made.sentences([2, 30], seed=1)


@pytest.mark.parametrize("release", RELEASES)
def test_federated_emnist(tmp_path, release):
    federation = assembly.federation(DATA, made.emnist(tmp_path, release, WRITERS, TEST_WRITERS), 0)
    assert (federation.name, federation.clients, federation.classes) == ("federated_emnist", 3, 62)
    assert (federation.vocabulary, federation.unscored, federation.vectors) == (None, (), None)
    inputs, labels, mask = federation.cohort([2, 0], 4)
    assert (inputs.shape, inputs.dtype, labels.dtype) == ((2, 4, 28, 28, 1), np.float32, np.int32)
    pixels, classes = WRITERS["f0002_02"]
    np.testing.assert_array_equal(inputs[0, ..., 0], pixels[:4])
    np.testing.assert_array_equal(labels[0], classes[:4])
    np.testing.assert_array_equal(mask, [[1, 1, 1, 1], [1, 1, 1, 0]])
    assert inputs[0, 0, -1, -1, 0] != 1.0
    assert inputs[..., 23:26, :, :].min() == 1.0
    np.testing.assert_array_equal(federation.test_inputs[..., 0], np.concatenate([p for p, _ in TEST_WRITERS.values()]))
    np.testing.assert_array_equal(federation.test_labels, np.concatenate([y for _, y in TEST_WRITERS.values()]))
    np.testing.assert_array_equal(federation.test_starts, [0, 2, 3, 7])
    assert [one.shape for one in federation.template] == [(1, 28, 28, 1), (1,)]


def test_the_digits_alone_have_ten_classes(tmp_path, refusal):
    digits = made.images([2, 2], classes=10)
    federation = tff.load(made.emnist(tmp_path, "hdf5", digits, digits, digits=True), 6, 4)
    assert (federation.name, federation.classes) == ("federated_emnist", 10)
    made.emnist(tmp_path / "b", "hdf5", WRITERS, WRITERS, digits=True)
    said = refusal(tff.load, tmp_path / "b", 6, 4)
    assert said == "fed_emnist_digitsonly_test.h5: client 'f0000_00': label must be from 0 to 9"


@pytest.mark.parametrize("release", RELEASES)
def test_stackoverflow(tmp_path, release):
    federation = assembly.federation(DATA, made.stackoverflow(tmp_path, release, USERS, TEST_USERS), 0)
    assert (federation.name, federation.clients) == ("stackoverflow", 3)
    assert federation.classes == federation.vocabulary == 8
    assert federation.unscored == (5, 7)
    inputs, labels, mask = federation.cohort([1, 2], 2)
    assert (inputs.dtype, labels.dtype, inputs.shape, mask.tolist()) == (
        np.int32,
        np.int32,
        (2, 2, 6),
        [[1, 0], [1, 1]],
    )
    tokens = {word: token for token, word in enumerate(made.WORDS[:4], 1)}
    # The order of names is that of their digits: 00000000, 00007919, 00015838.
    for row, sentence in zip(inputs[1], USERS["00015838"], strict=False):
        spelt = [6, *(tokens.get(word, 5) for word in sentence.split(" ")), 7, 0, 0, 0, 0, 0, 0]
        np.testing.assert_array_equal(row, spelt[:6])
    assert federation.test_inputs.shape == (32, 6)
    assert (federation.test_labels == -1).any()
    order = [0, 1]
    np.random.RandomState(0).shuffle(order)
    np.testing.assert_array_equal(np.diff(federation.test_starts), np.array([2, 30])[order])


def test_validation_takes_shuffled_users_one_after_another(tmp_path, monkeypatch):
    monkeypatch.setattr(tff, "VALIDATION", 25)
    users = made.sentences([10, 7, 9, 4, 8], seed=2)
    federation = tff.load(made.stackoverflow(tmp_path, "sqlite", USERS, users), 6, 4)
    names = sorted(users)
    np.random.RandomState(0).shuffle(names)
    in_order = [sentence for name in names for sentence in users[name]][:25]
    vocabulary = tff.tokens.read_words(tmp_path / tff.WORD_COUNTS, 4)
    expected = vocabulary.examples([sentence.encode() for sentence in in_order], 6)
    np.testing.assert_array_equal(federation.test_inputs, expected[0])
    np.testing.assert_array_equal(federation.test_labels, expected[1])
    assert federation.test_starts[-1] == 25
    assert federation.test_starts[-2] < 25


COUNTS = st.lists(st.integers(1, 20), min_size=1, max_size=6)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=settings().max_examples // 4)
@given(COUNTS, COUNTS, st.integers(0, 2**32 - 1), st.data())
def test_both_releases_of_the_same_data_agree(tmp_path, counts, test_counts, seed, data):
    write, make = data.draw(st.sampled_from([(made.emnist, made.images), (made.stackoverflow, made.sentences)]))
    given_data = make(counts, seed=seed), make(test_counts, seed=seed + 1)
    for place in tmp_path.glob("*/*"):
        place.unlink()
    federations = [tff.load(write(tmp_path / release, release, *given_data), 6, 4) for release in RELEASES]
    cohort, examples = data.draw(st.lists(st.integers(0, len(counts) - 1))), data.draw(st.integers(1, 25))
    for one, other in zip(*(federation.cohort(cohort, examples) for federation in federations), strict=True):
        np.testing.assert_array_equal(one, other)
    for name in ("test_inputs", "test_labels", "test_starts"):
        np.testing.assert_array_equal(*(getattr(federation, name) for federation in federations))


@pytest.mark.parametrize("release", [pytest.param(RELEASES[0], marks=pytest.mark.deep), *RELEASES[1:]])
def test_what_is_sent_to_a_worker_reads_the_same(tmp_path, release):
    folder = made.stackoverflow(tmp_path / "a", release, USERS, TEST_USERS)
    federation = tff.load(folder, 6, 4)
    expected = federation.cohort([0, 2], 3)
    sent = pickle.loads(pickle.dumps(federation))
    for one, other in zip(expected, sent.cohort([0, 2], 3), strict=True):
        np.testing.assert_array_equal(one, other)
    check_same(tff.load(folder, 6, 4), sent.digest, folder)
    # Neither other sentences, nor another vocabulary, nor another length.
    other = made.stackoverflow(tmp_path / "b", release, made.sentences([3, 1, 41]), TEST_USERS)
    for changed in (tff.load(other, 6, 4), tff.load(folder, 6, 5), tff.load(folder, 7, 4)):
        with pytest.raises(InputError, match="holds other data than where the command runs"):
            check_same(changed, sent.digest, folder)


def test_folders_without_one_release_are_refused(tmp_path, refusal):
    assert refusal(tff.load, tmp_path, 6, 4).startswith(
        ": must hold a release of TFF's, of files emnist_all.sqlite, fed_"
    )
    for name, tool in (("emnist_all.sqlite.lzma", "unlzma"), ("fed_emnist.tar.bz2", "tar -xjf")):
        (tmp_path / name).write_bytes(b"packed")
        assert refusal(tff.load, tmp_path, 6, 4) == f"{name}: must be unpacked by {tool}, to be read at any place"
        (tmp_path / name).unlink()
    made.emnist(tmp_path, "hdf5", WRITERS, WRITERS)
    (tmp_path / "fed_emnist_test.h5").unlink()
    assert refusal(tff.load, tmp_path, 6, 4) == ": must hold a file fed_emnist_test.h5"
    (tmp_path / "emnist_all.sqlite").write_bytes(b"")
    assert refusal(tff.load, tmp_path, 6, 4) == ": must hold one release, not fed_emnist_train.h5, emnist_all.sqlite"
    assert refusal(tff.load, tmp_path / "none", 6, 4) == ": must be a folder"


def test_without_word_counts_the_file_is_named(tmp_path, refusal):
    folder = made.stackoverflow(tmp_path, "sqlite", USERS, TEST_USERS)
    (folder / tff.WORD_COUNTS).rename(folder / f"{tff.WORD_COUNTS}.tar.bz2")
    assert refusal(tff.load, folder, 6, 4) == (
        ": must hold a file stackoverflow.word_count, unpacked from stackoverflow.word_count.tar.bz2 by tar -xjf"
    )


@pytest.mark.parametrize(("release", "module"), [("hdf5", "h5py"), ("sqlite", "google.protobuf")])
def test_a_missing_library_is_named(tmp_path, monkeypatch, refusal, release, module):
    folder = made.emnist(tmp_path, release, WRITERS, WRITERS)
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.delitem(sys.modules, f"canaryproof.verify.papers.training.data.tff_{release}", raising=False)
    assert refusal(tff.load, folder, 6, 4).endswith(f": needs {module.removeprefix('google.')}, of the extra federated")


@pytest.mark.deep
def test_342477_clients_take_little_memory(tmp_path):
    # A tenth of them, unless all is tested at length; what they take is proportional.
    clients = 342_477 if os.environ.get("HYPOTHESIS_PROFILE") == "deep" else 34_248
    users = {f"{i:08}": ["the median is in sql ."] for i in range(clients)}
    made.stackoverflow(tmp_path, "sqlite", users, USERS)
    code = (
        "import sys, pathlib, numpy\n"
        "from canaryproof.verify.papers.training.data import tff, tff_sqlite\n"
        "def now():\n"
        "    return int(pathlib.Path('/proc/self/status').read_text().split('VmHWM:')[1].split()[0]) / 1024\n"
        "before = now()\n"
        "federation = tff.load(pathlib.Path(sys.argv[1]), 20, 4)\n"
        "federation.cohort(numpy.arange(0, federation.clients, 1000), 256)\n"
        "print(federation.clients, now() - before)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, tmp_path], capture_output=True, text=True, check=True)
    found, megabytes = done.stdout.split()
    assert int(found) == clients
    # 2 GB for 342,477.
    assert float(megabytes) < 2048 * clients / 342_477
