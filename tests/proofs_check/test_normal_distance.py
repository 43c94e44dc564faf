import math
from fractions import Fraction
from itertools import accumulate, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp

from canaryproof.kernels.certified import null_cosine
from canaryproof.proofs_check import normal_distance as law
from canaryproof.proofs_check import normal_distance as numbers
from canaryproof.proofs_check import normal_distance as proof
from canaryproof.proofs_check import normal_distance as tails
from canaryproof.proofs_check.displayed_lines import Kind, kind_of


def test_the_rest_of_the_series_is_integrated_rightly():
    rest = mp.quad(lambda t: mp.npdf(t) * t**6 / 3, [0, 1, 4, 12])
    assert mp.almosteq(rest, mp.mpf(int(law._REST.p)) / int(law._REST.q), 1e-12)


DIMS = st.one_of(st.integers(2, 60), st.floats(0.5, 12).map(lambda x: max(2, int(10**x))))


def density(t, dim):
    """f̂_d by mpmath, independent of the beta function."""
    ratio = mp.gamma(mp.mpf(dim) / 2) / mp.gamma(mp.mpf(dim - 1) / 2)
    return ratio / mp.sqrt(mp.pi * dim) * (1 - t * t / dim) ** (mp.mpf(dim - 3) / 2) if t * t < dim else mp.mpf(0)


@pytest.mark.deep(beyond=1)
@pytest.mark.parametrize("dim", [4, 7, 30])
def test_distances_agree_with_quadrature_on_a_grid(dim):
    """No knowledge of where the densities cross."""
    with mp.workdps(15):
        points = [mp.mpf(i) / 25 for i in range(126)]
        steps = [mp.quad(lambda t: density(t, dim) - mp.npdf(t), list(ends)) for ends in pairwise(points)]
        seen = max(abs(excess) for excess in accumulate(steps))
        variation = mp.fsum(abs(step) for step in steps)
    # A grid of width h sees up to h²/8·max |Δ″| too little at each extreme.
    assert 0 <= law.kolmogorov(dim).lo - seen < 1e-4
    assert 0 <= law.total_variation(dim).lo - variation < 4e-4


def test_sphere_in_closed_form():
    """At d = 3 the cosine is uniform."""
    crossing = math.sqrt(-math.log(math.pi / 6))
    lower = 0.5 * math.erf(crossing / math.sqrt(2)) - crossing / math.sqrt(12)
    assert law.kolmogorov(3).lo == pytest.approx(lower, rel=1e-13)
    assert law.total_variation(3).lo == pytest.approx(2 * lower + math.erfc(math.sqrt(1.5)), rel=1e-13)


@given(dim=DIMS)
def test_enclosures_are_tight_and_below_the_bounds(dim):
    distance, variation = law.kolmogorov(dim), law.total_variation(dim)
    assert distance.is_tight
    assert variation.is_tight
    assert 0 < distance.lo < variation.lo < 1
    assert Fraction(distance.hi) <= proof.kolmogorov_bound(dim)
    assert Fraction(variation.hi) <= proof.total_variation_bound(dim)


@given(root=st.integers(2, 10**6), t=st.fractions(Fraction(1, 100), 6, max_denominator=1000))
def test_differences_agree_with_the_certified_cosine(root, t):
    """At d = root², t = x√d has a rational cosine x, which the kernels take; no t beats the supremum."""
    dim = root * root
    if t >= root:
        return
    difference, cosine = law.difference(t, dim), null_cosine.cdf(t / root, dim)
    with mp.workdps(30):
        normal = mp.ncdf(mp.mpf(t.numerator) / t.denominator)
    assert difference.lo == pytest.approx(float(cosine.lo - normal), abs=3e-16)
    assert abs(difference.lo) <= law.kolmogorov(dim).hi


def test_circle_in_closed_form():
    """At d = 2 the angle is uniform: P(0 < τ < x) = asin(x)/π."""
    assert math.asin(0.8 / math.sqrt(2)) / math.pi + 0.5 - 0.5 * math.erfc(-0.8 / math.sqrt(2)) == pytest.approx(
        law.difference(0.8, 2).lo, abs=1e-15
    )


def test_tails_agree_with_the_certified_cosine():
    for dim in (100, 10**4, 10**6):
        error = law.tail_relative_error(5.0, dim)
        exact = null_cosine.sf(Fraction(5, math.isqrt(dim)), dim)
        assert error.is_tight
        assert error.lo == pytest.approx(exact.lo / (0.5 * math.erfc(5 / math.sqrt(2))) - 1, abs=1e-13)
    assert law.tail_relative_error(3.0, 9).hi == -1.0


def test_two_terms_of_the_expansion_leave_the_third_power_of_d():
    left = [abs(law.kolmogorov(d).lo - law.leading_extremes(d)[0]) * d**3 for d in (30, 300, 3000)]
    assert left[1] == pytest.approx(left[2], rel=0.05)
    assert left[0] < 2 * left[2]


@pytest.mark.parametrize("dim", [1, 0, -5, 10**12 + 1])
def test_dimensions_outside_are_refused(dim):
    with pytest.raises(ValueError, match="dim"):
        law.kolmogorov(dim)
    if dim < 2:
        with pytest.raises(ValueError, match="dim"):
            proof.kolmogorov_bound(dim)


def test_points_outside_are_refused():
    for call in (lambda: law.difference(2, 4), lambda: law.difference(0, 4), lambda: law.tail_relative_error(-1.0, 4)):
        with pytest.raises(ValueError, match=r"t must lie|threshold"):
            call()


def test_bounds_for_any_dimension():
    assert proof.kolmogorov_bound(10**30) == Fraction(138, 1000) / (10**30 - 1)
    assert proof.total_variation_bound(2) == Fraction(396, 1000)


def test_altered_steps_of_the_proof_fail():
    assert kind_of(proof.gamma_bounds(Fraction(1, 5))) is Kind.FALSE
    assert kind_of(proof.gamma_bounds(Fraction(3, 10))) is Kind.FALSE
    assert kind_of(proof.analytic_range(start=300)) is Kind.FALSE
    assert kind_of(proof.analytic_range(distance=Fraction(1376, 10000))) is Kind.FALSE
    assert kind_of(proof.certified_range(variation=Fraction(395, 1000))) is Kind.FALSE
    assert kind_of(proof.certified_range(distance=Fraction(137, 1000))) is Kind.FALSE


@given(d=st.integers(6, 10**6), share=st.floats(0, 1))
def test_bound_on_log_ratio(d, share):
    """Third step of the proof at random points, in floats of 40 digits."""
    with mp.workdps(40):
        u, half = mp.mpf(1) / d, mp.mpf(d) / 2
        for s, q in ((3 * mp.mpf(share), 1), (3 + (half - 3) * mp.mpf(share), 2)):
            at_zero = mp.loggamma(half) - mp.loggamma(half - mp.mpf(1) / 2) - mp.log(half) / 2
            log_ratio = at_zero + s / 2 + (half - mp.mpf(3) / 2) * mp.log1p(-s * u)
            c = mp.mpf(9) / 16 / (1 - 3 * u / 2)
            assert -log_ratio <= u * (s**2 - 6 * s + 3) / 4 + u**2 * (c - 3 * s**2 / 4 + q * s**3 / 6)


def test_altered_expansion_and_sign_fail():
    assert kind_of(numbers.judge_expansion(-law.expansion(1)[0])) is Kind.FALSE
    assert kind_of(tails.judge_tail_errors(-1)) is Kind.FALSE


def test_tables():
    rows = numbers.distance_table()
    assert [row["dim"] for row in rows] == list(numbers.TABLE_DIMS)
    assert all(row["kolmogorov"][0] <= row["kolmogorov"][1] < row["kolmogorov_bound"] for row in rows)
    assert all(row["total_variation"][1] < row["total_variation_bound"] for row in rows)
    assert rows[-1]["kolmogorov_two_terms"] == pytest.approx(rows[-1]["kolmogorov"][0], rel=1e-11)
    errors = [row for row in tails.tail_table() if row["dim"] == 10**6]
    assert [row["leading_term"] for row in errors] == pytest.approx([r["relative_error"][0] for r in errors], rel=1e-3)
