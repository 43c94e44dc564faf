"""A watch over Opacus in two processes: what the first one answers, and that nothing of the training changes.

All trainings run in one pair of processes, which print what each of them sees.
"""

import json
import subprocess
import sys

import pytest

pytest.importorskip("torch", reason="needs torch")
pytest.importorskip("opacus", reason="needs opacus")

from tests.verify.audit.watch.cells import CANNOT_SAY_ELSEWHERE, DECIDED_ELSEWHERE

PRELUDE = """
import itertools, json, sys
import numpy as np
import torch
from opacus import PrivacyEngine
from opacus.distributed import DifferentiallyPrivateDistributedDataParallel as DPDDP
from opacus.utils.fsdp_utils import FSDP2Wrapper
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
import canaryproof as cp

store, folder, rank = sys.argv[1], sys.argv[2], int(sys.argv[3])
torch.set_num_threads(1)
torch.distributed.init_process_group("gloo", init_method="file://" + store, rank=rank, world_size=2)

def private(seed=0, members=600, batch=60, wrapper=DPDDP, **options):
    torch.manual_seed(seed)
    x, y = 3.0 * torch.randn(members, 20), torch.randint(3, (members,))
    net = wrapper(nn.Sequential(nn.Linear(20, 20), nn.ReLU(), nn.Linear(20, 3)))
    torch.manual_seed(2 * seed + rank)
    made = PrivacyEngine().make_private(
        module=net, optimizer=torch.optim.SGD(net.parameters(), lr=0.05), criterion=nn.CrossEntropyLoss(),
        data_loader=DataLoader(TensorDataset(x, y), batch_size=batch), noise_multiplier=1.0,
        **{"max_grad_norm": 0.5, **options},
    )
    return made

def train(made, steps, watch=None):
    model, optimizer, *criterion, loader = made
    criterion, stopped = criterion[0] if criterion else nn.CrossEntropyLoss(), []
    batches = itertools.chain.from_iterable(iter(lambda: loader, None))
    for x, y in itertools.islice(batches, steps):
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        optimizer.step()
        stopped.append(watch is not None and watch.has_failed)
    return stopped

def said_by(watch, stopped=()):
    answer = watch.close()
    findings = {f.question.value: [f.status.value, f.because] for f in answer.findings}
    facts = {"outcome": answer.decision.outcome, "steps": answer.steps, "stopped": list(stopped)}
    return {"do": {f.question.value: f.do for f in answer.findings}, **facts, **findings}

def watched(made, steps=30, rate=0.1, **options):
    claim = cp.accounting.poisson(1.0, rate=rate, rounds=steps)
    return cp.watch(made[1], made[-1], delta=1e-5, claim=claim, module=made[0], **options)

kinds = {
    "flat clipping": {}, "per-layer clipping": {"clipping": "per_layer", "max_grad_norm": [0.25] * 4},
    "`ghost`": {"grad_sample_mode": "ghost"},
}
seen = {}
"""
HONEST = """
for name, options in kinds.items():
    seen[name] = []
    for seed in range(20):
        made = private(seed, **options)
        watch = watched(made)
        train(made, 30)
        seen[name].append(said_by(watch))
print(json.dumps(seen))
"""
CASES = """
for name, options in kinds.items():
    alone = private(**options)
    train(alone, 30)
    made = private(**options)
    watch = watched(made)
    stopped = train(made, 30, watch)
    equal = all(map(torch.equal, alone[0].parameters(), made[0].parameters()))
    seen[name] = said_by(watch, stopped) | {"equal": equal}

# A part of the local batches is empty, and Opacus does not yield them.
made = private(members=120, batch=3)
sizes, stepped = [], made[-1].batch_sampler
watch = watched(made, steps=40, rate=1 / 40)
train(made, 20, watch)
seen["few members"] = said_by(watch)

made = private()
first = made[1].add_noise
made[1].add_noise = lambda: [first(), [p.grad.add_(torch.randn_like(p)) for p in made[1].params if rank]]
watch = watched(made)
train(made, 30, watch)
seen["noise of another process than the first"] = said_by(watch)

made = private()
clip = made[1].clip_and_accumulate
def clip_in_the_first():
    made[1].max_grad_norm = 0.5 if rank == 0 else 1e6
    clip()
    made[1].max_grad_norm = 0.5
made[1].clip_and_accumulate = clip_in_the_first
watch = watched(made)
stopped = train(made, 8, watch)
seen["unclipped elsewhere"] = said_by(watch, stopped)

made = private()
made[1].reduce_gradients = lambda: None
watch = watched(made)
train(made, 8, watch)
seen["not added up"] = said_by(watch)

# The watch goes on from what the first process wrote.
made = private()
watch = watched(made, steps=60)
train(made, 30, watch)
watch.close()
watch.save(f"{folder}/watch.json")
torch.distributed.barrier()
made = private(seed=1)
watch = watched(made, steps=60)
watch.resume(f"{folder}/watch.json")
train(made, 30, watch)
seen["resumed"] = said_by(watch)

made = private(wrapper=FSDP2Wrapper, grad_sample_mode="ghost_fsdp")
watch = watched(made)
train(made, 30, watch)
seen["FSDP"] = said_by(watch)
print(json.dumps(seen))
"""


def run(program, folder):
    """Return what both processes print of each training."""
    commands = [
        [sys.executable, "-W", "ignore", "-c", PRELUDE + program, str(folder / "store"), str(folder), str(rank)]
        for rank in (0, 1)
    ]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for command in commands]
    return [json.loads(each.communicate(timeout=500)[0].splitlines()[-1]) for each in running]


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    return run(CASES, tmp_path_factory.mktemp("processes"))


def failed(answer):
    return [name for name, each in answer.items() if isinstance(each, list) and each[:1] == ["failed"]]


@pytest.mark.deep
def test_of_twenty_honest_trainings_of_a_kind_each_is_passed(tmp_path):
    first, _ = run(HONEST, tmp_path)
    assert sorted(first) == sorted(DECIDED_ELSEWHERE["processes"])
    for name, answers in first.items():
        wrong = [answer for answer in answers if answer["outcome"] != "PASSED"]
        assert (name, len(answers), wrong) == (name, 20, [])


@pytest.mark.parametrize("name", CANNOT_SAY_ELSEWHERE["processes"])
def test_of_a_kind_of_training_a_question_stays_open_and_none_fails(seen, name):
    answer = seen[0][name]
    assert (answer["outcome"], failed(answer)) == ("CANNOT SAY", [])
    open_ones = [key for key, each in answer.items() if isinstance(each, list) and each[:1] == ["cannot say"]]
    assert set(CANNOT_SAY_ELSEWHERE["processes"][name]) <= set(open_ones)


@pytest.mark.parametrize("name", DECIDED_ELSEWHERE["processes"])
def test_the_first_process_answers_for_both_and_the_training_is_bit_for_bit_as_it_was(seen, name):
    first, second = seen[0][name], seen[1][name]
    assert (first["outcome"], first["steps"]) == ("PASSED", 30), first
    assert first["equal"]
    assert second["equal"]
    assert second["outcome"] == "CANNOT SAY"
    assert second["noise"] == ["cannot say", "the first process answers for all"]
    assert "of 600 members" in first["sampling"][1]


def test_local_batches_that_are_empty_are_no_fault(seen):
    assert failed(seen[0]["few members"]) == []
    assert seen[0]["few members"]["steps"] == 20


def test_noise_of_another_process_than_the_first_cannot_be_said(seen):
    answer = seen[0]["noise of another process than the first"]
    assert "process 1 adds something to its clipped sum" in answer["noise"][1]


def test_what_is_wrong_in_another_process_fails_in_the_first_and_both_know_when_to_stop(seen):
    answer = seen[0]["unclipped elsewhere"]
    assert "clipping" in failed(answer)
    assert "in process 1" in answer["clipping"][1]
    assert answer["stopped"] == seen[1]["unclipped elsewhere"]["stopped"]
    assert answer["stopped"][-1]


def test_gradients_that_are_not_added_up_fail_the_noise(seen):
    assert "noise" in failed(seen[0]["not added up"])
    assert "trains by another gradient than the sum" in seen[0]["not added up"]["noise"][1]


def test_a_watch_of_several_processes_goes_on_from_a_file(seen):
    assert (seen[0]["resumed"]["outcome"], seen[0]["resumed"]["steps"]) == ("PASSED", 60), seen[0]["resumed"]


def test_shards_cannot_be_said_with_the_reason(seen):
    answer = seen[0]["FSDP"]
    assert answer["noise"][1].endswith("a process has a shard of what a step releases")
    assert "or insert canaries" in answer["do"]["noise"]
    assert all("canaries do not show this" in answer["do"][question] for question in ("clipping", "sampling"))
    assert answer["accounting"][0] == "as claimed"
