import base64
import dataclasses
import math
import re
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.colors import to_rgba
from scipy import stats

from canaryproof.verify.audit.answer import picture
from canaryproof.verify.audit.answer.run_audit import audit
from canaryproof.verify.audit.answer.text import notes
from canaryproof.verify.audit.canaries.scores import Scores
from canaryproof.verify.audit.markup.figures import GREEN

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


def test_what_is_infinite_stands_at_the_edge():
    found = audit(Scores(OBSERVED, dim=10**6), 1e-6, claim=4.0)
    row = dataclasses.replace(found.estimate, epsilon=math.inf, low=2.0, high=math.inf)
    bound = dataclasses.replace(found.bound, low=math.inf)
    below = dataclasses.replace(found, estimates=(row,), bounds=(bound,)).plot().axes[1]
    right = below.get_xlim()[1]
    assert right == pytest.approx(1.08 * 4.0)
    assert f"estimate {row.name}, 95% interval, infinite" in [
        text.get_text() for text in below.get_legend().get_texts()
    ]
    (bars,) = below.containers
    assert bars[0].get_xydata().tolist() == [[right, 2.2]]
    ((interval,),) = (part.get_segments() for part in bars[2])
    assert interval[:, 0] == pytest.approx([2.0, right])
    assert [right, 1.2] in [line.get_xydata()[0].tolist() for line in below.lines]


def test_everything_stands_where_its_numbers_are(found):
    above, below = found.plot().axes
    estimate, bound, right = found.estimate, found.bound, below.get_xlim()[1]
    ends = [1.0, *([] if found.claim is None else [found.claim]), *([] if bound is None else [bound.low])]
    lines = {line.get_label(): line.get_xydata() for line in below.lines}
    if estimate is not None:
        ends += [estimate.epsilon, estimate.high]
        (bars,) = below.containers
        assert bars[0].get_xydata().tolist() == [[estimate.epsilon, 2.2]]
        ((interval,),) = (part.get_segments() for part in bars[2])
        assert interval[:, 0] == pytest.approx([estimate.low, estimate.high])
    assert below.get_xlim() == pytest.approx((0.0, 1.08 * max(ends)))
    if bound is not None:
        (place,) = (xy for label, xy in lines.items() if " ≥ " in label)
        assert place.tolist() == [[bound.low, 1.2]]
        arrow = [each for each in below.collections if each.get_color().tolist() == [list(to_rgba(GREEN))]]
        assert [each.get_segments()[0].tolist() for each in arrow] == [[[bound.low, 1.2], [right, 1.2]]]
    if found.claim is not None:
        (place,) = (xy for label, xy in lines.items() if label.startswith("claimed"))
        assert place[:, 0].tolist() == [found.claim] * 2
    assert below.get_xlabel() == "ε at δ = 1e-06"
    assert [text.get_text() for text in below.texts] == (["estimates and bounds withheld"] if found.withheld else [])
    # Scores are in the null's deviations, from its mean.
    scores, unobserved = found.scores.observed, found.scores.unobserved
    centre, scale = (0.0, 1e-3) if unobserved is None else (unobserved.mean(), unobserved.std())
    groups = [(each - centre) / scale for each in ([] if unobserved is None else [unobserved]) + [scores]]
    edges = [bar.get_x() for bar in above.containers[0]] + [above.containers[0][-1].get_corners()[2][0]]
    everything = np.concatenate(groups)
    assert (edges[0], edges[-1]) == pytest.approx((min(-3.5, everything.min()), max(3.5, everything.max())))
    for bars, z in zip(above.containers, groups, strict=True):
        heights = np.histogram(z, bins=len(edges) - 1, range=(edges[0], edges[-1]), density=True)[0]
        assert [bar.get_height() for bar in bars] == pytest.approx(heights)
    z = groups[-1]
    for line, law in zip(above.lines, (stats.norm, stats.norm(z.mean(), z.std())), strict=True):
        x, density = line.get_xydata().T
        assert (x[0], x[-1]) == pytest.approx((edges[0], edges[-1]))
        assert density == pytest.approx(law.pdf(x))
    unit = "√d · cosine" if unobserved is None else "(cosine − mean) / deviation of null"
    assert above.get_xlabel() == (unit if found.scores.kind == "cosine" else unit.replace("cosine", "score"))


@pytest.fixture(scope="module")
def drawn(found):
    return picture.data(found, "svg")


@pytest.mark.deep(beyond=1)
def test_equal_audits_make_equal_files(found, drawn):
    assert drawn.startswith(b"<svg ")
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
    findings, *tables = root.findall("table")
    answers = [[cell.text for cell in row] for row in findings.findall("tbody/tr")]
    assert answers == [[each.question, each.status, each.because] for each in found.findings]
    rows = [[cell.text for cell in row] for table in tables for row in table.findall("tbody/tr")]
    assert [row[0] for row in rows] == [row.name for row in (*found.estimates, *found.bounds)]
    # No bound is shown larger than it is.
    assert all(float(row[3]) <= bound.low for row, bound in zip(rows[-len(found.bounds) :], found.bounds, strict=True))
    assert len(root.findall("p")) == 1 + len(notes(found))
    image = base64.b64decode(re.search('base64,([^"]*)', page)[1])
    assert image == drawn
