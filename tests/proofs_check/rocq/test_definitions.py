"""The code computes what the theorems are about: their definitions are read from the Rocq sources, and evaluated."""

import itertools
import math
import operator
import re
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from canaryproof.kernels import binomial, null_cosine
from canaryproof.kernels.certified._ball import at_precision
from canaryproof.proofs_check import normal_distance
from canaryproof.proofs_check.rocq import quantile_cells, sources
from canaryproof.proofs_check.rounding import canary_quantile
from canaryproof.proofs_check.rounding.primitives import UNITS
from canaryproof.verify.audit.bounds import (
    block_tests,
    fixed_sequence,
    guesses,
    ladders,
    one_run,
    precedence,
    thresholds,
    weights,
)
from canaryproof.verify.audit.bounds.lower_bound import discrete_null, prepare
from tests.verify.audit.bounds.test_guesses import orders

_DEFINITION = re.compile(r"^Definition (\w+)((?: \([^()]* : [\w >-]+\))*) : \w+ :=\s(.*?)\.$", re.MULTILINE | re.DOTALL)
_TOKEN = re.compile(r"\\sum_|'C|%:R|\^-1|\^\+|\.\+1|<=|==|\|\||[\w.]+|\S")


class Reader:
    """Evaluate the formula of a definition, in rational numbers."""

    def __init__(self, formula: str, names: dict[str, object]) -> None:
        self.tokens, self.at, self.names = _TOKEN.findall(formula.replace(".+1", " .+1")), 0, dict(names)

    def next(self, *expected: str) -> str:
        token = self.tokens[self.at] if self.at < len(self.tokens) else ""
        if expected and token not in expected:
            return ""
        self.at += 1
        return token

    def either(self):
        value = self.compared()
        while self.next("||"):
            other = self.compared()
            value = value or other
        return value

    def compared(self):
        value = self.total()
        if relation := self.next("<", "<=", "=="):
            return {"<": operator.lt, "<=": operator.le, "==": operator.eq}[relation](value, self.total())
        return value

    def total(self):
        value = self.product()
        while sign := self.next("+", "-"):
            other = self.product()
            value = value + other if sign == "+" else value - other
        return value

    def product(self):
        value = self.power()
        while sign := self.next("*", "/"):
            other = self.power()
            value = value * other if sign == "*" else Fraction(value) / other
        return value

    def power(self):
        value = self.applied()
        while self.next("^+", "^"):
            value = value ** int(self.applied())
        return value

    def applied(self):
        value = self.atom()
        while callable(value) and self.at < len(self.tokens):
            value = value(self.atom())
        return value

    def atom(self):
        token = self.next()
        if token == "(":
            value = self.either()
            assert self.next(")")
        elif token == "if":
            condition = self.either()
            assert self.next("then")
            value = self.total()
            assert self.next("else")
            other = self.total()
            value = value if condition else other
        elif token == "'C":
            assert self.next("(")
            above = self.total()
            assert self.next(",")
            value = math.comb(above, self.total())
            assert self.next(")")
        elif token == "-":
            value = -self.atom()
        elif token == "\\sum_":
            value = self.summed()
        else:
            value = int(token) if token.isdigit() else self.names[token]
        while mark := self.next("%:R", "^-1", ".+1"):
            value = 1 / Fraction(value) if mark == "^-1" else value + (mark == ".+1")
        return value

    def summed(self):
        assert self.next("(")
        first = self.total()
        assert self.next("<=")
        index = self.next()
        assert self.next("<")
        end = self.total()
        assert self.next(")")
        begin, value = self.at, Fraction(0)
        for self.names[index] in range(first, end):
            self.at = begin
            value += self.product()
        return value


def curried(function: Callable, count: int, *given: object) -> object:
    return function(*given) if count == 0 else lambda value: curried(function, count - 1, *given, value)


def definitions() -> dict[str, Callable]:
    """All formulas of the sources that rational numbers can evaluate, by name."""
    names: dict[str, object] = {"Num.min": lambda x: lambda y: min(x, y), "true": True, "false": False}
    names |= {"sqrt": math.sqrt, "exp": math.exp, "cos": math.cos, "PI": math.pi, "INR": int}
    names["half_gamma"] = lambda n: math.gamma(n / 2)
    functions = {}
    for text in map(sources.read, sources.NAMES):
        for name, typed, formula in _DEFINITION.findall(text):
            arguments = [word for group in re.findall(r"\(([^:]*):", typed) for word in group.split()]

            def function(*values, formula=formula, arguments=arguments):
                return Reader(formula, names | dict(zip(arguments, values, strict=True))).either()

            functions[name] = function
            if arguments:
                names[name] = curried(function, len(arguments))
    return functions


DEFINED = definitions()


def rational(rng: np.random.Generator, least: float, most: float) -> Fraction:
    return Fraction(rng.uniform(least, most)).limit_denominator(10**4)


def test_formulas_are_read_as_mathematical_components_writes_them():
    names = {"a": Fraction(1, 3), "f": lambda x: lambda y: x - y}
    for formula, value in (
        ("1 - a^-1 * (2 - a)", -4),
        ("\\sum_(1 <= j < 3) j%:R * a + 1", 2),
        ("'C(4, 2)%:R * a ^+ 2 / (1 + a) ^+ 1", Fraction(1, 2)),
        ("(f (1 + a) a < 1) || (f 2 1 <= 1)", True),
        ("2 * (if a == 1 then a else a + 1)", Fraction(8, 3)),
    ):
        assert Reader(formula, names).either() == value


def test_worst_tail():
    rng = np.random.default_rng(1)
    for _ in range(200):
        epsilon, delta, u = rational(rng, 0, 4), rational(rng, 0, 0.3), rational(rng, 1e-3, 1)
        exact = DEFINED["worst_tail"](Fraction(math.exp(epsilon)), delta, u)
        computed = float(precedence.worst_tail(float(epsilon), np.log(float(u)), float(delta)))
        assert computed == pytest.approx(float(exact), rel=1e-13)


def test_p_value_and_its_parts():
    rng = np.random.default_rng(2)
    for _ in range(200):
        number, epsilon = int(rng.integers(1, 40)), rational(rng, 0, 4)
        right, total = int(rng.integers(1, number + 1)), int(rng.integers(number, 60))
        delta = rng.choice([Fraction(0), rational(rng, 0, 1e-2), rational(rng, 0, 0.5)])
        exact = DEFINED["p_value"](total, number, right, Fraction(math.exp(epsilon)), delta)
        assert one_run.p_value(total, number, right, float(epsilon), float(delta)) == pytest.approx(
            float(exact), rel=1e-12
        )


def test_the_cost_of_delta_is_an_integral_of_means_over_a_circle():
    """The number of the mean's points is the code's, and so are the left ends of the integral."""
    sizes, worth, epsilon = (2, 1), [1, 1, 2, 2], 1.0
    rest = 1.0 / (1.0 + math.exp(epsilon))
    half = int(4.0 * math.sqrt(sum(w * w for w in worth) * rest * (1.0 - rest)) + 2.0 * max(worth)) + 8
    unrevealed, costs = [(n / 48) ** 2 for n in range(49)], []
    for first in (0, 2):
        weight, others, steps = worth[first], worth[:first] + worth[first + 1 :], []
        for u, following in itertools.pairwise(unrevealed):
            above = [
                math.exp(-sum(DEFINED["one_exponent"](w, u ** math.sqrt(w / weight) * rest, x) for w in others))
                for x in (math.pi * n / half for n in range(half + 1))
            ]
            mean = (math.fsum(above) - 0.5 * (above[0] + above[-1])) / half
            steps.append((following - u) * min(1.0, weight * mean))
        costs.append(math.fsum(steps))
    assert weights.share_of_delta(sizes, epsilon) == pytest.approx(max(costs), rel=1e-12)


def test_the_p_value_of_weights_adds_what_delta_costs():
    sizes, worth, total, delta, epsilon = (2, 1), (1, 1, 2, 2), 20, 1e-3, 0.7
    factor = Fraction(math.exp(epsilon))
    chance = {True: factor / (1 + factor), False: 1 / (1 + factor)}
    for v in range(1, 7):
        independent = sum(
            math.prod(chance[right] for right in pattern)
            for pattern in itertools.product((True, False), repeat=4)
            if sum(itertools.compress(worth, pattern)) >= v
        )
        kappa = Fraction(weights.share_of_delta(sizes, epsilon))
        exact = DEFINED["weighted_p_value"](total, independent, factor, Fraction(delta), kappa)
        computed = weights.p_value(total, sizes, sum(worth) - v, epsilon, (epsilon, epsilon), delta)
        assert computed == pytest.approx(float(exact), rel=1e-9)


def test_the_least_total_that_a_curve_allows():
    rng = np.random.default_rng(3)
    for _ in range(50):
        number, mu, alpha = int(rng.integers(1, 30)), rational(rng, 0.1, 4), rational(rng, 1e-3, 1)
        right, total = int(rng.integers(1, number + 1)), int(rng.integers(number, 60))
        curve = one_run.gaussian_curve(float(mu))
        y, x = alpha * right / total, alpha * (number - right) / total
        for j in reversed(range(right)):
            p = DEFINED["least_next"](lambda value: Fraction(curve(float(value))), number - j, y, x)  # noqa: B023
            y, x = y + j * p, x + (number - j) * p
        least = float((y + x) * total / number) - 1.0
        excess = one_run.excess_of_curve(total, number, right, curve, float(alpha))
        # The code stops where enough is shown.
        assert excess == pytest.approx(least, rel=1e-9, abs=1e-12) or 0.01 < excess <= least


def test_lower_limits_of_clopper_and_pearson():
    for trials, alpha in itertools.product((1, 5, 40), (0.05, 1e-6)):
        assert binomial.lower(0, trials, 1.0 - alpha) == 0.0
        for successes in range(1, trials + 1):
            limit = Fraction(float(binomial.lower(successes, trials, 1.0 - alpha)))
            assert limit <= 1
            assert float(DEFINED["binomial_tail"](trials, successes, limit)) == pytest.approx(
                1.0 - (1.0 - alpha), rel=1e-12
            )


def test_limits_of_false_alarms_above_a_rank():
    """Those that ``threshold_counts`` asks for: the r-th smallest uniform number is above them with probability α."""
    for number, alpha in itertools.product((1, 5, 12), (0.05, 1e-6)):
        for rank in range(1, number + 1):
            limit = Fraction(float(binomial.upper(rank - 1, number, 1.0 - alpha)))
            assert 0 <= limit <= 1
            missed = 1 - DEFINED["binomial_tail"](number, rank, limit)
            assert float(missed) == pytest.approx(1.0 - (1.0 - alpha), rel=1e-9)


def test_the_bound_at_one_threshold_is_where_equation_1_is_exceeded_no_more():
    rng = np.random.default_rng(3)
    positive = 0
    for _ in range(50):
        tail, delta, count = rational(rng, 0.01, 0.5), rational(rng, 0, 0.05), int(rng.integers(10, 60))
        null = discrete_null([0.0, 1.0], [1.0 - float(tail), float(tail)])
        hits = int(rng.integers(0, count + 1))
        scores = prepare(np.repeat([1.0, 0.0], [hits, count - hits]), null=null, independent=True)
        bound = float(thresholds.fixed_threshold(scores, float(delta), 0.05)[0][0])
        misses = 1 - Fraction(float(binomial.lower(hits, count, 0.95)))
        positive += bound > 0.0
        if bound > 0.0:
            assert DEFINED["exceeds"](Fraction(math.exp(bound - 1e-9)), delta, misses, tail)
        assert not DEFINED["exceeds"](Fraction(math.exp(bound + 1e-9)), delta, misses, tail)
    assert positive > 10


def test_the_critical_value_of_the_sum_is_of_the_law_with_the_worst_tails():
    rng = np.random.default_rng(4)
    for _ in range(20):
        nulls, count = np.sort(rng.uniform(0.01, 0.99, 4))[::-1], int(rng.integers(1, 9))
        tails = precedence.worst_tail(1.0, np.log(nulls), 0.01)
        steps = [Fraction(a) - Fraction(b) for a, b in itertools.pairwise([1.0, *tails.tolist(), 0.0])]
        law = [Fraction(1)]
        for _ in range(count):
            law = [
                sum(steps[w] * law[s - w] for w in range(len(steps)) if 0 <= s - w < len(law))
                for s in range(len(law) + len(steps) - 1)
            ]
        critical = fixed_sequence.least_rejecting(tails, count, 0.05)
        assert sum(law[critical:]) <= Fraction(5, 100)
        assert sum(law[critical - 1 :]) > Fraction(5, 100) * (1 - Fraction(1, 10**6))


def test_a_band_is_left_as_often_as_by_numbers_in_the_cells_between_its_levels():
    rng = np.random.default_rng(5)
    for ranks in ([1], [1, 2], [2, 3, 5], [1, 2, 4, 5]):
        levels, count = np.sort(rng.uniform(0.0, 0.6, len(ranks))), 5
        # The largest level first: a cell is the number of levels above a uniform number.
        steps = -np.diff(np.concatenate([[1.0], levels[::-1], [0.0]]))
        left = math.fsum(
            math.prod(steps[list(cells)])
            for cells in itertools.product(range(len(steps)), repeat=count)
            if any(sum(cell > n for cell in cells) >= rank for n, rank in enumerate(ranks[::-1]))
        )
        assert thresholds.staying_above(levels, np.array(ranks), count) == pytest.approx(1.0 - left, rel=1e-12)


def test_the_tail_of_a_count_beyond_a_rank_is_the_sum_over_the_cells():
    rank, declared, counted, epsilon, delta = 2, 12, 9, 0.7, 1e-3
    first, tail = precedence.rank_tail(rank, declared, counted, epsilon, delta)
    ends = [Fraction(float(end)) for end in precedence.order_statistic(rank, declared)[0]]
    beyond = [1.0, *(float(1 - DEFINED["binomial_tail"](declared, rank, end)) for end in ends)]
    worst = [DEFINED["worst_tail"](Fraction(math.exp(epsilon)), Fraction(delta), end) for end in ends]
    for count in range(first, first + len(tail)):
        hits = [float(DEFINED["binomial_tail"](counted, count, rate)) for rate in worst]
        cells = zip(itertools.pairwise(beyond), hits, strict=True)
        total = math.fsum((before - after) * hit for (before, after), hit in cells)
        assert tail[count - first] == pytest.approx(total + beyond[-1] * (count <= counted), rel=1e-9)


def worst_law(count, null_count, factor, delta, pairs):
    """The law of labels that ``worst_mean`` of pooled_order.v is the mean under, by enumeration."""
    rate, chance, law = DEFINED["rate"], DEFINED["count_mass"], {}
    for shown in itertools.product(range(count + 1), range(null_count + 1)):
        weight = chance(count, shown[0], delta) * chance(null_count, shown[1], delta)
        first, last = next(pair for pair in pairs if shown[0] <= pair[0] and shown[1] <= pair[1])
        total = count - first + null_count - last
        for observed in itertools.combinations(range(total), count - first):
            labels = [n in observed for n in range(total)]
            sides = (
                math.comb(total, high) * math.prod(rate(factor, label, n < high) for n, label in enumerate(labels))
                for high in range(total + 1)
            )
            order = (*[1] * first, *map(int, labels), *[0] * last)
            law[order] = law.get(order, 0) + weight * sum(sides) / math.comb(total, count - first)
    return law


@pytest.mark.parametrize(("count", "null_count"), [(2, 3), (3, 2)])
def test_the_law_of_labels_is_that_of_the_worst_mechanism(count, null_count):
    every = list(itertools.product(range(count + 1), range(null_count + 1)))
    law = worst_law(count, null_count, Fraction(5, 2), Fraction(1, 50), every)
    assert law == orders(count, null_count, Fraction(5, 2), Fraction(1, 50))


def rung_reached(order, high, low, declared, most):
    """Tell whether labels reach a rung, as ``rung_reached`` of ladders.v does, by ranks or by wrong guesses."""
    total, (top, bottom), rounded = len(order), *declared
    wrong = rounded[np.searchsorted(rounded, order[:top].count(0))] + order[total - bottom :].count(1)
    above = any(order[: needed + rank - 1].count(0) < rank for rank, needed in high)
    below = any(order[max(total - needed - rank + 1, 0) :].count(1) < rank for rank, needed in low)
    return above or below or wrong <= most


@pytest.mark.deep
@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1, 50)])
def test_the_chance_of_a_rung_is_its_mean_under_the_law_of_labels(delta):
    count, null_count, factor = 3, 4, Fraction(3, 2)
    shown = guesses.shown_numbers(count, null_count, float(delta))
    # The code counts a rung as reached where all canaries of a kind are shown.
    all_shown = math.fsum(chance for (i, j), chance in shown if i == count or j == null_count)
    law = worst_law(count, null_count, factor, delta, [pair for pair, _ in shown])
    assert sum(law.values()) == 1
    ladder, means = ladders.Ladder(count, null_count, 1e-3, 0.5), []
    counts, numbers, rounded, most = ladders.rungs(ladder)
    high, low = (precedence.declared_ranks(number).tolist() for number in (null_count, count))
    for rung in range(0, 80, 4):
        ranks = list(zip([*high, *low], [int(needed[rung]) for needed in counts], strict=True))
        reached = (
            float(probability)
            for order, probability in law.items()
            if rung_reached(order, ranks[: len(high)], ranks[len(high) :], (numbers, rounded), most[rung])
        )
        means.append(math.fsum(reached))
        excess = ladders.chance(ladder, rung, math.log(factor), float(delta)) - means[-1]
        assert -1e-11 <= excess <= all_shown + 1e-11
    assert any(0.0 < mean < 1.0 for mean in means)


def test_rates_of_the_walk():
    rng = np.random.default_rng(6)
    for _ in range(100):
        count, null_count, epsilon = int(rng.integers(1, 50)), int(rng.integers(1, 50)), rational(rng, 0, 4)
        factor, share = Fraction(math.exp(epsilon)), Fraction(count, count + null_count)
        high, wrong = guesses.rates_of_labels(count, null_count, float(epsilon))
        assert high == pytest.approx(float(DEFINED["high_share"](factor, share)), rel=1e-13)
        exact = [float(DEFINED["walk_rate"](factor, share, not side, side)) for side in (True, False)]
        assert wrong == pytest.approx(exact, rel=1e-13)


def test_shares_of_alpha_sum_to_it():
    assert block_tests.NESTED + block_tests.SHARP == 1.0
    for total, delta, epsilon in ((100, 1e-5, 0.5), (1000, 1e-3, 4.0)):
        tests = one_run.declared_tests(total, delta, (epsilon / 1.1, epsilon))
        runs = [one_run.run_share(total, epsilon)] * 2
        assert math.fsum([*(share for _, share in tests), *runs]) == pytest.approx(1.0, rel=1e-15)


def test_errors_of_pairs_are_those_of_the_kernels():
    assert {name: DEFINED[f"units_{name}"]() for name in UNITS} == UNITS


def test_densities_of_the_cosine_and_of_the_normal_law():
    for dim, t in itertools.product((3, 4, 10, 101), (-1.5, 0.0, 0.7, 1.7)):
        density = null_cosine.pdf(t / math.sqrt(dim), dim) / math.sqrt(dim)
        assert DEFINED["density"](dim, t) == pytest.approx(float(density), rel=1e-12)
        assert DEFINED["normal"](t) == pytest.approx(math.exp(-t * t / 2) / math.sqrt(2 * math.pi), rel=1e-14)


def test_constants_of_the_distance_from_the_normal_law():
    assert DEFINED["kolmogorov"]() == normal_distance.KOLMOGOROV
    assert DEFINED["total_variation"]() == normal_distance.TOTAL_VARIATION
    assert f"0 <= u <= 1 / {normal_distance.ANALYTIC_FROM} ->" in sources.read("normal_distance")


def test_cells_of_the_quantile_are_written_with_their_words_and_errors():
    (module,) = quantile_cells.modules().values()
    cells = re.findall(r"^\(\(.*$", module, re.MULTILINE)
    assert len(cells) == 21
    for cell in cells:
        numbers = [Fraction(number.replace(" ", "")) for number in re.findall(r"-?\d+(?: / \d+)?", cell)]
        first, last, centre, reach, *coefficients, error, _, _, _ = numbers
        for word in (first, last):
            z = (word - centre) / (reach or 1)
            polynomial = sum(c * z**n for n, c in enumerate(coefficients))
            quantile = at_precision(
                256, lambda word=word: Fraction(str(canary_quantile.exact(int(word)).str(40, radius=False)))
            )
            assert abs(polynomial - quantile) <= error * quantile
