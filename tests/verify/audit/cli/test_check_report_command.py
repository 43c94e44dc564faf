import copy
import functools
import hashlib
import json
import operator
import re
import shlex
from functools import cache
from pathlib import Path

import dp_accounting
import numpy as np
import pytest
from click.testing import CliRunner

from canaryproof.kernels.canaries import Canaries
from canaryproof.verify.audit.accounting import accountant
from canaryproof.verify.audit.answer import report, report_check
from canaryproof.verify.audit.answer.release_sums import release_sums
from canaryproof.verify.audit.answer.run_audit import audit_release
from canaryproof.verify.audit.canaries.canary_clients import CanaryClients
from canaryproof.verify.audit.canaries.participation import Insertion, bernoulli
from canaryproof.verify.audit.canaries.scores import Scores
from canaryproof.verify.audit.cli import check_report_command
from canaryproof.verify.audit.files import json_records
from canaryproof.verify.command_line import main

STEP = dp_accounting.PoissonSampledDpEvent(0.5, dp_accounting.GaussianDpEvent(1.0))
EVENT = dp_accounting.ComposedDpEvent([dp_accounting.SelfComposedDpEvent(STEP, 3), dp_accounting.LaplaceDpEvent(2.0)])
DIM, COUNT, ROUNDS = 300, 40, 9
RNG = np.random.default_rng(0)
OBSERVED, UNOBSERVED = RNG.normal(1.0, 1.0, 60), RNG.normal(size=50)
RELEASE = ("release.npy", "--canaries", COUNT, "--canary-seed", 7, "--delta", "1e-5", "--noise-multiplier", "1.5")
SCORES = ("scores.npz", "--kind", "any", "--delta", "1e-5", "--claim", "1")


def call(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@cache
def trained():
    """Train on nothing but noise and 30 canaries, each in half of the rounds."""
    rounds, rng = bernoulli(0, 0.5, ROUNDS, 3, Insertion(60, observed=30)), np.random.default_rng(3)
    clients = CanaryClients(Canaries(3, 60, DIM), rounds, noise_multiplier=1.0)
    for t in range(ROUNDS):
        clients.add(clients.total(t, 1.0) + rng.normal(size=DIM), t)
    return clients


@cache
def made_files():
    """Make the files that are audited; return their bytes by name."""
    noise = 1.5 * np.random.default_rng(1).normal(size=DIM)
    np.save("release.npy", Canaries(7, COUNT, DIM).sum(np.arange(COUNT)) + noise)
    np.savez("scores.npz", observed=OBSERVED, unobserved=UNOBSERVED)
    Scores(OBSERVED, UNOBSERVED, kind="any").save("scores.json")
    np.save("cosines.npy", OBSERVED / 30.0)
    trained().scores("likelihood").save("rounds.json")
    rows = [f"{score!r},{member}" for scores, member in ((OBSERVED, 1), (UNOBSERVED, 0)) for score in scores.tolist()]
    Path("table.csv").write_text("loss,in\n" + "\n".join(rows) + "\n")
    copies = [f"{i},{row}" for i, row in enumerate(rows) for _ in range(3)]
    Path("copies.csv").write_text("canary,loss,in\n" + "\n".join(copies) + "\n")
    Path("usual.csv").write_text("canary,score,member\n" + "\n".join(copies) + "\n")
    return {path.name: path.read_bytes() for path in Path().iterdir()}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, content in made_files().items():
        Path(name).write_bytes(content)
    return tmp_path


def digest(path):
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


REPORTS = {}


def audited(name, *arguments):
    """Write a report; one that another test has written of equal files is written again without an audit."""
    asked = name, arguments, digest(arguments[0])
    if asked not in REPORTS:
        result = call("audit", *arguments, "--report", name)
        assert result.exit_code == 0, result.output
        REPORTS[asked] = Path(name).read_bytes()
    Path(name).write_bytes(REPORTS[asked])
    return Path(name)


DERIVED = {}


@pytest.fixture(autouse=True)
def derived_once(monkeypatch):
    """Repeat audits, and draw pages, that are asked for again no second time: many tests ask for the same one."""

    def once(module, name, key):
        function = getattr(module, name)

        def kept_or_made(*arguments):
            asked = name, key(*arguments)
            if asked not in DERIVED:
                DERIVED[asked] = function(*arguments)
            return DERIVED[asked]

        monkeypatch.setattr(module, name, kept_or_made)

    once(
        check_report_command,
        "_repeat",
        lambda record, file, unobserved: (
            repr((record.request, record.input, record.audit.get("coordinates"))),
            digest(file),
            unobserved and digest(unobserved),
        ),
    )
    once(report_check, "render", lambda _, document, path: (document["sha256"], path.suffix))


def checked(*arguments):
    result = call("check-report", *arguments)
    assert (result.exit_code in (0, 1), result.stderr) == (True, "")
    return result.exit_code, result.stdout


def seal(path, document):
    """Write a record with the seals of a careful forger."""
    path.write_text(report.dump(report.seal(document)) + "\n")


def are_of_one_audit(*paths):
    """Tell whether reports are equal but for their names."""
    own = ("heading", "repeat", "sha256")
    records = [{k: v for k, v in report_check.read(path).document.items() if k not in own} for path in paths]
    return records[0] == records[1]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("suffix", report.SUFFIXES)
def test_a_heading_is_its_authors_word_and_a_report_may_be_renamed(suffix):
    words = ("--title", "Release 1.3 <b>", "--subject", "the model", "--date", "29 November")
    path = audited(f"my audit{suffix}", *SCORES, *words)
    _, check = report_check.read(path).document["repeat"]
    assert check == f"canaryproof check-report 'my audit{suffix}' --scores scores.npz"
    status, text = checked(*shlex.split(check)[2:])
    assert status == 0
    assert "its title 'Release 1.3 <b>'; its subject 'the model'; its date '29 November'." in text
    assert suffix != ".html" or "<b>" not in path.read_text()
    path.rename(f"other{suffix}")
    status, text = checked(f"other{suffix}", "--scores", "scores.npz")
    assert (status, f"its name 'my audit{suffix}'" in text) == (0, True)
    refused = call("audit", *SCORES, "--title", "a\nb", "--report", f"new{suffix}")
    assert refused.stderr.startswith("Error: --title: must be a line of at most 1000 characters, not ")
    assert call("audit", *SCORES, *words).stderr == "Error: --title: must be given with --report\n"


@pytest.mark.deep(beyond=1)
@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("suffix", report.SUFFIXES)
def test_a_report_of_a_release_is_true_in_every_form_and_the_decision_comes_first(suffix, drawn_once):
    path = audited(f"audit{suffix}", *RELEASE)
    # Its pictures are drawn again.
    drawn_once.clear()
    DERIVED.clear()
    status, text = checked(path, "--release", "release.npy")
    assert status == 0
    decision, same = text.splitlines()
    assert decision == report_check.read(path).document["answer"]
    assert re.fullmatch(
        rf"audit\{suffix} is true: all \d+ values are derived anew from release\.npy and are the same\.", same
    )


@pytest.mark.usefixtures("folder")
def test_a_report_of_an_audit_that_did_not_pass_is_true_and_says_that_it_did_not():
    path = audited("audit.json", *SCORES[:-1], "0.1", "--inclusion", "coin")
    status, text = checked(path, "--scores", "scores.npz")
    assert json.loads(path.read_text())["audit"]["decision"]["status"] == 1
    assert (status, text.partition(":")[0]) == (0, "NOT PASSED")


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    "arguments",
    [
        SCORES,
        ("scores.json", "--delta", "1e-5", "--bound", "band", "--confidence", "0.9"),
        ("table.csv", "--score", "loss", "--member", "in", "--kind", "any", "--inclusion", "coin", "--delta", "0"),
        ("copies.csv", "--score", "loss", "--member", "in", "--id", "canary", "--kind", "any", "--delta", "1e-5"),
        ("usual.csv", "--id", "canary", "--kind", "any", "--delta", "1e-5"),
        ("cosines.npy", "--dim", "900", "--inserted", "1", "--delta", "1e-5", "--ask", "leak", "--notice", "0.3"),
        ("rounds.json", "--delta", "1e-5", "--claim", "9", "--noise-multiplier", "1", "--rate", "0.5", "--rounds", "9"),
        ("rounds.json", "--delta", "1e-5", "--noise-multiplier", "1", "--participations", "5"),
    ],
)
def test_a_report_of_scores_is_true_and_its_own_lines_repeat_it(arguments):
    path = audited("audit.json", *arguments)
    assert checked(path, "--scores", arguments[0])[0] == 0
    again, check = json.loads(path.read_text())["repeat"]
    assert call(*again.split()[1:]).exit_code == 0
    assert are_of_one_audit(path, Path("again-audit.json"))
    assert call(*check.split()[1:]).exit_code == 0


@pytest.mark.usefixtures("folder")
def test_copies_with_ids_are_audited_and_reviewed_as_if_each_stood_there_once():
    for command, *options in (("audit", "--kind", "any"), ("review", "--epsilon", "1")):
        named = ["--score", "loss", "--member", "in"]
        once, copies, usual, withheld = (
            call(command, *given, *options, "--delta", "1e-5", "--json").stdout
            for given in (
                ["table.csv", *named],
                ["copies.csv", *named, "--id", "canary"],
                ["usual.csv", "--id", "canary"],
                ["copies.csv", *named],
            )
        )
        assert copies == usual == once
        assert withheld != once


@pytest.mark.usefixtures("folder")
def test_the_lines_of_a_release_repeat_it():
    options = ("--neighbours", "replace", "--directions", "orthonormal", "--difference", "--force")
    path = audited("audit.json", *RELEASE, *options)
    assert json.loads(path.read_text())["request"]["difference"] is True
    again, check = json.loads(path.read_text())["repeat"]
    assert call(*again.split()[1:]).exit_code == 0
    assert are_of_one_audit(path, Path("again-audit.json"))
    assert call(*check.split()[1:]).exit_code == 0


@pytest.mark.deep
@pytest.mark.usefixtures("folder")
def test_the_lines_of_a_checkpoint_repeat_it():
    released = np.load("release.npy").astype("<f4")
    for name, values in (("model", np.concatenate([released, released])), ("before", np.zeros(2 * DIM, "<f4"))):
        ends = {"a": [0, 4 * DIM], "b": [4 * DIM, 8 * DIM]}
        header = {key: {"dtype": "F32", "shape": [DIM], "data_offsets": part} for key, part in ends.items()}
        text = json.dumps(header).encode()
        Path(f"{name}.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + values.tobytes())
    options = ("--only", "[ab]", "--skip", "a", "--base", "before.safetensors", "--canary-norm", "1.0625")
    path = audited("audit.json", "model.safetensors", *RELEASE[1:], *options)
    document = json.loads(path.read_text())
    again, check = document["repeat"]
    assert call(*shlex.split(again)[1:]).exit_code == 0
    assert are_of_one_audit(path, Path("again-audit.json"))
    assert call(*shlex.split(check)[1:]).exit_code == 0
    document["audit"]["coordinates"]["base"] = "../before.safetensors"
    seal(path, document)
    refused = call("check-report", path, "--release", "model.safetensors")
    message = "Error: the report's audit.coordinates: must say how the release was opened\n"
    assert (refused.exit_code, refused.stdout, refused.stderr) == (2, "", message)


@pytest.mark.usefixtures("folder")
def test_a_report_of_an_array_or_of_sums_is_true_of_the_file_with_its_numbers():
    release, canaries, half = np.load("release.npy"), Canaries(7, COUNT, DIM), DIM // 2
    sums = [release_sums(part, canaries, start) for part, start in ((release[:half], 0), (release[half:], half))]
    for name, given in (("whole.html", release), ("sums.html", sums[0] + sums[1])):
        audit_release(given, canaries, 1e-5, noise_multiplier=1.5).report(name)
        line = next(line for line in Path(name).read_text().splitlines() if "canaryproof check-report " in line)
        assert line.removesuffix("</code></pre>") == f"canaryproof check-report {name} --release release.npy"
        assert checked(name, "--release", "release.npy")[0] == 0
    document = report_check.read(Path("sums.html")).document
    assert document["audit"]["coordinates"] == {"slices": [half, half], "canary_norm": 1.0}
    for slices in (None, [], [DIM, 0], [half], [half, float(half)], "x"):
        document["audit"]["coordinates"]["slices"] = slices
        seal(Path("sums.json"), document)
        refused = call("check-report", "sums.json", "--release", "release.npy")
        if slices is None:
            # The sums of the whole have other last bits.
            assert (refused.exit_code, refused.stderr) == (1, "")
        else:
            rule = "audit.coordinates.slices: must be numbers of coordinates that sum to 300"
            assert refused.stderr == f"Error: the report's request cannot be repeated: {rule}\n"
    np.save("release.npy", np.nextafter(release, 0.0))
    assert checked("whole.html", "--release", "release.npy")[0] == 1


@pytest.mark.usefixtures("folder")
def test_numbers_that_differ_are_named_however_well_they_are_sealed():
    path = audited("audit.json", *SCORES)
    document = json.loads(path.read_text())
    true = document["audit"]["bounds"][0]["low"]
    document["audit"]["bounds"][0]["low"] = 0.25
    document["audit"]["decision"]["outcome"] = "PASSED"
    seal(path, document)
    status, text = checked(path, "--scores", "scores.npz")
    assert status == 1
    assert text.startswith("audit.json is not true.\n")
    assert f"  audit.bounds[0].low: 0.25 in the report, {true!r} derived\n" in text
    assert "  audit.decision.outcome: 'PASSED' in the report, 'CANNOT SAY' derived\n" in text
    assert "SHA-256 is not" not in text


@pytest.mark.usefixtures("folder")
def test_of_many_numbers_that_differ_twenty_are_named_and_the_others_counted():
    path = audited("audit.json", *SCORES)
    document = json.loads(path.read_text())
    # A rounding is none that differs, and the seal is not counted.
    document["audit"]["delta"] *= 1.0 + 1e-13
    rows = [*document["audit"]["bounds"], *document["audit"]["estimates"]]
    changed = 0
    for row in rows:
        for name, value in row.items():
            if isinstance(value, float) and value not in (0.0, 1.0):
                row[name], changed = 1.5 * value, changed + 1
    assert changed > 20
    seal(path, document)
    status, text = checked(path, "--scores", "scores.npz")
    assert (status, text.count(" in the report, ")) == (1, 20)
    assert f"  and {changed - 20} more\n" in text


@pytest.mark.usefixtures("folder")
def test_a_byte_of_the_input_is_noticed():
    path = audited("audit.json", *SCORES)
    whole = bytearray(Path("scores.npz").read_bytes())
    whole[len(whole) // 2] ^= 1
    Path("scores.npz").write_bytes(whole)
    status, text = checked(path, "--scores", "scores.npz")
    assert status == 1
    assert f"scores.npz is not the audited file: its SHA-256 is {hashlib.sha256(whole).hexdigest()}, not " in text


@pytest.mark.usefixtures("folder")
def test_scores_of_no_file_are_held_by_their_own_hash():
    from canaryproof.verify.audit.answer.run_audit import audit

    audit(Scores(OBSERVED, UNOBSERVED, kind="any"), 1e-5).report("audit.json")
    assert checked("audit.json", "--scores", "scores.npz")[0] == 0
    assert checked("audit.json", "--scores", "scores.json")[0] == 0
    np.savez("other.npz", observed=OBSERVED, unobserved=np.nextafter(UNOBSERVED, 9.0))
    status, text = checked("audit.json", "--scores", "other.npz")
    assert status == 1
    assert "  input.sha256: " in text


def resealed(path, words, others):
    """Change a page outside its record, and seal it again."""
    body = path.read_text()
    body = body[: body.rindex(report.SEAL)].replace(words, others, 1)
    path.write_text(f"{body}{report.SEAL}{hashlib.sha256(body.encode()).hexdigest()} -->\n")


@pytest.mark.usefixtures("folder")
def test_a_page_that_says_another_thing_than_its_record_is_noticed():
    path = audited("audit.html", *SCORES)
    resealed(path, "Privacy audit: ", "Privacy certificate: ")
    status, text = checked(path, "--scores", "scores.npz")
    assert status == 1
    assert "The page does not say what its record says: line " in text


@pytest.mark.deep
@pytest.mark.usefixtures("folder")
def test_another_picture_than_the_audits_is_noticed():
    path = audited("audit.html", *SCORES)
    resealed(path, "false positive rate</text>", "true positive rate</text>")
    assert checked(path, "--scores", "scores.npz")[1].endswith("The pictures are not those of the audit.\n")


@pytest.mark.usefixtures("folder")
def test_other_versions_and_their_rounding_are_said_and_no_reason_to_fail():
    path = audited("audit.json", *SCORES)
    document = json.loads(path.read_text())
    document["versions"]["numpy"] = "1.0"
    document["audit"]["variance_p_value"] *= 1.0 + 1e-14
    seal(path, document)
    status, text = checked(path, "--scores", "scores.npz")
    assert status == 0
    first, decision, *_ = text.splitlines()
    count = report_check.count_values(document)
    assert first.startswith(f"audit.json is true but for what was not derived, 1 of its {count:,} values: ")
    assert first.endswith(f"the versions numpy 1.0 (here {np.__version__}).")
    assert decision == document["answer"]
    assert f"\nThe other {count - 1:,} values are derived anew from scores.npz and are the same.\n" in text
    rounded = "otherwise, by less than 1e-9 of their size: audit.variance_p_value.\n"
    assert text.endswith(rounded)


# Forgeries by somebody who makes the seals anew.


def names_of_values(value, above=()):
    """Yield the place of every number, word and truth value in a record."""
    if isinstance(value, dict | list):
        for key, each in value.items() if isinstance(value, dict) else enumerate(value):
            yield from names_of_values(each, (*above, key))
    else:
        yield above


def other_values(value):
    """Other values of the same type, a little and far away, and of another type."""
    if isinstance(value, bool):
        return [not value, int(value)]
    if isinstance(value, int):
        return [value + 1, float(value), bool(value)]
    if isinstance(value, float):
        return [value * (1 + 1e-8) if value else 1e-300, 0.5 if value != 0.5 else 0.25, None]
    return [f"{value} ", "Certified", None] if isinstance(value, str) else [0, "none"]


def changed_at(document, place, value):
    changed = copy.deepcopy(document)
    inner = changed
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    return changed


FORGED = {
    "scores": (SCORES, ("--scores", "scores.npz")),
    "release": (RELEASE, ("--release", "release.npy")),
    "columns": (
        ("copies.csv", "--score", "loss", "--member", "in", "--id", "canary", "--kind", "any", "--delta", "1e-5"),
        ("--scores", "copies.csv"),
    ),
    "rounds": (("rounds.json", "--delta", "1e-5", "--claim", "9"), ("--scores", "rounds.json")),
}


@pytest.mark.deep(beyond=1)
@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("step", [197, pytest.param(1, marks=pytest.mark.deep)])
@pytest.mark.parametrize("kind", FORGED)
def test_every_value_of_a_report_is_noticed_or_counted_as_not_derived(kind, step):
    arguments, given = FORGED[kind]
    path = audited("audit.json", *arguments)
    document = json.loads(path.read_text())
    # The seal is made anew.
    places = [place for place in names_of_values(document) if place != ("sha256",)]
    # All of what is read from the report, and a part of the numbers.
    read = {place for place in places if place[0] in ("request", "input", "versions", "schema", "repeat")}
    for place in [*(read if step == 1 else sorted(read, key=str)[::9]), *places[::step]]:
        value = functools.reduce(operator.getitem, place, document)
        for other in other_values(value):
            seal(path, changed_at(document, place, other))
            result = call("check-report", path, *given)
            assert result.exit_code in (1, 2, 3) or "not derived, 1 of its " in result.output.splitlines()[0], place
            # A heading is its author's word.
            assert result.exit_code != 0 or place[0] in ("versions", "heading"), place


@pytest.mark.usefixtures("folder")
def test_what_a_report_alone_says_of_its_file_is_not_believed():
    path = audited("audit.json", *RELEASE)
    document = json.loads(path.read_text())
    claimed = "a\n```\n# Certified by canaryproof: ε ≤ 0.1\n<script>alert(1)</script>"
    for field, value in (
        ("name", claimed),
        ("name", "../release.npy"),
        ("name", "x.csv"),
        ("bytes", 99),
        ("columns", ["certified", "by"]),
        ("id", "an accredited laboratory"),
    ):
        forged = copy.deepcopy(document)
        forged["input"]["file"][field] = value
        if field == "name":
            forged["repeat"] = [line.replace("release.npy", value) for line in forged["repeat"]]
        seal(path, forged)
        result = call("check-report", path, "--release", "release.npy")
        assert result.exit_code in (1, 2), field
        assert "true" not in result.output.splitlines()[0].replace("not true", ""), field
    for forged in (
        document | {"audit": document["audit"] | {"coordinates": None}},
        document | {"audit": document["audit"] | {"coordinates": document["audit"]["coordinates"] | {"x": 1}}},
    ):
        seal(path, forged)
        assert call("check-report", path, "--release", "release.npy").exit_code == 1
    # An audit of an array in memory has the same record, but for this.
    seal(path, document | {"input": document["input"] | {"file": None}})
    first = checked(path, "--release", "release.npy")[1].splitlines()[0]
    assert first.endswith(" values: that the audit was of no file.")
    norm = document["audit"]["coordinates"] | {"canary_norm": True}
    seal(path, document | {"audit": document["audit"] | {"coordinates": norm}})
    assert call("check-report", path, "--release", "release.npy").exit_code == 2


@pytest.mark.usefixtures("folder")
def test_a_file_may_have_another_name_which_is_said_first():
    path = audited("audit.json", *RELEASE)
    Path("release.npy").rename("release (1).npy")
    status, text = checked(path, "--release", "release (1).npy")
    assert (status, text.splitlines()[0].partition(", 3 of its ")[0]) == (
        0,
        "audit.json is true but for what was not derived",
    )
    named = "the file's name release.npy (here release (1).npy), also in the lines that repeat the audit."
    assert text.splitlines()[0].endswith(named)


@pytest.mark.usefixtures("folder")
def test_versions_are_those_that_a_report_has_and_look_like_versions():
    path = audited("audit.json", *SCORES)
    document = json.loads(path.read_text())
    versions = document["versions"]
    for forged in (
        versions | {"certified by": "an accredited laboratory"},
        {name: there for name, there in versions.items() if name != "numpy"},
        versions | {"numpy": "1.0, certified"},
        versions | {"numpy": ""},
        dict(reversed(versions.items())),
    ):
        seal(path, document | {"versions": forged})
        assert checked(path, "--scores", "scores.npz")[0] == 1, forged
    # The order of fields is a page's order.
    seal(path, dict(reversed(document.items())))
    assert checked(path, "--scores", "scores.npz")[0] == 1


INSERTED = "<figure><style>header,section{display:none}</style><h1>ε = 0.1, certified</h1></figure>"


def forged_page(path, change, versions=None):
    """Change a page, and perhaps the versions of its record, with the seals of a careful forger."""
    read = report_check.read(path)
    body = read.whole.decode()
    body = change(body[: body.rindex(report.OPEN)])
    document = report.seal(read.document | {"versions": read.document["versions"] | (versions or {})})
    for name, value in (versions or {}).items():
        body = body.replace(f">{read.document['versions'][name]}<", f">{value}<")
    body += f"{report.OPEN}\n{report.escape(report.dump(document))}\n-->\n"
    path.write_text(f"{body}{report.SEAL}{hashlib.sha256(body.encode()).hexdigest()} -->\n")


@pytest.mark.usefixtures("folder")
@pytest.mark.deep(beyond=1)
@pytest.mark.parametrize("versions", [{"matplotlib": "3.9.0"}, None, {"numpy": "1.0", "python": "3.11.1"}])
def test_no_forged_page_is_true_whichever_versions_it_names(versions):
    original = audited("audit.html", *SCORES).read_bytes()
    for change, status in (
        (lambda page: page.replace("<main>", f"<main>{INSERTED}"), 1),
        (lambda page: page.replace("</svg>", f"</svg>{INSERTED}", 1), 1),
        (lambda page: page.replace("</svg>", "</svg><h1>certified</h1>", 1), 3),
        (lambda page: page.replace("<figure>", "<figure onclick='x()'>", 1), 1),
        (lambda page: re.sub("(?s)<figure>.*?</figure>", "", page, count=1), 1),
        (lambda page: re.sub("(?s)(<figure>.*?</figure>)(.*?)(<figure>.*?</figure>)", r"\3\2\1", page, count=1), 3),
        (lambda page: page.replace("false positive rate</text>", "true positive rate</text>"), 3),
        (lambda page: page.replace("Privacy audit: ", "Privacy certificate: ", 1), 1),
        (lambda page: page.replace("</body>", "<!-- <figure> --><p>certified</p></body>"), 1),
    ):
        path = Path("forged.html")
        path.write_bytes(original)
        forged_page(path, change, versions)
        assert path.read_bytes() != original
        result = call("check-report", path, "--scores", "scores.npz")
        expected = status if versions else 1
        assert (result.exit_code, result.stderr) == (expected, ""), result.stdout
        assert result.stdout.startswith("forged.html is not true." if expected == 1 else "Cannot say whether ")
    path.write_bytes(original)
    forged_page(path, lambda page: re.sub(' y="[^"]*"', ' y="1"', page), versions)
    result = call("check-report", path, "--scores", "scores.npz")
    assert result.exit_code == (0 if versions else 1)
    if versions:
        first = result.stdout.splitlines()[0]
        assert re.search(r" true but for what was not derived, .*; the coordinates in \d of its pictures\.$", first)


@pytest.mark.usefixtures("folder")
def test_markdown_has_no_pictures_and_is_compared_whole():
    path = audited("audit.md", *SCORES)
    forged_page(path, lambda page: page.replace("## ", f"{INSERTED}\n\n## ", 1), {"matplotlib": "3.9.0"})
    assert checked(path, "--scores", "scores.npz")[0] == 1


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("suffix", report.SUFFIXES)
def test_changed_line_ends_are_said(suffix):
    path = audited(f"audit{suffix}", *SCORES)
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    result = call("check-report", path, "--scores", "scores.npz")
    assert result.exit_code == 2
    assert "line ends were changed" in result.output


@pytest.mark.usefixtures("folder")
def test_a_report_of_scores_takes_no_release():
    result = call("check-report", audited("audit.json", *SCORES), "--release", "release.npy")
    assert result.exit_code == 2
    assert result.output == "Error: --release: must not be given, as the report is of scores\n"


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    "text", ["", "{}", "[1]", "{", '{"schema": "canaryproof audit report 2.0.0"}', "null", "\xff", '{"a": 1e400}']
)
@pytest.mark.parametrize("suffix", report.SUFFIXES)
def test_what_is_no_report_is_one_line(text, suffix):
    Path(f"report{suffix}").write_text(text, encoding="latin-1")
    result = call("check-report", f"report{suffix}", "--scores", "scores.npz")
    assert result.exit_code == 2
    assert re.match(rf"Error: report\{suffix}: .+\n$", result.output)


@pytest.mark.usefixtures("folder")
def test_a_request_that_no_audit_takes_is_one_line():
    path = audited("audit.json", *SCORES)
    document = json.loads(path.read_text())
    for part, name, value in (("request", "delta", 2.0), ("input", "kind", "x"), ("request", "bounds", ["none"])):
        seal(path, document | {part: document[part] | {name: value}})
        result = call("check-report", path, "--scores", "scores.npz")
        assert result.exit_code == 2
        assert result.output.startswith("Error: the report's ")
        assert result.output.count("\n") == 1


def places(value, above=()):
    """Yield the place of every value in a record."""
    yield above
    if isinstance(value, dict | list):
        for key, each in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(each, (*above, key))


@pytest.mark.deep
@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("value", [None, -1, 2**63, 1e308, "x", [], {}, True])
def test_no_value_of_a_report_leaves_a_traceback(value):
    path = audited("audit.json", *SCORES)
    whole = json.loads(path.read_text())
    secret = {"seed": 1, "nonce": "a"}
    whole["plan"] = {"status": "as claimed", "answer": "", "sha256": "0" * 64, "secret": secret}
    whole["plan"] |= {"differences": [], "unknown": []}
    whole["request"]["claim"] = json_records.to_document(accountant.from_event(EVENT))
    for part in ("schema", "request", "input", "plan", "versions"):
        for place in places(whole[part]):
            document = copy.deepcopy(whole)
            inner = document
            for key in (part, *place)[:-1]:
                inner = inner[key]
            inner[(part, *place)[-1]] = value
            seal(path, document)
            result = call("check-report", path, "--scores", "scores.npz")
            # A value may be what it was, and another version is not judged.
            assert result.exit_code in (0, 1, 2, 3), place
            assert result.exception is None or isinstance(result.exception, SystemExit), place
            assert result.exit_code != 2 or result.output.count("\n") == 1


@pytest.mark.usefixtures("folder")
def test_a_report_never_replaces_a_file():
    Path("audit.html").write_text("precious")
    result = call("audit", *SCORES, "--report", "audit.html")
    assert (result.exit_code, result.output) == (
        2,
        "Error: audit.html: must not exist already, unless with --overwrite\n",
    )
    result = call("audit", *SCORES, "--report", "audit.pdf")
    assert result.output == "Error: audit.pdf: the file's name must end in .html or .md or .json\n"


# What another version made.

OLD = Path(__file__).with_name("made_by_0_2_0")
OLD_RELEASE, OLD_PLAN = OLD / "release.npy", OLD / "plan.json"
OLD_AUDIT = ("--delta", "1e-6", "--noise-multiplier", "1.54", "--notice", "0.4", "--fail-above-claim")


@pytest.mark.parametrize("name", ["report.json", "report.html"])
@pytest.mark.parametrize("plan", [(), ("--plan", OLD_PLAN)])
def test_a_report_of_another_version_is_not_judged_and_the_version_is_named(name, plan):
    result = call("check-report", OLD / name, "--release", OLD_RELEASE, *plan)
    assert (result.exit_code, result.stderr) == (3, "")
    assert " made by canaryproof 0.2.0, " in result.stdout
    assert "true" not in result.stdout
    assert f"{OLD / name} was not changed " in result.stdout
    assert f"{OLD_RELEASE} is the file that was audited" in result.stdout


@pytest.mark.parametrize("name", ["report.json", "report.html"])
def test_a_changed_byte_of_a_report_of_another_version_is_noticed(name, tmp_path):
    whole = (OLD / name).read_bytes()
    # One each in what is read first, in a number, and in a sentence.
    for old, new in (
        (b"audit report 1.0.0", b"audit report 1.0.1"),
        (b"0.95", b"0.96"),
        (b"consistent", b"Consistent"),
    ):
        (tmp_path / name).write_bytes(whole.replace(old, new, 1))
        status, text = checked(tmp_path / name, "--release", OLD_RELEASE)
        assert (status, text.splitlines()[0]) == (1, f"{tmp_path / name} is not true.")
        assert "SHA-256 is not the one" in text


@pytest.mark.usefixtures("folder")
def test_another_file_or_plan_than_those_of_a_report_of_another_version_is_noticed():
    status, text = checked(OLD / "report.json", "--release", "release.npy")
    assert status == 1
    assert "  release.npy is not the audited file: its SHA-256 is " in text
    Path("plan.json").write_bytes(OLD_PLAN.read_bytes().replace(b'"count": 99', b'"count": 98', 1))
    status, text = checked(OLD / "report.json", "--release", OLD_RELEASE, "--plan", "plan.json")
    assert status == 1
    assert "  plan.json is not the plan that the audit was held against: its SHA-256 is " in text
    # A careful forger's record, from which the plan was taken.
    document = json.loads((OLD / "report.json").read_text())
    seal(Path("forged.json"), document | {"plan": None})
    result = call("check-report", "forged.json", "--release", OLD_RELEASE, "--plan", OLD_PLAN)
    assert result.output == "Error: --plan: must not be given, as the report is of an audit without a plan\n"


@pytest.mark.usefixtures("folder")
def test_a_report_of_a_version_to_come_is_not_judged():
    path = audited("audit.json", *SCORES)
    document = json.loads(path.read_text())
    document["schema"], document["versions"]["canaryproof"] = "canaryproof audit report 3.1.0", "1.0.0"
    del document["audit"], document["input"]
    seal(path, document)
    result = call("check-report", path, "--scores", "scores.npz")
    assert (result.exit_code, " made by canaryproof 1.0.0, " in result.stdout) == (3, True)
    assert "audited" not in result.stdout


@pytest.mark.usefixtures("folder")
def test_an_audit_of_a_plan_of_another_version_cannot_be_said_to_be_as_planned():
    asked = ("--canaries", 99, "--canary-seed", 7, *OLD_AUDIT)
    assert call("audit", OLD_RELEASE, *asked).exit_code == 0
    result = call("audit", OLD_RELEASE, *asked, "--plan", OLD_PLAN, "--json")
    document = json.loads(result.stdout)
    assert (result.exit_code, document["decision"]["outcome"]) == (3, "CANNOT SAY")
    plan = finding({"audit": document}, "plan")
    assert (plan["status"], " by canaryproof 0.2.0, " in plan["because"]) == ("cannot say", True)


@pytest.mark.usefixtures("folder")
def test_another_seed_than_a_plan_of_another_version_commits_to_fails():
    canaries = Canaries(8, 99, 1000)
    noise = 1.54 * np.random.default_rng(1).normal(size=1000)
    np.save("other.npy", canaries.sum(np.arange(99)) + noise)
    asked = ("--canaries", 99, "--canary-seed", 8, *OLD_AUDIT, "--plan", OLD_PLAN, "--json")
    result = call("audit", "other.npy", *asked)
    document = json.loads(result.stdout)
    assert (result.exit_code, document["decision"]["rule"]) == (3, "undecided")
    plan = finding({"audit": document}, "plan")
    assert (plan["status"], plan["because"]) == ("failed", "seed of the canaries: one planned, another audited")


# Plans.


def finding(record, question):
    """The one finding of a record on a question."""
    (found,) = [each for each in record["audit"]["findings"] if each["question"] == question]
    return found


ALL_ROUNDS = ("--noise-multiplier", "1.54", "--rounds", "2", "--dim", "2000", "--delta", "1e-5", "--all-rounds")


def planned(*arguments):
    result = call("plan", *arguments, "--out", "plan.json")
    assert result.exit_code == 0, result.output
    return json.loads(Path("plan.json").read_text()), result.stdout


@pytest.mark.usefixtures("folder")
def test_an_audit_is_held_against_a_plan_and_a_changed_plan_is_noticed():
    document, text = planned(*ALL_ROUNDS)
    assert "--plan plan.json --report audit.html" in " ".join(text.replace("\\", "").split())
    count, claim = document["decided"]["count"], document["decided"]["claim"]
    rng = np.random.default_rng(2)
    observed, unobserved = np.split(0.03 * rng.normal(size=count), [count // 2])
    np.savez("rounds.npz", observed=observed, unobserved=unobserved)
    asked = ("rounds.npz", "--delta", "1e-5", "--claim", f"{claim:.6g}", "--plan", "plan.json")
    assert call("audit", *asked, "--report", "audit.json").exit_code == 0
    record = report_check.read(Path("audit.json")).document
    assert finding(record, "plan")["status"] == "as claimed"
    unknown = ["score", "rounds", "participations", "directions", "seed of the canaries"]
    assert sorted(record["plan"]["unknown"]) == sorted(unknown)
    assert record["plan"]["sha256"] == hashlib.sha256(Path("plan.json").read_bytes()).hexdigest()
    assert record["plan"]["secret"] == json.loads(Path("plan.secret.json").read_text())
    # The report has the seed and the nonce.
    Path("plan.secret.json").unlink()
    assert checked("audit.json", "--scores", "rounds.npz", "--plan", "plan.json")[0] == 0
    result = call("check-report", "audit.json", "--scores", "rounds.npz")
    assert (result.exit_code, result.stderr) == (3, "")
    assert result.stdout.startswith(
        "Cannot say whether audit.json is true, as it was held against a plan, which is not given (--plan).\n"
        f"Not derived, {report_check.count_values(record['plan'])} of its "
    )
    # Neither the decision, which rests on the plan, nor the plan's own sentence is repeated.
    assert record["answer"] not in result.stdout
    assert record["plan"]["answer"] not in result.stdout
    Path("plan.json").write_text(Path("plan.json").read_text().replace('"confidence": 0.95', '"confidence": 0.75'))
    status, text = checked("audit.json", "--scores", "rounds.npz", "--plan", "plan.json")
    assert status == 1
    assert "plan.json is not the plan that the audit was held against: its SHA-256 is " in text


@pytest.mark.usefixtures("folder")
def test_what_differs_from_a_plan_is_named_and_passes_no_gate():
    planned("--noise-multiplier", "1.5", "--dim", "1000", "--delta", "1e-4", "--canary-seed", "8")
    result = call("audit", *RELEASE, "--plan", "plan.json", "--fail-above-claim", "--notice", "0.01")
    assert (result.exit_code, result.stdout.partition(":")[0]) == (3, "CANNOT SAY")
    as_json = call("audit", *RELEASE, "--notice", "0.01", "--plan", "plan.json", "--json")
    assert as_json.stderr == ""
    document = json.loads(as_json.stdout)
    assert (document["delta"], document["decision"]["rule"]) == (1e-5, "undecided")
    differs = finding({"audit": document}, "plan")
    assert differs["status"] == "failed"
    assert [line.partition(":")[0] for line in differs["because"].split("; ")][:4] == [
        *("seed of the canaries", "number of canaries", "dimension", "δ")
    ]
    assert "seed of the canaries: one planned, another audited; " in differs["because"]
    assert "; δ: 0.0001 planned, 1e-05 audited; " in differs["because"]


@pytest.mark.usefixtures("folder")
def test_a_plan_does_not_say_the_seed_that_it_commits_to():
    seed = 123456789
    document, text = planned("--noise-multiplier", "1.5", "--dim", "1000", "--canary-seed", seed)
    assert str(seed) not in text + Path("plan.json").read_text()
    assert text.endswith("\nSEED stands in plan.secret.json, which only you can read.\n")
    assert Path("plan.secret.json").stat().st_mode & 0o777 == 0o600
    secret = json.loads(Path("plan.secret.json").read_text())
    assert secret["seed"] == seed
    assert document["seed_sha256"] == hashlib.sha256(f"{secret['nonce']}:{seed}".encode()).hexdigest()
    assert "SEED" in document["plan"]["commands"][0]


@pytest.mark.usefixtures("folder")
def test_seeds_are_drawn_and_nothing_is_replaced():
    words = ("--noise-multiplier", "1.5", "--dim", "1000")
    planned(*words)
    drawn = json.loads(Path("plan.secret.json").read_text())
    assert (
        call("plan", *words, "--out", "plan.json").output
        == "Error: plan.json: must not exist already, unless with --overwrite\n"
    )
    Path("plan.json").unlink()
    assert (
        call("plan", *words, "--out", "plan.json").output
        == "Error: plan.secret.json: must not exist already, unless with --overwrite\n"
    )
    Path("plan.secret.json").unlink()
    planned(*words)
    again = json.loads(Path("plan.secret.json").read_text())
    assert drawn["seed"] != again["seed"]
    assert drawn["nonce"] != again["nonce"]
    assert call("plan", *words, "--canary-seed", "7").output == "Error: --canary-seed: must be given with --out\n"


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("file", "text", "rule"),
    [
        ("plan.json", "{}", "plan.json: schema: is missing"),
        ("plan.json", "{", "plan.json: line 1, column 2: truncated or damaged"),
        ("plan.secret.json", '{"seed": -1, "nonce": ""}', "plan.secret.json: seed: "),
        ("plan.secret.json", None, "plan.secret.json: No such file or directory"),
    ],
)
def test_a_plan_that_cannot_be_read_is_one_line(file, text, rule):
    planned("--noise-multiplier", "1.5", "--dim", "1000")
    Path(file).unlink()
    if text is not None:
        Path(file).write_text(text)
    result = call("audit", *SCORES, "--plan", "plan.json", "--report", "audit.html")
    assert result.exit_code == 2
    assert result.output.startswith(f"Error: {rule}")
    assert result.output.count("\n") == 1
    assert not Path("audit.html").exists()
