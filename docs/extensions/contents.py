"""A table of contents stands in a comment, which a code host does not show: ``<!-- {toctree}``, its lines, ``-->``."""

import re

from sphinx.application import Sphinx
from sphinx.util.typing import ExtensionMetadata

_COMMENT = re.compile(r"^<!-- (\{toctree\}\n.*?)^-->$", re.M | re.S)


def _uncover(app: Sphinx, page: str, text: list[str]) -> None:  # noqa: ARG001
    text[0] = _COMMENT.sub(lambda comment: f"```{comment[1]}```", text[0])


def setup(app: Sphinx) -> ExtensionMetadata:
    """Turn the comments into directives when a page is read."""
    app.connect("source-read", _uncover)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
