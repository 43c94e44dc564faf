import sys
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import made_up

from canaryproof.reports import instruments
from canaryproof.reports.pages import render
from canaryproof.verify.papers.check.results import Effort, Run


def sight(rounds, noticed):
    return {"rounds": rounds, "noticed": noticed, "runs": 10}


def fault(title, sees="", reason="", **sights):
    return {"title": title, "sees": sees, "reason": reason, "sights": sights}


EVIDENCE = {
    "members": 1000,
    "dim": 2048,
    "rate": 0.125,
    "noise_multiplier": 1.0,
    "seen": 0.9,
    "faults": {
        "early": fault("noise too small", "residual", residual=[sight(1, 8), sight(2, 9)], replay=[sight(1, 0)]),
        "never": fault("a long gradient", "replay", residual=[sight(1, 0), sight(4, 8)], replay=[sight(1, 10)]),
        "missed": fault("one size", "residual", residual=[sight(1, 0), sight(4, 8)]),
        "hidden": fault("a seed", reason="Nobody sees it."),
    },
}


def run_of(evidence):
    result = made_up.claim("instruments.power", suite="blindspots", **evidence)
    return Run("0", Effort.QUICK, 0, (replace(result, id="blindspots.instruments.power"),))


def test_cells_have_the_first_rounds_with_nine_in_ten():
    page = instruments.text(run_of(EVIDENCE))
    assert "Instruments notice 2 of 3 faults that they are made for. No instrument here notices 1 others." in page
    assert "| fault | residual | replay |" in page
    assert "| noise too small | 2 rounds | – |" in page
    assert "| a long gradient | – | 1 step |" in page
    assert "| one size | – | – |" in page
    assert "| a seed | Nobody sees it. |" in page
    assert "does not notice it within 4 rounds" in page.replace("\n", " ")


def test_a_run_without_the_measurement_has_no_page():
    empty = Run("0", Effort.QUICK, 0, ())
    assert instruments.text(empty) == ""
    assert "instruments.md" not in render(empty)
    assert "instruments.md" in render(run_of(EVIDENCE))
    # The quick level measures one instrument a fault.
    one = {
        name: fault | {"sights": dict(list(fault["sights"].items())[:1])} for name, fault in EVIDENCE["faults"].items()
    }
    assert instruments.text(run_of(EVIDENCE | {"faults": one})) == ""


def test_the_page_says_its_setting_and_each_number_once():
    page = instruments.text(run_of(EVIDENCE | {"rate": 0.25, "noise_multiplier": 1.5})).replace("\n", " ")
    assert "1,000 members, Poisson sampling at rate 0.25, clip norm 1, noise multiplier 1.5 and 2,048 coord" in page
    assert "notices the fault in at least 90% of the trainings" in page
    # Half of ten trainings suffice where that is the measure, and then less rounds do.
    page = instruments.text(run_of(EVIDENCE | {"seen": 0.8}))
    assert "| noise too small | 1 round | – |" in page
    assert "| one size | 4 rounds | – |" in page
    assert "Instruments notice 3 of 3 faults that they are made for." in page
    # What was measured without hope is no fault that they are made for.
    faults = EVIDENCE["faults"] | {"hidden": fault("a seed", reason="Nobody.", residual=[sight(4, 0)])}
    page = instruments.text(run_of(EVIDENCE | {"faults": faults}))
    assert "Instruments notice 2 of 3 faults that they are made for. No instrument here notices 1 others." in page
    assert "| a seed | Nobody. |" in page
