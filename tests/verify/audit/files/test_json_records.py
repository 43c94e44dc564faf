import json
import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import pytest

from canaryproof.verify.audit.files.json_records import Count, NonEmpty, OmittedIfNone, read, to_document
from canaryproof.verify.audit.rules import number
from canaryproof.verify.papers.check.results import Effort


@dataclass(frozen=True)
class Inner:
    number: float
    optional: OmittedIfNone[float] = None


@dataclass(frozen=True, kw_only=True)
class Outer:
    count: Count
    absent: OmittedIfNone[Inner] = None
    named: Mapping[str, Inner | None]
    pair: tuple[float, float]
    entries: NonEmpty[Inner]
    free: Mapping[str, Any]
    right: bool


@dataclass(frozen=True)
class Words:
    text: str
    level: Effort
    share: Annotated[float, number(0.0, 1.0)]


RECORD = Outer(
    count=3,
    named={"a": Inner(math.inf), "b": None},
    pair=(1.0, math.nan),
    entries=(Inner(2.5, -math.inf),),
    free={"x": [math.inf, {"y": (1, None)}]},
    right=True,
)
DOCUMENT = {
    "count": 3,
    "named": {"a": {"number": "inf"}, "b": None},
    "pair": [1.0, "nan"],
    "entries": [{"number": 2.5, "optional": "-inf"}],
    "free": {"x": ["inf", {"y": [1, None]}]},
    "right": True,
}


def test_a_record_is_written_in_jsons_own_types_in_the_order_of_its_fields():
    assert json.dumps(to_document(RECORD), allow_nan=False) == json.dumps(DOCUMENT)


def test_what_is_left_out_keeps_its_place_where_it_is_there():
    document = {"count": 3, "absent": {"number": 1.0}, **{key: DOCUMENT[key] for key in DOCUMENT if key != "count"}}
    assert list(to_document(read(Outer, document))) == list(document)


def test_a_record_reads_back_and_takes_whole_numbers_and_unknown_fields():
    found = read(Outer, {**DOCUMENT, "entries": [{"number": 2}], "another": 1})
    assert found.entries == (Inner(2.0),)
    assert found.named == RECORD.named
    assert found.free == {"x": [math.inf, {"y": [1, None]}]}
    assert json.dumps(to_document(read(Outer, DOCUMENT))) == json.dumps(DOCUMENT)


def test_an_exact_record_has_its_own_fields_and_floats_alone():
    assert read(Inner, {"number": 2.5}, exact=True) == Inner(2.5)
    with pytest.raises(ValueError, match=r"^number: must be a number, not 2$"):
        read(Inner, {"number": 2}, exact=True)
    with pytest.raises(ValueError, match=r"^another: there is no such field; there are number, optional$"):
        read(Inner, {"number": 2.5, "another": 1}, exact=True)
    # A misspelt name is told and not the field that is missing for it, and the first of several.
    with pytest.raises(ValueError, match=r"^numbr: there is no such field; there are number, optional$"):
        read(Inner, {"zero": 2.5, "numbr": 1}, exact=True)
    with pytest.raises(ValueError, match=r"^absent\.another: there is no such field; there are number, optional$"):
        read(Outer, {**DOCUMENT, "absent": {"number": 1.0, "another": 1}}, exact=True)
    for infinite in (math.inf, -math.inf, math.nan):
        with pytest.raises(ValueError, match=f"^number: must be finite, not {infinite}$"):
            read(Inner, {"number": infinite}, exact=True)


def test_words_enumerations_and_ranges_are_read_and_written():
    document = {"text": "inf", "level": "full", "share": 1.0}
    assert read(Words, document) == Words("inf", Effort.FULL, 1.0)
    assert type(read(Words, document).level) is Effort
    assert to_document(Words("inf", Effort.FULL, 1.0)) == document
    for change, message in (
        ({"text": 1}, "text: must be text, not 1"),
        ({"text": None}, "text: must be text, not None"),
        ({"level": 1}, "level: must be text, not 1"),
        ({"level": "slow"}, "level: must be one of smoke, quick, full, not 'slow'"),
        ({"share": 1.5}, "share: must be a number from 0 to 1, not 1.5"),
        ({"share": True}, "share: must be a number from 0 to 1, not True"),
    ):
        with pytest.raises(ValueError, match=r"^share|^text|^level") as error:
            read(Words, {**document, **change})
        assert str(error.value) == message


def test_the_largest_numbers_and_the_deepest_lists_are_read():
    for sign in (1, -1):
        free = {"x": [sign * 2**64, sign * sys.float_info.max, sign * sys.float_info.min, "inf", "-inf", "x"]}
        assert read(Outer, {**DOCUMENT, "free": free}).free == {"x": [*free["x"][:3], math.inf, -math.inf, "x"]}
        assert read(Inner, {"number": sign * sys.float_info.max}) == Inner(sign * sys.float_info.max)
    assert read(Outer, {**DOCUMENT, "count": 2**64}).count == 2**64
    assert read(Outer, {**DOCUMENT, "count": 0}).count == 0
    for make in (lambda inner: [inner], lambda inner: {"a": inner}):
        deep: Any = 1
        for _ in range(50):
            deep = make(deep)
        free = {"x": deep}
        assert read(Outer, {**DOCUMENT, "free": free}).free == free
        with pytest.raises(ValueError, match=r"^free\.x: is nested too deeply$"):
            read(Outer, {**DOCUMENT, "free": {"x": make(deep)}})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"count": -1}, "count: must not be negative, not -1"),
        ({"count": 1.5}, "count: must be a whole number, not 1.5"),
        ({"right": 1}, "right: must be true or false, not 1"),
        ({"pair": [1.0]}, "pair: must be 2 values, not 1"),
        ({"pair": [1.0, 2.0, 3.0]}, "pair: must be 2 values, not 3"),
        *(
            (
                {"free": {"x": [sign * (2**64 + 1)]}},
                f"free.x: must be a whole number of at most 2^64, not {sign * (2**64 + 1)}",
            )
            for sign in (1, -1)
        ),
        ({"count": 2**65}, f"count: must be a whole number of at most 2^64, not {2**65}"),
        *(
            (
                {"entries": [{"number": sign * 10**400}]},
                f"entries[0].number: must be finite, not {str(sign * 10**400)[:60]}",
            )
            for sign in (1, -1)
        ),
        ({"pair": "ab"}, "pair: must be a list, not 'ab'"),
        ({"entries": []}, "entries: must not be empty"),
        ({"entries": [{"number": 1.0}, {}]}, "entries[1].number: is missing"),
        ({"entries": [{"number": True}]}, "entries[0].number: must be a number, not True"),
        ({"named": {"a": {"number": "big"}}}, "named.a.number: must be a number, not 'big'"),
        ({"named": {"a\nb": 1}}, r"named.'a\nb': must be an object, not 1"),
        ({"named": {"a" * 61: 1}}, f"named.{'a' * 60}...: must be an object, not 1"),
        ({"named": {"a": {}}}, "named.a.number: is missing"),
        ({"free": {"x": [math.inf]}}, "free.x: must be finite, not inf"),
        *(
            ({"entries": [{"number": number}]}, f"entries[0].number: must be finite, not {number}")
            for number in (math.inf, -math.inf, math.nan)
        ),
        ({"absent": []}, "absent: must be an object, not []"),
        ({"free": 1}, "free: must be an object, not 1"),
    ],
)
def test_what_breaks_a_rule_is_named_by_its_path_in_a_line(change, message):
    with pytest.raises(ValueError, match=r"^[^\n]+$") as error:
        read(Outer, {**DOCUMENT, **change})
    assert str(error.value) == message


def test_what_is_no_object_or_nested_too_deeply_is_refused_in_a_line():
    with pytest.raises(ValueError, match=r"^the document: must be an object, not \[\]$"):
        read(Outer, [])
    deep: Any = 1
    for _ in range(5000):
        deep = [deep]
    with pytest.raises(ValueError, match=r"nested too deeply$"):
        read(Outer, {**DOCUMENT, "free": {"x": deep}})
    # It cannot be shown either.
    for _ in range(95_000):
        deep = [deep]
    with pytest.raises(ValueError, match=r"^right: is nested too deeply$"):
        read(Outer, {**DOCUMENT, "right": deep})
    with pytest.raises(ValueError, match=r"^is nested too deeply$"):
        read(Outer, deep)
