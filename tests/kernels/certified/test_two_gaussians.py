import math
import threading
from fractions import Fraction

import flint
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

from canaryproof.kernels.certified import two_gaussians
from canaryproof.kernels.certified._ball import Enclosure, at_precision
from canaryproof.kernels.reference import two_gaussians as reference

MANY = settings(max_examples=2 * settings().max_examples)
NEXT = math.nextafter(1.0, 2.0)
DIRECTIONS = st.sampled_from(["forward", "reverse", "both"])
SIGNS = st.sampled_from([-1.0, 1.0])
RATIOS = st.one_of(
    st.floats(-3, 3).map(lambda t: 10**t),
    st.tuples(st.floats(-16.5, -0.31), SIGNS).map(lambda t: 1 + t[1] * 10 ** t[0]),
    st.sampled_from([1.0, NEXT, math.nextafter(1.0, 0.0), 1e-10, 1e10]),
)
DISTANCES = st.one_of(st.just(0.0), st.floats(-20, 3).map(lambda t: 10**t), st.floats(0.01, 10))
EPSILONS = st.one_of(st.just(0.0), st.floats(-10, 5).map(lambda t: 10**t), st.floats(0, 20))
DELTAS = st.one_of(st.floats(-300, -1).map(lambda t: 10**t), st.floats(0.01, 0.99))


@st.composite
def pairs(draw):
    scale = draw(st.sampled_from([1.0, 1.5, 3e-7, 1e150]))
    shift = draw(st.sampled_from([0.0, 1.25, -300.0])) * scale
    return shift + draw(SIGNS) * draw(DISTANCES) * scale, draw(RATIOS) * scale, shift, scale


NASTY = [
    (0.0, 1.0, 0.0, NEXT),
    (0.0, NEXT, 0.0, 1.0),
    (1e-20, 1.0, 0.0, 1.0),
    (5e-324, 1.0, 0.0, NEXT),
    (1.0, 1.5, 1.0, math.nextafter(1.5, 2.0)),
    (1.0, math.nextafter(1.5, 2.0), 0.0, 1.5),
    (100.0, 1.0, 0.0, 1.0),
    (1e10, 1.0, 0.0, 1e10),
    (0.0, 1e-50, 0.0, 1.0),
    (5.0, 1.0, 0.0, 2.0),
]


@MANY
@given(EPSILONS, pairs(), DIRECTIONS)
def test_log_delta_holds_its_twin(holds, epsilon, pair, direction):
    enclosure = two_gaussians.log_delta(epsilon, *pair, direction)
    assert enclosure.is_tight
    assert holds(enclosure, reference.log_delta(epsilon, *pair, direction, digits=60))


@MANY
@given(EPSILONS, pairs(), DIRECTIONS)
def test_delta_is_the_exponential_of_log_delta(epsilon, pair, direction):
    enclosure = two_gaussians.delta(epsilon, *pair, direction)
    assert enclosure.is_tight
    log_delta = two_gaussians.log_delta(epsilon, *pair, direction)
    if log_delta.hi == -math.inf:
        assert enclosure.lo == enclosure.hi == 0.0
    else:
        assert at_precision(8192, log_delta.ball.exp).overlaps(enclosure.ball)


@pytest.mark.parametrize("pair", NASTY)
@pytest.mark.parametrize("epsilon", [0.0, 5e-324, 1e-17, 1.0, 1e5])
@pytest.mark.parametrize("direction", ["forward", "reverse"])
def test_nasty_log_delta(holds, epsilon, pair, direction):
    enclosure = two_gaussians.log_delta(epsilon, *pair, direction)
    assert enclosure.is_tight
    assert two_gaussians.delta(epsilon, *pair, direction).is_tight
    assert holds(enclosure, reference.log_delta(epsilon, *pair, direction, digits=60))


@pytest.mark.parametrize(
    "pair", [*NASTY, (5e-324, 1.0, 0.0, 1.0), (1e50, 1.0, 0.0, 1.0), (1e-50, 1.0, 0.0, 1.0), (1e50, 1e50, 0.0, 1.0)]
)
@pytest.mark.parametrize("epsilon", [1e20, 1e50])
def test_the_far_corners_are_tight(epsilon, pair):
    assert two_gaussians.log_delta(epsilon, *pair).is_tight
    assert two_gaussians.delta(epsilon, *pair).is_tight


def brackets(enclosure, delta, pair, direction):
    """Whether the ends are where the twin says that δ passes the target."""
    with mp.workdps(60):
        target = mp.log(mpf(delta))
    enough = reference.log_delta(enclosure.hi, *pair, direction, digits=40) <= target
    if enclosure.lo == enclosure.hi == 0.0:
        return enough
    return enough and reference.log_delta(enclosure.lo, *pair, direction, digits=40) > target


@MANY
@given(DELTAS, pairs(), DIRECTIONS)
def test_epsilon_brackets_the_passage(delta, pair, direction):
    enclosure = two_gaussians.epsilon(delta, *pair, direction)
    assert enclosure.is_tight
    assert brackets(enclosure, delta, pair, direction)


@pytest.mark.parametrize("pair", NASTY)
@pytest.mark.parametrize("delta", [1e-300, 1e-20, 1e-6, 0.3, 1 - 2**-53])
@pytest.mark.parametrize("direction", ["forward", "reverse"])
def test_nasty_epsilon(delta, pair, direction):
    enclosure = two_gaussians.epsilon(delta, *pair, direction)
    assert enclosure.is_tight
    assert brackets(enclosure, delta, pair, direction)


@pytest.mark.parametrize("delta", [1e-6, 0.2, 1e-300])
@pytest.mark.parametrize("pair", [(1.0, 1.0, 0.0, 1.0), (0.3, 1.02, 0.0, 1.0), (0.0, 1.0, 0.0, 1.01)])
def test_epsilon_holds_its_twin(holds, delta, pair):
    assert holds(two_gaussians.epsilon(delta, *pair), reference.epsilon(delta, *pair, digits=60))


@given(st.floats(0.1, 0.999), st.floats(0, 3), st.integers(-1, 1))
def test_around_the_largest_loss(sigma, distance, ulps):
    """A narrower first Gaussian has a largest privacy loss; from there on δ is exactly 0."""
    with mp.workdps(60):
        s, m = mpf(sigma), mpf(distance)
        largest = m * m / (2 * (1 - s * s)) - mp.log(s)
    nearest = float(largest)
    epsilon = nearest + ulps * math.ulp(nearest)
    enclosure = two_gaussians.log_delta(epsilon, distance, sigma, 0.0, 1.0, "forward")
    assert enclosure.is_tight
    assert (enclosure.hi == -math.inf) == (mpf(epsilon) >= largest)
    found = two_gaussians.epsilon(1e-300, distance, sigma, 0.0, 1.0, "forward")
    assert found.is_tight
    assert found.lo <= largest


@pytest.mark.parametrize("sigma", [1.0, 0.3, 5e-324, 1e300])
def test_identical_gaussians(sigma):
    for direction in ("forward", "reverse", "both"):
        assert two_gaussians.epsilon(1e-300, 7.0, sigma, 7.0, sigma, direction) == Enclosure(0.0, 0.0, None)
        assert two_gaussians.delta(0.0, 7.0, sigma, 7.0, sigma, direction) == Enclosure(0.0, 0.0, None)
        assert two_gaussians.log_delta(0.0, 7.0, sigma, 7.0, sigma, direction).hi == -math.inf


@given(st.integers(-4000, 4000), st.integers(1, 4000), st.integers(1, 4000), EPSILONS)
def test_shifts_scalings_and_exchanges_change_nothing(shift, first, second, epsilon):
    expected = two_gaussians.log_delta(epsilon, shift, first, 0, second, "forward")
    third = Fraction(1, 3)
    for pair, direction in (
        ((-shift, first, 0, second), "forward"),
        ((0, second, shift, first), "reverse"),
        ((third * (shift + 1), third * first, third, third * second), "forward"),
    ):
        assert two_gaussians.log_delta(epsilon, *pair, direction) == expected


@given(EPSILONS, pairs())
def test_both_is_the_larger(epsilon, pair):
    forward, reverse, both = (two_gaussians.log_delta(epsilon, *pair, d) for d in ("forward", "reverse", "both"))
    assert (both.lo, both.hi) == (max(forward.lo, reverse.lo), max(forward.hi, reverse.hi))


@given(EPSILONS, pairs(), st.integers(130, 700), st.integers(130, 700))
def test_two_precisions_overlap(epsilon, pair, one, other):
    pairs_ = two_gaussians._pairs(*pair, "forward")
    epsilon = two_gaussians.exact("epsilon", epsilon)
    first, second = (at_precision(p, lambda: two_gaussians._divergence(epsilon, pairs_)) for p in (one, other))
    assert first.delta.overlaps(second.delta)
    assert first.complement.overlaps(second.complement)


@MANY
@given(EPSILONS, pairs())
def test_delta_and_its_complement_make_one(epsilon, pair):
    """They are computed apart; a wrong side of a root would show."""
    pairs_ = two_gaussians._pairs(*pair, "forward")
    epsilon = two_gaussians.exact("epsilon", epsilon)
    found = at_precision(2048, lambda: two_gaussians._divergence(epsilon, pairs_))
    total = at_precision(2048, lambda: found.delta + found.complement)
    assume(total.is_finite())
    assert total.contains(1)
    assert float(total.rad()) < 1e-30


def test_precision_left_behind_does_not_matter():
    pair = (0.3, 1.02, 0.0, 1.0)
    expected = two_gaussians.epsilon(1e-6, *pair), two_gaussians.log_delta(0.5, *pair)
    for prec in (2, 53, 5000):
        with flint.ctx.workprec(prec):
            found = two_gaussians.epsilon(1e-6, *pair), two_gaussians.log_delta(0.5, *pair)
        assert found == expected
        assert found[1].ball.mid().man_exp() == expected[1].ball.mid().man_exp()


def test_threads_do_not_disturb_each_other():
    pair = (0.3, 1.02, 0.0, 1.0)
    expected = two_gaussians.epsilon(1e-6, *pair)
    before = flint.ctx.prec
    results, stop = [], threading.Event()

    def meddle():
        while not stop.wait(0.0005):
            flint.ctx.prec = 2 if flint.ctx.prec > 1000 else 3000

    def work():
        results.extend(two_gaussians.epsilon(1e-6, *pair) for _ in range(25))

    meddler, workers = threading.Thread(target=meddle), [threading.Thread(target=work) for _ in range(4)]
    meddler.start()
    try:
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    finally:
        stop.set()
        meddler.join()
        flint.ctx.prec = before
    assert results == [expected] * 100


@pytest.mark.parametrize("function", [two_gaussians.epsilon, two_gaussians.delta, two_gaussians.log_delta])
def test_result_types(function):
    enclosure = function(0.5, 1, 1, Fraction(1, 3), 2)
    assert type(enclosure.lo) is float
    assert type(enclosure.hi) is float
    assert isinstance(enclosure.ball, flint.arb)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0.5, math.nan, 1, 0, 1), "mu1"),
        ((0.5, 0, math.nan, 0, 1), "sigma1"),
        ((0.5, 0, 1, math.inf, 1), "mu2"),
        ((0.5, 0, 1, 0, math.inf), "sigma2"),
        ((0.5, 0, 0.0, 0, 1), "sigma1"),
        ((0.5, 0, 1, 0, -1.0), "sigma2"),
        ((0.5, 0, 1e51, 0, 1.0), "sigma1 / sigma2"),
        ((0.5, 1e51, 1, 0, 1), "mu1 − mu2"),
        ((0.5, 0, 1, 0, 1, "sideways"), "direction"),
    ],
)
@pytest.mark.parametrize("function", [two_gaussians.epsilon, two_gaussians.delta, two_gaussians.log_delta])
def test_arguments_outside_the_domain(function, arguments, message):
    with pytest.raises(ValueError, match=message):
        function(*arguments)


@pytest.mark.parametrize("epsilon", [math.nan, -1e-300, 1e51, math.inf])
def test_epsilons_outside_the_domain(epsilon):
    for function in (two_gaussians.delta, two_gaussians.log_delta):
        with pytest.raises(ValueError, match="epsilon"):
            function(epsilon, 0, 1, 1, 1)


@pytest.mark.parametrize("delta", [math.nan, 0.0, 1.0, -0.5, math.inf])
def test_deltas_outside_the_domain(delta):
    with pytest.raises(ValueError, match="delta"):
        two_gaussians.epsilon(delta, 0, 1, 1, 1)
