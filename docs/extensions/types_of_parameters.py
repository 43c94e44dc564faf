"""The type of each parameter and attribute stands beside its name, as the code has it."""

import inspect
import re
from collections.abc import Iterator

from numpy.typing import ArrayLike
from sphinx.application import Sphinx
from sphinx.util.typing import ExtensionMetadata, stringify_annotation

from canaryproof.kernels.arrays import Array

_SECTIONS = ("Parameters", "Attributes")
_NAMES = re.compile(r"\*{0,2}\w+(?:, \*{0,2}\w+)*")
# A type is called by its name, wherever it is from.
_MODULE = re.compile(r"~?(?:\w+\.)+(?=\w)")
# A rule of a type is said in words where it matters.
_RULE = re.compile(r"Annotated\[([^\[\]]*), '[^']*'\]")


def _plain(annotation: object) -> str:
    text = (
        annotation if isinstance(annotation, str) else stringify_annotation(annotation)
    )
    return _RULE.sub(r"\1", _RULE.sub(r"\1", _MODULE.sub("", text)))


_ALIASES = {_plain(ArrayLike): "ArrayLike", _plain(Array): "Array"}


def _type(annotation: object) -> str:
    text = _plain(annotation)
    for long, short in _ALIASES.items():
        text = text.replace(long, short)
    return text


def _annotations(thing: object) -> dict[str, str]:
    found = (
        dict(getattr(thing, "__annotations__", {})) if inspect.isclass(thing) else {}
    )
    try:
        parameters = inspect.signature(thing).parameters if callable(thing) else {}
    except (TypeError, ValueError):
        parameters = {}
    found |= {name: p.annotation for name, p in parameters.items()}
    return {
        name: _type(each)
        for name, each in found.items()
        if each is not inspect.Parameter.empty
    }


def typed(lines: list[str], types: dict[str, str]) -> Iterator[str]:
    """Yield a docstring's lines; those that name parameters or attributes have their type."""
    is_inside = False
    for line, after in zip(lines, [*lines[1:], ""], strict=True):
        if after.startswith("---") and line.strip():
            is_inside = line in _SECTIONS
        names = (
            line.replace("*", "").split(", ")
            if is_inside and _NAMES.fullmatch(line)
            else []
        )
        known = dict.fromkeys(types[name] for name in names if name in types)
        yield f"{line} : {', '.join(known)}" if known else line


def _add(
    _app: Sphinx,
    _what: str,
    _name: str,
    thing: object,
    _options: object,
    lines: list[str],
) -> None:
    lines[:] = typed(lines, _annotations(thing))


def setup(app: Sphinx) -> ExtensionMetadata:
    """Add types before numpydoc reads a docstring."""
    app.connect("autodoc-process-docstring", _add, priority=400)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
