import pytest

DRAWN = {}


@pytest.fixture(autouse=True)
def drawn_once(monkeypatch):
    """Draw the pictures of equal audits once in all tests of commands, as drawing takes longer than an audit."""
    from canaryproof.verify.audit.answer import page, report

    draw = page._pictures

    def drawn(result):
        asked = report.scores_digest(result.scores), repr(report.numbers(result))
        if asked not in DRAWN:
            DRAWN[asked] = tuple(draw(result))
        return DRAWN[asked]

    monkeypatch.setattr(page, "_pictures", drawn)
    return DRAWN
