"""How ``audit`` prints what it would have noticed, and what not."""

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from canaryproof.verify.blindspots.noticed import BlindSpots, Range

# From here on, what a release holds beside its noise is longer than that.
_SWAMPED = 1.0


def headings(found: "BlindSpots") -> tuple[str, str]:
    """Introduce the list of what would have been noticed, and that of what would not."""
    claimed = f"a claim of ε = {found.epsilon:.3g} (noise multiplier {found.noise_multiplier:.4g})"
    whose = "" if found.given else "; --noise-multiplier says what yours is"
    return (
        f"Would have been noticed, by adaptive and with probability 90%, beside {claimed}{whose}:",
        "Would not have been noticed:",
    )


def noticed_rows(found: "BlindSpots") -> list[tuple[str, str]]:
    """Say for which part of its parameter each fault would have been noticed."""
    return [(part.title, _part(part)) for part in found.noticed] or [("nothing of the atlas", "")]


def unnoticed_rows(found: "BlindSpots") -> list[tuple[str, str]]:
    """Say for which part of its parameter each fault would not have been noticed, and what ε may be there."""
    return [(part.title, f"{_part(part)}; ε up to {_number(part.epsilon)}") for part in found.unnoticed]


def dilution_remarks(found: "BlindSpots", release: bool) -> Iterator[str]:
    """Say what a release holds beside the claimed noise."""
    if not found.given:
        return
    if found.dilution is None:
        if not release:
            yield "How much data dilute the cosines, ‖ρ‖²/(σ²d) − 1, can be told from the released vector only."
    elif found.dilution > _SWAMPED:
        factor = 1.0 / math.sqrt(1.0 + found.dilution)
        yield (
            f"Warning: data swamp the statistic. The release is longer than its noise, and the canaries' mean is "
            f"{factor:.2g} of what that noise alone would leave: ε̂ is low whether or not the noise is what is claimed, "
            "and the lists above, which are for short data, are too favourable."
        )


def _part(part: "Range") -> str:
    ends = _number(part.low) if part.low == part.high else f"{_number(part.low)} – {_number(part.high)}"
    return f"{part.parameter}: {ends}"


def _number(value: float) -> str:
    return "∞" if math.isinf(value) else f"{value:.3g}"
