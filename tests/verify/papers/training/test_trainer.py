import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numba
import numpy as np
import plain
import pytest
import tiny
from scipy import stats

from canaryproof.kernels import exact_law
from canaryproof.kernels.canaries import Canaries, noise
from canaryproof.verify.audit.canaries import participation as schedules
from canaryproof.verify.audit.canaries.canary_clients import CanaryClients
from canaryproof.verify.audit.canaries.participation import Insertion, Presentations
from canaryproof.verify.audit.estimators import algorithm_1
from canaryproof.verify.audit.files import checkpoint
from canaryproof.verify.papers.training.clients import CohortSum
from canaryproof.verify.papers.training.clipping import AdaptiveClip, FixedClip
from canaryproof.verify.papers.training.noise import Correlated, Independent, Tree
from canaryproof.verify.papers.training.trainer import DivergenceError, Server, Trainer, Training

pytest.importorskip("optax", reason="training needs the extra 'federated'")


DIM, STEPS = 7, 5
RATE = 0.3


@pytest.fixture(scope="module")
def deltas():
    return np.random.default_rng(0).normal(size=(STEPS, DIM))


@pytest.fixture(scope="module")
def initial():
    return np.random.default_rng(1).normal(size=DIM).astype(np.float32)


def sgd(momentum, theta, deltas):
    velocity = np.zeros(DIM)
    for delta in deltas:
        velocity = momentum * velocity + delta
        theta = theta + RATE * velocity
    return theta


def adam(theta, deltas):
    first, second = np.zeros(DIM), np.zeros(DIM)
    for t, delta in enumerate(deltas, start=1):
        first, second = 0.9 * first + 0.1 * delta, 0.99 * second + 0.01 * delta**2
        theta = theta + RATE * (first / (1 - 0.9**t)) / (np.sqrt(second / (1 - 0.99**t)) + 1e-3)
    return theta


EXPECTED = {
    ("sgd", 0.0): lambda theta, deltas: theta + RATE * deltas.sum(axis=0),
    ("sgd", 0.9): lambda theta, deltas: sgd(0.9, theta, deltas),
    ("adam", 0.0): adam,
}


@pytest.mark.parametrize(("name", "momentum"), EXPECTED)
def test_steps_are_those_of_plain_numpy(name, momentum, initial, deltas):
    server = Server(name, RATE, momentum, initial)
    for delta in deltas:
        server.step(delta)

    np.testing.assert_allclose(server.theta, EXPECTED[name, momentum](initial.astype(float), deltas), rtol=0, atol=3e-6)


@pytest.mark.parametrize(("name", "momentum"), EXPECTED)
def test_a_restored_server_goes_on_with_the_same_bits(name, momentum, initial, deltas):
    server = Server(name, RATE, momentum, initial)
    for delta in deltas[:2]:
        server.step(delta)
    other = Server(name, RATE, momentum, np.zeros(DIM))
    other.restore({key: array.copy() for key, array in server.arrays().items()})
    for delta in deltas[2:]:
        server.step(delta)
        other.step(delta)

    assert server.arrays().keys() == other.arrays().keys()
    for key, array in server.arrays().items():
        assert np.array_equal(array, other.arrays()[key])


# The training loop against plain numpy, against itself after a stop, and against Algorithm 1.


pytest.importorskip("jax", reason="training needs the extra 'federated'")


SIZES = [4, 1, 7, 3, 2, 9, 5, 6]
ROUNDS = 8
CLIP_NORM = 0.4
CANARIES = Canaries(seed=5, count=12, dim=plain.DIM)
SERVERS = [("sgd", 0.0), ("sgd", 0.9), ("adam", 0.0)]
LEVEL = 1e-6


@pytest.fixture(scope="module", autouse=True)
def _one_thread():
    """Results do not depend on threads; where others want the processor too, many short calls wait for each other's."""
    before = numba.get_num_threads()
    numba.set_num_threads(1)
    yield
    numba.set_num_threads(before)


@pytest.fixture(scope="module")
def federation():
    return tiny.federation(SIZES)


@pytest.fixture(scope="module")
def participation():
    """Three or so clients a round, and seven of the twelve canaries, twice each."""
    return schedules.uniform(len(SIZES), 3, ROUNDS, 4, Insertion(CANARIES.count, 7, Presentations(2)))


def options(**changes):
    given = {
        "clip": FixedClip(CLIP_NORM),
        "noise": Independent(0.3, 9),
        "client_rate": 0.5,
        "local_epochs": 2,
        "batch_size": 3,
        "examples_per_client": 6,
        "server_rate": 0.7,
        "seed": 2,
    }
    return Training(**(given | changes))


def trainer(federation, participation, *, canaries=CANARIES, block=3, **changes):
    """A trainer, and its canary clients, whose blocks of rounds end before the run does."""
    canary_clients = None if canaries is None else CanaryClients(canaries, participation, block)
    made = Trainer(federation, tiny.MODEL, participation, options(**changes), canary_clients)
    return SimpleNamespace(trainer=made, canary_clients=canary_clients)


def run_plainly(federation, participation, initial, *, momentum=0.0, canaries=CANARIES):
    """Deltas and parameters of all rounds by ``plain``."""
    training = options()

    def clients(t):
        if t == participation.rounds:
            return None
        return [tiny.examples(federation, i, training.examples_per_client) for i in participation.clients(t)]

    def vectors(t):
        return [] if canaries is None else [canaries.vector(j).astype(float) for j in participation.canaries(t)]

    local = training.client_rate, training.local_epochs, training.batch_size
    steps = plain.deltas(
        initial.astype(float),
        clients,
        vectors,
        lambda t: training.noise.sample(t, plain.DIM, CLIP_NORM),
        CLIP_NORM,
        training.server_rate,
        momentum,
        local,
    )
    return (np.array(part) for part in zip(*steps, strict=True))


@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize("canaries", [None, CANARIES], ids=["without canaries", "with canaries"])
def test_deltas_and_parameters_are_those_of_plain_numpy(federation, participation, momentum, canaries):
    run = trainer(federation, participation, canaries=canaries, momentum=momentum).trainer
    done, thetas = [], []

    run.run(on_round=lambda one: (done.append(one), thetas.append(run.theta)))

    deltas, parameters = run_plainly(federation, participation, run.initial, momentum=momentum, canaries=canaries)
    assert [one.number for one in done] == list(range(ROUNDS))
    assert {one.clip_norm for one in done} == {CLIP_NORM}
    assert [one.clients for one in done] == [3] * ROUNDS
    numbers = [0 if canaries is None else len(participation.canaries(t)) for t in range(ROUNDS)]
    assert [one.canaries for one in done] == numbers
    # Rounding of float32, which the model amplifies from round to round.
    np.testing.assert_allclose([one.delta for one in done], deltas, rtol=0, atol=5e-6)
    np.testing.assert_allclose(thetas, parameters, rtol=0, atol=2e-5)


def test_scores_are_the_cosines_of_both_algorithms(federation, participation):
    run = trainer(federation, participation)
    run.trainer.run()

    deltas, parameters = run_plainly(federation, participation, run.trainer.initial)
    vectors = np.array([CANARIES.vector(j) for j in range(CANARIES.count)], float)
    observed = participation.included

    def cosines(releases):
        return vectors @ releases.T / np.linalg.norm(releases, axis=-1)

    for found, expected in [
        (run.canary_clients.all_rounds(), cosines(deltas).max(axis=1)),
        (run.canary_clients.final(run.trainer.theta), cosines(parameters[-1])),
        (
            run.canary_clients.final(run.trainer.theta - run.trainer.initial),
            cosines(parameters[-1] - run.trainer.initial),
        ),
    ]:
        np.testing.assert_allclose(found[0], expected[observed], atol=1e-4)
        np.testing.assert_allclose(found[1], expected[~observed], atol=1e-4)


def test_nothing_but_included_canaries_enters_where_there_is_nothing_else(federation):
    """Without clients and noise a delta is the mean of its canaries, whatever the others are."""
    participation = schedules.uniform(len(SIZES), 0, ROUNDS, 4, Insertion(CANARIES.count, 7, Presentations(2)))
    run = trainer(federation, participation, noise=Independent(0.0, 0))
    deltas = []
    run.trainer.run(on_round=lambda one: deltas.append(one.delta))

    for t, delta in enumerate(deltas):
        chosen = participation.canaries(t)
        assert (chosen < 7).all()
        if len(chosen):
            mean = np.mean([CANARIES.vector(j) for j in chosen], axis=0)
            np.testing.assert_allclose(delta, CLIP_NORM * mean, atol=1e-7)
    empty = sum(len(participation.canaries(t)) == 0 for t in range(ROUNDS))
    assert run.canary_clients.skipped_rounds == empty


def test_the_clip_norm_follows_those_who_took_part(federation, participation):
    training = options(clip=AdaptiveClip(1.0, 0.5, 0.2, 0.1, 8))
    run = trainer(federation, participation, clip=training.clip).trainer
    theta, clip_norm, seen = run.initial, training.clip.initial, set()
    for t in range(ROUNDS):
        done = run.round()

        assert done.clip_norm == clip_norm
        norms = [
            np.linalg.norm(
                plain.update(
                    theta.astype(float),
                    *tiny.examples(federation, i, training.examples_per_client),
                    training.client_rate,
                    training.local_epochs,
                    training.batch_size,
                )
            )
            for i in participation.clients(t)
        ]
        unclipped = sum(norm <= clip_norm for norm in norms)
        assert done.unclipped == unclipped + done.canaries
        clip_norm = training.clip.following(clip_norm, done.unclipped, len(norms) + done.canaries, t)
        theta = run.theta
        seen.add(unclipped)
    assert len(seen) > 1


def test_an_update_as_long_as_the_clip_norm_is_unclipped_and_noise_follows_the_clip_norm(federation):
    participation = schedules.bernoulli(len(SIZES), 1.0, 2, 0)
    run = trainer(federation, participation, canaries=None, clip=AdaptiveClip(1.0, 0.5, 0.2, 0.1, 8)).trainer
    norms = np.array([1.0, 0.5, *[2.0] * (len(SIZES) - 2)], np.float32)
    run.clients = SimpleNamespace(sum=lambda *_: CohortSum(np.zeros(plain.DIM), norms))
    first, second = run.round(), run.round()

    assert first.unclipped == 2
    assert second.clip_norm != first.clip_norm
    noise = run._training.noise.sample(1, plain.DIM, second.clip_norm)
    np.testing.assert_allclose(second.delta, noise / len(SIZES), rtol=1e-6)


def test_where_nobody_takes_part_the_delta_is_the_noise(federation):
    participation = schedules.bernoulli(len(SIZES), 0.0, 2, 0)
    run = trainer(federation, participation, canaries=None).trainer
    deltas = []
    run.run(on_round=lambda one: deltas.append(one.delta))

    for t, delta in enumerate(deltas):
        np.testing.assert_array_equal(delta, run._training.noise.sample(t, plain.DIM, CLIP_NORM).astype(np.float32))


def test_one_round_of_noise_and_canaries_is_algorithm_1(federation):
    """The same canaries and the same noise give the same cosines, but for the rounding of parameters in float32."""
    count, seed, noise_multiplier = 20, 11, 1.3

    class AsInAlgorithm1:
        def sample(self, _, dim, clip_norm):
            return noise_multiplier * clip_norm * noise(seed, dim)

    participation = schedules.uniform(len(SIZES), 0, 1, 0, Insertion(count, count, Presentations(1)))
    run = trainer(federation, participation, canaries=Canaries(seed, count, plain.DIM), noise=AsInAlgorithm1())
    run.trainer.run()

    expected = algorithm_1.cosines(count, plain.DIM, noise_multiplier, seed)
    np.testing.assert_allclose(run.canary_clients.all_rounds()[0], expected, atol=3e-7)
    np.testing.assert_allclose(
        run.canary_clients.final(run.trainer.theta - run.trainer.initial)[0], expected, atol=1e-5
    )


@pytest.mark.deep
def test_rounds_of_noise_and_canaries_have_the_law_of_algorithm_1(federation):
    """Each canary takes part once, so that rounds are independent runs of Algorithm 1 with three canaries each.

    Of each round one cosine counts, so that all are independent: 2,000 against 20,000 by the exact law. At the level of
    1e-6 the largest difference of distribution functions must pass 0.063. A normal law shifted by 0.2 deviations
    differs by 0.080 at the middle, and a share there has a deviation of 0.0117: the power is at least 0.92.
    """
    rounds, each, noise_multiplier = 2000, 3, 0.7
    participation = schedules.uniform(
        len(SIZES), 0, rounds, 0, Insertion(rounds * each, rounds * each, Presentations(1))
    )
    canaries = Canaries(3, rounds * each, plain.DIM)
    run = trainer(
        federation, participation, canaries=canaries, block=500, noise=Independent(noise_multiplier, 1)
    ).trainer
    found = []

    def score(one):
        assert one.canaries == each
        vector = canaries.vector(participation.canaries(one.number)[0]).astype(float)
        found.append(vector @ one.delta / np.linalg.norm(one.delta))

    run.run(on_round=score)

    rng = np.random.default_rng(2)
    expected = [exact_law.cosines(each, plain.DIM, noise_multiplier, rng)[0] for _ in range(20_000)]
    assert stats.ks_2samp(found, expected).pvalue > LEVEL


class Broken:
    """Noise that is not finite from some round on."""

    def __init__(self, value):
        self.value = value

    def sample(self, t, dim, _):
        return np.full(dim, self.value if t == 2 else 0.0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"client_rate": 3e38}, "the model diverged in round 0: the update of client "),
        ({"noise": Broken(np.nan)}, "the model diverged in round 2: its delta is not finite"),
        ({"noise": Broken(1e300)}, "the model diverged in round 2: its delta is not finite"),
        ({"noise": Broken(1e38), "server_rate": 1e20}, "the model diverged in round 2: the parameters are not finite"),
    ],
)
def test_divergence_stops_the_run_and_names_the_round(federation, participation, changes, message):
    run = trainer(federation, participation, **changes).trainer
    with pytest.raises(DivergenceError, match=message) as caught:
        run.run()
    assert "\n" not in str(caught.value)


def same_state(one, other):
    assert one.trainer.rounds == other.trainer.rounds
    assert np.array_equal(one.trainer.theta, other.trainer.theta)
    for found, expected in zip(one.canary_clients.all_rounds(), other.canary_clients.all_rounds(), strict=True):
        assert np.array_equal(found, expected)
    for name, array in one.trainer._state().items():
        assert name == "seconds" or np.array_equal(array, other.trainer._state()[name])


def test_equal_arguments_give_equal_bits(federation, participation):
    runs = [trainer(federation, participation) for _ in range(2)]
    for run in runs:
        run.trainer.run()
    same_state(*runs)

    other = trainer(federation, participation, seed=3)
    other.trainer.run()
    assert not np.array_equal(other.trainer.theta, runs[0].trainer.theta)


@pytest.mark.parametrize(("server", "momentum"), SERVERS)
def test_a_run_that_goes_on_from_any_round_ends_with_the_same_bits(
    federation, participation, tmp_path, server, momentum
):
    changes = {
        "server": server,
        "momentum": momentum,
        "clip": AdaptiveClip(0.3, 0.5, 0.2, 0.1, 8),
        "noise": Correlated(Tree(ROUNDS), 0.3, 9),
    }
    straight = trainer(federation, participation, **changes)
    straight.trainer.run()
    run = trainer(federation, participation, **changes)
    for t in range(ROUNDS):
        run.trainer.save(tmp_path)
        run = trainer(federation, participation, **changes)
        run.trainer.load(tmp_path)
        assert run.trainer.rounds == t
        run.trainer.run(until=t + 1)
    same_state(run, straight)
    assert run.trainer.seconds.keys() == {"training", "scoring", "noise"}
    assert min(run.trainer.seconds.values()) > 0.0


def test_a_crash_while_saving_leaves_the_checkpoint_before(federation, participation, tmp_path, monkeypatch):
    run = trainer(federation, participation)
    run.trainer.run(until=2)
    run.trainer.save(tmp_path)
    run.trainer.run(until=4)
    write = checkpoint.write

    def crash(path, *arguments):
        if path.name == "training.npz":
            raise KeyboardInterrupt
        write(path, *arguments)

    with monkeypatch.context() as patched:
        patched.setattr(checkpoint, "write", crash)
        with pytest.raises(KeyboardInterrupt):
            run.trainer.save(tmp_path)

    other = trainer(federation, participation)
    other.trainer.load(tmp_path)
    assert other.trainer.rounds == 2
    other.trainer.run(until=4)
    same_state(other, run)
    # What the crash left does not stay.
    run.trainer.save(tmp_path)
    assert len(list(tmp_path.iterdir())) == 3


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"client_rate": 0.4}, "client_rate: must be 0.4 here, not 0.5"),
        ({"seed": 3}, "seed: must be the same as here"),
        ({"server": "adam"}, "server: must be 'adam' here, not 'sgd'"),
        ({"noise": Independent(0.3, 10)}, "noise: "),
        # Its first round is that of independent noise.
        ({"noise": Correlated(Tree(ROUNDS), 0.3, 9)}, "noise: "),
        ({"clip": FixedClip(0.5)}, "clip: "),
        ({"canaries": None}, "canaries: must be False here, not True"),
        ({"canaries": Canaries(6, CANARIES.count, plain.DIM)}, "seed: must be the same as here"),
    ],
)
def test_a_checkpoint_of_another_training_is_refused(federation, participation, tmp_path, changes, field):
    trainer(federation, participation).trainer.save(tmp_path)

    with pytest.raises(ValueError, match=rf"^{tmp_path}/\S+: {field}"):
        trainer(federation, participation, **changes).trainer.load(tmp_path)


def test_a_checkpoint_of_other_data_or_another_schedule_is_refused(federation, participation, tmp_path):
    trainer(federation, participation).trainer.save(tmp_path)
    other = schedules.uniform(len(SIZES), 3, ROUNDS, 5, Insertion(CANARIES.count, 7, Presentations(2)))

    with pytest.raises(ValueError, match=r"training\.npz: participation: "):
        trainer(federation, other).trainer.load(tmp_path)
    with pytest.raises(ValueError, match=r"training\.npz: examples: "):
        trainer(tiny.federation(SIZES, seed=2), participation).trainer.load(tmp_path)


def test_a_checkpoint_without_its_scores_is_refused(federation, participation, tmp_path):
    run = trainer(federation, participation)
    with pytest.raises(FileNotFoundError):
        run.trainer.load(tmp_path)
    run.trainer.save(tmp_path)
    (tmp_path / "canaries-0.npz").unlink()
    with pytest.raises(FileNotFoundError, match=r"canaries-0\.npz"):
        run.trainer.load(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"client_rate": -1.0}, "client_rate must be finite and not negative, not -1.0"),
        ({"server_rate": np.nan}, "server_rate must be finite and not negative, not nan"),
        ({"batch_size": 0}, "batch_size must be at least 1, not 0"),
        ({"server": "lamb"}, "server must be sgd or adam, not 'lamb'"),
        ({"momentum": 1.0}, r"momentum must lie in \[0, 1\), not 1.0"),
    ],
)
def test_options_out_of_range_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        options(**change)


def test_arguments_that_do_not_fit_are_refused(federation, participation):
    with pytest.raises(ValueError, match=f"must be the model's, {plain.DIM}, not 60"):
        trainer(federation, participation, canaries=Canaries(1, CANARIES.count, 60))
    other = schedules.uniform(len(SIZES), 3, ROUNDS, 5, Insertion(CANARIES.count, 7, Presentations(2)))
    with pytest.raises(ValueError, match="participation must be the training's"):
        Trainer(federation, tiny.MODEL, participation, options(), CanaryClients(CANARIES, other))
    with pytest.raises(ValueError, match="out of range"):
        trainer(tiny.federation([3, 3]), participation)


KILLED = """
import sys
import test_trainer as t
run = t.long_run()
run.trainer.run(on_round=lambda one: (run.trainer.save(sys.argv[1]), print(one.number, flush=True)))
"""


def long_run():
    federation = tiny.federation(SIZES)
    return trainer(federation, schedules.bernoulli(len(SIZES), 0.5, 2000, 1, Insertion(CANARIES.count, 7)))


@pytest.mark.deep
def test_a_killed_run_resumes_to_the_same_bits(tmp_path):
    """Saved after each round, and killed somewhere between two words of it."""
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parent), "NUMBA_NUM_THREADS": "1"}
    command = [sys.executable, "-c", KILLED, str(tmp_path)]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            if int(line) == 10:
                break
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL

    resumed, straight = long_run(), long_run()
    resumed.trainer.load(tmp_path)
    killed_at = resumed.trainer.rounds
    assert 11 <= killed_at < 2000
    for run in (resumed, straight):
        run.trainer.run(until=killed_at + 5)
    same_state(resumed, straight)
