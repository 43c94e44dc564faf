import re
from importlib.resources import files

import pytest

from canaryproof.proofs_check.displayed_lines import Kind

TEXT = (files("canaryproof.proofs_check") / "corrected_proof.md").read_text()
CITED = sorted(
    {name for names in re.findall(r"\[([a-z][^\]]*)\]", TEXT) for name in names.replace("\n", " ").split(", ")}
)


def test_the_proof_cites_lines():
    assert len(CITED) > 20


@pytest.mark.parametrize("name", CITED)
def test_every_line_cited_holds(name, quick_run):
    # One needs a hypothesis, d ≥ 2, which the proof states; the other is cited for the condition that it lacks.
    lacking = name in ("final.theorem-3.1.density", "final.footnote-2")
    expected = Kind.HYPOTHESIS if lacking else Kind.EXACT
    assert quick_run.results[name].evidence["kind"] == expected
