"""Adapters on a language model, trained privately with Opacus: ``python examples/transformer_training.py``.

A Llama of two million parameters is made from a configuration, without a download. Its weights stay frozen, and
adapters of low rank (peft's LoRA) are trained, by transformers' ``Trainer`` or with ``--loop`` by a loop of
accelerate's. The text is generated, or with ``--data FOLDER`` that of the folder's ``.txt`` files. The lines that end
in ``# audit`` are all that a watch adds.

Whom the ε holds against: neighbours are texts with and without one window of 32 characters, not a person or a play.
The attacker sees the noised sum of the adapters' gradients of every step. He knows the frozen model, all other windows
and the rate at which windows were drawn, and not the draws themselves.
"""

import argparse
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch
import transformers
from accelerate import Accelerator
from opacus import PrivacyEngine
from peft import LoraConfig, get_peft_model
from torch.utils.data import DataLoader, Dataset

import canaryproof as cp
from canaryproof import watch  # audit

CLIP_NORM, DELTA, WINDOW = 1.0, 1e-5, 32
HELD_OUT = 64
FAULTS = {"noise-halved": "half of the noise is added, where the accountant counts on all of it"}


class Windows(Dataset):
    """Windows of a text, with its bytes for tokens."""

    def __init__(self, text, number):
        tokens = np.frombuffer(text.encode(), np.uint8)
        starts = np.linspace(0, len(tokens) - WINDOW, number).astype(int)
        self.rows = [torch.tensor(tokens[start : start + WINDOW], dtype=torch.long) for start in starts]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]


def collate(rows):
    """Return a batch as the model takes it, also one without a window."""
    tokens = torch.stack(rows) if rows else torch.zeros((0, WINDOW), dtype=torch.long)
    return {"input_ids": tokens, "labels": tokens}


def written(folder=None, seed=0):
    """Return the text of a folder, or sentences that are drawn from a small grammar."""
    if folder is not None:
        return "\n".join(path.read_text(encoding="utf-8") for path in sorted(Path(folder).glob("*.txt")))
    rng = np.random.default_rng(seed)
    names, verbs, things = (
        ["Anna", "Ben", "Cleo", "David"],
        ["sees", "likes", "finds", "buys"],
        ["tea", "bread", "books", "ships"],
    )
    return " ".join(f"{rng.choice(names)} {rng.choice(verbs)} {rng.choice(things)}." for _ in range(4000))


def adapted_llama(seed=0):
    """Return a Llama made from a configuration, with adapters in its attention."""
    torch.manual_seed(seed)
    configuration = transformers.LlamaConfig(
        vocab_size=256, hidden_size=192, intermediate_size=512, num_hidden_layers=4, num_attention_heads=4,
        max_position_embeddings=WINDOW, tie_word_embeddings=True, use_cache=False,
    )  # fmt: skip
    model = transformers.LlamaForCausalLM(configuration)
    return get_peft_model(model, LoraConfig(r=8, lora_alpha=16, target_modules=["q_proj", "v_proj", "o_proj"]))


class PrivateTrainer(transformers.Trainer):
    """A Trainer whose batches are drawn by Poisson sampling, and that clears gradients as Opacus needs it."""

    def __init__(self, *args, loader, **options):
        super().__init__(*args, **options)
        self.loader = loader

    def get_train_dataloader(self):
        """Return Opacus' loader, which draws each window with the same probability."""
        return self.loader

    def training_step(self, *args, **options):
        """Clear the sums of the last step, which the model's own ``zero_grad`` leaves."""
        self.optimizer.zero_grad()
        return super().training_step(*args, **options)


def train(
    text,
    folder,
    *,
    noise_multiplier=1.0,
    windows=256,
    batches=8,
    epochs=8,
    insert=None,
    fault=None,
    loop=False,
    resume=None,
    save_steps=10**6,
    stop=None,
    seed=0,
):
    """Train, and return the model with the analytical ε and the canaries."""
    model, data = adapted_llama(), Windows(text, windows)
    torch.manual_seed(seed)
    engine = PrivacyEngine(accountant="prv")
    trained = [p for p in model.parameters() if p.requires_grad]
    _, optimizer, loader = engine.make_private(
        module=model.train(),
        optimizer=torch.optim.AdamW(trained, lr=1e-2),
        data_loader=DataLoader(data, batch_size=windows // batches, collate_fn=collate),
        noise_multiplier=noise_multiplier / (2 if fault == "noise-halved" else 1),
        max_grad_norm=CLIP_NORM,
        wrap_model=False,
    )
    steps = epochs * len(loader)
    claim = cp.accounting.poisson(noise_multiplier, rate=loader.sample_rate, rounds=steps)
    training = SimpleNamespace(model=model, steps=steps, claim=claim, seconds=time.perf_counter(), watch=None)
    callbacks = []
    training.watch = watch(optimizer, loader, delta=DELTA, claim=claim, module=model, insert=insert, seed=seed)  # audit
    callbacks.append(training.watch)  # audit
    if loop:
        train_by_loop(model, optimizer, loader, training, folder, epochs)
    else:
        options = transformers.TrainingArguments(
            output_dir=folder, num_train_epochs=epochs, save_steps=save_steps, logging_steps=len(loader),
            max_grad_norm=0.0, lr_scheduler_type="constant", remove_unused_columns=False, use_cpu=True,
            report_to="none", disable_tqdm=True, max_steps=stop or -1, seed=seed,
        )  # fmt: skip
        trainer = PrivateTrainer(
            model=model, args=options, loader=loader, optimizers=(optimizer, None), callbacks=callbacks
        )
        trainer.train(resume_from_checkpoint=resume)
    training.seconds = time.perf_counter() - training.seconds
    return training


def train_by_loop(model, optimizer, loader, training, folder, epochs):
    """Train by a loop of accelerate's, with a checkpoint after each epoch."""
    accelerator = Accelerator(cpu=True)
    model, optimizer = accelerator.prepare(model, optimizer)
    for _ in range(epochs):
        for batch in loader:
            optimizer.zero_grad()
            accelerator.backward(model(**batch).loss)
            optimizer.step()
            if training.watch is not None and training.watch.has_failed:
                return
        accelerator.save_state(folder)
        if training.watch is not None:
            training.watch.save(Path(folder) / "watch.json")


def small():
    """Train for four steps."""
    with tempfile.TemporaryDirectory() as folder:
        return train(written(), folder, windows=32, batches=4, epochs=1)


def loss(model, data):
    """Return the mean loss of a model on windows, in nats a character."""
    model.eval()
    with torch.no_grad():
        return float(model(**collate(data.rows)).loss)


def main():
    """Do as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="folder of .txt files")
    parser.add_argument("--loop", action="store_true", help="a loop of accelerate's in place of Trainer")
    parser.add_argument("--break", dest="fault", choices=FAULTS, help="break the privacy on purpose")
    parser.add_argument("--out", help="folder of the checkpoints and of the record; by default one that is deleted")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        folder = options.out or folder
        text = written(options.data)
        training = train(text, folder, fault=options.fault, loop=options.loop)
        trained = sum(p.numel() for p in training.model.parameters() if p.requires_grad)
        print(f"{training.claim}")
        print(f"ε = {training.claim.epsilon(DELTA):.3f} at δ = {DELTA:g}, for one window of {WINDOW} characters")
        print(
            f"{trained:,} of {sum(p.numel() for p in training.model.parameters()):,} parameters are trained; left out:"
        )
        reasons = cp.omitted_tensors(training.model)
        for reason in sorted({*reasons.values()}):
            print(f"- {reason}: {sum(each == reason for each in reasons.values())}")
        first, last = loss(adapted_llama(), Windows(text, HELD_OUT)), loss(training.model, Windows(text, HELD_OUT))
        print(f"loss {first:.3f} before and {last:.3f} after {training.seconds:.0f} s\n")
        print(training.watch.close())


if __name__ == "__main__":
    main()
