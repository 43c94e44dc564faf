"""The example loops, run as a user runs them, and the audits of what they write.

With a client learning rate of 0 a loop is the Gaussian mechanism of canaries and noise alone, whose ε is known. Each
test has a level of at most 1e-6: nominal levels are 1e-7, which leaves room for what the canaries of one run tell of
one another (at these sizes their standard errors are 2% off). Seeds are fixed.
"""

import importlib.util
import json
import math
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner
from scipy import stats

from canaryproof.kernels import gaussian_mechanism, null_cosine
from canaryproof.kernels.canaries import Canaries
from canaryproof.kernels.orthonormal_canaries import OrthonormalCanaries
from canaryproof.verify.audit.answer.run_audit import audit, audit_release
from canaryproof.verify.audit.canaries.participation import Insertion, shuffled_epochs
from canaryproof.verify.audit.canaries.scores import Scores
from canaryproof.verify.command_line import main

EXAMPLES = Path(__file__).parents[2] / "examples"
LEVEL = 1e-7
DELTA = 1e-5
# Of both loops.
ROUNDS, CLIENTS, CANARIES, SEED, DIM = 20, 50, 1000, 7, 8836
CLAIMED = 0.5
A_ROUND = CANARIES // ROUNDS
# Where the loop's own functions give the classes' scores or probabilities.
MODEL_OUTPUT = {
    "numpy_loop": "forward(model, x)[1]",
    "jax_loop": "logits(model, x)",
    "flower_app": "__import__('numpy_loop').forward(model, x)[1]",
}
NEEDS = {"numpy_loop": "numpy", "jax_loop": "jax", "flower_app": "flwr"}
# Results do not depend on threads; where others want the processor too, many short calls wait for each other's threads.
ENVIRONMENT = os.environ | {"NUMBA_NUM_THREADS": "1", "FLWR_TELEMETRY_ENABLED": "0"}
# Who takes part where coins decide, at the loops' seed.
INCLUDED = shuffled_epochs(ROUNDS * CLIENTS, CLIENTS, 1, 0, Insertion(2 * CANARIES)).included
# Noise multiplier, client learning rate and score; of known rounds, all canaries take part.
RUNS = {
    "trained": (CLAIMED, 0.1, "known rounds"),
    "still": (CLAIMED, 0.0, "largest"),
    "faulty": (CLAIMED / 4, 0.0, "largest"),
}
DRIVER = """
import os, runpy, sys
import numpy as np
loop, output, *runs = sys.argv[1:]
sys.path.insert(0, os.path.dirname(loop))
names = runpy.run_path(loop)
source = names["jax"].random.key(99) if "jax_loop" in loop else np.random.default_rng(99)
x, y = names["made_data"](source, 200)
for folder, noise_multiplier, client_rate, score in zip(runs[::4], runs[1::4], runs[2::4], runs[3::4]):
    model = names["train"](folder, float(noise_multiplier), float(client_rate), score=score)
    print(np.mean(np.asarray(eval(output, names, {"model": model, "x": x})).argmax(axis=-1) == np.asarray(y)))
"""


def read(folder):
    scores = Scores.load(saved := folder / "scores.json")
    final = np.load(folder / "final.npy")
    return SimpleNamespace(
        saved=saved, final=final, scores=scores, observed=scores.observed, unobserved=scores.unobserved
    )


@pytest.fixture(scope="module", params=["numpy_loop", pytest.param("jax_loop", marks=pytest.mark.deep), "flower_app"])
def runs(request, tmp_path_factory):
    """The runs of a loop, in a process of their own where any warning is an error."""
    if importlib.util.find_spec(NEEDS[request.param]) is None:
        pytest.skip(f"needs {NEEDS[request.param]}")
    loop = EXAMPLES / f"{request.param}.py"
    folders = {name: tmp_path_factory.mktemp(name) for name in RUNS}
    arguments = [str(x) for name, folder in folders.items() for x in (folder, *RUNS[name])]
    # Flower's own imports warn.
    strict = [] if request.param == "flower_app" else ["-W", "error"]
    command = [sys.executable, *strict, "-c", DRIVER, str(loop), MODEL_OUTPUT[request.param], *arguments]
    output = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=True).stdout
    found = SimpleNamespace(loop=loop, **{name: read(folder) for name, folder in folders.items()})
    for name, accuracy in zip(RUNS, output.split(), strict=True):
        getattr(found, name).accuracy = float(accuracy)
    return found


@pytest.fixture
def trained(runs):
    return runs.trained


@pytest.fixture
def still(runs):
    """A run whose clients learn nothing."""
    return runs.still


@pytest.fixture
def faulty(runs):
    """Such a run with a quarter of the noise that it claims."""
    return runs.faulty


def final_interval(run):
    if run.unobserved is None:
        found = audit_release(run.final, Canaries(SEED, CANARIES, DIM), DELTA, 1 - LEVEL)
    else:
        cosines = Canaries(SEED, 2 * CANARIES, DIM).cosines(run.final)[INCLUDED]
        found = audit(Scores(cosines, dim=DIM, inclusion="coin", inserted=len(cosines)), DELTA, 1 - LEVEL)
    pinned = found.estimates[1]
    assert pinned.name == "pinned"
    return pinned.low, pinned.high


def released_epsilon(noise_multiplier):
    """ε of the sum over all rounds of noise and canaries."""
    return float(gaussian_mechanism.epsilon(DELTA, noise_multiplier * math.sqrt(ROUNDS)))


def lower_bound(run):
    """A lower bound on ε from the scores over thresholds that were fixed beforehand, by Bonferroni.

    A false alarm at threshold a/√d has a cosine's probability in a known round, and at most ROUNDS times it for the
    largest one, however the rounds depend on one another; of hits there is a one-sided Clopper–Pearson limit.
    """
    rounds = 1 if run.unobserved is None else ROUNDS
    thresholds = np.arange(3.0, 8.5, 0.5)
    best = 0.0
    for threshold in thresholds:
        hits = int(np.sum(run.observed > threshold / math.sqrt(DIM)))
        limit = stats.beta.ppf(LEVEL / len(thresholds), hits, len(run.observed) - hits + 1) if hits else 0.0
        false_alarm = rounds * float(null_cosine.sf(threshold / math.sqrt(DIM), DIM))
        if limit > DELTA:
            best = max(best, math.log((limit - DELTA) / false_alarm))
    return best


# The last line of each loop: one is run as a command, as starting the others takes seconds.
@pytest.mark.parametrize(
    "runs",
    ["numpy_loop", pytest.param("jax_loop", marks=pytest.mark.deep), "flower_app"],
    indirect=True,
)
def test_the_loop_runs_as_it_says(runs, trained, tmp_path):
    subprocess.run([sys.executable, runs.loop, tmp_path], env=ENVIRONMENT, check=True)
    again = read(tmp_path)
    assert np.array_equal(again.final, trained.final)
    # As a command it scores known rounds, and has the noise alone, whatever the clients learn.
    found = audit(again.scores, DELTA, 1 - LEVEL, noise_multiplier=CLAIMED)
    assert found.estimate.name == "composed"
    assert found.estimate.low < gaussian_mechanism.epsilon(DELTA, CLAIMED) < found.estimate.high
    # It is worth something: this share of the noise would be noticed.
    assert found.noticed_share > 0.8


def test_its_files_are_audited(trained):
    def audited(name, *options):
        command = ["audit", "--json", str(trained.saved.with_name(name)), "--delta", str(DELTA), *options]
        result = CliRunner().invoke(main, command)
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)

    rounds = audited(trained.saved.name)
    final = audited("final.npy", "--canaries", str(CANARIES), "--canary-seed", str(SEED))
    assert (rounds["count"], rounds["null_count"]) == (CANARIES, None)
    assert (final["count"], final["dim"]) == (CANARIES, DIM)
    for found, expected in (
        (rounds, audit(trained.scores, DELTA)),
        (final, audit_release(trained.final, Canaries(SEED, CANARIES, DIM), DELTA)),
    ):
        assert [e["epsilon"] for e in found["estimates"]] == [e.epsilon for e in expected.estimates]


def test_the_model_learns(trained, still):
    # On 4,000 new examples of 4 classes.
    assert trained.accuracy > 0.75
    assert still.accuracy < 0.5


def test_the_final_models_estimate_holds_the_analytical_epsilon(still):
    low, high = final_interval(still)
    assert low < released_epsilon(CLAIMED) < high
    # It is worth something: noise of 0.6 times what is claimed would be noticed with probability 0.99.
    distance, other = (1 / (noise * math.sqrt(ROUNDS)) for noise in (CLAIMED, 0.6 * CLAIMED))
    reach = stats.norm.isf(LEVEL / 2) + stats.norm.isf(0.01)
    assert other - distance > reach / math.sqrt(INCLUDED.sum())


def test_a_quarter_of_the_noise_is_noticed(faulty):
    assert final_interval(faulty)[0] > released_epsilon(CLAIMED)
    assert lower_bound(faulty) > gaussian_mechanism.epsilon(DELTA, CLAIMED)


def test_the_final_models_estimate_is_what_the_releases_norm_says(trained):
    """Learning adds to the norm and to nothing else that a canary sees."""
    distance = math.sqrt(DIM) / np.linalg.norm(trained.final.astype(float))
    low, high = final_interval(trained)
    assert low < gaussian_mechanism.epsilon(DELTA, 1 / distance) < high
    assert low < gaussian_mechanism.epsilon(DELTA, CLAIMED)


def test_scores_have_the_law_of_a_maximum_over_rounds(still):
    """Noise and canaries of different rounds are independent, so that a canary's cosines are."""
    unobserved = stats.kstest(null_cosine.cdf(still.unobserved, DIM) ** ROUNDS, "uniform")
    distance = 1 / math.hypot(CLAIMED, math.sqrt(A_ROUND / DIM))

    def law(score):
        own = stats.norm.cdf(score * math.sqrt(DIM) - distance)
        return own * null_cosine.cdf(score, DIM) ** (ROUNDS - 1)

    observed = stats.kstest(law(still.observed), "uniform")
    assert unobserved.pvalue > LEVEL
    assert observed.pvalue > LEVEL
    # Either law is told from the other's scores.
    assert stats.kstest(law(still.unobserved), "uniform").pvalue < LEVEL
    assert stats.kstest(null_cosine.cdf(still.observed, DIM) ** ROUNDS, "uniform").pvalue < LEVEL


def test_no_threshold_contradicts_the_analytical_epsilon(trained, still):
    """What all rounds release has the ε of one of them, as each canary is in one round alone."""
    for run in (trained, still):
        assert 0.0 < lower_bound(run) < gaussian_mechanism.epsilon(DELTA, CLAIMED)


def test_a_loop_takes_orthonormal_canaries_in_place_of_independent_ones(tmp_path, monkeypatch):
    source = importlib.util.spec_from_file_location("orthonormal_loop", EXAMPLES / "numpy_loop.py")
    loop = importlib.util.module_from_spec(source)
    source.loader.exec_module(loop)
    monkeypatch.setattr(loop, "Canaries", OrthonormalCanaries)
    loop.train(tmp_path, CLAIMED, 0.0, score="largest")
    run = read(tmp_path)
    cosines = OrthonormalCanaries(SEED, 2 * CANARIES, DIM).cosines(run.final)
    found = audit(Scores(cosines[INCLUDED], cosines[~INCLUDED], inclusion="coin"), DELTA, 1 - LEVEL).estimates[1]
    assert found.name == "pinned"
    assert found.low < released_epsilon(CLAIMED) < found.high
    # Those that took part score higher.
    assert stats.mannwhitneyu(run.observed, run.unobserved, alternative="greater").pvalue < LEVEL
