"""No command prints more on a terminal of 80 columns than 40 lines of its own accord, and none of them is broken."""

import fcntl
import logging
import os
import pty
import re
import shlex
import shutil
import struct
import sys
import termios
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from canaryproof.kernels.canaries import Canaries
from canaryproof.verify.audit.cli import progress
from canaryproof.verify.command_line import main
from canaryproof.verify.papers.cli import verify_command
from canaryproof.verify.papers.cli.screen import MOST_LINES, WIDTH, narrow_table

EXAMPLES = Path(__file__).parents[2] / "examples"
TINY = Path(__file__).parent / "tiny.toml"


class Terminal:
    """Calls commands whose stdout and stderr are one terminal."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch
        monkeypatch.setenv("COLUMNS", str(WIDTH))
        monkeypatch.setenv("TERM", "xterm-256color")
        self.after_bar(3600.0)

    def after_bar(self, seconds: float) -> None:
        """Show a bar of progress after so many seconds: what it draws is gone when the command ends."""
        self._monkeypatch.setattr(progress, "_BAR_AFTER", seconds)

    def call(self, command: str) -> tuple[int, str]:
        """Return the exit status and what was printed, with the codes that drive the terminal."""
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, WIDTH, 0, 0))
        read: list[bytes] = []
        reader = threading.Thread(target=lambda: read.extend(_read(ours)))
        reader.start()
        with self._monkeypatch.context() as streams, os.fdopen(theirs, "w", encoding="utf-8") as stream:
            streams.setattr(sys, "stdout", stream)
            streams.setattr(sys, "stderr", stream)
            with pytest.raises(SystemExit) as ended:
                main(shlex.split(command), prog_name="canaryproof")
        reader.join()
        os.close(ours)
        assert isinstance(ended.value.code, int)
        return ended.value.code, b"".join(read).decode().replace("\r\n", "\n")

    def lines(self, command: str, status: int = 0) -> list[str]:
        """Return the lines of a command, which fit one screen."""
        found, text = self.call(command)
        assert found == status, text
        # No code of a terminal, and none that was made printable.
        assert "\x1b" not in text
        assert r"\x1b" not in text
        shown = text.splitlines()
        assert len(shown) <= MOST_LINES, text
        # An accent takes no column, and a name, such as that of a test, is not broken however long it is.
        broken = [line for line in shown if max(map(len, line.split()), default=0) < WIDTH - 12]
        assert max(len(line.replace("\u0302", "")) for line in broken) <= WIDTH, text
        return shown


def _read(descriptor: int) -> Iterator[bytes]:
    while True:
        try:
            part = os.read(descriptor, 2**16)
        except OSError:
            # The other side is closed.
            return
        if not part:
            return
        yield part


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    return Terminal(monkeypatch)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An honest release, one with an eighth of its noise, and scores with labels; each as a user has it."""
    folder, rng = tmp_path_factory.mktemp("files"), np.random.default_rng(1)
    canaries = Canaries(7, 300, 5000).sum(np.arange(300))
    for name, noise in (("honest", 1.54), ("broken", 0.2)):
        np.save(folder / f"{name}.npy", canaries + rng.normal(0.0, noise, 5000))
    member = np.arange(400) % 2
    scores = rng.normal(0.8 * member).tolist()
    rows = (f"{score},{taken}" for score, taken in zip(scores, member.tolist(), strict=True))
    (folder / "scores.csv").write_text("\n".join(["score,member", *rows]))
    (folder / "counts.csv").write_text("m,r,v\n1000,100,97\n1000,200,170\n")
    shutil.copy(TINY, folder)
    return folder


MADE = "--canaries 300 --canary-seed 7 --delta 1e-6 --noise-multiplier 1.54"
deep = pytest.mark.deep
COMMANDS = [
    ("", 0),
    (f"audit honest.npy {MADE} --fail-above-claim", 0),
    (f"audit broken.npy {MADE} --fail-above-claim --confidence 0.99 --ask input --ask leak --ask noise", 1),
    pytest.param("audit scores.csv --delta 1e-5 --claim 3 --fail-above-claim", 3, marks=deep),
    ("review scores.csv --delta 1e-5 --epsilon 1.6", 0),
    pytest.param("review counts.csv --delta 1e-5 --epsilon 1.6", 0, marks=deep),
    ("plan --noise-multiplier 1.54 --dim 1e5", 0),
    pytest.param("plan --noise-multiplier 1.54 --dim 1e5 --confidence 0.999 --notice 0.8 --claim 5", 0, marks=deep),
    pytest.param("plan --noise-multiplier 1 --dim 1e5 --rounds 100 --all-rounds", 0, marks=deep),
    pytest.param("plan --noise-multiplier 1 --dim 1e8 --rounds 1000 --all-rounds --delta 1e-9", 0, marks=deep),
    pytest.param("plan --noise-multiplier 1 --dim 1e5 --rounds 100 --rate 0.01 --data-norm 1", 0, marks=deep),
    pytest.param("plan --noise-multiplier 1 --dim 1e5 --rounds 100 --participations 3", 0, marks=deep),
    pytest.param("claims", 0, marks=deep),
    *(pytest.param(f"claims {name}", 0, marks=deep) for name in ("v1", "submission", "review", "canife", "own")),
    pytest.param("claims --verdict qualified", 0, marks=deep),
    ("claims final", 0),
    pytest.param("claims final.table2", 0, marks=deep),
    pytest.param("claims final.table4.epochs", 0, marks=deep),
    pytest.param("claims v1.section3", 0, marks=deep),
    pytest.param("claims own.gate", 0, marks=deep),
    pytest.param("convergence", 0, marks=deep),
    pytest.param("convergence --dim 1000 --canaries 30 --epsilon 2 --replicates 200", 0, marks=deep),
    pytest.param("benchmark canife", 0, marks=deep),
    pytest.param(f"self-test {EXAMPLES / 'self_test_loop.py'}:training", 0, marks=deep),
    ("warm-up --help", 0),
    pytest.param("warm-up", 0, marks=deep),
]


@pytest.mark.parametrize(("command", "status"), COMMANDS)
def test_a_command_fits_one_screen(
    terminal: Terminal, files: Path, monkeypatch: pytest.MonkeyPatch, command: str, status: int
) -> None:
    monkeypatch.chdir(files)
    terminal.lines(command, status)


@pytest.mark.deep
def test_a_report_its_check_and_its_card_fit_one_screen(
    terminal: Terminal, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(files)
    name = "a_report_with_a_long_name.json"
    terminal.lines(f"audit broken.npy {MADE} --fail-above-claim --report {name}", 1)
    true = terminal.lines(f"check-report {name} --release broken.npy")
    assert any(line.startswith(name) for line in true)
    card = terminal.lines(f"model-card {name}")
    facts = [line[:24].rstrip() for line in card if line[:1].strip() and line[23:24] == " "]
    assert {"claim", "decision", "noise", "leak", "would have been noticed"} <= set(facts)
    # What is printed can be typed, and makes the section of Markdown.
    assert card[-1] == f"  canaryproof model-card {name} > card.md"


@pytest.mark.deep
def test_a_training_fits_one_screen(terminal: Terminal, files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("jax")
    monkeypatch.chdir(files)
    terminal.lines("train tiny.toml --estimate")
    lines = terminal.lines("train tiny.toml --out out")
    assert lines[-1] == "Results: out"
    assert not any("…" in line for line in lines[:-2])


def test_a_run_of_all_suites_fits_one_screen(quick_run) -> None:  # type: ignore[no-untyped-def]
    shown = verify_command._summary(quick_run.run, Path("runs/quick"), {})
    assert len(shown) <= MOST_LINES
    assert max(map(len, shown)) <= WIDTH


def test_what_is_logged_stands_below_a_bar_on_a_line_of_its_own(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal.after_bar(0.0)

    def slow() -> None:
        with progress.progress("canaryproof", equal_parts=False) as advance:
            advance("drawing", 1, 2)
            drawn = threading.Event()
            drawn.wait(0.2)
            logging.getLogger("canaryproof").info("compiling")
            drawn.wait(0.2)

    monkeypatch.setattr("canaryproof.verify.audit.cli.warm_up_command.warm_up_command.callback", slow)
    status, text = terminal.call("warm-up")
    assert status == 0
    assert "drawing" in text
    drawn = [re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", line) for line in re.split(r"[\r\n]+", text)]
    assert "canaryproof: compiling" in drawn


def test_a_table_breaks_cells_at_blanks_and_no_word() -> None:
    header = ("one round epsilon", "noise multiplier", *(f"ε̂, attacker {i}" for i in range(4)))
    rows = [("300", "0.04622", *("110.0 ± 5.9; ≥ 5.96",) * 4)] * 2
    lines = narrow_table("Some", header, rows)
    assert lines[0] == "Some"
    assert max(len(line.replace("\u0302", "")) for line in lines) <= WIDTH
    words = " ".join(lines).split()
    for row in (header, *rows):
        assert all(word in words for cell in row for word in cell.split())
    # Where words are too wide for a table, each row is a list.
    assert narrow_table("Some", ("a", "b"), [("x" * 50, "y" * 50)]) == ["Some", "", f"a  {'x' * 50}", f"b  {'y' * 50}"]
