"""The report as one HTML file, which needs no network and no script."""

import base64
import hashlib
from collections.abc import Sequence
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from canaryproof.reports.chapters import Chapter
from canaryproof.reports.material import Material
from canaryproof.reports.view import view


@cache
def environment() -> Environment:
    """Return where templates are read; whatever they insert is escaped."""
    loader = PackageLoader("canaryproof.reports", "templates")
    return Environment(
        loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined,
        keep_trailing_newline=True,
    )  # fmt: skip


def html(material: Material, made: Sequence[Chapter]) -> str:
    """Render the report.

    Parameters
    ----------
    material
        A run and its companions.
    made
        The report's chapters.

    Returns
    -------
    HTML. No script but the page's own can run, and nothing can be fetched: its policy says so to the browser.
    """
    templates = environment()
    script = templates.get_template("report.js").render()
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return templates.get_template("report.html.jinja").render(
        v=view(material, made), script=Markup(script), script_hash=f"sha256-{digest}"
    )
