"""How often an audit has ε, and refutes half of the noise: ``python examples/ten_seeds.py NAME ...``.

It trains like an example with ten seeds, and with ten others and half of the noise. 100 canaries take part. A table
says how many intervals of the composed ε̂ have the ε that is claimed. It also says how many trainings with half of the
noise fail by their noise or their leak. The last column has the share of the noise that is refuted with probability
99.9%.
"""

import argparse
import multiprocessing
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import cache
from importlib import import_module
from pathlib import Path

from canaryproof import Scores, accounting, audit

SEEDS = 10
DELTA = 1e-5
# Poisson sampling at rate 1/8 for 64 steps.
SETTING = {"noise_multiplier": 1.0, "batches": 8, "epochs": 8, "canaries": 100}


# Each training loads a framework that the others do not need.
def adapters(seed, halved):
    """Train adapters of a transformer for 32 steps, with canaries; a failed check stops the training."""
    import transformer_training as example

    with tempfile.TemporaryDirectory() as folder:
        options = {"epochs": 4, "insert": 100, "seed": seed, "fault": "noise-halved" if halved else None}
        training = example.train(example.written(), folder, **options)
    claim = replace(training.claim, rounds=training.watch.steps)
    return audit(training.watch.canaries.scores("likelihood"), DELTA, claim=claim)


@cache
def two_processes():
    """Return two processes, which load their libraries once for all seeds."""
    return ProcessPoolExecutor(2, multiprocessing.get_context("spawn"))


def distributed(seed, halved, fsdp=False):
    """Train in two processes with Opacus."""
    import distributed_training as example

    with tempfile.TemporaryDirectory() as folder:
        options = 2, folder, "noise-halved" if halved else None, fsdp, seed
        # They wait for each other, so that each takes one.
        for part in [two_processes().submit(example.train, rank, *options) for rank in (0, 1)]:
            part.result()
        scores = Scores.load(Path(folder) / "scores.json")
    return audit(scores, DELTA, claim=accounting.poisson(1.0, rate=1 / 8, rounds=64))


def clipped(seed, halved, clipping="per_layer"):
    """Train with Opacus' clipping by several norms, or by one that adapts."""
    import opacus_training as example

    data, fault = example.digits()[0], "noise-per-microbatch" if halved else None
    training = example.train(example.perceptron(), data, seed=seed, fault=fault, clipping=clipping, **SETTING)
    return example.audit_claim(training)


def correlated(seed, halved):
    """Train with jax_privacy's correlated noise; each canary is in one of 20 steps."""
    import jax_privacy_training as example

    options = {"noise_multiplier": 1.0, "batches": 20, "epochs": 1, "canaries": 100, "correlated": True}
    fault = "noise-per-microbatch" if halved else None
    return example.audit_claim(example.train(example.digits()[0], seed=seed, fault=fault, **options))


def served(seed, halved, module, fault):
    """Train on a federated server for 20 rounds; an alarm stops the training."""
    from federated_clients import Audited

    audited = Audited(seed)
    import_module(module).train(audited, fault if halved else None, seed)
    return audited.result()


TRAININGS = {
    "adapters": ("adapters on a transformer", adapters, {}),
    "dpddp": ("Opacus' DPDDP, two processes", distributed, {}),
    "fsdp": ("Opacus' FSDP, two processes", distributed, {"fsdp": True}),
    "per_layer": ("Opacus' per-layer clipping", clipped, {}),
    "adaptive": ("Opacus' adaptive clipping", clipped, {"clipping": "adaptive"}),
    "correlated": ("jax_privacy's correlated noise", correlated, {}),
    "flower": ("Flower's wrapper, fixed clipping", served, {"module": "flower_wrappers", "fault": "sampled-apart"}),
    "pfl": ("pfl-research", served, {"module": "pfl_training", "fault": "noise-scale"}),
    "nvflare": ("NVFlare's filters", served, {"module": "nvflare_app", "fault": "noise-halved"}),
}


def main():
    """Print a row for each training that is named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="+", choices=TRAININGS, metavar="NAME", help=", ".join(TRAININGS))
    print("| training | ε | intervals with ε | half of the noise refuted | refuted with 99.9% |\n|---|---|---|---|---|")
    for name in parser.parse_args().names:
        title, train, options = TRAININGS[name]
        holding = refuted = 0
        shares = []
        for seed in range(SEEDS):
            honest, broken = train(seed, False, **options), train(SEEDS + seed, True, **options)
            holding += bool(honest.estimate.low <= honest.claim <= honest.estimate.high)
            failed = [str(finding.question) for finding in broken.findings if finding.status == "failed"]
            refuted += bool({"noise", "leak"}.intersection(failed))
            # A training that an alarm stops falsely has fewer rounds, and notices less.
            shares.append(honest.mechanism.noticed_share(honest.noise_level, 0.999))
            row = name, seed, honest.estimate.low, honest.claim, honest.estimate.high, shares[-1], failed
            print(*row, file=sys.stderr, flush=True)
        print(
            f"| {title} | {honest.claim:.2f} | {holding} of {SEEDS} | {refuted} of {SEEDS} | {min(shares):.0%} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
