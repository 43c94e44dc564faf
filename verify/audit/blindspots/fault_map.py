"""The map of faults: which instrument of an auditor notices which fault of a training, and after how many rounds.

It is the one list of faults that people put into private trainings. The atlas of blind spots, the suite's simulated
trainings and the examples' switches have the names of its rows. ``python -m tests.fault_map`` measures its cells.
"""

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

# A watch takes every step of a training, and has the residual and the sampling record with it. The other instruments
# look at one thing each, by hand. Audits are those of attackers at known rounds, with all others' data.
WATCH = "watch"
INSTRUMENTS = (WATCH, "two seeds", "residual", "sampling record", "replay")
AUDITS = {"audit, 100 canaries": 100, "audit, 10 canaries": 10}
COLUMNS = (*INSTRUMENTS, *AUDITS)


@dataclass(frozen=True)
class MappedFault:
    """A fault of a training, and what notices it."""

    name: str
    title: str
    setting: str  # Its parameter in the atlas where it was measured; empty if it has none
    pitfall: str  # The pitfall of jax_privacy's documentation that it is; empty if none
    # Numbers of rounds after which a column notices it in nine of ten trainings, by columns that do.
    rounds: Mapping[str, int]
    reason: str  # Why no instrument notices it; empty if one does

    @property
    def instrument(self) -> str | None:
        """The instrument that notices it first, and of several the one that looks at the least; None if none does."""
        return min(
            (name for name in reversed(INSTRUMENTS) if name in self.rounds), key=self.rounds.__getitem__, default=None
        )

    @property
    def detector(self) -> str:
        """Its instrument, with the setting at which that was measured; "none" if nothing detects it."""
        return f"{self.instrument or 'none'} ({self.setting})" if self.setting else self.instrument or "none"


@cache
def fault_map() -> Mapping[str, MappedFault]:
    """Return the faults by name."""
    lines = (files(__package__) / "fault_map.csv").read_text(encoding="utf-8").splitlines()
    rows = csv.DictReader(lines)
    return {
        row["name"]: MappedFault(
            row["name"], row["fault"], row["setting"], row["pitfall"],
            {column: int(row[column]) for column in COLUMNS if row[column]}, row["reason"],
        )
        for row in rows
    }  # fmt: skip


def detector_of(name: str) -> str:
    """Return the instrument that detects a fault of the atlas; two of its rows are no faults of a training."""
    fault = fault_map().get(name)
    return "no fault of a training" if fault is None else fault.detector


def summary() -> str:
    """Say in a sentence how many faults audits notice, and how many a self-test does."""
    faults = fault_map().values()
    audit, count = next(iter(AUDITS.items()))
    seen = sum(audit in fault.rounds for fault in faults)
    tested = sum(fault.instrument is not None for fault in faults)
    return (
        f"Of {len(faults)} faults in the documentation's map of faults, {count} canaries at known rounds notice "
        f"{seen}, and an auditor's instruments notice {tested}."
    )
