from canaryproof.reports.claims import claims, documents, page_name
from canaryproof.reports.folder import render
from canaryproof.verify.check.results import Level, Result, Run, Subject, Verdict


def result(name, verdict, suite="claims", **evidence):
    return Result(name, suite, Subject.DOCUMENT, f"place of {name}", f"says {name}", verdict, f"found {name}", evidence)


RUN = Run(
    "0",
    Level.QUICK,
    0,
    (
        result("canife.a", Verdict.NEEDS_DATA),
        result("final.a", Verdict.CONFIRMED),
        result("final.line", Verdict.CONFIRMED, "theorems", kind="exact"),
        result("final.b", Verdict.REFUTED),
        result("elsewhere.a", Verdict.QUALIFIED),
        Result("ours.a", "claims", Subject.IMPLEMENTATION, "", "", Verdict.CONFIRMED, "", {}),
    ),
)


def test_documents_come_in_their_order():
    assert documents(RUN) == ["final", "canife", "elsewhere"]


def test_a_page_has_all_of_its_document_and_nothing_else():
    page = claims(RUN, "final")
    assert page.index("| `final.b` | place of final.b | says final.b | found final.b |") < page.index("| `final.a` |")
    assert "canife.a" not in page
    assert "final.line" not in page
    assert "1 lines of proofs more are confirmed" in page
    assert "| confirmed | 2 | holds as printed |" in page


def test_the_summary_counts_by_document_and_links():
    page = render(RUN)["summary.md"].decode()
    assert "| [Andrew et al., final version](claims-final.md) | 2 | 0 | 1 | 0 | 0 | 3 |" in page
    assert "| [elsewhere](claims-elsewhere.md) | 0 | 1 | 0 | 0 | 0 | 1 |" in page


def test_no_name_leads_out_of_the_folder():
    assert page_name("../x") == "claims----x.md"
