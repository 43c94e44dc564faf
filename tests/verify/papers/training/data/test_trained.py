"""From files in the true formats to an audit, at toy size."""

import pytest
from made_images import celeba, cifar10_binary, sent140, shakespeare

from canaryproof.verify.papers.training import configuration
from canaryproof.verify.papers.training.experiment import Experiment

TEXT = """
[data]
format = "{format}"
examples_per_client = 4
length = 25
side = 16

[model]
name = "{model}"
hidden = 4

[training]
cohort = 4
epochs = 2
client_rate = 0.1
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


@pytest.mark.deep(beyond=1)
@pytest.mark.parametrize(
    ("make", "data_format", "model", "clients", "held_out"),
    [
        (cifar10_binary, "cifar10", "two_layer", 5, 4),
        (celeba, "leaf", "two_layer", 4, 4),
        # Compiles for longer.
        pytest.param(shakespeare, "leaf", "char_lstm", 4, 24, marks=pytest.mark.deep),
    ],
)
def test_experiments_run_on_it(tmp_path, make, data_format, model, clients, held_out):
    data, out, path = tmp_path / "data", tmp_path / "out", tmp_path / "x.toml"
    for folder in (data, out):
        folder.mkdir()
    make(data)
    path.write_text(TEXT.format(format=data_format, model=model))
    document, _ = Experiment(configuration.read(str(path), "quick"), data).run(out, lambda *_: None)
    [cell] = document.cells
    assert (cell.clients, cell.test_examples) == (clients, held_out)
    assert cell.analytical.epsilon == pytest.approx(30.0)


@pytest.mark.parametrize("make", [cifar10_binary, celeba, sent140, shakespeare])
def test_made_data_is_the_same_for_the_same_seed(tmp_path, make):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        (tmp_path / name).mkdir()
        make(tmp_path / name, seed=seed)
    contents = [
        {
            path.relative_to(tmp_path / name): path.read_bytes()
            for path in (tmp_path / name).rglob("*")
            if path.is_file()
        }
        for name in "abc"
    ]
    assert contents[0] == contents[1] != contents[2]
