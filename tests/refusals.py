"""Refusals as one table a room: calls that are accepted, each with the arguments that it refuses.

A table maps a call to rows of a field, a bad value and the rule, as the refusal has it after the name of the field::

    TABLE = {partial(prepare, [1.0, 2.0], null=normal_null()): [("observed", [], "observed: an audit must have")]}

    @refusals(TABLE)
    def test_refusals(row):
        row.check()

A call needs no arguments: it is a ``partial``, or a function whose defaults are good values. So each row differs from
what is accepted in its one value, and fails for no other reason.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest

from canaryproof.verify.audit.files.errors import InputError

Call = Callable[..., Any]


@dataclass(frozen=True)
class Row:
    """A bad value of a field of a call, and the rule in the words of the refusal."""

    call: Call
    field: str
    value: object
    rule: str

    def check(self) -> None:
        """Check that the call is refused for this value alone, in one line that has the rule."""
        _accept(self.call)
        with pytest.raises((ValueError, InputError)) as caught:
            self.call(**{self.field: self.value})
        message = str(caught.value)
        # Not rewritten by pytest, as this is no test's module.
        assert self.rule in message, message
        assert "\n" not in message, message


@cache
def _accept(call: Call) -> None:
    call()


def refusals(table: Mapping[Call, Iterable[tuple[str, object, str]]]) -> pytest.MarkDecorator:
    """Parametrise a test by the rows of a table."""
    rows = [
        pytest.param(Row(call, *row), id=f"{getattr(call, 'func', call).__name__}-{row[0]}-{i}")
        for call, own in table.items()
        for i, row in enumerate(own)
    ]
    return pytest.mark.parametrize("row", rows)
