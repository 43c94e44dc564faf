import inspect

import pytest

from canaryproof.kernels import _canary_stream, _double_double, null_cosine, two_gaussians
from canaryproof.kernels.certified import _pair_balls
from canaryproof.proofs_check.rounding import budgets, pins, primitives

RECORDED = pins.read()


@pytest.fixture
def broken(monkeypatch):
    """Change the source of a module, and return the proofs whose pins break."""

    def change(module, before, after):
        rows, source = pins.digests(), inspect.getsource
        assert before in source(module)
        with monkeypatch.context() as patch:
            patch.setattr(
                inspect, "getsource", lambda m: source(m).replace(before, after) if m is module else source(m)
            )
            changed = pins.digests()
        return {name for name in rows if changed[name] != rows[name]}

    return change


def test_the_proofs_are_of_this_code():
    """Else: python -m canaryproof.proofs_check.rounding --write proofs_check/rounding, and read what changes."""
    assert pins.digests() == RECORDED


def test_every_proof_has_a_pin():
    assert set(RECORDED) == {
        *(bound.name for bound in primitives.read()),
        *(row.function for row in budgets.read()),
        "canary quantile",
    }


COSINE = {name for name in RECORDED if name.startswith("null-cosine.")}
LOGARITHMS = {"logarithm", "logarithm of 1 + a"}


@pytest.mark.parametrize(
    ("module", "before", "after", "proofs"),
    [
        (_canary_stream, "_F32(2.8853905)", "_F32(2.8853907)", {"canary quantile"}),
        (_canary_stream, "_TWO32 - a", "_TWO32 + a", {"canary quantile"}),
        (null_cosine, "_LAST_STEP = 1e-9", "_LAST_STEP = 1e-6", {"null-cosine.ppf", "null-cosine.isf"}),
        (null_cosine, "-5 / 2048", "-5 / 2049",
         COSINE | {"density series, w >= 20, absolute", "density at 0, d >= 100"}),
        (_pair_balls, "EXPONENTIAL, LOGARITHM, MILLS = 1e-20", "EXPONENTIAL, LOGARITHM, MILLS = 1e-19",
         LOGARITHMS | {"exponential, |a| < 1e9", "Mills ratio, series", "Mills ratio, x > -37"}),
        (two_gaussians, "_ROUGH = 1e-5", "_ROUGH = 1e-4",
         {name for name in RECORDED if name.startswith("two-gaussians.epsilon")} | {"gaussian-mechanism.epsilon"}),
    ],
)  # fmt: skip
def test_a_change_breaks_the_pins_of_the_proofs_that_reach_it(module, before, after, proofs, broken):
    assert broken(module, before, after) == proofs


def test_a_change_of_the_logarithm_breaks_what_is_made_of_it(broken):
    changed = broken(_double_double, "tail * sh +", "tail * sh -")
    assert {*LOGARITHMS, "null-cosine.logpdf", "two-gaussians.log-delta.both"} <= changed
    assert not {"add of pairs", "exponential, |a| < 1e9", "Gauss-Legendre nodes and weights"} & changed


@pytest.mark.parametrize("module", [_double_double, null_cosine, two_gaussians])
def test_another_function_breaks_no_pin(module, broken):
    line = "\nimport math\n"
    assert not broken(module, line, f"{line}\n_ANOTHER = 1.0\n\n\ndef another():\n    return _ANOTHER\n")


def test_comments_and_docstrings_break_no_pin(broken):
    assert not broken(_double_double, '"""Sum of two pairs', '# .\n    """The sum of pairs')
