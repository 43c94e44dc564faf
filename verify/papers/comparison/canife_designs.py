"""The designs of CANIFE's canaries that ``benchmark canife`` compares: as printed, redesigned, and what lies between.

Section 5.4 of Andrew et al. (arXiv 2302.03098) optimises pixels and a soft label. For the rest it follows Maddock et
al. (arXiv 2210.02912), whose Section 4 prints Adam's rate 1, the constant C, and random pixels of a law that it leaves
open.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from canaryproof.verify.papers.canife import options
from canaryproof.verify.papers.canife.options import CanaryOptions


@dataclass(frozen=True)
class CompetingDesign:
    """How canaries are designed, by name."""

    name: str
    kind: Literal["printed", "choice", "change", "redesign"]
    options: CanaryOptions
    pixels: Literal["uniform", "normal"]  # law of the random pixels with which a design begins


_PRINTED = CompetingDesign("as printed", "printed", replace(options.AS_PRINTED, label="soft"), "uniform")
_REDESIGNED = CompetingDesign("redesigned", "redesign", options.REDESIGNED, "normal")


def _variant(kind: Literal["choice", "change"], name: str, **changes: object) -> CompetingDesign:
    pixels: Literal["uniform", "normal"] = "normal" if changes.pop("pixels", None) else "uniform"
    return CompetingDesign(f"as printed, {name}", kind, replace(_PRINTED.options, **changes), pixels)  # type: ignore[arg-type]


# Each changes one thing of the printed design: where the papers leave a choice, or where the redesign differs. Normal
# pixels are both.
DESIGNS: Sequence[CompetingDesign] = (
    _PRINTED,
    _variant("choice", "with normal pixels", pixels="normal"),
    _variant("choice", "with one class for a label", label="class"),
    _variant("change", "but rate 0.1", rate=_REDESIGNED.options.rate),
    _variant("change", "but a hinge at 1.25 C", norm_constant=_REDESIGNED.options.norm_constant),
    _variant("change", "but up to four restarts", restarts=_REDESIGNED.options.restarts),
    _REDESIGNED,
)
PRINTED, REDESIGNED = _PRINTED.name, _REDESIGNED.name
# The two that every scenario has.
BOTH = (_PRINTED, _REDESIGNED)
