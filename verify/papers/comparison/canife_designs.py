"""The designs of CANIFE's canaries that ``benchmark canife`` compares: as printed, redesigned, and what lies between.

Section 5.4 of Andrew et al. (arXiv 2302.03098) optimises pixels and a soft label. For the rest it follows Maddock et
al. (arXiv 2210.02912), whose Section 4 prints Adam's rate 1, the constant C, and random pixels of a law that it leaves
open.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from canaryproof.verify.papers.canife import options
from canaryproof.verify.papers.canife.options import CanaryOptions


@dataclass(frozen=True)
class CompetingDesign:
    """How canaries are designed, by name."""

    name: str
    kind: Literal["printed", "choice", "change", "redesign"]
    options: CanaryOptions
    # Where a design begins: with random pixels of a law, or with the sample of a mock client, which it then leaves out.
    start: Literal["uniform", "normal", "sample"]
    inclusion: Literal["halves", "coins"] = "halves"  # the canary is in half of the trials, or in each by a coin


_PRINTED = CompetingDesign("as printed", "printed", replace(options.AS_PRINTED, label="soft"), "uniform")
_REDESIGNED = CompetingDesign("redesigned", "redesign", options.REDESIGNED, "normal")


def _choice(name: str, **changes: Any) -> CompetingDesign:
    return replace(_PRINTED, name=f"as printed, {name}", kind="choice", **changes)


def _change(name: str, **changes: Any) -> CompetingDesign:
    changed = replace(_PRINTED.options, **changes)
    return replace(_PRINTED, name=f"as printed, {name}", kind="change", options=changed)


# Each changes one thing of the printed design: where the papers leave a choice, or where the redesign differs. Normal
# pixels are both.
DESIGNS: Sequence[CompetingDesign] = (
    _PRINTED,
    _choice("with normal pixels", start="normal"),
    _choice("from a sample of the pool", start="sample"),
    _choice("with one class for a label", options=replace(_PRINTED.options, label="class")),
    _choice("with a coin for each trial", inclusion="coins"),
    _change("but rate 0.1", rate=_REDESIGNED.options.rate),
    _change("but a hinge at 1.25 C", norm_constant=_REDESIGNED.options.norm_constant),
    _change("but up to four restarts", restarts=_REDESIGNED.options.restarts),
    _REDESIGNED,
)
PRINTED, REDESIGNED = _PRINTED.name, _REDESIGNED.name
# The two that every scenario has.
BOTH = (_PRINTED, _REDESIGNED)
