import pytest
from click.testing import CliRunner

from tests.faults import FAULTS
from tests.faults.fault import seeded
from tests.stream_quality import main


def test_the_command_prints_every_interleaving_and_exits_with_0():
    result = CliRunner().invoke(main, ["--coordinates", "5e6", "--seed", "3"])
    assert result.exit_code == 0, result.output
    for text in ("one canary", "canaries", "high bits of seeds", "5,242,880 coordinates", "nothing found", "281 tests"):
        assert text in result.output


def test_the_command_exits_with_1_where_a_test_fails():
    with seeded(FAULTS["stream.24-bits"]):
        result = CliRunner().invoke(main, ["--coordinates", "1"])
    assert result.exit_code == 1
    assert "the stream fails" in result.output


@pytest.mark.parametrize("option", [["--coordinates", "0"], ["--seed", "-1"]])
def test_bad_options(option):
    assert CliRunner().invoke(main, option).exit_code == 2
