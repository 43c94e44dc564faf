"""What a command loads: users wait for it, and import errors of heavy libraries reach only those who need them."""

import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from canaryproof.verify.command_line import COMMANDS, main

RUN = """
import sys
from canaryproof.verify.command_line import main
try:
    main({arguments!r}, prog_name="canaryproof")
except SystemExit as end:
    assert not end.code, end.code
"""
OURS = 'n.startswith("canaryproof") and str(getattr(m, "__file__", "")).endswith(".py")'
PRINT = f'\nprint(*(n for n, m in sys.modules.items() if {OURS} or "." not in n), file=sys.stderr)\n'


def loaded(code):
    """Names of our modules and of all packages that a fresh interpreter has after some code."""
    done = subprocess.run([sys.executable, "-c", "import sys\n" + code + PRINT], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return set(done.stderr.splitlines()[-1].split())


def test_help_loads_no_library_that_computes_and_none_of_the_commands():
    names = loaded(RUN.format(arguments=["--help"]))
    assert not names & {"numpy", "scipy", "numba", "rich", "matplotlib", "jax", "dask"}
    assert {name for name in names if name.startswith("canaryproof.verify.")} == {
        "canaryproof.verify.audit",
        "canaryproof.verify.audit.cli",
        "canaryproof.verify.audit.cli.options",
        "canaryproof.verify.audit.cli.terminal",
        "canaryproof.verify.audit.files",
        "canaryproof.verify.audit.files.errors",
        "canaryproof.verify.audit.rules",
        "canaryproof.verify.command_line",
    }


def test_instruments_stand_beside_any_trainer():
    """They need numpy and scipy alone, whatever versions of other libraries a trainer pins."""
    names = loaded("""
from canaryproof import ResidualTests, SamplingTests, replay
residuals, sampling = ResidualTests(1.0, 100), SamplingTests(0.5, 10)
residuals.add([0.5] * 100)
sampling.add([1, 2])
residuals.tests(), sampling.tests()
""")
    assert {"numpy", "scipy"} <= names
    assert not names & {"numba", "pandas", "mpmath", "flint", "dp_accounting", "cattrs", "click", "rich", "matplotlib"}


def test_help_takes_little_more_than_python_and_click():
    def seconds(code):
        done = subprocess.run(
            [
                sys.executable,
                "-c",
                f"{code}\nimport os, sys; print(os.times().user + os.times().system, file=sys.stderr)",
            ],
            capture_output=True,
            text=True,
            check=True,
        )
        return float(done.stderr.splitlines()[-1])

    # The least of a few: other processes only add to it.
    least = [min(seconds(code) for _ in range(5)) for code in ("import click", RUN.format(arguments=["--help"]))]
    assert least[1] - least[0] <= 0.1


def test_an_audit_of_cosines_loads_few_of_our_modules_and_no_tables(tmp_path):
    file = tmp_path / "cosines.csv"
    file.write_text("0.01\n0.02\n-0.03\n0.05\n0.1\n")
    names = loaded(RUN.format(arguments=["audit", str(file), "--dim", "1000", "--delta", "1e-6"]))
    ours = sorted(name for name in names if name.startswith("canaryproof."))
    # Seven of them have a few lines each: kernels.arrays, kernels.public, successors, files.errors, files.writing,
    # markup.digits and accounting.sampling. Four make the findings and the decision,
    # two let nothing drive the terminal and take a watch's record, and one knows the names of other tools' columns.
    # Two take arguments in, and one loads rich. One tells the kinds of input apart, one has the bounds that are proven
    # however scores depend on each other,
    # one reads scores from a file of any form, and two are the kinds of FILE and the options of releases.
    # Two more have bounds: the weights of guesses, and ranks among unobserved scores.
    assert len(ours) <= 74, ours
    study = ("canaryproof.verify.papers", "canaryproof.proofs_check", "canaryproof.reports")
    assert not [name for name in ours if name.startswith(study)]
    assert not names & {"pandas", "statsmodels", "matplotlib"}


def test_a_training_loop_that_keeps_scores_loads_no_command_line_and_no_run_file():
    names = loaded("from canaryproof.verify.audit.canaries.round_scores import RoundScores")
    assert not names & {"click", "rich", "sqlite3"}
    assert not [
        name for name in names if name.startswith(("canaryproof.verify.audit.cli", "canaryproof.verify.audit.engine"))
    ]


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_of_commands_says_what_their_help_says(name):
    command = main.get_command(click.Context(main), name)
    assert COMMANDS[name][1] == click.Command(name, help=command.help).get_short_help_str(200)
    assert COMMANDS[name][1][:40] in CliRunner().invoke(main, ["--help"]).stdout
