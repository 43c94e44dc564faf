import json
from functools import partial

import numpy as np
import pytest
import sympy
from scipy.stats import multivariate_normal

from canaryproof.proofs_check import canife_a
from canaryproof.proofs_check.canife_a import DENSITIES, LOG_RATIO, NOISE, score_with, score_without, weighted
from canaryproof.proofs_check.displayed_lines import Kind, displayed, kind_of
from canaryproof.verify.papers.check.results import Context, Effort

CONTEXT = Context(Effort.QUICK, 0)

FOUND = {
    "canife.appendix-a.sum-of-updates": Kind.HYPOTHESIS,
    "canife.appendix-a.surrogate": Kind.HYPOTHESIS,
    "canife.appendix-a.estimate.1": Kind.HYPOTHESIS,
    **dict.fromkeys(
        (f"canife.appendix-a.{row}" for row in ("densities.3", "log-ratio.1", "log-ratio.2")), Kind.HYPOTHESIS
    ),
    "canife.section-3.2.by-design": Kind.HYPOTHESIS,
    "canife.section-3.2.weighted": Kind.HYPOTHESIS,
}


@pytest.mark.parametrize("line", canife_a.LINES, ids=lambda line: line.id)
def test_every_line_is_judged_as_found(line):
    judgement = line.judge(CONTEXT)
    assert kind_of(judgement) is FOUND.get(line.id, Kind.EXACT)
    assert judgement.finding
    json.dumps(dict(judgement.evidence))


def test_every_printed_line_has_a_line():
    lines = canife_a.LINES
    assert len({line.id for line in lines}) == len(lines)
    rows = sorted(filter(None, map(displayed, lines)))
    assert rows == sorted((name, row + 1) for name, count in canife_a.DISPLAYS.items() for row in range(count))


@pytest.mark.parametrize("printed", [*DENSITIES, *LOG_RATIO])
def test_a_changed_formula_is_found(printed):
    characters, formula, exact = printed

    def changed(s):
        return formula(s._replace(g=2 * s.g, mu=3 * s.mu))

    assert kind_of(canife_a.formula(characters, changed, exact)) is Kind.FALSE


def test_a_closing_bracket_too_many_is_told_and_no_wrong_term():
    characters, formula, exact = DENSITIES[2]
    printed, repaired = (
        canife_a.formula(text, formula, exact) for text in (characters, characters.replace(")))^T", "))^T"))
    )
    assert (kind_of(printed), kind_of(repaired)) == (Kind.HYPOTHESIS, Kind.EXACT)
    assert "1 closing bracket too many" in printed.finding
    assert "bracket" not in repaired.finding


@pytest.mark.parametrize(
    "judge",
    [
        partial(canife_a.centers, frozenset({1})),
        partial(canife_a.separation, sympy.erfc(sympy.sqrt(sympy.Symbol("q", positive=True)) / 2) / 2),
        partial(canife_a.loss_term, sympy.S.One),
    ],
)
def test_a_changed_statement_is_found(judge):
    assert kind_of(judge()) is Kind.FALSE


def test_the_hypotheses_named_are_enough():
    assert kind_of(canife_a.sum_of_updates(hypotheses=True)) is Kind.EXACT
    assert kind_of(canife_a.estimate(centred=True)) is Kind.EXACT


def test_log_ratio_agrees_with_scipy():
    rng = np.random.default_rng(5)
    setting = canife_a.setting(3)
    root = np.tril(rng.uniform(0.5, 2, (3, 3)))
    u, mu, g = rng.normal(size=(3, 3))
    values = dict(zip((*setting.u, *setting.mu, *setting.g), (*u, *mu, *g), strict=True)) | {canife_a.K: 4}
    values |= {setting.root[i, j]: root[i, j] for i in range(3) for j in range(i + 1)}
    covariance = 4 * root @ root.T
    without, with_canary = (multivariate_normal.logpdf(u, mean, covariance) for mean in (4 * mu, 4 * mu + g))
    exact = canife_a.log_ratio(setting).subs(values)
    assert float(exact) == pytest.approx(with_canary - without, rel=1e-9)


def test_surrogate_misleads_in_any_basis():
    rotation = np.linalg.qr(np.random.default_rng(6).normal(size=(3, 3)))[0]
    covariance = rotation @ np.diag([1.0, 4.0, 9.0]) @ rotation.T
    mixed, pure = rotation @ [0.6, 0.0, 0.8], rotation @ [0.0, 1.0, 0.0]
    inverse = np.linalg.inv(covariance)
    assert pure @ covariance @ pure < mixed @ covariance @ mixed
    assert pure @ inverse @ pure < mixed @ inverse @ mixed


def test_a_changed_law_of_scores_is_found():
    assert kind_of(score_without(NOISE)) is Kind.FALSE
    assert kind_of(score_with(sympy.Integer(2))) is Kind.FALSE


def test_the_hypothesis_named_is_enough():
    assert kind_of(weighted(noise_scales=True)) is Kind.EXACT
