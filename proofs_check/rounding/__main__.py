"""Repeat the proofs of the kernels' error bounds: ``make prove``."""

import json
import sys
import time
from importlib.resources import files
from pathlib import Path

import click

from canaryproof.proofs_check.rounding import budgets, canary_quantile, gappa, pins, primitives


def _canary_quantile(folder: Path | None) -> tuple[bool, str]:
    """Try every word, and compare with the certificate; write it into ``folder`` instead if given."""
    certificate = canary_quantile.prove()
    if folder:
        (folder / canary_quantile.CERTIFICATE).write_text(canary_quantile.written(certificate))
    holds = certificate == canary_quantile.read() if not folder else True
    return holds, (
        f"{certificate.words:,} words: relative error {certificate.error:.4g}, stated "
        f"{canary_quantile.STATED_ERROR:g}; distance of the law to the normal one {certificate.kolmogorov:.3g}"
    )


def _straight_line(folder: Path | None) -> tuple[bool, str]:
    """Let Gappa prove the bounds of operations on pairs, where it is installed."""
    if folder:
        gappa.write(folder)
    scripts = gappa.scripts()
    if not gappa.installed():
        return True, f"{len(scripts)} scripts not run: gappa is not installed"
    failed = [name for name, script in scripts.items() if not gappa.proves(script)]
    return (
        not failed,
        f"Gappa proves {len(scripts) - len(failed)} of {len(scripts)} scripts {' '.join(failed)}".rstrip(),
    )


def _primitives(folder: Path | None) -> tuple[bool, str]:
    """Prove the bounds of the primitives, and compare with their table; write it into ``folder`` instead if given."""
    text = primitives.written()
    if folder:
        (folder / primitives.TABLE).write_text(text)
    same = bool(folder) or text == (files(__package__) / primitives.TABLE).read_text()
    bounds = json.loads(text)
    broken = [name for name, row in bounds.items() if row["proven"] > row["stated"]]
    return same and not broken, f"{len(bounds) - len(broken)} of {len(bounds)} bounds are as stated"


def _budgets(folder: Path | None) -> tuple[bool, str]:
    """Compose the bounds of the kernels, and compare with their table; write it into ``folder`` instead if given."""
    text = budgets.written()
    if folder:
        (folder / budgets.TABLE).write_text(text)
    same = bool(folder) or text == (files(__package__) / budgets.TABLE).read_text()
    worst = budgets.proven()
    listed = ", ".join(f"{name} {ulps:.2f}" for name, ulps in worst.items())
    return same and len(worst) == len({row.function for row in budgets.read()}), f"ulps in practice: {listed}"


def _pins(folder: Path | None) -> tuple[bool, str]:
    """Compare the code with that of the proofs; record it in ``folder`` instead if given."""
    if folder:
        (folder / pins.TABLE).write_text(pins.written())
    here, recorded = pins.digests(), pins.read()
    changed = [] if folder else [name for name in here | recorded if here.get(name) != recorded.get(name)]
    return not changed, f"of other code than the proofs: {'; '.join(changed)}" if changed else f"{len(here)} proofs"


PROOFS = {
    "straight-line code": _straight_line,
    "primitives": _primitives,
    "budgets": _budgets,
    "code of the proofs": _pins,
    "canary quantile": _canary_quantile,
}


@click.command("prove")
@click.option(
    "--write",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder into which to write certificates and tables, in place of comparing with those of the package.",
)
def main(write: Path | None) -> None:
    """Repeat all proofs; the exit status is 1 if one fails or is not that of its certificate."""
    failed = False
    for name, prove in PROOFS.items():
        began = time.perf_counter()
        try:
            holds, text = prove(write)
        except RuntimeError as error:
            holds, text = False, str(error)
        failed |= not holds
        click.echo(f"{name}: {'proven' if holds else 'FAILED'}; {text} ({time.perf_counter() - began:.0f} s)")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
