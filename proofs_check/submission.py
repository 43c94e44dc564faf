"""The submission's proofs: the final version's, line by line, with other numbers of sections.

A line has the judge of the final version's, so that one line has one verdict.
"""

from dataclasses import replace

from canaryproof.proofs_check import (
    consistency,
    data_vectors,
    joint_law,
    lemma_a_1,
    section_3_2,
    theorem_3_1,
    theorem_3_2,
    theorem_3_3,
)
from canaryproof.verify.papers.check.documents import FINAL, SUBMISSION
from canaryproof.verify.papers.check.results import Check

_MODULES = (theorem_3_1, lemma_a_1, theorem_3_2, theorem_3_3, data_vectors, joint_law, consistency, section_3_2)
# Sentences that the final version adds.
ADDED = (
    "final.theorem-3.1.hypergeometric",
    "final.theorem-3.2.discrepancy",
    "final.theorem-3.2.null-hypothesis",
)
# Beginnings of ids and of sections in the final version, and those in the submission.
_IDS = {"section-3.1.": "section-3.", "section-3.2.": "appendix-b."}
_SECTIONS = {
    "Section 3.1, first paragraph": "Section 3, after Algorithm 1",
    "Section 3.1": "Section 3",
    "Section 3.2": "Appendix B",
}

DISPLAYS: dict[str, int] = {name: rows for module in _MODULES for name, rows in module.DISPLAYS.items()}


def _renamed(text: str, names: dict[str, str]) -> str:
    begin = next((begin for begin in names if text.startswith(begin)), "")
    return names.get(begin, "") + text.removeprefix(begin)


def _line(final: Check) -> Check:
    topic, section = final.id.removeprefix(f"{FINAL.id}."), final.source.removeprefix(FINAL.at(""))
    return replace(
        final, id=f"{SUBMISSION.id}.{_renamed(topic, _IDS)}", source=SUBMISSION.at(_renamed(section, _SECTIONS))
    )


LINES = tuple(
    _line(check)
    for module in _MODULES
    for check in module.LINES
    if check.id.startswith(f"{FINAL.id}.") and check.id not in ADDED
)
