"""Private training in two processes with Opacus under a watch: ``python examples/distributed_training.py``.

Each process trains on its half of scikit-learn's digits, and gloo adds their gradients up. Each has a watch, and that
of the first one answers for both. With ``--fsdp`` each holds a shard of the model, and Opacus clips without gradients
of examples (ghost clipping): there a hundred canaries join the training, and the audit of their scores is the answer.
The lines that end in ``# audit`` are all that this adds.

Whom the ε holds against: neighbours are data with and without one digit. The attacker sees the noised sum of the
gradients of every step, of both processes together. He knows all other digits and the rate at which they are drawn.
The processes trust each other: without ``--fsdp`` the sum of the first one has all of the noise, and that of the other
one has none.
"""

import argparse
import tempfile
from pathlib import Path

import torch
from opacus import PrivacyEngine
from opacus.distributed import DifferentiallyPrivateDistributedDataParallel
from opacus.optimizers import DPOptimizer
from opacus.utils.fsdp_utils import FSDP2Wrapper
from opacus_training import CLIP_NORM, DELTA, digits, perceptron
from torch import multiprocessing, nn
from torch.utils.data import DataLoader

import canaryproof as cp
from canaryproof import audit, watch  # audit

FAULTS = {
    "noise-halved": "half of the noise is added, where the accountant counts on all of it",
    "noise-divided": "each process adds the noise over the number of processes",
    "sum-left-out": "the gradients of the processes are not added up",
    "clipped-in-one": "the first process alone clips",
    "drawn-from-all": "each process draws from all examples, not from its part",
    "accounted-rate": "the claim has the rate over the number of processes",
}


def break_optimizer(optimizer, loader, fault):
    """Break the privacy of a process's optimizer."""
    sigma, norm, processes = optimizer.noise_multiplier, optimizer.max_grad_norm, optimizer.world_size
    # What FSDP and DPDDP have in common is their own way to add noise.
    add_noise, clip = optimizer.add_noise, optimizer.clip_and_accumulate

    def add_part_of_noise():
        optimizer.noise_multiplier = sigma / (2 if fault == "noise-halved" else processes)
        add_noise() if fault == "noise-halved" else DPOptimizer.add_noise(optimizer)
        optimizer.noise_multiplier = sigma

    def clip_in_the_first():
        optimizer.max_grad_norm = norm if optimizer.rank == 0 else 1e6 * norm
        clip()
        optimizer.max_grad_norm = norm

    if fault in ("noise-halved", "noise-divided"):
        optimizer.add_noise = add_part_of_noise
    elif fault == "sum-left-out":
        optimizer.reduce_gradients = lambda: None
    elif fault == "clipped-in-one":
        optimizer.clip_and_accumulate = clip_in_the_first
    elif fault == "drawn-from-all":
        sampler = loader.batch_sampler
        sampler.rank, sampler.num_replicas, sampler.num_samples = 0, 1, sampler.total_size


def private(rank, processes, folder, fault=None, fsdp=False, seed=0, noise_multiplier=1.0, batches=8):
    """Join the other processes, and make the model, the loss, the optimizer and the loader private."""
    torch.set_num_threads(1)
    store = f"file://{folder}/store"
    torch.distributed.init_process_group("gloo", init_method=store, rank=rank, world_size=processes)
    torch.manual_seed(seed)
    data, _ = digits()
    engine = PrivacyEngine(accountant="prv")
    wrapped = FSDP2Wrapper if fsdp else DifferentiallyPrivateDistributedDataParallel
    model, criterion = wrapped(perceptron()), nn.CrossEntropyLoss()
    # From here on processes draw their own batches and noise.
    torch.manual_seed(processes * seed + rank)
    model, optimizer, *criterions, loader = engine.make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.5),
        criterion=criterion,
        data_loader=DataLoader(data, batch_size=-(-len(data) // batches)),
        noise_multiplier=noise_multiplier,
        max_grad_norm=CLIP_NORM,
        grad_sample_mode="ghost_fsdp" if fsdp else "hooks",
    )
    break_optimizer(optimizer, loader, fault)
    return model, criterions[0] if criterions else criterion, optimizer, loader


def claimed(noise_multiplier, batches, steps, processes, fault):
    """Return what is claimed of the training."""
    rate = 1 / batches / (processes if fault == "accounted-rate" else 1)
    return cp.accounting.poisson(noise_multiplier, rate=rate, rounds=steps)


def train(
    rank, processes, folder, fault=None, fsdp=False, seed=0, noise_multiplier=1.0, batches=8, epochs=8, canaries=None
):
    """Train in one of some processes; the first one writes the answer into the folder."""
    made = private(rank, processes, folder, fault, fsdp, seed, noise_multiplier, batches)
    model, criterion, optimizer, loader = made
    claim = claimed(noise_multiplier, len(loader), epochs * len(loader), processes, fault)
    watched = watch(optimizer, loader, delta=DELTA, claim=claim, module=model, insert=canaries, seed=seed)  # audit
    for _ in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            criterion(model(x), y).backward()
            optimizer.step()
    if rank == 0:
        text = f"{claim}: ε = {claim.epsilon(DELTA):.3f} at δ = {DELTA:g}, for one digit\n\n"
        if canaries:
            scores = watched.canaries.scores("likelihood")  # audit
            scores.save(Path(folder) / "scores.json")  # audit
            text += str(audit(scores, DELTA, claim=claim))  # audit
        else:
            text += str(watched.close())  # audit
        (Path(folder) / "audit.txt").write_text(text, encoding="utf-8")
    torch.distributed.destroy_process_group()


def main():
    """Do as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, default=2, help="number of processes")
    parser.add_argument("--break", dest="fault", choices=FAULTS, help="break the privacy on purpose")
    parser.add_argument("--fsdp", action="store_true", help="cut the model into shards, and insert 100 canaries")
    parser.add_argument("--canaries", type=int, help="number of canaries that join the training")
    options = parser.parse_args()
    canaries = 100 if options.fsdp and options.canaries is None else options.canaries
    given = (options.fault, options.fsdp, 0, 1.0, 8, 8, canaries)
    with tempfile.TemporaryDirectory() as folder:
        multiprocessing.spawn(train, (options.processes, folder, *given), options.processes)
        print((Path(folder) / "audit.txt").read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
