"""Every public name has an example, and each example gives what it shows."""

import doctest
import inspect
from pathlib import Path

import pytest

import canaryproof as cp

_NAMES = [name for name in cp.__all__ if name != "__version__"]
# Their trainings are in examples/, as frameworks are large; what each of them shows is tested there.
_OF_FRAMEWORKS = {
    "FlowerInspection": "examples/broken_privacy.py",
    "JaxInspection": "examples/broken_privacy.py",
    "OpacusCanaries": "examples/opacus_training.py",
    "OpacusInspection": "examples/broken_privacy.py",
    "TrainingAudit": "examples/transformer_training.py",
    "left_out": "examples/transformer_training.py",
}


@pytest.mark.parametrize("name", [name for name in _NAMES if name not in _OF_FRAMEWORKS])
def test_examples_give_what_they_show(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = inspect.getdoc(getattr(cp, name)) or ""
    examples = doctest.DocTestParser().get_doctest(text, {}, name, None, 0)
    assert examples.examples, "no example"
    assert doctest.DocTestRunner().run(examples).failed == 0


@pytest.mark.parametrize("name", _OF_FRAMEWORKS)
def test_what_needs_a_framework_has_a_training(name):
    assert name in (Path(__file__).parents[3] / _OF_FRAMEWORKS[name]).read_text(encoding="utf-8")
