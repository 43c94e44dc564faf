"""A watch over Opacus: what each kind of training is answered, and that nothing of the training changes."""

import contextlib
import random
import warnings

import numpy as np
import pytest

import canaryproof as cp

torch = pytest.importorskip("torch", reason="needs torch")
pytest.importorskip("opacus", reason="needs opacus")

from opacus import PrivacyEngine, schedulers  # noqa: E402
from opacus.utils.batch_memory_manager import BatchMemoryManager  # noqa: E402
from torch import nn  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402

from canaryproof.typing import Question, Status  # noqa: E402
from tests.verify.audit.watch.cells import CANNOT_SAY, DECIDED, REFUSED  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")

MEMBERS, BATCH, STEPS, DELTA = 400, 40, 30, 1e-5


def network(frozen=False, tied=False, dropout=False, dtype="float32"):
    model = nn.Sequential(nn.Linear(20, 20), nn.ReLU(), nn.Dropout(0.1), nn.Linear(20, 20), nn.Linear(20, 3))
    if frozen:
        model[4].requires_grad_(requires_grad=False)
    if tied:
        model[3].weight = model[0].weight
    if not (tied or dropout):
        model = nn.Sequential(model[0], nn.ReLU(), model[4])
    return model.to(getattr(torch, dtype))


def private(seed=0, model=None, engine=None, members=MEMBERS, norm=0.5, noise=1.0, workers=0, inner="SGD", **options):
    torch.manual_seed(seed)
    np.random.seed(seed)  # noqa: NPY002
    random.seed(seed)
    model = network() if model is None else model
    x = torch.randn(members, 20, dtype=next(model.parameters()).dtype)
    data = TensorDataset(3.0 * x, torch.randint(3, (members,)))
    engine = engine or PrivacyEngine()
    given = {"max_grad_norm": norm, **options}
    made = engine.make_private(
        module=model,
        optimizer=getattr(torch.optim, inner)([p for p in model.parameters() if p.requires_grad], lr=0.05),
        data_loader=DataLoader(data, batch_size=BATCH, shuffle=True, num_workers=workers),
        noise_multiplier=noise,
        criterion=nn.CrossEntropyLoss(reduction=options.get("loss_reduction", "mean")),
        **given,
    )
    return engine, made


def train(made, steps=STEPS, physical=None, before=None, after=None):
    """Train as the documentation of Opacus does; with ghost clipping the criterion is made, too."""
    hooks, optimizer, *criterion, loader = made
    model = hooks if isinstance(hooks, nn.Module) else hooks._module
    loss = criterion[0] if criterion else nn.CrossEntropyLoss()
    taken = 0
    while taken < steps:
        manager = contextlib.nullcontext(loader)
        if physical:
            manager = BatchMemoryManager(data_loader=loader, max_physical_batch_size=physical, optimizer=optimizer)
        with manager as batches:
            for x, y in batches:
                optimizer.zero_grad()
                loss(model(x), y).backward()
                if before:
                    before(taken)
                optimizer.step()
                taken += not optimizer._is_last_step_skipped
                if after and not optimizer._is_last_step_skipped:
                    after(taken)
                if taken == steps:
                    break
    return model


def watch_of(made, engine=None, claim="poisson", steps=STEPS, **options):
    model, optimizer, *_, loader = made
    if claim == "poisson":
        claim = cp.accounting.poisson(optimizer.noise_multiplier, rate=BATCH / MEMBERS, rounds=steps)
    return cp.watch(optimizer, loader, delta=DELTA, claim=claim, module=model, engine=engine, **options)


def failed(answer):
    return [finding.question.value for finding in answer.findings if finding.status is Status.FAILED]


def made_of(cell, seed=0):
    """Return an engine, what it makes of a cell's training, and its schedule, or None."""
    torch.manual_seed(seed)
    model = network(**{name: value for name, value in cell.model.items() if name != "inner"}) if cell.model else None
    options = dict(cell.options)
    if "noise_generator" in options:
        options["noise_generator"] = torch.Generator().manual_seed(options["noise_generator"])
    engine, made = private(seed, model, workers=cell.workers, inner=cell.model.get("inner", "SGD"), **options)
    schedule = cell.scheduler and getattr(schedulers, cell.scheduler[0])(made[1], gamma=cell.scheduler[1])
    return engine, made, schedule


def train_cell(cell, made, schedule):
    return train(made, **cell.loop, after=schedule and (lambda _: schedule.step()))


@pytest.mark.parametrize("name", DECIDED)
def test_a_kind_of_training_is_decided_and_left_bit_for_bit_as_it_was(name):
    cell = DECIDED[name]
    _, made, schedule = made_of(cell)
    without = train_cell(cell, made, schedule)
    engine, made, schedule = made_of(cell)
    watch = watch_of(made, engine, cell.claim)
    trained = train_cell(cell, made, schedule)
    answer = watch.close()
    assert all(map(torch.equal, trained.parameters(), without.parameters()))
    assert (answer.decision.outcome, failed(answer)) == ("PASSED", []), str(answer)
    assert answer.steps == STEPS


@pytest.mark.deep
@pytest.mark.parametrize("name", DECIDED)
def test_of_twenty_honest_trainings_of_a_kind_each_is_passed(name):
    cell = DECIDED[name]
    for seed in range(20):
        engine, made, schedule = made_of(cell, seed)
        watch = watch_of(made, engine, cell.claim)
        train_cell(cell, made, schedule)
        answer = watch.close()
        assert (answer.decision.outcome, failed(answer)) == ("PASSED", []), (seed, str(answer))


def change(kind, made, engine):
    """Return the watch over a training that is changed in such a way, the training, and what is done after a step."""
    model, optimizer, *_, loader = made
    if kind == "normalised":
        optimizer.clip_and_accumulate = normalised(optimizer)
    if kind in ("no module", "no loader"):
        claim = cp.accounting.poisson(1.0, rate=BATCH / MEMBERS, rounds=STEPS)
        given = {"module": model} if kind == "no loader" else {"loader": loader}
        return cp.watch(optimizer, delta=DELTA, claim=claim, engine=engine, **given), made, None
    watch = watch_of(made, engine)
    if kind == "other loader":
        return watch, (*made[:-1], private(seed=1)[1][-1]), None
    if kind == "replaced":
        optimizer.clip_and_accumulate = lambda: type(optimizer).clip_and_accumulate(optimizer)
    if kind == "other noise":
        optimizer.add_noise = lambda: type(optimizer).add_noise(optimizer)

    def freeze(taken):
        if taken == 3:
            model._module[0].requires_grad_(requires_grad=False)
            optimizer.param_groups[0]["params"] = [p for p in model.parameters() if p.requires_grad]

    def decay(_):
        with torch.no_grad():
            model._module[0].weight *= 0.999

    return watch, made, {"frozen later": freeze, "decay": decay}.get(kind)


@pytest.mark.parametrize("name", CANNOT_SAY)
def test_of_a_kind_of_training_a_question_stays_open_and_none_fails(name):
    cell = CANNOT_SAY[name]
    engine, made, _ = made_of(cell)
    watch, made, after = change(cell.change, made, engine)
    train(made, after=after)
    answer = watch.close()
    assert (answer.decision.outcome, failed(answer)) == ("CANNOT SAY", []), str(answer)
    assert answer.finding(cell.question).status in (Status.CANNOT_SAY, Status.NOT_LOOKED_AT)


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_is_said_in_a_line(name):
    _, made = private()
    cases = {
        "an optimizer that is not Opacus'": (torch.optim.SGD(network().parameters(), lr=0.1), "must be Opacus' DPOpt"),
        "a second watch": (made[1], "is watched already"),
    }
    optimizer, words = cases[name]
    if name == "a second watch":
        watch_of(made)
    with pytest.raises(ValueError, match=words):
        cp.watch(optimizer, delta=DELTA)


def test_a_schedule_of_noise_is_held_against_the_claim():
    _, made = private()
    watch, schedule = watch_of(made), schedulers.ExponentialNoise(made[1], gamma=0.97)
    train(made, after=lambda _: schedule.step())
    answer = watch.close()
    assert (answer.decision.outcome, failed(answer)) == ("NOT PASSED", ["accounting", "leak"]), str(answer)


def clips(norms_of, limit=1.0):
    """Return a clipping by some norms of the gradients of examples."""

    def patch(optimizer):
        def clip():
            samples = optimizer.grad_samples
            norms = norms_of([each.flatten(1) for each in samples])
            for p, each, norm in zip(optimizer.params, samples, norms, strict=True):
                factor = (limit * optimizer.max_grad_norm / (norm + 1e-6)).clamp(max=1.0)
                total = torch.einsum("n,n...->...", factor, each)
                p.summed_grad = total if p.summed_grad is None else p.summed_grad + total

        return clip

    return patch


def whole(parts):
    return [torch.cat(parts, dim=1).norm(dim=1)] * len(parts)


def unclipped(optimizer):
    def clip():
        for p, each in zip(optimizer.params, optimizer.grad_samples, strict=True):
            p.summed_grad = each.sum(dim=0)

    return clip


def normalised(optimizer):
    def clip():
        samples = optimizer.grad_samples
        norm = torch.cat([each.flatten(1) for each in samples], dim=1).norm(dim=1)
        for p, each in zip(optimizer.params, samples, strict=True):
            p.summed_grad = torch.einsum("n,n...->...", optimizer.max_grad_norm / (norm + 0.01), each)

    return clip


def by_rows(clip_rows):
    """Return a clipping that takes the gradients of examples as the rows of a matrix, and returns their sum."""

    def patch(optimizer):
        def clip():
            samples = optimizer.grad_samples
            total = clip_rows(torch.cat([each.flatten(1) for each in samples], dim=1), optimizer.max_grad_norm)
            sizes = [p.numel() for p in optimizer.params]
            for p, part in zip(optimizer.params, total.split(sizes), strict=True):
                p.summed_grad = part.reshape(p.shape)

        return clip

    return patch


def scale(rows, norm):
    return rows * (norm / (rows.norm(dim=1, keepdim=True) + 1e-6)).clamp(max=1.0)


# Clippings by which one member changes a step's sum by more than the clip norm.
UNSOUND = {
    "none": unclipped,
    "the mean, and no example": by_rows(lambda rows, norm: len(rows) * scale(rows.mean(dim=0)[None], norm)[0]),
    "each layer to the whole norm": clips(lambda parts: [each.norm(dim=1) for each in parts]),
    "padded by copies": by_rows(
        lambda rows, norm: scale(rows, norm).sum(dim=0) + (len(rows) % 64 + 1) * scale(rows[-1:], norm).sum(dim=0)
    ),
    "not the first": clips(lambda parts: [torch.cat([0.0 * each[:1], each[1:]]) for each in whole(parts)]),
    "biases forgotten": clips(lambda parts: whole([each for each in parts if each.shape[1] > 30])[:1] * len(parts)),
    "the last layer's norm": clips(lambda parts: [parts[-2].norm(dim=1)] * len(parts)),
    "to 1.1 clip norms": clips(whole, 1.1),
    "each coordinate": by_rows(lambda rows, norm: rows.clamp(-norm, norm).sum(dim=0)),
    "all by the longest": by_rows(
        lambda rows, norm: (rows * norm / max(norm, *rows.norm(dim=1).tolist(), norm)).sum(dim=0)
    ),
    "all by the first": clips(lambda parts: [each[:1].expand(len(each)) for each in whole(parts)]),
    "pairs": clips(lambda parts: [0.5 * (each + each.roll(1)) for each in whole(parts)]),
    "forgets what is far": clips(lambda parts: [torch.where(each > 500.0, 0.0, each) for each in whole(parts)]),
}


# Each of these has three seeds: pytest -k three_seeds runs all.


@pytest.mark.parametrize("name", UNSOUND)
def test_an_unsound_clipping_fails_by_a_shadow_member_in_three_seeds(name):
    for seed in range(3):
        _, made = private(seed)
        made[1].clip_and_accumulate = UNSOUND[name](made[1])
        watch = watch_of(made, steps=3)
        train(made, steps=3)
        answer = watch.close()
        assert failed(answer) == ["clipping"], str(answer)
        assert "one member more changes the clipped sum by" in answer.finding("clipping").because


def plain_step(model):
    with torch.no_grad():
        for p in model.parameters():
            p -= 0.1 * p.grad_sample.mean(dim=0)


def plain_step_of_data(model):
    for p in model.parameters():
        p.data -= 0.1 * p.grad_sample.mean(dim=0)


def test_two_holes_and_a_fifth_of_the_rate_fail_the_expected_finding_in_three_seeds():
    for seed in range(3):
        model = nn.Sequential(nn.Linear(20, 20), Centred(), nn.ReLU(), nn.Linear(20, 3))
        engine, made = private(seed, model)
        watch = watch_of(made, engine, steps=4)
        train(made, steps=4)
        assert failed(watch.close()) == ["clipping"]
        for step in (plain_step, plain_step_of_data):
            engine, made = private(seed)
            watch = watch_of(made, engine)
            train(made, before=lambda taken, made=made, step=step: step(made[0]) if taken == 4 else None)
            assert failed(watch.close()) == ["leak"]
        engine, made = private(seed)
        watch = watch_of(made, engine, cp.accounting.poisson(1.0, rate=BATCH / MEMBERS / 5, rounds=STEPS))
        train(made)
        assert failed(watch.close())[0] == "sampling"


GHOSTS = {
    "no factors": lambda module: lambda: torch.ones_like(module.get_norm_sample()),
    "the last layer's norm": lambda module: (
        lambda: (
            module.max_grad_norm / (0.0 * module.get_norm_sample() + module.trainable_parameters[-1]._norm_sample)
        ).clamp(max=1.0)
    ),
    "norms that are too small": lambda module: (
        lambda: (module.max_grad_norm / (0.5 * module.get_norm_sample())).clamp(max=1.0)
    ),
}


@pytest.mark.parametrize("name", GHOSTS)
def test_wrong_factors_of_ghost_clipping_fail_the_clipping(name):
    _, made = private(grad_sample_mode="ghost")
    module = made[0]
    module.get_clipping_coef = GHOSTS[name](module)
    watch = watch_of(made, steps=3)
    train(made, steps=3)
    answer = watch.close()
    assert failed(answer) == ["clipping"], str(answer)


def test_norms_of_ghost_clipping_that_are_computed_wrongly_fail_the_clipping():
    _, made = private(grad_sample_mode="ghost")
    module = made[0]
    right = module.get_norm_sample

    def halve():
        module.per_sample_gradient_norms = 0.5 * right()
        return module._per_sample_gradient_norms

    module.get_norm_sample = halve
    watch = watch_of(made, steps=3)
    train(made, steps=3)
    answer = watch.close()
    assert failed(answer) == ["clipping"], str(answer)
    assert "by the norm of its gradient alone" in answer.finding("clipping").because


def test_ghost_clipping_without_its_module_cannot_say():
    _, made = private(grad_sample_mode="ghost")
    watch = cp.watch(made[1], made[-1], delta=DELTA)
    train(made, steps=2)
    answer = watch.close()
    assert failed(answer) == []
    assert "the factors of ghost clipping were not seen" in answer.finding("clipping").because


def test_a_sound_clipping_of_ones_own_is_not_accused():
    _, made = private()
    made[1].clip_and_accumulate = normalised(made[1])
    watch = watch_of(made)
    train(made)
    answer = watch.close()
    assert (answer.decision.outcome, failed(answer)) == ("CANNOT SAY", [])
    assert "at most 1 clip norm" in answer.finding("clipping").because


class Dropped(nn.Module):
    """A layer whose dropout is no module of its own."""

    def forward(self, x):
        return nn.functional.dropout(x, 0.5, self.training)


@pytest.mark.parametrize("mode", ["hooks", "functorch", "ew", "ghost"])
def test_randomness_without_a_module_of_its_own_is_not_taken_for_a_mixture_of_examples(mode):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(20, 20), Dropped(), nn.ReLU(), nn.Linear(20, 3))
    engine, made = private(model=model, grad_sample_mode=mode)
    watch = watch_of(made, engine, steps=4)
    train(made, steps=4)
    answer = watch.close()
    assert failed(answer) == [], str(answer)
    assert "alone, " not in answer.finding("clipping").because


class Embedded(nn.Module):
    """Signs as words, of which one is padding: Opacus' gradient of an example has its row, and PyTorch's does not."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(2, 20, padding_idx=0)

    def forward(self, x):
        return self.table((x > 0.0).long()).mean(dim=1)


@pytest.mark.parametrize("mode", ["hooks", "ew"])
def test_a_word_that_pads_is_not_taken_for_a_mixture_of_examples(mode):
    torch.manual_seed(0)
    engine, made = private(model=nn.Sequential(Embedded(), nn.Linear(20, 3)), grad_sample_mode=mode)
    watch = watch_of(made, engine, steps=4)
    train(made, steps=4)
    answer = watch.close()
    assert failed(answer) == [], str(answer)
    assert "examples have the same gradients" in answer.finding("clipping").because


class Centred(nn.Module):
    """A layer that mixes the examples of a batch."""

    def forward(self, x):
        return x - x.mean(dim=0, keepdim=True)


@pytest.mark.parametrize(
    ("options", "is_given_raw"),
    [
        ({}, False),
        ({}, True),
        ({"grad_sample_mode": "ew"}, False),
        ({"grad_sample_mode": "ghost"}, False),
        ({"wrap_model": False}, False),
        ({"wrap_model": False}, True),
    ],
)
def test_a_model_that_mixes_examples_fails_the_clipping(options, is_given_raw):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(20, 20), Centred(), nn.ReLU(), nn.Linear(20, 3))
    engine, made = private(model=model, **options)
    watch = watch_of((model, *made[1:]) if is_given_raw else made, engine, steps=4)
    train(made, steps=4)
    answer = watch.close()
    assert failed(answer) == ["clipping"], str(answer)
    part = "output" if options.get("grad_sample_mode") == "ghost" else "gradient"
    assert f"an example's {part} depends on the others" in answer.finding("clipping").because


def test_without_the_module_an_answer_says_what_was_not_looked_at():
    torch.manual_seed(0)
    engine, made = private(model=nn.Sequential(nn.Linear(20, 20), Centred(), nn.ReLU(), nn.Linear(20, 3)))
    watch = watch_of((None, *made[1:]), engine)
    train(made)
    answer = watch.close()
    assert answer.decision.outcome == "PASSED", str(answer)
    assert "; not looked at: whether the model mixes examples" in answer.finding("clipping").because
    other = "; not looked at: what changes parameters and buffers that the optimizer does not train"
    assert other in answer.finding("leak").because
    assert "Do        Give module to the watch." in str(answer)


@pytest.mark.parametrize("mode", ["hooks", "functorch", "ew", "ghost"])
def test_with_module_and_engine_each_part_is_looked_at(mode):
    engine, made = private(grad_sample_mode=mode)
    watch = watch_of(made, engine)
    train(made)
    assert watch._record().observations == ()
    assert watch._record().clipping.alone > 0
    engine.get_epsilon = lambda _: 1 / 0
    accounting = watch.close().finding("accounting")
    assert accounting.status == "as claimed"
    assert accounting.because.endswith("; not looked at: the ε of Opacus' accountant, which ended in ZeroDivisionError")


def test_a_plain_step_on_the_side_fails_the_leak_and_other_moves_are_said():
    _, made = private()
    watch = watch_of(made)

    def plain(taken):
        if taken == 4:
            with torch.no_grad():
                for p in made[0].parameters():
                    p -= 0.1 * p.grad_sample.mean(dim=0)

    train(made, before=plain)
    answer = watch.close()
    assert failed(answer) == ["leak"]
    assert "before step 5: 0.weight, 0.bias, 2.weight and 1 more" in answer.finding("leak").because
    for mode in ("hooks", "ghost"):
        _, made = private(grad_sample_mode=mode)
        watch = watch_of(made)

        def decay(_, made=made):
            with torch.no_grad():
                made[0]._module[0].weight *= 0.999

        train(made, after=decay)
        answer = watch.close()
        assert (answer.decision.outcome, failed(answer)) == ("CANNOT SAY", [])
        assert "moved by something else than the optimizer, before step 2: 0.weight" in answer.finding("leak").because


@pytest.mark.parametrize("step", [plain_step, plain_step_of_data])
@pytest.mark.parametrize("taken", [4, 6], ids=["between two steps", "after the last step"])
def test_a_plain_step_after_a_step_fails_the_leak_while_its_gradients_are_there(step, taken):
    for seed in range(3):
        _, made = private(seed)
        watch = watch_of(made, steps=6)
        train(made, steps=6, after=lambda now, made=made: step(made[0]) if now == taken else None)
        answer = watch.close()
        assert failed(answer) == ["leak"], str(answer)
        when = "before step 5" if taken == 4 else "after step 6"
        assert f"along the gradient without clipping and noise, {when}: 0.weight" in answer.finding("leak").because


def test_moves_after_the_last_step_are_said_unless_it_is_another_format():
    """Loading the best checkpoint is one such move."""
    for move, words in (("decay", "; not looked at: what moved the parameters after the last step"), ("double", "")):
        _, made = private()
        watch = watch_of(made)
        model = train(made)
        if move == "decay":
            with torch.no_grad():
                model._module[0].weight *= 0.9
        else:
            model.double()
        answer = watch.close()
        assert answer.decision.outcome == "PASSED", str(answer)
        assert answer.finding("leak").because.endswith(words)
        assert ("after the last step" in str(answer)) == bool(words)


@pytest.mark.parametrize("taken", [3, STEPS], ids=["at a look", "after the last step"])
def test_a_write_to_the_data_of_frozen_weights_is_said(taken):
    _, made = private(model=network(frozen=True))
    frozen = made[0]._module[-1].weight

    def write(now):
        if now == taken:
            frozen.data[0, 0] += 1e-3

    watch = watch_of(made)
    train(made, after=write)
    finding = watch.close().finding("leak")
    assert finding.status == "cannot say"
    when = "before step 4" if taken == 3 else f"after step {STEPS}"
    assert finding.because == f"2.weight, which the optimizer does not train, changed {when}"


@pytest.mark.parametrize("is_first", [True, False], ids=["before the watch", "after it"])
def test_noise_that_the_accountant_does_not_read_is_missing(is_first):
    engine, made = private()
    optimizer = made[1]
    watch = None if is_first else watch_of(made, engine)
    add_noise = optimizer.add_noise

    def add_half():
        optimizer.noise_multiplier = 0.5
        add_noise()
        optimizer.noise_multiplier = 1.0

    optimizer.add_noise = add_half
    watch = watch or watch_of(made, engine)
    train(made)
    answer = watch.close()
    assert failed(answer) == ["noise", "leak"]
    assert float(answer.finding("noise").because.split()[3]) == pytest.approx(0.5, abs=0.02)


def test_a_divisor_that_follows_the_batch_fails_the_clipping():
    _, made = private()
    optimizer = made[1]

    def divide():
        for p in optimizer.params:
            p.grad /= len(optimizer.grad_samples[0])

    optimizer.scale_grad = divide
    watch = watch_of(made)
    train(made)
    answer = watch.close()
    assert failed(answer) == ["clipping"]
    assert "is divided by" in answer.finding("clipping").because


def test_sampling_is_read_from_the_loader_and_held_against_the_claim():
    # Nothing is claimed: the sampler's own rate.
    engine, made = private()
    watch = watch_of(made, engine, claim=None)
    train(made)
    answer = watch.close()
    assert answer.decision.outcome == "PASSED", str(answer)
    assert "rate 0.1" in answer.finding("accounting").because
    # Batches of a shuffle, where the accountant counts on sampling.
    engine, made = private(poisson_sampling=False)
    watch = watch_of(made, engine, claim=None)
    train(made)
    assert failed(watch.close()) == ["sampling"]
    # A claim of a fifth of the rate.
    engine, made = private()
    claim = cp.accounting.poisson(1.0, rate=BATCH / MEMBERS / 5, rounds=STEPS)
    watch = watch_of(made, engine, claim=claim)
    train(made)
    assert failed(watch.close())[:2] == ["sampling", "accounting"]


@pytest.mark.parametrize("workers", [0, 2])
def test_evaluation_on_the_same_loader_and_broken_epochs_are_no_fault(workers):
    engine, made = private(workers=workers)
    watch = watch_of(made, engine)

    def evaluate(taken):
        if taken % 3 == 0:
            with torch.no_grad():
                for x, _ in made[-1]:
                    made[0](x)

    train(made, after=evaluate)
    for steps in (5, 3):
        train(made, steps=steps)
    answer = watch.close()
    assert "sampling" not in failed(answer)
    assert answer.finding("sampling").status is Status.AS_CLAIMED, str(answer)


def test_two_batches_of_a_step_are_its_members_together():
    # Opacus has no accumulation with Poisson sampling, so that the claim of it fails and nothing else does.
    engine, made = private(poisson_sampling=False)
    watch = watch_of(made, engine)
    model, optimizer, loader = made
    for _ in range(2):
        for i, (x, y) in enumerate(loader):
            nn.functional.cross_entropy(model(x), y).backward()
            if i % 2:
                optimizer.step()
                optimizer.zero_grad()
    answer = watch.close()
    assert answer.steps == len(loader)
    assert failed(answer)[0] == "sampling"
    assert answer.finding("clipping").status is Status.AS_CLAIMED
    assert answer.finding("noise").status is Status.AS_CLAIMED
    assert watch._record().sampling.mean == 2 * BATCH


def test_what_a_watch_cannot_see_is_said_and_never_failed():
    # Another loader than the one that is watched.
    engine, made = private()
    other = private(seed=1)[1][-1]
    watch = watch_of(made, engine)
    train((*made[:-1], other))
    answer = watch.close()
    assert failed(answer) == []
    assert "are no batch of the loader" in answer.finding("sampling").because
    # A method that another tool has put over the watch.
    _, made = private()
    watch = watch_of(made)
    optimizer = made[1]
    optimizer.clip_and_accumulate = lambda: type(optimizer).clip_and_accumulate(optimizer)
    train(made, steps=2)
    answer = watch.close()
    assert failed(answer) == []
    assert "clipping was not called in step 1" in answer.finding("clipping").because
    # Layers that are frozen amid the training.
    _, made = private()
    watch = watch_of(made)

    def freeze(taken):
        if taken == 3:
            made[0]._module[0].requires_grad_(requires_grad=False)
            made[1].param_groups[0]["params"] = [p for p in made[0].parameters() if p.requires_grad]

    train(made, steps=6, after=freeze)
    answer = watch.close()
    assert failed(answer) == []
    assert "other parameters are trained from step 4 on" in answer.finding("noise").because
    # No loader.
    _, made = private()
    watch = cp.watch(made[1], delta=DELTA)
    train(made)
    answer = watch.close()
    assert answer.finding("sampling").status is Status.NOT_LOOKED_AT


def test_two_batches_of_a_step_by_poisson_sampling_are_an_error_of_opacus_and_not_of_the_watch():
    engine, made = private()
    watch = watch_of(made, engine)
    batches, model = iter(made[-1]), made[0]

    def backward():
        x, y = next(batches)
        nn.functional.cross_entropy(model(x), y).backward()

    backward()
    with pytest.raises(ValueError, match="not compatible with grad accumulation"):
        backward()
    answer = watch.close()
    assert (answer.steps, failed(answer)) == (0, [])


def test_gradients_longer_than_the_norms_of_layers_are_counted():
    engine, made, _ = made_of(DECIDED["per-layer clipping"])
    watch = watch_of(made, engine, steps=2)
    train(made, steps=2)
    watch.close()
    assert watch._record().clipping.long > 0


def test_empty_batches_are_steps():
    _, made = private(members=60, noise=1.0)
    model, optimizer, loader = made
    loader.batch_sampler.sample_rate, loader.batch_sampler.steps = 0.02, STEPS
    watch = cp.watch(optimizer, loader, delta=DELTA, module=model)
    sizes = []
    for x, y in loader:
        sizes.append(len(x))
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y, reduction="sum").backward()
        optimizer.step()
    assert 0 in sizes
    answer = watch.close()
    assert answer.steps == len(sizes)
    assert failed(answer) == [], str(answer)


def test_a_closed_watch_leaves_everything_as_it_was():
    engine, made = private()
    _, optimizer, loader = made
    fields, kind, hook = set(vars(optimizer)), type(loader.batch_sampler), optimizer.step_hook
    watch = watch_of(made, engine)
    with pytest.raises(ValueError, match="optimizer: is watched already"):
        watch_of(made, engine)
    train(made, steps=2)
    watch.close()
    assert set(vars(optimizer)) == fields
    assert type(loader.batch_sampler) is kind
    assert optimizer.step_hook == hook
    watch_of(made, engine).close()


def test_wrong_use_is_refused():
    with pytest.raises(ValueError, match="loader: needs an optimizer"):
        cp.watch(loader=[1], delta=DELTA)
    _, made = private()
    with pytest.raises(ValueError, match="members: is read from the optimizer"):
        cp.watch(made[1], made[-1], delta=DELTA, members=3)


def test_a_training_goes_on_with_an_accountant_that_does_not(tmp_path):
    engine, made = private()
    watch = watch_of(made, engine, steps=2 * STEPS)
    train(made)
    watch.close()
    watch.save(tmp_path / "watch.json")
    engine, made = private(seed=1)
    watch = watch_of(made, engine, steps=2 * STEPS)
    watch.resume(tmp_path / "watch.json")
    train(made)
    answer = watch.close()
    assert (answer.decision.outcome, answer.steps) == ("PASSED", 2 * STEPS), str(answer)
    assert "by the accountant" not in answer.finding("accounting").because


def test_a_record_of_opacus_is_saved_without_examples(tmp_path):
    engine, made = private()
    watch = watch_of(made, engine)
    train(made)
    watch.close()
    watch.save(tmp_path / "watch.json")
    assert len((tmp_path / "watch.json").read_text()) < 12_000
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Question.NOISE in {finding.question for finding in watch.answer().findings}
