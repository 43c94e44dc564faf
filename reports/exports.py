"""What a report gives to papers and pages: tables as CSV and LaTeX, pictures as SVG and PNG, a badge, citations.

Beside ``report.html``, ``tables/`` holds ``ledger`` and, numbered, the tables of each chapter, and ``pictures/`` the
chapters' pictures.
"""

import csv
import io
import re
import unicodedata
from collections.abc import Iterable, Sequence
from importlib.resources import files

from canaryproof.reports.chapters import Chapter
from canaryproof.reports.figures import png, svg
from canaryproof.reports.html import environment
from canaryproof.reports.rich_text import tables
from canaryproof.verify.check.results import Run

# What an export of another run may have left in a folder.
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
_ACCENTS = {"\u0302": r"\hat", "\u0303": r"\tilde", "\u0304": r"\bar", "\u0305": r"\bar"}


def exports(run: Run, chapters: Iterable[Chapter]) -> dict[str, bytes]:
    """Make the exports.

    Parameters
    ----------
    run
        A run.
    chapters
        The chapters of its report.

    Returns
    -------
    Contents by file name.
    """
    found: dict[str, tuple[Sequence[str], Sequence[Sequence[str]]]] = {"ledger": (_LEDGER, _ledger(run))}
    pictures = {}
    for chapter in chapters:
        for i, table in enumerate(tables(chapter.text), start=1):
            found[f"{chapter.name}-{i:02d}"] = table.header, table.rows
        for name, figure in chapter.figures.items():
            pictures[name] = svg(figure).encode()
            pictures[f"{name.removesuffix('.svg')}.png"] = png(figure)
    return {
        **{f"tables/{name}.csv": comma_separated(*table).encode() for name, table in found.items()},
        **{f"tables/{name}.tex": latex(*table).encode() for name, table in found.items()},
        **{f"pictures/{name}": picture for name, picture in pictures.items()},
        "badge.svg": badge(run).encode(),
        "citation.bib": (files("canaryproof.reports") / "templates" / "citation.bib").read_bytes(),
    }


def comma_separated(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Render a table as CSV."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return buffer.getvalue()


def latex(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Render a table for LaTeX with the package booktabs."""
    lines = [rf"\begin{{tabular}}{{{'l' * len(header)}}}", r"\toprule", _row(header), r"\midrule"]
    return "\n".join([*lines, *map(_row, rows), r"\bottomrule", r"\end{tabular}"]) + "\n"


def badge(run: Run) -> str:
    """Draw how many of our own checks hold, for a page that links to the report."""
    own = sum(result.subject != "document" for result in run.results)
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
            base = chr(int(plain, 16))
            parts.append(f"${'^' if kind == '<super>' else '_'}{{{_MATHS.get(base, base)}}}$")
        elif c in _MATHS:
            parts.append(f"${_MATHS[c]}$")
        elif kind and not kind.startswith("<") and (accent := _ACCENTS.get(chr(int(plain or "0", 16)))):
            parts.append(f"${accent}{{{chr(int(kind, 16))}}}$")
        else:
            parts.append(_SPECIAL.get(c, c))
    return "".join(parts)
