"""The page of ``canaryproof benchmark canife`` and its picture: every method's number on the same trainings."""

import math
from collections.abc import Sequence
from dataclasses import astuple

import matplotlib as mpl
from matplotlib.figure import Figure

from canaryproof.verify.audit.markup.digits import plus_minus
from canaryproof.verify.audit.markup.figures import BLUE, GREEN, GREY, ORANGE, STYLE, mark_edge, svg
from canaryproof.verify.audit.markup.markdown import Section, environment_line, page, without_tags
from canaryproof.verify.papers.records.benchmark_record import (
    BenchmarkRecord,
    DesignedRecord,
    EstimateOrBound,
    PrintedRecord,
    ScenarioRecord,
    SpreadRecord,
)
from canaryproof.verify.papers.records.training_record import DATA_KNOWN, MethodValue

_STYLES = (("o", BLUE), ("D", ORANGE), ("s", GREEN), ("^", "#CC79A7"), ("v", "#000000"))
# Where 0 is drawn on a logarithmic axis.
_LEAST = 0.03


def values(scenarios: Sequence[ScenarioRecord]) -> Figure:
    """Draw every method's ε̂ of each training, its cap and the analytical ε."""
    methods = scenarios[0].methods
    with mpl.rc_context(STYLE):
        height = 0.25 + 0.07 * len(scenarios)
        figure = Figure(figsize=(8.4, 1.2 + height * len(methods)), layout="constrained")
        axis = figure.subplots()
        for which, scenario in enumerate(scenarios):
            shift = 0.7 * (which + 0.5) / len(scenarios) - 0.35
            levels = [
                (value.epsilon, position + shift)
                for position, method in enumerate(scenario.methods)
                for value in method.values
            ]
            points = [(max(epsilon, _LEAST), level) for epsilon, level in levels if math.isfinite(epsilon)]
            marker, colour = _STYLES[which]
            axis.plot(*zip(*points, strict=True), marker, color=colour, markersize=3.5, label=scenario.name)
            # Infinite ones stand beyond the axis.
            for level in {level for epsilon, level in levels if epsilon == math.inf}:
                beside = axis.get_yaxis_transform()
                axis.text(1.01, level, "∞", color=colour, transform=beside, verticalalignment="center")
        for position, method in enumerate(methods):
            if math.isfinite(cap := method.cap):
                axis.plot([cap, cap], [position - 0.35, position + 0.35], color="black", linewidth=1.2)
        analytical = _analytical(scenarios[0])
        axis.axvline(analytical, color=GREY, linewidth=0.8, zorder=0)
        words = f"analytical ε {analytical:.3g}"
        axis.annotate(words, (analytical, 1.0), (0, 2), ("data", "axes fraction"), "offset points", ha="center")
        axis.set_yticks(range(len(methods)), [method.name for method in methods])
        axis.invert_yaxis()
        axis.set_xscale("log")
        axis.set_xlim(left=_LEAST / 1.5)
        mark_edge(axis.xaxis, _LEAST, f"≤ {_LEAST:g}")
        axis.set_xlabel("ε̂ of a training; short lines are caps,\nthe long one is the analytical ε of Poisson samples")
        figure.legend(loc="outside upper right", ncols=2, frameon=False)
        return figure


_ABOUT = """\
`canaryproof benchmark canife --data {folder} --level {level} --repeat {repeat} --out RESULTS`, seed {seed}: {repeat} \
trainings of each scenario, of the two-layer network (d = {dim:,}) on {data} ({clients:,} clients of one image each), \
as in Section 5.4 of Andrew et al. \
(arXiv 2302.03098, final version): one epoch of DP-SGD, {rounds} rounds of {batch} images on average, clip norm \
{clip_norm:g}, noise multiplier {noise_multiplier:g}, δ = {delta:g} and learning rate {rate:g}, which the paper does \
not print. CANIFE audits {audits} rounds, one in {every}, with {pool} held-out images as mock clients, {steps:,} steps \
of design and {scores} scores a round, from trial rounds of the training's own clients, with canaries designed as \
printed and with those of this package's redesign; \
Algorithms 2 and 3 have {canaries:,} observed and {canaries:,} unobserved \
canaries in the same trainings. Of the observed ones, those of each round also measure its noise."""

# The method whose attacker knows what the analytical ε holds against.
STRONGEST = f"Known rounds, {DATA_KNOWN}"
TITLE = "CANIFE and Algorithms 2 and 3 on the same trainings"
_NEEDS = ("attacker must know: participation", "attacker must know: noise", "attacker must know: models")


def render(record: BenchmarkRecord) -> dict[str, str]:
    """Return the page and its picture by file name."""
    return {"canife.md": without_tags(text(record)), **{name: svg(figure) for name, figure in figures(record).items()}}


def text(record: BenchmarkRecord) -> str:
    """Make the page, as Markdown."""
    return page(TITLE, _headline(record), [about(record)], sections(record), environment_line(record.environment))


def figures(record: BenchmarkRecord) -> dict[str, Figure]:
    """Draw the picture, by file name."""
    return {"canife.svg": values(record.scenarios)}


def _headline(record: BenchmarkRecord) -> str:
    """Say what the strongest attacker has for the analytical ε, and what CANIFE has by both designs."""
    scenario, few = record.scenarios[0], record.designs[0].counts[0]
    strongest = "".join(
        f"random canaries at known rounds, with known data, give {spread(method.epsilon)}, and "
        for method in scenario.methods
        if method.name == STRONGEST
    )
    limit = record.designs[0].unlimited.composed
    others = "; ".join(
        f"{design.name} it gives {spread(design.counts[0].at_delta.epsilon)}, and "
        f"{spread(design.unlimited.composed)} with unlimited scores"
        for design in record.designs
        if design.kind == "redesign"
    )
    return (
        f"The analytical ε is {three_digits(_analytical(scenario))}: {strongest}CANIFE as printed gives "
        f"{spread(few.at_delta.epsilon)}, {100.0 * few.at_delta.epsilon.mean / few.at_delta.cap:.1f}% of the "
        f"{three_digits(few.at_delta.cap)} that is the largest finite value from {few.scores} scores a round, half of "
        f"them with the canary. With unlimited scores its canaries would give {spread(limit)}; {others}."
    )


def about(record: BenchmarkRecord) -> str:
    """Say what was run, on what."""
    setting = record.setting
    return _ABOUT.format(
        **{**vars(record), **vars(setting), "data": record.data.name, "scores": setting.scores[0]},
        folder="digits" if record.data.name == "digits" else "FOLDER",
        clients=record.data.clients,
        audits=len(setting.audited),
    )


def sections(record: BenchmarkRecord) -> list[Section]:
    """Put all that was found into tables."""
    parts = [_methods(record), _designs(record)]
    if record.printed is not None:
        parts.append(_printed(record, record.printed))
    parts.append(_counts(record))
    if len(record.scenarios) > 1:
        parts.append(_scenarios(record))
    parts += [_canaries(record), _audits(record)]
    if record.sweep:
        parts.append(_sweep(record))
    return parts


def three_digits(value: float) -> str:
    """Render ε with three digits."""
    if math.isinf(value):
        return "∞" if value > 0.0 else "−∞"
    return "—" if math.isnan(value) else f"{value:#.3g}".rstrip(".")


def spread(summary: SpreadRecord) -> str:
    """Render a mean and a deviation."""
    mean, deviation = summary.mean, summary.deviation
    if math.isinf(mean):
        return f"∞ in {summary.infinite}"
    # Equal numbers differ by rounding at most.
    if not deviation > 1e-6 * abs(mean):
        return three_digits(mean)
    return plus_minus(mean, deviation)


def _mean(numbers: Sequence[float]) -> float:
    return sum(numbers) / len(numbers)


def _analytical(scenario: ScenarioRecord) -> float:
    epsilon = scenario.analytical.epsilon
    return math.nan if epsilon is None else epsilon


def _costs(record: BenchmarkRecord, family: str) -> str:
    seconds, random = record.scenarios[0].seconds, family == "oneshot"
    held = (record.memory.oneshot if random else record.memory.canife) / 1e6
    trials = record.setting.scores[0] * len(record.setting.audited)
    rounds = "no round" if random else f"{trials} trial rounds"
    took = seconds.oneshot if random else seconds.canife[family]
    memory = f"{held:.2g}" if held < 1.0 else f"{held:.0f}"
    return f"{took:.2g} s, {memory} MB, {rounds}"


def _designs(record: BenchmarkRecord) -> Section:
    scenario, rows = record.scenarios[0], []
    for design in record.designs:
        canaries, few = scenario.canife[design.name], design.counts[0]
        rows.append(
            (
                design.name,
                f"{canaries.unhealthy} of {canaries.audits}",
                spread(canaries.accuracy),
                spread(few.round),
                f"{few.capped} of {few.audits}",
                spread(few.at_delta.epsilon),
                spread(design.unlimited.composed),
                f"{scenario.seconds.canife[design.name]:.2g} s",
            )
        )
    printed = record.designs[0]
    note = (
        f"Canaries for the same models, from the same mock clients, {few.scores} scores a round. As printed (Andrew et "
        "al., Section 5.4, and Maddock et al., Section 4): Adam with rate "
        f"{printed.rate:g} on pixels and a soft label, the constant C in the hinge, and one design of a canary. "
        "They leave choices open, of which the next four rows have others. Neither says which law random "
        "pixels have: uniform on [0, 1] is our reading, and normal the other. Section 5.4 does not say whether a "
        "design begins with such pixels, as in Section 4.2 of Maddock et al., or with a mock client's image, which "
        "their Section 4.3 tries, too. They assign a class where Section 5.4 has a soft label. The canary is in half "
        "of the trials in their Section 4.1, and by a coin in each in their Section 3.4, where each audit has a cap of "
        "its own. "
        "Every other row changes one thing, and the redesign, which is this "
        f"package's and not the paper's, all: {_redesign(record)}. A canary is poor if its loss is above 2% of what a "
        "sample without any gradient has, and restarts begin anew until it is not. The accuracy is the attack's at its "
        "best threshold. ε̂ of a round is at δ = 1/n; ε̂ is composed, where rounds before the first audit count as that "
        "one does. Seconds are the processor's for a training's designs and scores."
    )
    header = (
        *("design of CANIFE's canaries", "poor canaries", "attack accuracy", "ε̂ of a round", "at the cap", "ε̂"),
        *("ε̂, unlimited scores", "time"),
    )
    return Section("CANIFE as printed, and what each change gains", header, tuple(rows), note)


def _redesign(record: BenchmarkRecord) -> str:
    """Say what the redesign is."""
    of_kind: list[DesignedRecord] = [design for design in record.designs if design.kind == "redesign"]
    return "; ".join(
        f"rate {design.rate:g}, a hinge at {design.norm_constant:g} C, {design.start} pixels, a {design.label} label "
        f"and up to {design.restarts} restarts"
        for design in of_kind
    )


def _methods(record: BenchmarkRecord) -> Section:
    scenario = record.scenarios[0]
    rows = []
    for method in scenario.methods:
        low, high = (_mean([getattr(value, end) for value in method.values]) for end in ("low", "high"))
        between = f"{three_digits(low)} – {three_digits(high)}" if low < high else "—"
        rows.append(
            (
                method.name,
                spread(method.epsilon),
                between,
                method.kind,
                "none" if math.isinf(method.cap) else three_digits(method.cap),
                *astuple(method.needs),
                _costs(record, method.family),
            )
        )
    alternative = "ε̂ of each method in each training on a logarithmic axis, by scenario"
    note = (
        f"{scenario.name}. ε̂ is mean ± deviation over {record.repeat} trainings; intervals are the mean ends "
        "of 95% intervals of single trainings. CANIFE's are those of a threshold fixed in advance, in each audited "
        "round, composed. An estimate or a composed estimate may be above or below ε; a lower bound is above it in at "
        "most 5% of trainings where its coverage is proven, and a posterior interval is no confidence interval. The "
        "analytical "
        f"ε is {three_digits(_analytical(scenario))} ({scenario.analytical.rule}); CANIFE's own accountant gives "
        f"{three_digits(record.rdp)} for the true noise. CANIFE's cap is what one error or none in each audited round "
        "composes to; what both designs of its canaries are is said below. That of Algorithm 2 is the ε̂ of a release "
        "that is the sum of its canaries and nothing else. "
        "Algorithm 3's estimate takes largest cosines for Gaussian, which they are not, and where canaries take part "
        "by chance some never do. At known rounds the cosine of a release with the sum of its canaries measures the "
        "noise, which is composed over the rounds as drawn. With data unknown it is that of noise and data together, "
        "and so is ε. Algorithms 2 and 3 take for granted that canaries take part as clients do, and "
        "CANIFE that its mock clients are like clients. Costs: median seconds of a processor (the training itself took "
        f"{scenario.seconds.training:.2g} s, and {record.compilation:.2g} s of compilation once), bytes of "
        "the arrays that are held, and extra rounds with clients."
    )
    header = ("method", "ε̂", "95% interval", "kind of number", "cap", *_NEEDS, "costs")
    return Section("Every method on the same trainings", header, tuple(rows), note, "canife.svg", alternative)


def _printed(record: BenchmarkRecord, printed: PrintedRecord) -> Section:
    rows = tuple(
        (row.id, row.statement, row.training, row.method, spread(row.epsilon), row.reading, row.verdict, row.finding)
        for row in printed.claims
    )
    data = (
        "These are its files, by the MD5 of what is inside."
        if printed.fashion
        else f"{record.data.name} is not it, whose files are known by the MD5 of what is inside. So nothing is "
        "decided, and the numbers only stand side by side."
    )
    note = (
        f"The printed numbers are of Fashion-MNIST. {data} Printed and own means are compared by Welch's test and "
        f"deviations by the ratio of variances, at level {printed.level:.0e} for each reading, as if the printed ones "
        f"were of as many trainings, {record.repeat}, as theirs are not counted. Where the test could not tell "
        "the printed mean from half of it with power 0.9, or our numbers are all equal, it confirms nothing. A reading "
        "is a whole training: how it samples, and whether canaries that by chance never take part count as seen. A "
        "claim is confirmed only if one training, whose analytical ε may be the printed one, has all printed numbers, "
        "this one by the text's own method, the first; it is qualified if it has this one by another method. It is "
        "never refuted, as learning rate, width and a δ are not printed. The reviews' bound is judged by Student's "
        "test of its difference to CANIFE's ε̂ in the same trainings."
    )
    header = ("claim", "printed", "training", "method", "ε̂", "reading is", "claim is", "test")
    return Section("The printed numbers", header, rows, note)


def _counts(record: BenchmarkRecord) -> Section:
    rows: list[tuple[str, ...]] = []
    notes = []
    for design in _main(record):
        rows += [
            (
                design.name,
                f"{row.scores:,}",
                spread(row.round),
                three_digits(row.round_cap),
                f"{row.separated} of {row.audits}",
                *(
                    cell
                    for reading in (row.at_delta, row.at_reciprocal)
                    for cell in (spread(reading.epsilon), three_digits(reading.cap))
                ),
            )
            for row in design.counts
        ]
        unlimited = design.unlimited
        composed = spread(unlimited.composed)
        rows.append((design.name, "unlimited", spread(unlimited.round), "none", "", composed, "none", "", ""))
        notes.append(_gap(design))
    note = f"{' '.join(notes)} ε̂ of a round is at δ = 1/n, and its law's at the training's δ."
    header = (
        *("canaries", "scores a round", "ε̂ of a round", "cap", "no error", "ε̂, conversion at δ", "cap"),
        *("ε̂, conversion at 1/n", "cap"),
    )
    return Section("How much of CANIFE's gap is its cap", header, tuple(rows), note)


def _main(record: BenchmarkRecord) -> list[DesignedRecord]:
    return [design for design in record.designs if design.kind in ("printed", "redesign")]


def _gap(design: DesignedRecord) -> str:
    """Say which part of the gap between few scores and unlimited ones the cap is."""
    few, many, limit = design.counts[0], design.counts[-1], design.unlimited.composed.mean
    mean, cap = few.at_delta.epsilon.mean, few.at_delta.cap
    # Without an audit below its cap, ε̂ differs from it by rounding at most.
    same = few.capped == few.audits
    only = (
        ", in every audit, so that it says how many scores there were, and of the training only that each audit tells "
        "its scores apart with an error or none"
        if same
        else ""
    )
    gap = ""
    if limit > cap:
        share = 0.0 if same else 100.0 * max(0.0, cap - mean) / (limit - mean)
        closed = 100.0 * (many.at_delta.epsilon.mean - mean) / (limit - mean)
        gap = (
            f": the cap makes all but {share:.1g}% of the gap to that, and {many.scores:,} scores close {closed:.2g}% "
            "of it"
        )
    return (
        f"CANIFE {design.name} has with {few.scores} scores {100.0 * mean / cap:.1f}% of its cap{only}. Unlimited "
        f"scores of the same canaries, whose law is known exactly, compose to {three_digits(limit)}{gap}."
    )


def _scenarios(record: BenchmarkRecord) -> Section:
    scenarios = record.scenarios
    header = ["", *(scenario.name for scenario in scenarios)]
    rows: list[tuple[str, ...]] = [
        ("analytical ε without the fault", *(three_digits(_analytical(scenario)) for scenario in scenarios)),
        ("accuracy", *(f"{100.0 * _mean(scenario.accuracies):.1f}%" for scenario in scenarios)),
    ]
    for position, method in enumerate(scenarios[0].methods):
        cells = []
        for scenario in scenarios:
            result = scenario.methods[position]
            cell = spread(result.epsilon)
            if scenario is not scenarios[0]:
                cell += _difference(method.values, result.values)
            cells.append(cell)
        rows.append((method.name, *cells))
    note = (
        "In brackets the mean difference to the first column with its standard error, training by training, as all "
        "scenarios share their seeds. A method that does not know of the change can notice it by that difference only. "
        "Where noise is missing or repeated the ε of who sees the rounds is infinite; no canary can show a client that "
        "is not clipped, as none is that client. `canaryproof verify canife` judges who notices."
    )
    return Section("Where an assumption fails", tuple(header), tuple(rows), note)


def _difference(before: Sequence[MethodValue], after: Sequence[MethodValue]) -> str:
    differences = [b.epsilon - a.epsilon for a, b in zip(before, after, strict=True)]
    if len(differences) < 2 or not all(map(math.isfinite, differences)):
        return ""
    mean = _mean(differences)
    squares = sum((difference - mean) ** 2 for difference in differences)
    error = math.sqrt(squares / (len(differences) - 1) / len(differences))
    return f" ({plus_minus(mean, error)})"


def _canaries(record: BenchmarkRecord) -> Section:
    rows = tuple(
        (
            scenario.name,
            design.name,
            *map(spread, (canaries.separation, canaries.deviation, canaries.noise, canaries.clients, canaries.cosine)),
            f"{canaries.unhealthy} of {canaries.audits}",
        )
        for scenario in record.scenarios
        for design in _main(record)
        for canaries in (scenario.canife[design.name],)
    )
    note = (
        "Mean ± deviation over all audited rounds. The cosine is the root mean square of those with the updates of a "
        f"batch of the training's clients, {three_digits(record.setting.dim**-0.5)} = 1/√d for a random canary. In "
        "trial rounds the server has its fault. Scores with and without the canary are C² = 1 apart where its "
        "update has the clip norm, with the noise's deviation σC where it is orthogonal to all mock clients; what "
        "these add is the deviation that a cohort's clients give the score."
    )
    header = ("", "canaries", "separation", "deviation", "of it, noise", "of it, clients", "cosine", "poor canaries")
    return Section("CANIFE's canaries", header, rows, note)


def _audits(record: BenchmarkRecord) -> Section:
    rows = tuple(
        (row.source, row.name, spread(row.epsilon), _cap(row), row.kind, row.coverage)
        for row in record.scenarios[0].audits
    )
    note = (
        "Bounds are at 95%, of each training; of CANIFE, of each audited round, for an attacker in that round alone "
        "whose canary surely takes part: its scores are independent, and it says nothing of the training. Coverage is "
        "what is known of the probability to be above ε."
    )
    header = ("scores", "method", "value", "cap", "kind", "coverage")
    return Section("All estimates and bounds", header, rows, note)


def _cap(row: EstimateOrBound) -> str:
    """Return the cap of a bound. Those of estimates stand in the first table."""
    if row.kind == "estimate":
        return "–"
    return "none" if math.isinf(row.cap) else three_digits(row.cap)


def _sweep(record: BenchmarkRecord) -> Section:
    sweep = record.sweep
    rows: list[tuple[str, ...]] = [("accuracy", *(f"{100.0 * scenario.accuracies[0]:.1f}%" for scenario in sweep))]
    rows += [
        (method.name, *(three_digits(rate.methods[position].epsilon.mean) for rate in sweep))
        for position, method in enumerate(sweep[0].methods)
    ]
    note = "One training each, with Poisson samples: how much the rate, which is not printed, matters to each method."
    return Section("Learning rates", ("", *(f"{scenario.rate:g}" for scenario in sweep)), tuple(rows), note)
