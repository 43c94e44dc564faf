"""How ``audit`` prints lower bounds on ε and posterior intervals."""

import math
from collections.abc import Callable, Iterable, Iterator
from decimal import ROUND_FLOOR, Decimal
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from canaryproof.verify.audit.audit import Audit, Check
    from canaryproof.verify.blindspots.noticed import BlindSpots, Range
    from canaryproof.verify.bounds.lower_bound import LowerBound


# What is said of bounds whose coverage is of a kind.
_COVERAGE = {
    "proven": "A bound of proven coverage is above ε in at most the stated share of audits, if what it needs holds.",
    "asymptotic": (
        "A bound of asymptotic coverage is proven for independent scores. Those of one run depend on each other, ever "
        "less as the dimension grows."
    ),
    "heuristic": "No proof covers a heuristic bound: it may be above ε in any share of audits.",
}


def coverage_remarks(bounds: Iterable["LowerBound"]) -> Iterator[str]:
    """Say what the table's words mean, for the kinds of coverage that there are."""
    yield "A cap is a bound's value at perfect separation of as many scores: it cannot be more, whatever leaks."
    for coverage in dict.fromkeys(bound.coverage for bound in bounds):
        yield _COVERAGE[coverage]


def bounds_table(bounds: Iterable["LowerBound"], confidence: float, say: Callable[[str], str]) -> Table:
    """Lay out bounds, each with what it is and what is known of it.

    Parameters
    ----------
    bounds
        The bounds.
    confidence
        Their confidence.
    say
        Spells out symbols that the terminal cannot show.
    """
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("bound", overflow="fold")
    table.add_column(say(f"ε, {100.0 * confidence:.10g}%"), justify="right", overflow="fold")
    for heading in ("kind", "coverage", "cap"):
        table.add_column(heading, overflow="fold")
    for bound in bounds:
        # Down, as a bound rounded up would be none.
        value = _rounded_down(bound.value)
        shown = f"≥ {value}" if bound.upper is None else f"{value} – {bound.upper:.3g}"
        table.add_row(bound.method, say(shown), bound.kind, bound.coverage, _rounded_down(bound.cap))
    return table


def _rounded_down(value: float) -> str:
    """Print a number that is not negative with three significant digits."""
    if not value or not math.isfinite(value):
        return f"{value:.3g}"
    unit = Decimal(1).scaleb(Decimal(value).adjusted() - 2)
    return f"{Decimal(value).quantize(unit, rounding=ROUND_FLOOR):f}"


# How ``audit`` prints what it would have noticed, and what not.


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
    return "∞" if math.isinf(value) else f"{value:.3g}" if value < 1000.0 else f"{value:,.0f}"


# How ``canaryproof audit`` prints what it found.


_ALL_DIGITS = 16  # of a float, after the first

# What stands for a symbol where the terminal cannot show it; pairs before their parts.
_PLAIN = (
    ("√d", "sqrt(d)"),
    ("ε̂", "epsilon"),
    ("μ̂", "mu"),
    ("σ̂", "sigma"),
    ("μ₀", "mu0"),
    ("σ₀", "sigma0"),
    ("‖Σx‖²", "|sum x|^2"),
    ("‖ρ‖²", "|rho|^2"),
    ("σ²d", "sigma^2 d"),
    ("σ", "sigma"),
    ("∞", "infinity"),
    ("ε", "epsilon"),
    ("δ", "delta"),
    ("α", "alpha"),
    ("·", "*"),
    ("–", "-"),
    ("±", "+/-"),
    ("−", "-"),
    ("≥", ">="),
    ("²", "^2"),
)


def print_audit(found: "Audit") -> None:
    """Print an audit on stdout, in words that its encoding has."""
    console = Console(markup=False, emoji=False, highlight=False)
    say = _speaker(console.encoding)
    console.print(say(_heading(found)))
    console.print(_estimates_table(found, say))
    console.print(_listing([(estimate.name, estimate.assumes) for estimate in found.estimates], say))
    console.print()
    console.print(say("ε̂ of the fitted parameters, certified; the interval above says what the fit is worth:"))
    console.print(_listing([(estimate.name, _certified(*estimate.certified)) for estimate in found.estimates], say))
    console.print()
    console.print(bounds_table(found.bounds, found.confidence, say))
    console.print(_listing([(bound.method, f"needs {', '.join(bound.assumptions)}") for bound in found.bounds], say))
    console.print()
    console.print(_listing(_checks(found), say))
    _print_blind_spots(found, console, say)
    for sentence in (*_remarks(found), _meaning(found)):
        console.print()
        console.print(say(sentence))


def _print_blind_spots(found: "Audit", console: Console, say: Callable[[str], str]) -> None:
    spots = found.blind_spots
    if spots is None:
        console.print()
        console.print("Which faults would have been noticed is foretold for a known dimension of at least 1,000 only.")
        return
    for heading, rows in zip(headings(spots), (noticed_rows(spots), unnoticed_rows(spots)), strict=True):
        console.print()
        console.print(say(heading))
        console.print(_listing(rows, say))
    for sentence in dilution_remarks(spots, release=_of_release(found)):
        console.print()
        console.print(say(sentence))


def _speaker(encoding: str) -> Callable[[str], str]:
    """Return what spells out symbols that the terminal cannot show."""

    def say(text: str) -> str:
        try:
            text.encode(encoding)
        except UnicodeEncodeError:
            for symbol, word in _PLAIN:
                text = text.replace(symbol, word)
        return text

    return say


def _heading(found: "Audit") -> str:
    null = "N(0, 1/d)" if found.null_count is None else f"Gaussian fitted to {found.null_count:,} unobserved cosines"
    dim = "" if found.dim is None else f"d = {found.dim:,}, "
    return f"k = {found.count:,} observed cosines, {dim}δ = {found.delta!r}; null: {null}"


def _estimates_table(found: "Audit", say: Callable[[str], str]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("estimator", overflow="fold")
    for heading in ("ε̂", "standard error", f"{100.0 * found.confidence:.10g}% interval"):
        table.add_column(say(heading), justify="right", overflow="fold")
    for i, estimate in enumerate(found.estimates):
        error = estimate.standard_error
        value, low, high = (rounded(x, error) for x in (estimate.epsilon, estimate.low, estimate.high))
        cells = estimate.name, value, rounded(error, error), say(f"{low} – {high}")
        table.add_row(*cells, style="bold" if i == 0 else None)
    return table


def _certified(low: float, high: float) -> str:
    return f"in [{low!r}, {high!r}]"


def _listing(rows: Iterable[tuple[str, str]], say: Callable[[str], str]) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(overflow="fold")
    table.add_column(overflow="fold")
    for row in rows:
        table.add_row(*(say(cell) for cell in row))
    return table


def _checks(found: "Audit") -> Iterator[tuple[str, str]]:
    closed = found.null_count is None
    mean, ratio = found.mean_error, found.ratio_error
    yield (
        f"standardised mean {'√d·μ̂' if closed else '(μ̂ − μ₀)/σ₀'}",
        f"{rounded(found.standardised_mean, mean)} ± {rounded(mean, mean)}",
    )
    yield (
        f"deviation ratio {'√d·σ̂' if closed else 'σ̂/σ₀'}",
        f"{rounded(found.deviation_ratio, ratio)} ± {rounded(ratio, ratio)}",
    )
    yield "equal variances", _p_value(found.variance_p_value, "1e-300")
    yield "observed are normal (Anderson–Darling)", _check_cell("A²", found.normality, "5e-31")
    if found.null_law is not None:
        yield "unobserved follow the null law (Kolmogorov–Smirnov)", _check_cell("D", found.null_law, "1e-300")
    if found.blind_spots is not None and found.blind_spots.dilution is not None:
        canaries = found.count / (found.blind_spots.noise_multiplier**2 * (found.dim or 1))
        dilution = f"{found.blind_spots.dilution:.3g}".replace("-", "−")
        yield "dilution ‖ρ‖²/(σ²d) − 1", f"{dilution}; canaries add {canaries:.2g}"


def _check_cell(symbol: str, check: "Check | None", smallest: str) -> str:
    if check is None:
        return "not tested: fewer than 8 values"
    return f"{symbol} = {check.statistic:.3g}, {_p_value(check.p_value, smallest)}"


def _p_value(p_value: float, smallest: str) -> str:
    return f"p = {p_value:.2g}" if p_value > 0.0 else f"p < {smallest}"


def _remarks(found: "Audit") -> Iterator[str]:
    """Say what the numbers alone don't."""
    if found.equal_variances:
        yield "The variances are not told apart, so that adaptive is pinned, with the upper end of fitted."
    else:
        yield "The variances differ, so that adaptive is fitted."
    if found.standardised_mean <= 0.0:
        mean = "positive" if found.null_count is None else "above the null's"
        yield f"The observed mean is not {mean}, so that pinned is 0: it sees no trace of the canaries."
    yield from coverage_remarks(found.bounds)
    if found.null_law is not None:
        yield (
            "A small p-value for the null law is expected where scores are maxima over rounds; for cosines with a "
            "single release it says that --dim is wrong or the unobserved canaries are not random."
        )


def _of_release(found: "Audit") -> bool:
    return found.estimates[-1].name == "norm"


def _meaning(found: "Audit") -> str:
    release = _of_release(found)
    seen = "this release" if release else "these cosines alone"
    meaning = (
        f"ε̂ is an estimate, neither an upper nor a lower bound on the mechanism's privacy loss, and its interval is "
        f"only as good as what its estimator assumes. It concerns an attacker who knows a random canary and looks at "
        f"{seen}: it averages over canaries, and a low value does not exclude other attacks. It needs canaries that "
        f"took part just as clients do."
    )
    scale = " The norm estimate takes the release to be in units of the canary norm; the others need no unit."
    return meaning + scale if release else meaning


def rounded(value: float, error: float) -> str:
    """Print a number with as many digits as leave two of its standard error.

    Parameters
    ----------
    value
        Number to print.
    error
        Its standard error; where it is 0, the number is printed with three significant digits.

    Returns
    -------
    The digits.
    """
    if not (error > 0.0 and math.isfinite(value) and math.isfinite(error)):
        return f"{value:.3g}"
    decimals = 1 - _exponent(f"{error:.1e}")
    # Adding 0 makes a zero of what rounds to −0.
    near = round(value, decimals) + 0.0
    if decimals <= 6 and abs(near) < 1e6:
        return f"{near:.{max(0, decimals)}f}"
    digits = decimals + _exponent(f"{near:e}")
    return f"{near:.{min(max(0, digits), _ALL_DIGITS)}e}"


def _exponent(scientific: str) -> int:
    return int(scientific.partition("e")[2])
