"""What a code host does not show stands in a comment: a table of contents, or a sentence on a file of the site alone.

The former begins with ``<!-- {toctree}`` and has a line for each page, the latter is ``<!-- site: … -->``.
"""

import re

from sphinx.application import Sphinx
from sphinx.util.typing import ExtensionMetadata

_COMMENT = re.compile(r"^<!-- (\{toctree\}\n.*?)^-->$", re.M | re.S)
_SENTENCE = re.compile(r"^<!-- site: (.*?) -->$", re.M | re.S)


def _uncover(app: Sphinx, page: str, text: list[str]) -> None:  # noqa: ARG001
    text[0] = _COMMENT.sub(lambda comment: f"```{comment[1]}```", text[0])
    text[0] = _SENTENCE.sub(lambda comment: comment[1], text[0])


def setup(app: Sphinx) -> ExtensionMetadata:
    """Turn the comments into directives when a page is read."""
    app.connect("source-read", _uncover)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
