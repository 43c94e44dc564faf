import json
import os
import platform
import resource
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree as ET

import click
import numpy as np
import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from canaryproof.kernels import exact_law
from canaryproof.kernels.canaries import Canaries, noise
from canaryproof.verify.audit.answer.run_audit import audit
from canaryproof.verify.audit.answer.text import answer, summary
from canaryproof.verify.audit.canaries.scores import RoundsRecord, Score, Scores
from canaryproof.verify.audit.cli import audit_command, canaries_command, progress
from canaryproof.verify.audit.estimators.noise_multiplier import RoundTraces
from canaryproof.verify.audit.files.errors import OutputError
from canaryproof.verify.audit.markup.digits import round_to_error
from canaryproof.verify.command_line import _status, main, one_line
from tests.memory import RESET

PROGRAM = [sys.executable, "-c", "from canaryproof.verify.command_line import main; main(prog_name='canaryproof')"]
COSINES = exact_law.cosines(200, 10**6, 4.22, np.random.default_rng(3))
OTHERS = np.random.default_rng(4).normal(size=100) / 1000.0


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    np.save("c.npy", COSINES)
    np.savez("both.npz", observed=COSINES, unobserved=OTHERS)
    np.save("release.npy", np.array([3.0, 4.0, 5.0]))
    return tmp_path


def call(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def output(*arguments: object) -> str:
    result = call(*arguments)
    assert (result.exit_code, result.stderr) == (0, "")
    return result.stdout


def refusal(*arguments: object, status: int = 2) -> str:
    result = call(*arguments)
    assert (result.exit_code, result.stdout) == (status, "")
    assert result.stderr.startswith("Error: ")
    assert result.stderr.endswith("\n")
    assert result.stderr.count("\n") == 1
    return result.stderr[len("Error: ") : -1]


def start(*arguments: object, **options: object) -> "subprocess.Popen[bytes]":
    # A job in the background of a shell ignores interrupts, and so would its children.
    return subprocess.Popen(  # type: ignore[call-overload,no-any-return]
        [*PROGRAM, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        **options,
    )


def statuses(document: dict[str, Any]) -> dict[str, str]:
    """Answers of an audit by question."""
    return {finding["question"]: finding["status"] for finding in document["findings"]}


def words(text: str) -> str:
    """Undo the wrapping."""
    return " ".join(text.split())


def lines(*arguments: object) -> list[str]:
    found = output(*arguments).splitlines()
    assert len(found) <= 25
    assert max(map(len, found)) <= 80
    return found


def test_audit_answers_first_in_few_lines(folder: Path) -> None:  # noqa: ARG001
    arguments = ("audit", "c.npy", "--dim", "1e6", "--delta", "1e-6", "--noise-multiplier", 4.22)
    found = audit(Scores(COSINES, dim=10**6), 1e-6, noise_multiplier=4.22)
    assert found.estimate is not None
    text = lines(*arguments)
    assert found.decision is not None
    assert text[0].startswith(f"{found.decision.outcome}: ")
    assert words("\n".join(text)).startswith(words(answer(found)))
    labels = [line.split()[0] for line in text if line and line[:2] != "  "]
    assert labels[-6:] == ["Audited", "Unchecked", "Do", "Attacker", "Level", "More"]
    rows = [line.split()[0] for line in text if line[:2] == "  " and line[2:3] not in ("", " ")]
    assert rows == [finding.question for finding in found.findings if finding.status != "not looked at"]
    # Python names its own calls.
    assert "\n".join(text) == summary(found, shell=True)
    assert words(summary(found)) != words("\n".join(text))
    assert words(summary(found)).split(" More ")[0] == words("\n".join(text)).split(" More ")[0]


def test_details_print_estimates_checks_and_meaning(folder: Path) -> None:  # noqa: ARG001
    arguments = ("audit", "c.npy", "--dim", "1e6", "--delta", "1e-6")
    found = audit(Scores(COSINES, dim=10**6), 1e-6)
    assert output(*arguments, "--details").startswith(output(*arguments))
    text = words(output(*arguments, "--details"))
    assert "k = 200 observed cosines, d = 1,000,000, δ = 1e-06; null: N(0, 1/d)" in text
    assert "estimator ε̂ standard error 95% interval" in text
    for estimate in found.estimates:
        value, error, low, high = (
            round_to_error(x, estimate.standard_error)
            for x in (estimate.epsilon, estimate.standard_error, estimate.low, estimate.high)
        )
        assert f"{estimate.name} {value} {error} {low} – {high} " in text
        assert f"{estimate.name} {estimate.assumes} " in text
        assert "{} in [{!r}, {!r}] ".format(estimate.name, *estimate.enclosure) in text
    mean = round_to_error(found.standardised_mean, found.mean_error)
    assert f"standardised mean √d·μ̂ {mean} ± {round_to_error(found.mean_error, found.mean_error)} " in text
    assert f"equal variances p = {found.variance_p_value:.2g} " in text
    assert found.normality is not None
    assert f"A² = {found.normality.statistic:.3g}, p = {found.normality.p_value:.2g} " in text
    for phrase in ("a best guess and no limit", "another attack may learn more", "taken part just as clients"):
        assert phrase in text
    assert "follow the null law" not in text
    assert "canary norm" not in text


def test_audit_against_unobserved_cosines(folder: Path) -> None:  # noqa: ARG001
    unknown, known = (
        words(output("audit", "both.npz", "--delta", 0.01, "--details", *dim)) for dim in ([], ["--dim", 10**6])
    )
    for text in (unknown, known):
        assert "null: Gaussian fitted to 100 unobserved cosines" in text
        assert "standardised mean (μ̂ − μ₀)/σ₀" in text
    assert "null law" not in unknown
    assert "unobserved follow the null law (Kolmogorov–Smirnov) D = " in known
    assert "expected where scores are maxima over rounds" in known


def test_scores_of_any_kind_are_audited_beside_unobserved_ones(folder: Path) -> None:  # noqa: ARG001
    losses = -np.random.default_rng(5).exponential(size=(2, 100)) * 10.0
    np.savez("losses.npz", observed=losses[0] + 20.0, unobserved=losses[1])
    text = words(output("audit", "losses.npz", "--delta", 0.01, "--kind", "any", "--details", "--force"))
    assert "100 observed against 100 unobserved scores" in text
    assert "The law of these scores without a leak is not known" in text
    assert json.loads(output("audit", "losses.npz", "--delta", 0.01, "--kind", "any", "--json"))["kind"] == "any"


@pytest.mark.deep(beyond=1)
@pytest.mark.parametrize(("claim", "leak", "status"), [(0.01, "failed", 1), (15, "as claimed", 0)])
def test_a_job_fails_where_a_bound_exceeds_the_claim(folder: Path, claim: float, leak: str, status: int) -> None:  # noqa: ARG001
    strong = np.random.default_rng(1).normal(3.0, 1.0, 200) / 1000.0
    np.save("strong.npy", strong)
    arguments = ("audit", "strong.npy", "--dim", "1e6", "--delta", "1e-6", "--claim", claim)
    document = json.loads(output(*arguments, "--json"))
    assert document["decision"]["status"] == status
    assert statuses(document)["leak"] == leak
    result = call(*arguments, "--fail-above-claim")
    assert (result.exit_code, result.stderr) == (status, "")
    assert result.stdout == output(*arguments)


@pytest.mark.parametrize(("notice", "status"), [(0.01, 0), (0.9, 3)])
def test_a_job_fails_where_less_is_noticed_than_asked_for(folder: Path, notice: float, status: int) -> None:  # noqa: ARG001
    arguments = ("audit", "c.npy", "--dim", "1e6", "--delta", "1e-6", "--claim", 2, "--notice", notice)
    assert call(*arguments, "--fail-above-claim").exit_code == status
    assert call(*arguments).exit_code == 0


def test_a_job_fails_where_nothing_is_seen_or_could_be(folder: Path) -> None:  # noqa: ARG001
    rng = np.random.default_rng(2)
    np.savez("apart.npz", observed=rng.normal(50.0, 1.0, 500), unobserved=rng.normal(size=500))
    np.savez("equal.npz", observed=rng.normal(size=500), unobserved=rng.normal(size=500))
    for file, because in (
        ("apart.npz", "from so few scores this bound cannot be above"),
        ("equal.npz", "no trace is seen"),
    ):
        arguments = ("audit", file, "--kind", "any", "--delta", "1e-6", "--claim", 8)
        document = json.loads(output(*arguments, "--json"))
        assert statuses(document)["leak"] == "cannot say"
        assert because in next(each["because"] for each in document["findings"] if each["question"] == "leak")
        assert call(*arguments, "--fail-above-claim").exit_code == 3


def test_a_job_fails_where_the_estimate_is_withheld(folder: Path) -> None:  # noqa: ARG001
    np.save("flipped.npy", -5.0 * np.abs(COSINES))
    arguments = ("audit", "flipped.npy", "--dim", "1e6", "--delta", "1e-6", "--claim", 100)
    text = lines(*arguments)
    assert text[0].startswith("CANNOT SAY: ")
    document = json.loads(output(*arguments, "--json"))
    assert (document["decision"]["rule"], document["withheld"]) == ("wrong-input", True)
    assert (document["estimate"], document["bound"]) == (None, None)
    # Nothing else is judged.
    assert {status for question, status in statuses(document).items() if question != "input"} == {"not looked at"}
    assert call(*arguments, "--fail-above-claim").exit_code == 4
    forced = json.loads(output(*arguments, "--force", "--json"))
    assert (forced["decision"]["rule"], forced["withheld"]) == ("wrong-input", False)
    assert forced["bound"] is not None
    assert "adaptive" in output(*arguments, "--force", "--details")


def test_a_picture_is_written_once(folder: Path) -> None:
    arguments = ("audit", "c.npy", "--dim", "1e6", "--delta", "1e-6", "--plot")
    assert output(*arguments, "a.svg") == output(*arguments[:-1])
    assert (folder / "a.svg").read_text().startswith("<svg ")
    output(*arguments, "a.PNG")
    assert (folder / "a.PNG").read_bytes().startswith(b"\x89PNG")
    assert refusal(*arguments, "a.svg") == "a.svg: must not exist already, unless with --overwrite"
    assert output(*arguments, "a.svg", "--overwrite") == output(*arguments[:-1])
    assert [path.name for path in folder.iterdir() if path.name.startswith(".")] == []


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_symbols_are_spelt_where_a_terminal_has_none(folder: Path, encoding: str) -> None:  # noqa: ARG001
    arguments = ["audit", "c.npy", "--dim", "1e6", "--delta", "1e-6", "--details"]
    text = CliRunner(charset=encoding).invoke(main, arguments).stdout
    assert "epsilon = " in text
    assert "\\" not in text


@pytest.mark.parametrize("extra", [[], ["--dim", "1000000", "--confidence", "0.5"]])
def test_json_says_what_the_audit_finds_in_equal_bytes(folder: Path, extra: list[str]) -> None:  # noqa: ARG001
    arguments = ("audit", "both.npz", "--delta", "1e-6", "--json", *extra)
    text = output(*arguments)
    found = audit(Scores(COSINES, OTHERS, 10**6 if extra else None), 1e-6, 0.5 if extra else 0.95)
    assert text == found.to_json() + "\n"
    assert (json.loads(text)["blind_spots"] is None) == (not extra)
    assert text == output(*arguments)
    assert text.isascii()


def test_what_no_json_number_can_say_is_null(folder: Path) -> None:  # noqa: ARG001
    np.save("outlier.npy", np.append(np.tile(COSINES, 25), 1.0))
    text = output("audit", "outlier.npy", "--dim", 10**6, "--delta", 1e-6, "--json")
    assert json.loads(text)["normality"] == {"statistic": None, "p_value": 0.0}
    text = words(output("audit", "outlier.npy", "--dim", 10**6, "--delta", 1e-6, "--details"))
    assert "A² = inf, p < 5e-31" in text
    assert "equal variances p < 1e-300" in text


def test_a_mean_below_zero_is_put_into_words(folder: Path) -> None:  # noqa: ARG001
    np.save("n.npy", -COSINES)
    np.savez("n.npz", observed=-COSINES, unobserved=OTHERS)
    closed = words(output("audit", "n.npy", "--dim", 10**6, "--delta", 1e-6, "--details", "--force"))
    fitted = words(output("audit", "n.npz", "--delta", 1e-6, "--details", "--force"))
    assert "The observed mean is not positive, so that pinned is 0" in closed
    assert "The observed mean is not above the null's, so that pinned is 0" in fitted
    assert "so that adaptive is pinned" in closed


def test_seven_values_are_too_few_for_normality_and_different_variances_are_named(folder: Path) -> None:  # noqa: ARG001
    np.save("few.npy", 10.0 * COSINES[:7])
    text = words(output("audit", "few.npy", "--dim", 10**6, "--delta", 1e-6, "--details", "--force"))
    assert "not tested: fewer than 8 values" in text
    assert "The variances differ, so that adaptive is fitted." in text


def test_orthonormal_canaries_are_written_added_and_found_again(folder: Path) -> None:
    made = ("canaries", "--seed", 11, "--count", 400, "--dim", 2000, "--directions", "orthonormal")
    assert output(*made, "--out", "canaries.npy").endswith(
        "--canary-seed SEED --directions orthonormal --delta DELTA\n"
    )
    canaries = np.load("canaries.npy")
    assert np.abs(canaries.astype(float) @ canaries.T - np.eye(400)).max() < 1e-6
    np.save(folder / "release.npy", canaries.sum(axis=0, dtype=np.float64) + noise(0, 2000))
    asked = ("audit", "release.npy", "--canaries", 400, "--canary-seed", 11, "--delta", 1e-5)
    found = json.loads(output(*asked, "--directions", "orthonormal", "--json"))
    assert (found["count"], found["null_count"]) == (400, 1600)
    # Seven of its own deviations.
    assert found["standardised_mean"] == pytest.approx(1.0, abs=0.4)


def test_canaries_are_written_added_and_found_again(folder: Path) -> None:
    text = output("canaries", "--seed", 11, "--count", 100, "--dim", "5e3", "--out", "canaries.npy")
    assert text == (
        "Wrote 100 canaries of dimension 5000 to canaries.npy; audit a release with:\n"
        "  canaryproof audit RELEASE.npy --canaries 100 --canary-seed SEED --delta DELTA\n"
    )
    canaries = np.load("canaries.npy")
    assert (canaries.dtype, canaries.shape) == (np.float32, (100, 5000))
    for j in (0, 1, 99):
        np.testing.assert_array_equal(canaries[j], Canaries(11, 100, 5000).vector(j))
    release = canaries.sum(axis=0, dtype=np.float64) + noise(0, 5000)
    np.save("release.npy", release.astype(">f4"))
    arguments = ("audit", "release.npy", "--canaries", 100, "--canary-seed", 11, "--delta", 1e-5)
    text = words(output(*arguments, "--details"))
    assert "k = 100 observed cosines, d = 5,000, δ = 1e-05; null: N(0, 1/d)" in text
    assert "norm the release without its canaries is Gaussian noise and little else" in text
    assert "in units of the canary norm" in text
    found = json.loads(output(*arguments, "--json"))
    assert found["standardised_mean"] == pytest.approx(1.0, abs=0.6)
    assert [estimate["name"] for estimate in found["estimates"]][-1] == "norm"
    assert sorted(path.name for path in folder.iterdir() if path.name.startswith(".")) == []


def checkpoint(**tensors: np.ndarray) -> bytes:
    """Write float32 tensors as .safetensors."""
    header, end = {}, 0
    for name, values in tensors.items():
        header[name] = {"dtype": "F32", "shape": values.shape, "data_offsets": [end, end + values.nbytes]}
        end += values.nbytes
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + b"".join(values.tobytes() for values in tensors.values())


@pytest.mark.deep(beyond=1)
@pytest.mark.parametrize("directions", ["independent", "orthonormal"])
def test_canaries_are_added_to_a_checkpoint_and_seen_in_it(folder: Path, directions: str) -> None:
    rng = np.random.default_rng(5)
    base = {"b.w": rng.normal(size=(40, 50)), "a.w": rng.normal(size=3000), "head": rng.normal(size=70)}
    before = {name: values.astype(np.float32) for name, values in base.items()}
    noised = {name: (values + 3.0 * rng.normal(size=values.shape)).astype(np.float32) for name, values in base.items()}
    (folder / "base.safetensors").write_bytes(checkpoint(**before))
    (folder / "noised.safetensors").write_bytes(checkpoint(**noised))
    chosen = ("--skip", "head", "--directions", directions, "--canary-norm", 3.0)
    made = ("canaries", "--seed", 11, "--count", 300, "--add", "noised.safetensors", *chosen)
    shown = output(*made, "--out", "model.safetensors")
    assert shown.splitlines() == [
        "Added 300 canaries to 5,000 coordinates and wrote model.safetensors; audit a release with:",
        "  canaryproof audit RELEASE.safetensors --canaries 300 --canary-seed SEED"
        + (" --directions orthonormal" if directions == "orthonormal" else "")
        + " --canary-norm 3.0 --delta DELTA",
        "Order     2 tensors by name, a.w to b.w",
        "Left out  1 tensor, head",
    ]
    asked = ("--canaries", 300, "--canary-seed", 11, "--delta", 1e-5, *chosen, "--noise-multiplier", 1.0)
    audited = ("audit", "model.safetensors", "--base", "base.safetensors", *asked, "--state", "state.npz")
    result = json.loads(output(*audited, "--json"))
    # Seven of its own deviations.
    assert result["standardised_mean"] == pytest.approx(1.0, abs=0.45)
    assert result["coordinates"]["tensors"] == [["a.w", [3000]], ["b.w", [40, 50]]]
    assert (result["coordinates"]["dim"], result["coordinates"]["left_out"]) == (5000, ["head"])
    assert output(*audited).endswith("\nOrder     2 tensors by name, a.w to b.w\nLeft out  1 tensor, head\n")
    again = json.loads(output(*audited, "--json"))
    assert again == result
    other = refusal("audit", "model.safetensors", *asked, "--state", "state.npz")
    assert other == "state.npz: is of another release, or of another base: block 0 has other values"


def test_white_space_around_a_number_is_ignored(folder: Path) -> None:  # noqa: ARG001
    assert output("audit", "c.npy", "--delta", "1e-6\n", "--dim", 10**6) == (
        output("audit", "c.npy", "--delta", "1e-6", "--dim", 10**6)
    )


@given(st.text())
def test_one_line_is_printable(text: str) -> None:
    assert one_line(text).isprintable()
    assert not text.isprintable() or one_line(text) == text


def test_unknown_commands_and_options_get_one_line() -> None:
    assert "No such command" in refusal("audti")
    assert refusal("--colour").startswith("No such option")


def test_a_missing_file_is_named_before_a_missing_option(folder: Path) -> None:  # noqa: ARG001
    assert refusal("audit", "none.npy") == "none.npy: No such file or directory"
    assert refusal("audit", "c.npy").startswith("Missing option '--delta'.")


def test_words_are_completed() -> None:
    def completed(*words: str) -> set[str]:
        return {
            item.value
            for item in ShellComplete(main, {}, "canaryproof", "_X").get_completions([*words[:-1]], words[-1])
        }

    assert completed("a") == {"audit"}
    assert completed("audit", "--bound", "ba") == {"band", "bayesian"}
    assert completed("audit", "--kind", "") == {"any", "cosine"}
    assert "final.theorem-3.3.norm-converges" in completed("claims", "final.theorem-3.3")
    assert completed("train", "final_t") >= {"final_table3", "final_table4"}
    assert "_CANARYPROOF_COMPLETE=bash_source canaryproof" in output("--help")


def test_help_and_version() -> None:
    first, *others = output("--version").splitlines()
    assert first == f"canaryproof, version {version('canaryproof')}"
    assert {f"python {platform.python_version()}", f"numpy {np.__version__}"} <= set(others)
    assert [line.split()[0] for line in others].count("canaryproof") == 0
    text = output()
    assert text == output("--help")
    for command in ("audit", "canaries", "verify"):
        assert command in text
        assert output(command, "--help").isascii()
        assert output(command, "-h") == output(command, "--help")


def test_an_existing_file_is_never_replaced(folder: Path) -> None:
    arguments = ("canaries", "--seed", 1, "--count", 3, "--dim", 5, "--out")
    (folder / "dangling.npy").symlink_to("nowhere")
    before = (folder / "c.npy").read_bytes()
    for name in ("c.npy", "dangling.npy"):
        assert refusal(*arguments, name) == f"{name}: must not exist already, unless with --overwrite"
    assert (folder / "c.npy").read_bytes() == before


def test_a_file_that_appears_meanwhile_is_not_replaced(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_links(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    names = {path.name for path in folder.iterdir()}
    arguments = ("canaries", "--seed", 1, "--count", 3, "--dim", 5, "--out")
    monkeypatch.setattr(canaries_command, "check_output", lambda *_, **__: None)
    assert refusal(*arguments, "c.npy") == "c.npy: File exists"
    monkeypatch.setattr(os, "link", no_links)
    assert "c.npy: exists by now" in refusal(*arguments, "c.npy")
    np.testing.assert_array_equal(np.load("c.npy"), COSINES)
    assert {path.name for path in folder.iterdir()} == names
    output(*arguments, "new.npy")
    assert np.load("new.npy").shape == (3, 5)
    assert {path.name for path in folder.iterdir()} == names | {"new.npy"}


def test_too_small_a_disk_is_refused_before_anything_is_written(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = {path.name for path in folder.iterdir()}
    huge = ("canaries", "--seed", 1, "--count", 2**32, "--dim", 2**40, "--out", "x.npy")
    assert refusal(*huge, status=74).startswith("x.npy: needs 18.9 ZB, and the disk has ")
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=100))
    assert refusal("canaries", "--seed", 1, "--count", 6, "--dim", 5, "--out", "x.npy", status=74) == (
        "x.npy: needs 120 bytes, and the disk has 100 bytes free"
    )
    assert {path.name for path in folder.iterdir()} == names


@pytest.mark.parametrize(
    ("error", "status"), [(KeyboardInterrupt(), 130), (OSError(28, "No space left on device"), 74), (MemoryError(), 2)]
)
def test_a_failed_run_leaves_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, status: int
) -> None:
    def fail(*_: object) -> None:
        raise error

    names = {path.name for path in folder.iterdir()}
    monkeypatch.setattr(Canaries, "vector", fail)
    result = call("canaries", "--seed", 1, "--count", 3, "--dim", 5, "--out", "x.npy")
    assert result.exit_code == status
    said = {130: "", 2: "Error: not enough memory", 74: "Error: x.npy: No space left on device"}
    assert result.stderr.strip() == said[status]
    assert {path.name for path in folder.iterdir()} == names


def test_a_slow_run_shows_its_progress_on_a_terminal_only(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ARG001
    monkeypatch.setattr(progress, "_BAR_AFTER", 0.0)
    arguments = ("canaries", "--seed", 1, "--count", 300, "--dim", 20_000, "--out")
    output(*arguments, "quiet.npy")
    monkeypatch.setenv("FORCE_COLOR", "1")
    shown = call(*arguments, "shown.npy")
    assert "making canaries" in shown.stderr
    assert shown.stdout.startswith("Wrote 300 canaries of dimension 20000 to shown.npy")
    shown = call("audit", "release.npy", "--canaries", 5, "--canary-seed", 0, "--delta", 0.1, "--json")
    assert "scoring canaries" in shown.stderr
    assert json.loads(shown.stdout)["count"] == 5


def test_a_narrow_terminal_loses_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ARG001
    wide = output("audit", "both.npz", "--dim", 10**6, "--delta", 1e-6, "--details")
    for columns in ("40", "20"):
        monkeypatch.setenv("COLUMNS", columns)
        narrow = output("audit", "both.npz", "--dim", 10**6, "--delta", 1e-6, "--details")
        assert "…" not in narrow
        assert max(map(len, narrow.splitlines())) <= int(columns) + narrow.count("\u0302")
    assert max(map(len, wide.splitlines())) <= 80 + 3


@pytest.mark.deep
def test_a_terminal_without_unicode_gets_words(folder: Path) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "COLUMNS": "80"}
    with start(
        "audit", "both.npz", "--delta", "1e-6", "--dim", "1e6", "--details", cwd=folder, env=environment
    ) as process:
        text, errors = process.communicate()
    assert (process.returncode, errors) == (0, b"")
    plain = words(text.decode("ascii"))
    assert "\\u" not in plain
    assert plain.startswith("epsilon is at least ")
    assert "standardised mean (mu - mu0)/sigma0" in plain
    with start(
        "audit", "ε.npy", "--delta", "1e-6", "--dim", "1e6", "--details", cwd=folder, env=environment
    ) as process:
        _, errors = process.communicate()
    assert errors.startswith(b"Error: ")
    assert errors.count(b"\n") == 1


GATE = ("audit", "c.npy", "--dim", "1e6", "--delta", "1e-6", "--fail-above-claim", "--claim")


@pytest.mark.parametrize(
    ("claim", "options", "status"),
    [
        ("3.1", [], 0),
        pytest.param("0.01", ["--json"], 1, marks=pytest.mark.deep),
        pytest.param("2", ["--details"], 3, marks=pytest.mark.deep),
    ],
)
def test_a_reader_that_goes_away_changes_no_status(folder: Path, claim: str, options: list[str], status: int) -> None:
    strong = np.random.default_rng(1).normal(3.0, 1.0, 200) / 1000.0
    np.save("c.npy", strong if status == 1 else exact_law.cosines(1000, 10**6, 1.54, np.random.default_rng(3)))
    arguments = (*GATE, claim, *options)
    assert call(*arguments).exit_code == status

    def through(reader: str, **environment: str) -> tuple[int, bytes]:
        with start(*arguments, cwd=folder, env=os.environ | environment) as gate:
            with subprocess.Popen(reader, shell=True, stdin=gate.stdout, stdout=subprocess.DEVNULL):
                assert gate.stdout is not None
                gate.stdout.close()
                gate.stdout = None
            return gate.wait(), gate.stderr.read()

    # Python writes through another stack of streams where it is unbuffered.
    for unbuffered in ("", "1"):
        for reader in ("head -1", "tee copy", "exec <&-"):
            assert through(reader, PYTHONUNBUFFERED=unbuffered) == (status, b"")
    closed = subprocess.run(
        ["/bin/sh", "-c", 'exec "$@" >&-', "sh", *PROGRAM, *arguments], cwd=folder, stderr=subprocess.PIPE, check=False
    )
    assert (closed.returncode, closed.stderr) == (status, b"")


@pytest.mark.deep
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no full device")
def test_a_full_disk_under_stdout_is_one_line(folder: Path) -> None:
    command = [*PROGRAM, "audit", "both.npz", "--delta", "1e-6", "--json"]
    with open("/dev/full", "wb") as full:  # noqa: PTH123
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, cwd=folder, check=False)
    assert (done.returncode, done.stderr) == (74, b"Error: output: No space left on device\n")
    # A gate that fails does so without a word, and one that passes has not said so.
    np.save(folder / "c.npy", np.random.default_rng(1).normal(3.0, 1.0, 200) / 1000.0)
    for claim, status in ((100, 74), (0.01, 1)):
        gate = [*PROGRAM, *map(str, GATE), str(claim)]
        with open("/dev/full", "wb") as full:  # noqa: PTH123
            assert subprocess.run(gate, stdout=full, stderr=full, cwd=folder, check=False).returncode == status


@pytest.mark.parametrize(("claim", "status"), [(100, 74), (0.01, 1)])
def test_the_answer_is_printed_though_its_files_cannot_be_written(
    folder: Path,  # noqa: ARG001
    monkeypatch: pytest.MonkeyPatch,
    claim: float,
    status: int,
) -> None:
    strong = np.random.default_rng(1).normal(3.0, 1.0, 200) / 1000.0
    np.save("c.npy", strong)
    answer_alone = call(*GATE, claim).stdout

    def fail(path: Path, *_: object, **__: object) -> None:
        raise OutputError(f"{path}: No space left on device")

    monkeypatch.setattr(audit_command, "write_output", fail)
    result = call(*GATE, claim, "--report", "r.html", "--plot", "p.svg", "--junit", "j.xml")
    # A failed gate stays one.
    assert (result.exit_code, result.stdout) == (status, answer_alone)
    assert result.stderr.splitlines() == [f"Error: {name}: No space left on device" for name in ("p.svg", "r.html")]
    assert Path("j.xml").exists()


@pytest.mark.parametrize(
    "arguments",
    [("audit", "none.npz", "--delta", "1e-6"), ("audit", "c.npy", "--delta", "7"), ("verify", "nosuch")],
)
def test_bad_input_is_said_in_the_junit_file_too(folder: Path, arguments: tuple[str, ...]) -> None:  # noqa: ARG001
    message = refusal(*arguments, "--junit", "j.xml")
    suites = ET.parse("j.xml").getroot()
    assert (suites.get("tests"), suites.get("errors"), suites.get("failures")) == ("1", "1", "0")
    (case,) = suites.iter("error")
    assert case.get("message") == message
    # A file of a former run is not replaced unless it may be.
    before = Path("j.xml").read_bytes()
    other = ("audit", "other.npz", "--delta", "1e-6", "--junit=j.xml")
    refusal(*other)
    assert Path("j.xml").read_bytes() == before
    refusal(*other, "--overwrite")
    assert b"other.npz" in Path("j.xml").read_bytes()


def test_the_package_is_a_program() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "canaryproof", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout == output("--version")


@pytest.mark.parametrize("number", ["0", "-3"])
def test_a_number_of_threads_that_numba_refuses_is_one_line(
    folder: Path,  # noqa: ARG001
    monkeypatch: pytest.MonkeyPatch,
    number: str,
) -> None:
    monkeypatch.setenv("NUMBA_NUM_THREADS", number)
    said = refusal("audit", "both.npz", "--delta", "1e-6")
    assert said == f"NUMBA_NUM_THREADS: must be at least 1, not {number}"


@pytest.mark.parametrize("seconds", ["abc", "-5", "1e9", "9" * 20])
def test_a_time_of_sources_that_numpy_refuses_is_one_line(
    folder: Path,  # noqa: ARG001
    monkeypatch: pytest.MonkeyPatch,
    seconds: str,
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", seconds)
    said = refusal("audit", "both.npz", "--delta", "1e-6")
    assert said == f"SOURCE_DATE_EPOCH: must be a whole number of seconds, not {seconds!r}"


@pytest.mark.deep
def test_no_memory_for_a_library_is_one_line(folder: Path) -> None:
    limit = 300_000 * 1024
    done = subprocess.run(
        [*PROGRAM, "audit", "both.npz", "--delta", "1e-6"],
        capture_output=True,
        cwd=folder,
        # A BLAS would allocate for each of its threads, and try for ever.
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
        check=False,
    )
    assert (done.returncode, done.stderr) == (2, b"Error: not enough memory\n")


@pytest.mark.deep
@pytest.mark.skipif(not RESET.exists(), reason="peak memory is not known here")
def test_ten_million_scores_take_a_gigabyte(tmp_path: Path) -> None:
    np.save(tmp_path / "many.npy", np.random.default_rng(0).normal(1e-3, 1e-3, 10**7))
    script = """
        import atexit
        from canaryproof.verify.command_line import main
        from tests.memory import peak

        atexit.register(lambda: print(peak()))
        main(prog_name="canaryproof")
    """
    command = [sys.executable, "-c", textwrap.dedent(script), "audit", tmp_path / "many.npy"]
    done = subprocess.run([*command, "--dim", "1e6", "--delta", "1e-6"], capture_output=True, text=True, check=True)
    # The scores are 80 MB.
    assert int(done.stdout.splitlines()[-1]) < 2**30


@pytest.mark.parametrize(
    ("error", "known"),
    [
        (ImportError("lib.so: failed to map segment from shared object"), True),
        (SystemError("error return without exception set"), True),
        (SystemError("<built-in function f> returned NULL without setting an exception"), True),
        (ImportError("No module named 'scipy'"), False),
        (SystemError("bad argument to internal function"), False),
    ],
)
def test_libraries_fail_for_want_of_memory_or_by_errors_of_ours(
    error: Exception, known: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    def run() -> None:
        raise error

    assert _status(run) == (2 if known else 70)
    shown = capsys.readouterr().err
    if known:
        assert shown == "Error: not enough memory\n"
    else:
        # A fault of ours shows where it is.
        assert shown.startswith("Traceback ")
        assert shown.endswith(f"none of the input: {type(error).__name__}: {error}\n")


def test_an_interrupt_is_quiet_and_leaves_nothing(tmp_path: Path) -> None:
    arguments = ("canaries", "--seed", 1, "--count", 10**6, "--dim", 10, "--out", "x.npy")
    with start(*arguments, cwd=tmp_path) as process:
        while not any(path.stat().st_size for path in tmp_path.iterdir()) and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        text, errors = process.communicate()
    assert (process.returncode, text, errors.strip()) == (130, b"", b"")
    assert list(tmp_path.iterdir()) == []


def test_the_group_can_be_called_from_python() -> None:
    assert main.main(["--version"], standalone_mode=False) == 0
    with pytest.raises(click.UsageError):
        main.main(["audit"], standalone_mode=False)


def call_own(command: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> Result:
    monkeypatch.setitem(main.commands, "own", click.command(command))
    return call("own")


def test_a_command_may_set_its_own_status(monkeypatch: pytest.MonkeyPatch) -> None:
    assert call_own(lambda: click.get_current_context().exit(3), monkeypatch).exit_code == 3
    assert call_own(lambda: sys.exit(1), monkeypatch).exit_code == 1


def test_an_interrupt_that_a_callback_swallows_comes_again(monkeypatch: pytest.MonkeyPatch) -> None:
    class Swallowing:
        def __del__(self) -> None:
            raise KeyboardInterrupt

    def swallow() -> None:
        Swallowing()
        for _ in range(1000):
            time.sleep(0.01)

    hook = sys.unraisablehook
    # As above: the tests themselves may run in the background.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        result = call_own(swallow, monkeypatch)
    finally:
        signal.signal(signal.SIGINT, before)
    assert (result.exit_code, result.stderr.strip()) == (130, "")
    assert sys.unraisablehook is hook


def test_other_swallowed_exceptions_are_reported_as_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    class Failing:
        def __del__(self) -> None:
            raise RuntimeError

    reported = []
    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: reported.append(unraisable.exc_type))
    assert call_own(lambda: Failing() and None, monkeypatch).exit_code == 0
    assert reported == [RuntimeError]


def test_audit_prints_bounds_for_what_they_are(folder: Path) -> None:  # noqa: ARG001
    asked = ("--bound", "andrew", "--bound", "bayesian", "--bound", "one-run", "--bound", "fixed-sequence")
    # Fair coins give equal numbers, nearly.
    np.savez("equal.npz", observed=COSINES[:100], unobserved=OTHERS)
    fixed, coin = (
        words(output("audit", "equal.npz", "--delta", 1e-6, *asked, "--inclusion", kind, "--details"))
        for kind in ("fixed", "coin")
    )
    for text in (fixed, coin):
        assert "bound ε, 95% kind coverage cap" in text
        assert text.index("fixed-sequence ≥") < text.index("andrew ≥")
        assert " lower bound asymptotic " in text
        assert "bayesian 0 – " in text
        assert " posterior interval heuristic " in text
        assert "A cap is the most that a bound can say" in text
        assert "andrew needs a threshold that is fixed in advance, half of α for each rate, rates drawn" in text
        assert "Those of one release depend on each other" in text
        assert "No proof covers a heuristic bound" in text
    assert fixed.index("fixed-sequence ≥") < fixed.index("one-run ≥")
    assert coin.index("one-run ≥") < coin.index("fixed-sequence ≥")
    assert "A bound of proven coverage" in coin
    assert "A bound of proven coverage" not in fixed


def test_confidence_is_that_of_the_bounds_too(folder: Path) -> None:  # noqa: ARG001
    arguments = ("audit", "c.npy", "--dim", "1e6", "--delta", "1e-6", "--json", "--bound", "normal-scores")
    values = [json.loads(output(*arguments, "--confidence", level))["bounds"][0]["low"] for level in (0.5, 0.95, 0.999)]
    assert values == sorted(values, reverse=True)
    assert values[0] > 0.0


def test_bounds_in_json_name_their_kind_and_an_infinite_cap_is_null(folder: Path) -> None:  # noqa: ARG001
    found = json.loads(output("audit", "c.npy", "--dim", "1e6", "--delta", "1e-6", "--json", "--bound", "band"))
    (bound,) = found["bounds"]
    assert (bound["name"], bound["kind"], bound["coverage"], bound["cap"], bound["high"]) == (
        "band", "lower bound", "asymptotic", None, None,
    )  # fmt: skip
    assert found["inclusion"] == "fixed"


def test_audit_lists_what_it_would_have_noticed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ARG001
    # So that no cell of a list is wrapped.
    monkeypatch.setenv("COLUMNS", "300")
    arguments = ("audit", "c.npy", "--dim", "1e6", "--delta", "1e-6", "--details")
    guessed, given = (words(output(*arguments, *more)) for more in ([], ["--noise-multiplier", "4.22"]))
    assert "beside a claim of ε = 3 (noise multiplier 1.544); give the noise multiplier if yours is another:" in guessed
    assert "beside a claim of ε = 1 (noise multiplier 4.22):" in given
    for text in (guessed, given):
        noticed, _, missed = text.partition("Would not have been noticed, and the instrument of a self-test")
        assert "less noise than claimed, on all coordinates" in noticed
        assert "one client that is not clipped, or counts several times" in missed
        assert "ε up to ∞" in missed
    assert "is not measured here; a release's length tells it" in given
    assert "a release's length" not in guessed
    assert json.loads(output(*arguments, "--noise-multiplier", "4.22", "--json"))["blind_spots"]["given"]
    assert "in at least 1,000 dimensions" in words(output("audit", "both.npz", "--delta", "0.01", "--details"))


def test_data_that_swamp_the_statistic_are_warned_of(folder: Path) -> None:  # noqa: ARG001
    rng = np.random.default_rng(0)
    np.save("swamped.npy", rng.normal(0.0, 3.0, 2000))
    arguments = ("audit", "swamped.npy", "--canaries", 20, "--canary-seed", 1, "--delta", 1e-5, "--noise-multiplier")
    swamped, honest = (words(output(*arguments, sigma, "--details", "--force")) for sigma in (1.0, 3.0))
    assert "The lists above allow for what hides the claimed noise" in swamped
    assert "dilution ‖x‖²/(σ²d) − 1 without" in honest
    assert "allow for" not in honest


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        (("audti",), "No such command 'audti'. Did you mean 'audit'?"),
        (("qwertz",), "No such command 'qwertz'."),
        (
            ("claims", "table2"),
            "ID: there is no statement 'table2'; near it: final.table2.row1, final.table2.row2, final.table2.row3",
        ),
        (("verify", "--out", ""), "Invalid value for '--out': must not be empty"),
    ],
)
def test_a_slip_is_named(arguments: tuple[str, ...], answer: str) -> None:
    assert refusal(*arguments).partition(" (see ")[0] == answer


def test_a_group_alone_shows_its_help_in_lines() -> None:
    shown = call("benchmark")
    assert (shown.exit_code, shown.stdout) == (2, "")
    assert shown.stderr.startswith("Usage: ")
    assert "Commands:\n  canife " in shown.stderr


def test_a_training_s_record_is_audited_from_its_file(folder: Path) -> None:  # noqa: ARG001
    traces = RoundTraces(np.array([0.2, 0.3]), np.array([8.0, 9.0]), 2000, residual=False, rounds=2)
    record = RoundsRecord(Score.KNOWN_ROUNDS, 1, 0, 2, 0, 0, traces)
    Scores(COSINES, dim=10**6, record=record).save("s.json")
    arguments = ("audit", "s.json", "--delta", "1e-5")
    stated = json.loads(output(*arguments, "--noise-multiplier", 1, "--json"))
    assert (stated["mechanism"]["claimed"], stated["estimate"]["name"]) == (1.0, "composed")
    assert statuses(stated)["noise"] != "not looked at"
    assert call(*arguments, "--noise-multiplier", 3, "--fail-above-claim").exit_code == 1
    assert refusal(*arguments, "--dim", 7) == "--dim: must not be given with s.json, which says it"
    assert refusal(*arguments, "--score", "a", "--member", "b").startswith("--score: must not be given with s.json")


def test_a_table_is_audited_by_its_columns(folder: Path) -> None:  # noqa: ARG001
    rng = np.random.default_rng(0)
    member = rng.random(400) < 0.5
    scores = rng.normal(2.0 * member)
    rows = [f"{score!r},{int(took)}" for score, took in zip(scores.tolist(), member.tolist(), strict=True)]
    Path("t.csv").write_text("\n".join(["loss,in", *rows]))
    arguments = ("audit", "t.csv", "--kind", "any", "--delta", "1e-5")
    found = audit(Scores(scores[member], scores[~member], kind="any"), 1e-5)
    assert words(output(*arguments, "--score", "loss", "--member", "in")).startswith(answer(found))


def test_a_plan_of_rounds_takes_a_rate(folder: Path) -> None:  # noqa: ARG001
    arguments = ("plan", "--noise-multiplier", 1, "--dim", 2000, "--rounds", 10)
    assert "Take " in output(*arguments, "--participations", 2)
    document = json.loads(output(*arguments, "--participations", 2, "--json"))
    assert document["mechanism"]["participations"] == 2
    assert [row["share"] for row in document["shares"]] == [0.9, 0.75, 0.5, 0.25]


# The command as it is installed, and a training that waits to be stopped.
INSTALLED = Path(sys.executable).with_name("canaryproof")
WAITS = 'import pathlib, time\npathlib.Path("begun").touch()\ntime.sleep(600)\n'
# Python runs this before a command: one of its modules has lost what it is for.
BROKEN = 'import sys, types\nsys.modules["canaryproof.verify.audit.answer.review"] = types.ModuleType("review")\n'
SELF_TEST = "self-test waits.py:training"


@pytest.mark.skipif(not INSTALLED.exists() or not Path("/dev/full").exists(), reason="no installed command here")
@pytest.mark.parametrize(
    ("arguments", "number", "status", "said"),
    [
        ("review c.npy --delta 1e-5 --epsilon no", None, 2, "Error: Invalid value for '--epsilon'"),
        ("review c.npy --delta 1e-5", None, 70, "Error: a fault of canaryproof, and none of the input: ImportError"),
        ("--version", None, 74, "Error: output: No space left on device"),
        (SELF_TEST, signal.SIGINT, 130, ""),
        (SELF_TEST, signal.SIGTERM, 143, ""),
    ],
)
def test_each_status_has_its_cause(
    folder: Path, arguments: str, number: signal.Signals | None, status: int, said: str
) -> None:
    (folder / "waits.py").write_text(WAITS)
    (folder / "broken").mkdir()
    (folder / "broken" / "sitecustomize.py").write_text(BROKEN)
    environment = os.environ | ({"PYTHONPATH": str(folder / "broken")} if status == 70 else {})
    with (
        Path("/dev/full" if status == 74 else os.devnull).open("wb") as out,
        subprocess.Popen(
            [INSTALLED, *arguments.split()],
            stdout=out,
            stderr=subprocess.PIPE,
            cwd=folder,
            env=environment,
            # As in ``start``.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        ) as process,
    ):
        if number is not None:
            while not (folder / "begun").exists():
                assert process.poll() is None
                time.sleep(0.02)
            process.send_signal(number)
        assert process.stderr is not None
        last = process.stderr.read().decode().strip().rpartition("\n")[2]
    assert (process.returncode, last.startswith(said)) == (status, True), last
    assert said or not last
