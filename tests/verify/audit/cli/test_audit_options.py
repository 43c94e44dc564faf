"""What a gate asks for, and options that say what the claimed mechanism is."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

import canaryproof as cp
from canaryproof.verify.audit.canaries.canary_clients import CanaryClients
from canaryproof.verify.audit.canaries.participation import Insertion, bernoulli
from canaryproof.verify.command_line import main

DIM, COUNT, ROUNDS, NOISE = 2000, 150, 24, 1.0
DELTA = ("--delta", "1e-5")
RELEASE = ("release.npy", "--canaries", COUNT, "--canary-seed", 7, *DELTA, "--noise-multiplier", NOISE)
RECORD = ("rounds.json", *DELTA, "--noise-multiplier", NOISE)


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """A release, and scores with a record of rounds that are drawn at rate 1/2."""
    folder, rng = tmp_path_factory.mktemp("inputs"), np.random.default_rng(4)
    canaries = cp.Canaries(seed=7, count=COUNT, dim=DIM)
    np.save(folder / "release.npy", canaries.sum(np.arange(COUNT)) + NOISE * rng.normal(size=DIM))
    drawn = bernoulli(0, 0.5, ROUNDS, 3, Insertion(2 * COUNT, observed=COUNT))
    clients = CanaryClients(cp.Canaries(seed=3, count=2 * COUNT, dim=DIM), drawn, noise_multiplier=NOISE)
    for t in range(ROUNDS):
        clients.add(clients.total(t, 1.0) + NOISE * rng.normal(size=DIM), t)
    clients.scores("likelihood").save(folder / "rounds.json")
    return folder


@pytest.fixture
def gate(inputs, monkeypatch):
    monkeypatch.chdir(inputs)

    def run(*arguments):
        """Return the exit status of a gate, its decision, and its findings' statuses by question."""
        arguments = ["audit", *map(str, arguments), "--fail-above-claim", "--json"]
        result = CliRunner().invoke(main, arguments)
        assert result.exit_code in (0, 1, 3, 4), result.output
        document = json.loads(result.stdout)
        assert document["decision"]["status"] == result.exit_code
        return (
            result.exit_code,
            document["decision"],
            {each["question"]: each["status"] for each in document["findings"]},
        )

    return run


def test_a_gate_asks_of_a_release_for_its_input_and_its_leak_or_for_what_it_is_told(gate):
    assert gate(*RELEASE)[1]["asked"] == ["input", "leak"]
    # Whatever the order and the number of times.
    asked = gate(*RELEASE, "--ask", "leak", "--ask", "noise", "--ask", "leak")[1]["asked"]
    assert asked == ["noise", "leak"]
    status, _, statuses = gate(*RELEASE, "--ask", "clipping")
    assert (status, statuses["clipping"]) == (3, "not looked at")


def test_the_first_line_says_what_was_asked_if_it_is_not_the_usual(inputs, monkeypatch):
    monkeypatch.chdir(inputs)
    usual, other = (
        CliRunner().invoke(main, ["audit", *map(str, RELEASE), *ask]).stdout.splitlines()[0]
        for ask in ((), ("--ask", "input", "--ask", "accounting"))
    )
    assert "asked" not in usual
    assert "(asked: input, accounting)" in other


@pytest.mark.parametrize(
    ("data_norm", "noise", "status"), [((), "cannot say", 3), (("--data-norm", 0), "as claimed", 0)]
)
def test_a_release_shows_its_noise_beside_a_stated_norm_of_data_alone(gate, data_norm, noise, status):
    found, _, statuses = gate(*RELEASE, "--ask", "noise", *data_norm)
    assert (found, statuses["noise"]) == (status, noise)


def test_data_that_may_be_as_long_as_half_of_the_noise_leave_it_open(gate):
    # So much data and half of the claimed noise are as long as the noise.
    hidden = np.sqrt(0.75 * DIM) * NOISE
    assert gate(*RELEASE, "--ask", "noise", "--data-norm", hidden)[2]["noise"] == "cannot say"


def test_options_that_say_of_a_release_what_is_so_change_nothing(gate):
    assert gate(*RELEASE, "--kind", "cosine", "--inclusion", "fixed", "--engine", "local") == gate(*RELEASE)


def test_a_gate_asks_of_a_record_for_its_sampling_and_its_accounting_too(gate):
    assert gate(*RECORD, "--rate", 0.5)[1]["asked"] == ["input", "sampling", "accounting", "leak"]


@pytest.mark.parametrize(
    ("mechanism", "sampling", "failed"),
    [
        (("--rate", 0.5), "as claimed", set()),
        (("--rate", 0.5, "--rounds", ROUNDS), "as claimed", set()),
        # More rounds than there were cost nothing.
        (("--rate", 0.5, "--rounds", 2 * ROUNDS), "as claimed", set()),
        (("--rate", 0.25), "failed", {"sampling"}),
    ],
)
def test_rounds_are_held_against_the_rate_of_the_options(gate, mechanism, sampling, failed):
    status, _, statuses = gate(*RECORD, *mechanism)
    assert statuses["sampling"] == sampling
    found = {question for question, answer in statuses.items() if answer == "failed"}
    assert failed <= found <= ({*failed, "accounting", "leak"} if failed else set())
    assert (status == 1) == bool(failed)


@pytest.mark.parametrize("fewer", [ROUNDS - 1, ROUNDS // 2, 1])
def test_fewer_rounds_than_were_recorded_fail_the_accounting(gate, fewer):
    claim = cp.accounting.poisson(NOISE, rate=0.5, rounds=fewer).epsilon(1e-5)
    status, _, statuses = gate(*RECORD, "--rate", 0.5, "--rounds", fewer, "--claim", claim)
    assert (status, statuses["accounting"]) == (1, "failed")


def test_participations_are_those_of_the_canary_that_took_part_most_often(gate):
    record = cp.Scores.load("rounds.json").record
    assert gate(*RECORD, "--participations", record.participations)[2]["sampling"] == "as claimed"
    status, _, statuses = gate(*RECORD, "--participations", record.participations - 1)
    assert (status, statuses["sampling"]) == (1, "failed")


def test_a_bare_claim_is_held_against_the_noise_and_the_rate_of_the_record(gate):
    epsilon = cp.accounting.poisson(NOISE, rate=0.5, rounds=ROUNDS).epsilon(1e-5)
    for claim, accounting in ((epsilon, "as claimed"), (8, "failed")):
        status, _, statuses = gate("rounds.json", *DELTA, "--claim", claim)
        assert (statuses["sampling"], statuses["accounting"]) == ("as claimed", accounting)
        assert (status == 1) == (accounting == "failed")
