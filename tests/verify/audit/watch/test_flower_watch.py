"""A watch over Flower: honest trainings stay as they were, and each wrapper is looked at as far as its server sees."""

import random
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import canaryproof as cp

pytest.importorskip("flwr", reason="needs flwr")

from flwr.app import Error, Message
from flwr.serverapp.strategy import (
    DifferentialPrivacyClientSideFixedClipping,
    DifferentialPrivacyServerSideAdaptiveClipping,
    DifferentialPrivacyServerSideFixedClipping,
    FedAvg,
)

from tests.verify.audit.watch.cells import CANNOT_SAY_ELSEWHERE, DECIDED_ELSEWHERE

sys.path.insert(0, str(Path(__file__).parents[4] / "examples"))
import flower_app as example

pytestmark = pytest.mark.filterwarnings("ignore")

CLIENTS, ROUNDS, CLIP_NORM, DELTA = 20, 8, 0.01, 1e-5


def wrapped(kind=DifferentialPrivacyServerSideFixedClipping, noise_multiplier=1.0, inner=FedAvg):
    return kind(inner(fraction_evaluate=0.0), noise_multiplier, CLIP_NORM, CLIENTS)


def train(strategy, watched=True, claim=None, answers=lambda _: CLIENTS, heavy=()):
    """Train for some rounds with so many clients, and return the final arrays, a next random number, and the watch."""
    claim = cp.accounting.gaussian(1.0, participations=ROUNDS) if claim is None else claim
    watch = cp.watch(strategy, delta=DELTA, claim=claim) if watched else None
    np.random.seed(0)  # noqa: NPY002
    random.seed(0)
    arrays = example.to_arrays(example.first_model(np.random.default_rng(0)))
    grid, config = example.GridInProcess(CLIENTS), example.ConfigRecord({"client-rate": 0.1})
    for number in range(1, ROUNDS + 1):
        replies = grid.send_and_receive(list(strategy.configure_train(number, arrays, config, grid)))
        for i in heavy:
            (metrics,) = replies[i].content.metric_records.values()
            metrics["num-examples"] *= 3
        arrays, _ = strategy.aggregate_train(number, replies[: answers(number)])
    return arrays.to_numpy_ndarrays(), np.random.random(), watch  # noqa: NPY002


def failed(watch):
    return [finding.question.value for finding in watch.close().findings if finding.status == "failed"]


def test_an_honest_training_passes_and_stays_as_it_is_without_a_watch():
    strategy = wrapped()
    names = set(vars(strategy))
    arrays, drawn, watch = train(strategy)
    without, also_drawn, _ = train(wrapped(), watched=False)
    assert all(map(np.array_equal, arrays, without))
    assert drawn == also_drawn
    answer = watch.close()
    assert answer.decision.outcome == "PASSED", str(answer)
    assert "16 runs of the clipping" in answer.finding("clipping").because
    assert answer.finding("sampling").because == "no member took part in more than 8 steps, claimed 8"
    assert not {"configure_train", "aggregate_train", "canaryproof_watch"} & set(vars(strategy))
    assert names <= set(vars(strategy))


def test_too_little_noise_and_too_many_rounds_fail():
    _, _, watch = train(wrapped(noise_multiplier=0.5))
    assert failed(watch) == ["noise", "leak"]
    _, _, watch = train(wrapped(), claim=cp.accounting.gaussian(1.0, participations=4))
    assert failed(watch) == ["sampling", "accounting", "leak"]


@pytest.mark.parametrize("rounds", [range(1, ROUNDS + 1), [3]], ids=["each round", "a round between looks"])
def test_a_client_counts_for_more_where_others_drop_out(rounds):
    _, _, watch = train(wrapped(), answers=lambda number: CLIENTS - 4 * (number in rounds))
    assert failed(watch) == ["clipping"]
    assert "by 1.25 clip norms" in watch.answer().finding("clipping").because


def test_a_client_that_reports_more_examples_fails_the_clipping_where_it_is_exchanged():
    _, _, watch = train(wrapped(), heavy=range(0, CLIENTS, 2))
    # Round t exchanges the client t − 1, and in the rounds 1, 2, 4 and 8 one is exchanged.
    assert "clipping" in failed(watch)
    assert "by 1.5 clip norms" in watch.answer().finding("clipping").because


def train_cell(name, seed=0):
    """Train as a row of the page's tables says, and return the watch."""
    if name == "a strategy of your own":
        clients = ROUNDS * example.CLIENTS
        participation = cp.shuffled_epochs(clients, example.CLIENTS, 1, seed)
        strategy = example.PrivateFedAvg(participation, 1.0, seed)
        # No attacker's canaries join the sum.
        strategy.canaries = SimpleNamespace(total=lambda *_: 0.0, add=lambda *_, **__: None)
        given = {"clip_norm": example.CLIP_NORM, "divisor": example.CLIENTS / example.SERVER_RATE}
        claim = cp.accounting.gaussian(1.0)
    else:
        clips = "ClientSide" in name
        strategy = wrapped(
            DifferentialPrivacyClientSideFixedClipping if clips else DifferentialPrivacyServerSideFixedClipping
        )
        given, claim, clients = {}, cp.accounting.gaussian(1.0, participations=ROUNDS), CLIENTS
    if name == "a strategy that cannot be copied":
        strategy.lock = threading.Lock()
    watch = cp.watch(strategy, delta=DELTA, claim=claim, **given)
    np.random.seed(seed)  # noqa: NPY002
    random.seed(seed)
    arrays = example.to_arrays(example.first_model(np.random.default_rng(seed)))
    grid, config = example.GridInProcess(clients), example.ConfigRecord({"client-rate": 0.1})
    for number in range(1, ROUNDS + 1):
        sent = list(strategy.configure_train(number, arrays, config, grid))
        replies = grid.send_and_receive(sent)
        if "ClientSide" in name:
            # What Flower's own mod does in a client.
            for reply in replies:
                before = cp.flatten(arrays.to_numpy_ndarrays())
                update = cp.flatten(reply.content["arrays"].to_numpy_ndarrays()) - before
                update *= min(1.0, 0.999 * CLIP_NORM / np.linalg.norm(update))
                reply.content["arrays"] = example.to_arrays(cp.split(before + update, example.to_model(arrays)))
        if name == "an answer that is an error" and number == 3:
            replies[0] = Message(Error(1), reply_to=sent[0])
        arrays = strategy.aggregate_train(number, replies)[0] or arrays
        if name == "a model that moves between two rounds" and number == 3:
            moved = {key: np.float32(1.01) * each for key, each in example.to_model(arrays).items()}
            arrays = example.to_arrays(moved)
    return watch


@pytest.mark.parametrize("name", DECIDED_ELSEWHERE["flower"])
@pytest.mark.parametrize("seeds", [range(1), pytest.param(range(20), marks=pytest.mark.deep)], ids=["one", "twenty"])
def test_honest_trainings_of_a_kind_are_passed(name, seeds):
    for seed in seeds:
        watch = train_cell(name, seed)
        assert (watch.close().decision.outcome, failed(watch)) == ("PASSED", []), (seed, str(watch.answer()))


@pytest.mark.parametrize("name", CANNOT_SAY_ELSEWHERE["flower"])
def test_of_a_kind_of_training_a_question_stays_open_and_none_fails(name):
    answer = (watch := train_cell(name)).close()
    assert (answer.decision.outcome, failed(watch)) == ("CANNOT SAY", []), str(answer)
    open_ones = [each.question.value for each in answer.findings if each.status in ("cannot say", "not looked at")]
    assert tuple(open_ones) == CANNOT_SAY_ELSEWHERE["flower"][name]


class Unclipped(DifferentialPrivacyServerSideFixedClipping):
    def aggregate_train(self, server_round, replies):
        self.clipping_norm, norm = 1e9, self.clipping_norm
        arrays, metrics = self.strategy.aggregate_train(server_round, replies)
        self.clipping_norm = norm
        return self._add_noise_to_aggregated_arrays(arrays), metrics


def test_updates_that_are_not_clipped_fail():
    _, _, watch = train(wrapped(Unclipped))
    assert failed(watch) == ["clipping"]


def test_of_clipping_by_clients_the_lengths_alone_are_seen():
    _, _, watch = train(wrapped(DifferentialPrivacyClientSideFixedClipping))
    # The example's clients do not clip.
    assert "clipping" in failed(watch)
    assert "a client's update of round 1 is" in watch.answer().finding("clipping").because


def test_a_model_that_moves_between_rounds_is_said():
    strategy = wrapped()
    watch = cp.watch(strategy, delta=DELTA, claim=cp.accounting.gaussian(1.0, participations=ROUNDS))
    arrays = example.to_arrays(example.first_model(np.random.default_rng(0)))
    grid, config = example.GridInProcess(CLIENTS), example.ConfigRecord({"client-rate": 0.1})
    for number in (1, 2):
        replies = grid.send_and_receive(list(strategy.configure_train(number, arrays, config, grid)))
        arrays, _ = strategy.aggregate_train(number, replies)
        moved = [1.01 * each for each in arrays.to_numpy_ndarrays()]
        arrays = example.to_arrays(dict(zip(example.NAMES, moved, strict=True)))
    finding = watch.close().finding("leak")
    assert finding.status == "cannot say"
    assert finding.because == "round 2 does not begin with what the round before released"


def test_what_is_refused_is_said_in_a_line():
    adaptive = DifferentialPrivacyServerSideAdaptiveClipping(FedAvg(), 1.0, CLIENTS)
    with pytest.raises(ValueError, match="is not watched, as it also releases a noised count"):
        cp.watch(adaptive, delta=DELTA)
    with pytest.raises(ValueError, match="clip_norm: must be given, as FedAvg does not say it"):
        cp.watch(FedAvg(), delta=DELTA)
    strategy = wrapped()
    cp.watch(strategy, delta=DELTA)
    with pytest.raises(ValueError, match="strategy: is watched already"):
        cp.watch(strategy, delta=DELTA)
    with pytest.raises(ValueError, match="engine: is of an optimizer, and not of a strategy"):
        cp.watch(wrapped(), delta=DELTA, engine=1)
