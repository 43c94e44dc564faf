from importlib.resources import files

import numpy as np
import pytest
from flint import arb, fmpq

from canaryproof.kernels import _double_double as dd
from canaryproof.kernels import _tails, binomial, null_cosine
from canaryproof.kernels.certified._ball import at_precision
from canaryproof.proofs_check.rounding import gappa, primitives
from tests.rows import chequered

BOUNDS = primitives.read()
BY_NAME = {bound.name: bound for bound in BOUNDS}


def proven(prove):
    return float(at_precision(700, prove))


def test_every_bound_is_as_stated():
    assert len(BOUNDS) >= 13
    assert all(0.0 < bound.proven <= bound.stated for bound in BOUNDS)


@pytest.mark.parametrize(
    ("name", "prove"),
    [
        ("exponential, |a| < 1e9", lambda: primitives.exp_bound(arb(10**9))),
        ("Gauss-Legendre nodes and weights", primitives.rule_bound),
        ("log-gamma series, z >= 20, absolute", primitives.log_gamma_bound),
        ("logarithm", lambda: primitives.log_bounds()[0]),
        ("density at 0, d >= 100", lambda: primitives.density_scale_bound(fmpq(197, 4))),
    ],
)
def test_the_table_is_what_is_proven(name, prove):
    assert proven(prove) == pytest.approx(BY_NAME[name].proven, rel=1e-12)


def moved(constant, steps=4):
    return constant + steps * np.spacing(constant)


def one_moved(values, index):
    changed = np.array(values)
    changed[index] = moved(changed[index])
    return changed


# A constant that is off by some units in its last place, and the bound that notices.
WRONG = [
    (dd, "_LN2_LOW", moved(dd._LN2_LOW, 2**40), lambda: primitives.log_bounds()[0], "logarithm"),
    (dd, "_ODD_HIGH", one_moved(dd._ODD_HIGH, 1), lambda: primitives.log_bounds()[0], "logarithm"),
    (_tails, "_SQRT_TWO_PI", (moved(_tails._SQRT_TWO_PI[0]), _tails._SQRT_TWO_PI[1]), primitives.mills_bound,
     "Mills ratio, x > -37"),
    (_tails, "CHEBYSHEV", one_moved(_tails.CHEBYSHEV, 2), primitives.mills_bound, "Mills ratio, x > -37"),
    (_tails, "NODES", one_moved(_tails.NODES, 3), primitives.rule_bound, "Gauss-Legendre nodes and weights"),
    (_tails, "WEIGHTS", one_moved(_tails.WEIGHTS, 7), primitives.rule_bound, "Gauss-Legendre nodes and weights"),
    (binomial, "STIRLING", tuple(one_moved(binomial.STIRLING, 0) * 1.0001), primitives.log_gamma_bound,
     "log-gamma series, z >= 20, absolute"),
    (_tails, "CHEBYSHEV", _tails.CHEBYSHEV[:-2], primitives.mills_bound, "Mills ratio, x > -37"),
    (null_cosine, "DENSITY_SERIES", tuple(one_moved(null_cosine.DENSITY_SERIES, 0) * 1.0001),
     lambda: primitives.density_scale_bound(fmpq(197, 4)), "density at 0, d >= 100"),
]  # fmt: skip


@pytest.mark.deep(beyond=2)
@pytest.mark.parametrize("fault", chequered(WRONG), ids=lambda fault: fault[1])
def test_a_wrong_constant_breaks_its_bound(fault, monkeypatch):
    module, name, wrong, prove, bound = fault
    monkeypatch.setattr(module, name, wrong)
    try:
        found = proven(prove)
    except RuntimeError:
        return
    assert not found <= BY_NAME[bound].stated


def test_scripts_in_the_package_are_those_of_the_generator():
    for name, script in gappa.scripts().items():
        assert (files(gappa.__package__) / name).read_text() == script


@pytest.mark.deep(beyond=2)
@pytest.mark.skipif(not gappa.installed(), reason="gappa is not installed")
@pytest.mark.parametrize("name", gappa.scripts())
def test_gappa_proves_the_bound_and_no_bound_of_a_quarter(name, monkeypatch):
    assert gappa.proves(gappa.scripts()[name])
    monkeypatch.setattr(gappa, "UNITS", {operation: units // 4 for operation, units in primitives.UNITS.items()})
    assert not gappa.proves(gappa.scripts()[name])
