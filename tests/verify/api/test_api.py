import pydoc
import subprocess
import sys

import numpy as np
import pytest

import canaryproof

HEAVY = {"numpy", "scipy", "numba", "pandas", "matplotlib", "click", "rich"}


def of_interpreter(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_importing_it_loads_nothing_of_what_computes():
    names = set(of_interpreter("import sys, canaryproof\nprint(*sys.modules)").split())
    assert not names & HEAVY
    assert {name for name in names if name.startswith("canaryproof")} == {"canaryproof"}


@pytest.mark.parametrize("name", canaryproof.__all__)
def test_every_public_name_is_there_and_described(name):
    found = getattr(canaryproof, name)
    assert name in dir(canaryproof)
    assert isinstance(found, str) if name == "__version__" else len(found.__doc__) > 20
    # The second time it is found without being looked for.
    assert vars(canaryproof)[name] is found


def test_there_is_nothing_else():
    with pytest.raises(AttributeError, match="module 'canaryproof' has no attribute 'audits'"):
        _ = canaryproof.audits


def test_help_shows_a_first_audit_that_runs():
    text = pydoc.plain(pydoc.render_doc(canaryproof))
    shown, _, names = text.partition("CLASSES")
    assert "cp.audit_release(release, canaries, delta=1e-6, noise_multiplier=1.54)" in shown
    for name in ("class Scores", "class Canaries", "audit(scores: ", "audit_release(", "flatten("):
        assert name in names
    example = canaryproof.__doc__.split("::\n")[1].split("\n\nWith scores")[0]
    lines = [line.removeprefix("    ") for line in example.splitlines()]
    names = {}
    exec("\n".join(lines), names)
    assert names["found"].decision.outcome == "PASSED"


def test_a_file_that_breaks_a_rule_is_named_once(tmp_path):
    """Whatever is asked of it; and it is a ValueError, as a bad argument is."""
    canaries = canaryproof.Canaries(seed=7, count=2, dim=3)
    path = tmp_path / "release.npy"
    np.save(path, [1.0, 2.0, 3.0])
    release = canaryproof.open_release(path)
    path.write_bytes(path.read_bytes()[:-4])
    calls = (
        lambda: canaryproof.audit_release(release, canaries, delta=1e-6),
        lambda: canaryproof.open_release(path),
        lambda: canaryproof.Scores.load(path),
        lambda: canaryproof.RoundScores.load(path),
        lambda: canaryproof.model_card(path),
    )
    for call in calls:
        with pytest.raises(canaryproof.InputError) as caught:
            call()
        assert isinstance(caught.value, ValueError)
        assert str(caught.value).startswith(f"{path}: ")
        assert str(caught.value).count(str(path)) == 1
