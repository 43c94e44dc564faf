import pytest
import sympy

from canaryproof.verify.results import Context, Level, Verdict
from canaryproof.verify.suites import witnesses

CONTEXT = Context(Level.QUICK, 11)


@pytest.mark.parametrize("check", witnesses.CHECKS, ids=lambda check: check.id)
def test_simulations_have_the_exact_moments(check):
    assert check.judge(CONTEXT).verdict is Verdict.CONFIRMED


@pytest.mark.parametrize("name", "ABTW")
@pytest.mark.parametrize("place", [0, 1])
def test_a_moment_off_by_a_sixth_is_found(monkeypatch, name, place):
    # In 20,000 runs a variance is known to √((κ − 1)/20,000) of itself, 1/100 for a normal kurtosis κ = 3 and 1/60 for
    # κ = 6: a sixth is 10 standard errors or more, where 6 are allowed. A mean is known better still.
    right = witnesses.moments

    def wrong(which, *, data=False):
        exact = list(right(which, data=data))
        if which == name:
            exact[place] *= sympy.Rational(7, 6)
        return tuple(exact)

    monkeypatch.setattr(witnesses, "moments", wrong)
    assert witnesses.CHECKS[1].judge(CONTEXT).verdict is Verdict.REFUTED


def test_the_printed_variances_are_excluded():
    evidence = witnesses.CHECKS[0].judge(CONTEXT).evidence
    printed = [abs(row["z_of_printed_variance"]) for row in evidence["rows"] if "z_of_printed_variance" in row]
    assert len(printed) == 4
    assert min(printed) > evidence["largest_allowed"]
