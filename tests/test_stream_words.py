import subprocess
import sys

import numpy as np
import pytest
from click.testing import CliRunner

from canaryproof.verify.papers.suites.stream_quality.quality import LENGTH, read_stretch
from tests.stream_words import main

COMMAND = [sys.executable, "-m", "tests.stream_words"]


@pytest.mark.parametrize(("interleaving", "second"), [("one canary", 256), ("canaries", 1), ("canary and noise", 128)])
def test_words_are_the_stream_s_lowest_byte_first(interleaving, second):
    result = CliRunner().invoke(main, ["--interleaving", interleaving, "--seed", "9", "--stretches", "2"])
    assert result.exit_code == 0
    words = np.frombuffer(result.stdout_bytes, "<u4")
    assert np.array_equal(words[:LENGTH], read_stretch(interleaving, (9, 0, 0, 0))[0])
    assert np.array_equal(words[LENGTH:], read_stretch(interleaving, (9, 0, 0, second))[0])


def test_a_reader_that_has_enough_is_no_error():
    with subprocess.Popen(COMMAND, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert len(process.stdout.read(6_000_000)) == 6_000_000
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 0


def test_bad_options():
    assert CliRunner().invoke(main, ["--interleaving", "backwards"]).exit_code == 2
    assert CliRunner().invoke(main, ["--seed", str(2**64)]).exit_code == 2
