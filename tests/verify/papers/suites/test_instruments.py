from collections import Counter
from math import comb
from types import SimpleNamespace

import pytest

from canaryproof.verify.papers.check.results import Context, Effort, Verdict
from canaryproof.verify.papers.suites import instruments


@pytest.mark.parametrize(("small", "verdict"), [(5, Verdict.CONFIRMED), (20, Verdict.REFUTED)])
def test_as_many_small_p_values_or_more_are_as_rare_as_the_binomial_law_says(monkeypatch, small, verdict):
    asked = Counter()

    def inspections(*_):
        asked["runs"] += 1
        p_values = {"one": 0.05 if asked["runs"] <= small else 0.051, "other": None}
        tests = [SimpleNamespace(name=name, p_value=p_value, has_failed=False) for name, p_value in p_values.items()]
        return [None, SimpleNamespace(tests=lambda: tests)]

    monkeypatch.setattr(instruments, "_inspections", inspections)
    monkeypatch.setattr(instruments, "replayed", lambda *_: False)
    outcome = instruments._level(Context(Effort.QUICK, 0))
    p_value = sum(comb(40, n) * 0.05**n * 0.95 ** (40 - n) for n in range(small, 41))
    assert outcome.finding == (
        f"smallest of 2 p-values {p_value:.2g} (one; 40 runs); 0 tests and 0 of 1 replay refute an honest training"
    )
    assert outcome.verdict is verdict
    assert outcome.evidence == {"runs": 40, "refuted": 0, "small": {"one": small, "other": 0}}
