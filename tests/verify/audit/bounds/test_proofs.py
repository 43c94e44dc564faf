"""Every bound names its proof, and the proof knows the functions that it is of.

Where a function that a bound reaches has changed, or its proof, read the sections of ``proofs_check/lower_bounds.md``
that the bound names, and mend them. Then ``python -m tests.verify.audit.bounds.test_proofs`` records that they belong
together.
"""

import hashlib
import inspect
import json
import pkgutil
import re
import sys
from pathlib import Path

import pytest

from canaryproof.proofs_check.code_digest import code_digest, reachable
from canaryproof.verify.audit import bounds
from canaryproof.verify.audit.bounds import gaussian, lower_bound, one_run, participations, precedence
from canaryproof.verify.audit.bounds.catalogue import MEASURED
from canaryproof.verify.audit.bounds.lower_bound import never

PROOFS = Path(__file__).parents[4] / "proofs_check/lower_bounds.md"
RECORD = Path(__file__).parent / "proofs.json"
MODULES = {f"{bounds.__name__}.{module.name}" for module in pkgutil.iter_modules(bounds.__path__)}
NOT_PROVEN = "7"
# Functions and sections of each bound. That by participations and the test of a claim's curve are not in the catalogue.
BOUNDS = {
    name: ([lower_bound.prepare, method.compute, method.coverage, *filter(None, [method.upper])], method.proof)
    for name, method in MEASURED.items()
}
BOUNDS["participations"] = ([participations.largest_noise], ("5a",))
BOUNDS["claimed-curve"] = ([lower_bound.prepare, one_run.curve_p_value], ("6",))


def sections(text: str) -> dict[str, str]:
    parts = re.split(r"^## (\w+)\. ", text, flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def places(name):
    return [(function.__module__, function.__qualname__) for function in BOUNDS[name][0]]


def records(text: str) -> dict[str, dict[str, str]]:
    of_section, rows = sections(text), {}
    for name, (_, numbers) in BOUNDS.items():
        proof = " ".join("".join(of_section[number] for number in numbers).split())
        rows[name] = {
            "code": code_digest(places(name), MODULES),
            "proof": hashlib.sha256(proof.encode()).hexdigest(),
        }
    return rows


@pytest.fixture(scope="module")
def text():
    return PROOFS.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def recorded():
    return json.loads(RECORD.read_text(encoding="utf-8"))


@pytest.fixture
def changed(monkeypatch, text):
    """Change the source of a module, and return the bounds whose pins break."""

    def change(module, before, after):
        rows, source = records(text), inspect.getsource
        assert before in source(module)
        with monkeypatch.context() as patch:
            patch.setattr(
                inspect, "getsource", lambda m: source(m).replace(before, after) if m is module else source(m)
            )
            anew = records(text)
        return {name for name in BOUNDS if anew[name] != rows[name]}

    return change


def test_every_bound_names_its_sections(text):
    known = sections(text)
    for name, method in MEASURED.items():
        assert set(method.proof) <= set(known), name
        # A bound without a proof names the section that says so, and no other one.
        assert (method.proof == (NOT_PROVEN,)) is (method.coverage is never), name
        assert method.proof, name


@pytest.mark.parametrize("name", BOUNDS)
def test_the_proof_is_of_this_code(name, text, recorded):
    assert records(text)[name] == recorded.get(name), __doc__


def test_a_changed_proof_is_noticed(text):
    rows, changed = records(text), records(text.replace("P(W ≥ v) ≤ β + (1 − β)", "P(W ≥ v) ≤ β + (1 + β)"))
    assert {name for name in BOUNDS if changed[name] != rows[name]} >= {"one-run", "one-run-gaussian"}
    assert changed["fixed-sequence"] == rows["fixed-sequence"]


FOR_INDEPENDENT = {"fixed-sequence", "band", "fixed-threshold", "bonferroni", "normal-scores", "gaussian-dp"}
# Changes of functions and constants are tried on these bounds.
TRIED = FOR_INDEPENDENT | {"one-run", "one-run-gaussian", "bayesian", "participations"}


@pytest.mark.parametrize(
    ("module", "before", "after", "broken"),
    [
        (precedence, "1.0 - np.exp(-epsilon)", "1.0 - 1", {"fixed-sequence", "band"}),
        (gaussian, "_TAILS = np.array([0.5, ", "_TAILS = np.array([0.4, ", {"gaussian-dp"}),
        (gaussian, "_SMALLEST_MU = 1e-40", "_SMALLEST_MU = 1e-4", {"gaussian-dp", "normal-scores", "one-run-gaussian"}),
        (participations, "np.sqrt(participations)", "participations", {"participations"}),
        (lower_bound, "if scores.independent else", "if not scores.independent else", FOR_INDEPENDENT),
        (lower_bound, "np.sort(seen, axis=1)", "seen", TRIED - {"participations"}),
    ],
)
def test_a_change_breaks_the_pins_of_those_that_reach_it(module, before, after, broken, changed):
    assert changed(module, before, after) & TRIED == broken


def test_another_function_breaks_no_pin(changed):
    head = "def epsilon_of_mu"
    assert not changed(gaussian, head, f"_ANOTHER = 0.5\n\n\ndef another(scores):\n    return _ANOTHER\n\n\n{head}")


def test_another_bound_in_a_module_breaks_no_pin(changed):
    head = "METHODS = ("
    assert not changed(gaussian, head, f'{head}Method("another", "", normal_scores, (), if_independent, ("5",)),')


def test_what_makes_up_a_bound_is_reached_across_modules():
    found = {name for _, name in reachable(places("gaussian-dp"), MODULES)}
    assert {"_rejected_mu", "_LARGEST_MU", "order_statistic", "_LOGITS", "ScoreSample", "if_independent"} <= found
    assert not {"normal_scores", "METHODS", "Method", "band"} & found


if __name__ == "__main__":
    before = json.loads(RECORD.read_text(encoding="utf-8"))
    after = records(PROOFS.read_text(encoding="utf-8"))
    changed_names = [name for name in BOUNDS if after[name] != before.get(name)]
    sys.stdout.write(f"recorded anew: {', '.join(changed_names) or 'none'}\n")
    RECORD.write_text(json.dumps(after, indent=2) + "\n", encoding="utf-8")
