import csv
import io
import re
from xml.etree import ElementTree

import pytest
from made_up import claim

from canaryproof.reports.exports import badge, comma_separated, latex
from canaryproof.reports.formats import Format, report
from canaryproof.reports.material import Material
from canaryproof.verify.check.results import Level, Run, Verdict


@pytest.fixture(scope="module")
def files(results):
    return report(Material(Run("0", Level.QUICK, 0, results)), Format.HTML).files


def test_every_table_is_there_as_csv_and_latex(files):
    names = {name.rpartition(".")[0] for name in files if name.startswith("tables/")}
    assert {"tables/ledger", "tables/convergence-01", "tables/chance-01"} <= names
    for name in names:
        rows = list(csv.reader(io.StringIO(files[f"{name}.csv"].decode())))
        assert len({len(row) for row in rows}) == 1
        text = files[f"{name}.tex"].decode()
        assert text.count(r" \\") == len(rows)
        assert r"\toprule" in text
        # Letters that LaTeX does not know without a package are all spelt.
        assert text.isascii() or not re.search("[εδσμρτ√Σ²₁±−×]", text)


def test_every_picture_is_there_as_svg_and_png(files):
    assert ElementTree.fromstring(files["pictures/convergence-ours-rate.svg"]).tag.endswith("svg")
    assert files["pictures/convergence-ours-rate.png"].startswith(b"\x89PNG")


def test_the_ledger_has_every_result(files, results):
    rows = list(csv.DictReader(io.StringIO(files["tables/ledger.csv"].decode())))
    assert [(row["id"], row["verdict"], row["statement"]) for row in rows] == [
        (r.id, r.verdict, r.statement) for r in results
    ]
    assert rows[0]["level"] == "1e-07"


def test_cells_keep_commas_and_lines():
    text = comma_separated(["a"], [["1,2"], ['say "x"\nagain']])
    assert list(csv.reader(io.StringIO(text))) == [["a"], ["1,2"], ['say "x"\nagain']]


@pytest.mark.parametrize(
    ("cell", "spelt"),
    [
        ("50% & $x_1$ #2", r"50\% \& \$x\_1\$ \#2"),
        ("σ² ≥ 10⁻⁶", r"$\sigma$$^{2}$ $\ge$ 10$^{-}$$^{6}$"),
        ("ε̂ ± 0.1", r"$\hat{\varepsilon}$ $\pm$ 0.1"),
        ("cᵢ, x₁", r"c$_{i}$, x$_{1}$"),
        ("by `a_b` and `c`", r"by \texttt{a\_b} and \texttt{c}"),
        (r"\input{x}", r"\textbackslash{}input\{x\}"),
    ],
)
def test_latex_is_spelt(cell, spelt):
    assert latex(["h"], [[cell]]).splitlines()[4] == rf"{spelt} \\"


@pytest.mark.parametrize(
    ("results", "words", "colour"),
    [
        ([claim("ours.a"), claim("ours.b"), claim("final.a", Verdict.REFUTED)], "2 of 2 checks hold", "#00664f"),
        ([claim("ours.a", Verdict.REFUTED)], "0 of 1 checks hold", "#b02a0c"),
        ([], "0 of 0 checks hold", "#b02a0c"),
    ],
)
def test_the_badge_says_whether_our_own_checks_hold(results, words, colour):
    drawn = badge(Run("0", Level.QUICK, 0, tuple(results)))
    ElementTree.fromstring(drawn)
    assert words in drawn
    assert colour in drawn


def test_citations_name_the_papers_and_the_software(files):
    text = files["citation.bib"].decode()
    assert re.findall(r"^@\w+\{(\w+),", text, re.MULTILINE) == ["canaryproof", "andrew2024oneshot", "maddock2022canife"]
    assert text.count("{") == text.count("}")
