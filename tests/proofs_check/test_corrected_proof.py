import re
from importlib.resources import files

import pytest

from canaryproof.proofs_check.lines import Kind

TEXT = (files("canaryproof.proofs_check") / "corrected_proof.md").read_text()
CITED = sorted(
    {name for names in re.findall(r"\[([a-z][^\]]*)\]", TEXT) for name in names.replace("\n", " ").split(", ")}
)


def test_the_proof_cites_lines():
    assert len(CITED) > 20


@pytest.mark.parametrize("name", CITED)
def test_every_line_cited_holds(name, quick_run):
    # Of all lines it rests on, one needs a hypothesis, d ≥ 2, which the proof states.
    expected = Kind.HYPOTHESIS if name == "final.theorem-3.1.density" else Kind.EXACT
    if name == "final.footnote-2":
        # Cited for its counterexample.
        expected = Kind.FALSE
    assert quick_run.results[name].evidence["kind"] == expected
