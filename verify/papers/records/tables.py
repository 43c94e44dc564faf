"""JSON in which alike objects are the rows of a table: large records stay small, and a changed row is a changed line.

``{"columns": ["a", ["b", "c"]], "rows": [[1, 2], [3, 4]]}`` stands for the list of the objects ``{"a": 1, "b": {"c":
2}}`` and ``{"a": 3, "b": {"c": 4}}``. A column is a key, or the keys that lead to a value. Where these end in null, a
null in a row says that the object has no such value. Rows by name stand for an object of objects.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from canaryproof.verify.audit.rules import refusal

_KEYS = {"columns", "rows"}
# Bytes of a line, unless a row of plain values is longer.
_WIDTH = 200
# Long columns and many rows could make much out of a small file. The largest record has 200,000.
_MOST_KEYS = 4_000_000
Path = tuple[str | None, ...]


def in_tables(document: Any) -> str:
    """Write a document of JSON's own types with tables, a line a row."""
    packed = _pack(document, {})
    if out_of_tables(packed) != document:
        raise ValueError("the document has an object of its own that looks like a table")
    return _layout(packed) + "\n"


def out_of_tables(document: Any) -> Any:
    """Put objects in the place of the tables of a document; a ValueError says what is wrong with one."""
    return _without_tables(document, [_MOST_KEYS])


def _without_tables(value: Any, left: list[int]) -> Any:
    """Put objects in the place of tables; they may have as many keys as are ``left``."""
    if isinstance(value, list):
        return [_without_tables(item, left) for item in value]
    if not isinstance(value, dict):
        return value
    if value.keys() != _KEYS:
        return {key: _without_tables(item, left) for key, item in value.items()}
    paths = [_path(column) for column in _check(value["columns"], list, "a list of columns")]
    rows = _check(value["rows"], list | dict, "a list or an object of rows")
    left[0] -= len(rows) * sum(map(len, paths))
    if left[0] < 0:
        raise ValueError(f"must have at most {_MOST_KEYS} keys in all rows of its tables")
    if isinstance(rows, dict):
        return {key: _object(paths, row, left) for key, row in rows.items()}
    return [_object(paths, row, left) for row in rows]


def _path(column: object) -> Path:
    path = tuple(column) if isinstance(column, list) else (column,)
    keys = path[:-1] if path and path[-1] is None else path
    if not keys or not all(isinstance(key, str) for key in keys):
        raise refusal("a key or a list of keys", column)
    return path


def _check(value: Any, kind: Any, rule: str) -> Any:
    if not isinstance(value, kind):
        raise refusal(rule, value)
    return value


def _object(paths: list[Path], row: object, left: list[int]) -> dict[str, Any]:
    values = _check(row, list, "a list of values")
    if len(values) != len(paths):
        raise ValueError(f"must be {len(paths)} values, one a column, not {len(values)}")
    made: dict[str, Any] = {}
    for path, value in zip(paths, values, strict=True):
        if path[-1] is None and value is None:
            continue
        *outer, last = (key for key in path if key is not None)
        inside = made
        for key in outer:
            inside = _check(inside.setdefault(key, {}), dict, "an object, as a column of its keys says")
        inside[last] = _without_tables(value, left)
    return made


def _pack(value: Any, done: dict[int, Any]) -> Any:
    """Return a value with tables where they are shorter; ``done`` has those of the values before, by their ids."""
    if not isinstance(value, dict | list):
        return value
    if id(value) not in done:
        names, items = (list(value), list(value.values())) if isinstance(value, dict) else (None, value)
        plain = [_pack(item, done) for item in items]
        forms: list[Any] = [plain if names is None else dict(zip(names, plain, strict=True))]
        if len(items) > 1 and all(isinstance(item, dict) and item for item in items):
            # Objects inside have columns of their own, unless most of these would be empty.
            for flat in (True, False):
                objects = [dict(_values(item, flat)) for item in items]
                paths = list(dict.fromkeys(path for item in objects for path in item))
                if len(paths) * len(objects) > 2 * sum(map(len, objects)):
                    continue
                columns, rows = _table(paths, objects, done)
                table = {"columns": columns, "rows": rows if names is None else dict(zip(names, rows, strict=True))}
                # Equal texts have their keys in the same order.
                if _compact(out_of_tables(table)) == _compact(value):
                    forms.append(table)
        done[id(value)] = min(forms, key=lambda form: len(_compact(form)))
    return done[id(value)]


def _values(item: Mapping[str, Any], flat: bool, outer: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the values of an object by the keys that lead to them, ``flat`` those of objects inside."""
    for key, value in item.items():
        if flat and isinstance(value, dict) and value:
            yield from _values(value, flat, (*outer, key))
        else:
            yield (*outer, key), value


def _table(
    paths: list[tuple[str, ...]], objects: list[dict[tuple[str, ...], Any]], done: dict[int, Any]
) -> tuple[list[Any], list[list[Any]]]:
    """Return columns and rows of a table of objects, whose values lie at these paths."""
    columns = [
        [*path, None] if any(path not in item for item in objects) else path[0] if len(path) == 1 else [*path]
        for path in paths
    ]
    return columns, [[_pack(item.get(path), done) for path in paths] for item in objects]


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _layout(value: Any) -> str:
    """Write a value in a line, or what is in it a line each where that is long."""
    text = _compact(value)
    if len(text) <= _WIDTH or not isinstance(value, dict | list):
        return text
    if isinstance(value, dict) and value.keys() == _KEYS:
        return f'{{"columns":{_compact(value["columns"])},"rows":{_lines(value["rows"], _row)}}}'
    return text if _is_plain(value) else _lines(value, _layout)


def _row(row: list[Any]) -> str:
    text = _compact(row)
    return _layout(row) if "{" in text else text


def _is_plain(value: Any) -> bool:
    return isinstance(value, list) and not any(isinstance(item, dict | list) for item in value)


def _lines(value: Any, written: Callable[[Any], str]) -> str:
    if isinstance(value, list):
        return "[\n" + ",\n".join(map(written, value)) + "\n]"
    return "{\n" + ",\n".join(f"{_compact(key)}:{written(item)}" for key, item in value.items()) + "\n}"
