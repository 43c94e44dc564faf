"""Federated averaging with differential privacy and canaries, with Flower: ``python examples/flower_app.py FOLDER``.

It trains the network of ``numpy_loop.py`` and writes the same files. ``CanaryFedAvg`` is the strategy to take over: it
clips the clients' updates, adds those of the canary clients and the noise, and hands each round's delta to the
canaries. ``client`` and ``server`` are what Flower's engines run; for a script, a grid in this process stands in.
"""

import sys
from pathlib import Path

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Context, Message, MessageType, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg
from flwr.supercore.task_identity import TaskIdentity
from numpy_loop import CANARIES, CLIENTS, CLIP_NORM, ROUNDS, SEED, SERVER_RATE, client_update, first_model, made_data

from canaryproof import Canaries, CanaryClients, Insertion, flatten, shuffled_epochs, split

NAMES = tuple(first_model(np.random.default_rng(0)))

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
    update = split(client_update(model, x[0], y[0], message.content["config"]["client-rate"]), model)
    trained = {name: model[name] + update[name] for name in NAMES}
    metrics = MetricRecord({"num-examples": x.shape[1]})
    return Message(RecordDict({"arrays": to_arrays(trained), "metrics": metrics}), reply_to=message)


class CanaryFedAvg(FedAvg):
    """Federated averaging with clipped updates, Gaussian noise and canary clients."""

    def __init__(self, canary_clients, noise_multiplier, seed):
        super().__init__(fraction_evaluate=0.0)
        self.canary_clients, self.participation = canary_clients, canary_clients.participation
        self.noise_multiplier, self.seed = noise_multiplier, seed

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
        """Lines 3 to 13 of Algorithm 3, but for the local training."""
        number, before = server_round - 1, flatten(self.model)
        # Replies come in any order, and the sum's last bits should not depend on it.
        replies = sorted((r for r in replies if not r.has_error()), key=lambda reply: reply.metadata.src_node_id)
        # Which canaries take part now, and what they send.
        total = self.canary_clients.total(number, CLIP_NORM)
        for reply in replies:
            update = flatten(to_model(reply.content["arrays"])) - before
            total += update * min(1.0, CLIP_NORM / max(np.linalg.norm(update), 1e-12))
        noise = np.random.default_rng([self.seed, number]).normal(size=len(total))
        total += CLIP_NORM * self.noise_multiplier * noise
        delta = SERVER_RATE * total / (len(replies) + len(self.canary_clients.participants(number)))
        # The round's delta.
        self.canary_clients.add(delta, number)
        self.model = {name: self.model[name] + change for name, change in split(delta, self.model).items()}
        return to_arrays(self.model), None


@server.main()
def main(grid, context):
    """Train as the run's configuration says, and write the model and the two files."""
    noise_multiplier, seed = context.run_config["noise-multiplier"], context.run_config["seed"]
    model = first_model(np.random.default_rng(seed))
    initial = flatten(model)
    # Twice as many canaries as take part: the others tell what a canary scores that was never there.
    participation = shuffled_epochs(ROUNDS * CLIENTS, CLIENTS, 1, seed, Insertion(2 * CANARIES, CANARIES))
    canary_clients = CanaryClients(Canaries(SEED, 2 * CANARIES, len(initial)), participation)
    strategy = CanaryFedAvg(canary_clients, noise_multiplier, seed)
    config = ConfigRecord({"client-rate": context.run_config["client-rate"]})
    result = strategy.start(grid, to_arrays(model), ROUNDS, train_config=config)

    observed, unobserved = canary_clients.all_rounds()
    folder, trained = context.run_config["folder"], to_model(result.arrays)
    np.savez(Path(folder, "model.npz"), **trained)
    np.savez(Path(folder, "rounds.npz"), observed=observed, unobserved=unobserved)
    # The initial model is public, so that the attacker subtracts it; in units of the canary's norm in the model.
    canary_norm = SERVER_RATE * CLIP_NORM / (CLIENTS + CANARIES / ROUNDS)
    np.save(Path(folder, "final.npy"), (flatten(trained) - initial) / canary_norm)
    for warning in canary_clients.warnings():
        print(warning, file=sys.stderr)


class GridInProcess(Grid):
    """Stands in for Flower's network: a message's client runs here and now."""

    # Not asked for by a strategy's ``start``.
    run = set_run = create_message = push_messages = pull_messages = None

    def __init__(self, clients):
        self.nodes = {10 + i: {"partition-id": i} for i in range(clients)}
        # Flower's engines tell each of their processes who it is.
        TaskIdentity.task_id, TaskIdentity.run_id, TaskIdentity.node_id = 1, 1, 1

    def get_node_ids(self):
        """Return the clients' nodes."""
        return list(self.nodes)

    def send_and_receive(self, messages, *, timeout=None):  # noqa: ARG002
        """Let the clients answer."""
        nodes = [message.metadata.dst_node_id for message in messages]
        contexts = [Context(1, node, self.nodes[node], RecordDict(), {}) for node in nodes]
        return [client(message, context) for message, context in zip(messages, contexts, strict=True)]


def train(folder, noise_multiplier=0.5, client_rate=0.1, seed=0):
    """Train in this process, write the files and return the model."""
    config = {"folder": str(folder), "noise-multiplier": noise_multiplier, "client-rate": client_rate, "seed": seed}
    server(GridInProcess(ROUNDS * CLIENTS), Context(1, 1, {}, RecordDict(), config))
    return dict(np.load(Path(folder, "model.npz")))


if __name__ == "__main__":
    train(sys.argv[1])
