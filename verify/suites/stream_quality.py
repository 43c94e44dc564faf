"""Check of the canary stream's own quality: the law of its coordinates, and their independence."""

from dataclasses import asdict

from canaryproof.verify.results import Check, Context, Design, Level, Outcome, Subject, Verdict
from canaryproof.verify.streams import law, quality


def _moments_agree(scan: law.Scan) -> bool:
    """Whether the kernel's moments, by adding up all its values, are the exact ones within the quantiles' error."""
    allowed = ((1.0 + law.QUANTILE_ERROR) ** (2 * k) - 1.0 for k in range(1, 5))
    exact = (law.moment(2 * k) for k in range(1, 5))
    return all(
        abs(found / right - 1.0) <= slack for found, right, slack in zip(scan.moments, exact, allowed, strict=True)
    )


def _quality(context: Context) -> Outcome:
    exhaustive = context.level is Level.FULL
    scan = law.scan(1 if exhaustive else 1009)
    lawful = scan.symmetric and scan.largest_error <= law.QUANTILE_ERROR and (not exhaustive or _moments_agree(scan))
    found = quality.judge(context.pick(20_000_000, 10**9), context.key("streams/quality"))
    label, smallest = found.smallest
    visible = {order: quality.visible_moment(order, found.coordinates, len(found.p_values)) for order in (2, 4, 6, 8)}
    finding = (
        f"quantiles within {scan.largest_error:.2g} at {scan.words:,} words of a tail; smallest of "
        f"{len(found.p_values)} p-values {smallest:.2g} ({label}) at {found.coordinates:,} coordinates; moments "
        f"2, 4, 6, 8 seen to {', '.join(f'{deviation:.1e}' for deviation in visible.values())}"
    )
    evidence = {
        "scan": asdict(scan),
        "coordinates": found.coordinates,
        "level": quality.LEVEL,
        "p_values": found.p_values,
        "linked": found.linked,
        "visible": {str(order): deviation for order, deviation in visible.items()},
    }
    design = Design(
        "words are independent and uniform, and coordinates their quantiles",
        quality.LEVEL,
        f"the eighth moment is off by {visible[8]:.1g}, relative",
        quality.POWER,
        found.coordinates,
    )
    return Outcome(Verdict.CONFIRMED if lawful and found.passed else Verdict.REFUTED, finding, evidence, design)


CHECKS = (
    Check(
        "gaussian.streams.quality",
        Subject.IMPLEMENTATION,
        "kernels.canaries",
        "coordinates have the law of the normal in 2^31 values, to 4.6e-7 of each, and are independent along a canary, "
        "across canaries, seeds and noise: moments, tails, bins, bits and pairs, at level 1e-6 together",
        _quality,
    ),
)
