"""Command ``canaryproof plan``: how many canaries an audit needs, what they see, and what they cost."""

import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from canaryproof.verify.audit.cli.options import SEED, FilePath, check_output, one_line, overwrite_option
from canaryproof.verify.audit.files.errors import InputError
from canaryproof.verify.audit.files.writing import write_output

if TYPE_CHECKING:
    from canaryproof.verify.audit.accounting.accountant import Neighbours
    from canaryproof.verify.audit.answer.plan import AuditPlan
    from canaryproof.verify.audit.answer.rounds_plan import RoundsPlan


@click.command("plan")
@click.option(
    "--noise-multiplier", type=float, required=True, help="Standard deviation of a round's noise, in clip norms."
)
@click.option("--dim", type=float, required=True, help="Dimension d of the release: its number of parameters.")
@click.option("--rounds", type=float, default=1, show_default=True, help="Number of rounds.")
@click.option("--delta", type=float, default=1e-6, show_default=True, help="Target delta of (epsilon, delta)-privacy.")
@click.option("--claim", type=float, help="Claimed epsilon; that of the noise in the release unless given.")
@click.option("--rate", type=float, help="Rate of Poisson sampling; plan for a training whose rounds are all scored.")
@click.option("--participations", type=float, help="Rounds of each client instead, which the attacker knows.")
@click.option(
    "--data-norm",
    type=float,
    help="With these: norm of the others' clipped sum in a round, in clip norms; 0 by default.",
)
@click.option(
    "--neighbours",
    type=click.Choice(["add-or-remove", "replace"]),
    default="add-or-remove",
    show_default=True,
    help="Neighbours of the claim: one record more or less, or another one.",
)
@click.option("--confidence", type=float, default=0.95, show_default=True, help="Confidence of the audit's bounds.")
@click.option(
    "--notice",
    type=float,
    default=0.5,
    show_default=True,
    help="Share of the claimed noise that the audit's gate asks to be noticed.",
)
@click.option(
    "--difference",
    is_flag=True,
    help="The change of a model will be released, which may be no plain sum: plan for its rounds.",
)
@click.option("--all-rounds", is_flag=True, help="Plan for an attacker who sees each round (Algorithm 3).")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.option(
    "--out",
    type=FilePath(),
    metavar="FILE.json",
    help="Write the plan to publish, and FILE.secret.json to keep.",
)
@click.option(
    "--canary-seed", "seed", type=SEED, help="Seed of the canaries, with --out; drawn at random unless given."
)
@overwrite_option
def plan_command(
    noise_multiplier: float,
    dim: float,
    rounds: float,
    delta: float,
    claim: float | None,
    rate: float | None,
    participations: float | None,
    data_norm: float | None,
    neighbours: "Neighbours",
    confidence: float,
    notice: float,
    difference: bool,
    all_rounds: bool,
    as_json: bool,
    out: Path | None,
    seed: int | None,
    overwrite: bool,
) -> None:
    """Plan an audit before the run.

    Says how many canaries see which fault with probability 90%, and what they cost in accuracy; for a release, and with
    --all-rounds, in time too. Says what no number of them sees, and the lines that carry the plan out.

    The audit is that of the released vector, one noisy sum of all rounds. With --all-rounds it is that of each canary's
    largest cosine with any round. Each canary takes part in one round, with the clip norm. With --rate or
    --participations canaries take part as clients do, and the noise is measured in each round. So it is with
    --difference, where each takes part in one round unless one of these is given: weight decay and momentum make the
    change of a model another vector than the sum of its rounds.

    With --out the plan is decided: publish the file before the run, and keep the other one with the seed and a nonce.
    Then "audit --plan" says whether the audit is as planned.
    """
    known = rate is not None or participations is not None or difference
    if known and all_rounds:
        raise InputError("--all-rounds: must not be given with --rate, --participations or --difference")
    if data_norm is not None and not known:
        raise InputError("--data-norm: must be given with --rate, --participations or --difference")
    if seed is not None and out is None:
        raise InputError("--canary-seed: must be given with --out")
    secret = None if out is None else out.with_name(f"{out.stem}.secret.json")
    for path in filter(None, (out, secret)):
        check_output(path, (".json",), 0, overwrite=overwrite)
    # Loads compiled kernels, which a mistake in the options does not wait for.
    from canaryproof.verify.audit.answer import plan_file
    from canaryproof.verify.audit.answer.plan import plan
    from canaryproof.verify.audit.answer.rounds_plan import plan_rounds

    planned: AuditPlan | RoundsPlan
    gate = {"confidence": confidence, "notice": notice}
    try:
        if known:
            planned = plan_rounds(
                noise_multiplier,
                dim,
                rounds,
                rate=rate,
                participations=participations,
                delta=delta,
                claim=claim,
                data_norm=data_norm or 0.0,
                neighbours=neighbours,
                **gate,
            )
        else:
            planned = plan(noise_multiplier, dim, rounds, delta, claim, all_rounds, neighbours, **gate)
    except ValueError as error:
        raise InputError(f"--{str(error).replace('_', '-', 1)}") from error
    drawn = None if out is None else plan_file.draw_secret(seed)
    # JSON has no infinity, which the ε of a fault may be.
    rows = [row | {"epsilon": row["epsilon"] if math.isfinite(row["epsilon"]) else None} for row in planned.rows()]
    document = asdict(planned) | {"shares" if known else "faults": rows, "commands": planned.commands()}
    if out is not None and secret is not None and drawn is not None:
        # The file is published, and terminals are recorded: neither says the seed.
        document |= {"commands": planned.commands("SEED", out.name)}
        public_bytes, secret_bytes = plan_file.file_contents(planned, drawn, document)
        write_output(secret, lambda file: file.write(secret_bytes), private=True, overwrite=overwrite)
        try:
            write_output(out, lambda file: file.write(public_bytes), overwrite=overwrite)
        except InputError:
            secret.unlink()
            raise
    if not as_json:
        click.echo(planned.text() if out is None else planned.text("SEED", out.name))
        if secret is not None:
            click.echo(f"\nSEED stands in {one_line(str(secret))}, which only you can read.")
        return
    click.echo(json.dumps(document, indent=2, allow_nan=False))
