"""The worst input found so far for each kernel and domain: a table under version control, with its hash."""

import csv
import hashlib
from dataclasses import dataclass
from importlib.resources import files

from canaryproof.verify.papers.suites.worst_case.search import Domain
from canaryproof.verify.papers.suites.worst_case.targets import Arguments

TABLE, HASH = "worst_inputs.csv", "worst_inputs.csv.sha256"


@dataclass(frozen=True)
class WorstInput:
    """A worst input; floats are written in hexadecimal, so that they are read as they were."""

    function: str  # Name of the target
    domain: Domain  # Where the input was looked for
    arguments: Arguments  # The input
    # lo, hi: certified enclosure of the exact result.
    lo: float
    hi: float
    # ulps, share: the error when the row was written, in ulps and as a share of its budget.
    ulps: float
    share: float


def read() -> tuple[WorstInput, ...]:
    """Read the table that comes with the package; a ``ValueError`` if its hash is another."""
    folder = files(__package__)
    content = (folder / TABLE).read_bytes()
    if hashlib.sha256(content).hexdigest() != (folder / HASH).read_text().split()[0]:
        raise ValueError(f"{TABLE}: does not have the hash in {HASH}")
    return tuple(
        WorstInput(
            row["function"],
            Domain(row["domain"]),
            tuple(map(float.fromhex, row["arguments"].split())),
            float.fromhex(row["lo"]),
            float.fromhex(row["hi"]),
            float(row["ulps"]),
            float(row["share"]),
        )
        for row in csv.DictReader(content.decode().splitlines())
    )
