"""Inline code that is a public name, or a command, leads to its entry in the reference."""

import re
from pathlib import PurePosixPath

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util.typing import ExtensionMetadata

import canaryproof
from canaryproof.verify.command_line import COMMANDS

_COMMANDS = "docs/reference/command_line"
# A plain lower-case word may be anything; with cp., a capital, an underscore or parentheses it is a name.
_NAME = re.compile(
    r"(?P<prefix>cp\.|canaryproof\.)?(?P<name>[A-Za-z]\w*)(?P<rest>(?:\.\w+)*)(?P<call>\(.*\))?"
)


def target(text: str) -> str | None:
    """Return the full name that inline code stands for, None if it is no public one."""
    match = _NAME.fullmatch(text)
    if match is None or match["name"] not in canaryproof.__all__:
        return None
    plain = match["name"].islower() and "_" not in match["name"]
    if plain and not (match["prefix"] or match["call"] or match["rest"]):
        return None
    return f"canaryproof.{match['name']}{match['rest']}"


def _link_names(app: Sphinx, document: nodes.document) -> None:
    page = app.env.docname
    for literal in list(document.findall(nodes.literal)):
        if isinstance(
            literal.parent, nodes.reference | nodes.title | addnodes.pending_xref
        ):
            continue
        text = literal.astext()
        words = text.split()
        full = target(text)
        if full is not None:
            link = addnodes.pending_xref(
                "",
                refdomain="py",
                reftype="obj",
                reftarget=full,
                refdoc=page,
                refexplicit=True,
                refwarn=False,
            )
        elif (
            len(words) > 1
            and words[0] == "canaryproof"
            and words[1] in COMMANDS
            and page != _COMMANDS
        ):
            up = "../" * (len(PurePosixPath(page).parts) - 1)
            link = nodes.reference(
                "",
                "",
                refuri=f"{up}{_COMMANDS}.html#canaryproof-{words[1]}",
                internal=True,
            )
        else:
            continue
        literal.replace_self(link)
        link += literal


def setup(app: Sphinx) -> ExtensionMetadata:
    """Link names when a page has been read."""
    app.connect("doctree-read", _link_names)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
