"""What a report is made from: a run, and what lies beside it in its folder."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from canaryproof.verify.check.results import Run


@dataclass(frozen=True)
class Training:
    """What ``canaryproof train`` left in a folder: its document, and the seconds of each training."""

    document: Mapping[str, Any]
    timings: Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Material:
    """A run and its companions.

    Attributes
    ----------
    run
        The run.
    environment
        What made it: command, versions, processor.
    canife, performance
        Documents of ``canaryproof benchmark``, where they were left beside the run.
    trainings
        Trainings that were left in folders of the run's, by the folder's name.
    unjudged
        Numbers of documents' statements that this version judges and the run did not, by suite.
    unfinished
        How far an interrupted run came, or nothing.
    """

    run: Run
    environment: Mapping[str, str] = field(default_factory=dict)
    canife: Mapping[str, Any] | None = None
    performance: Mapping[str, Any] | None = None
    trainings: Mapping[str, Training] = field(default_factory=dict)
    unjudged: Mapping[str, int] = field(default_factory=dict)
    unfinished: str = ""
