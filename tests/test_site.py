"""The site is built without a warning, and its links lead somewhere; skipped where the extra ``docs`` is missing."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    extensions = ("sphinx_click", "sphinx_codeautolink", "sphinx_copybutton")
    for name in ("sphinx", "furo", "myst_nb", "numpydoc", "latex2mathml", *extensions):
        pytest.importorskip(name, reason="the extra docs is not installed; `make docs` installs it")
    out = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "--fail-on-warning", "--keep-going", "--quiet", "--conf-dir", "docs"]
    doctrees = ["--doctree-dir", str(tmp_path_factory.mktemp("doctrees"))]
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [*command, *doctrees, ".", str(out)], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return out


def test_opens_from_the_file_system(site):
    assert 'url=docs/index.html"' in (site / "index.html").read_text(encoding="utf-8")
    assert (site / "docs/index.html").exists()


def test_published_and_proven_pages_are_pages(site):
    for folder in ("reports/published", "proofs_check"):
        for page in (ROOT / folder).rglob("*.md"):
            assert (site / page.relative_to(ROOT)).with_suffix(".html").exists(), page


def test_the_published_runs_report_and_one_of_an_audit_are_on_it(site):
    for name, page in (("report.html", "docs/findings.md"), ("audit.html", "docs/how/publish.md")):
        assert (site / name).stat().st_size > 10_000
        assert f'/{name}">' in made(site, ROOT / page)


def test_types_stand_beside_parameters(site):
    page = (site / "docs/reference/names/canaryproof.audit.html").read_text(encoding="utf-8")
    assert re.search(r"<strong>scores</strong>.{0,80}Scores", page, re.DOTALL)


def test_names_in_guides_lead_to_the_reference(site):
    guides = [page for page in (ROOT / "docs").glob("how/*.md") if "cp.audit(" in page.read_text(encoding="utf-8")]
    assert len(guides) >= 3
    for page in guides:
        assert 'reference/names/canaryproof.audit.html#canaryproof.audit"' in made(site, page), page
    assert 'reference/command_line.html#canaryproof-plan"' in made(site, ROOT / "docs/how/gate.md")


def test_names_of_other_libraries_lead_to_their_references(site):
    assert "pandas.pydata.org/docs/reference" in made(site, ROOT / "docs/how/review.md")


def test_code_can_be_copied_without_prompts(site):
    assert "copybutton" in made(site, ROOT / "docs/start.md")
    assert "formatCopyText(text, '$ '" in (site / "_static/copybutton.js").read_text(encoding="utf-8")


def test_the_gallery_shows_a_picture_of_each_notebook(site):
    shown = made(site, ROOT / "docs/gallery/index.md")
    for page in (ROOT / "docs/gallery").glob("*.md"):
        if page.name != "index.md":
            assert re.search(rf'href="{page.stem}\.html"><span[^>]*><img', shown), page


def test_pictures_follow_the_dark_mode(site):
    style = (site / "_static/site.css").read_text(encoding="utf-8")
    assert "prefers-color-scheme: dark" in style
    assert 'data-theme="dark"] .content img' in style


def made(site, page):
    return (site / page.relative_to(ROOT)).with_suffix(".html").read_text(encoding="utf-8")


def test_formulas_need_no_script(site):
    page = (site / "docs/theory/estimators.html").read_text(encoding="utf-8")
    assert "<math" in page
    assert "mathjax.js" not in page.lower()


def test_broken_links_are_found(tmp_path):
    pytest.importorskip("sphinx", reason="the extra docs is not installed; `make docs` installs it")
    sys.path.insert(0, str(ROOT / "docs/extensions"))
    try:
        from links import broken
    finally:
        sys.path.pop(0)
    (tmp_path / "a.html").write_text('<p id="here"><a href="b.html">b</a><a href="#here">x</a><a href="#there">y</a>')
    assert broken(tmp_path) == [
        "a.html links to b.html, which is not there",
        "a.html links to #there, which is not there",
    ]
    (tmp_path / "a.html").write_text('<img src="https://example.org/x.png"><a href="https://example.org">x</a>')
    assert broken(tmp_path) == ["a.html loads https://example.org/x.png"]
