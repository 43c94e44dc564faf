"""The trainings of the comparison with CANIFE, one by one: here, or on a cluster."""

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import astuple, dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from threadpoolctl import threadpool_limits

from canaryproof.verify.benchmark.canife_faults import Fault
from canaryproof.verify.benchmark.canife_run import Bench
from canaryproof.verify.benchmark.canife_setting import SEED, Scenario, Setting
from canaryproof.verify.engines import EngineError, Lost
from canaryproof.verify.federated import models
from canaryproof.verify.federated.data import digits, idx
from canaryproof.verify.federated.data.federation import Federation, check_same

if TYPE_CHECKING:
    from canaryproof.verify.cluster import Cluster

# What a run found, as plain numbers.
Found = dict[str, Any]


@dataclass(frozen=True)
class Run:
    """One training, audited by all methods.

    Attributes
    ----------
    repetition
        Number of the repetition, of which all scenarios and rates share the seed.
    scenario
        What is otherwise than CANIFE takes for granted.
    rate
        Another learning rate than the setting's.
    """

    repetition: int
    scenario: Scenario
    rate: float | None = None

    @property
    def name(self) -> str:
        """What it is called."""
        if self.rate is not None:
            return f"learning rate {self.rate:g}"
        return f"{self.scenario.name}, repetition {self.repetition + 1}"

    def on(self, bench: Bench) -> Found:
        """Do it."""
        root = np.random.SeedSequence(SEED, spawn_key=(self.repetition,))
        # A BLAS of one thread, as on a worker: its bits depend on how many it has.
        with threadpool_limits(1, user_api="blas"):
            return bench.run(root, self.scenario, self.rate)


def images(folder: Path | None) -> Federation:
    """Read the images of a folder, or the digits without one, a client each; errors as for ``idx.load``."""
    return digits.load(1, SEED) if folder is None else idx.load(folder, 1, SEED)


def here(bench: Bench, runs: Sequence[Run], advance: Callable[[str], object]) -> list[Found]:
    """Do runs one after another.

    Parameters
    ----------
    bench
        What they have in common.
    runs
        The runs.
    advance
        Told which is being done.
    """
    found = []
    for run in runs:
        advance(run.name)
        found.append(run.on(bench))
    return found


def on_cluster(
    cluster: "Cluster",
    data: Path | None,
    bench: Bench,
    hidden: int | None,
    runs: Sequence[Run],
    advance: Callable[[str], object],
) -> list[Found]:
    """Do runs on a cluster, where each finds the same as here.

    Parameters
    ----------
    cluster
        The cluster.
    data
        Folder of the images, which every worker reads; None for digits.
    bench
        What they have in common.
    hidden
        Width of the network, if it is not the usual one.
    runs
        The runs.
    advance
        Told how many are done.

    Raises
    ------
    InputError
        If the cluster cannot be used, or a worker has not the same data.
    EngineError
        If a run is given up, or the scheduler is lost.
    """
    common = data and data.absolute(), bench.federation.digest, astuple(bench.setting), hidden
    tasks = ((i, (*common, *_described(run))) for i, run in enumerate(runs))
    found: dict[int, Found] = {}
    advance(f"none of {len(runs)} trainings done")
    with closing(cluster.results("canaryproof.verify.benchmark.canife_runs:train", tasks)) as results:
        for i, one in results:
            if isinstance(one, Lost):
                raise EngineError(f"{runs[i].name}: {one.reason}")
            found[i] = one
            advance(f"{len(found)} of {len(runs)} trainings done")
    return [found[i] for i in range(len(runs))]


def _described(run: Run) -> tuple[Any, ...]:
    """Return what ``train`` makes the run of, without classes of ours."""
    scenario = run.scenario
    return run.repetition, scenario.name, scenario.shuffled, scenario.fault and scenario.fault.name, run.rate


def train(
    data: Path | None,
    digest: str,
    setting: tuple[Any, ...],
    hidden: int | None,
    repetition: int,
    name: str,
    shuffled: bool,
    fault: str | None,
    rate: float | None,
) -> Found:
    """Do a run on a worker of a cluster; arguments are those of ``on_cluster`` and the fields of ``Run``."""
    bench = _bench(data, setting, hidden)
    check_same(bench.federation, digest, data)
    return Run(repetition, Scenario(name, shuffled, Fault[fault] if fault else None), rate).on(bench)


# Tasks of one benchmark come one after another.
@lru_cache(maxsize=1)
def _bench(data: Path | None, setting: tuple[Any, ...], hidden: int | None) -> Bench:
    federation = images(data)
    return Bench(federation, models.model("two_layer", federation, hidden), Setting(*setting))
