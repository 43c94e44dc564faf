"""Private federated averaging with pfl-research, audited by canaries: ``python examples/pfl_training.py``.

``CanaryUsers`` is what an audit adds: a postprocessor that stands before pfl's own mechanism, and a callback. Canaries
are users, whose updates the mechanism clips as all others. pfl adds the noise.
"""

import numpy as np
from federated_clients import CLIP_NORM, MEMBERS, NAMES, NOISE_MULTIPLIER, Federation, main
from numpy_loop import client_update, first_model
from pfl.aggregate.simulate import SimulatedBackend
from pfl.algorithm.base import NNAlgorithmParams
from pfl.algorithm.federated_averaging import FederatedAveraging
from pfl.callback.base import TrainingProcessCallback
from pfl.data.dataset import Dataset
from pfl.data.federated_dataset import FederatedDataset
from pfl.hyperparam.base import ModelHyperParams
from pfl.metrics import Metrics
from pfl.model.base import StatefulModel
from pfl.postprocessor.base import Postprocessor
from pfl.privacy.gaussian_mechanism import GaussianMechanism
from pfl.privacy.privacy_mechanism import CentrallyAppliedPrivacyMechanism
from pfl.stats import MappedVectorStatistics

from canaryproof import flatten, split

FAULTS = {
    "noise-scale": "the noise is scaled down for a cohort of twice the size (the accountant's noise_scale of 0.5)",
    "clip-apart": "the mechanism clips to twice the norm that the noise is computed for",
}


class CanaryUsers(Postprocessor, TrainingProcessCallback):
    """Canaries among the users of a training, before the mechanism in the list of postprocessors."""

    def __init__(self, federation: Federation):
        self.federation = federation

    def postprocess_one_user(self, *, stats, user_context):
        """Give a canary its update, and note another user's, before they are clipped."""
        if user_context.user_id >= MEMBERS:
            update = split(np.asarray(self.federation.update(user_context.user_id), float), dict(stats.items()))
            return MappedVectorStatistics(update, stats.weight), Metrics()
        self.federation.updates.append(flatten(dict(stats.items())))
        return stats, Metrics()

    def postprocess_server(self, *, stats, central_context, aggregate_metrics):  # noqa: ARG002
        """Take what the server releases: postprocessors are called from the last to the first, so after the noise."""
        self.federation.add(central_context.current_central_iteration, flatten(dict(stats.items())))
        return stats, Metrics()

    def after_central_iteration(self, aggregate_metrics, model, *, central_iteration):  # noqa: ARG002
        """Stop the training at an alarm."""
        return self.federation.stopped(), Metrics()


class Network(StatefulModel):
    """A network of numpy's arrays."""

    def __init__(self, values):
        self.values = values

    def get_parameters(self, placeholders=None):  # noqa: ARG002
        """Return the parameters."""
        return MappedVectorStatistics(dict(self.values))

    def set_parameters(self, w):
        """Set the parameters."""
        self.values = dict(w.items())

    def get_model_difference(self, other_parameters, clone=False):  # noqa: ARG002
        """Return the parameters less others."""
        return MappedVectorStatistics({name: self.values[name] - other_parameters[name] for name in NAMES})

    def apply_model_update(self, statistics):
        """Add an update."""
        self.values = {name: self.values[name] + statistics[name] for name in NAMES}
        return self, Metrics()

    def evaluate(self, dataset, name_formatting_fn, eval_params=None):  # noqa: ARG002
        """Evaluate nothing."""
        return Metrics()

    def save(self, dir_path):
        """Save nothing."""

    def load(self, dir_path):
        """Load nothing."""


class LocalTraining(FederatedAveraging):
    """Federated averaging with the local training of these networks."""

    federation: Federation

    def train_one_user(self, initial_model_state, model, user_dataset, central_context):  # noqa: ARG002
        """Train a user's model; of a canary no data are read."""
        if user_dataset.user_id < MEMBERS:
            update = client_update(model.values, *self.federation.data(user_dataset.user_id), 0.1)
            model.values = {name: model.values[name] + change for name, change in split(update, model.values).items()}
        return model.get_model_difference(initial_model_state), Metrics()


def train(federation, fault=None, seed=0):
    """Train by pfl's simulation, and return the model."""
    np.random.seed(seed)  # noqa: NPY002  # pfl draws from this generator.
    mechanism = GaussianMechanism(CLIP_NORM, NOISE_MULTIPLIER * (0.5 if fault == "noise-scale" else 1.0))
    if fault == "clip-apart":
        mechanism = GaussianMechanism(2 * CLIP_NORM, NOISE_MULTIPLIER / 2)
    canary_users = CanaryUsers(federation)
    users = iter([user for t in range(federation.rounds) for user in federation.cohort(t).tolist()])
    data = FederatedDataset(lambda user: Dataset([np.zeros(1)], user_id=user), lambda: next(users))
    backend = SimulatedBackend(data, data, [canary_users, CentrallyAppliedPrivacyMechanism(mechanism)])
    algorithm = LocalTraining()
    algorithm.federation = federation
    options = NNAlgorithmParams(federation.rounds, 1, len(federation.cohort(0)), 0)
    model = Network(first_model(np.random.default_rng(seed)))
    training = options, backend, model, ModelHyperParams()
    return algorithm.run(*training, callbacks=[canary_users], send_metrics_to_platform=False)


if __name__ == "__main__":
    main(__doc__, train, FAULTS)
