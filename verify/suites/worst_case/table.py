"""The worst input found so far for each kernel and domain: a table under version control, with its hash."""

import csv
import hashlib
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from canaryproof.verify.suites.worst_case.search import Case, Domain
from canaryproof.verify.suites.worst_case.targets import Arguments

_TABLE, _HASH = "worst_inputs.csv", "worst_inputs.csv.sha256"
_FIELDS = ("function", "domain", "arguments", "lo", "hi", "ulps", "share")


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


def row_of(function: str, domain: Domain, case: Case) -> WorstInput:
    """Return a case as a row."""
    return WorstInput(function, domain, case.arguments, case.enclosure.lo, case.enclosure.hi, case.ulps, case.share)


def read() -> tuple[WorstInput, ...]:
    """Read the table that comes with the package; a ``ValueError`` if its hash is another."""
    folder = files(__package__)
    content = (folder / _TABLE).read_bytes()
    if hashlib.sha256(content).hexdigest() != (folder / _HASH).read_text().split()[0]:
        raise ValueError(f"{_TABLE}: does not have the hash in {_HASH}")
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


def write(rows: tuple[WorstInput, ...], folder: Path) -> None:
    """Write a table and its hash into a folder."""
    with (folder / _TABLE).open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(_FIELDS)
        for row in rows:
            arguments = " ".join(x.hex() for x in row.arguments)
            writer.writerow((row.function, row.domain, arguments, row.lo.hex(), row.hi.hex(), row.ulps, row.share))
    digest = hashlib.sha256((folder / _TABLE).read_bytes()).hexdigest()
    (folder / _HASH).write_text(f"{digest}  {_TABLE}\n")
