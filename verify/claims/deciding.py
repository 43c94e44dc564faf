"""Claims that only a data set decides: by the user's finished experiments, or not yet."""

from collections.abc import Callable
from functools import partial
from typing import Any

from canaryproof.verify.claims.experiments import BENCHMARK, CLIENTS_MARGIN, DECISIONS, POPULATIONS, UNDECIDABLE
from canaryproof.verify.claims.finished import Measurements
from canaryproof.verify.claims.judging import found
from canaryproof.verify.results import Context, Outcome, Verdict

_COMMAND = "canaryproof verify claims --data DIR"


def needs_data(claim: str, what: str) -> Callable[[Context], Outcome]:
    """Return the judge of a claim that only a data set decides.

    Parameters
    ----------
    claim
        Its id, as in ``experiments``.
    what
        The data set, in words.
    """
    return partial(decided, claim, what)


def decided(claim: str, what: str, context: Context, known: str = "", **evidence: Any) -> Outcome:
    """Judge a claim by the user's experiments; if they are not there, say what decides it.

    Parameters
    ----------
    claim, what
        As for ``needs_data``.
    context
        With the experiments.
    known
        What the finding begins with.
    evidence
        Numbers behind that.
    """
    if claim in UNDECIDABLE:
        finding = f"{known}needs {what}; no training here decides it: {UNDECIDABLE[claim]}"
        return found(Verdict.NEEDS_DATA, finding, data=what, **evidence)
    decision, there, lacking = DECISIONS[claim], context.measurements, ""
    if there is not None and all(_in_full(there, name) for name in decision.experiments):
        others = {name: _other_data(there, name) for name in decision.experiments}
        lacking = "".join(f"; {name} is there on {data}" for name, data in others.items() if data)
        outcome = None if lacking else decision.judge(there)
        if outcome is not None:
            return found(outcome.verdict, known + outcome.finding, **evidence, **outcome.evidence)
        lacking = lacking or "; what is there lacks a cell or its canaries"
    elif there is not None:
        small = [name for name in decision.experiments if name in there.experiments and not _in_full(there, name)]
        lacking = "".join(f"; {name} is there at its quick size, which decides nothing" for name in small)
    commands = [_command(name) for name in decision.experiments]
    # The command that decides stands last, and the trainings before it.
    told = " and ".join(f"`{command}`" for command in commands)
    finding = f"{known}needs {what}{lacking}; {told}, then `{_COMMAND}`, decide it"
    return found(Verdict.NEEDS_DATA, finding, data=what, command="; ".join([*commands, _COMMAND]), **evidence)


def _in_full(there: Measurements, name: str) -> bool:
    if name == BENCHMARK:
        return there.benchmark is not None
    return name in there.experiments and there.experiments[name].size == "full"


def _other_data(there: Measurements, name: str) -> str:
    """Say what an experiment was trained on, if it is not what the paper has."""
    if name == BENCHMARK:
        return ""
    wanted = POPULATIONS[name]
    for cell in there.experiments[name].cells:
        near = abs(cell.clients / wanted.clients - 1.0) <= CLIENTS_MARGIN
        if cell.federation != wanted.federation or not near:
            return (
                f"{cell.federation} with {cell.clients:,} clients, and the paper's on {wanted.federation} with "
                f"{wanted.clients:,}"
            )
    return ""


def _command(name: str) -> str:
    if name == BENCHMARK:
        return "canaryproof benchmark canife --data FOLDER --level full --out DIR/canife"
    return f"canaryproof train {name} --data FOLDER --size full --out DIR/{name}"
