"""NVFlare's simulator with canaries among its clients, audited: ``python examples/nvflare_simulator.py``.

The filters are those of ``nvflare_app.py``. Here NVFlare's own engine runs them: its simulator starts processes for the
clients, its workflow sends the model and aggregates. There are 20 rounds. A process is a site that stands for another
client in each round: one site has data, and five are canaries. Processes leave in a folder what the audit takes.
"""

import argparse
import json
import shutil
import tempfile
from pathlib import Path

import numpy as np
from federated_clients import DELTA, DIM, MEMBERS, NOISE_MULTIPLIER, Audited
from numpy_loop import client_update, first_model
from nvflare.apis.dxo import from_shareable
from nvflare.apis.executor import Executor
from nvflare.app_common.abstract.model import make_model_learnable
from nvflare.app_common.abstract.model_persistor import ModelPersistor
from nvflare.app_common.app_constant import AppConstants
from nvflare.app_common.app_event_type import AppEventType
from nvflare.private.fed.app.simulator.simulator_runner import SimulatorRunner
from nvflare_app import FAULTS, Releases, member_of, result_of

from canaryproof import Scores, accounting, audit

ROUNDS, CLIENTS, SITES = 20, 1, 6
MODULES = ("nvflare_simulator", "nvflare_app", "federated_clients", "numpy_loop")


class InFolder:
    """The updates of clients with data, which several processes leave in a folder."""

    def __init__(self, folder):
        self.folder = folder

    def append(self, update):
        """Leave an update."""
        with tempfile.NamedTemporaryFile(dir=self.folder, suffix=".npy", delete=False) as file:
            np.save(file, update)

    def __iter__(self):
        """Take the updates, and leave none."""
        for path in sorted(Path(self.folder).glob("*.npy")):
            yield np.load(path)
            path.unlink()


class Simulated(Audited):
    """An audited federation whose clients and server are in several processes."""

    rounds = ROUNDS

    def __init__(self, folder, seed):
        super().__init__(seed, members=ROUNDS * CLIENTS, clients=CLIENTS)
        self.updates = self.noted = InFolder(folder)

    def others(self, clip_norm):
        """Return the sum of the round's updates of clients with data, as these should clip them."""
        total = super().others(clip_norm)
        self.updates = self.noted
        return total


class Site(Executor):
    """A client's training; of a canary no data are read."""

    def __init__(self, federation, fault):
        super().__init__()
        self.federation, self.fault = federation, fault

    def execute(self, task_name, shareable, fl_ctx, abort_signal):  # noqa: ARG002
        """Return the update of the client that the site stands for."""
        model, member = from_shareable(shareable).data, member_of(self.federation, shareable, fl_ctx)
        canary = member >= MEMBERS
        update = np.zeros(DIM) if canary else client_update(model, *self.federation.data(member), 0.1)
        result = result_of(update, model, steps=4 if canary and self.fault == "weighted" else 1)
        # The filters look for the round here, and the engine adds it behind them.
        result.add_cookie(AppConstants.CONTRIBUTION_ROUND, shareable.get_cookie(AppConstants.CONTRIBUTION_ROUND))
        return result


class FirstModel(ModelPersistor):
    """The model at the start, which is not stored."""

    def __init__(self, seed):
        super().__init__()
        self.seed = seed

    def load_model(self, fl_ctx):  # noqa: ARG002
        """Return the first model."""
        return make_model_learnable(first_model(np.random.default_rng(self.seed)), {})

    def save_model(self, model, fl_ctx):
        """Store nothing."""


class AuditedReleases(Releases):
    """The server's filter, called where its workflow has aggregated; it leaves the audit in the folder."""

    def __init__(self, federation, folder):
        super().__init__(federation)
        self.folder = folder

    def handle_event(self, event_type, fl_ctx):
        """Take a round's release, and stop the training at an alarm."""
        if event_type == AppEventType.AFTER_AGGREGATION:
            self.process(fl_ctx.get_prop(AppConstants.AGGREGATION_RESULT), fl_ctx)
            self.federation.clients.scores("known rounds").save(Path(self.folder, "scores.json"))
            if self.federation.stopped():
                self.system_panic("alarm: there is less noise than claimed", fl_ctx)


def job(folder, fault, seed):
    """Write a job as NVFlare reads it: an app with the configurations of the server and of the clients."""
    federation = {"path": "nvflare_simulator.Simulated", "args": {"folder": str(folder / "updates"), "seed": seed}}

    def part(name, **args):
        return {"path": name, "args": args}

    def named(identifier, name, **args):
        return {"id": identifier, **part(name, **args)}

    aggregator = "nvflare.app_common.aggregators.intime_accumulate_model_aggregator.InTimeAccumulateWeightedAggregator"
    generator = "nvflare.app_common.shareablegenerators.full_model_shareable_generator.FullModelShareableGenerator"
    workflow = {"min_clients": SITES, "num_rounds": ROUNDS, "wait_time_after_min_received": 0, "persistor_id": "model"}
    server = {
        "components": [
            named("model", "nvflare_simulator.FirstModel", seed=seed),
            named("aggregator", aggregator),
            named("shareable_generator", generator),
            named("releases", "nvflare_simulator.AuditedReleases", federation=federation, folder=str(folder)),
        ],
        "workflows": [
            named("training", "nvflare.app_common.workflows.scatter_and_gather.ScatterAndGather", **workflow)
        ],
    }
    filters = [
        part("nvflare_app.CanaryUpdates", federation=federation),
        part("nvflare_app.ClippedWithNoise", federation=federation, fault=fault, seed=seed),
    ]
    client = {
        "executors": [
            {"tasks": ["train"], "executor": part("nvflare_simulator.Site", federation=federation, fault=fault)}
        ],
        "task_result_filters": [{"tasks": ["train"], "filters": filters}],
    }
    config, code = (folder / "job" / "app" / part for part in ("config", "custom"))
    config.mkdir(parents=True)
    # NVFlare takes classes that are not its own from here alone.
    code.mkdir()
    for module in MODULES:
        shutil.copy(Path(__file__).with_name(f"{module}.py"), code)
    (folder / "updates").mkdir()
    for name, content in (("config_fed_server", server), ("config_fed_client", client)):
        (config / f"{name}.json").write_text(json.dumps({"format_version": 2} | content), encoding="utf-8")
    meta = {"name": "canaries", "min_clients": SITES, "deploy_map": {"app": ["@ALL"]}}
    (folder / "job" / "meta.json").write_text(json.dumps(meta), encoding="utf-8")


def main():
    """Do as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--break", dest="fault", choices=FAULTS, help="break the privacy as a setting would")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--log", default="CRITICAL", help="level of NVFlare's log")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        job(folder, options.fault, options.seed)
        runner = SimulatorRunner(
            str(folder / "job"), str(folder / "work"), n_clients=SITES, threads=SITES, log_config=options.log
        )
        runner.run()
        scores = Scores.load(folder / "scores.json")
    claim = accounting.gaussian(NOISE_MULTIPLIER)
    print(f"{claim}: ε = {claim.epsilon(DELTA):.3f} at δ = {DELTA:g}, for one client\n")
    print(audit(scores, DELTA, claim=claim))


if __name__ == "__main__":
    main()
