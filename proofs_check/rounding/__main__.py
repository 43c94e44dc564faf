"""Repeat the proofs of the kernels' error bounds: ``make prove``."""

import sys
import time
from pathlib import Path

import click

from canaryproof.proofs_check.rounding import canary_quantile


def _canary_quantile(folder: Path | None) -> tuple[bool, str]:
    """Try every word, and compare with the certificate; write it into ``folder`` instead if given."""
    found = canary_quantile.prove()
    if folder:
        (folder / canary_quantile.CERTIFICATE).write_text(canary_quantile.written(found))
    holds = found == canary_quantile.read() if not folder else True
    return holds, (
        f"{found.words:,} words: relative error {found.error:.4g}, stated {canary_quantile.STATED_ERROR:g}; "
        f"distance of the law to the normal one {found.kolmogorov:.3g}"
    )


PROOFS = {"canary quantile": _canary_quantile}


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
