"""Check the proofs of this folder by Rocq's kernel: ``make prove-rocq``."""

import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from canaryproof.proofs_check.rocq import sources


@click.command("prove-rocq")
def main() -> None:
    """Check all files that this machine can check.

    The exit status is 1 if one has an error, a gap or an axiom of its own.
    """
    with TemporaryDirectory() as folder:
        for name in sources.NAMES:
            if packages := sources.missing(name):
                click.echo(f"{name}.v: not checked, install {' '.join(packages)}")
                continue
            began = time.perf_counter()
            try:
                theorems = sources.check(name, sources.read(name), Path(folder))
            except (sources.NotProvenError, subprocess.CalledProcessError) as error:
                click.echo(f"FAILED: {error}")
                sys.exit(1)
            click.echo(f"{name}.v: checked ({time.perf_counter() - began:.0f} s)")
            for theorem, axioms in theorems.items():
                rests = f"the axioms of real numbers: {', '.join(sorted(axioms))}" if axioms else "no axiom"
                click.echo(f"  {theorem}: {rests}")


if __name__ == "__main__":
    main()
