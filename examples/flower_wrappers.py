"""Flower's own wrappers for differential privacy, audited by canaries: ``python examples/flower_wrappers.py``.

One of Flower's strategies with fixed or adaptive clipping clips on the server, or by a mod in the clients. With
``local`` a mod adds noise to each client's message. The watch fails both strategies with adaptive clipping:
they draw the noise for the next round's norm, which falls.

``AuditedStrategy`` is what an audit adds: it stands around the wrapper and sees what that releases. Canaries are
further clients. For a script, a grid in this process stands in for Flower's network.
"""

import argparse
import logging
import sys

import numpy as np
from federated_clients import CLIP_NORM, MEMBERS, NOISE_MULTIPLIER, main
from flower_app import GridInProcess, to_arrays, to_model
from flwr.app import Message, MessageType, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.clientapp.mod import LocalDpMod, adaptiveclipping_mod, fixedclipping_mod
from flwr.serverapp import strategy as strategies
from numpy_loop import first_model

from canaryproof import flatten

WRAPPERS = {
    "server-fixed": (strategies.DifferentialPrivacyServerSideFixedClipping, []),
    "client-fixed": (strategies.DifferentialPrivacyClientSideFixedClipping, [fixedclipping_mod]),
    "server-adaptive": (strategies.DifferentialPrivacyServerSideAdaptiveClipping, []),
    "client-adaptive": (strategies.DifferentialPrivacyClientSideAdaptiveClipping, [adaptiveclipping_mod]),
    "local": (None, []),
}
LOCAL_EPSILON, LOCAL_DELTA = 8.0, 1e-5
FAULTS = {
    "weighted": "a client's weight is its number of examples, FedAvg's default, and one client has twice as many",
    "sampled-apart": "num_sampled_clients is twice the number of clients in a round: half of the noise",
    "no-mod": "the clients have no clipping mod, where the wrapper counts on one",
    "sensitivity": "the sensitivity of LocalDpMod is 0.0001, where its clip norm is 1",
}


class ScheduledFedAvg(strategies.FedAvg):
    """Federated averaging over the clients whose round it is."""

    def __init__(self, federation):
        super().__init__(fraction_evaluate=0.0)
        self.federation = federation

    def configure_train(self, server_round, arrays, config, grid):
        """Ask those clients, and canaries, whose round it is."""
        nodes = sorted(grid.get_node_ids())
        record = RecordDict({"arrays": arrays, "config": config})
        return [
            Message(record, dst_node_id=nodes[i], message_type=MessageType.TRAIN)
            for i in self.federation.cohort(server_round - 1)
        ]


class AuditedStrategy(strategies.FedAvg):
    """A private strategy whose releases are audited."""

    def __init__(self, private, federation):
        super().__init__(fraction_evaluate=0.0)
        self.private, self.federation = private, federation

    def configure_train(self, server_round, arrays, config, grid):
        """Keep the model and the clip norm of the round."""
        self.before, self.clip_norm = flatten(to_model(arrays)), getattr(self.private, "clipping_norm", CLIP_NORM)
        return [] if self.federation.stopped() else self.private.configure_train(server_round, arrays, config, grid)

    def aggregate_train(self, server_round, replies):
        """Take what the private strategy releases, as a sum."""
        replies = list(replies)
        if not replies:
            return None, None
        arrays, metrics = self.private.aggregate_train(server_round, replies)
        change = flatten(to_model(arrays)) - self.before
        self.federation.add(server_round - 1, len(replies) * change, self.clip_norm)
        return arrays, metrics


def client_app(federation, mods, fault):
    """Return an app that trains a client's model."""
    app = ClientApp(mods=mods)

    @app.train()
    def train_client(message, context):
        member = context.node_config["partition-id"]
        trained = federation.trained(to_model(message.content["arrays"]), member)
        weight = 2 if fault == "weighted" and member >= MEMBERS else 1
        metrics = MetricRecord({"num-examples": weight})
        return Message(RecordDict({"arrays": to_arrays(trained), "metrics": metrics}), reply_to=message)

    return app


def train(federation, fault=None, seed=0, wrapper="server-fixed"):
    """Train by one of Flower's wrappers, and return the model."""
    logging.getLogger("flwr").setLevel(logging.ERROR)
    np.random.seed(seed)  # noqa: NPY002  # Flower draws its noise from this generator.
    kind, mods = WRAPPERS[wrapper]
    private = ScheduledFedAvg(federation)
    if wrapper == "local":
        mods = [LocalDpMod(CLIP_NORM, 1e-4 if fault == "sensitivity" else CLIP_NORM, LOCAL_EPSILON, LOCAL_DELTA)]
    else:
        norm = CLIP_NORM if "fixed" in wrapper else 0.1
        private = kind(
            private,
            NOISE_MULTIPLIER,
            num_sampled_clients=len(federation.cohort(0)) * (2 if fault == "sampled-apart" else 1),
            **{"clipping_norm" if "fixed" in wrapper else "initial_clipping_norm": norm},
        )
    app = client_app(federation, [] if fault == "no-mod" else mods, fault)
    grid = GridInProcess(MEMBERS + 200, app)
    model = first_model(np.random.default_rng(seed))
    result = AuditedStrategy(private, federation).start(grid, to_arrays(model), federation.rounds)
    return to_model(result.arrays)


def local_noise(number):
    """Return the noise multiplier of the sum of the messages of so many clients, each with noise of its own."""
    return number**0.5 * (2.0 * np.log(1.25 / LOCAL_DELTA)) ** 0.5 / LOCAL_EPSILON


if __name__ == "__main__":
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--wrapper", choices=WRAPPERS, default="server-fixed")
    options, sys.argv[1:] = parser.parse_known_args()
    claimed = {"noise_multiplier": local_noise} if options.wrapper == "local" else {}
    main(__doc__, lambda *training: train(*training, wrapper=options.wrapper), FAULTS, **claimed)
