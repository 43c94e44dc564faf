import numpy as np
import pytest
import sympy
from scipy import integrate, stats
from sympy import log, sqrt

from canaryproof.kernels import exact_law
from canaryproof.proofs_check import joint_law
from canaryproof.proofs_check.consistency import shift
from canaryproof.proofs_check.displayed_lines import Kind, kind_of
from canaryproof.proofs_check.joint_law import X, gaussian_divergence
from canaryproof.proofs_check.sphere_moments import SIGMA, D, K
from canaryproof.verify.papers.check.results import Context, Effort

CONTEXT = Context(Effort.QUICK, 0)

NOT_EXACT = {"review.joint-law": Kind.HYPOTHESIS, "final.section-3.1.inference": Kind.HYPOTHESIS}


@pytest.mark.parametrize("line", joint_law.LINES, ids=lambda line: line.id)
def test_kind(line):
    assert kind_of(line.judge(CONTEXT)) is NOT_EXACT.get(line.id, Kind.EXACT)


@pytest.mark.parametrize(
    ("kind", "judge"),
    [
        # Half the mean, the noise's share of the variance left out, and a law without data's dimension.
        (Kind.FALSE, lambda: joint_law.limit_law(1 / (2 * SIGMA * sqrt(D)), 1 / D)),
        (Kind.FALSE, lambda: joint_law.limit_law(1 / (SIGMA * sqrt(D)), 2 / D)),
        (Kind.FALSE, lambda: joint_law.limit_law(1 / SIGMA, sympy.Integer(1))),
        (Kind.FALSE, lambda: joint_law._fourth_moment(sympy.Integer(2), SIGMA)),
        (Kind.FALSE, lambda: joint_law._fourth_moment(sympy.Integer(1), SIGMA**2)),
        (Kind.FALSE, lambda: joint_law._log_concave(D - 2)),
        (Kind.FALSE, lambda: joint_law._split(lambda length, total: length**2 - total**2)),
        (Kind.FALSE, lambda: joint_law._not_sufficient(0)),
        (Kind.EXACT, lambda: joint_law._inference(2)),
        (Kind.FALSE, lambda: joint_law._necessity(K**2 / D)),
        (Kind.FALSE, lambda: joint_law._necessity(sqrt(K) / D)),
        (Kind.EXACT, lambda: joint_law._joint_law(K**3 / D**2)),
        (Kind.EXACT, lambda: joint_law._joint_law(K**2 / D)),
        (Kind.HYPOTHESIS, lambda: joint_law._joint_law(K**4 / D**3)),
    ],
)
def test_an_altered_statement_changes_the_kind(kind, judge):
    assert kind_of(judge()) is kind


@pytest.mark.parametrize("topic", ["limit-law", "inference", "joint-law"])
def test_what_rests_on_the_law_falls_with_it(topic, monkeypatch):
    monkeypatch.setattr(joint_law, "_printed_law", lambda: joint_law.limit_law(2 / (SIGMA * sqrt(D)), 1 / D))
    judges = {"limit-law": joint_law._printed_law, "inference": lambda: joint_law._inference(4)}
    judges["joint-law"] = lambda: joint_law._joint_law(K**3 / D**2)
    assert kind_of(judges[topic]()) is Kind.FALSE


@pytest.mark.parametrize(("dim", "count", "shows"), [(10**8, 1000, False), (10**4, 1000, True)])
def test_all_cosines_together_look_normal_only_where_k_is_small_against_d_to_two_thirds(dim, count, shows):
    """The mean of √d·g of 40 runs against N(1/σ, 1/(40k)): at level 1e-6, seen where k³ > d² and not where k³ ≪ d²."""
    rng = np.random.default_rng(20261121)
    means = [np.sqrt(dim) * exact_law.cosines(count, dim, 1.0, rng).mean() for _ in range(40)]
    z = (np.mean(means) - 1.0) * np.sqrt(40 * count)
    assert (abs(z) > stats.norm.isf(0.5e-6)) == shows
    # The power where it should be seen, by calculation: the shift is this many standard errors.
    if shows:
        assert abs(shift(dim, count, 1.0)) * np.sqrt(40 * count) > 9.0
    else:
        assert abs(shift(dim, count, 1.0)) * np.sqrt(40 * count) < 0.1


@pytest.mark.parametrize("printed", [(X - log(1 - X)) / 4, (-log(1 - X) - X) / 2, X - log(1 - X) / 2])
def test_an_altered_bound_is_found(printed):
    assert kind_of(joint_law._gaussian_canaries(SIGMA, printed)) is Kind.FALSE


def test_the_share_of_the_canaries_does_not_vanish_where_the_noise_does_not_grow():
    share, bound = gaussian_divergence(SIGMA / sqrt(D))
    assert share == K / (K + SIGMA**2)
    assert kind_of(joint_law._gaussian_canaries(SIGMA / sqrt(D), bound)) is Kind.FALSE


@pytest.mark.parametrize(("dim", "count", "sigma"), [(5, 2, 1.0), (12, 4, 0.5)])
def test_the_bound_is_above_the_mean_divergence_by_matrices(dim, count, sigma):
    """Given ‖ρ‖, normal laws' divergence by their matrices, averaged over ‖ρ‖² ~ (σ² + k/d)·χ²_d by quadrature."""
    whole = sigma**2 + count / dim
    given = np.eye(count) - np.ones((count, count)) / (dim * whole)

    def divergence(square):
        mean = np.full(count, np.sqrt(square * whole) / (np.sqrt(dim) * whole))
        off = mean - 1 / np.sqrt(whole)
        value = (np.trace(given) - count - np.linalg.slogdet(given)[1] + off @ off) / 2
        return value * stats.chi2.pdf(square, dim)

    exact = integrate.quad(divergence, 0, np.inf)[0]
    share, bound = gaussian_divergence(SIGMA)
    x = share.subs({D: dim, K: count, SIGMA: sigma})
    # (q − 1)² ≤ (q² − 1)² gives away a factor of about 4 in the part that the length moves.
    assert 0 < exact < float(bound.subs(X, x)) < 4 * exact
