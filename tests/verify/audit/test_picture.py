import base64
import re
from xml.etree import ElementTree

import numpy as np
import pytest

from canaryproof.verify.audit import picture
from canaryproof.verify.audit.audit import audit
from canaryproof.verify.canaries.scores import Scores

RNG = np.random.default_rng(0)
OBSERVED, UNOBSERVED = RNG.normal(1.0, 1.0, 200) / 1000.0, RNG.normal(0.0, 1.0, 100) / 1000.0


@pytest.fixture(scope="module", params=["closed", "unobserved", "any", "withheld", "huge"])
def found(request):
    match request.param:
        case "closed":
            return audit(Scores(OBSERVED, dim=10**6), 1e-6, claim=4.0)
        case "unobserved":
            return audit(Scores(OBSERVED, UNOBSERVED), 1e-6)
        case "any":
            return audit(Scores(1e6 * OBSERVED, 1e6 * UNOBSERVED, kind="any"), 1e-6, claim=0.1)
        case "withheld":
            return audit(Scores(-OBSERVED, dim=10**6), 1e-6, claim=4.0)
    return audit(Scores(0.5 + OBSERVED, dim=10**6), 1e-6, claim=4.0)


@pytest.mark.deep(every=2)
def test_it_shows_the_null_the_scores_the_estimate_and_the_claim(found):
    above, below = found.plot().axes
    said = {text.get_text() for axes in (above, below) if (box := axes.get_legend()) for text in box.get_texts()}
    assert {f"{found.count:,} observed", "observed, fitted"} <= said
    assert said & {"null N(0, 1/d)", "null, fitted"}
    assert (f"{found.null_count} unobserved" in said) == (found.null_count is not None)
    assert any(text.startswith("estimate adaptive, 95% interval") for text in said) == (found.estimate is not None)
    assert any(text.startswith("claimed ε = ") for text in said) == (found.claim is not None)
    assert (found.bound is None) or any(text.startswith(found.bound.name) for text in said)
    # Densities: the bars of a histogram have the area 1.
    areas = [sum(bar.get_width() * bar.get_height() for bar in bars) for bars in above.containers]
    assert areas == pytest.approx([1.0] * (1 + (found.null_count is not None)))
    right = below.get_xlim()[1]
    assert all(x < right for x in (found.claim or 0.0, *(row.high for row in [found.estimate] if row is not None)))


@pytest.fixture(scope="module")
def drawn(found):
    return picture.data(found, "svg")


@pytest.mark.deep(beyond=1)
def test_equal_audits_make_equal_files(found, drawn):
    assert drawn.startswith(b"<?xml")
    assert drawn == picture.data(found, "svg")


def test_a_picture_may_be_of_pixels():
    found = audit(Scores(OBSERVED, dim=10**6), 1e-6)
    made = picture.data(found, "png")
    assert made.startswith(b"\x89PNG")
    assert made == picture.data(found, "png")


@pytest.mark.deep(beyond=2)
def test_a_notebook_shows_the_answer_the_rows_and_the_picture(found, drawn):
    page = found._repr_html_()
    root = ElementTree.fromstring(page)
    assert root.find("p/strong").text == repr(found).removeprefix("<Audit: ").removesuffix(">")
    rows = [[cell.text for cell in row] for row in root.findall("table/tbody/tr")]
    assert [row[0] for row in rows] == [row.name for row in (*found.estimates, *found.bounds)]
    # No bound is shown larger than it is.
    assert all(float(row[3]) <= bound.low for row, bound in zip(rows[-len(found.bounds) :], found.bounds, strict=True))
    assert len(root.findall("p")) == 1 + len(found.warnings)
    image = base64.b64decode(re.search('base64,([^"]*)', page)[1])
    assert image == drawn
