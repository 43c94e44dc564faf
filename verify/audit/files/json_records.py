"""Records: documents of JSON's own types, read into dataclasses and written from them by cattrs.

What breaks a rule is refused in one line that names the field's path, the rule and what is there. JSON has no
infinities and no NaN: they are written as the words inf, -inf and nan.
"""

import hashlib
import json
import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, get_args, get_origin

from canaryproof.kernels.arrays import is_of
from canaryproof.kernels.refusals import short_repr, shorten
from canaryproof.kernels.successors import current_keys
from canaryproof.verify.audit.rules import one_of, refusal

if TYPE_CHECKING:
    from cattrs import Converter

# A whole number that is not negative.
Count = Annotated[int, "not negative"]

_T = TypeVar("_T")
# A list that has entries.
NonEmpty = Annotated[tuple[_T, ...], "not empty"]
# A field, None by default, that is not written then.
OmittedIfNone = Annotated[_T | None, "left out if None"]
# An event of dp-accounting, or None.
Event = Annotated[Any, "event"]

_WORDS = ("inf", "-inf", "nan")
# Evidence is free in form; that of the suites is nested less than 10 deep. Seeds have 64 bits.
_DEEPEST, _LARGEST_WHOLE = 50, 2**64


def read(kind: type[_T], document: object, *, exact: bool = False) -> _T:
    """Read what ``to_document`` made into a record of a kind; a ValueError of one line says what breaks a rule.

    ``exact``: there are no other fields than the record's, and its floats are written as floats, so that
    ``to_document`` gives the document again.
    """
    from cattrs import BaseValidationError

    try:
        return _converter(exact).structure(document, kind)
    except BaseValidationError as error:
        raise ValueError(_line(error, "")) from None
    except RecursionError:
        raise ValueError("is nested too deeply") from None
    except ValueError as error:
        raise ValueError(f"the document: {error}") from None


def to_document(record: object) -> dict[str, Any]:
    """Return a record in JSON's own types: equal records give equal documents."""
    document: dict[str, Any] = plain(_converter(exact=False).unstructure(record))
    return document


def seal(document: dict[str, Any]) -> dict[str, Any]:
    """Return a record with the SHA-256 of all its other fields as the last one."""
    others = {name: value for name, value in document.items() if name != "sha256"}
    return {**others, "sha256": hashlib.sha256(dump(others).encode()).hexdigest()}


def dump(document: dict[str, Any]) -> str:
    """Write a record as JSON: equal records give equal text."""
    return json.dumps(document, indent=2, allow_nan=False)


def plain(value: Any) -> Any:
    """Return a value in JSON's own types, infinities and NaN in words: lists for tuples, dicts for mappings."""
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    in_words = isinstance(value, StrEnum) or (isinstance(value, float) and not math.isfinite(value))
    return str(value) if in_words else value


def restore(value: Any, depth: int = 0) -> Any:
    """Undo ``plain``; a ValueError says that the value is nested too deeply, or has a number that is too large."""
    if depth > _DEEPEST:
        raise ValueError("is nested too deeply")
    if isinstance(value, dict):
        return {key: restore(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        return [restore(item, depth + 1) for item in value]
    if isinstance(value, int | float):
        return _check_number(value)
    return float(value) if value in _WORDS else value


@cache
def _converter(exact: bool) -> "Converter":
    # They take as long to import as the rest of a short command.
    import numpy as np
    from cattrs import Converter
    from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn

    made = Converter(detailed_validation=True)

    def register(kind: Any, rule: str) -> None:
        # True is an int to Python, and no number to JSON.
        def take(value: Any, _: Any) -> Any:
            if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
                raise refusal(rule, value)
            return _check_number(value)

        made.register_structure_hook(kind, take)

    register(str, "text")
    register(bool, "true or false")
    register(int, "a whole number")
    register(float, "a number")
    if not exact:
        made.register_structure_hook(float, lambda value, _: _number(value))
    made.register_structure_hook_func(lambda kind: kind == Count, lambda value, _: _count(made.structure(value, int)))
    made.register_structure_hook_func(
        lambda kind: any(map(callable, getattr(kind, "__metadata__", ()))),
        lambda value, kind: kind.__metadata__[0](value),
    )
    made.register_structure_hook_func(
        lambda kind: _has_annotation(kind, NonEmpty),
        lambda value, kind: _some(made.structure(value, kind.__origin__)),
    )
    made.register_structure_hook(StrEnum, _member)

    def array(value: Any, kind: Any) -> Any:
        dtype = get_args(get_args(kind)[1])[0]
        numbers: Any = list[int] if dtype is np.int64 else list[float]
        try:
            return np.array(made.structure(_instance(value, list, "a list"), numbers), dtype)
        except OverflowError:
            raise ValueError("must be whole numbers of 64 bits") from None

    def is_array(kind: Any) -> bool:
        return np.ndarray in (kind, get_origin(kind))

    made.register_structure_hook_func(is_array, array)
    made.register_unstructure_hook_func(is_array, lambda value: value.tolist())
    made.register_structure_hook_func(
        lambda kind: kind == Event, lambda value, _: None if value is None else _event(value)
    )
    made.register_unstructure_hook_func(lambda kind: kind == Event, _event_document)
    made.register_structure_hook_func(lambda kind: kind is Any, lambda value, _: restore(value))

    def of_origin(origin: Any) -> Callable[[Any], bool]:
        return lambda kind: get_origin(kind) is origin

    def sequence(value: Any, kind: Any) -> Any:
        items: Any = get_args(kind)
        entries = _instance(value, list, "a list")
        if items[-1] is not ... and len(entries) != len(items):
            raise ValueError(f"must be {len(items)} values, not {len(entries)}")
        return tuple(made.structure(entries, list[items[0]]))

    def mapping(value: Any, kind: Any) -> Any:
        values: Any = dict[str, get_args(kind)[1]]  # type: ignore[misc]
        return made.structure(_instance(value, dict, "an object"), values)

    made.register_structure_hook_func(of_origin(Literal), lambda value, kind: one_of(*get_args(kind))(value))
    made.register_structure_hook_func(of_origin(tuple), sequence)
    made.register_structure_hook_func(of_origin(Mapping), mapping)

    def reader(kind: Any) -> Any:
        take = make_dict_structure_fn(kind, made, _cattrs_forbid_extra_keys=exact)
        return lambda value, _: take(current_keys(kind.__name__, _instance(value, dict, "an object")), kind)

    def writer(kind: Any) -> Any:
        write = make_dict_unstructure_fn(kind, made)
        # cattrs can leave out a default itself, but writes such fields last.
        optional = {field.name for field in fields(kind) if _has_annotation(field.type, OmittedIfNone)}
        return lambda record: {
            name: value for name, value in write(record).items() if value is not None or name not in optional
        }

    made.register_structure_hook_factory(is_dataclass, reader)
    made.register_unstructure_hook_func(lambda kind: kind == Mapping[str, Any], plain)
    made.register_unstructure_hook_factory(is_dataclass, writer)
    return made


def _has_annotation(kind: Any, annotated: Any) -> bool:
    return bool(getattr(kind, "__metadata__", None) == annotated.__metadata__)


def _instance(value: Any, kind: type, rule: str) -> Any:
    if not isinstance(value, kind):
        raise refusal(rule, value)
    return value


def _check_number(value: Any) -> Any:
    """Refuse a number that no calculation of the package can take."""
    if isinstance(value, int) and abs(value) > _LARGEST_WHOLE:
        raise ValueError(f"must be a whole number of at most 2^64, not {shorten(str(value))}")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"must be finite, not {value!r}")
    return value


def _number(value: Any) -> float:
    if value in _WORDS:
        return float(value)
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise refusal("a number", value)
    # A number of many digits is none that we write, nor is 1e999, which is infinite to Python.
    if not abs(value) <= sys.float_info.max:
        raise ValueError(f"must be finite, not {repr(value)[:60]}")
    return float(value)


def _count(value: int) -> int:
    if value < 0:
        raise ValueError(f"must not be negative, not {shorten(str(value))}")
    return value


def _some(entries: _T) -> _T:
    if not entries:
        raise ValueError("must not be empty")
    return entries


def _member(value: Any, kind: Any) -> Any:
    return kind(one_of(*kind)(_instance(value, str, "text")))


def _event_document(value: Any) -> Any:
    """Return the type's name of an event and its fields, which are numbers and other events."""
    if isinstance(value, list | tuple):
        return [_event_document(each) for each in value]
    if not is_of("dp_accounting", "DpEvent", value):
        return value
    named = {name: _event_document(getattr(value, name)) for name in type(value).__match_args__}
    return {"type": type(value).__name__, **named}


def _event(value: Any) -> Any:
    """Undo ``_event_document``."""
    # Not all events stand in the package itself.
    from dp_accounting import DpEvent, dp_event

    kind = getattr(dp_event, str(value.get("type")), None) if isinstance(value, dict) else None
    if not (isinstance(kind, type) and issubclass(kind, DpEvent)):
        raise ValueError(f"must be an event of dp-accounting, not {short_repr(value)}")
    named = {name: _field(name, each) for name, each in value.items() if name != "type"}
    try:
        return kind(**named)
    except TypeError:
        raise ValueError(f"must have the fields of {kind.__name__}") from None


def _field(name: str, value: Any) -> Any:
    if name == "event":
        return _event(value)
    if isinstance(value, list) and name == "events":
        return tuple(_event(each) for each in value)
    if isinstance(value, list) and name in ("sensitivities", "sampling_probs"):
        return tuple(_field("", each) for each in value)
    if name == "shape" and value == "inf":
        return math.inf
    kinds = int if name == "count" else int | float
    if isinstance(value, bool) or not isinstance(value, kinds) or not math.isfinite(value) or name == "events":
        rule = "a list of events" if name == "events" else "a number"
        raise ValueError(f"{short_repr(name)} must be {rule}, not {short_repr(value)}")
    return value


def _line(error: BaseException, path: str) -> str:
    """Say in a line where the first error is, and what."""
    from cattrs import BaseValidationError, ForbiddenExtraKeysError

    if isinstance(error, BaseValidationError):
        # A misspelt name explains more than the field that is missing for it.
        inner = next((e for e in error.exceptions if isinstance(e, ForbiddenExtraKeysError)), error.exceptions[0])
        note = next((note for note in getattr(inner, "__notes__", ()) if type(note) is not str), None)
        if note is None:
            return _line(inner, path)
        # An attribute's note has its name, and that of an entry its index or key.
        step = getattr(note, "name", None) or note.index
        named = shorten(step if isinstance(step, str) and step.isprintable() else repr(step))
        return _line(inner, f"{path}[{step}]" if isinstance(step, int) else f"{path}.{named}" if path else named)
    prefix = f"{path}: " if path else ""
    if isinstance(error, KeyError):
        return f"{prefix}is missing"
    if isinstance(error, RecursionError):
        return f"{prefix}is nested too deeply"
    if isinstance(error, ForbiddenExtraKeysError):
        inside, extra = f"{path}." if path else "", shorten(min(error.extra_fields))
        return (
            f"{inside}{extra}: there is no such field; there are {', '.join(field.name for field in fields(error.cl))}"
        )
    return f"{prefix}{error}"
