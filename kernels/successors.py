"""Names, options and keys that have left what is public, each with its successor and the version in which it left.

A successor of one word stands in for what has left, with a warning. A longer one says what to do instead, in an error.
A row stays for one minor version at least.
"""

import logging
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

# Successor and version by scope: for names ``canaryproof`` or a module of its, as ``canaryproof.accounting``; for
# attributes the class; for options the command, as ``canaryproof audit``; for keys the record that a file is read into,
# or ``experiment``; and for lower bounds the catalogue.
SUCCESSORS: dict[str, dict[str, tuple[str, str]]] = {
    "canaryproof": {
        "FlowerInspection": ("watch(strategy, …), which needs no nodes of its own", "0.3"),
        "Inspection": ("watch, which needs no members of its own", "0.3"),
        "JaxInspection": ("watch, whose gradients, noise and batches wrap the loop's functions", "0.3"),
        "OpacusCanaries": ("watch with insert=…, whose canaries have the scores", "0.3"),
        "OpacusInspection": ("watch, which needs no examples of its own", "0.3"),
        "TrainingAudit": ("watch, which is a callback of Trainer itself", "0.3"),
        "left_out": ("omitted_tensors", "0.3"),
        "scheduled": ("fixed_schedule", "0.3"),
        "self_test": ("watch, or the command canaryproof self-test", "0.3"),
    },
    "canaryproof self-test": dict.fromkeys(
        ("--members", "--dim", "--noise-multiplier", "--clip-norm", "--rate", "--divisor", "--seed"),
        ("the function's own watch, which takes the claim", "0.3"),
    ),
    "canaryproof.accounting": {"stated": ("epsilon_delta", "0.3")},
    "canaryproof.bounds.METHODS": dict.fromkeys(
        ("bonferroni", "fixed-threshold"), ("fixed-sequence, the default", "0.3")
    ),
    "Audit": {
        "can_pass": ("decision.outcome, of an audit with the argument notice", "0.3"),
        "doubtful": ("finding('input') and finding('accounting')", "0.3"),
        "equal_variances": ("has_equal_variances", "0.3"),
        "hides": ("masking_variance", "0.3"),
        "largest_of": ("rounds_per_score", "0.3"),
        "maps_faults": ("has_blind_spots", "0.3"),
        "noticed": ("noticed_share", "0.3"),
        "other_trace": ("has_other_trace", "0.3"),
        "passes": ("decision.outcome, of an audit with the argument notice", "0.3"),
        "refuted": ("is_refuted", "0.3"),
        "relied_on": ("bound_inclusion", "0.3"),
        "seen": ("has_trace", "0.3"),
        "verdict": ("decision, and findings for what it rests on", "0.3"),
    },
    "canaryproof.typing": {"ClaimVerdict": ("GateOutcome for a decision, and Status for its findings", "0.3")},
    "CanaryClients": {"skipped": ("skipped_rounds", "0.3")},
    "Claim": {"unsampled": ("with_known_rounds", "0.3")},
    "Enclosure": {"tight": ("is_tight", "0.3")},
    "EstimateRow": {"certified": ("enclosure", "0.3")},
    "InstrumentTest": {"failed": ("has_failed", "0.3")},
    "Method": {"serves": ("can_use", "0.3")},
    "Replay": {"failed": ("has_failed", "0.3")},
    "Replayed": {"exceeds": ("is_excessive", "0.3")},
    "ResidualTests": {"measured": ("measured_deviation", "0.3")},
    "RoundScores": {"carried": ("carryover", "0.3")},
    "RoundTraces": {"measures": ("noise_source", "0.3")},
    "Schedule": {"unobserved": ("unobserved_members", "0.3")},
    "ScoreSample": {"separated": ("perfect_separation", "0.3")},
    "experiment": {"ours": ("unstated", "0.3")},
}


_warn = logging.getLogger("canaryproof").warning


def current(scope: str, old: str, warn: Callable[[str], None] = _warn) -> str:
    """Return the successor of what has left a scope; a ``ValueError`` says what to do where none stands in."""
    if old not in SUCCESSORS.get(scope, {}):
        return old
    successor, version = SUCCESSORS[scope][old]
    line = f"{old} has left {scope} in {version}: use {successor}"
    if not re.fullmatch(r"[\w.-]+", successor):
        raise ValueError(line)
    warn(line)
    return successor


def current_name(scope: str, old: str) -> str:
    """Return the successor of a name or an attribute, with a warning at the line of who asked, or as an AttributeError.

    It is for a ``__getattr__`` to call.
    """
    try:
        return current(scope, old, lambda line: warnings.warn(line, DeprecationWarning, stacklevel=5))
    except ValueError as error:
        raise AttributeError(str(error)) from None


def current_options(command: str, arguments: Sequence[str]) -> list[str]:
    """Return a command's arguments, its options as they are called now."""
    parts = (argument.partition("=") for argument in arguments)
    return ["".join((current(command, option), *value)) for option, *value in parts]


def current_keys(record: str, document: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the document of a record, its keys as they are called now."""
    return {current(record, key): value for key, value in document.items()}
