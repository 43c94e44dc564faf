"""Every link inside the finished site leads somewhere, and nothing on a page is loaded from elsewhere."""

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.errors import SphinxError
from sphinx.util.typing import ExtensionMetadata

# As published tables write the anchor of a row.
_ANCHOR = re.compile(r'<a id="([^"]+)">')
_LOADED = {
    ("script", "src"),
    ("img", "src"),
    ("link", "href"),
    ("iframe", "src"),
    ("source", "src"),
}


class _Page(HTMLParser):
    """A page's anchors, its links, and what it loads."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if value is None:
                continue
            if name in {"id", "name"}:
                self.anchors.add(value)
            if (tag, name) in _LOADED:
                self.loaded.append(value)
            elif (tag, name) == ("a", "href"):
                self.links.append(value)


def broken(site: Path) -> list[str]:
    """Return what is wrong with the links of a site's pages, a line each."""
    pages = {path.resolve(): _Page(path) for path in sorted(site.rglob("*.html"))}
    found = []
    for path, page in pages.items():
        found += [
            f"{path.name} loads {link}"
            for link in page.loaded
            if urlsplit(link).scheme not in {"", "data"}
        ]
        for link in page.links + page.loaded:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (
                (path.parent / unquote(parts.path)).resolve() if parts.path else path
            )
            anchor = unquote(parts.fragment)
            if not target.is_file() or (
                anchor and target in pages and anchor not in pages[target].anchors
            ):
                found.append(
                    f"{path.relative_to(site.resolve())} links to {link}, which is not there"
                )
    return found


def _note_anchors(app: Sphinx, document: nodes.document) -> None:
    """Let links find the anchors that a page writes in HTML, as they find its headings."""
    slugs = app.env.metadata[app.env.docname].setdefault("myst_slugs", {})
    for raw in document.findall(nodes.raw):
        for anchor in _ANCHOR.findall(raw.astext()):
            slugs[anchor] = (raw.line, anchor, "")


def _check(app: Sphinx, exception: Exception | None) -> None:
    if (
        exception is None
        and app.builder.name == "html"
        and (found := broken(Path(app.outdir)))
    ):
        raise SphinxError("\n".join(["links that lead nowhere:", *found]))


def setup(app: Sphinx) -> ExtensionMetadata:
    """Note anchors when a page has been read; check when the site is made."""
    app.connect("doctree-read", _note_anchors)
    app.connect("build-finished", _check)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
