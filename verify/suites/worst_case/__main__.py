"""Search long for worst inputs and write the table of this folder anew: ``make worst-inputs``."""

import sys
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import track

from canaryproof.verify.suites.worst_case.search import Domain, search
from canaryproof.verify.suites.worst_case.table import WorstInput, read, row_of, write
from canaryproof.verify.suites.worst_case.targets import TARGETS


def main(effort: int, folder: Path) -> None:
    """Search for each kernel's worst inputs from those known on, and write the table."""
    # Another seed than the verification's, which is to look elsewhere.
    rng = np.random.default_rng(1)
    known = read() if (folder / "worst_inputs.csv").exists() else ()
    rows: list[WorstInput] = []
    for target, domain in track([(t, d) for t in TARGETS for d in Domain], console=Console(stderr=True)):
        starts = [row.arguments for row in (*known, *rows) if row.function == target.name]
        rows.append(row_of(target.name, domain, search(target, domain, effort, rng, starts)[0]))
    write(tuple(rows), folder)


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
