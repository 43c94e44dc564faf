"""What the README and the site show is what happens: their blocks are run here, in the order of each page.

- ``console``: a command and its output, compared; ``…`` in the output stands for anything.
- ``python``: executed, in one namespace a page; a comment after a value is that value.
- ``text`` right below such a block: what it prints, compared.
- ``sh``: commands whose options exist; those that take long, or need data.
- ``toml``: an experiment that can be read.

``<!-- not run: WHY -->`` above a block leaves it out. Notebooks are executed when the site is built. After a meant
change, ``python -m tests.test_documents [PAGE …]`` writes outputs and picture anew; read the diff.
"""

import ast
import re
import runpy
import shlex
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import chdir, redirect_stdout
from io import StringIO
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import canaryproof
from canaryproof.kernels import gaussian_mechanism
from canaryproof.reports.claims import findings
from canaryproof.verify.command_line import main
from canaryproof.verify.papers.check.documents import DOCUMENTS
from canaryproof.verify.papers.claims.sentences import UNJUDGED
from canaryproof.verify.papers.training import configuration
from tests.faults import FAULTS
from tests.published import published_run
from tests.written import written

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
# What pages draw and show, kept in the folder of pictures.
PICTURES = {ROOT / "docs/start.md": ("start.svg", "bug.svg")}
KEPT = ROOT / "docs/pictures"
SITE = sorted((ROOT / "docs").rglob("*.md"))
NOTEBOOKS = [page for page in SITE if page.read_text(encoding="utf-8").startswith("---\nfile_format: mystnb")]
PAGES = [README, *(page for page in SITE if page not in NOTEBOOKS)]

_BLOCK = re.compile(r"(?P<out><!-- not run: [^>]+-->\n)?^```(?P<language>\w+)\n(?P<code>.*?)^```$", re.M | re.S)


def blocks(page: Path) -> list[re.Match[str]]:
    return [block for block in _BLOCK.finditer(page.read_text(encoding="utf-8")) if not block["out"]]


def printed(command: str) -> str:
    """What a command of ours, or an example, prints on a terminal of 80 columns."""
    program, *arguments = shlex.split(command)
    if program == "python":
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(StringIO()) as out:
            patch.setattr(sys, "argv", arguments)
            runpy.run_path(str(ROOT / arguments[0]), run_name="__main__")
        return out.getvalue()
    assert program == "canaryproof"
    arguments = [str(ROOT / word) if word.startswith("examples/") else word for word in arguments]
    return CliRunner(env={"COLUMNS": "80"}).invoke(main, arguments).stdout


def agrees(shown: str, real: str) -> bool:
    pattern = ".*".join(re.escape(part) for part in shown.split("…"))
    return re.fullmatch(pattern, real, re.DOTALL) is not None


def run_python(code: str, names: dict[str, object], output: list[str]) -> Iterator[tuple[str, str]]:
    """Execute a block; yield what the comment after a value, or after the print of a line, says, and what is so.

    What it prints is added to the output.
    """
    lines = code.splitlines()
    for statement in ast.parse(code).body:
        text = ast.get_source_segment(code, statement) or ""
        shown = lines[(statement.end_lineno or 0) - 1].partition("  # ")[2].partition("…")[0].replace("−", "-")
        with redirect_stdout(StringIO()) as out:
            value = eval(text, names) if isinstance(statement, ast.Expr) else exec(text, names)
        output.append(out.getvalue())
        real = out.getvalue().strip() or repr(value.item() if getattr(value, "shape", None) == () else value)
        if shown and "\n" not in real and (out.getvalue() or re.match(r"[-\d]|array|Enclosure", shown)):
            yield shown, real


def options_exist(line: str) -> None:
    """Parse a command without running it."""
    words = shlex.split(line, comments=True)
    command: click.Command = main
    context = click.Context(main)
    words = words[words.index("canaryproof") + 1 :]
    while isinstance(command, click.Group) and words and words[0][0] != "-":
        found = command.get_command(context, words.pop(0))
        assert found is not None, line
        command = found
    known = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    known |= {"--help", "-h"}
    assert [word for word in words if word.startswith("-") and word.partition("=")[0] not in known] == [], line


def run_page(page: Path) -> list[tuple[re.Match[str], str]]:
    """Run a page's blocks in this folder; return each console block with what it should be."""
    names: dict[str, object] = {}
    consoles, output, end = [], [], 0
    for block in blocks(page):
        code, below = block["code"], block.string[end : block.start()] == "\n"
        end = block.end() + 1
        match block["language"]:
            case "text" if below and output:
                if not agrees(code, "".join(output)):
                    consoles.append((block, "".join(output)))
            case "console":
                # A line that ends with a backslash goes on.
                command, shown = re.split(r"(?<!\\)\n", code, maxsplit=1)
                real = printed(command.removeprefix("$ ").replace("\\\n", " "))
                output = []
                if not agrees(shown, real):
                    consoles.append((block, f"{command}\n{real}"))
            case "python":
                output = []
                for shown, real in run_python(code, names, output):
                    assert real.startswith(shown)
            case "sh":
                for line in code.replace("\\\n", " ").splitlines():
                    if re.search(r"(^|[;&] *)canaryproof ", line):
                        options_exist(line)
            case "toml":
                Path("own.toml").write_text(code, encoding="utf-8")
                configuration.read("own.toml", "quick")
    return consoles


def drawing(path: Path) -> str:
    """A picture without its date and random names, and but for digits that other processors may round otherwise."""
    text = re.sub(r"<dc:date>.*?</dc:date>|\b[pm][0-9a-f]{10}\b", "", path.read_text(encoding="utf-8"))
    return re.sub(r"(\d+\.\d)\d*", r"\1", text)


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=lambda page: str(page.relative_to(ROOT)))
def test_blocks_do_what_is_shown(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for block, real in run_page(page):
        assert block["code"] == real
    for name in PICTURES.get(page, ()):
        assert drawing(Path(name)) == drawing(KEPT / name)


@pytest.mark.parametrize("page", [README, *SITE], ids=lambda page: str(page.relative_to(ROOT)))
def test_what_is_written_from_elsewhere_is_what_stands_there(page):
    text = page.read_text(encoding="utf-8")
    assert written(text) == text


def test_pages_are_whole_where_no_site_is_made_of_them():
    bare = [page.name for page in PAGES if re.search(r"^```\{(?!eval-rst)", page.read_text(encoding="utf-8"), re.M)]
    assert bare == []


def anchors(page: Path) -> set[str]:
    """The anchors that a code host makes of headings, and those that a table writes itself."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    found = set(re.findall(r'<a id="([^"]+)">', text))
    for heading in re.findall(r"^#{1,6} (.*)$", text, re.M):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        slug = re.sub(r"[^\w\- ]", "", words.strip()).replace(" ", "-")
        found.add(next(name for n in range(1000) if (name := f"{slug}-{n}" if n else slug) not in found))
    return found


def test_links_lead_somewhere():
    pages = [*ROOT.glob("*.md"), ROOT / "tests/README.md"]
    pages += [
        page for folder in ("docs", "proofs_check", "reports/published") for page in (ROOT / folder).rglob("*.md")
    ]
    there = {page: anchors(page) for page in pages}
    broken, count = [], 0
    for page in pages:
        text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
        for link in re.findall(r"\]\(([^)\s]+)\)", text):
            path, _, anchor = link.partition("#")
            target = (page.parent / path).resolve() if path else page
            if re.match(r"\w+:", link):
                continue
            count += 1
            if not target.exists() or (anchor and target.suffix == ".md" and anchor not in there[target]):
                broken.append(f"{page.relative_to(ROOT)}: {link}")
    assert broken == []
    assert count > 800


def test_readme_takes_half_a_minute():
    # Without code, comments, addresses, and what a picture says to those who do not see it.
    unread = r"^```.*?^```$|<!--.*?-->|^!\[[^\]]*|\]\([^)]*\)"
    text = re.sub(unread, "", README.read_text(encoding="utf-8"), flags=re.M | re.S)
    assert len(text.split()) <= 500


def test_readme_names_the_releases_of_frameworks_that_are_served():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    lowest = dict(
        re.findall(r"([\w-]+)>=([\d.]+)", " ".join(requirement for row in extras.values() for requirement in row))
    )
    said = dict(re.findall(r"\[(\w+)\]\(docs/how/\w+\.md\)\s+([\d.]+\d|\d)", README.read_text(encoding="utf-8")))
    names = {"Opacus": "opacus", "jax_privacy": "jax-privacy", "Flower": "flwr", "transformers": "transformers"}
    assert said.keys() == names.keys()
    assert {name: lowest[names[name]].removesuffix(".0") for name in said} == said


def test_every_public_name_is_in_the_reference():
    text = "".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs/reference").glob("*.md"))
    missing = [name for name in canaryproof.__all__ if not re.search(rf"canaryproof\.{name}\b", text)]
    assert missing == ["__version__"]


@pytest.mark.parametrize("heading", ["Six that matter", "More, with their evidence"])
def test_findings_that_matter_begin_with_those_of_the_report(heading):
    text = (ROOT / "docs/findings.md").read_text(encoding="utf-8")
    section = text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    places = [section.index(result.id) for result in findings(published_run())]
    assert places == sorted(places)


def test_false_alarms_are_those_of_the_published_run():
    text = " ".join((ROOT / "docs/how/claim.md").read_text(encoding="utf-8").split())
    assert f"run add up to {published_run().false_alarm_probability:.1g}," in text


def test_table_2_is_that_of_the_published_page():
    found, page = (
        (ROOT / name).read_text(encoding="utf-8").partition("\n## Table 2 three ways\n")[2].partition("\n## ")[0]
        for name in ("docs/findings.md", "reports/published/claims-final.md")
    )
    rows = [line for line in page.splitlines() if line.startswith("|")]
    assert len(rows) == 5
    assert [line for line in found.splitlines() if line.startswith("|")] == rows


@pytest.mark.parametrize("page", ["README.md", "docs/findings.md"])
def test_the_unclipped_client_has_its_epsilon_at_the_delta_of_the_claim(page):
    text = " ".join((ROOT / page).read_text(encoding="utf-8").split())
    finding = text[text.index("client of ten times the clip norm") :][:160]
    epsilon, delta = (float(re.search(rf"{name} = ([\d.e-]+\d)", finding)[1]) for name in "εδ")
    noise_multiplier = gaussian_mechanism.noise_multiplier(3.0, delta) / 10.0
    assert f"{gaussian_mechanism.epsilon(delta, noise_multiplier):.1f}" == f"{epsilon:g}"


def test_sentences_without_a_claim_are_listed_with_their_reasons():
    text = (ROOT / "docs/findings.md").read_text(encoding="utf-8")
    listed = text.partition("\n## Sentences without a claim\n")[2].partition("\n## ")[0]
    titles = {document.id: document.title.removeprefix("Andrew et al., ") for document in DOCUMENTS}
    rows = [f"| {titles[document]} | {place} | {reason} |" for (document, place), reason in UNJUDGED.items()]
    assert [line for line in listed.splitlines() if line.startswith("| ")][1:] == rows


@pytest.mark.parametrize("page", ["README.md", "docs/how/claim.md", "docs/contributing/commands.md"])
def test_faults_are_counted(page):
    text = " ".join((ROOT / page).read_text(encoding="utf-8").split())
    quoted = re.findall(r"(\d+) (?:seeded )?faults", text)
    assert quoted
    assert set(quoted) == {str(len(FAULTS))}


@pytest.mark.parametrize(
    ("said", "page", "shown"),
    [
        ("at least *2.28* with *95%* confidence", "how/losses.md", "ε is at least 2.28 (95% confidence)"),
        (
            "at least *1.46* with about *97.5%* confidence",
            "how/audit.md",
            "ε is at least 1.46 (about 97.5% confidence)",
        ),
        ("ε̂ is *3.4* (*95%* interval *2.8 to 8.5*)", "how/audit.md", "estimate 3.4 (95%: 2.8 to 8.5)"),
        ("ε̂ is *4.30* (*95%* interval *3.99 to 4.61*)", "start.md", "estimate 4.30 (95%: 3.99 to 4.61)"),
        ("If only *83%* of the noise had been added", "start.md", "If only 83% of the claimed noise had been added"),
        (
            "at least *42.3* with *97.5%* confidence",
            "start.md",
            "at least 42.3 proven, whatever the scores' dependence",
        ),
        ("If only *96%* of the claimed noise had", "how/watch.md", "If only 96% of the claimed noise had been added"),
        (
            "By the noise measured ε is 5.63, and at least 5.42",
            "how/watch.md",
            "by the noise measured ε is 5.63, and at least 5.42",
        ),
    ],
)
def test_sentences_to_report_have_the_numbers_of_other_pages(said, page, shown):
    text, other = (
        " ".join((ROOT / "docs" / name).read_text(encoding="utf-8").replace("\n> ", " ").split())
        for name in ("which_number.md", page)
    )
    assert said in text
    assert shown in other


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_code_has_lines_of_88_columns(page):
    blocks = re.findall(
        r"^```(?:python|\{code-cell\}|sh|toml)\n(.*?)^```$", page.read_text(encoding="utf-8"), re.M | re.S
    )
    assert [line for block in blocks for line in block.splitlines() if len(line) > 88] == []


def test_the_workflow_to_copy_runs_commands_that_exist():
    workflow, page = (
        (ROOT / name).read_text(encoding="utf-8") for name in ("examples/privacy.yml", "docs/how/gate.md")
    )
    assert f"```yaml\n{workflow}```\n" in page
    commands = re.findall("canaryproof (?:plan|audit|check-report) .*", workflow.replace("\\\n", ""))
    assert len(commands) == 3
    for line in commands:
        options_exist(line)
    assert all(f"| {status} | " in page for status in (1, 3, 4))


@pytest.mark.deep
def test_the_table_of_trainings_is_what_its_command_gives(tmp_path):
    page = (ROOT / "docs/how/train.md").read_text(encoding="utf-8")
    assert CliRunner().invoke(main, ["train", "noise", "--out", str(tmp_path / "noise")]).exit_code == 0
    lines = (tmp_path / "noise/results.md").read_text(encoding="utf-8").splitlines()
    rows = [line.split(" | ") for line in lines if line.startswith("| ")]
    # The page leaves the analytical ε out, which is that of one round.
    found = {" | ".join(row[:2] + row[3:]) for row in rows}
    shown = [line for line in page.splitlines() if "; ≥ " in line]
    assert len(shown) == 4
    assert set(shown) <= found


def write_anew(pages: Sequence[Path]) -> None:
    for page in [README, *SITE]:
        page.write_text(written(page.read_text(encoding="utf-8")), encoding="utf-8")
    for page in pages:
        with tempfile.TemporaryDirectory() as folder, chdir(folder):
            text = page.read_text(encoding="utf-8")
            for block, real in reversed(run_page(page)):
                text = text[: block.start("code")] + real + text[block.end("code") :]
            page.write_text(text, encoding="utf-8")
            for name in PICTURES.get(page, ()):
                # Another date and other ids are no other picture.
                if not (KEPT / name).exists() or drawing(Path(name)) != drawing(KEPT / name):
                    (KEPT / name).write_bytes(Path(name).read_bytes())


if __name__ == "__main__":
    # Of all pages, or of those that are named.
    write_anew([Path(name).resolve() for name in sys.argv[1:]] or PAGES)
