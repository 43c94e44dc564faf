import contextlib
import dataclasses
import hashlib
import html
import json
import math
import re
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

import dp_accounting
import jsonschema
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from canaryproof.kernels.canaries import Canaries
from canaryproof.kernels.orthonormal_canaries import OrthonormalCanaries
from canaryproof.verify.audit.accounting import accountant
from canaryproof.verify.audit.answer import page, report, report_check
from canaryproof.verify.audit.answer.findings import RULES, GateOutcome
from canaryproof.verify.audit.answer.run_audit import audit, audit_release
from canaryproof.verify.audit.answer.text import to_report
from canaryproof.verify.audit.canaries.canary_clients import CanaryClients
from canaryproof.verify.audit.canaries.participation import Insertion, bernoulli, shuffled_epochs
from canaryproof.verify.audit.canaries.scores import Scores
from canaryproof.verify.audit.files import json_records
from canaryproof.verify.audit.files.errors import InputError
from canaryproof.verify.audit.files.reading import LARGEST_COUNT
from tests.printed import numbers

HEADING = report.ReportHeading("report.html")
SCHEMA = json.loads(Path(report.__file__).with_name("report_schema.json").read_text())
DIM, ROUNDS = 900, 6
RNG = np.random.default_rng(0)


def released(noise, count=60, canaries=None):
    canaries = canaries or Canaries(5, count, DIM)
    return canaries.sum(np.arange(count)) + noise * np.random.default_rng(1).normal(size=DIM), canaries


def trained(noise, rate=None):
    """Train on nothing but noise and 60 canaries."""
    insertion, seed = Insertion(120, observed=60), 3
    rounds = shuffled_epochs(ROUNDS, 1, 1, seed, insertion)
    if rate is not None:
        rounds = bernoulli(0, rate, ROUNDS, seed, insertion)
    clients = CanaryClients(Canaries(seed, 120, DIM), rounds, noise_multiplier=None if rate is None else noise)
    rng = np.random.default_rng(seed)
    for t in range(ROUNDS):
        clients.add(clients.total(t, 1.0) + noise * rng.normal(size=DIM), t)
    return clients


ANY = Scores(RNG.normal(0.5, 1.0, 300), RNG.normal(size=200), kind="any")
INFINITE = Scores(np.append(RNG.normal(size=50), np.inf), RNG.normal(size=50), kind="any")
STEP = dp_accounting.PoissonSampledDpEvent(0.5, dp_accounting.GaussianDpEvent(1.0))
EVENT = dp_accounting.ComposedDpEvent([dp_accounting.SelfComposedDpEvent(STEP, 3), dp_accounting.LaplaceDpEvent(2.0)])
# Each kind of audit, with what it was made of.
KINDS = {
    "consistent": lambda: (audit_release(*released(1.0), 1e-5, noise_multiplier=1.0), released(1.0)[0]),
    "refuted": lambda: (audit_release(*released(0.4), 1e-5, noise_multiplier=1.0), released(0.4)[0]),
    "absent": lambda: (audit_release(RELEASE, Canaries(6, 60, DIM), 1e-5, noise_multiplier=1.0), RELEASE),
    "single": lambda: (
        audit_release(RELEASE.astype(np.float32), Canaries(5, 60, DIM), 1e-5),
        RELEASE.astype(np.float32),
    ),
    "orthonormal": lambda: (
        audit_release(*released(1.0, canaries=OrthonormalCanaries(5, 60, DIM)), 1e-5, claim=5.0, neighbours="replace"),
        released(1.0, canaries=OrthonormalCanaries(5, 60, DIM))[0],
    ),
    "forced": lambda: (audit(WRONG, 1e-5, 0.9, claim=2.0, bounds=("band", "normal-scores"), force=True), WRONG),
    "any": lambda: (audit(ANY, 1e-5, claim=0.5), ANY),
    "event": lambda: (audit(ANY, 1e-5, claim=EVENT), ANY),
    "pure": lambda: (audit(ANY, 0.0, claim=1), ANY),
    "infinite": lambda: (audit(INFINITE, 1e-5), INFINITE),
    "two": lambda: (audit(TWO, 1e-5, claim=np.float32(1.0)), TWO),
    "known": lambda: (audit(KNOWN, 1e-5, claim=accountant.gaussian(1.0)), KNOWN),
    "likelihood": lambda: (
        audit(LIKELIHOOD, 1e-5, claim=accountant.poisson(1.0, rate=0.25, rounds=ROUNDS, neighbours="replace")),
        LIKELIHOOD,
    ),
    "largest": lambda: (audit(LARGEST, 1e-5, claim=accountant.epsilon_delta(3.0, 1e-6)), LARGEST),
}
RELEASE = released(1.0)[0]
WRONG = Scores(-0.1 + RNG.normal(size=100) / 30.0, dim=DIM)
TWO = Scores([0.05, 0.06], dim=DIM)
KNOWN, LARGEST = trained(1.0).scores("known rounds"), trained(1.0).scores("largest")
LIKELIHOOD = trained(1.0, 0.25).scores("likelihood")


QUICK = ("refuted", "absent", "known", "pure")


@pytest.fixture(
    scope="module", params=[kind if kind in QUICK else pytest.param(kind, marks=pytest.mark.deep) for kind in KINDS]
)
def made(request, tmp_path_factory):
    """An audit, what it was made of, its record and its page."""
    result, given = KINDS[request.param]()
    path = tmp_path_factory.mktemp("report") / "report.html"
    result.report(path)
    return SimpleNamespace(result=result, given=given, document=report.record(result, HEADING), path=path)


def test_a_record_is_of_the_published_form(made):
    jsonschema.validate(made.document, SCHEMA)
    assert SCHEMA["title"] == made.document["schema"]
    assert list(made.document) == SCHEMA["required"] == list(SCHEMA["properties"])


def test_every_number_is_derived_anew(made):
    saved = json.loads(report.dump(made.document))
    again = report_check.derive(json_records.read(report.ReportRecord, saved), made.given)
    assert report.record(again, HEADING) == made.document
    assert not list(report_check.differences(saved, report.record(again, HEADING)))


def test_a_report_is_read_as_it_was_written_in_every_form(made):
    for suffix in report.SUFFIXES:
        path = made.path.with_suffix(suffix)
        if suffix != ".html":
            made.result.report(path)
        read = report_check.read(path)
        named = report.record(made.result, report.ReportHeading(path.name))
        assert (read.document, read.damage) == (named, ())
        assert len(read.whole) < 1_000_000


@pytest.mark.deep
def test_equal_audits_have_equal_reports(tmp_path):
    result, _ = KINDS["refuted"]()
    again, _ = KINDS["refuted"]()
    for suffix in report.SUFFIXES:
        result.report(tmp_path / f"report{suffix}")
        path = tmp_path / f"report{suffix}"
        named = report.record(again, report.ReportHeading(path.name))
        assert path.read_bytes() == report.render(again, named, path)


class Tags(HTMLParser):
    """Elements of a page, which are closed in order."""

    def __init__(self, text):
        super().__init__()
        self.names, self.ids, self.open, self.words = set(), [], [], []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.names.add(tag)
        self.ids += [value for name, value in attrs if name == "id"]
        assert not [name for name, value in attrs if name.startswith("on") or "javascript:" in (value or "")]
        for name, value in attrs:
            assert name not in ("src", "href", "xlink:href") or value.startswith("#")
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.words.append(data)


def test_a_page_needs_no_script_and_no_other_file_and_says_the_answer_first(made):
    result, document, text = made.result, made.document, made.path.read_text()
    tags = Tags(text)
    assert "script" not in tags.names
    assert len(tags.ids) == len(set(tags.ids))
    assert not re.search(r"url\((?!#)|@import", text)
    names = set(re.findall(r'(?:url\(|href=")#([^)"]+)', text))
    assert names <= set(tags.ids)
    answer = text.index(html.escape(document["answer"], quote=False).replace("'", "&#39;"))
    assert answer < text.index("<svg")
    words = " ".join("".join(tags.words).split())
    for each in (*result.estimates, *result.bounds):
        assert each.assumes in words
    for warning in result.warnings:
        assert warning.what_to_do in words
    assert document["input"]["sha256"] in words
    assert document["repeat"][-1] in words
    # Axes and words take the page's colours, which are other ones in the dark.
    assert not re.search("#000000|#ffffff", re.sub("<style>.*?</style>", "", text, count=1, flags=re.DOTALL))


def test_pictures_are_of_what_is_there(made):
    captions = re.findall("<figcaption>(.*)</figcaption>", made.path.read_text())
    evidence, curve = (made.document[name] is not None for name in ("evidence", "curve"))
    assert len(captions) == 1 + evidence + curve
    assert evidence == (made.result.scores.record is not None and made.result.noise_multiplier is not None)
    assert curve == (not made.result.withheld)


def test_a_report_has_the_sentences_to_report_in_every_form(made):
    said = to_report(made.result)
    assert said
    assert made.document["to_report"] == said
    for text in (
        page.markdown(made.result, made.document),
        re.sub("<[^>]*>", "", html.unescape(made.path.read_text())),
    ):
        words = " ".join(text.replace("\\", "").partition("To report")[2].split())
        assert " ".join(said.split()) in words


def test_markdown_has_the_same_words():
    result, _ = KINDS["refuted"]()
    document = report.record(result, HEADING)
    words = page.markdown(result, document)
    assert words.startswith("# Privacy audit: ")
    headings = re.findall("<h2 [^>]*>(.*)</h2>", page.html(result, document))
    assert headings == re.findall("^## (.*)$", words, re.MULTILINE)
    rows = [line for line in words.splitlines() if line.startswith("|")]
    assert all(len(re.findall(r"(?<!\\)\|", row)) >= 3 for row in rows)


@pytest.fixture(scope="module", params=report.SUFFIXES)
def written(request, tmp_path_factory):
    """A report's file in one of its forms, which a test may change, and its bytes."""
    path = tmp_path_factory.mktemp("written") / f"report{request.param}"
    audit(TWO, 1e-5, claim=1.0).report(path)
    return path, path.read_bytes()


def test_a_changed_byte_is_noticed_anywhere(written):
    path, whole = written
    # A step that is no divisor of anything, so that all kinds of places are tried.
    for i in range(0, len(whole), max(1, len(whole) // 300) | 1):
        path.write_bytes(whole[:i] + bytes([whole[i] ^ 1]) + whole[i + 1 :])
        with contextlib.suppress(InputError):
            assert report_check.read(path).damage, i


def test_what_is_added_or_cut_is_noticed(written):
    path, whole = written
    for other in (whole + b" ", b" " + whole, whole[:-1], whole.replace(b"  ", b" ", 1)):
        path.write_bytes(other)
        with contextlib.suppress(InputError):
            assert report_check.read(path).damage


def test_who_computes_the_seals_again_is_found_by_the_numbers():
    result, given = KINDS["refuted"]()
    document = json.loads(report.dump(report.record(result, HEADING)))
    document["audit"]["decision"]["outcome"], document["audit"]["bounds"][0]["low"] = "PASSED", 0.5
    document["audit"]["findings"][1]["status"] = "as claimed"
    sealed = report.seal(document)
    read = json_records.read(report.ReportRecord, sealed)
    assert read.sha256 == sealed["sha256"]
    derived = report.record(report_check.derive(read, given), HEADING)
    names = {each.name for each in report_check.differences(sealed, derived)}
    changed = {"audit.decision.outcome", "audit.findings[1].status", "audit.bounds[0].low"}
    assert names == {*changed, "sha256"}


def test_the_smallest_differences_are_rounding_and_no_larger_ones():
    there = {"a": 1.0, "b": [2.0, 3], "c": "x", "d": None}
    here = {"a": 1.0 + 1e-12, "b": [2.001, 4, 5], "c": "y", "e": 0.0}
    found = {each.name: each.rounding for each in report_check.differences(there, here)}
    assert found == {"a": True, "b[0]": False, "b[1]": False, "b[2]": False, "c": False, "d": False, "e": False}


@pytest.mark.parametrize(
    ("factor", "rounding"), [(1.0 + 0.99e-9, True), (1.0 + 1.01e-9, False), (1.0 - 1.01e-9, False)]
)
def test_a_difference_of_a_billionth_may_be_rounding(factor, rounding):
    (found,) = report_check.differences({"a": 123.0}, {"a": 123.0 * factor})
    assert found.rounding == rounding


@given(st.lists(st.sampled_from(["<figure>", "</figure>", "a", "\n", "<figure"]), max_size=30))
def test_pages_are_split_at_pictures_in_one_pass(pieces):
    page = "".join(pieces)
    assert report_check._split_at_pictures(page) == re.split(r"(?s)(<figure>.*?</figure>)", page)


END = f"\n{report.OPEN}\nrecord\n"
SHAPE = '<svg class="a"><path d="M{} 2L3.5 -4"/><text x="{}" y="7">0.{}</text></svg>'
PICTURES = tuple(f"<figure>{SHAPE.format(i, i, i)}</figure>" for i in (1, 2))


def page_of(first=PICTURES[0], second=PICTURES[1], words="two"):
    return f"<p>one</p>\n{first}\n<p>{words}</p>{second}\n"


@pytest.mark.parametrize(
    ("page", "found"),
    [
        (page_of(), ("", 0, 0)),
        (page_of(words="three"), ("line 3 without pictures.", 0, 0)),
        ("x" + page_of(), ("line 1 without pictures.", 0, 0)),
        (page_of() + "more", ("line 4 without pictures.", 0, 0)),
        # Coordinates, in a number's place.
        (page_of(PICTURES[0].replace("M1 2", "M-19.25 0.1")), ("", 1, 0)),
        (page_of(PICTURES[1].replace("0.2", "0.1"), PICTURES[0].replace("0.1", "0.2")), ("", 2, 0)),
        # A label, another form, a colour, another element, words, and a coordinate that is none.
        (page_of(PICTURES[0].replace(">0.1<", ">0.9<")), ("", 1, 1)),
        (page_of(PICTURES[0].replace("L3.5", "l3.5")), ("", 1, 1)),
        (page_of(PICTURES[0].replace('"a"', '"b"')), ("", 1, 1)),
        (page_of(PICTURES[0].replace("</svg>", "<h1>certified</h1></svg>")), ("", 1, 1)),
        (page_of("<figure><style>p{display:none}</style></figure>"), ("", 1, 1)),
        (page_of(PICTURES[0].replace('x="1"', 'x="1" onclick="1"')), ("", 1, 1)),
        (page_of(PICTURES[0].replace('x="1"', 'x="1&quot;"')), ("", 1, 1)),
        (page_of(PICTURES[1], PICTURES[0]), ("", 2, 2)),
        # Their number and their places.
        (page_of(PICTURES[0] + PICTURES[0]), ("The pictures are not where the audit has them.", 0, 0)),
        (page_of(""), ("The pictures are not where the audit has them.", 0, 0)),
        (page_of() + PICTURES[0], ("The pictures are not where the audit has them.", 0, 0)),
        (page_of("<figure>").replace("</p><figure>", "</p>"), ("line 3 without pictures.", 0, 0)),
    ],
)
def test_a_page_that_differs_says_where_or_in_how_many_pictures(page, found):
    text, pictures, shapes = found
    said = f"The page does not say what its record says: {text}" if text.startswith("line") else text
    compared = report_check.page_comparison((page + END).encode(), (page_of() + END).encode())
    assert (compared.pictures, compared.shapes) == (pictures, shapes)
    assert compared.text == said


@pytest.fixture(scope="module")
def drawn():
    """A page of an audit with its three pictures, up to its record."""
    result, _ = KINDS["refuted"]()
    page = report.render(result, report.record(result, HEADING), Path("a.html"))
    return page[: page.rindex(report.OPEN.encode())]


@pytest.mark.parametrize("step", [211, pytest.param(1, marks=pytest.mark.deep)])
def test_every_character_of_a_page_is_noticed_whoever_made_it(drawn, step):
    """Drawn by other versions, a picture may have other coordinates, and nothing else is other."""
    end = END.encode()
    places = {
        match.start(2) + number.start() + i
        for match in re.finditer(rb' (?:d|x|y|x1|x2|y1|y2|points|transform|viewBox)="()([^"]*)"', drawn)
        for number in re.finditer(rb"-?[\d.]+", match[2])
        for i in range(len(number[0]))
    }
    unnoticed = set()
    for i in range(0, len(drawn), step):
        changed = drawn[:i] + (b"8" if drawn[i : i + 1] != b"8" else b"3") + drawn[i + 1 :]
        found = report_check.page_comparison(changed + end, drawn + end)
        assert found != report_check.PageComparison(), i
        if not found.text and not found.shapes:
            unnoticed.add(i)
    assert unnoticed <= places


def test_a_request_that_cannot_be_repeated_is_refused_with_its_field():
    result, given = KINDS["consistent"]()
    # So much of the record is read.
    request = report._request(result)
    canaries = request.canaries
    nothing = accountant.Claim("add-or-remove")
    for changes, rule in (
        ({"canaries": None}, "request.canaries: must be there for a release"),
        (
            {"canaries": dataclasses.replace(canaries, count=LARGEST_COUNT + 1)},
            f"request.canaries.count: must be at most {LARGEST_COUNT:g}, not {LARGEST_COUNT + 1}",
        ),
        ({"claim": nothing}, "request.claim: must have a noise multiplier and rounds, a statement or an event"),
    ):
        asked = SimpleNamespace(request=dataclasses.replace(request, **changes), audit={})
        with pytest.raises(InputError) as caught:
            report_check.derive(asked, given)
        assert str(caught.value) == f"the report's request cannot be repeated: {rule}"
    for slices in ([], [DIM - 1], [DIM, 0], [DIM + 1, -1], [True, DIM - 1], "all", [float(DIM)]):
        asked = SimpleNamespace(request=request, audit={"coordinates": {"slices": slices}})
        with pytest.raises(InputError, match=r"slices: must be numbers of coordinates that sum to 900$"):
            report_check.derive(asked, given)
    asked = SimpleNamespace(request=request, audit={"coordinates": {"slices": [1] * 256 + [DIM - 256]}})
    with pytest.raises(InputError, match=r"slices: must be at most 256 of so few coordinates, not 257$"):
        report_check.derive(asked, given)
    asked = SimpleNamespace(request=request, audit={"coordinates": {"slices": [400, 500]}})
    assert report_check.derive(asked, given).scores.observed == pytest.approx(result.scores.observed, abs=1e-12)


def test_values_of_other_types_differ_as_a_whole():
    values = [{"a": 1}, [1], "a", 1, 1.0, True, None]
    for there in values:
        for here in values:
            found = list(report_check.differences({"x": there}, {"x": here}))
            assert [(each.name, each.rounding) for each in found] == ([] if there is here else [("x", False)])
    assert report_check.count_values({"x": values}) == len(values)


def test_scores_have_a_digest_of_all_that_counts():
    digests = {
        report.scores_digest(scores)
        for scores in (
            ANY,
            Scores(ANY.observed, ANY.unobserved[::-1], kind="any"),
            Scores(ANY.observed, ANY.unobserved, kind="any", inclusion="coin"),
            Scores(np.append(ANY.observed, ANY.unobserved[0]), ANY.unobserved[1:], kind="any"),
            KNOWN,
            Scores(KNOWN.observed, dim=DIM),
        )
    }
    assert len(digests) == 6


def test_saved_scores_are_the_same(tmp_path):
    for scores in (KNOWN, INFINITE):
        scores.save(tmp_path / "scores.json")
        assert report.scores_digest(Scores.load(tmp_path / "scores.json")) == report.scores_digest(scores)


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"schema": "canaryproof audit plan 2.0.0"}, "schema: must begin with 'canaryproof audit report ', not "),
        ({"schema": 2}, "schema: must be text"),
        ({"versions": {"canaryproof": 2}}, "versions"),
        ({"repeat": 1}, "repeat: must be a list"),
        ({"input": None}, "input: must be an object"),
    ],
)
def test_another_form_is_refused_in_a_line(tmp_path, change, rule):
    path = tmp_path / "report.json"
    audit(TWO, 1e-5).report(path)
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(InputError, match=re.escape(rule)):
        report_check.read(path)


HERE = report.versions_here()["canaryproof"].split(".")


@pytest.mark.parametrize(
    ("made_by", "same"),
    [
        (".".join(HERE), True),
        (f"{HERE[0]}.{HERE[1]}.99", True),
        (f"{HERE[0]}.{HERE[1]}0.0", False),
        (f"{HERE[0]}.99.{HERE[2]}", False),
        (f"99.{HERE[1]}.{HERE[2]}", False),
        (HERE[0], False),
        ("", False),
    ],
)
def test_a_report_of_another_minor_version_is_read_up_to_its_seal(tmp_path, made_by, same):
    path = tmp_path / "report.json"
    document = report.record(audit(TWO, 1e-5), HEADING) | {"versions": {"canaryproof": made_by}}
    for each in (document, {name: document[name] for name in ("schema", "versions", "sha256")}):
        path.write_text(report.dump(report.seal(each)) + "\n")
        if each is not document and same:
            with pytest.raises(InputError, match="heading: is missing"):
                report_check.read(path)
        else:
            read = report_check.read(path)
            assert (read.made_by, read.record is not None, read.damage) == (made_by, same, ())


def test_a_digest_is_found_where_a_record_of_any_version_has_one():
    document = report.record(KINDS["consistent"]()[0], HEADING)
    assert report_check.find_digest(document, "input", "sha256") == document["input"]["sha256"]
    assert report_check.find_digest(document, "input", "file", "sha256") is None
    assert report_check.find_digest({"input": [1]}, "input", "file", "sha256") is None
    assert report_check.find_digest({"input": {"file": {"sha256": 3}}}, "input", "file", "sha256") is None


@pytest.mark.parametrize(
    "claim",
    [
        accountant.gaussian(1.5, participations=3, rounds=9, neighbours="replace"),
        accountant.gaussian(1.5, participations=0),
        accountant.poisson(1.5, rate=0.25, rounds=9),
        accountant.shuffled(1.5, batches=4, epochs=3, neighbours="replace"),
        accountant.epsilon_delta(2.0, 1e-7),
        accountant.from_event(EVENT),
        accountant.from_event(dp_accounting.dp_event.ZCDpEvent(0.1)),
        accountant.from_event(dp_accounting.dp_event.TruncatedSubsampledGaussianDpEvent(100, 0.1, 20, 1.0)),
        accountant.from_event(dp_accounting.dp_event.MixtureOfGaussiansDpEvent(1.5, [0.0, 2.0], [0.5, 0.5])),
    ],
)
def test_claims_are_read_as_they_were_written(claim):
    document = json.loads(json.dumps(json_records.to_document(claim)))
    fields = [field.name for field in dataclasses.fields(accountant.Claim)]
    assert list(document) == fields if claim.epochs else fields[:-1]
    read = json_records.read(accountant.Claim, document)
    assert read == report_check._check_claim(read) == claim


@pytest.mark.parametrize(
    ("event", "rule"),
    [
        ({"type": "DpEvent.__init__"}, ": must be an event of dp-accounting, not "),
        ({"type": "math"}, ": must be an event of dp-accounting, not "),
        (3, ": must be an event of dp-accounting, not 3"),
        ({"type": "ComposedDpEvent", "events": 3}, ": 'events' must be a list of events, not 3"),
        ({"type": "ComposedDpEvent", "events": [3]}, ": must be an event of dp-accounting, not 3"),
        (
            {
                "type": "MixtureOfGaussiansDpEvent",
                "standard_deviation": 1,
                "sensitivities": [[1]],
                "sampling_probs": [1],
            },
            ": '' must be a number, not ",
        ),
        ({"type": "GaussianDpEvent", "noise_multiplier": [1]}, ": 'noise_multiplier' must be a number, not "),
        ({"type": "GaussianDpEvent"}, ": must have the fields of GaussianDpEvent"),
        ({"type": "GaussianDpEvent", "noise_multiplier": "1"}, ": 'noise_multiplier' must be a number, not '1'"),
        (
            {"type": "SelfComposedDpEvent", "event": {"type": "NonPrivateDpEvent"}, "count": 0.5},
            ": 'count' must be a number",
        ),
    ],
)
def test_an_unknown_event_is_refused(event, rule):
    document = json_records.to_document(accountant.gaussian(1.0)) | {"event": event}
    with pytest.raises(ValueError, match=f"^event{rule}"):
        json_records.read(accountant.Claim, document)


def test_the_alarm_is_at_the_first_round_whose_evidence_reaches_it():
    # With two thirds of the noise the evidence grows round by round; each is a point of the record.
    scores = trained(0.65).scores("known rounds")
    evidence = report.record(audit(scores, 1e-5, claim=accountant.gaussian(1.0)), HEADING)["evidence"]
    assert [place for place, _ in evidence["points"]] == list(range(1, evidence["measured_rounds"] + 1))
    above = [place for place, log in evidence["points"] if math.exp(log) > 1.0 / evidence["alarm_level"]]
    assert evidence["alarm_round"] == above[0] > 1
    assert evidence["largest_log"] == max(log for _, log in evidence["points"])


CURVE = {
    "true_positive_rates": [
        {"false_positive_rate": 0.02, "estimate": 0.345, "low": 0.2349},
        {"false_positive_rate": 0.003, "estimate": 0.456, "low": 0.1239},
    ],
    "advantage": {"estimate": 0.567, "low": 0.4329},
    "epsilon": [{"delta": 1e-4, "low": 1.1119}, {"delta": 2e-3, "low": 0.9879}],
}
EVIDENCE = {"measured_rounds": 1357, "alarm_level": 4e-3, "alarm_round": None, "largest_log": 1.5}


def sections(result, document):
    """The figures of each section of a report."""
    parts = page.markdown(result, document).replace("\\", "").replace("SHA-256", "").split("\n## ")[1:]
    return {title: numbers(text) for title, _, text in (part.partition("\n") for part in parts)}


def test_each_figure_of_a_page_is_the_records():
    """No two figures of this record are equal."""
    result, _ = KINDS["known"]()
    document = report.record(result, HEADING)
    made = document | {
        "claimed": document["claimed"] | {"epsilon": 3.14159265, "delta": 3e-5, "mechanism": "some", "basis": "some"},
        "curve": CURVE,
        "evidence": EVIDENCE,
        "rounds": document["rounds"] | {"rounds": 4321, "missing": 234, "participations": 1567},
        "request": document["request"]
        | {"canaries": {"seed": 98_765, "count": 2468, "dim": 13_579, "directions": "independent"}},
        "input": document["input"] | {"sha256": "some", "file": {"name": "some", "bytes": 86_420, "sha256": "some"}},
    }
    found = sections(dataclasses.replace(result, confidence=0.82), made)
    assert found["What was claimed"] == ["3.14159", "3e-05"]
    assert found["Estimates and bounds"][:2] == ["82", "91"]
    assert found["Trade-off curve"] == [
        *("82", "0.02", "0.345", "0.234", "0.003", "0.456", "0.123", "0.567", "0.432"),
        *("0.0001", "1.11", "0.002", "0.987"),
    ]
    assert found["Evidence over rounds"] == ["1357", "4.48", "250", "0.004"]
    assert found["What was audited"] == ["86420", "2468", "13579", "98765", "4321", "234", "1567"]
    alarm = made | {"evidence": EVIDENCE | {"alarm_round": 1246, "largest_log": 100.0}}
    # Of e^100 the logarithm to base 10 is 43.4.
    assert "after measured round 1,246 of 1,357." in page.markdown(result, alarm)
    assert "reaches 1e43.4; an alarm" in page.markdown(result, alarm)


CLAIM_ROWS = [
    ("ε", "3.14159 at δ = 3e-05"),
    ("neighbours", "replace"),
    ("mechanism", "some noise"),
    ("accounting of ε", "some accounting"),
    ("holds against", "an attacker who knows how rounds were drawn, and not which"),
]
CURVE_ROWS = [
    ("true positive rate at a false positive rate of 0.02", "0.345", "0.234"),
    ("true positive rate at a false positive rate of 0.003", "0.456", "0.123"),
    ("advantage", "0.567", "0.432"),
    ("ε at δ = 0.0001", "", "1.11"),
    ("ε at δ = 0.002", "", "0.987"),
]
AUDITED_ROWS = [
    ("SHA-256 of the release's coordinates", "digest"),
    ("file", "name"),
    ("its size", "86,420 bytes"),
    ("its SHA-256", "another"),
    ("canaries", "2,468 independent in 13,579 dimensions"),
    ("their seed", "98765"),
    ("score", "some score"),
    ("rounds", "4,321; 234 missing"),
    ("participations of a canary", "at most 1,567"),
    ("SHA-256 of the plan's file", "a third"),
    ("nonce of its seed", "a nonce"),
]


def test_each_line_of_a_page_stands_under_its_name():
    result, _ = KINDS["known"]()
    claimed = {
        "epsilon": 3.14159265,
        "delta": 3e-5,
        "neighbours": "replace",
        "mechanism": "some noise",
        "basis": "some accounting",
        "attacker": "sampling",
    }
    plan = {"answer": "Kept.", "sha256": "a third", "secret": {"seed": 5, "nonce": "a nonce"}}
    plan["differences"] = [{"name": "δ", "planned": "1", "audited": "2"}]
    made = report.record(result, HEADING) | {
        "claimed": claimed,
        "curve": CURVE,
        "evidence": EVIDENCE,
        "rounds": {"score": "some score", "rounds": 4321, "missing": 234, "skipped": 9, "participations": 1567},
        "request": {"canaries": {"seed": 98_765, "count": 2468, "dim": 13_579, "directions": "independent"}},
        "input": {
            "subject": "release",
            "sha256": "digest",
            "file": {"name": "name", "bytes": 86_420, "sha256": "another"},
        },
        "plan": plan,
        "repeat": ["canaryproof check-report audit.md --release name"],
        "versions": {"python": "3.14", "numpy": "9.9"},
    }
    found = {section.title: section for section in page._sections(result, made)}
    assert list(found["What was claimed"].rows) == CLAIM_ROWS
    assert list(found["Trade-off curve"].rows) == CURVE_ROWS
    assert list(found["What was audited"].rows) == AUDITED_ROWS
    assert list(found["Versions"].rows) == [("python", "3.14"), ("numpy", "9.9")]
    held = found["Held against the plan"]
    assert (held.words, list(held.rows)) == (("Kept.",), [("δ", "1", "2")])
    assert found["Repeat it"].lines == ("canaryproof check-report audit.md --release name",)
    assert len(found["Repeat it"].words) == 1
    assert found["What the attacker knows"].words == (made["attacker"],)
    evidence = "The evidence against the claimed noise reaches 4.48; an alarm is at 250."
    assert found["Evidence over rounds"].words[0] == f"No alarm in 1,357 measured rounds. {evidence}"
    for attacker, who in (("known rounds", "who knows in which rounds a record took part"), ("unstated", "not stated")):
        (section,) = page._claim(made | {"claimed": claimed | {"attacker": attacker}})
        assert section.rows[4][1].endswith(who)
    # Of evidence that is very large or small the power of ten is printed.
    assert [page._power_of_ten(log) for log in (13.8, 13.9, -13.8, -13.9)] == [
        "9.85e+05",
        "1e6.0",
        "1.02e-06",
        "1e-6.0",
    ]


@pytest.mark.parametrize(
    ("outcome", "title", "tone"),
    [
        (GateOutcome.PASSED, "passed", "good"),
        (GateOutcome.NOT_PASSED, "not passed", "bad"),
        (GateOutcome.CANNOT_SAY, "cannot say", "unsure"),
        (None, "nothing claimed", "unsure"),
    ],
)
def test_a_page_has_the_title_and_the_tone_of_its_decision(outcome, title, tone):
    result = SimpleNamespace(decision=outcome and SimpleNamespace(outcome=outcome))
    assert (page._title("audit", result.decision), page._tone(result.decision)) == (f"Privacy audit: {title}", tone)


def test_a_page_has_all_findings_and_the_rule_that_decided(made):
    result, words = made.result, page.markdown(made.result, made.document).replace("\\", "")
    for finding in result.findings:
        assert f"| {finding.question} | {finding.status} | " in words
    rules = [rule.name for rule in RULES if f"{rule.outcome}, as {rule.applies}." in words]
    assert rules == ([] if result.decision is None else [result.decision.rule])
    section = words.partition("## What was found")[2].partition("## ")[0]
    if result.decision is not None:
        asked = ", ".join(result.decision.asked)
        assert f"Asked: {asked}." in section
        assert numbers(section)[:2] == [f"{result.decision.level:.4g}", f"{100.0 * result.decision.notice:g}"]


@pytest.mark.parametrize("scores", [ANY, KNOWN])
def test_the_curve_of_a_record_is_the_table_of_the_audits(scores):
    result = audit(scores, 2e-5)
    table, found = result.curve().to_frame(), report.record(result, HEADING)["curve"]
    hits, sure = 1.0 - table.fnr, 1.0 - table.fnr_high
    for rate, each in zip((0.01, 0.001), found["true_positive_rates"], strict=True):
        assert each["false_positive_rate"] == rate
        best = [max([0.0, *share[alarms <= rate]]) for share, alarms in ((hits, table.fpr), (sure, table.fpr_high))]
        assert [each["estimate"], each["low"]] == best
    advantage = [max(0.0, (share - alarms).max()) for share, alarms in ((hits, table.fpr), (sure, table.fpr_high))]
    assert [found["advantage"]["estimate"], found["advantage"]["low"]] == advantage
    assert [each["delta"] for each in found["epsilon"]] == [0.0, 1e-9, 1e-6, 1e-5, 2e-5, 1e-3]
    assert [each["low"] for each in found["epsilon"]] == [
        result.curve().epsilon(each["delta"]) for each in found["epsilon"]
    ]
    rows = table.to_numpy().tolist()
    assert found["columns"] == list(table.columns)
    assert [found["points"][0], found["points"][-1]] == [rows[0], rows[-1]]
    assert len(found["points"]) <= 60
    places = [rows.index(point) for point in found["points"]]
    assert places == sorted(set(places))


def test_the_digest_of_scores_is_that_of_their_description_and_numbers():
    traces, counts = KNOWN.record.traces, KNOWN.record.counts
    rounds = {"score": "known rounds", "dim": DIM, "residual": traces.residual, "traced": traces.rounds}
    rounds |= {name: getattr(KNOWN.record, name) for name in ("participations", "left_out", "rounds", "missing")}
    names = ("skipped", "carry_over", "members", "taken", "correlation", "pairs", "kurtosis")
    rounds |= {name: getattr(KNOWN.record, name) for name in names}
    known = [KNOWN.observed, *([] if KNOWN.unobserved is None else [KNOWN.unobserved]), traces.cosines, traces.lengths]
    if (every := KNOWN.record.all_traces) is not None:
        rounds["all_traced"] = every.rounds
        known += [every.cosines, every.lengths]
    known += [] if counts is None else [counts]
    for scores, record, arrays in ((ANY, None, [ANY.observed, ANY.unobserved]), (KNOWN, rounds, known)):
        names = ("kind", "inclusion", "neighbours", "dim", "ranked", "inserted")
        head = {name: getattr(scores, name) for name in names} | {"lengths": [*map(len, arrays)], "record": record}
        data = b"".join(np.asarray(array, "<f8").tobytes() for array in arrays)
        digest = hashlib.sha256(json.dumps(head, sort_keys=True).encode() + data).hexdigest()
        assert report.scores_digest(scores) == digest


def test_the_page_says_what_share_of_the_noise_is_noticed():
    result, _ = KINDS["consistent"]()
    noticed = sections(result, report.record(result, HEADING))["What this audit would have noticed"]
    assert noticed[:2] == [str(int(100.0 * result.noticed_share)), "90"]
    cosines = audit(Scores(np.random.default_rng(0).normal(0.9, 1.0, 400) / 100.0, dim=10**4), 1e-5, claim=4.0)
    noticed = sections(cosines, report.record(cosines, HEADING))["What this audit would have noticed"]
    assert noticed[:5] == [
        str(int(100.0 * cosines.noticed_share)),
        "90",
        "90",
        "4",
        f"{cosines.claimed_noise(4.0):.4g}",
    ]


def test_a_claim_at_delta_0_is_named_by_its_epsilon():
    assert report.record(audit(ANY, 0.0, claim=1.25), HEADING)["claimed"]["mechanism"] == "ε = 1.25 at δ = 0"


def test_a_page_of_many_openings_is_refused_at_once(tmp_path: Path) -> None:
    """Tried from each of them, the search for the record would take hours."""
    page = tmp_path / "page.html"
    page.write_bytes(f"{report.OPEN}\n".encode() * 200_000)
    with pytest.raises(InputError, match=r"has no record of a report at its end$"):
        report_check.read(page)
