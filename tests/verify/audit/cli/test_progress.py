import io
import time

import pytest
from rich.console import Console

from canaryproof.verify.audit.cli import progress as module
from canaryproof.verify.audit.cli.progress import progress


@pytest.fixture
def fast(monkeypatch):
    monkeypatch.setattr(module, "_LINE_EVERY", 0.05)
    monkeypatch.setattr(module, "_BAR_AFTER", 0.05)
    monkeypatch.setattr(module, "_KNOWN_SECONDS", 0.05)


def wait_for(condition):
    while not condition():
        time.sleep(0.02)


@pytest.mark.usefixtures("fast")
def test_off_a_terminal_lines_come_though_nothing_is_done(capsys):
    found = []
    with progress("canaryproof verify", equal_parts=False) as advance:
        advance("gaussian.audit", 3, 1200)
        wait_for(lambda: found.append(capsys.readouterr().err) or "".join(found).count("\n") >= 3)
    lines = "".join(found).splitlines()
    assert all(line.startswith("canaryproof verify: 3 of 1,200, gaussian.audit, 0:00:") for line in lines)
    assert all(line.endswith(" so far") for line in lines)


def test_what_is_short_prints_nothing(capsys):
    with progress("canaryproof", equal_parts=True) as advance:
        advance("scoring canaries", 1, 2)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("elapsed", "done", "left"), [(100.0, 5, None), (1.0, 50, None), (100.0, 25, 300.0), (9.0, 0, None)]
)
def test_the_time_left_is_said_when_it_is_known(elapsed, done, left):
    assert module._remaining_time(elapsed, done, 100) == left


def test_nothing_is_left_of_unknown_work():
    assert module._remaining_time(100.0, 0, 0) is None


@pytest.mark.usefixtures("fast")
@pytest.mark.parametrize(("equal_parts", "total"), [(True, 10), (False, 10), (False, 0)])
def test_a_terminal_has_a_bar(monkeypatch, equal_parts, total):
    screen = io.StringIO()
    monkeypatch.setattr(module, "Console", lambda **_: Console(file=screen, force_terminal=True, width=100))
    with progress("canaryproof", equal_parts=equal_parts) as advance:
        advance("scoring canaries", total // 2, total)
        wait_for(lambda: "scoring canaries" in screen.getvalue() and (not equal_parts or " left" in screen.getvalue()))
    shown = screen.getvalue()
    assert ("5 of 10" in shown) == (total > 0)
    assert (" left" in shown) == equal_parts
