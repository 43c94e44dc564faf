"""Check the proofs of this folder by Rocq's kernel: ``make prove-rocq``."""

import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from canaryproof.proofs_check.rocq import sources


@click.command("prove-rocq")
def main() -> None:
    """Check all files; the exit status is 1 if one has an error, a gap or an axiom."""
    if not sources.installed():
        click.echo(f"nothing checked: coqc is not installed (apt-get install {' '.join(sources.PACKAGES)})")
        return
    with TemporaryDirectory() as folder:
        for name in sources.NAMES:
            began = time.perf_counter()
            try:
                names = sources.check(name, sources.read(name), Path(folder))
            except sources.NotProvenError as error:
                click.echo(f"FAILED: {error}")
                sys.exit(1)
            click.echo(f"{name}.v: checked ({time.perf_counter() - began:.0f} s)")
            for theorem in names:
                click.echo(f"  {theorem}: no axiom")


if __name__ == "__main__":
    main()
