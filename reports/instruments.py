"""The page of instruments: which one sees which fault of a training, and after how many rounds."""

from collections.abc import Mapping, Sequence

from canaryproof.reports.page import Page, provenance
from canaryproof.verify.audit.blindspots.fault_map import COLUMNS
from canaryproof.verify.audit.markup.markdown import Section, page
from canaryproof.verify.papers.check.results import Run
from canaryproof.verify.papers.records.evidence import InstrumentSight, InstrumentsMeasured, records

_TITLE = "Which instrument sees which fault of a training"
_ABOUT = """\
{provenance}. Each simulated training has
{members:,} members, Poisson sampling at rate {rate:g}, clip norm 1, noise multiplier {sigma:g} and {dim:,} coordinates.
It has one fault."""
_READING = """\
A cell has the number of rounds after which the instrument notices the fault in at least {seen:.0%} of the trainings. A
replay runs one step twice. "–" says that the instrument does not notice it within {most} rounds."""
_NOTE = """\
A *watch* takes every step of the training, and runs its clipping with members of its own making. The *residual* is what
a round releases less all that was summed. The *sampling record* says who took part. An *audit* is an attacker's: its
canaries join the clipped sum, and it knows their rounds and all members' updates. Each test has level 1e-6, so that
honest trainings raise no alarm."""


def text(run: Run) -> str:
    """Render the page of a run of the suite ``blindspots``; nothing if each fault has one instrument at most.

    The quick level measures the one that is to see a fault, and its finding says whether it does.
    """
    measured = records(run, InstrumentsMeasured, "blindspots.instruments.").get("power")
    if measured is None or all(len(fault.sights) < 2 for fault in measured.faults.values()):
        return ""
    about = _ABOUT.format(
        provenance=provenance(run, "blindspots"), members=measured.members, rate=measured.rate,
        sigma=measured.noise_multiplier, dim=measured.dim,
    )  # fmt: skip
    faults = measured.faults.values()
    names = [name for name in COLUMNS if any(name in fault.sights for fault in faults)]
    most = max((sight.rounds for fault in faults for sights in fault.sights.values() for sight in sights), default=0)
    visible = [fault for fault in faults if fault.sees]
    seen = sum(_first(fault.sights.get(fault.sees, ()), measured.seen) is not None for fault in visible)
    finding = (
        f"Instruments notice {seen} of {len(visible)} faults that they are made for. No instrument here notices "
        f"{len(faults) - len(visible)} others."
    )
    rows = tuple((fault.title, *(_cell(fault.sights, name, measured.seen) for name in names)) for fault in visible)
    unseen = tuple((fault.title, fault.reason) for fault in faults if not fault.sees)
    sections = [
        Section("Faults that an instrument notices", ("fault", *names), rows, _NOTE),
        Section("Faults that no instrument notices", ("fault", "why"), unseen, ""),
    ]
    reading = _READING.format(seen=measured.seen, most=most)
    return page(_TITLE, finding, (reading, about), sections).rstrip() + "\n"


def _first(sights: Sequence[InstrumentSight], share: float) -> int | None:
    """Return the first number of rounds after which an instrument notices a fault in a share of the trainings."""
    return next((sight.rounds for sight in sights if sight.noticed >= share * sight.runs), None)


def _cell(sights: Mapping[str, Sequence[InstrumentSight]], name: str, share: float) -> str:
    rounds = _first(sights.get(name, ()), share)
    if rounds is None:
        return "–"
    unit = "step" if name == "replay" else "round"
    return f"{rounds} {unit}{'s' if rounds > 1 else ''}"


PAGE = Page(
    "instruments",
    "Instruments",
    _TITLE,
    text,
    file="instruments.md",
    about="faults of a training, and which instrument of an auditor notices each",
)
