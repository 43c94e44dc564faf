"""No name, report or plan drives a terminal, or hides words of a page."""

import io
import itertools
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from rich.table import Table

from canaryproof.verify.audit.answer import report
from canaryproof.verify.audit.cli import terminal
from canaryproof.verify.audit.cli.console import Console
from canaryproof.verify.audit.rules import printable
from canaryproof.verify.command_line import main

# Clears the screen and goes on in green; turns words round; the same by one character; ends a line.
HOSTILE = "a\x1b[2J\x1b[32mtrue\u202e\x9b31m\r\x07\x00"
NAME = "x\x1b[2J\n```\n<img src=y onerror=alert(1)>\u202e"
SCORES = np.random.default_rng(0).normal(1.0, 1.0, 60), np.random.default_rng(1).normal(size=50)


def is_harmless(text):
    return all(line.replace("\t", "").isprintable() for line in text.split("\n"))


@given(st.text())
def test_what_is_printable_stays_and_nothing_else_does(text):
    shown = printable(text)
    assert is_harmless(shown)
    assert printable(shown) == shown
    assert shown.count("\n") == text.count("\n")
    if is_harmless(text):
        assert shown == text


@given(st.lists(st.text()))
def test_a_stream_lets_no_other_character_through(texts):
    raw = io.StringIO()
    stream = terminal.PrintableStream(raw)
    for text in texts:
        assert stream.write(text) == len(text)
    stream.writelines(texts)
    assert raw.getvalue() == printable("".join(texts)) * 2
    assert not stream.closed


def test_a_table_has_the_colours_of_the_console_and_none_of_its_cells(monkeypatch):
    raw = io.StringIO()
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr(sys, "stdout", terminal.PrintableStream(raw))
    table = Table("name")
    table.add_row(HOSTILE, style="red")
    console = Console()
    console.print(table)
    console.print(HOSTILE, markup=False)
    shown = raw.getvalue()
    assert "\x1b[31m" in shown
    assert is_harmless(re.sub(r"\x1b\[[\d;]*m", "", shown))
    assert r"\x1b[2J" in shown


def test_what_users_code_prints_is_its_own(monkeypatch):
    raw = io.StringIO()
    monkeypatch.setattr(sys, "stderr", raw)
    with terminal.printable_streams():
        with terminal.streams_of_user():
            sys.stdout.write("\r50%")
            sys.stderr.write("\rdone")
        sys.stderr.write("\r")
    assert raw.getvalue() == "\r50%\rdone\\r"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savez("scores.npz", observed=SCORES[0], unobserved=SCORES[1])
    return tmp_path


def call(*arguments):
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit)
    assert is_harmless(result.output)
    return result


ASKED = ("--kind", "any", "--delta", "1e-5")


@pytest.mark.usefixtures("folder")
def test_a_report_of_a_file_with_a_hostile_name_has_it_escaped_and_is_true():
    name = f"{NAME}.npz"
    shutil.copy("scores.npz", name)
    for suffix in (".md", ".html", ".json"):
        assert call("audit", name, *ASKED, "--report", f"r{suffix}").exit_code == 0
        page = Path(f"r{suffix}").read_text()
        assert is_harmless(page)
        shown = call("check-report", f"r{suffix}", "--scores", name)
        assert shown.exit_code == 0
        # The name begins no line of its own.
        assert len(shown.stdout.splitlines()) == 2
    # Outside of its own fence no line ends it, and tags are words.
    markdown = Path("r.md").read_text()
    assert [line for line in markdown.splitlines() if line.startswith("```")] == ["```sh", "```"]
    fenced = re.search("(?s)```sh\n(.*?)\n```", markdown)[1].splitlines()
    assert [line.split()[:2] for line in fenced] == [["canaryproof", "audit"], ["canaryproof", "check-report"]]
    assert "<img" not in Path("r.html").read_text()


@pytest.mark.usefixtures("folder")
def test_a_file_whose_name_is_no_utf8_has_a_page():
    name = b"rel\xff.npz"
    try:
        Path(name.decode(errors="surrogateescape")).write_bytes(Path("scores.npz").read_bytes())
    except OSError:
        pytest.skip("the file system has names in UTF-8 alone")
    assert call("audit", name.decode(errors="surrogateescape"), *ASKED, "--report", "r.html").exit_code == 0
    assert r"$'rel\xff.npz'" in Path("r.html").read_text().replace("&#39;", "'")


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
@pytest.mark.parametrize("word", [NAME, HOSTILE[:-1], "a b'c", "it's\t\\", "ε\u2028'", "a\udcffb", "-x", ""])
def test_a_shell_reads_a_word_as_it_was(word):
    shown = subprocess.run(["bash", "-c", f"printf %s {report.quote(word)}"], capture_output=True, check=True).stdout
    assert shown == word.encode(errors="surrogateescape")
    assert report.quote(word).isprintable()


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("step", [11, pytest.param(1, marks=pytest.mark.deep)])
def test_no_word_of_a_report_or_a_plan_reaches_a_terminal_raw(step):
    decided = ("--noise-multiplier", "1.5", "--dim", "1000", "--rounds", "3", "--all-rounds")
    assert call("plan", *decided, "--out", "plan.json").exit_code == 0
    np.savez("cosines.npz", observed=SCORES[0] / 1e3, unobserved=SCORES[1] / 1e3)
    asked = ("cosines.npz", "--delta", "1e-5", "--plan", "plan.json")
    assert call("audit", *asked, "--report", "r.json").exit_code == 0
    document, plan = (json.loads(Path(name).read_text()) for name in ("r.json", "plan.json"))

    def hostile(value):
        """Every text of a document, one at a time."""
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            if isinstance(inner, str):
                other = HOSTILE if key != "schema" else inner + HOSTILE
                yield {**value, key: other} if isinstance(value, dict) else [*value[:key], other, *value[key + 1 :]]
            if isinstance(inner, dict | list):
                for changed in hostile(inner):
                    yield {**value, key: changed} if isinstance(value, dict) else [*value[:key], changed]

    parts = ("schema", "answer", "attacker", "request", "input", "plan", "repeat", "versions")
    for changed in itertools.islice(hostile({name: document[name] for name in parts}), 0, None, step):
        Path("forged.json").write_text(report.dump(report.seal(document | changed)) + "\n")
        assert call("check-report", "forged.json", "--scores", "cosines.npz").exit_code in (1, 2, 3)
        call("model-card", "forged.json")
    for changed in itertools.islice(hostile(plan["decided"]), 0, None, step):
        Path("plan.json").write_text(json.dumps(plan | {"decided": changed}))
        call("audit", *asked)
