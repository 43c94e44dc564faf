"""The numbers of docs/theory/recent_bounds.md, from formulas of recent papers."""

from pathlib import Path

import numpy as np
import pytest
from scipy import optimize, special, stats

import canaryproof as cp
from canaryproof.verify.audit.bounds import one_run

PAGE = (Path(__file__).parents[4] / "docs/theory/recent_bounds.md").read_text(encoding="utf-8")


def rows(title):
    """The rows of the table under a line of titles."""
    table = PAGE.split(title, 1)[1].split("\n\n", 1)[0]
    return [[cell.strip() for cell in row.strip("| \n").split("|")] for row in table.strip().splitlines()[1:]]


# Xiang et al., arXiv 2509.08704, by their public code: P(T ≤ u) is a mean of binomial laws of the rate beyond the cut.


def rate_beyond(above, mu):
    """The share of wrong signs among sizes of N(±μ/2, 1) beyond the one that a share of them exceeds."""
    sizes = np.linspace(0.0, 14.0, 400_001)
    wrong = special.ndtr(-sizes - mu / 2.0)
    beyond = wrong + special.ndtr(-sizes + mu / 2.0)
    return np.interp(above, beyond[::-1], (wrong / beyond)[::-1])


def few_wrong(canaries, guesses, mu, most):
    """P(T ≤ u) if guesses are independent."""
    if canaries == guesses:
        return stats.binom.cdf(most, guesses, special.ndtr(-mu / 2.0))
    left_out = stats.beta.ppf((np.arange(2000) + 0.5) / 2000, canaries - guesses, guesses + 1)
    return stats.binom.cdf(most, guesses, rate_beyond(1.0 - left_out, mu)).mean()


def most_rejected(canaries, guesses, mu):
    low, high = -1, guesses
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if few_wrong(canaries, guesses, mu, middle) <= 0.05 else (low, middle)
    return low


def above_the_truth(guesses, most, mu):
    """P(T ≤ u) if all guesses share the size of one N(μ/2, 1)."""
    size = np.abs(special.ndtri((np.arange(20_000) + 0.5) / 20_000) + mu / 2.0)
    return float(stats.binom.cdf(most, guesses, special.expit(-mu * size)).mean())


def test_the_formula_is_the_law_of_independent_guesses():
    rng, (canaries, guesses, mu) = np.random.default_rng(1), (60, 20, 1.0)
    scores = rng.normal(mu / 2.0, 1.0, (40_000, canaries))
    kept = np.argsort(-np.abs(scores), axis=1)[:, :guesses]
    wrong = np.sum(np.take_along_axis(scores, kept, axis=1) < 0.0, axis=1)
    for most in (1, 3, 5):
        error = np.sqrt(0.25 / 40_000)
        assert np.mean(wrong <= most) == pytest.approx(few_wrong(canaries, guesses, mu, most), abs=5.0 * error)


@pytest.mark.parametrize("mu", [0.5, 1.0, 2.0])
def test_one_size_for_all_signs_has_the_gaussian_curve_in_every_coin(mu):
    """Sizes have one law for both coins, and their odds of the right sign are those of the score's two densities."""
    size = np.linspace(0.01, 9.0, 200)
    right, wrong = stats.norm.pdf(size, mu / 2.0), stats.norm.pdf(-size, mu / 2.0)
    assert right / (right + wrong) == pytest.approx(special.expit(mu * size), rel=1e-9)


@pytest.mark.deep(every=4)
@pytest.mark.parametrize("cells", rows("| canaries | guesses | μ = 0.5 | 1 | 2 |"))
def test_how_often_it_is_above_the_truth_is_what_the_page_says(cells):
    canaries, guesses, *shares = cells
    total = int(canaries.replace(",", ""))
    for mu, share in zip((0.5, 1.0, 2.0), shares, strict=True):
        curve = one_run.gaussian_curve(mu)
        if guesses[0].isdigit():
            number = int(guesses.replace(",", ""))
            most = most_rejected(total, number, mu)
        else:
            number = one_run.number_for_curve(total, curve)
            most = one_run.most_wrong_of_curve(total, number, curve, 0.05)
            assert above_the_truth(number, most, mu) <= 0.05
        assert f"{above_the_truth(number, most, mu):.1%}" == share


# Agrawal et al., arXiv 2606.12733: the hockey-stick divergence of two normal laws of sums.


def epsilon_of_pair(mean, deviation, null_deviation, delta):
    """The least ε at which both directions of N(mean, deviation²) and N(0, null²) have at most δ."""
    x = np.linspace(-40.0 * null_deviation, mean + 40.0 * deviation, 100_001)
    laws = stats.norm.pdf(x, mean, deviation), stats.norm.pdf(x, 0.0, null_deviation)

    def excess(epsilon):
        deltas = [np.sum(np.maximum(p - np.exp(epsilon) * q, 0.0)) * (x[1] - x[0]) for p, q in (laws, laws[::-1])]
        return max(deltas) - delta

    return float(optimize.brentq(excess, 0.0, 50.0, xtol=1e-6))


@pytest.mark.deep(beyond=2)
@pytest.mark.parametrize("cells", rows("| σ | q | T | ε | of the pair of sums | share |"))
def test_the_pair_of_sums_stops_below_the_epsilon_of_sampled_rounds(cells):
    sigma, rate, rounds = (float(cell.replace(",", "")) for cell in cells[:3])
    epsilon = cp.accounting.poisson(sigma, rate=rate, rounds=int(rounds)).epsilon(1e-5)
    deviation = np.sqrt(rounds * (sigma**2 + rate * (1.0 - rate)))
    pair = epsilon_of_pair(rate * rounds, deviation, np.sqrt(rounds) * sigma, 1e-5)
    assert [f"{epsilon:.2f}", f"{pair:.2f}", f"{pair / epsilon:.0%}"] == cells[3:]
    assert rate == 1.0 or pair < 0.98 * epsilon
