"""Audits of a training by CANIFE (Maddock et al., arXiv 2210.02912), on its way or at its end.

An audit freezes the model, designs canaries with mock clients of held-out examples, and draws the scores of trials.
Trials are rounds of the training's own clients, which are drawn as it draws them, and of the canary's client.
What is random depends on the seed and the round alone, so that no audit depends on another or moves the training.

The paper speaks of pools of samples. As in the authors' public code (github.com/facebookresearch/canife, commit
8f4a9dd), held-out clients in random order are mock clients until they have so many. Where nobody knows whose held-out
examples are, they are dealt out to clients as large as the training's. One more choice is not the paper's: in trials
the canary replaces nobody.
"""

import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Self, cast

import numpy as np
from jax.flatten_util import ravel_pytree
from numpy.typing import NDArray

from canaryproof.verify.audit.canaries.seeds import Purpose, Seed, generator
from canaryproof.verify.papers.canife import general, options
from canaryproof.verify.papers.canife.attack import TrialScores, coins, halves, scored
from canaryproof.verify.papers.canife.descent import DenseDesigner
from canaryproof.verify.papers.canife.design import Designer, Start, Starts, noise, pool_samples
from canaryproof.verify.papers.canife.factored import FactoredUpdates
from canaryproof.verify.papers.canife.general import GRADIENT, GeneralUpdates, LocalTraining
from canaryproof.verify.papers.canife.text import TextDesigner, TextUpdates, random_tokens, text_of
from canaryproof.verify.papers.records.training_record import CanifeScores
from canaryproof.verify.papers.training import networks
from canaryproof.verify.papers.training.clients import chunk_of, clipped_updates
from canaryproof.verify.papers.training.configuration import CanifePlan, Data, Network, Settings
from canaryproof.verify.papers.training.data.federation import FederatedData, Federation
from canaryproof.verify.papers.training.networks import Model
from canaryproof.verify.papers.training.trainer import Training

# Inputs, labels and mask as ``Federation.cohort`` has them.
Examples = tuple[NDArray[Any], NDArray[np.int32], NDArray[np.float32]]


def pool(data: FederatedData, samples: int, most: int, rng: np.random.Generator) -> Examples:
    """Make mock clients of at least so many held-out examples, as ``Federation.cohort`` has them.

    ``most`` is the largest number of examples of a mock client. A ``ValueError`` says that there are too few examples.
    """
    inputs, labels, begins = data.test_inputs, data.test_labels, data.test_starts
    if begins is None:
        order, begins = rng.permutation(len(labels)), np.arange(0, len(labels) + 1, min(most, len(labels)))
        inputs, labels = inputs[order], labels[order]
    sizes = np.minimum(np.diff(begins), most)
    clients = rng.permutation(np.flatnonzero(sizes))
    sums = np.cumsum(sizes[clients])
    if samples > sums[-1]:
        raise ValueError(f"canife.pool: must be at most {sums[-1]}, as mock clients have no more examples")
    chosen = clients[: np.searchsorted(sums, samples) + 1]
    held_out = Federation("held out", inputs, labels, begins, inputs[:0], labels[:0], data.classes)
    return held_out.cohort(chosen, int(sizes[chosen].max()))


def starts(start: str, data: FederatedData, examples: Examples) -> Starts:
    """Choose where designs begin: with a ``sample``, or with ``noise``, the paper's uniform pixels or random tokens.

    Of a text whose every token has a label, labels stay: random ones, or the sample's own.
    """
    inputs, labels, _ = examples
    classes, vocabulary = data.classes, data.vocabulary
    sample = pool_samples(inputs, labels, classes)
    if vocabulary is None:
        return sample if start == "sample" else noise(inputs.shape[2:], classes, "uniform")
    length, every_token = inputs.shape[2], labels.ndim == 3

    def random_text(rng: np.random.Generator) -> Start:
        label = np.asarray(rng.integers(classes, size=length)) if every_token else classes
        return random_tokens(length, vocabulary, label)(rng)

    def sample_text(rng: np.random.Generator) -> Start:
        image = sample(rng)
        own = labels[image.client, 0] if every_token else image.logits
        return text_of(inputs[image.client, 0], vocabulary, classes)(rng)._replace(logits=own, client=image.client)

    return sample_text if start == "sample" else random_text


_INSERTION = {"halves": halves, "coins": coins}


class Compiled(NamedTuple):
    """The designer of canaries for a model, and the function of their updates; compiled at the first use."""

    designer: Designer
    whole: GeneralUpdates


@dataclass(frozen=True)
class Designing:
    """Settings that determine the compiled canary designer: its key in a cache."""

    data: Data
    network: Network
    settings: options.CanaryOptions
    local: LocalTraining
    designed: LocalTraining  # whose update is the vector that canaries are designed by
    clip_norm: float
    one_step: bool  # whether clients make one step on all of their examples

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """Take it from the settings of a training."""
        plan, training = settings.canife, settings.training
        assert plan is not None
        chosen = options.CanaryOptions(
            steps=plan.steps,
            rate=plan.rate,
            loss=cast(Any, plan.loss),
            norm_constant=plan.norm_constant,
            label=cast(Any, plan.label),
            restarts=options.AS_PRINTED.restarts,
        )
        one_step = training.local_epochs == 1 and settings.data.examples_per_client <= training.batch_size
        local = LocalTraining(training.client_rate, training.local_epochs)
        designed = local if plan.vector == "update" else GRADIENT
        return cls(settings.data, settings.model, chosen, local, designed, training.clip_norm, one_step)


def compiled(designing: Designing, data: FederatedData, model: Model) -> Compiled:
    """Choose how a model's inner products are computed.

    By factors for dense layers whose clients make one step, by text's tokens, or in general.
    """
    local, designed, clip_norm = designing.local, designing.designed, designing.clip_norm
    if data.vocabulary is not None:
        extended = _extended_loss(data, designing.network)
        text = TextUpdates(model.loss, extended, clip_norm, local, designed, data.vectors)
        return Compiled(TextDesigner(text, designing.settings), text)
    whole = GeneralUpdates(model.loss, clip_norm, local, designed)
    if designing.network.name == "two_layer" and designing.one_step:
        factored = FactoredUpdates(clip_norm, local.rate, designed.rate)
        return Compiled(DenseDesigner(factored, designing.settings), whole)
    return Compiled(Designer(whole, designing.settings), whole)


@dataclass(frozen=True)
class _Form:
    """An ``ExampleForm`` of its own."""

    name: str
    classes: int
    vocabulary: int | None
    unscored: tuple[int, ...]
    vectors: Any
    template: tuple[NDArray[Any], NDArray[np.int32]]


def _extended_loss(data: FederatedData, network: Network) -> Callable[..., Any]:
    """Return the loss of the model for a vocabulary that is larger by a text's length, as ``TextUpdates`` asks."""
    assert data.vocabulary is not None
    larger = data.vocabulary + data.template[0].shape[1]

    def loss(vectors: Any) -> Callable[..., Any]:
        extended = _Form(data.name, data.classes, larger, data.unscored, vectors, data.template)
        return networks.model(network.name, extended, network.hidden).loss

    if data.vectors is None:
        return loss(None)
    return lambda params, *batch: loss(params["embedding"])(params["rest"], *batch)


@dataclass(frozen=True)
class Auditor:
    """Audits of one training.

    A ``ValueError`` says that mock clients' updates take more memory than this machine has, or that there are too few
    examples for them.
    """

    compiled: Compiled
    settings: Settings
    data: FederatedData
    model: Model
    training: Training
    seed: Seed

    def __post_init__(self) -> None:
        clients = len(self._pool(0)[2])
        # Windows does not say by this call how much memory there is.
        if sys.platform != "win32" and self.compiled.designer.updates is self.compiled.whole:
            held, there = 4 * clients * self.model.dim, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
            if held > there:
                raise ValueError(
                    f"canife.pool: {clients} mock clients' updates take {held / 1e9:.1f} GB, and this machine has "
                    f"{there / 1e9:.1f} GB"
                )

    def audit(self, params: Any, rounds: int) -> CanifeScores:
        """Audit the model after so many rounds: its accuracy, and of each attack the canary and the trials' scores."""
        plan, began = self._plan, time.perf_counter()
        rngs = generator(self.seed, Purpose.CANIFE, rounds).spawn(plan.audits)
        theta = np.asarray(ravel_pytree(params)[0])
        canaries = []
        for i, rng in enumerate(rngs):
            examples = self._pool(i)
            canaries.append(
                self.compiled.designer.design(
                    self._state(theta, params, examples), starts(plan.start, self.data, examples), rng
                )
            )
        designed = time.perf_counter()
        updates = self.compiled.whole.canary_updates(params, canaries)
        # A server drops an update that is not finite: such a canary never shows.
        updates = np.where(np.isfinite(updates).all(axis=1, keepdims=True), updates, np.float32(0.0))
        scores = self._scores(theta, updates, rngs)
        attacked = time.perf_counter()
        return CanifeScores(
            round=rounds,
            accuracy=float(self.model.accuracy(params, self.data.test_inputs, self.data.test_labels)),
            loss=tuple(canary.loss for canary in canaries),
            initial_loss=tuple(canary.initial_loss for canary in canaries),
            norm=tuple(canary.norm for canary in canaries),
            attempts=tuple(canary.attempts for canary in canaries),
            healthy=tuple(canary.healthy for canary in canaries),
            scores=tuple(tuple(trials.values[:, 0].tolist()) for trials in scores),
            inserted=tuple(tuple(trials.inserted[:, 0].tolist()) for trials in scores),
            seconds={"design": designed - began, "attack": attacked - designed},
        )

    @property
    def _plan(self) -> CanifePlan:
        assert self.settings.canife is not None
        return self.settings.canife

    def _pool(self, attack: int) -> Examples:
        rng = generator(self.seed, Purpose.CANIFE, 0).spawn(self._plan.audits)[attack]
        return pool(self.data, self._plan.pool, self.training.examples_per_client, rng)

    def _state(self, theta: NDArray[np.float32], params: Any, examples: Examples) -> Any:
        """Compute mock clients' clipped updates, which they make as clients do."""
        if self.compiled.designer.updates is not self.compiled.whole:
            return self.compiled.designer.updates.prepare(params, *examples)
        updates = _empty(len(examples[2]), self.model.dim)
        chunk = self._chunk(len(updates))
        for start in range(0, len(updates), chunk):
            some = np.arange(start, min(start + chunk, len(updates)))
            updates[some] = self._updates(theta, *(part[np.resize(some, chunk)] for part in examples))[: len(some)]
        return general.GeneralState(params, updates)

    def _chunk(self, clients: int) -> int:
        batch = min(self.training.batch_size, self.training.examples_per_client)
        return chunk_of(self.model, self.data, clients, batch)

    def _updates(self, theta: NDArray[np.float32], *examples: NDArray[Any]) -> NDArray[np.float32]:
        function = clipped_updates(self.model, self.training.local_epochs, self.training.batch_size)
        rate, clip_norm = np.float32(self.training.client_rate), np.float32(self.training.clip.initial)
        return np.asarray(function(theta, *examples, rate, clip_norm))

    def _scores(
        self, theta: NDArray[np.float32], canaries: NDArray[np.float32], rngs: list[np.random.Generator]
    ) -> list[TrialScores]:
        """Draw the scores of all attacks; updates of a client that several trials draw are computed once."""
        cohorts = [[self._cohort(rng) for _ in range(self._plan.scores)] for rng in rngs]
        members = np.unique(np.concatenate([cohort for trials in cohorts for cohort in trials]))
        products = np.empty((len(members), len(canaries)))
        chunk = self._chunk(len(members))
        for start in range(0, len(members), chunk):
            some = members[start : start + chunk]
            examples = self.data.cohort(np.resize(some, chunk), self.training.examples_per_client)
            products[start : start + chunk] = self._updates(theta, *examples)[: len(some)] @ canaries.T
        deviation = self.training.noise.noise_multiplier * self.training.clip.initial
        drawn = []
        for i, (trials, rng) in enumerate(zip(cohorts, rngs, strict=True)):
            sums = np.array([[products[np.searchsorted(members, cohort), i].sum()] for cohort in trials])
            gram = np.array([[np.vdot(canaries[i].astype(np.float64), canaries[i])]])
            drawn.append(scored(sums, gram, _INSERTION[self._plan.inclusion](len(trials), 1, rng), deviation, rng))
        return drawn

    def _cohort(self, rng: np.random.Generator) -> NDArray[np.int64]:
        """Draw a trial's clients: so many, or with ``bernoulli`` each by a coin of its own."""
        clients, number = self.data.clients, self.settings.training.cohort
        if self.settings.training.participation == "bernoulli":
            number = int(rng.binomial(clients, number / clients))
        return rng.choice(clients, number, replace=False)


def _empty(clients: int, dim: int) -> NDArray[np.float32]:
    """Make room for updates at an address from which JAX takes them over without a copy: a multiple of 64 bytes."""
    memory = np.empty(clients * dim + 16, np.float32)
    first = -memory.ctypes.data % 64 // 4
    return memory[first : first + clients * dim].reshape(clients, dim)


def audited_rounds(plan: CanifePlan | None, rounds: int) -> list[int]:
    """Return after which of so many rounds there is an audit."""
    if plan is None:
        return []
    return [rounds] if plan.every is None else list(range(plan.every, rounds + 1, plan.every))
