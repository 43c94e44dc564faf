"""Pages on other people's tools and this package's, measured alike: auditors and accountants, and dependent scores."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from canaryproof.verify.audit.markup.figures import BLUE, GREY, ORANGE, STYLE, svg
from canaryproof.verify.audit.markup.markdown import table, without_tags
from canaryproof.verify.papers.check.results import Result, Run
from other_tools import auditors

PAGE, COVERAGE, ERRORS = "auditors.md", "auditors-coverage.svg", "auditors-accountants.svg"
DEPENDENCE = "auditors-dependence.md"
_SUITES = ("auditors", "accountants")
# How opaque cells of few audits are.
_PALE = 0.35
# Methods of documents, as this package reproduces them.
_REPRODUCED = ("Andrew et al.", "CANIFE")
_PROGRAM = "python -m other_tools.{}"
_KINDS = {
    "epsilon": "ε, one round",
    "noise": "noise multiplier",
    "composed": "ε, 100 rounds",
    "sampled": "ε, Poisson sampling",
}

_ABOUT = """\
canaryproof {version}, `python -m other_tools --level {level} --seed {seed}`, {date}. All methods of a
suite get the same inputs. A tool's numbers are judged by what its documentation calls them: a lower bound by its
confidence, an upper bound by its side. What takes a probability of failure counts as a bound. An estimate promises
neither; its row says what it would do if it were read as a bound. `make auditors` repeats all. Each method has a
section below, whose command repeats a cell, or the questions of a kind at a δ, in about a minute."""
_AUDITORS = """\
Each of 2k canaries takes part by a fair coin. Scores are independent. Rounded Gaussian scores have ties, and Cauchy
noise has heavy tails. Identical scores are all 0. The worst case is (ε, δ)-private, and no better at any ε.
δ = 1e-5, and 0.01 for the worst case. α = 0.05 is given to every method that takes it.

A value counts as above ε if it is more than {slack:g} above. Limits are Clopper and Pearson's, at 95%. *Worst* is the
cell whose lower limit is highest. *Mean* is of the finite values on the Gaussian mechanism of ε = 3, k = 100: the
power. *Failures* are calls that raise, take more than {limit:g} CPU seconds, or give no finite number.

Methods that assume a Gaussian trade-off curve are measured on Gaussian mechanisms and on identical scores only. The
audits of a method take some {budget:g} CPU seconds in all, by the seconds of a call that the suite declares. So methods
whose calls take long get fewer audits, at least {least} a cell, and the slowest fewer cells. *x of n* has the number of
audits; the limits show how much it decides."""
_DEPENDENCE = """\
canaryproof {version}, `python -m other_tools dependence --level {level} --seed {seed}`, {date}.
The scores of one run depend on each other, so that a bound that treats them as independent may be above the true ε in
more audits than it promises. *Covered* says whether the method's proof allows such dependence: it does where it rests
on a fair coin for each canary. Such methods get 200 canaries with a coin each. The others get 200 canaries that all
take part, and 200 draws from the law of a score without its canary, N(0, 1), which every mechanism here has. A method
that is not covered keeps its promise here by luck alone; which keep it where scores are independent is [measured
too](auditors.md). δ = 1e-5 and α = 0.05.

- **scale drawn once a run**: a run draws its trace, 2 with probability 0.3 and 0.5 otherwise, for all canaries.
- **two states**: an (ε, 0)-private mechanism with ε = 1. In one state of a run all scores show their canaries, with
  twice the ε; the fewer canaries are left out, the likelier it is.
- **equicorrelated**: Gaussian noise of correlation 0.5 between all canaries, with a trace of 0 or 1.
- **comonotone**: all canaries have the same noise, and no trace.

An entry is the number of audits whose value is more than {slack:g} above ε, with Clopper and Pearson's 95% limits of
the share. The first row has ε. Methods that assume a Gaussian trade-off curve are measured where there is one."""
_INPUTS = """\
Methods that take counts of one threshold (`Explicit`, `privacy-estimates`) get the one halfway between the medians of
the two laws, chosen in advance. Only `FDPAnalysisNode` takes a number of guesses: the highest tenth of the
scores as in, the lowest as out, ties at random. opake flips coins itself; its `CoinFlip` is made from those that were
flipped for all. `AnalysisNode` resamples with numpy's global generator, seeded for each audit."""
_UNUSUAL = """\
What each method answers to scores of which one is not a number or infinite, to no scores, to 20 scores of observed
canaries alone, and to one score of each kind. The other scores are 20 and 20 of the Gaussian mechanism. Of the last
three inputs next to nothing follows, so that a lower bound of ε is 0 or near it. The sections of the methods have what
was raised."""
_ACCOUNTANTS = """\
Errors are relative, to proven enclosures of the Gaussian mechanism (`canaryproof.certified`), alone and composed. With
Poisson sampling they are relative to an interval between privacy loss distributions rounded down and up, which are
dp-accounting's too. *Below* is the unsafe side: less ε or less noise than the truth. Errors up to {tolerance:g} count
as rounding. *Failures* are questions without a finite answer in {limit:g} CPU seconds; with more time there may be one.
A tool has no row for a number that it has no function of its own for."""


@dataclass(frozen=True)
class ToolFault:
    """A fault that was found, with the script that shows it."""

    script: str
    tool: str
    version: str
    effect: str
    cause: str
    measured: tuple[str, str]  # tool and method whose measurement shows it
    # Its cells that show the fault: mechanism, ε that it is made for, canaries; of an accountant, its questions.
    seen: tuple[tuple[str, float, int] | str, ...]


# Faults that the scripts show, at the versions named.
FAULTS = (
    ToolFault(
        "jax_privacy_gdp.py",
        "jax-privacy",
        "2.0.0",
        "`epsilon_from_gdp` is above ε in nearly all audits of equal laws",
        "jax_privacy/auditing.py, line 927: `np.abs` around Φ⁻¹(1 − FPR) − Φ⁻¹(FNR) of two *upper* limits, which is "
        "negative where nothing is learnt. Upper limits say nothing in reverse: that needs lower ones. Pull request "
        "270 of its repository corrects this, and no release up to this one has it",
        ("jax-privacy", "epsilon_from_gdp"),
        (("Gaussian", 0.0, 100), ("Gaussian", 0.0, 1000), ("Gaussian", 3.0, 1000)),
    ),
    ToolFault(
        "privacyguard_fdp_floor.py",
        "privacyguard-platform",
        "0.0.2",
        "`FDPAnalysisNode` reports 0.397 at its default δ = 1e-6 for 0 of 200 right guesses; with its defaults no "
        "input gives less",
        "privacy_guard/analysis/mia/fdp_analysis_node.py, lines 57 and 214: `candidate_noises` ends at 9.991, and the "
        "last one is reported where the data contradict none",
        ("privacyguard-platform", "FDPAnalysisNode"),
        (("Gaussian", 0.0, 100),),
    ),
    ToolFault(
        "privacyguard_eps_lb.py",
        "privacyguard-platform",
        "0.0.2",
        "`AnalysisNode`'s `eps_lb` can be the logarithm of the number of scores at ε = 3: 4.6 for 100, 6.9 for 1,000",
        "privacy_guard/analysis/mia/mia_results.py, lines 256 and 262: ln TPR − ln FPR is infinite where FPR = 0, and "
        "is cut to that logarithm. A resample of scores without false positives has none either",
        ("privacyguard-platform", "AnalysisNode, eps_lb"),
        (("Gaussian", 3.0, 100),),
    ),
    ToolFault(
        "opake_threshold.py",
        "opake-auditing",
        "0.16.1",
        "`eps_delta().epsilon_at` is above 0 more often than its significance where ε = 0",
        "opake/api/auditing/one_run/_estimate.py, line 167: the threshold with most right guesses is taken from the "
        "same scores, with no correction for the choice. With a threshold that is given in advance the promise holds",
        ("opake-auditing", "eps_delta"),
        (("Gaussian", 0.0, 100),),
    ),
    ToolFault(
        "privacy_estimates_dirichlet.py",
        "privacy-estimates",
        "0.1.0.post1",
        "`compute_eps_lo(method='joint-dirichlet')` raises TypeError for every input",
        "privacy_estimates/joint_density.py, line 125: adds an `AttackResults` to an array",
        ("privacy-estimates", "joint-dirichlet"),
        (("Gaussian", 3.0, 100),),
    ),
    ToolFault(
        "dp_accounting_connect_dots.py",
        "dp-accounting",
        "0.6.0",
        "a pessimistic ε of 100 composed rounds is below the exact one at δ = 1e-12, by 5e-5 of it; so are those of "
        "tools that use it (jax-privacy, riskcal)",
        "dp_accounting/pld/common.py, lines 288 and 289: the transforms round to 1e-16 of the largest of 500,000 "
        "probabilities. Above ε they lose 4e-15 in all, more than the `tail_mass_truncation` of 1e-15 that is added. "
        "In 80 bits nothing is lost",
        ("riskcal", "CTDAccountant"),
        ("ε of 100 rounds, σ = 3, T = 100, δ = 1e-12",),
    ),
    ToolFault(
        "diffprivlib_small_delta.py",
        "diffprivlib",
        "0.6.6",
        "`GaussianAnalytic` gives too little noise at ε = 1, δ = 1e-15, whose δ is 1.04e-15, and 1% too much at ε = 50",
        "diffprivlib/mechanisms/gaussian.py, line 168: `phi` is 1 + erf, which cancels in the tail",
        ("diffprivlib", "GaussianAnalytic"),
        ("noise multiplier, ε = 1, δ = 1e-15", "noise multiplier, ε = 50, δ = 1e-05"),
    ),
    ToolFault(
        "autodp_small_delta.py",
        "autodp",
        "0.2.3.1",
        "`ana_gaussian_calibrator` gives 7% more noise than needed at ε = 1, δ = 1e-12, and 7% less at δ = 1e-15",
        "autodp/calibrator_zoo.py, lines 121 and 164: `Phi` is 1 + erf, which cancels; the search stops at an absolute "
        "1e-12, which is δ",
        ("autodp", "ExactGaussianMechanism"),
        ("noise multiplier, ε = 1, δ = 1e-12", "noise multiplier, ε = 1, δ = 1e-15"),
    ),
)


def _results(run: Run, suite: str) -> list[Result]:
    return [result for result in run.results if result.suite == suite and "method" in result.evidence]


def render(run: Run) -> dict[str, str]:
    """Make the page and its pictures, by file name; nothing where no tool is measured."""
    pages = {PAGE: text(run)} if any(_measured(run, suite) for suite in _SUITES) else {}
    if audits := _measured(run, "dependence"):
        pages[DEPENDENCE] = dependence(run, audits)
    return {name: without_tags(made) for name, made in pages.items()} | {
        name: svg(figure) for name, figure in figures(run).items()
    }


def dependence(run: Run, audits: Sequence[Mapping[str, Any]]) -> str:
    """Render the page of methods on scores that depend on each other."""
    truths = {_without_coins(row): row["truth"] for measured in audits for row in measured["cells"]}
    about = _DEPENDENCE.format(
        version=run.version,
        level=run.level,
        seed=run.seed,
        date=max(measured["date"] for measured in audits),
        slack=audits[0]["slack"],
    )
    rows = [("ε", "", "", *(f"{truth:.3g}" for truth in truths.values()))]
    for measured in audits:
        cells = {_without_coins(row): row for row in measured["cells"]}
        covered = "yes" if measured["any_dependence"] else "no"
        rows.append((_tool(measured), measured["method"], covered, *(_above(cells.get(name)) for name in truths)))
    parts = ["# Auditors on scores that depend on each other", about, *_missing(run, ("dependence",))]
    return "\n\n".join([*parts, table(("tool", "method", "covered", *truths), rows)]) + "\n"


def _without_coins(row: Mapping[str, Any]) -> str:
    """Return the mechanism's name, whoever takes part."""
    return str(row["mechanism"]).removesuffix(auditors.ALL_IN)


def _above(row: Mapping[str, Any] | None) -> str:
    if row is None:
        return ""
    if _failed(row) == row["runs"]:
        return "no number"
    low, high = row["interval"]
    return f"{row['above']} of {row['runs']} [{low:.0%}, {high:.0%}]"


def _measured(run: Run, suite: str) -> list[Mapping[str, Any]]:
    return [result.evidence for result in _results(run, suite) if "version" in result.evidence]


def text(run: Run) -> str:
    """Render the page of a run that has measured tools."""
    audits, accounts = (_measured(run, suite) for suite in _SUITES)
    date = max(measured["date"] for measured in (*audits, *accounts))
    parts = [
        "# The auditors, audited",
        _ABOUT.format(version=run.version, level=run.level, seed=run.seed, date=date),
        *_missing(run, _SUITES),
    ]
    if audits:
        parts += [
            "## Auditors",
            _AUDITORS.format(**{key: audits[0][key] for key in ("slack", "limit", "budget", "least")}),
            f"![Share of audits whose value is above the true ε, a row for each method]({COVERAGE})",
            table(
                ("tool", "method", "promise", "worst: above ε", "there", "mean", "failures", "CPU ms"),
                map(_scores, audits),
            ),
            "### What the documentation calls the number",
            _quotes(audits),
            "### What is given to each",
            _INPUTS,
            "### Unusual inputs",
            _UNUSUAL,
            table(
                ("tool", "method", *audits[0]["inputs"]),
                [(_tool(measured), _name(measured), *map(_answer, measured["inputs"].values()))
                 for measured in audits],
            ),
        ]  # fmt: skip
    if accounts:
        parts += [
            "## Accountants",
            _ACCOUNTANTS.format(tolerance=accounts[0]["tolerance"], limit=accounts[0]["limit"]),
            f"![Relative errors of accountants, a row for each]({ERRORS})",
            table(
                ("tool", "method", "numbers", "largest error below", "there", "largest above", "there", "failures",
                 "CPU ms"),
                [row for measured in accounts for row in _errors(measured)],
            ),
            "### What the accountants' documentation says",
            _quotes(accounts),
        ]  # fmt: skip
    parts += list(_faults(run))
    if audits:
        parts += ["## Every cell", *(part for measured in audits for part in _cells(measured, run))]
    if accounts:
        parts += ["## Every question", *(part for measured in accounts for part in _questions(measured, run))]
    return "\n\n".join(parts) + "\n"


def _missing(run: Run, suites: Sequence[str]) -> Iterator[str]:
    skipped = [(f"`{result.evidence['tool']}`", result.evidence["missing"])
               for suite in suites for result in _results(run, suite) if "missing" in result.evidence]  # fmt: skip
    if skipped:
        yield "Not measured:"
        yield table(("tool", "reason"), list(dict.fromkeys(skipped)))


def _anchor(measured: Mapping[str, Any]) -> str:
    """Return what code hosts make of a heading."""
    heading = f"{measured['tool']} {measured['method']}".lower()
    return "".join(c for c in heading.replace(" ", "-") if c.isalnum() or c in "-_")


def _tool(measured: Mapping[str, Any]) -> str:
    """Name a tool with its version; what a document describes has none."""
    tool = measured["tool"]
    return f"{tool}, reproduced" if tool in _REPRODUCED else f"{tool} {measured['version']}"


def _quotes(measured: Sequence[Mapping[str, Any]]) -> str:
    rows = [(_tool(evidence), _name(evidence), evidence["called"], f"`{evidence['source']}`") for evidence in measured]
    return table(("tool", "method", "words", "source"), rows)


def _name(measured: Mapping[str, Any]) -> str:
    return f"[{measured['method']}](#{_anchor(measured)})"


def _worst(measured: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the cell whose lower limit is farthest above the promise; of equal ones, that of most audits."""
    cells: Sequence[Mapping[str, Any]] = measured["cells"]
    return max(cells, key=lambda row: (row["interval"][0], -row["interval"][1]))


def _scores(measured: Mapping[str, Any]) -> tuple[str, ...]:
    rows = measured["cells"]
    worst = _worst(measured)
    low, high = worst["interval"]
    usual = next((r for r in rows if (r["mechanism"], r["nominal"], r["count"]) == ("Gaussian", 3.0, 100)), None)
    failed, calls = (sum(map(count, rows)) for count in (_failed, lambda row: row["runs"]))
    return (
        _tool(measured),
        _name(measured),
        "none" if measured["promise"] is None else f"at most {measured['promise']:.1%} above",
        *(
            ("–", "–")
            if failed == calls
            else (f"{worst['above']} of {worst['runs']} [{low:.0%}, {high:.0%}]", _where(worst))
        ),
        "–" if usual is None or usual["mean"] is None else f"{usual['mean']:.2f}",
        f"{failed:,} of {calls:,}",
        _milliseconds([row["seconds"] for row in rows]),
    )


def _answer(answer: str) -> str:
    """Shorten what was raised to its type."""
    return f"raises {answer.partition(':')[0]}" if ": " in answer else answer


def _failed(row: Mapping[str, Any]) -> int:
    return int(row["raised"] + row["not_numbers"] + row["infinite"])


def _where(row: Mapping[str, Any]) -> str:
    return f"{row['mechanism']}, ε = {row['truth']:.3g}, k = {row['count']:,}"


def _milliseconds(seconds: Sequence[float]) -> str:
    return " to ".join(dict.fromkeys(_of_seconds(value) for value in (min(seconds), max(seconds))))


def _of_seconds(value: float) -> str:
    return "< 0.1" if value < 1e-4 else f"{1e3 * value:.2g}" if value < 0.01 else f"{1e3 * value:,.0f}"


def _errors(measured: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    for kind, words in _KINDS.items():
        rows = [row for row in measured["rows"] if row["of"] == kind]
        if not rows:
            continue
        answered = [row for row in rows if row["error"] is not None]
        sides = []
        for sign in (-1.0, 1.0):
            worst = max(answered, key=lambda row: sign * row["error"], default=None)
            if worst is None or sign * worst["error"] <= measured["tolerance"]:
                sides += ["–", "–"]
            else:
                sides += [f"{abs(worst['error']):.2g}", worst["label"]]
        yield (
            _tool(measured),
            _name(measured),
            words,
            *sides,
            f"{len(rows) - len(answered)} of {len(rows)}",
            _milliseconds([row["seconds"] for row in rows]),
        )


def _faults(run: Run) -> Iterator[str]:
    measured = [evidence for suite in _SUITES for evidence in _measured(run, suite)]
    versions = {(evidence["tool"], evidence["version"]) for evidence in measured}
    rows = [
        (
            f"[{fault.script}](../../examples/auditors/{fault.script})",
            f"{fault.tool} {fault.version}",
            fault.effect,
            "".join(f"{_name(evidence)}: {_seen(evidence, fault.seen)}" for evidence in measured
                    if (evidence["tool"], evidence["method"]) == fault.measured) or "–",
            fault.cause,
        )
        for fault in FAULTS
        if (fault.tool, fault.version) in versions
    ]  # fmt: skip
    if rows:
        yield "## Faults found"
        yield "Each script needs nothing but the tool. The cause is as far as the code tells it."
        yield table(("script", "tool", "what it shows", "in this run", "cause"), rows)


def _seen(measured: Mapping[str, Any], wanted: Sequence[tuple[str, float, int] | str]) -> str:
    """Return what a run measured of a fault."""
    parts = []
    for row in measured.get("cells", ()):
        if (row["mechanism"], row["nominal"], row["count"]) in wanted:
            if row["median"] is None:
                parts.append(f"{_where(row)}: {_failed(row)} of {row['runs']} calls fail")
            else:
                above = f"above in {row['above']} of {row['runs']}, median {row['median']:.3g}"
                parts.append(f"{_where(row)}: {above}")
    error_of = {row["label"]: row["error"] for row in measured.get("rows", ()) if row["error"] is not None}
    parts += [f"{label}: relative error {error_of[label]:+.2g}" for label in wanted if label in error_of]
    return "; ".join(parts)


def _command(measured: Mapping[str, Any], run: Run, suite: str, cell: str = "") -> str:
    return f"`{_PROGRAM.format(suite)} {_called(measured)}{cell} {run.level}`"


def _called(measured: Mapping[str, Any]) -> str:
    return f"'{measured['tool']}' '{measured['method']}'"


def _cells(measured: Mapping[str, Any], run: Run) -> Iterator[str]:
    yield f"### {measured['tool']} {measured['method']}"
    worst = _worst(measured)
    command = _command(measured, run, "auditors", f" '{worst['mechanism']}' {worst['nominal']:g} {worst['count']}")
    yield f"{command} repeats the worst cell. The first three columns are the arguments of the others."
    rows = []
    for row in measured["cells"]:
        low, high = row["interval"]
        of = {"raised": row["raised"], "NaN": row["not_numbers"], "infinite": row["infinite"]}
        failures = ", ".join(f"{count} {word}" for word, count in of.items() if count) or "–"
        rows.append(
            (row["mechanism"], f"{row['nominal']:g}", f"{row['count']}", f"{row['truth']:.4g}",
             f"{row['above']} of {row['runs']} [{low:.1%}, {high:.1%}]",
             *("–" if row[of] is None else f"{row[of]:.3g}" for of in ("least", "median", "mean")),
             f"{failures} {'; '.join(row['reasons'])}".strip(), _of_seconds(row["seconds"]))
        )  # fmt: skip
    yield table(("mechanism", "made for ε", "k", "ε", "above ε", "least", "median", "mean", "failures", "CPU ms"), rows)
    yield f"Unusual inputs (`{_PROGRAM.format('auditors')} {_called(measured)} inputs`):"
    yield table(("scores", "answer"), list(measured["inputs"].items()))


def _questions(measured: Mapping[str, Any], run: Run) -> Iterator[str]:
    yield f"### {measured['tool']} {measured['method']}"
    kinds = ", ".join(f"`{kind}`" for kind in dict.fromkeys(row["of"] for row in measured["rows"]))
    first = measured["rows"][0]
    command = _command(measured, run, "accountants", f" {first['of']} {first['delta']:g}")
    yield f"{command} repeats those of a kind at a δ. The kinds are {kinds}."
    yield table(
        ("question", "answer", "enclosure", "relative error"),
        [
            (
                row["label"],
                row["raised"] or f"{row['value']:.10g}",
                "[{:.10g}, {:.10g}]".format(*row["enclosure"]) + ("" if row["proven"] else ", not proven"),
                "–" if row["error"] is None else f"{row['error']:+.2g}",
            )
            for row in measured["rows"]
        ],
    )


@mpl.rc_context(STYLE)
def coverage(run: Run) -> Figure:
    """Draw the share of audits above ε in every cell of every method, and what is promised."""
    audits = _measured(run, "auditors")
    figure = Figure(figsize=(8.4, 0.26 * len(audits) + 1.1), layout="constrained")
    axis = figure.subplots()
    for y, measured in enumerate(audits):
        if all(row["mean"] is None for row in measured["cells"]):
            axis.annotate("no finite number", (0.02, y), va="center", fontsize=7.0)
            continue
        promised = measured["promise"] is not None
        # Small cells are pale: their limits are wide.
        for row in measured["cells"]:
            axis.plot(
                row["rate"], y, "o", color=BLUE if promised else GREY, alpha=0.75 if row["runs"] >= 100 else _PALE, ms=4
            )
        worst = _worst(measured)
        axis.plot(worst["interval"], (y, y), color=BLUE if promised else GREY, linewidth=1.0)
        if promised:
            axis.plot(measured["promise"], y, "|", color=ORANGE, markersize=11, markeredgewidth=2.0)
    axis.set_yticks(range(len(audits)), [f"{measured['tool']}: {measured['method']}" for measured in audits])
    axis.set(xlim=(-0.02, 1.02), xlabel="share of audits above ε; line: 95% limits of the worst cell")
    axis.xaxis.set_major_formatter(lambda x, _: f"{x:.0%}")
    axis.invert_yaxis()
    handles = [
        mpl.lines.Line2D([], [], marker="o", linestyle="", color=BLUE, label="a cell, promised"),
        mpl.lines.Line2D([], [], marker="o", linestyle="", color=GREY, label="a cell of an estimate, no promise"),
        mpl.lines.Line2D([], [], marker="|", linestyle="", color=ORANGE, markersize=11, label="promise"),
        mpl.lines.Line2D([], [], marker="o", linestyle="", color=BLUE, alpha=_PALE, label="fewer than 100 audits"),
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=4, frameon=False)
    return figure


def _percent(value: float) -> str:
    exponent = f"{100.0 * value:.0e}".partition("e")[2]
    return f"{100.0 * value:g}%".replace("-", "−") if abs(value) <= 1.0 else f"$10^{{{int(exponent)}}}$%"


@mpl.rc_context(STYLE)
def errors(run: Run) -> Figure:
    """Draw every relative error of every accountant on a scale that is linear near 0."""
    accounts = _measured(run, "accountants")
    figure = Figure(figsize=(8.4, 0.28 * len(accounts) + 1.1), layout="constrained")
    axis = figure.subplots()
    for y, measured in enumerate(accounts):
        values = [row["error"] for row in measured["rows"] if row["error"] is not None]
        colours = [ORANGE if value < -measured["tolerance"] else BLUE for value in values]
        axis.scatter(values, [y] * len(values), c=colours, s=14, alpha=0.6)
        if lost := len(measured["rows"]) - len(values):
            axis.annotate(f"{lost} failed", (1.01, y), xycoords=("axes fraction", "data"), va="center",
                          fontsize=7.0)  # fmt: skip
    axis.set_xscale("symlog", linthresh=accounts[0]["tolerance"])
    # A tick for every third power of ten within what is drawn; the scale's own ones overlap.
    left, right = axis.get_xlim()
    ticks = [tick for tick in (-1.0, -1e-3, 0.0, *(10.0**power for power in range(-3, 16, 3))) if left <= tick <= right]
    axis.set_xticks(ticks, [_percent(tick) for tick in ticks])
    axis.minorticks_off()
    axis.axvline(0.0, color=GREY, linewidth=0.8, zorder=0)
    axis.set_yticks(range(len(accounts)), [f"{measured['tool']}: {measured['method']}" for measured in accounts])
    axis.set_xlabel("relative error; left (orange): below the truth, unsafe")
    axis.invert_yaxis()
    return figure


def figures(run: Run) -> dict[str, Figure]:
    """Draw the pictures for which a run has numbers, by file name."""
    pictures = {}
    if _measured(run, "auditors"):
        pictures[COVERAGE] = coverage(run)
    if _measured(run, "accountants"):
        pictures[ERRORS] = errors(run)
    return pictures
