"""Search long for worst inputs of the kernels and write their table anew: ``make worst-inputs``."""

import csv
import hashlib
import sys
from dataclasses import fields
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import track

from canaryproof.verify.papers.suites.worst_case.search import Domain, search
from canaryproof.verify.papers.suites.worst_case.table import HASH, TABLE, WorstInput, read
from canaryproof.verify.papers.suites.worst_case.targets import TARGETS


def main(effort: int, folder: Path) -> None:
    """Search for each kernel's worst inputs from those known on, and write the table."""
    # Another seed than the verification's, which is to look elsewhere.
    rng = np.random.default_rng(1)
    known = read() if (folder / TABLE).exists() else ()
    rows: list[WorstInput] = []
    for target, domain in track([(t, d) for t in TARGETS for d in Domain], console=Console(stderr=True)):
        starts = [row.arguments for row in (*known, *rows) if row.function == target.name]
        case = search(target, domain, effort, rng, starts)[0]
        ends = case.enclosure.lo, case.enclosure.hi
        rows.append(WorstInput(target.name, domain, case.arguments, *ends, case.ulps, case.share))
    write(tuple(rows), folder)


def write(rows: tuple[WorstInput, ...], folder: Path) -> None:
    """Write a table and its hash into a folder."""
    with (folder / TABLE).open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([field.name for field in fields(WorstInput)])
        for row in rows:
            arguments = " ".join(x.hex() for x in row.arguments)
            writer.writerow((row.function, row.domain, arguments, row.lo.hex(), row.hi.hex(), row.ulps, row.share))
    digest = hashlib.sha256((folder / TABLE).read_bytes()).hexdigest()
    (folder / HASH).write_text(f"{digest}  {TABLE}\n")


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
