"""Private training in two processes with Opacus, audited by canaries: ``python examples/distributed_training.py``.

Each process trains on its half of scikit-learn's digits, and gloo adds their gradients up. With ``--fsdp`` each holds
a shard of the model, and Opacus clips without gradients of examples (ghost clipping). The lines that end in ``# audit``
are all that an audit adds. Each process makes its slice of the same canaries, which enter once.

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
from opacus.utils.fsdp_utils import FSDP2Wrapper
from opacus_training import CLIP_NORM, DELTA, digits, perceptron
from torch import multiprocessing, nn
from torch.utils.data import DataLoader

import canaryproof as cp
from canaryproof import audit, watch  # audit

FAULTS = {"noise-halved": "half of the noise is added, where the accountant counts on all of it"}


def train(
    rank, processes, folder, fault=None, fsdp=False, seed=0, noise_multiplier=1.0, batches=8, epochs=8, canaries=100
):
    """Train in one of some processes; the first one writes the audit into the folder."""
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
        noise_multiplier=noise_multiplier / (2 if fault == "noise-halved" else 1),
        max_grad_norm=CLIP_NORM,
        grad_sample_mode="ghost_fsdp" if fsdp else "hooks",
    )
    criterion = criterions[0] if criterions else criterion
    steps = epochs * len(loader)
    claim = cp.accounting.poisson(noise_multiplier, rate=1 / len(loader), rounds=steps)
    watched = watch(optimizer, loader, delta=DELTA, claim=claim, insert=canaries, seed=seed)  # audit
    for _ in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            criterion(model(x), y).backward()
            optimizer.step()
    if rank == 0:
        text = f"{claim}: ε = {claim.epsilon(DELTA):.3f} at δ = {DELTA:g}, for one digit\n\n"
        scores = watched.canaries.scores("likelihood")  # audit
        scores.save(Path(folder) / "scores.json")  # audit
        text += str(audit(scores, DELTA, claim=claim))  # audit
        (Path(folder) / "audit.txt").write_text(text, encoding="utf-8")
    torch.distributed.destroy_process_group()


def main():
    """Do as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, default=2, help="number of processes")
    parser.add_argument("--break", dest="fault", choices=FAULTS, help="break the privacy on purpose")
    parser.add_argument("--fsdp", action="store_true", help="cut the model into shards")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        multiprocessing.spawn(train, (options.processes, folder, options.fault, options.fsdp), options.processes)
        print((Path(folder) / "audit.txt").read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
