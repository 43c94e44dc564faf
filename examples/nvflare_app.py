"""Federated averaging with NVFlare's filters, audited by canaries: ``python examples/nvflare_app.py``.

``CanaryUpdates``, a filter of the clients, and ``Releases``, a filter of the server, are what an audit adds. NVFlare
has no central noise of its own: here each client's last filter clips its update and adds its share of the noise. For a
script, a loop in this process stands in for NVFlare's processes: it calls the filters and the aggregator as these do.
``nvflare_simulator.py`` has NVFlare's own processes.

``--svt`` looks at NVFlare's sparse-vector filter in place of this: at each message alone, against its ``epsilon``.
"""

import argparse
import logging
import sys

import numpy as np
from federated_clients import CLIP_NORM, DELTA, DIM, MEMBERS, NOISE_MULTIPLIER, Audited, main
from numpy_loop import client_update, first_model
from nvflare.apis.dxo import DXO, DataKind, MetaKey, from_shareable
from nvflare.apis.dxo_filter import DXOFilter
from nvflare.apis.event_type import EventType
from nvflare.apis.fl_constant import ReservedKey
from nvflare.apis.fl_context import FLContext
from nvflare.app_common.aggregators.intime_accumulate_model_aggregator import InTimeAccumulateWeightedAggregator
from nvflare.app_common.app_constant import AppConstants
from nvflare.app_common.filters.svt_privacy import SVTPrivacy

from canaryproof import Scores, audit, flatten, split

FAULTS = {
    "weighted": "an update's weight is its number of local steps, the aggregator's default, and canaries take four",
    "share-twice": "each client's share of the noise is 1/n of its deviation, which makes 1/√n of it in all",
    "noise-halved": "each client adds half of its share of the noise",
    "no-clipping": "the clients add their share of the noise, and do not clip",
}


def member_of(federation, shareable, fl_ctx):
    """Return the number of the client that a site stands for in a round."""
    site = int(fl_ctx.get_identity_name().removeprefix("site-"))
    return federation.cohort(shareable.get_cookie(AppConstants.CONTRIBUTION_ROUND))[site - 1]


class UpdateFilter(DXOFilter):
    """A filter of updates, as vectors."""

    def __init__(self):
        super().__init__([DataKind.WEIGHT_DIFF], None)

    def process_dxo(self, dxo, shareable, fl_ctx):
        """Replace an update by what the filter makes of it."""
        dxo.data = split(self.filtered(flatten(dxo.data), shareable, fl_ctx), dxo.data)
        return dxo


class CanaryUpdates(UpdateFilter):
    """The first filter of a client's results: a canary's update takes the place of a trained one."""

    def __init__(self, federation):
        super().__init__()
        self.federation = federation

    def filtered(self, update, shareable, fl_ctx):
        """Return a canary's update, or note that of another client."""
        member = member_of(self.federation, shareable, fl_ctx)
        if member >= MEMBERS:
            return np.asarray(self.federation.update(member), float)
        self.federation.updates.append(update)
        return update


class ClippedWithNoise(UpdateFilter):
    """The last filter of a client's results: the clipped update with the client's share of the noise."""

    def __init__(self, federation, fault, seed):
        super().__init__()
        self.federation, self.fault, self.seed = federation, fault, seed

    def filtered(self, update, shareable, fl_ctx):
        """Clip, and add noise whose variances add up to the round's."""
        number = shareable.get_cookie(AppConstants.CONTRIBUTION_ROUND)
        clients, member = len(self.federation.cohort(number)), member_of(self.federation, shareable, fl_ctx)
        share = {"share-twice": 1.0 / clients, "noise-halved": 0.5 * clients**-0.5}.get(self.fault, clients**-0.5)
        if self.fault != "no-clipping":
            update = update * min(1.0, CLIP_NORM / max(np.linalg.norm(update), 1e-12))
        rng = np.random.default_rng([self.seed, 9, number, member])
        return update + share * NOISE_MULTIPLIER * CLIP_NORM * rng.normal(size=DIM)


class Releases(UpdateFilter):
    """A filter of the server, behind its aggregator: takes what a round releases."""

    def __init__(self, federation):
        super().__init__()
        self.federation = federation

    def filtered(self, update, shareable, fl_ctx):  # noqa: ARG002
        """Take the mean of the updates as a sum."""
        number = fl_ctx.get_prop(AppConstants.CURRENT_ROUND)
        self.federation.add(number, len(self.federation.cohort(number)) * update)
        return update


def context(name, number):
    """Return what NVFlare hands to a client or a server."""
    fl_ctx = FLContext()
    fl_ctx.set_prop(ReservedKey.IDENTITY_NAME, name, private=False, sticky=False)
    fl_ctx.set_prop(AppConstants.CURRENT_ROUND, number, private=True, sticky=False)
    return fl_ctx


def result_of(update, model, steps=1):
    """Return a client's result with an update of a model."""
    parts = split(np.asarray(update, float), model)
    return DXO(DataKind.WEIGHT_DIFF, parts, {MetaKey.NUM_STEPS_CURRENT_ROUND: steps}).to_shareable()


def train(federation, fault=None, seed=0):
    """Train with NVFlare's filters and aggregator, and return the model."""
    logging.disable(logging.CRITICAL)
    model = first_model(np.random.default_rng(seed))
    filters = [CanaryUpdates(federation), ClippedWithNoise(federation, fault, seed)]
    releases, aggregator = Releases(federation), InTimeAccumulateWeightedAggregator()
    aggregator.handle_event(EventType.START_RUN, context("server", 0))
    for t in range(federation.rounds):
        server = context("server", t)
        for site, member in enumerate(federation.cohort(t).tolist(), start=1):
            name, canary = f"site-{site}", member >= MEMBERS
            update = np.zeros(DIM) if canary else client_update(model, *federation.data(member), 0.1)
            result = result_of(update, model, steps=4 if canary and fault == "weighted" else 1)
            result.set_peer_props({ReservedKey.IDENTITY_NAME: name})
            result.add_cookie(AppConstants.CONTRIBUTION_ROUND, t)
            for each in filters:
                result = each.process(result, context(name, t))
            aggregator.accept(result, server)
        mean = from_shareable(releases.process(aggregator.aggregate(server), server)).data
        model = {name: model[name] + mean[name] for name in model}
        if federation.stopped():
            break
    return model


def sparse_vectors(seed=0, epsilon=0.1):
    """Audit messages of canaries through the sparse-vector filter, against the ε that it is given."""
    logging.disable(logging.CRITICAL)
    np.random.seed(seed)  # noqa: NPY002  # NVFlare draws from this generator.
    audited, privacy, cosines = Audited(seed), SVTPrivacy(epsilon=epsilon), []
    model = first_model(np.random.default_rng(seed))
    canaries = audited.clients.canaries
    for j in range(100):
        message = privacy.process(result_of(audited.update(MEMBERS + j), model), context(f"site-{j}", 0))
        cosines.append(canaries.cosines(flatten(from_shareable(message).data).astype(float), [j])[0])
    return audit(Scores(cosines, dim=DIM), DELTA, claim=epsilon), privacy.get_privacy_ledger()[-1]["epsilon_total"]


if __name__ == "__main__":
    if "--svt" in sys.argv:
        argparse.ArgumentParser(description=__doc__).add_argument("--svt", action="store_true")
        messages, ledger = sparse_vectors()
        print(f"The filter's own ledger has ε = {ledger:.1f} for a message.\n\n{messages}")
    else:
        main(__doc__, train, FAULTS)
