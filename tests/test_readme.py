"""Numbers in the README are typed; these must be those of the code and of the published run."""

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from canaryproof.verify.check.results import Run, Verdict
from canaryproof.verify.cli.command_line import main
from tests.faults import FAULTS

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
RUN = Run.from_json(json.loads((ROOT / "reports/published/results.json").read_text(encoding="utf-8")))


def test_faults_are_counted():
    assert f"seeds {len(FAULTS)} faults" in README
    assert f"notices {len(FAULTS)} seeded faults" in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def test_own_checks_and_false_alarms_are_those_of_the_published_run():
    own = sum(result.subject == "implementation" for result in RUN.results)
    assert f"{own - len(RUN.failures)} of {own} own checks hold" in README
    assert f"run add up to {RUN.false_alarm_probability:.1g}," in README


def test_verdicts_are_counted_as_in_the_published_run():
    counts = Counter(result.verdict for result in RUN.results if result.subject == "document")
    assert ", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict) in README


def block(heading, language, holds):
    """The first block of code below a heading that has some text."""
    blocks = README.partition(f"## {heading}\n")[2].split(f"```{language}\n")[1:]
    return next(code for part in blocks if holds in (code := part.partition("```")[0]))


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    """A folder with what the README's first audit writes on its way."""
    folder = tmp_path_factory.mktemp("release")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        line = block("Audit a run", "sh", "canaryproof canaries").partition("#")[0]
        assert CliRunner().invoke(main, line.split()[1:]).exit_code == 0
        exec(block("Audit a run", "python", "np.save"), {})
        Path("canaries.npy").unlink()
    return folder


def test_the_first_audit_prints_what_is_shown(release, monkeypatch):
    monkeypatch.chdir(release)
    monkeypatch.setenv("COLUMNS", "80")
    line, _, shown = block("Audit a run", "console", "--noise-multiplier").partition("\n")
    assert CliRunner().invoke(main, line.split()[2:]).stdout == shown
    names = {}
    exec(block("Audit a run", "python", "audit_release"), names)
    assert f"{names['found']}\n" == shown
    assert Path("audit.svg").exists()


def test_numbers_from_python_are_those_shown():
    code = block("From Python", "python", "import numpy") + block("From Python", "python", "certified.two")
    names = {}
    for line in code.splitlines():
        statement, _, shown = line.partition("  # ")
        if not shown:
            exec(statement, names)
            continue
        value = eval(statement, names)
        number = shown.partition("…")[0].removeprefix("array([").removeprefix("Enclosure(lo=").replace("−", "-")
        if shown[:5] == "array":
            np.testing.assert_allclose(value, [4.22467889, 1.54386142, 0.54108683], atol=5e-9)
        elif "…" in shown:
            assert repr(float(getattr(value, "lo", value))).startswith(number)
