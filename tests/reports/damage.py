"""Damage to the files of a run's folder, which a report survives or refuses in a line."""

import copy
import json

from click.testing import CliRunner
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from canaryproof.verify.command_line import main

VALUES = [
    *(..., None, True, -1, 0, 1e308, 5e-324, 10**400, -(10**400), 2**63, "", "\ud800", "inf", "nan", "../../x"),
    *("x" * 100_000, "a\nb\0", "](x) | `", [], [None], [[]], {}, {"": 0}),
]  # fmt: skip
# Pictures take their time.
FEW = settings(max_examples=10, suppress_health_check=list(HealthCheck), deadline=10_000)


def places(value, path=()):
    """Where something stands in a document."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*path, key)
        yield from places(item, (*path, key))


@st.composite
def damaged(draw, document):
    """A document in which something is replaced, or left out."""
    document = copy.deepcopy(document)
    *outer, last = draw(st.sampled_from(list(places(document))))
    inner = document
    for key in outer:
        inner = inner[key]
    value = draw(st.sampled_from(VALUES))
    if value is ...:
        del inner[last]
    else:
        inner[last] = value
    return document


def reported_or_refused(folder, **files):
    """Make a folder with these documents and no results, and a report on it."""
    run = {"version": "0", "level": "quick", "seed": 0, "results": []}
    for name, document in {"results": run, **files}.items():
        path = folder / f"{name}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(document))
    result = CliRunner().invoke(main, ["report", str(folder), "--out", str(folder / "out")])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exc_info
    assert result.exit_code == 0 or (result.exit_code, result.stderr.count("\n")) == (2, 1), result.output
    if result.exit_code == 2:
        assert str(folder) in result.stderr
        assert len(result.stderr) < 1000
