import json

import made
import pytest
from click.testing import CliRunner

from canaryproof.verify.command_line import main

TEXT = """
title = "TFF's federated EMNIST, small"

[data]
format = "tff"
examples_per_client = 6

[model]
name = "small_cnn"
hidden = 8

[training]
participation = "uniform"
cohort = 4
rounds = 2
client_rate = 0.031
batch_size = 4
server_rate = 1.0
clip_norm = 0.5
one_round_epsilon = 30

[canaries]
count = 20
participation = "periods"

[audit]
delta = 1e-3
"""


WRITERS, TEST_WRITERS = made.images([5, 8, 2, 7, 6, 3]), made.images([2] * 6, seed=1)


def train(place, data, *options):
    arguments = [place / "small.toml", "--data", data, "--out", place / "out", *options]
    return CliRunner().invoke(main, ["train", *map(str, arguments)], prog_name="canaryproof")


@pytest.mark.deep
def test_a_training_on_a_release_and_on_no_other_data(tmp_path):
    (tmp_path / "small.toml").write_text(TEXT)
    data = made.emnist(tmp_path / "data", "sqlite", WRITERS, TEST_WRITERS)
    result = train(tmp_path, data)
    assert (result.exit_code, result.stderr) == (0, "")
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    assert (results["title"], len(results["cells"])) == ("TFF's federated EMNIST, small", 1)
    result = train(tmp_path, data, "--resume")
    assert (result.exit_code, result.stderr) == (0, "")
    made.emnist(tmp_path / "other", "sqlite", made.images([5, 8, 2, 7, 6, 3], seed=5), TEST_WRITERS)
    result = train(tmp_path, tmp_path / "other", "--resume")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == f"Error: {tmp_path / 'out'}: --resume: was begun with another data\n"


def test_a_damaged_client_is_told_in_a_line_when_its_turn_comes(tmp_path):
    (tmp_path / "small.toml").write_text(TEXT)
    writers = {name: (pixels - 1, labels) for name, (pixels, labels) in WRITERS.items()}
    result = train(tmp_path, made.emnist(tmp_path / "data", "hdf5", writers, TEST_WRITERS))
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (2, "", 1)
    assert result.stderr.startswith(f"Error: {tmp_path / 'data' / 'fed_emnist_train.h5'}: client 'f000")
    assert result.stderr.endswith(": pixels must be between 0 and 1\n")
