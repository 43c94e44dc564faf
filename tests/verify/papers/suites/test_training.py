import math

import numpy as np
import pytest

from canaryproof.kernels import gaussian_mechanism
from canaryproof.verify.papers.check.results import Context, Effort, Verdict
from canaryproof.verify.papers.suites import catalogue, training, training_runs
from canaryproof.verify.papers.suites.training_runs import TrainingSample
from canaryproof.verify.papers.training.canary_scores import ATTACKS, CanaryScores

QUICK = Context(Effort.QUICK, 0)


def samples(monkeypatch, law):
    """Draw samples from normal laws, whose means by attack depend on the settings, in place of trainings."""

    def sample(context, purpose, chosen, repetitions, attacks=ATTACKS):
        rng = np.random.default_rng(context.key(purpose))
        distance = {attack: law(chosen, attack) + 0.05 * rng.standard_normal(repetitions) for attack in attacks}
        return TrainingSample(distance, dict.fromkeys(attacks, np.ones(repetitions)), distance)

    monkeypatch.setattr(training_runs, "sample", sample)


@pytest.mark.parametrize(
    ("law", "verdict"),
    [
        (lambda _, attack: 5.0 if attack == "all" else 1.0, Verdict.CONFIRMED),
        (lambda _, attack: 0.5 if attack == "all" else 1.0, Verdict.REFUTED),
        (lambda _, attack: 5.0 if attack == "all" else {"final": 1.0, "change": 5.0}[attack], Verdict.INCONCLUSIVE),
        (lambda *_: 1.0, Verdict.INCONCLUSIVE),
    ],
)
def test_final_below_all(monkeypatch, law, verdict):
    samples(monkeypatch, law)
    found = training.final_below_all(QUICK)
    assert found.verdict is verdict
    assert found.design.level == 1e-6


@pytest.mark.parametrize(
    ("law", "verdict"),
    [
        (lambda chosen, _: float(chosen.canaries.presentations), Verdict.CONFIRMED),
        (lambda chosen, _: min(4.0, chosen.canaries.presentations), Verdict.INCONCLUSIVE),
        (lambda chosen, attack: chosen.canaries.presentations * (-1.0 if attack == "change" else 1.0), Verdict.REFUTED),
    ],
)
def test_presentations(monkeypatch, law, verdict):
    samples(monkeypatch, law)
    assert training.presentations(QUICK).verdict is verdict


@pytest.mark.parametrize(
    ("few", "many", "verdict"),
    [
        (1.0, 1.0, Verdict.INCONCLUSIVE),
        (1.0, 1.3, Verdict.CONFIRMED),
        (1.0, 0.7, Verdict.CONFIRMED),
        (0.5, 1.0, Verdict.REFUTED),
        (1.5, 1.0, Verdict.REFUTED),
        # At the margin, the test of closeness has no power.
        (1.156, 1.3, Verdict.INCONCLUSIVE),
    ],
)
def test_one_or_several(monkeypatch, few, many, verdict):
    means = {100: 2.0, 25: 2.0 * few, 750: 2.0, 150: 2.0 * many}
    samples(monkeypatch, lambda chosen, _: means[chosen.canaries.count])
    found = training.one_or_several(QUICK)
    assert found.verdict is verdict
    # The largest difference in a pair of rows of Table 5: 1.54 and 1.78.
    assert "15.6%" in found.finding


def test_means_that_neither_agree_nor_differ_decide_nothing(monkeypatch):
    means = {100: 2.0, 25: 2.0, 750: 0.3, 150: 0.33}
    samples(monkeypatch, lambda chosen, _: means[chosen.canaries.count])
    found = training.one_or_several(QUICK)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.evidence["few"]["p_values"]["close"] <= 5e-7 < found.evidence["many"]["p_values"]["close"]


@pytest.mark.parametrize(
    ("factor", "verdict"), [pytest.param(1.0, Verdict.CONFIRMED, marks=pytest.mark.deep), (0.4, Verdict.REFUTED)]
)
def test_bounds_notice_noise_that_is_too_little(monkeypatch, factor, verdict):
    dim = 10_000
    monkeypatch.setattr(training_runs, "dimension", lambda _: dim)

    def made(shift, count, root):
        rng, scale = np.random.default_rng(root), dim**-0.5
        return CanaryScores(
            dict.fromkeys(ATTACKS, scale * (shift + rng.standard_normal(count))),
            dict.fromkeys(ATTACKS, scale * rng.standard_normal(count)),
        )

    monkeypatch.setattr(
        training_runs,
        "noise_alone",
        lambda chosen, rounds, sigma, root: made(math.sqrt(rounds) / (factor * sigma), chosen.canaries.count, root),
    )
    monkeypatch.setattr(training_runs, "trained", lambda _, root: made(0.0, 50, root))
    found = training.bounds(QUICK)
    assert found.verdict is verdict
    assert all(row["truth"] == pytest.approx(3.0) for row in found.evidence["rows"])
    kinds = {row["method"] for row in found.evidence["rows"]}
    assert {"fixed-sequence", "one-run", "normal-scores"} <= kinds
    assert not kinds & {"andrew", "jagielski", "canife", "bayesian"}


def test_noise_alone_is_the_gaussian_mechanism():
    sigma = 2.0
    truth = float(gaussian_mechanism.epsilon(1e-5, sigma / math.sqrt(3)))
    assert training_runs.noise_alone_epsilon(3, sigma, 1e-5) == pytest.approx(truth)
    chosen = training_runs.settings(model={"hidden": 64}, canaries={"count": 200})
    scores = training_runs.noise_alone(chosen, 3, sigma, np.random.SeedSequence(1))
    found = math.sqrt(training_runs.dimension(chosen)) * scores.observed["change"].mean()
    # Twelve standard errors, and what the canaries themselves add to the release's norm.
    assert found == pytest.approx(math.sqrt(3) / sigma, abs=12 / math.sqrt(200))
    assert abs(found) > 0.1


@pytest.mark.parametrize(("same", "verdict", "count"), [(True, Verdict.CONFIRMED, 6), (False, Verdict.REFUTED, 3)])
def test_bits_that_differ_are_noticed(monkeypatch, same, verdict, count):
    scores = CanaryScores(dict.fromkeys(ATTACKS, np.zeros(3)), dict.fromkeys(ATTACKS, np.zeros(3)))
    other = CanaryScores(scores.observed, {**scores.unobserved, "change": np.array([0.0, 0.0, -0.0])})
    monkeypatch.setattr(training_runs, "trained", lambda *_: scores)
    monkeypatch.setattr(training_runs, "stopped", lambda *_: scores if same else other)
    found = training.bits(QUICK)
    assert found.verdict is verdict
    assert found.finding.startswith(f"{count} of 6 trainings")


def test_samples_depend_on_their_purpose_alone():
    chosen = training_runs.settings(training={"epochs": 1}, canaries={"count": 20, "runs": 2})
    one, again, other = (training_runs.sample(QUICK, purpose, chosen, 1) for purpose in ("a", "a", "b"))
    for attack in ATTACKS:
        assert one.distance[attack].tolist() == again.distance[attack].tolist() != other.distance[attack].tolist()


def test_without_the_extra_the_suite_says_what_it_needs(monkeypatch):
    assert catalogue.lacking("claims") == ""
    monkeypatch.setattr(catalogue, "find_spec", lambda name: None if name == "jax" else object())
    assert catalogue.lacking("training") == "needs jax: pip install '.[federated]' in canaryproof's folder"
    assert catalogue.lacking("claims") == ""
