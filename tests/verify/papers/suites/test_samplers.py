import pytest

from canaryproof.kernels import exact_law
from canaryproof.verify.audit.levels import LEVEL, LOOKS
from canaryproof.verify.papers.check.results import Context, Effort, Verdict
from canaryproof.verify.papers.suites import samplers
from canaryproof.verify.papers.suites.samplers import SETTINGS

CONTEXT = Context(Effort.SMOKE, 7)


SAMPLERS = [check for check in samplers.CHECKS if check.id.startswith("algorithm1.samplers.")]


@pytest.mark.parametrize("check", SAMPLERS, ids=lambda check: check.id)
def test_the_three_samplers_agree(check, quick_run):
    assert quick_run.results[check.id].verdict is Verdict.CONFIRMED


@pytest.mark.parametrize(("share", "verdict"), [(0.99, Verdict.REFUTED), (1.01, Verdict.CONFIRMED)])
def test_all_looks_and_all_comparisons_share_the_level(monkeypatch, share, verdict):
    compared = samplers._compared
    tried = []

    def smallest(samples):
        tried.append(compared({name: cosines[:20] for name, cosines in samples.items()}))
        return dict.fromkeys(tried[0], share * LEVEL / (LOOKS * len(tried[0])))

    monkeypatch.setattr(samplers, "_compared", smallest)
    drawn = dict.fromkeys(samplers._SAMPLERS, lambda setting, runs, rng: rng.normal(size=(runs, setting.count)))
    monkeypatch.setattr(samplers, "_SAMPLERS", drawn)
    assert samplers._judge(SETTINGS[0], CONTEXT).verdict is verdict
    assert len(tried) == (LOOKS if verdict is Verdict.CONFIRMED else 1)


def test_a_sampler_with_the_wrong_noise_is_found(monkeypatch):
    right = exact_law.cosines
    monkeypatch.setattr(exact_law, "cosines", lambda k, d, sigma, *rest: right(k, d, 1.5 * sigma, *rest))
    assert samplers._judge(SETTINGS[1], CONTEXT).verdict is Verdict.REFUTED


def test_a_sampler_that_forgets_the_data_is_found(monkeypatch):
    right = exact_law.cosines
    monkeypatch.setattr(exact_law, "cosines", lambda k, d, sigma, rng, _, runs: right(k, d, sigma, rng, runs=runs))
    assert samplers._judge(SETTINGS[2], CONTEXT).verdict is Verdict.REFUTED
