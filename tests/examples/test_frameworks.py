"""The examples of private training in PyTorch, JAX and Flower: what an audit adds, and what it finds.

Each training runs in a process of its own, where its framework is installed. ``make test-frameworks`` installs all of
them. Nominal levels are 1e-7, as for the loops. Seeds are fixed.
"""

import json
import math
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from scipy import stats

from canaryproof.kernels import gaussian_mechanism

ROOT = Path(__file__).parents[2]
LEVEL = 1e-7
MARK = "  # audit"
# The module and the extra that an example needs, and the page that shows its lines.
EXAMPLES = {
    "opacus_training": ("opacus", "opacus", "opacus"),
    "jax_privacy_training": ("jax_privacy", "jax-privacy", "jax_privacy"),
    "flower_app": ("flwr", "flower", "flower"),
}
# An example whose trainings have tests of their own.
SHOWN = EXAMPLES | {"transformer_training": ("peft", "transformers", "transformers")}
PAGES = {name: page for name, (_, _, page) in SHOWN.items()} | {"distributed_training": "processes"}


def example(name):
    return (ROOT / "examples" / f"{name}.py").read_text(encoding="utf-8")


def marked(name):
    return [line for line in example(name).splitlines() if line.endswith(MARK)]


@pytest.fixture(params=EXAMPLES)
def name(request):
    return request.param


@pytest.fixture
def installed(name):
    module, extra, _ = SHOWN[name]
    if find_spec(module) is None:
        pytest.skip(f"needs the extra '{extra}'")
    return name


def run(program, folder=ROOT / "examples"):
    """What a program prints, as JSON, in a process that finds the examples; frameworks warn of much."""
    command = [sys.executable, "-W", "ignore", "-c", program]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("name", PAGES)
def test_an_audit_adds_at_most_six_lines(name):
    assert 1 <= len(marked(name)) <= 6


@pytest.mark.skipif(find_spec("opacus") is None, reason="needs the extra 'opacus'")
def test_the_program_of_opacus_page_runs_as_it_stands(tmp_path):
    page = (ROOT / "docs/how/opacus.md").read_text(encoding="utf-8")
    program, *_ = re.findall(r"^```python\n(.*?)^```$", page, re.M | re.S)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    shown, *_ = re.findall(r"^```text\n(.*?)\n\n…", page, re.M | re.S)
    assert done.stdout.startswith(shown)


@pytest.mark.parametrize("name", PAGES)
def test_the_page_shows_the_lines_of_the_example(name):
    page = (ROOT / "docs/how" / f"{PAGES[name]}.md").read_text(encoding="utf-8")
    # Above it, a page may show the lines of a watch.
    *_, diff = re.findall(r"^```diff\n(.*?)^```$", page, re.M | re.S)
    added = [line[1:].strip() for line in diff.splitlines() if line.startswith("+")]
    assert added == [line.removesuffix(MARK).strip() for line in marked(name)]
    lines = [line.strip() for line in example(name).splitlines()]
    kept = [line.strip() for line in diff.splitlines() if not line.startswith("+")]
    assert {line for line in kept if line not in ("", "...")} <= {*lines}


@pytest.mark.parametrize("name", SHOWN, indirect=True)
def test_the_training_runs_without_these_lines(installed, tmp_path):
    for path in (ROOT / "examples").glob("*.py"):
        lines = path.read_text(encoding="utf-8").splitlines()
        kept = [line for line in lines if path.stem != installed or not line.endswith(MARK)]
        (tmp_path / path.name).write_text("\n".join(kept), encoding="utf-8")
    found = run(f"from {installed} import *\nprint(vars(small()).get('canaries') is None and 1)", tmp_path)
    assert found == 1


def test_the_command_prints_both_epsilons_and_an_audit(installed):
    command = [sys.executable, "-W", "ignore", f"{installed}.py", "--no-data", "--break", "reused-noise"]
    done = subprocess.run(command, cwd=ROOT / "examples", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for said in ("analytical ε at δ = 1e-05", "\nAttacker  ", "Algorithm 2, from the final parameters"):
        assert said in done.stdout


@pytest.mark.skipif(find_spec("jax_privacy") is None, reason="needs the extra 'jax-privacy'")
def test_each_fault_of_jax_privacys_example_can_be_trained_without_data():
    """A batch without an example has no mean to be clipped. An accountant of half of one step would count none."""
    program = """
from jax_privacy_training import *
# An audit that refuses to estimate has noticed a fault.
audits = [no_data(10, fault=fault, epochs=2).final for fault in FAULTS]
said = [not found.estimates or bool(np.isfinite(found.estimates[0].epsilon)) for found in audits]
print(int(all(said)))
"""
    assert run(program) == 1


PROGRAM = """
import json, sys
from canaryproof import audit
from {name} import *
said = {{}}
for fault in (None, *(one for one in FAULTS if one.startswith("noise-per") or one.endswith("-twice"))):
    found = no_data({canaries}, fault=fault)
    again = audit(found.final.scores, DELTA, confidence=1 - {level})
    # An audit that refuses to estimate has noticed a fault.
    has_alarm = not found.final.estimates or bool(found.final.estimates[0].low > found.epsilon)
    ends = [float(end) for row in again.estimates[1:2] for end in (row.low, row.high)]
    said[str(fault)] = [has_alarm, *(ends or [None, None])]
    again = audit(found.known_rounds.scores, DELTA, confidence=1 - {level}, noise_multiplier=found.noise)
    composed = [float(again.estimate.low), float(again.estimate.high), float(again.claim), float(again.noticed_share)]
    failed = [finding.question for finding in again.findings if finding.status == "failed"]
    said[str(fault)] += [failed, composed]
print(json.dumps([said, found.sigma, DELTA]))
"""


def test_without_data_the_estimate_holds_the_analytical_epsilon_and_less_noise_is_noticed(installed):
    # A release of fewer dimensions has room for fewer canaries; with more noise, more are needed.
    canaries = 300 if installed == "flower_app" else 200
    # The final model holds the sum of all that is released, with noise of σ canaries.
    said, sigma, delta = run(PROGRAM.format(name=installed, canaries=canaries, level=LEVEL))
    _, low, high, failed, composed = said.pop("None")
    assert low < gaussian_mechanism.epsilon(delta, sigma) < high
    # So does what is composed of the noise that is measured at known rounds, and this share of it would be noticed.
    low, high, claim, noticed = composed
    assert low < claim < high
    assert failed == []
    assert noticed > 0.6
    # It is worth something: distances are told apart that differ by so many standard errors.
    assert math.sqrt(canaries) / sigma > 7
    assert len(said) == 2
    for fault, (alarm, _, _, failed, _) in said.items():
        assert alarm, fault
        assert {"noise", "leak"} & set(failed), fault


@pytest.mark.skipif(find_spec("jax_privacy") is None, reason="needs the extra 'jax-privacy'")
def test_with_correlated_noise_the_best_combination_holds_the_analytical_epsilon():
    program = f"""
import json
from canaryproof import audit
from jax_privacy_training import *
found = no_data(300, correlated=True)
pinned = [audit(one.scores, DELTA, confidence=1 - {LEVEL}).estimates[1] for one in (found.final, audit_final(found))]
print(json.dumps([found.noise, DELTA] + [float(one.low) for one in pinned] + [float(one.high) for one in pinned]))
"""
    noise, delta, low, _, high, _ = run(program)
    # Each canary is in one step, and C's columns have norm 1.
    assert low < gaussian_mechanism.epsilon(delta, noise) < high
    # Its distance differs from 0 by so many standard errors.
    assert math.sqrt(300) / noise > 8


@pytest.mark.skipif(find_spec("jax_privacy") is None, reason="needs the extra 'jax-privacy'")
def test_whitened_noise_along_the_canaries_is_normal_over_seeds():
    """What an interval is made of, for 200 seeds, without training: its z-score has the variance 1."""
    program = """
import json
from jax_privacy_training import *
params = jax.tree.map(jnp.zeros_like, first_parameters(jax.random.key(0)))
scores, update = [], None
for seed in range(200):
    privatizer, matrix = noise(1.0, 75, 20, True, None, seed)
    state, noises = privatizer.init(params), []
    update = update or jax.jit(privatizer.update)
    for _ in range(20):
        noisy, state = update(params, state)
        noises.append(flatten(noisy))
    participation = cp.shuffled_epochs(20, 1, 1, seed, Insertion(200, 100))
    made = Canaries(seed, 200, len(noises[0]))
    sums = matrix @ [made.sum(participation.canaries(t)) for t in range(20)]
    scores.append(float(np.vdot(matrix @ noises, sums) / np.linalg.norm(sums)))
print(json.dumps(scores))
"""
    squares = sum(score**2 for score in run(program))
    # Twice the variance, with which an interval for 95% has 83%, is noticed with probability 98.9%.
    assert stats.chi2.ppf(5e-7, 200) < squares < stats.chi2.isf(5e-7, 200)


@pytest.mark.deep
def test_the_interval_of_each_attacker_on_the_start_page_has_what_he_measures():
    program = f"""
import json
import interval_coverage
canaries, score, claim = interval_coverage.trained_as_on_the_start_page(0, no_data=False)
both = canaries.scores(score).record.traces, canaries.ignorant.traces
measured = [each.noise_multiplier(1 - {LEVEL}) for each in both]
truth = [claim.noise_multiplier, canaries.noise_and_data(claim.noise_multiplier)]
print(json.dumps([[each.low, float(true), each.high] for each, true in zip(measured, truth)]))
"""
    known, unknown = run(program)
    for low, truth, high in (known, unknown):
        assert low < truth < high
    # Half of the noise would be noticed; and what others' data add is something.
    assert known[2] < 2.0 * known[0]
    assert unknown[1] > 1.001
