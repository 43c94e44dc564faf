"""The formats of a report, and the files of each.

``md`` is Markdown with SVG pictures and ``results.json``. ``html`` is ``report.html`` with exports for papers. There
``tables/`` holds ``ledger`` and each chapter's tables, numbered, as CSV and LaTeX. ``pictures/`` holds the pictures as
SVG and PNG. A badge and citations come with them. ``json`` is ``results.json`` with its schema. ``pdf`` is
``report.html``, printed by Chromium. Without a format there are the Markdown pages and ``report.html``.
"""

import csv
import io
import json
import re
import shutil
import subprocess
import tempfile
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from importlib.resources import files as resources
from pathlib import Path

from matplotlib.figure import Figure

from canaryproof.reports import canife
from canaryproof.reports.html import environment, html, tables
from canaryproof.reports.pages import FILES, RESULTS, Chapter, as_written, chapters, figures_of, markdown_of
from canaryproof.verify.audit.markup.figures import png, svg
from canaryproof.verify.papers.check.results import Run, Subject
from canaryproof.verify.papers.records.report_input import Material

HTML = "report.html"


class Format(StrEnum):
    """Form of a report."""

    HTML = "html"
    MD = "md"
    JSON = "json"
    PDF = "pdf"


@dataclass(frozen=True)
class Report:
    """A report: its files by name, and the one that people open.

    ``patterns`` match what else such a report may have, and another run's need not.
    """

    files: Mapping[str, bytes]
    patterns: tuple[str, ...]
    main: str


def report(material: Material, form: Format | None = None, figures: Mapping[str, Figure] | None = None) -> Report:
    """Make a report, with the run's pictures where they are drawn; OSError if it cannot be printed as PDF."""
    results, run = as_written(material.run)
    if form is Format.JSON:
        schema = (resources("canaryproof.reports") / "schema.json").read_bytes()
        return Report({RESULTS: results.encode(), "results.schema.json": schema}, (), RESULTS)
    material = replace(material, run=run)
    figures = figures_of(run) if figures is None else figures
    if form is Format.MD:
        pages = {**markdown_of(run, results, figures), **_companions(material)}
        return Report(pages, FILES, "summary.md")
    made = chapters(material, figures)
    page = html(material, made)
    if form is Format.PDF:
        return Report({"report.pdf": pdf(page)}, (), "report.pdf")
    if form is Format.HTML:
        return Report({HTML: page.encode(), **exports(run, made)}, PATTERNS, HTML)
    return Report({**markdown_of(run, results, figures), HTML: page.encode()}, FILES, HTML)


def _companions(material: Material) -> dict[str, bytes]:
    """Make the files that go with the Markdown pages: what made the run, and the page of a CANIFE benchmark."""
    pages: dict[str, str] = {}
    if material.environment:
        pages["environment.json"] = json.dumps(material.environment, ensure_ascii=False, indent=1) + "\n"
    if material.canife is not None:
        pages |= canife.render(material.canife)
    return {name: text.encode() for name, text in pages.items()}


# Files of an earlier export, which a new one removes.
PATTERNS = ("tables/*.csv", "tables/*.tex", "pictures/*.svg", "pictures/*.png")
_LEDGER = ("id", "suite", "subject", "place", "statement", "verdict", "finding", "level", "power")
_SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "–": "--", "—": "---", "…": r"\ldots{}", "“": "``", "”": "''",
}  # fmt: skip
# In mathematical mode; sub- and superscripts and accents are taken apart first.
_MATHS = {
    "−": "-", "±": r"\pm", "×": r"\times", "·": r"\cdot", "≤": r"\le", "≥": r"\ge", "≠": r"\ne", "≈": r"\approx",
    "∞": r"\infty", "→": r"\to", "←": r"\leftarrow", "√": r"\surd", "Σ": r"\Sigma", "‖": r"\Vert", "⟨": r"\langle",
    "⟩": r"\rangle", "∈": r"\in", "∑": r"\sum", "∫": r"\int", "⌈": r"\lceil", "⌉": r"\rceil", "✗": r"\times",
    "✓": r"\surd", "ε": r"\varepsilon", "δ": r"\delta", "σ": r"\sigma", "μ": r"\mu", "ρ": r"\rho", "τ": r"\tau",
    "α": r"\alpha", "β": r"\beta", "γ": r"\gamma", "θ": r"\theta", "λ": r"\lambda", "π": r"\pi", "φ": r"\varphi",
    "η": r"\eta", "ξ": r"\xi", "κ": r"\kappa", "χ": r"\chi", "ω": r"\omega", "Φ": r"\Phi", "Γ": r"\Gamma",
    "Δ": r"\Delta", "Ω": r"\Omega", "ℓ": r"\ell", "∂": r"\partial", "∝": r"\propto", "½": r"\frac12",
}  # fmt: skip
_CODE = re.compile("`([^`]+)`")
# Spreadsheets compute what begins like this, blanks before it left out.
_FORMULA = re.compile(r"\s*[=+@-]|\t")
_PLAIN_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?", re.IGNORECASE | re.ASCII)
_ACCENTS = {"\u0302": r"\hat", "\u0303": r"\tilde", "\u0304": r"\bar", "\u0305": r"\bar"}


def exports(run: Run, contents: Iterable[Chapter]) -> dict[str, bytes]:
    """Make what papers may take from a report, by file name."""
    exported: dict[str, tuple[Sequence[str], Sequence[Sequence[str]]]] = {"ledger": (_LEDGER, _ledger(run))}
    pictures = {}
    for chapter in contents:
        for i, table in enumerate(tables(chapter.text), start=1):
            exported[f"{chapter.name}-{i:02d}"] = table
        for name, figure in chapter.figures.items():
            pictures[name] = svg(figure).encode()
            pictures[f"{name.removesuffix('.svg')}.png"] = png(figure)
    return {
        **{f"tables/{name}.csv": comma_separated(*table).encode() for name, table in exported.items()},
        **{f"tables/{name}.tex": latex(*table).encode() for name, table in exported.items()},
        **{f"pictures/{name}": picture for name, picture in pictures.items()},
        "badge.svg": badge(run).encode(),
        "citation.bib": (resources("canaryproof.reports") / "templates" / "citation.bib").read_bytes(),
    }


def comma_separated(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Render a table as CSV, in which no cell is a formula to a spreadsheet."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    for row in (header, *rows):
        # A carriage return alone would end a line, and is not quoted for it.
        cells = [cell.replace("\r", " ") for cell in row]
        writer.writerow(f"'{c}" if _FORMULA.match(c) and not _PLAIN_NUMBER.fullmatch(c) else c for c in cells)
    return buffer.getvalue()


def latex(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Render a table for LaTeX with the package booktabs."""
    lines = [rf"\begin{{tabular}}{{{'l' * len(header)}}}", r"\toprule", _row(header), r"\midrule"]
    return "\n".join([*lines, *map(_row, rows), r"\bottomrule", r"\end{tabular}"]) + "\n"


def badge(run: Run) -> str:
    """Draw how many of our own checks hold, for a page that links to the report."""
    own = sum(result.subject is Subject.IMPLEMENTATION for result in run.results)
    held = f"{own - len(run.failures)} of {own} checks hold"
    sound = own and not run.failures
    return environment().get_template("badge.svg.jinja").render(words=held, colour="#00664f" if sound else "#b02a0c")


def _ledger(run: Run) -> list[tuple[str, ...]]:
    return [
        (
            *(r.id, r.suite, str(r.subject), r.source, r.statement, str(r.verdict), r.finding),
            *(("", "") if r.design is None else (f"{r.design.level:.1g}", f"{r.design.power:.3g}")),
        )
        for r in run.results
    ]


def _row(cells: Sequence[str]) -> str:
    return " & ".join(map(_text, cells)) + r" \\"


def _text(cell: str) -> str:
    plain, *rest = _CODE.split(" ".join(cell.split()))
    codes = (rf"\texttt{{{_spelt(code)}}}{_spelt(words)}" for code, words in zip(rest[::2], rest[1::2], strict=True))
    return _spelt(plain) + "".join(codes)


def _spelt(text: str) -> str:
    parts: list[str] = []
    for c in text:
        if c in _ACCENTS and parts:
            parts[-1] = f"${_ACCENTS[c]}{{{parts[-1].strip('$')}}}$"
            continue
        kind, _, plain = unicodedata.decomposition(c).partition(" ")
        if kind in ("<super>", "<sub>"):
            bases = (chr(int(code, 16)) for code in plain.split())
            raised = " ".join(_MATHS.get(base) or _SPECIAL.get(base, base) for base in bases)
            parts.append(f"${'^' if kind == '<super>' else '_'}{{{raised}}}$")
        elif c in _MATHS:
            parts.append(f"${_MATHS[c]}$")
        elif kind and not kind.startswith("<") and (accent := _ACCENTS.get(chr(int(plain or "0", 16)))):
            parts.append(f"${accent}{{{chr(int(kind, 16))}}}$")
        else:
            parts.append(_SPECIAL.get(c, c))
    return "".join(parts)


BROWSERS = ("chromium", "chromium-browser", "google-chrome")
# A page of some thousand claims takes a minute.
_PATIENCE = 600.0
_FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"),
    *("--no-first-run", "--no-pdf-header-footer"),
)


def pdf(document: str) -> bytes:
    """Print a page, which refers to nothing else; OSError if there is no Chromium, or it does not print."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        raise OSError(f"needs a browser that prints, and none of {', '.join(BROWSERS)} is installed")
    with tempfile.TemporaryDirectory(prefix="canaryproof-") as folder:
        page, printed = Path(folder) / "report.html", Path(folder) / "report.pdf"
        page.write_text(document, encoding="utf-8")
        command = [browser, *_FLAGS, f"--user-data-dir={folder}/profile", f"--print-to-pdf={printed}", page.as_uri()]
        try:
            subprocess.run(command, capture_output=True, timeout=_PATIENCE, check=False)
            return printed.read_bytes()
        except (FileNotFoundError, subprocess.TimeoutExpired):
            raise OSError(f"{browser} did not print the page") from None
