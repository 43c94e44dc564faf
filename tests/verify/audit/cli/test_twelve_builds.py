"""Twelve builds of one release: status of the gate, first line, JSON and JUnit agree, and say the cause."""

import json
from dataclasses import dataclass
from xml.etree import ElementTree

import numpy as np
import pytest
from click.testing import CliRunner

import canaryproof as cp
from canaryproof.verify.command_line import main
from tests.junit import shape

COUNT, DIM, NOISE = 300, 5000, 1.54
CANARIES = cp.Canaries(seed=7, count=COUNT, dim=DIM)
SUM, Z = CANARIES.sum(np.arange(COUNT)), np.random.default_rng(1).normal(0.0, NOISE, DIM)
RNG = np.random.default_rng(2)
DATA = RNG.normal(size=DIM)
# Others' data a quarter as long as the noise.
DATA *= 0.25 * NOISE * np.sqrt(DIM) / np.linalg.norm(DATA)
KEPT = RNG.random(DIM) >= 1.0 / 3.0


@dataclass(frozen=True)
class Build:
    """A release, the status of its gate, what failed, and a word of the cause; 2 is bad input."""

    release: np.ndarray
    status: int
    failed: tuple[str, ...] = ()
    cause: str = ""


BUILDS = {
    "good": Build(SUM + Z, 0),
    "float16": Build((SUM + Z).astype(np.float16), 0),
    "with data": Build(SUM + Z + DATA, 0),
    "half of the noise": Build(SUM + 0.5 * Z, 1, ("noise", "leak"), "0.5"),
    "80% of the noise": Build(SUM + 0.8 * Z, 1, ("noise",), "0.8"),
    "a third without noise": Build(SUM + KEPT * Z, 1, ("noise",), "times as long as its claimed noise"),
    "doubled canaries": Build(2.0 * SUM + Z, 4, ("input",), "norm 1.9"),
    "in another unit": Build(7.0 * (SUM + Z), 4, ("input",), "6.99 times as long"),
    "no canaries": Build(Z, 4, ("input",), "not in this release"),
    "flipped": Build(Z - SUM, 4, ("input",), "below 0"),
    "one coordinate short": Build((SUM + Z)[1:], 4, ("input",), "not in this release"),
    # Canaries of one dimension less are the same ones, cut: this is an honest release of them.
    "without the last coordinate": Build((SUM + Z)[:-1], 0),
    "not a number": Build(np.where(np.arange(DIM) == 5, np.nan, SUM + Z), 2, (), "release[5]: must be finite, not nan"),
}
OUTCOMES = {0: "PASSED", 1: "NOT PASSED", 3: "CANNOT SAY", 4: "CANNOT SAY"}


@pytest.fixture(scope="module", params=BUILDS)
def built(request, tmp_path_factory):
    """A build, and what the gate shows of it in words, in JSON and in JUnit."""
    folder = tmp_path_factory.mktemp("build")
    np.save(folder / "release.npy", BUILDS[request.param].release)
    arguments = ["audit", str(folder / "release.npy"), "--canaries", str(COUNT), "--canary-seed", "7"]
    arguments += ["--delta", "1e-6", "--noise-multiplier", str(NOISE), "--claim", "3.02", "--fail-above-claim"]
    shown = CliRunner().invoke(main, [*arguments, "--junit", str(folder / "audit.xml")])
    return BUILDS[request.param], shown, CliRunner().invoke(main, [*arguments, "--json"]), folder / "audit.xml"


def test_every_form_has_the_decision_and_its_cause(built):
    build, shown, as_json, junit = built
    assert shown.exit_code == as_json.exit_code == build.status
    if build.status == 2:
        assert (shown.stdout, shown.stderr.count("\n"), build.cause in shown.stderr) == ("", 1, True)
        (case,) = ElementTree.parse(junit).getroot().iter("error")
        assert build.cause in str(case.get("message"))
        return
    document, outcome = json.loads(as_json.stdout), OUTCOMES[build.status]
    assert shown.stdout.startswith(f"{outcome}: ")
    assert (document["decision"]["outcome"], document["decision"]["status"]) == (outcome, build.status)
    findings = {finding["question"]: finding for finding in document["findings"]}
    assert tuple(name for name, finding in findings.items() if finding["status"] == "failed") == build.failed
    # The answer says why it did not pass, and so does the failing case.
    decides = build.failed or (("input",) if build.status == 3 else ())
    answer = " ".join(shown.stdout.split())
    for question in decides:
        assert f"{question.capitalize()}: {findings[question]['because']}." in answer
    assert build.cause in " ".join(findings[question]["because"] for question in decides)
    cases, failing, _ = shape(junit)
    asked = [name for name in findings if name in document["decision"]["asked"]]
    opened = [name for name in asked if findings[name]["status"] != "as claimed"] if build.status in (1, 3) else []
    assert len(cases) == 6
    assert len(failing) == len({*build.failed, *opened})


def test_nothing_passes_that_failed_and_what_passes_says_for_whom(built):
    build, shown, as_json, _ = built
    if build.status != 0:
        assert not shown.stdout.startswith("PASSED")
        return
    findings = {finding["question"]: finding["status"] for finding in json.loads(as_json.stdout)["findings"]}
    # Others' data could stand in for noise, so that a release alone does not show it.
    assert findings["noise"] == "cannot say"
    assert "an attacker who does not know the others' data" in " ".join(shown.stdout.split())
