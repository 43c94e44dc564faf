"""Pictures of the performance page."""

import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from canaryproof.verify.audit.markup.figures import BLUE, GREEN, GREY, ORANGE, STYLE, svg
from canaryproof.verify.audit.markup.markdown import Section, environment_line, page


def threads_of(row: Mapping[str, Any]) -> str:
    """Name the threads of a row of ours; others take what they take."""
    if row["label"] != "canaryproof":
        return ""
    return ", 1 thread" if row["threads"] == 1 else f", {row['threads']} threads"


def _colour(label: str) -> str:
    if label.startswith(("canaryproof", "block_cosines", "canaries made")):
        return BLUE
    if label.startswith(("stored", "memory")):
        return GREY
    return GREEN if label.startswith("cosines") else ORANGE


def _bars(axis: Axes, values: Mapping[str, float], unit: str) -> None:
    """Draw bars from above, on a logarithmic axis, each with its value."""
    names = list(values)
    axis.barh(range(len(names)), list(values.values()), color=[_colour(name) for name in names], height=0.65)
    for place, value in enumerate(values.values()):
        axis.text(value * 1.06, place, f"{float(f'{value:.2g}'):g}", va="center")
    axis.set_yticks(range(len(names)), names)
    axis.invert_yaxis()
    axis.set_xscale("log")
    # A bar has no natural beginning on such an axis; this one lets the shortest be seen.
    axis.set_xlim(min(values.values()) / 2.5, max(values.values()) * 2.5)
    axis.xaxis.set_major_locator(LogLocator(subs=(1.0,)))
    axis.xaxis.set_major_formatter("{x:g}")
    axis.xaxis.set_minor_formatter(NullFormatter())
    axis.set_xlabel(unit)


def coordinates(document: Mapping[str, Any]) -> Figure:
    """Draw what a coordinate costs in Algorithm 1, and what it costs to read one.

    Parameters
    ----------
    document
        What was measured, as JSON has it.

    Returns
    -------
    The figure.
    """
    rows = [row for row in document["algorithm_1"] if "skipped" not in row]
    values = {f"{row['label']}{threads_of(row)}": row["seconds"] / row["coordinates"] * 1e9 for row in rows}
    stored = document["stored"]
    values["memory, stored canaries"] = stored["seconds"] / stored["coordinates"] * 1e9
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7.2, 0.8 + 0.32 * len(values)), layout="constrained")
        _bars(figure.subplots(), values, "ns a coordinate and pass")
        return figure


def rounds(document: Mapping[str, Any]) -> Figure:
    """Draw what a block of rounds costs in Algorithm 3, a panel for each size of a block.

    Parameters
    ----------
    document
        What was measured, as JSON has it.

    Returns
    -------
    The figure.
    """
    blocks = document["rounds"]
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(8.4, 0.9 + 0.32 * len(blocks[0]["timings"])), layout="constrained")
        axes = figure.subplots(1, len(blocks), squeeze=False, sharey=True)[0]
        for axis, block in zip(axes, blocks, strict=True):
            _bars(axis, {row["label"]: row["seconds"] for row in block["timings"]}, "seconds")
            axis.set_title(f"{block['rounds']} rounds at once")
        # Shared axes are turned round together, so that an even number of panels would undo it.
        axes[0].set_ylim(len(blocks[0]["timings"]) - 0.5, -0.5)
        return figure


def scaling(document: Mapping[str, Any]) -> Figure:
    """Draw the time of Algorithm 1 against k·d.

    Parameters
    ----------
    document
        What was measured, as JSON has it.

    Returns
    -------
    The figure.
    """
    found = document["scaling"]
    points = sorted(
        (dim, row["coordinates"], row["seconds"])
        for (dim, _), row in zip(found["cells"], found["timings"], strict=True)
    )
    dims = sorted({dim for dim, _, _ in points})
    low, high = (pick(work for _, work, _ in points) for pick in (min, max))
    # The line of slope 1 through the middle of the points.
    middle = sorted(seconds / work for _, work, seconds in points)[len(points) // 2]
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(5.4, 3.4), layout="constrained")
        axis = figure.subplots()
        axis.plot([low, high], [middle * low, middle * high], color=GREY, linewidth=0.8, label="slope 1")
        for dim, marker, colour in zip(dims, "osD^v<>", [BLUE, ORANGE, GREEN, GREY] * 2, strict=False):
            own = [(work, seconds) for d, work, seconds in points if d == dim]
            axis.plot(*zip(*own, strict=True), marker, color=colour, markersize=4.5, label=f"d = {dim:,}")
        axis.set(xscale="log", yscale="log", xlabel="k·d", ylabel="seconds")
        axis.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.yaxis.set_major_formatter("{x:g}")
        axis.yaxis.set_minor_formatter(NullFormatter())
        axis.legend(frameon=False)
        return figure


# The performance page: what the kernels cost beside others, made from what ``python -m tests.benchmarks`` found.


_ABOUT = """\
`python -m tests.benchmarks`, {size} size, {threads} threads, in one run: {repetitions} repetitions in which all take
turns, and the best of each. Numbers have three digits where the second best time is within 1% of the best, else two,
and beside an aim as many as show on which side of it they are. They are facts of this run on this machine, and others
differ."""


def render(document: Mapping[str, Any]) -> dict[str, str]:
    """Make the page and its pictures.

    Parameters
    ----------
    document
        What was measured, as JSON has it.

    Returns
    -------
    Texts by file name.
    """
    return {
        "performance.md": text(document),
        **{name: svg(figure) for name, figure in figures(document).items()},
    }


def text(document: Mapping[str, Any]) -> str:
    """Make the page, as Markdown."""
    met = [target["met"] for target in document["targets"]]
    found = f"{met.count(True)} of {len(met)} aims are met."
    return page("Performance", found, [about(document)], sections(document), environment_line(document["environment"]))


def figures(document: Mapping[str, Any]) -> dict[str, Figure]:
    """Draw the pictures, by file name."""
    return {
        "performance-coordinates.svg": coordinates(document),
        "performance-rounds.svg": rounds(document),
        "performance-scaling.svg": scaling(document),
    }


def about(document: Mapping[str, Any]) -> str:
    """Say how was measured."""
    size = document["size"]
    return _ABOUT.format(size=size["name"], threads=document["threads"], repetitions=size["repetitions"])


def sections(document: Mapping[str, Any]) -> list[Section]:
    """Put all that was measured into tables."""
    return [
        _targets(document),
        _algorithm_1(document),
        _algorithm_3(document),
        _scaling(document),
        _orthonormal(document),
        _memory(document),
        _bits(document),
        _instructions(document),
    ]


def digits(value: float, error: float) -> str:
    """Render a positive number with as many digits as its repetitions earn."""
    return _significant(value, _earned(value, error))


def _earned(value: float, error: float) -> int:
    return 3 if error < 0.01 * value else 2


def _significant(value: float, precision: int) -> str:
    if not 1e-3 <= value < 1e6:
        return f"{value:.{precision - 1}e}"
    text = f"{value:#.{precision}g}"
    # What has more digits before its point than it earns.
    return f"{float(text):.0f}" if "e" in text else text.rstrip(".")


def _seconds(row: Mapping[str, Any]) -> str:
    return digits(row["seconds"], row["error"])


def _nanoseconds(row: Mapping[str, Any]) -> str:
    return digits(*(row[name] / row["coordinates"] * 1e9 for name in ("seconds", "error")))


def _ratio(above: Mapping[str, Any], below: Mapping[str, Any]) -> str:
    ratio = above["seconds"] / below["seconds"]
    return digits(ratio, ratio * (above["error"] / above["seconds"] + below["error"] / below["seconds"]))


def _percent(part: float) -> str:
    return f"{100.0 * part:.0f}%"


def _shared(others: str, rows: Iterable[Mapping[str, Any]]) -> str:
    """Say which times are those of a share of the work."""
    shares = sorted({row["share"] for row in rows if row.get("share", 1.0) < 1.0})
    named = " or ".join(f"{100.0 * share:.3g}%" for share in shares)
    return f" Times of {others} are those of {named} of the work, scaled to all of it." if named else ""


def _targets(document: Mapping[str, Any]) -> Section:
    rows = []
    for target in document["targets"]:
        measured = "—" if target["measured"] is None else _beside_aim(target)
        met = {True: "met", False: "not met", None: "not measured"}[target["met"]]
        rows.append((target["statement"], f"{target['sense']} {target['bound']:g}", measured, met))
    note = "Against numpy the faster of its generators counts, and against a BLAS the faster order of the product."
    return Section("What was aimed at", ("measured", "aim", "here", ""), tuple(rows), note)


def _compute_bound(document: Mapping[str, Any], ours: Mapping[str, Any]) -> str:
    """Say what the instructions alone would take at the rate of the densest work of this run."""
    code, square = document["arithmetic"], document["square"]
    if "skipped" in code:
        return ""
    rate, error = (
        1e-9 * square["coordinates"] / code["lanes"] / square["seconds"],
        square["error"] / square["seconds"],
    )
    alone = code["instructions"] / rate
    share = 1e-9 * alone * ours["coordinates"] / ours["seconds"]
    return (
        f" A coordinate takes {code['instructions']:.2f} vector instructions of {code['lanes']} lanes in the code "
        "compiled here, without moves and without what a pass then does with it. The BLAS's product of square "
        f"matrices, work of the same units, comes to {digits(rate, rate * error)} multiply-adds of as many lanes a "
        f"nanosecond on all threads. At this rate the instructions alone take {digits(alone, alone * error)} ns, "
        f"{_percent(share)} of a pass. Only other bits would take much fewer: those of the stream rule out fused "
        "multiply-adds."
    )


def _beside_aim(target: Mapping[str, Any]) -> str:
    """Render what was measured with the digits that it earns, or more: 11.7 is not 12 where 12 was aimed at."""
    value, bound, precision = target["measured"], target["bound"], _earned(target["measured"], target["error"])
    met = operator.ge if target["sense"] == "≥" else operator.le
    while met(float(_significant(value, precision)), bound) != met(value, bound):
        precision += 1
    return _significant(value, precision)


def _making_bound(document: Mapping[str, Any], timed: Iterable[Mapping[str, Any]]) -> str:
    """Say how much faster than numpy a pass could be that did nothing with the canaries."""
    made = next(row for row in document["rounds"][0]["timings"] if row["label"].startswith("canaries made"))
    numpy = _fastest(row for row in timed if row["label"].startswith("numpy"))
    most = numpy["seconds"] / numpy["coordinates"] / (made["seconds"] / made["coordinates"])
    return (
        f" A pass that made canaries and did nothing with them would be {digits(most, most)} times faster than numpy's."
    )


def _algorithm_1(document: Mapping[str, Any]) -> Section:
    found, size, stored = document["algorithm_1"], document["size"], document["stored"]
    timed = [row for row in found if "skipped" not in row]
    ours = max((row for row in timed if row["label"] == "canaryproof"), key=lambda row: row["threads"])
    rows = []
    for row in found:
        if "skipped" in row:
            rows.append((row["label"], "", f"skipped: {row['skipped']}", "", ""))
        else:
            environment_line = str(row["threads"]) if row["label"] == "canaryproof" else ""
            rows.append((row["label"], environment_line, _seconds(row), _nanoseconds(row), _ratio(row, ours)))
    rows.append(("memory: stored canaries, read once", str(stored["threads"]), "", _nanoseconds(stored), ""))
    limit = stored["seconds"] / stored["coordinates"] / (ours["seconds"] / ours["coordinates"])
    gigabytes = 4e-9 * stored["coordinates"]
    rate = digits(gigabytes / stored["seconds"], gigabytes / stored["seconds"] * stored["error"] / stored["seconds"])
    note = (
        f"All of Algorithm 1: {size['count']:,} canaries of dimension {size['dim']:,} are made and summed, noise is "
        "added, and they are made again and scored, two passes. numpy draws in one thread, whatever the number of "
        f"threads; JAX takes as many as it likes.{_shared('numpy and JAX', timed)} The last row is the limit that "
        f"storage would meet: products of one vector with canaries of {digits(gigabytes, 0.0)} GB in memory, at {rate} "
        f"GB/s; a coordinate that is made comes at {_percent(limit)} of the speed of one that is read."
        f"{_compute_bound(document, ours)}{_making_bound(document, timed)}"
    )
    alternative = (
        "Bars on a logarithmic axis, nanoseconds a coordinate and pass: "
        + "; ".join(f"{row['label']}{threads_of(row)} {_nanoseconds(row)}" for row in timed)
        + f"; reading from memory {_nanoseconds(stored)}"
    )
    header = ("", "threads", "seconds", "ns a coordinate and pass", f"times ours on {ours['threads']}")
    return Section("Algorithm 1", header, tuple(rows), note, "performance-coordinates.svg", alternative)


def _algorithm_3(document: Mapping[str, Any]) -> Section:
    size, blocks = document["size"], document["rounds"]
    columns: list[Sequence[str]] = [[row["label"] for row in blocks[0]["timings"]]]
    header, shares, spoken, least = [""], [], [], []
    square = document["square"]["coordinates"] / document["square"]["seconds"]
    gigaflops = digits(2e-9 * square, 2e-9 * square * document["square"]["error"] / document["square"]["seconds"])
    for block in blocks:
        rows, number = block["timings"], block["rounds"]
        ours = rows[0]
        stored = min((row for row in rows if row["label"].startswith("stored")), key=lambda row: row["seconds"])
        header += [f"seconds, {number} rounds", "times ours"]
        columns += [[_seconds(row) for row in rows], [_ratio(row, ours) for row in rows]]
        of_stored, of_square = stored["seconds"] / ours["seconds"], ours["coordinates"] / ours["seconds"] / square
        shares.append(
            f"with {number} rounds block_cosines reaches {_percent(of_stored)} of the flops that the BLAS reaches with "
            f"stored canaries, and {_percent(of_square)} of those of its product of square matrices"
        )
        made = next(row for row in rows if row["label"].startswith("canaries made"))
        bound = made["seconds"] / stored["seconds"] + 1.0
        least.append(f"{digits(bound, bound)} times a BLAS with stored canaries with {number} rounds")
        spoken.append(f"{number} rounds: " + ", ".join(f"{row['label']} {_seconds(row)}" for row in rows))
    largest = max(block["largest_difference"] for block in blocks)
    every = [row for block in blocks for row in block["timings"]]
    note = (
        f"Cosines of {size['rounds_count']:,} canaries of dimension {size['rounds_dim']:,} with a block of rounds, on "
        "all threads. The first block also finds the canaries' norms, which later ones know; numpy is given them too. "
        f"In this run {', and '.join(shares)} ({gigaflops} Gflop/s)."
        f"{_shared('numpy', every)} To make canaries, and then to multiply them as fast as a BLAS does stored ones, "
        f"takes {', and '.join(least)}: no aim below this can be met on this machine. "
        f"block_cosines differs from cosines by at most {largest:.1e}/√d."
    )
    alternative = "Bars on a logarithmic axis, seconds: " + "; ".join(spoken)
    rows_ = tuple(zip(*columns, strict=True))
    return Section("Algorithm 3", tuple(header), rows_, note, "performance-rounds.svg", alternative)


def _further(scaling: Mapping[str, Any]) -> str:
    """Say what more canaries cost, for each dimension that was measured with several numbers of them."""
    rows: dict[int, list[Mapping[str, Any]]] = {}
    for (dim, _), row in zip(scaling["cells"], scaling["timings"], strict=True):
        rows.setdefault(dim, []).append(row)
    costs = []
    for dim, several in rows.items():
        few, many = (pick(several, key=lambda row: row["coordinates"]) for pick in (min, max))
        more, longer = (many[name] - few[name] for name in ("coordinates", "seconds"))
        if more > 0 and longer > 0.0:
            cost = digits(1e9 * longer / more, 1e9 * (many["error"] + few["error"]) / more)
            costs.append(f"{cost} ns at d = {dim:,}")
    return f" From few canaries of a dimension to many, each k·d more takes {', '.join(costs)}." if costs else ""


def _scaling(document: Mapping[str, Any]) -> Section:
    scaling = document["scaling"]
    rows = tuple(
        (f"{dim:,}", f"{count:,}", _seconds(row), _nanoseconds(row))
        for (dim, count), row in zip(scaling["cells"], scaling["timings"], strict=True)
    )
    note = (
        f"Algorithm 1 on all threads, {scaling['timings'][0]['repetitions']} repetitions. Fitted slope of log time "
        f"against log k·d: {scaling['slope']:.2f} ± {scaling['slope_error']:.2f} (1 is linear). The last column holds "
        "both passes, and the noise and all else that takes time in proportion to d alone, such as memory that the "
        f"system hands out for the first time.{_further(scaling)} Beyond 2²³ coordinates canaries are not held, as one "
        "alone would take more memory than is aimed at, and their norms take a third pass: none can be added before "
        "its norm is known."
    )
    dims = [dim for dim, _ in scaling["cells"]]
    alternative = (
        f"On logarithmic axes, seconds against k·d for d from {min(dims):,} to {max(dims):,}, with a line of slope 1: "
        f"the fitted slope is {scaling['slope']:.2f}"
    )
    header = ("d", "k", "seconds", "ns per k·d")
    return Section("Cost against k·d", header, rows, note, "performance-scaling.svg", alternative)


def _orthonormal(document: Mapping[str, Any]) -> Section:
    found, size = document["orthonormal"], document["size"]
    numpy = [row for row in document["algorithm_1"] if row["label"].startswith("numpy")]
    rows = []
    for n, count in enumerate(size["orthonormal"]):
        work = 2 * size["dim"] * count
        others = _for_work(numpy, work), _for_work([document["stored"]], work)
        rows.append(_compared(f"Algorithm 1, k = {count:,}", found["algorithm_1"][3 * n :], others))
    block = document["rounds"][0]["timings"]
    others = tuple(_fastest([row for row in block if row["label"].startswith(kind)]) for kind in ("numpy", "stored"))
    name = f"a block of {size['blocks'][0]} rounds, k = {size['rounds_count']:,}"
    rows.append(_compared(name, found["rounds"], others))
    note = (
        f"Algorithm 1 at d = {size['dim']:,}: all canaries are summed, noise is added, and all are scored; signs and "
        f"rows are drawn anew. The transforms alone are those of sum and scores, in one thread. Rounds are of "
        f"d = {size['rounds_dim']:,}, in float32."
        f"{_shared('independent canaries', [*found['algorithm_1'], *found['rounds']])} numpy's times and those of "
        f"stored canaries, which are read twice, are scaled from the tables above: few machines store so many."
    )
    header = (
        *("", "orthonormal, s", "independent, s", "numpy, s", "stored, s", "transforms alone, s"),
        *("times faster than independent", "times the transforms"),
    )
    return Section("Orthonormal canaries", header, tuple(rows), note)


def _compared(
    name: str, timings: Sequence[Mapping[str, Any]], others: tuple[Mapping[str, Any], ...]
) -> tuple[str, ...]:
    ours, independent, transforms = timings[:3]
    seconds = (_seconds(row) for row in (ours, independent, *others, transforms))
    return (name, *seconds, _ratio(independent, ours), _ratio(ours, transforms))


def _fastest(rows: Iterable[Mapping[str, Any]]) -> Mapping[str, Any]:
    return min(rows, key=lambda row: row["seconds"])


def _for_work(rows: Iterable[Mapping[str, Any]], coordinates: int) -> Mapping[str, Any]:
    """Scale the fastest time to so many coordinates."""
    best = _fastest(rows)
    scale = coordinates / best["coordinates"]
    return {"seconds": scale * best["seconds"], "error": scale * best["error"]}


def _memory(document: Mapping[str, Any]) -> Section:
    rows = tuple(
        (row["label"], "", "", "", f"skipped: {row['skipped']}")
        if "skipped" in row
        else (
            row["label"],
            f"{row['dim']:,}",
            f"{row['count']:,}",
            f"{row['vectors'] / 1e6:.1f}",
            f"{row['extra'] / 1e6:.1f}",
        )
        for row in document["memory"]
    )
    note = (
        "Peak of a fresh process beyond what it held before, less the vectors: the released vector or the sum in "
        f"float64, a buffer of {document['size']['blocks'][0]} rounds in float32, or nothing where the vector is given."
    )
    return Section("Peak memory", ("", "d", "k", "vectors, MB", "beside them, MB"), rows, note)


def _bits(document: Mapping[str, Any]) -> Section:
    words = {True: "the same bits", False: "differ"}
    rows = tuple((row["label"], words[row["threads_agree"]], words[row["runs_agree"]]) for row in document["bits"])
    note = "Fresh processes on one thread, on two, and on two again."
    return Section("Bits", ("", "one and two threads", "two runs"), rows, note)


def _instructions(document: Mapping[str, Any]) -> Section:
    rows = tuple(
        (row["label"], "", f"skipped: {row['skipped']}")
        if "skipped" in row
        else (row["label"], row["tool"], f"{row['instructions']:.1f}")
        for row in document["instructions"]
    )
    note = (
        "Algorithm 1 in one thread, less the same process without it. callgrind knows no vectors of 512 bits: it "
        "counts code that was compiled for the processor it names."
    )
    return Section("Instructions", ("", "counted by", "a coordinate and pass"), rows, note)
