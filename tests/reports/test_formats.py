import csv
import dataclasses
import io
import json
import re
import unicodedata
from fnmatch import fnmatch
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import jsonschema
import pytest
from matplotlib.figure import Figure

from canaryproof.reports import formats, html
from canaryproof.reports.formats import Format, badge, comma_separated, latex, report
from canaryproof.reports.pages import FILES, Chapter
from canaryproof.verify.papers.check.results import Effort, Run, Subject, Verdict
from canaryproof.verify.papers.records.report_input import Material
from tests.published import PUBLISHED, published_run
from tests.reports.made_up import DESIGN, claim


@pytest.fixture(scope="module")
def material(results):
    return Material(Run("0", Effort.QUICK, 0, results))


@pytest.fixture(scope="module")
def made(material):
    """The files of a made-up run's report, by format."""
    return {form: report(material, form).files for form in (None, Format.HTML, Format.MD)}


@pytest.fixture(scope="module")
def everything(quick_run):
    """A run of all suites, its page and its Markdown, as the command left them."""
    page, *markdown = (
        path.read_text(encoding="utf-8") for path in (quick_run.folder / "report.html", *quick_run.folder.glob("*.md"))
    )
    return SimpleNamespace(run=quick_run.run, page=page, markdown=markdown)


@pytest.fixture(scope="module")
def schema(material):
    found = json.loads(report(material, Format.JSON).files["results.schema.json"])
    jsonschema.Draft202012Validator.check_schema(found)
    return jsonschema.Draft202012Validator(found)


def test_results_keep_the_schema(material, schema):
    document = json.loads(report(material, Format.JSON).files["results.json"])
    schema.validate(document)
    assert Run.from_json(document) == material.run


def test_the_published_run_keeps_the_schema(schema):
    schema.validate(published_run().to_json())


@pytest.mark.parametrize(
    "change",
    [
        {"level": "medium"},
        {"seed": -1},
        {"extra": 1},
        {"results": [{}]},
        {"results": [{"verdict": "maybe"}]},
    ],
)
def test_the_schema_refuses_what_the_reader_refuses(material, schema, change):
    document = material.run.to_json()
    rows = [{**document["results"][0], **row} if row else row for row in change.get("results", [])]
    changed = {**document, **change, **({"results": rows} if rows else {})}
    assert not schema.is_valid(changed)
    with pytest.raises(ValueError, match=r"\w"):
        Run.from_json(changed)


def test_the_default_is_markdown_and_the_page(made):
    assert set(made[None]) == {*made[Format.MD], "report.html"}
    assert made[None]["report.html"] == made[Format.HTML]["report.html"]


def test_equal_runs_have_equal_bytes(material, made):
    for form in (Format.HTML, Format.MD):
        assert report(material, form).files == made[form]


def test_a_run_of_everything_makes_a_small_page(everything):
    page = everything.page
    assert len(page.encode()) <= 1_500_000
    assert page.count("<li data-suite") == len(everything.run.results)


def test_a_run_of_everything_is_printed_on_few_pages(everything):
    if not any(map(formats.shutil.which, formats.BROWSERS)):
        pytest.skip(f"none of {', '.join(formats.BROWSERS)} is installed")
    printed = formats.pdf(everything.page)
    assert 20 <= len(re.findall(rb"/Type\s*/Page\b", printed)) <= 60


def test_pages_for_code_hosts_have_short_tables_and_an_anchor_for_each_claim(everything):
    longest = max(len(rows) for page in everything.markdown for _, rows in html.tables(page))
    assert 50 <= longest <= 200
    anchors = [name for page in everything.markdown for name in re.findall(r'<a id="([^"]+)"></a>', page)]
    # Lines of proofs that fail stand on two pages.
    assert set(anchors) == {result.id for result in everything.run.results}
    for page in everything.markdown:
        own = re.findall(r'<a id="([^"]+)"></a>', page)
        assert len(set(own)) == len(own)


def test_pages_for_code_hosts_are_markdown():
    assert not list(PUBLISHED.rglob("*.html"))
    assert {"summary.md", "convergence.md", "performance.md"} <= {path.name for path in PUBLISHED.iterdir()}


def test_the_page_is_printed_by_a_browser(material):
    if not any(map(formats.shutil.which, formats.BROWSERS)):
        pytest.skip(f"none of {', '.join(formats.BROWSERS)} is installed")
    made = report(material, Format.PDF)
    assert made.files["report.pdf"].startswith(b"%PDF")


def test_without_a_browser_there_is_no_pdf(material, monkeypatch):
    monkeypatch.setattr(formats.shutil, "which", lambda _: None)
    with pytest.raises(OSError, match="none of chromium, chromium-browser, google-chrome is installed"):
        report(material, Format.PDF)


def test_a_run_in_which_nothing_could_be_judged_has_a_report():
    document = published_run().to_json()
    for result in document["results"]:
        result |= {"verdict": "inconclusive", "finding": "could not be judged: E: e", "evidence": {}, "design": None}
    made = report(Material(Run.from_json(document))).files
    assert "could not be judged" in made["summary.md"].decode()


@pytest.fixture(scope="module")
def files(results):
    return report(Material(Run("0", Effort.QUICK, 0, results)), Format.HTML).files


def test_every_table_is_there_as_csv_and_latex(files):
    names = {name.rpartition(".")[0] for name in files if name.startswith("tables/")}
    assert {"tables/ledger", "tables/convergence-01"} <= names
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


@pytest.mark.parametrize("cell", ["=1+1", "+cmd|' /C calc'!A0", "-1+1", "@SUM(A1)", "\t=1", " =1", "-", "--1", "+-1"])
def test_no_cell_is_a_formula(cell):
    text = comma_separated([cell], [[cell, "-1.5e-07", "+2", "−3", "a=1"]])
    header, row = csv.reader(io.StringIO(text, newline=""))
    assert (header, row) == ([f"'{cell}"], [f"'{cell}", "-1.5e-07", "+2", "−3", "a=1"])


def test_no_character_fails_a_table():
    cells = [[chr(c)] for c in range(0x110000) if unicodedata.decomposition(chr(c)) and not 0xAC00 <= c < 0xD7A4]
    assert len(latex(["h"], cells).splitlines()) == len(cells) + 6
    assert latex(["h"], [["canary™"]]).splitlines()[4] == r"canary$^{T M}$ \\"


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
    drawn = badge(Run("0", Effort.QUICK, 0, tuple(results)))
    ElementTree.fromstring(drawn)
    assert words in drawn
    assert colour in drawn


def test_the_badge_counts_no_statements_of_other_tools():
    tools = [
        dataclasses.replace(claim(name, verdict), subject=Subject.TOOL)
        for name, verdict in (("tool.a", Verdict.REFUTED), ("tool.b", Verdict.REFUTED), ("tool.c", Verdict.CONFIRMED))
    ]
    assert "1 of 1 checks hold" in badge(Run("0", Effort.QUICK, 0, (claim("ours.a"), *tools)))
    alone = badge(Run("0", Effort.QUICK, 0, tuple(tools)))
    assert "0 of 0 checks hold" in alone
    assert "#b02a0c" in alone


def test_citations_name_the_papers_and_the_software(files):
    text = files["citation.bib"].decode()
    keys = re.findall(r"^@\w+\{(\w+),", text, re.MULTILINE)
    papers = ["andrew2024oneshot", "maddock2022canife"]
    bounds = ["steinke2023privacy", "mahloujifar2025auditing", "nasr2023tight", "zanella2023bayesian"]
    assert keys == ["canaryproof", *papers, *bounds]
    assert text.count("{") == text.count("}")


@pytest.mark.parametrize(
    ("cell", "spelt"),
    [
        ("−1 × 2 · 3 ≤ 4 ≠ 5 ≈ 6", r"$-$1 $\times$ 2 $\cdot$ 3 $\le$ 4 $\ne$ 5 $\approx$ 6"),
        ("∞ → ← √ ‖x‖", r"$\infty$ $\to$ $\leftarrow$ $\surd$ $\Vert$x$\Vert$"),
        ("⟨y⟩ ∈ ∑ ∫", r"$\langle$y$\rangle$ $\in$ $\sum$ $\int$"),
        ("⌈x⌉ ✗ ✓ ½", r"$\lceil$x$\rceil$ $\times$ $\surd$ $\frac12$"),
        ("αβγδε", r"$\alpha$$\beta$$\gamma$$\delta$$\varepsilon$"),
        ("ηθκλμ", r"$\eta$$\theta$$\kappa$$\lambda$$\mu$"),
        ("ξπρσ", r"$\xi$$\pi$$\rho$$\sigma$"),
        ("τφχω", r"$\tau$$\varphi$$\chi$$\omega$"),
        ("ΓΔΣΦΩ ℓ ∂ ∝", r"$\Gamma$$\Delta$$\Sigma$$\Phi$$\Omega$ $\ell$ $\partial$ $\propto$"),
        ("a – b — c … “d”", r"a -- b --- c \ldots{} ``d''"),
        ("x < y > z ~ ^ {w} $", r"x \textless{} y \textgreater{} z \textasciitilde{} \textasciicircum{} \{w\} \$"),
        ("x̂ x̃ x̄ ã", r"$\hat{x}$ $\tilde{x}$ $\bar{x}$ $\tilde{a}$"),
        ("σₖ 10⁻¹", r"$\sigma$$_{k}$ 10$^{-}$$^{1}$"),
    ],
)  # fmt: skip
def test_each_sign_is_its_own_in_latex(cell, spelt):
    assert latex(["h"], [[cell]]).splitlines()[4] == rf"{spelt} \\"


def test_a_latex_table_has_a_column_for_each_cell():
    assert latex(["a", "b"], [["1", "2"], ["3", "4"]]) == (
        "\\begin{tabular}{ll}\n\\toprule\na & b \\\\\n\\midrule\n1 & 2 \\\\\n3 & 4 \\\\\n\\bottomrule\n\\end{tabular}\n"
    )


def test_tables_of_chapters_are_numbered_from_one_and_pictures_have_their_names():
    table = "| a |\n|---|\n| {} |\n\n"
    chapter = Chapter("c", "C", "A chapter", "# A chapter\n\n" + table.format(1) + table.format(2), {"p.svg": Figure()})
    exported = formats.exports(Run("0", Effort.QUICK, 0, ()), [chapter])
    assert {name for name in exported if "/" in name} == {
        *(f"tables/{name}.{kind}" for name in ("ledger", "c-01", "c-02") for kind in ("csv", "tex")),
        *("pictures/p.svg", "pictures/p.png"),
    }
    assert [exported[f"tables/c-0{i}.csv"].decode() for i in (1, 2)] == ["a\n1\n", "a\n2\n"]


def test_the_ledger_says_all_of_a_result():
    one = dataclasses.replace(
        claim("ours.a", suite="audit"), design=dataclasses.replace(DESIGN, level=3e-7, power=0.98765)
    )
    exported = formats.exports(Run("0", Effort.QUICK, 0, (one, claim("final.b"))), [])
    rows = list(csv.reader(io.StringIO(exported["tables/ledger.csv"].decode())))
    assert rows[0] == ["id", "suite", "subject", "place", "statement", "verdict", "finding", "level", "power"]
    words = ["place of ours.a", one.statement, "confirmed", "found of ours.a"]
    assert rows[1] == ["ours.a", "audit", "implementation", *words, "3e-07", "0.988"]
    assert rows[2][-2:] == ["", ""]


def test_what_another_report_may_lack_is_removed_with_it(material, made):
    patterns = {form: report(material, form, {}).patterns for form in (None, Format.MD, Format.JSON, Format.HTML)}
    assert patterns == {None: FILES, Format.MD: FILES, Format.JSON: (), Format.HTML: formats.PATTERNS}
    always = {"results.json", "summary.md", "report.html", "badge.svg", "citation.bib"}
    for form, files in made.items():
        for name in files.keys() - always:
            assert any(fnmatch(name, pattern) for pattern in patterns[form]), name


def test_markdown_has_its_companions_and_a_report_says_what_is_opened(material):
    environment = {"command": "canaryproof verify ε"}
    files = report(dataclasses.replace(material, environment=environment), Format.MD).files
    assert files["environment.json"].decode() == '{\n "command": "canaryproof verify ε"\n}\n'
    assert "environment.json" not in report(material, Format.MD, {}).files
    shown = {form: report(material, form, {}).main for form in (None, Format.MD, Format.JSON, Format.HTML)}
    assert shown == {
        None: "report.html", Format.MD: "summary.md", Format.JSON: "results.json", Format.HTML: "report.html"
    }  # fmt: skip


def printed_by(monkeypatch, browser):
    """Print a page by a browser that is none: what it was called with, and what came of it."""
    calls = []

    def run(command, **options):
        calls.append((command, options))
        return browser(dict(part.partition("=")[::2] for part in command))

    monkeypatch.setattr(formats.shutil, "which", lambda name: f"/bin/{name}" if name != "chromium" else None)
    monkeypatch.setattr(formats.subprocess, "run", run)
    return calls


def test_the_page_is_given_to_the_first_browser_that_there_is(monkeypatch):
    def browser(flags):
        (page,) = (flag for flag in flags if flag.startswith("file:"))
        text = Path(page.removeprefix("file://")).read_text(encoding="utf-8")
        Path(flags["--print-to-pdf"]).write_bytes(f"printed: {text}".encode())
        assert Path(flags["--user-data-dir"]).parent == Path(flags["--print-to-pdf"]).parent

    calls = printed_by(monkeypatch, browser)
    assert formats.pdf("ε").decode() == "printed: ε"
    ((command, options),) = calls
    assert command[0] == "/bin/chromium-browser"
    # No window, and neither date nor address on the paper.
    assert {"--headless", "--no-pdf-header-footer"} <= set(command)
    # Some minutes.
    assert 60.0 < options["timeout"] < 3600.0


@pytest.mark.parametrize("fails", [None, formats.subprocess.TimeoutExpired("chromium", 1.0)])
def test_a_browser_that_prints_nothing_is_named(monkeypatch, fails):
    def browser(_):
        if fails:
            raise fails

    printed_by(monkeypatch, browser)
    with pytest.raises(OSError, match="/bin/chromium-browser did not print the page"):
        formats.pdf("x")
