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
                click.echo(f"  {theorem}: {_resting(axioms)}")


def _resting(axioms: list[str]) -> str:
    """Say what a theorem rests on."""
    real = sorted(axiom.split(".")[-1] for axiom in axioms if not sources.machine_integer(axiom))
    machine = len(axioms) - len(real)
    if not axioms:
        return "no axiom"
    return f"real numbers ({', '.join(real)})" + (f" and machine integers ({machine} axioms)" if machine else "")


if __name__ == "__main__":
    main()
