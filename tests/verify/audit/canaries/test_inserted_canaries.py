"""Canaries in Opacus: with a stand-in for its optimizer's interface, and with Opacus itself where it is installed."""

import importlib.util

import numpy as np
import pytest

from canaryproof.kernels.canaries import Canaries
from canaryproof.verify.audit.canaries.canary_clients import CanaryClients
from canaryproof.verify.audit.canaries.inserted_canaries import InsertedCanaries, check_optimizer
from canaryproof.verify.audit.canaries.participation import Insertion, bernoulli, shuffled_epochs
from canaryproof.verify.audit.canaries.scores import Score

CLIP_NORM, NOISE, SEED, COUNT, STEPS = 0.7, 0.3, 5, 20, 6
SHAPES = ((4, 3), (4,))
DIM = 16
needs_opacus = pytest.mark.skipif(importlib.util.find_spec("opacus") is None, reason="needs the extra 'opacus'")


class Summed(np.ndarray):
    """An array that can be marked, as Opacus marks a tensor whose gradients were used."""


class Parameter:
    def __init__(self, shape):
        self.values = np.ones(shape, np.float32)
        self.shape, self.dtype = shape, self.values.dtype
        self.grad = self.summed_grad = None

    def __array__(self, dtype=None, copy=None):
        return self.values


class DPOptimizer:
    """What of Opacus 1.6's DPOptimizer a step goes through, with gradients that are given."""

    __module__ = "opacus.optimizers.optimizer"
    accumulated_iterations = 1

    def __init__(self):
        self.params = [Parameter(shape) for shape in SHAPES]
        self.max_grad_norm, self.noise_multiplier = CLIP_NORM, NOISE
        self.rng = np.random.default_rng(1)
        self.noises = []

    def add_noise(self):
        for p in self.params:
            assert not hasattr(p.summed_grad, "processed")
            noise = CLIP_NORM * NOISE * self.rng.standard_normal(p.shape).astype(np.float32)
            self.noises.append(noise)
            p.grad = np.asarray(p.summed_grad + noise)
            p.summed_grad.processed = True

    def step(self, clipped=0.0, skip=False):
        for p in self.params:
            if p.summed_grad is None:
                p.summed_grad = np.zeros(p.shape, np.float32).view(Summed)
            p.summed_grad += np.float32(clipped)
        if not skip:
            self.add_noise()
            for p in self.params:
                p.values = p.values - p.grad / 10

    def zero_grad(self):
        for p in self.params:
            p.summed_grad = None


def drawn(steps=STEPS):
    return bernoulli(0, 0.5, steps, 3, Insertion(COUNT, COUNT // 2))


def insert(optimizer, participation, seed):
    """Insert canaries where a watch does."""
    inserted, add_noise = InsertedCanaries(optimizer, participation, seed), optimizer.add_noise

    def insert_and_add_noise():
        inserted.enter()
        add_noise()
        inserted.take()

    optimizer.add_noise = insert_and_add_noise
    return inserted


def flat(arrays):
    return np.concatenate([np.ravel(array) for array in arrays])


def test_canaries_enter_after_clipping_and_before_the_noise_and_scores_are_of_the_noised_sum():
    optimizer, participation = DPOptimizer(), drawn()
    inserted = insert(optimizer, participation, SEED)
    assert inserted.dim == DIM
    by_hand = CanaryClients(Canaries(SEED, COUNT, DIM), participation, noise_multiplier=NOISE)
    summed = np.zeros(DIM)
    for t in range(STEPS):
        optimizer.step(clipped=0.25)
        noise = flat(optimizer.noises[-2:])
        released = flat([p.grad for p in optimizer.params])
        assert released == pytest.approx(0.25 + noise - by_hand.total(t, CLIP_NORM), abs=1e-6)
        by_hand.add(-released, t, known=np.full(DIM, -0.25))
        summed -= released
        optimizer.zero_grad()
    for score in Score:
        found, expected = inserted.scores(score), by_hand.scores(score)
        assert found.observed == pytest.approx(expected.observed, abs=1e-4)
        assert found.unobserved == pytest.approx(expected.unobserved, abs=1e-4)
        assert found.record.traces.residual
    assert inserted.evidence(NOISE).log_values == pytest.approx(by_hand.evidence(NOISE).log_values, abs=1e-4)
    # Plain steps of equal length: the parameters hold the sum of what was released.
    for found, expected in zip(inserted.final(), by_hand.final(summed), strict=True):
        assert found == pytest.approx(expected, abs=1e-4)
    assert inserted.warnings() == ()


def test_other_data_hide_the_canaries_from_who_does_not_know_them():
    optimizer = DPOptimizer()
    inserted = insert(optimizer, drawn(), SEED)
    for _ in range(STEPS):
        optimizer.step(clipped=20.0)
        optimizer.zero_grad()
    scores = [inserted.scores("largest", known=known) for known in (True, False)]
    knowing, other = (each.observed.mean() - each.unobserved.mean() for each in scores)
    assert knowing > 0.1
    assert abs(other) < 0.05
    assert [each.record.traces.residual for each in scores] == [True, False]


def test_rounds_that_were_not_drawn_have_no_likelihood():
    optimizer = DPOptimizer()
    inserted = insert(optimizer, shuffled_epochs(2, 1, 3, 0, Insertion(COUNT, COUNT // 2)), SEED)
    for _ in range(STEPS):
        optimizer.step()
        optimizer.zero_grad()
    assert inserted.scores("known rounds").record.participations == 3
    with pytest.raises(ValueError, match="likelihoods: need sampling"):
        inserted.scores("likelihood")


def test_a_clip_norm_that_changes_is_that_of_the_step():
    optimizer = DPOptimizer()
    inserted = insert(optimizer, drawn(), SEED)
    optimizer.max_grad_norm = 3.0
    optimizer.step()
    total = inserted.canary_clients.canaries.sum(drawn().canaries(0))
    released = flat([p.grad for p in optimizer.params])
    assert released == pytest.approx(flat(optimizer.noises) - 3.0 * total, abs=1e-6)


def test_virtual_steps_have_their_canaries_once():
    optimizer = DPOptimizer()
    inserted = insert(optimizer, drawn(), SEED)
    for _ in range(3):
        optimizer.step(clipped=0.1, skip=True)
    assert inserted.canary_clients.rounds == 0
    optimizer.step(clipped=0.1)
    assert inserted.canary_clients.rounds == 1
    total = inserted.canary_clients.total(0, CLIP_NORM)
    assert flat([p.grad for p in optimizer.params]) == pytest.approx(0.4 + flat(optimizer.noises) - total, abs=1e-6)
    assert inserted.warnings()[0].startswith("1 of 6 rounds were taken")


def test_opacus_still_sees_a_sum_that_was_used():
    optimizer = DPOptimizer()
    insert(optimizer, drawn(), SEED)
    optimizer.step()
    with pytest.raises(AssertionError):
        optimizer.step()


def check_and_insert(optimizer):
    check_optimizer(optimizer)
    insert(optimizer, drawn(), SEED)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("SomethingNew", "SomethingNew is not served: it is not known"),
        ("FSDPOptimizerFastGradientClipping", "must train parameters that FSDP cuts along their first axis"),
    ],
)
def test_what_is_not_served_is_refused_by_name(name, reason):
    kind = type(name, (DPOptimizer,), {"__module__": "opacus.optimizers.any"})
    with pytest.raises(ValueError, match=f"^optimizer: {reason}[^\n]*$"):
        check_and_insert(kind())


def test_what_is_none_of_opacus_is_refused():
    own = type("Own", (DPOptimizer,), {"__module__": "mine"})
    with pytest.raises(ValueError, match="not Own: a subclass of DPOptimizer may clip or add noise in another way"):
        check_and_insert(own())
    with pytest.raises(
        ValueError, match="must be Opacus' DPOptimizer, as make_private returns it, not dict: it is none"
    ):
        check_and_insert({})
    empty = DPOptimizer()
    empty.params = []
    with pytest.raises(ValueError, match="trains no parameters"):
        check_and_insert(empty)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda one: setattr(one, "accumulated_iterations", 2), "gradients of several batches in one step"),
        (lambda one: setattr(one, "_adjusted_noise_multiplier", 1.0), "adaptive clipping with ghost clipping is not"),
        (lambda one: setattr(one, "max_grad_norms", [1.0, 1.0]), "the layers' clip norms have changed"),
        (lambda one: one.params.pop(), "trains other parameters than at the start"),
    ],
)
def test_a_step_that_is_not_served_is_refused(change, message):
    optimizer = DPOptimizer()
    inserted = insert(optimizer, drawn(), SEED)
    change(optimizer)
    with pytest.raises(ValueError, match=f"^optimizer: [^\n]*{message}"):
        optimizer.step()
    assert inserted.canary_clients.rounds == 0


def test_a_step_beyond_the_participation_has_no_canaries():
    optimizer = DPOptimizer()
    inserted = insert(optimizer, drawn(1), SEED)
    optimizer.step()
    optimizer.zero_grad()
    optimizer.step()
    assert flat([p.grad for p in optimizer.params]) == pytest.approx(flat(optimizer.noises[-2:]), abs=1e-6)
    assert inserted.canary_clients.rounds == 1


# With Opacus itself.


def private(mode="hooks", **options):
    import torch
    from opacus import PrivacyEngine
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 3))
    loader = DataLoader(TensorDataset(torch.randn(64, 5), torch.randint(0, 3, (64,))), batch_size=8)
    criterion = nn.CrossEntropyLoss()
    made = PrivacyEngine().make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        criterion=criterion,
        data_loader=loader,
        noise_multiplier=NOISE,
        grad_sample_mode=mode,
        noise_generator=torch.Generator().manual_seed(1),
        **{"max_grad_norm": CLIP_NORM} | options,
    )
    return made if mode == "ghost" else (made[0], made[1], criterion, made[2])


def releases(physical=None, inserted=True, mode="hooks"):
    """The noised sums of an epoch, before they are scaled, with canaries or without."""
    from contextlib import nullcontext

    from opacus.utils.batch_memory_manager import BatchMemoryManager

    model, optimizer, criterion, loader = private(mode)
    found = []
    # Scaled after the noise and after the canaries.
    scale = optimizer.scale_grad
    optimizer.scale_grad = lambda: (found.append(flat([p.grad for p in optimizer.params])), scale())
    canaries = insert(optimizer, drawn(len(loader)), SEED) if inserted else None
    manager = (
        BatchMemoryManager(data_loader=loader, max_physical_batch_size=physical, optimizer=optimizer)
        if physical
        else nullcontext(loader)
    )
    # The model stays as it is, so that gradients with and without canaries are equal.
    optimizer.original_optimizer.step = lambda: None
    with manager as batches:
        for x, y in batches:
            optimizer.zero_grad()
            criterion(model(x), y).backward()
            optimizer.step()
    return np.array(found), canaries


@needs_opacus
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("physical", "mode"), [(None, "hooks"), (3, "hooks"), (None, "ghost"), (3, "ghost")])
def test_in_opacus_a_step_releases_its_sum_its_noise_and_its_canaries(physical, mode):
    import torch

    (plain, _), (with_them, inserted) = releases(physical, False, mode), releases(physical, True, mode)
    totals = np.array([inserted.canary_clients.total(t, CLIP_NORM) for t in range(len(plain))])
    assert np.abs(totals).max() > 0.1
    assert with_them == pytest.approx(plain - totals, abs=1e-5)
    by_hand = CanaryClients(Canaries(SEED, COUNT, inserted.dim), drawn(len(plain)))
    # What is no data and no canary is the noise, of which this generator draws the same.
    rng = torch.Generator().manual_seed(1)
    shapes = [p.shape for p in inserted._params]
    for t, released in enumerate(with_them):
        noise = flat([torch.normal(0, CLIP_NORM * NOISE, shape, generator=rng) for shape in shapes])
        by_hand.add(-released, t, known=noise - plain[t])
    for score in ("known rounds", "largest"):
        found, expected = inserted.scores(score), by_hand.scores(score)
        assert found.observed == pytest.approx(expected.observed, abs=1e-4)
        assert found.unobserved == pytest.approx(expected.unobserved, abs=1e-4)


@needs_opacus
@pytest.mark.filterwarnings("ignore")
def test_in_opacus_the_trained_parameters_alone_count():
    _, optimizer, _, loader = private()
    whole = insert(optimizer, drawn(len(loader)), SEED)
    assert whole.dim == 5 * 4 + 4 + 4 * 3 + 3
    _, optimizer, _, loader = private()
    optimizer.params[0].requires_grad_(False)
    assert insert(optimizer, drawn(len(loader)), SEED).dim == 4 + 4 * 3 + 3


ADAPTIVE = {
    "target_unclipped_quantile": 0.5, "clipbound_learning_rate": 0.2, "max_clipbound": 5.0, "min_clipbound": 0.1,
    "unclipped_num_std": 2.0,
}  # fmt: skip
NORMS = [0.2, 0.4, 0.3, 0.5]


def clipped_otherwise(clipping):
    """A training with another clipping; the model has four parameters."""
    if clipping == "per_layer":
        return private(clipping=clipping, max_grad_norm=NORMS)
    return private(clipping=clipping, **ADAPTIVE)


@needs_opacus
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("clipping", ["per_layer", "adaptive"])
def test_in_opacus_canaries_have_the_norms_of_the_clipping_and_measure_the_noise(clipping):
    import torch

    model, optimizer, criterion, loader = clipped_otherwise(clipping)
    steps, count = 3 * len(loader), 200
    inserted = insert(optimizer, bernoulli(0, 0.5, steps, 3, Insertion(count, count // 2)), SEED)
    norms, counts = [], []
    enter = inserted.enter

    def enter_and_look():
        enter()
        counts.append(int(getattr(optimizer, "sample_size", 0)))

    inserted.enter = enter_and_look
    for t in range(steps):
        batch = next(iter(loader))
        optimizer.zero_grad()
        criterion(model(batch[0]), batch[1]).backward()
        norms.append(float(optimizer.max_grad_norm))
        optimizer.step()
        others = len(batch[0])
        members = len(inserted.canary_clients.participants(t))
        assert counts[t] == (others + members if clipping == "adaptive" else 0)
    if clipping == "per_layer":
        canary = inserted.canary_clients.canaries.vector(3) * float(np.linalg.norm(NORMS))
        parts = np.split(canary, np.cumsum([p.numel() for p in optimizer.params])[:-1])
        assert [np.linalg.norm(part) for part in parts] == pytest.approx(NORMS, rel=1e-5)
        assert len({*norms}) == 1
        assert inserted.noise_multiplier == NOISE
    else:
        # The clip norm moves, and a step's canaries have the norm of that step.
        assert len({*norms}) > 1
        assert inserted.noise_multiplier == pytest.approx((NOISE**-2 - 4.0**-2) ** -0.5)
    # The canaries are longer than the noise, so that the noise's length decides: 24 steps of 38 coordinates across have
    # the standard error 1/√(2·24·38) = 2.3%. Half or twice the noise is 14 standard errors outside the interval.
    measured = inserted.scores("known rounds").record.traces.noise_multiplier(1 - 1e-7)
    assert measured.low < inserted.noise_multiplier < measured.high
    assert measured.low > 0.5 * inserted.noise_multiplier
    assert measured.high < 2.0 * inserted.noise_multiplier
    assert torch.is_tensor(optimizer.params[0].grad)


@needs_opacus
def test_every_optimizer_of_opacus_is_served_or_refused_with_a_reason():
    import opacus.optimizers

    from canaryproof.verify.audit.canaries import inserted_canaries

    known = {name for name in dir(opacus.optimizers) if "Optimizer" in name}
    assert known == {*inserted_canaries._SERVED}


# Trains on its part of a batch, alone or with another process, and prints its scores. The noise is the first one's.
PROCESSES = """
import json, sys
import numpy as np
import torch
from opacus import GradSampleModule
from opacus.grad_sample import GradSampleModuleFastGradientClipping, GradSampleModuleFastGradientClippingFSDP
from opacus.optimizers import get_optimizer_class
from opacus.utils.fast_gradient_clipping_utils import DPLossFastGradientClipping
from opacus.utils.fsdp_utils import FSDP2Wrapper
import canaryproof as cp

store, rank, size, clipping, mode = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), *sys.argv[4:]
if size > 1:
    torch.distributed.init_process_group("gloo", init_method="file://" + store, rank=rank, world_size=size)
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(9, 7), torch.nn.ReLU(), torch.nn.Linear(7, 3))
ghost = {"max_grad_norm": 0.7, "use_ghost_clipping": True} if mode != "hooks" else {}
wrapper = GradSampleModuleFastGradientClipping if ghost else GradSampleModule
if mode == "ghost_fsdp" and size == 1:
    mode = "ghost"
if mode == "ghost_fsdp":
    model, wrapper = FSDP2Wrapper(model), GradSampleModuleFastGradientClippingFSDP
model = wrapper(model, **ghost)
kind = get_optimizer_class(clipping, distributed=size > 1, grad_sample_mode=mode)
norm = [0.2, 0.3, 0.4, 0.5] if clipping == "per_layer" else 0.7
optimizer = kind(
    torch.optim.SGD(model.parameters(), lr=0.1), noise_multiplier=0.8, max_grad_norm=norm,
    expected_batch_size=16 // size, generator=torch.Generator().manual_seed(1),
)
criterion = torch.nn.CrossEntropyLoss()
if ghost:
    criterion = DPLossFastGradientClipping(model, optimizer, criterion)
claim = cp.accounting.poisson(0.8, rate=0.5, rounds=6)
inserted = cp.watch(optimizer, delta=1e-5, claim=claim, insert=10, seed=5).canaries
for t in range(6):
    batch = np.random.default_rng(t).normal(size=(16, 9)).astype(np.float32)[rank::size]
    optimizer.zero_grad()
    criterion(model(torch.tensor(batch)), torch.arange(16)[rank::size] % 3).backward()
    optimizer.step()
scores = {score: inserted.scores(score).observed.tolist() for score in ("known rounds", "likelihood", "largest")}
print(json.dumps([type(optimizer).__name__, scores, inserted.final()[0].tolist()]))
"""


@needs_opacus
@pytest.mark.parametrize(
    ("clipping", "mode"), [("flat", "hooks"), ("flat", "ghost"), ("per_layer", "hooks"), ("flat", "ghost_fsdp")]
)
def test_two_processes_have_the_scores_of_one(clipping, mode, tmp_path):
    import json
    import subprocess
    import sys

    def trained(size):
        commands = [
            [sys.executable, "-W", "ignore", "-c", PROCESSES, str(tmp_path / "s"), str(rank), str(size), clipping, mode]
            for rank in range(size)
        ]
        running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for command in commands]
        return [json.loads(each.communicate(timeout=200)[0].splitlines()[-1]) for each in running]

    ((_, alone, final),), both = trained(1), trained(2)
    for name, scores, last in both:
        assert ("FSDP" if mode == "ghost_fsdp" else "Distributed") in name
        for score, values in scores.items():
            # Opacus adds gradients in float32, in another order.
            assert values == pytest.approx(alone[score], abs=2e-4)
        assert last == pytest.approx(final, abs=2e-4)
    assert both[0] == both[1]
