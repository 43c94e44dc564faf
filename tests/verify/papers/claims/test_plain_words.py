"""Each statement stands for itself: it begins with a capital, points to nothing outside, and names its source alike."""

import re
from pathlib import Path
from pkgutil import resolve_name

from canaryproof.verify.papers.check.documents import DOCUMENTS, FINAL, FIRST_VERSION, document_of
from canaryproof.verify.papers.check.results import Subject
from canaryproof.verify.papers.suites.catalogue import SUITES

PROOFS = Path(__file__).parents[4] / "proofs_check"
CLAIMS = [check for suite in SUITES.values() for check in suite if check.subject is Subject.DOCUMENT]


def test_a_statement_begins_with_a_capital_word():
    # A formula that begins with a capital letter, such as N(0, 1) or Γ(d/2), is a beginning too.
    assert [check.id for check in CLAIMS if not check.statement[0].isupper()] == []
    assert [check.id for check in CLAIMS if check.statement.startswith(("…", "=", "≤"))] == []


def test_no_statement_begins_with_a_pronoun():
    pronoun = re.compile(r"(It|Its|They|Their|That|This|These|Those|Such)\b")
    assert [check.statement for check in CLAIMS if pronoun.match(check.statement)] == []


def test_a_source_is_a_documents_name_and_a_place():
    for check in CLAIMS:
        names = [document.name for document in DOCUMENTS if check.source.startswith(f"{document.name}, ")]
        assert len(names) == 1, check.source
        assert names == [document_of(check.id).name], check.source


def test_versions_are_named():
    assert FINAL.name.endswith("final version")
    assert FIRST_VERSION.name.endswith("first version")
    assert len({document.name for document in DOCUMENTS}) == len(DOCUMENTS)


def test_a_source_in_the_code_exists():
    own = {check.source for suite in SUITES.values() for check in suite if check.subject is Subject.IMPLEMENTATION}
    places = set(re.findall(r"\b(?:kernels|proofs_check|verify)(?:\.\w+)*", " ".join(own)))
    assert len(places) > 15
    # A page of proofs is a source, too.
    for place in places - {f"proofs_check.{page.stem}" for page in PROOFS.glob("*.md")}:
        # Raises an error where there is no such module, function or class.
        assert resolve_name(f"canaryproof.{place}") is not None
