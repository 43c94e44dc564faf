"""CANIFE compared with Algorithms 2 and 3 of Andrew et al. (arXiv 2302.03098), in the setting of its Section 5.4.

The comparison there is one mean and deviation for each method. Here both audit the very same trainings, with what
each number is, its cap, and what it takes for granted. Trainings are done here, or on a cluster.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import astuple, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from threadpoolctl import threadpool_limits

from canaryproof.verify.audit.engine.executors import EngineError, Lost, threads
from canaryproof.verify.audit.engine.provenance import code_and_machine
from canaryproof.verify.papers.accounting.sampled_gaussian import composed_epsilon
from canaryproof.verify.papers.comparison.canife_designs import BOTH, DESIGNS, CompetingDesign
from canaryproof.verify.papers.comparison.canife_methods import (
    METHODS,
    POISSON_SAMPLES,
    SHUFFLED_EPOCH,
    capped,
    composed,
    exact,
    largest_round,
    spread,
)
from canaryproof.verify.papers.comparison.canife_training import SEED, Bench, Scenario
from canaryproof.verify.papers.records.benchmark_record import (
    AuditedTraining,
    BenchmarkPlan,
    BenchmarkRecord,
    BenchmarkSizes,
    CanariesRecord,
    ComposedRecord,
    DataRecord,
    DesignedRecord,
    EstimateOrBound,
    MethodRecord,
    RoundAuditRecord,
    ScenarioRecord,
    ScoreCountRecord,
    SecondsRecord,
    UnlimitedRecord,
)
from canaryproof.verify.papers.records.training_record import BoundRecord, largest_finite
from canaryproof.verify.papers.training import networks
from canaryproof.verify.papers.training.data import digits, idx
from canaryproof.verify.papers.training.data.federation import Federation, check_same
from canaryproof.verify.papers.training.faults import Fault

if TYPE_CHECKING:
    from canaryproof.verify.audit.engine.cluster import Cluster


@dataclass(frozen=True)
class BenchmarkRun:
    """One training, audited by all methods."""

    repetition: int  # scenarios and rates of one repetition share the seed
    scenario: Scenario
    rate: float | None = None  # another learning rate than the setting's

    @property
    def name(self) -> str:
        """The run's name."""
        if self.rate is not None:
            return f"learning rate {self.rate:g}"
        return f"{self.scenario.name}, repetition {self.repetition + 1}"

    def run(self, bench: Bench) -> AuditedTraining:
        """Train and audit."""
        root = np.random.SeedSequence(SEED, spawn_key=(self.repetition,))
        # A BLAS of one thread, as on a worker: its bits depend on how many it has.
        with threadpool_limits(1, user_api="blas"):
            return bench.run(root, self.scenario, self.rate, self.designs)

    @property
    def designs(self) -> Sequence[CompetingDesign]:
        """All designs of CANIFE's canaries in trainings of the first scenario, and the two main ones in others."""
        return DESIGNS if self.scenario == POISSON and self.rate is None else BOTH


def images(folder: Path | None) -> Federation:
    """Read the images of a folder, or the digits without one, a client each; errors as for ``idx.load``."""
    return digits.load(1, SEED) if folder is None else idx.load(folder, 1, SEED)


def here(bench: Bench, runs: Sequence[BenchmarkRun], advance: Callable[[str], object]) -> list[AuditedTraining]:
    """Do runs one after another."""
    trainings = []
    for run in runs:
        advance(run.name)
        trainings.append(run.run(bench))
    return trainings


def on_cluster(
    cluster: "Cluster",
    data: Path | None,
    bench: Bench,
    hidden: int | None,
    runs: Sequence[BenchmarkRun],
    advance: Callable[[str], object],
) -> list[AuditedTraining]:
    """Do runs on a cluster, where each finds the same as here.

    An ``InputError`` says that the cluster cannot be used or a worker has other data, an ``EngineError`` that a run is
    given up or the scheduler lost.
    """
    common = data and data.absolute(), bench.federation.digest, astuple(bench.plan), hidden
    tasks = ((i, (*common, *_described(run))) for i, run in enumerate(runs))
    trainings: dict[int, AuditedTraining] = {}
    advance(f"none of {len(runs)} trainings done")
    with closing(cluster.results("canaryproof.verify.papers.comparison.canife:train", tasks)) as results:
        for i, result in results:
            if isinstance(result, Lost):
                raise EngineError(f"{runs[i].name}: {result.reason}")
            trainings[i] = result
            advance(f"{len(trainings)} of {len(runs)} trainings done")
    return [trainings[i] for i in range(len(runs))]


def _described(run: BenchmarkRun) -> tuple[Any, ...]:
    """Return the arguments by which ``train`` makes the run, of built-in types alone."""
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
) -> AuditedTraining:
    """Do a run on a worker of a cluster; arguments are those of ``on_cluster`` and the fields of ``BenchmarkRun``."""
    bench = _bench(data, setting, hidden)
    check_same(bench.federation, digest, data)
    return BenchmarkRun(repetition, Scenario(name, shuffled, Fault[fault] if fault else None), rate).run(bench)


# Tasks of one benchmark come one after another.
@lru_cache(maxsize=1)
def _bench(data: Path | None, setting: tuple[Any, ...], hidden: int | None) -> Bench:
    federation = images(data)
    return Bench(federation, networks.model("two_layer", federation, hidden), BenchmarkPlan(*setting))


# Sizes for images by the ten thousand, as printed: an epoch at batch 128 is 469 rounds of MNIST.
PRINTED = BenchmarkPlan(
    batch=128,
    canaries=1000,
    every=100,
    pool=512,
    steps=2500,
    scores=(100, 1000, 10_000),
    noise_multiplier=0.2,
    clip_norm=1.0,
    delta=1e-5,
    rate=1.0,
)
# Scikit-learn's 1,500 digits: a batch of an eighth makes 94 rounds of an epoch. Canaries and rounds between audits are
# a fifth, as rounds are, so that a round has two canaries and a training four audits; 297 images are held out.
DIGITS = replace(PRINTED, batch=16, canaries=200, every=20, pool=256)
# The paper does not print the learning rate. Among these, with one training each, 1 is near the best accuracy. MNIST
# without canaries has 67, 80, 88, 91 and 92% of held-out images right, digits with canaries 31, 50, 71, 80 and 83%.
RATES = (0.03, 0.1, 0.3, 1.0, 3.0)

POISSON = Scenario(POISSON_SAMPLES)
# Faults of a server are the suite's, on digits and with a level: ``canaryproof verify canife``.
SCENARIOS = (POISSON, Scenario(SHUFFLED_EPOCH, shuffled=True))

# Scores of Algorithms 2 and 3, and the null of their estimates.
_SOURCES = (
    ("Algorithm 3", "all", "unobserved"),
    ("Algorithm 2, final model", "final", "exact"),
    ("Algorithm 2, change", "change", "exact"),
)


@dataclass(frozen=True)
class Repetitions:
    """Trainings of a benchmark at one level."""

    repeat: int  # trainings of each scenario, unless the user says how many
    scenarios: tuple[Scenario, ...]
    rates: tuple[float, ...] = ()  # learning rates to sweep over, one training each


LEVELS = {"quick": Repetitions(3, SCENARIOS[:1]), "full": Repetitions(10, SCENARIOS, RATES)}


def read(folder: Path | None) -> tuple[Federation, BenchmarkPlan, bool]:
    """Read the images of a folder, or the digits without one, sizes that fit, and whether it is Fashion-MNIST."""
    federation = images(folder)
    return (federation, DIGITS, False) if folder is None else (federation, PRINTED, federation.name == idx.FASHION)


def measure(
    federation: Federation,
    setting: BenchmarkPlan,
    level: str,
    repeat: int | None,
    advance: Callable[[str], object],
    hidden: int | None = None,
    *,
    cluster: "Cluster | None" = None,
    data: Path | None = None,
) -> BenchmarkRecord:
    """Run the benchmark and return its record, but for the numbers that the papers print.

    ``repeat`` is the number of trainings of each scenario, by default the level's; ``hidden`` the network's width, by
    default 128. ``data`` is the folder that a cluster's workers read. Errors are those of ``on_cluster``.
    """
    plan = LEVELS[level]
    repetitions = repeat or plan.repeat
    bench = Bench(federation, networks.model("two_layer", federation, hidden), setting)
    advance("compiling")
    compilation = bench.compile()
    # Scenarios take turns, so that whatever else the machine does hits all alike.
    wanted = [BenchmarkRun(i, scenario) for i in range(repetitions) for scenario in plan.scenarios]
    wanted += [BenchmarkRun(0, POISSON, rate) for rate in plan.rates]
    trainings = (
        here(bench, wanted, advance) if cluster is None else on_cluster(cluster, data, bench, hidden, wanted, advance)
    )
    runs: dict[str, list[AuditedTraining]] = {scenario.name: [] for scenario in plan.scenarios}
    sweep = []
    for run, training in zip(wanted, trainings, strict=True):
        if run.rate is None:
            runs[run.scenario.name].append(training)
        else:
            sweep.append((run.rate, training))
    sizes = bench.sizes
    return BenchmarkRecord(
        level=level,
        repeat=repetitions,
        seed=SEED,
        data=DataRecord(federation.name, federation.clients, len(federation.test_labels)),
        setting=sizes,
        compilation=compilation,
        memory=bench.memory(),
        rdp=composed_epsilon([setting.noise_multiplier], [sizes.rounds], sizes.sampling, setting.delta),
        scenarios=tuple(
            replace(_summary(name, setting.rate, group, sizes), runs=tuple(group)) for name, group in runs.items()
        ),
        designs=tuple(_design_record(design, runs[POISSON.name], sizes) for design in DESIGNS),
        sweep=tuple(_summary(POISSON.name, rate, [training], sizes) for rate, training in sweep),
        environment={**code_and_machine(), "threads": str(threads())},
    )


def _summary(name: str, rate: float, trainings: Sequence[AuditedTraining], plan: BenchmarkSizes) -> ScenarioRecord:
    """Put what the runs of a scenario found together, method by method."""
    rows = []
    for method in METHODS:
        values = tuple(method.value(training, plan) for training in trainings)
        epsilon = spread([value.epsilon for value in values])
        cap = method.cap(trainings[0], plan)
        rows.append(MethodRecord(method.name, method.kind, method.needs, method.family, epsilon, values, cap))
    # The first run of all has compilation in it.
    seconds = [training.seconds for training in trainings]
    designs = trainings[0].canife
    return ScenarioRecord(
        name,
        rate,
        analytical=trainings[0].analytical,
        accuracies=tuple(training.accuracy for training in trainings),
        methods=tuple(rows),
        seconds=SecondsRecord(
            training=_median([each.training for each in seconds]),
            oneshot=_median([each.oneshot for each in seconds]),
            canife={name: _median([each.canife[name] for each in seconds]) for name in designs},
        ),
        canife={name: _canaries([audit for each in trainings for audit in each.canife[name]]) for name in designs},
        audits=_audits(trainings),
    )


def _median(values: Sequence[float]) -> float:
    return float(np.median(values))


def _canaries(audits: Sequence[RoundAuditRecord]) -> CanariesRecord:
    return CanariesRecord(
        separation=spread([audit.attacks[0].separation for audit in audits]),
        deviation=spread([audit.attacks[0].deviation for audit in audits]),
        norm=spread([math.sqrt(audit.law.shift) for audit in audits]),
        clients=spread([audit.law.clients for audit in audits]),
        # Canaries without an update have no direction.
        cosine=spread([audit.cosines.root_mean_square for audit in audits if audit.cosines is not None] or [0.0]),
        noise=spread([audit.law.noise for audit in audits]),
        accuracy=spread([audit.accuracy for audit in audits]),
        unhealthy=sum(not audit.canary.healthy for audit in audits),
        audits=len(audits),
    )


def _audits(trainings: Sequence[AuditedTraining]) -> tuple[EstimateOrBound, ...]:
    """List every estimate and every bound of each kind of score."""
    rows = []
    for name, attack, null in _SOURCES:
        estimates = [training.oneshot[attack][null].estimates for training in trainings]
        rows += [
            EstimateOrBound(
                name, estimator, "estimate", "", spread([each[estimator].epsilon for each in estimates]), math.inf
            )
            for estimator in estimates[0]
        ]
    # The exact null is sharper than unobserved scores, but some bounds need these.
    sources: dict[str, list[Mapping[str, BoundRecord]]] = {
        name: [
            {**training.oneshot[attack]["unobserved"].bounds, **training.oneshot[attack][null].bounds}
            for training in trainings
        ]
        for name, attack, null in _SOURCES
    }
    for design in BOTH:
        audits = [audit for training in trainings for audit in training.canife[design.name]]
        sources[f"a round of CANIFE {design.name}"] = [audit.bounds for audit in audits]
    for source, bounds in sources.items():
        for name, bound in bounds[0].items():
            values = spread([each[name].value for each in bounds])
            rows.append(EstimateOrBound(source, name, bound.kind, bound.coverage, values, bound.cap))
    return tuple(rows)


def _design_record(
    design: CompetingDesign, trainings: Sequence[AuditedTraining], plan: BenchmarkSizes
) -> DesignedRecord:
    """Say what CANIFE's ε̂ is with canaries of a design, by the number of scores, and with unlimited ones."""
    of_trainings = [training.canife[design.name] for training in trainings]
    rounds = [audit.law.epsilon for audits in of_trainings for audit in audits]
    options = design.options
    return DesignedRecord(
        design.name,
        design.kind,
        options.rate,
        options.norm_constant,
        design.start,
        options.label,
        options.restarts,
        counts=tuple(_count(design, of_trainings, index, plan) for index in range(len(plan.scores))),
        unlimited=UnlimitedRecord(spread(rounds), spread([exact(audits, plan) for audits in of_trainings])),
    )


def _count(
    design: CompetingDesign, of_trainings: Sequence[Sequence[RoundAuditRecord]], index: int, plan: BenchmarkSizes
) -> ScoreCountRecord:
    """Show how large CANIFE's number is at one number of scores."""
    scores = plan.scores[index]
    attacks = [audit.attacks[index].epsilon for audits in of_trainings for audit in audits]
    largest = largest_round(scores, design.inclusion)
    # By coins, each audit has a cap of its own.
    caps = [largest_finite(each.capped.null_count, each.capped.count, 1.0 / scores) for each in attacks]
    at_delta, at_reciprocal = (
        ComposedRecord(
            spread([capped(audits, plan, index, delta).epsilon for audits in of_trainings]),
            composed((largest,) * len(plan.audited), plan, delta),
        )
        for delta in (plan.delta, 1.0 / scores)
    )
    return ScoreCountRecord(
        scores,
        # Scores that are all alike have no threshold whose errors would tell anything.
        spread([max(0.0, attack.capped.epsilon) for attack in attacks]),
        largest,
        separated=sum(math.isinf(attack.separated.epsilon) for attack in attacks),
        capped=sum(each.capped.epsilon >= cap * (1.0 - 1e-9) for each, cap in zip(attacks, caps, strict=True)),
        audits=len(attacks),
        at_delta=at_delta,
        at_reciprocal=at_reciprocal,
    )
