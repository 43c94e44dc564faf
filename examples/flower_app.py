"""Federated averaging with differential privacy and canaries, with Flower: ``python examples/flower_app.py FOLDER``.

It trains the network of ``numpy_loop.py`` and writes ``scores.json``, with the scores of who knows each canary's round
and all other clients' updates, and ``final.npy``. ``PrivateFedAvg`` is the strategy to take over: it clips the clients'
updates and adds the noise. The lines that end in ``# audit`` are all that the audit adds to it: the updates of the
canary clients, and what takes each round's delta. ``client`` and ``server`` are what Flower's engines run; for a
script, a grid in this process stands in. Options:

- ``--no-data``: clients learn nothing, and audits are printed in place of the files. The final model then holds the sum
  of all that was released, with each canary in one round, and each ε̂ must agree with its analytical ε;
- ``--break FAULT``: breaks the privacy on purpose; ``broken_privacy.py`` makes a table of which fault is seen.
"""

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Context, Message, MessageType, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg
from numpy_loop import (
    CANARIES,
    CLIENTS,
    CLIP_NORM,
    ROUNDS,
    SEED,
    SERVER_RATE,
    client_update,
    first_model,
    insertion,
    made_data,
)

import canaryproof as cp
from canaryproof import Canaries, CanaryClients  # audit

try:
    from flwr.supercore.task_identity import TaskIdentity
except ImportError:  # Older releases have none.
    TaskIdentity = None

NAMES = tuple(first_model(np.random.default_rng(0)))
# The initial model is public, so that the attacker subtracts it; in units of the canary's norm in the model.
CANARY_NORM = SERVER_RATE * CLIP_NORM / CLIENTS
DELTA = 1e-5
FAULTS = {
    "noise-per-client": "each client's share of the noise is 1/n of its deviation, which makes 1/√n of it in all",
    "batch-twice": "the noise is divided by the cohort's size twice: before it is added, and with the updates",
    "clip-after-average": "the mean update is clipped, and not each client's",
    "reused-noise": "the noise generator gets the same seed in every round",
    "sensitivity-apart": "the noise is scaled by a sensitivity that is not the clip norm",
    "dropped-clients": "clients add shares of the noise, and a fifth of them drops out",
    "padding": "a cohort is filled up with copies of an update, which are summed like the others",
    "per-layer": "each layer is clipped to the whole clip norm, and the noise is that for one clip norm",
    "coarse-noise": "the noise has the precision of float16",
    "accounted-delta": "the accountant computes ε at a hundred times the claimed δ",
}

client = ClientApp()
server = ServerApp()


def to_arrays(model):
    """Pack a model for a message."""
    return ArrayRecord([model[name] for name in NAMES])


def to_model(arrays):
    """Unpack a model from a message."""
    return dict(zip(NAMES, arrays.to_numpy_ndarrays(), strict=True))


@client.train()
def train_client(message, context):
    """Train on a client's own examples. A client's app knows nothing of canaries."""
    model = to_model(message.content["arrays"])
    x, y = made_data(np.random.default_rng([1, context.node_config["partition-id"]]), 1)
    update = cp.split(client_update(model, x[0], y[0], message.content["config"]["client-rate"]), model)
    trained = {name: model[name] + update[name] for name in NAMES}
    metrics = MetricRecord({"num-examples": x.shape[1]})
    return Message(RecordDict({"arrays": to_arrays(trained), "metrics": metrics}), reply_to=message)


def clipped(update):
    """Scale an array down to the clip norm, if it is longer."""
    return update * min(1.0, CLIP_NORM / max(np.linalg.norm(update), 1e-12))


class PrivateFedAvg(FedAvg):
    """Federated averaging with clipped updates and Gaussian noise."""

    def __init__(self, participation, noise_multiplier, seed, fault=""):
        super().__init__(fraction_evaluate=0.0)
        self.participation, self.noise_multiplier, self.seed = participation, noise_multiplier, seed
        self.fault = fault

    def configure_train(self, server_round, arrays, config, grid):
        """Ask those clients whose round it is."""
        self.model = to_model(arrays)
        nodes = sorted(grid.get_node_ids())
        record = RecordDict({"arrays": arrays, "config": config})
        return [
            Message(record, dst_node_id=nodes[i], message_type=MessageType.TRAIN)
            for i in self.participation.clients(server_round - 1)
        ]

    def aggregate_train(self, server_round, replies):
        """Add up clipped updates, add noise, and divide by the expected number of clients."""
        number, before = server_round - 1, cp.flatten(self.model)
        # Replies come in any order, and the sum's last bits should not depend on it.
        replies = sorted((r for r in replies if not r.has_error()), key=lambda reply: reply.metadata.src_node_id)
        updates = [cp.flatten(to_model(reply.content["arrays"])) - before for reply in replies]
        others = self.clipped(updates)
        total = others + self.noise(number, len(others))
        total += self.canaries.total(number, CLIP_NORM)  # audit
        delta = SERVER_RATE * total / CLIENTS
        self.canaries.add(delta, number, known=SERVER_RATE * others / CLIENTS)  # audit
        self.model = {name: self.model[name] + change for name, change in cp.split(delta, self.model).items()}
        return to_arrays(self.model), None

    def clipped(self, updates):
        """Add up the updates, each clipped; or break the privacy: clip their mean or each layer, or count copies."""
        if self.fault == "clip-after-average":
            return CLIENTS * clipped(np.mean(updates, axis=0))
        if self.fault == "per-layer":
            layers = [cp.split(update, self.model) for update in updates]
            return sum(cp.flatten({name: clipped(layer[name]) for name in NAMES}) for layer in layers)
        if self.fault == "padding":
            updates = [*updates, *[updates[0]] * (2 * CLIENTS - len(updates))]
        return sum(map(clipped, updates))

    def noise(self, number, dim):
        """Draw a round's noise; or break the privacy and draw less of it, the same in each round, or a coarse one."""
        # numpy's seed [s, 0] is s, from which the first model is drawn.
        rng = np.random.default_rng([self.seed, 0 if self.fault == "reused-noise" else number, 1])
        shares = {"noise-per-client": CLIENTS**-0.5, "batch-twice": 1 / CLIENTS, "sensitivity-apart": 4.8e-5}
        deviation = (shares | {"dropped-clients": 0.8**0.5}).get(self.fault, 1.0) * CLIP_NORM * self.noise_multiplier
        return deviation * rng.normal(size=dim).astype(np.float16 if self.fault == "coarse-noise" else np.float64)


@server.main()
def main(grid, context):
    """Train as the run's configuration says, and write the model, the scores and the model's change."""
    noise_multiplier, seed = context.run_config["noise-multiplier"], context.run_config["seed"]
    model = first_model(np.random.default_rng(seed))
    initial = cp.flatten(model)
    count, score = context.run_config["canaries"], context.run_config["score"]
    participation = cp.shuffled_epochs(ROUNDS * CLIENTS, CLIENTS, 1, seed)
    # The same clients.
    participation = cp.shuffled_epochs(ROUNDS * CLIENTS, CLIENTS, 1, seed, insertion(score, count))  # audit
    strategy = PrivateFedAvg(participation, noise_multiplier, seed, context.run_config["fault"])
    strategy.canaries = CanaryClients(Canaries(SEED, len(participation.included), len(initial)), participation)  # audit
    config = ConfigRecord({"client-rate": context.run_config["client-rate"]})
    result = strategy.start(grid, to_arrays(model), ROUNDS, train_config=config)

    folder, trained = context.run_config["folder"], to_model(result.arrays)
    np.savez(Path(folder, "model.npz"), **trained)
    np.save(Path(folder, "final.npy"), (cp.flatten(trained) - initial) / CANARY_NORM)
    strategy.canaries.scores(score).save(Path(folder, "scores.json"))  # audit


class GridInProcess(Grid):
    """Stands in for Flower's network: a message's client runs here and now."""

    # Not asked for by a strategy's ``start``.
    run = set_run = create_message = push_messages = pull_messages = None

    def __init__(self, clients, app=client):
        self.nodes, self.app = {10 + i: {"partition-id": i} for i in range(clients)}, app
        if TaskIdentity is not None:
            # Flower's engines tell each of their processes who it is.
            TaskIdentity.task_id, TaskIdentity.run_id, TaskIdentity.node_id = 1, 1, 1

    def get_node_ids(self):
        """Return the clients' nodes."""
        return list(self.nodes)

    def send_and_receive(self, messages, *, timeout=None):  # noqa: ARG002
        """Let the clients answer."""
        nodes = [message.metadata.dst_node_id for message in messages]
        contexts = [Context(1, node, self.nodes[node], RecordDict(), {}) for node in nodes]
        return [self.app(message, context) for message, context in zip(messages, contexts, strict=True)]


def train(folder, noise_multiplier=0.5, client_rate=0.1, seed=0, canaries=CANARIES, fault="", score="known rounds"):
    """Train in this process, write the files and return the model."""
    config = {"folder": str(folder), "noise-multiplier": noise_multiplier, "client-rate": client_rate, "seed": seed}
    config |= {"canaries": canaries, "fault": fault, "score": score}
    server(GridInProcess(ROUNDS * CLIENTS), Context(1, 1, {}, RecordDict(), config))
    return dict(np.load(Path(folder, "model.npz")))


def accounted(sigma, fault=None):
    """Return ε of the final parameters; or with a fault that of another δ."""
    return float(cp.gaussian_mechanism.epsilon(100 * DELTA if fault == "accounted-delta" else DELTA, sigma))


def no_data(canaries=300, fault=None, seed=0):
    """Train clients that learn nothing, and audit all rounds and the final model: each canary is in one round."""
    # They load what a training does not need.
    from canaryproof import Scores, accounting, audit

    scores = {}
    with TemporaryDirectory() as folder:
        for score in ("largest", "known rounds"):
            train(folder, client_rate=0.0, seed=seed, canaries=canaries, fault=fault or "", score=score)
            scores[score] = Scores.load(Path(folder, "scores.json"))
        final = np.load(Path(folder, "final.npy"))
    found = SimpleNamespace(dim=len(final), noise=0.5, sigma=0.5 * ROUNDS**0.5, claim=accounting.gaussian(0.5))
    found.epsilon = accounted(found.sigma, fault)
    found.known_rounds = audit(scores["known rounds"], DELTA, claim=found.claim)
    largest = Scores(scores["largest"].observed, scores["largest"].unobserved, inclusion="coin")
    found.largest = audit(largest, DELTA, claim=found.claim)
    # Of the second training, in which all canaries took part.
    observed = Canaries(SEED, canaries, found.dim).cosines(final)
    found.final = audit(Scores(observed, dim=found.dim), DELTA, claim=found.epsilon)
    return found


def small():
    """Train."""
    with TemporaryDirectory() as folder:
        return SimpleNamespace(model=train(folder))


def main_in_process():
    """Do as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", metavar="FOLDER", help="where the files are to be")
    parser.add_argument("--no-data", action="store_true", help="clients that learn nothing; prints audits")
    parser.add_argument("--break", dest="fault", choices=FAULTS, default="", help="break the privacy on purpose")
    options = parser.parse_args()
    if options.no_data == bool(options.folder):
        parser.error("give a FOLDER or --no-data")
    if options.folder:
        train(options.folder, fault=options.fault)
        return
    found = no_data(fault=options.fault)
    print(f"{ROUNDS} rounds, {found.dim:,} parameters; analytical ε at δ = {DELTA:g}:")
    print(f"  all rounds {found.known_rounds.claim:.3f}, final parameters {found.epsilon:.3f}")
    print("\nFrom every round's delta, for an attacker who knows a canary's round:", found.known_rounds, sep="\n")
    print("\nAlgorithm 2, from the final parameters less the initial ones:", found.final, sep="\n")


if __name__ == "__main__":
    main_in_process()
