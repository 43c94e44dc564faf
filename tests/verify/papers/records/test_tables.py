import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from canaryproof.verify.papers.records.tables import in_tables, out_of_tables

PLAIN = st.none() | st.booleans() | st.integers(-9, 9) | st.floats(-1.0, 1.0) | st.sampled_from(["", "a", "columns"])
KEYS = st.sampled_from(["a", "b", "c", "d", "rows"])
DOCUMENTS = st.recursive(
    PLAIN, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4), max_leaves=40
)
CELL = {"shape": "Gaussian", "count": 100, "means": {"band": 1.25, "bonferroni": 0.5}, "interval": [0.5, 0.75]}


def read(text):
    return out_of_tables(json.loads(text))


@given(DOCUMENTS)
def test_a_document_comes_back_with_its_keys_in_their_order(document):
    assert json.dumps(read(in_tables(document))) == json.dumps(document)


@given(st.lists(st.fixed_dictionaries({"a": PLAIN, "b": DOCUMENTS}, optional={"c": PLAIN}), min_size=2))
def test_alike_objects_come_back(objects):
    document = {"cells": objects, "by name": {f"{i}": each for i, each in enumerate(objects)}}
    assert json.dumps(read(in_tables(document))) == json.dumps(document)


def test_alike_objects_are_rows_of_a_line_each():
    cells = [CELL | {"count": count} for count in range(100, 110)]
    text = in_tables({"level": 1e-6, "cells": cells})
    assert '"columns":["shape","count",["means","band"],["means","bonferroni"],"interval"]' in text
    before, after = (in_tables({"level": 1e-6, "cells": each}).splitlines() for each in (cells, [*cells[:9], CELL]))
    assert before[4] == '["Gaussian",101,1.25,0.5,[0.5,0.75]],'
    assert [i for i, lines in enumerate(zip(before, after, strict=True)) if len(set(lines)) == 2] == [12]


def test_a_missing_value_is_no_null():
    others = [CELL | {"means": {"band": 1.0}}, CELL | {"shape": None}]
    text = in_tables({"cells": [CELL, *others] * 5})
    assert '["means","bonferroni",null]' in text
    assert read(text)["cells"][:3] == [CELL, *others]


def test_rows_by_name_are_an_object():
    named = dict.fromkeys(("first", "second", "third"), CELL)
    text = in_tables(named)
    assert '"second":["Gaussian",100,1.25,0.5,[0.5,0.75]]' in text
    assert read(text) == named


def test_an_object_that_looks_like_a_table_is_refused():
    with pytest.raises(ValueError, match="an object of its own that looks like a table"):
        in_tables({"columns": ["a"], "rows": [[1]]})


@pytest.mark.parametrize(
    ("columns", "rows", "message"),
    [
        ("a", [[1]], "must be a list of columns, not 'a'"),
        ([1], [[1]], "must be a key or a list of keys, not 1"),
        ([[]], [[1]], "must be a key or a list of keys, not []"),
        ([[None]], [[1]], "must be a key or a list of keys, not [None]"),
        ([["a", 2]], [[1]], "must be a key or a list of keys, not ['a', 2]"),
        (["a"], 1, "must be a list or an object of rows, not 1"),
        (["a"], [1], "must be a list of values, not 1"),
        (["a"], [[1, 2]], "must be 1 values, one a column, not 2"),
        (["a", ["a", "b"]], [[1, 2]], "must be an object, as a column of its keys says, not 1"),
    ],
)
def test_a_damaged_table_is_refused_in_a_line(columns, rows, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        out_of_tables({"cells": {"columns": columns, "rows": rows}})


def test_a_small_text_does_not_become_a_huge_document():
    column = [f"{i}" for i in range(2_000)]
    with pytest.raises(ValueError, match="at most 4000000 keys in all rows of its tables"):
        out_of_tables({"columns": [column], "rows": [[1]] * 2_001})


def test_objects_with_little_in_common_are_no_rows():
    objects = [{"name": f"{i}", "evidence": {f"{i}.{j}": 0.5 for j in range(100)}} for i in range(300)]
    text = in_tables({"results": objects})
    assert text.startswith('{\n"results":{"columns":["name","evidence"],"rows":[\n')
    assert read(text) == {"results": objects}
