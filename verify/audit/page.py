"""An audit as a notebook shows it: the answer, warnings, the rows and the picture."""

import base64
import math
from html import escape

from canaryproof.verify.audit import picture
from canaryproof.verify.audit.result import ESTIMATE, AuditResult, AuditRow
from canaryproof.verify.audit.text import answer, number, rounded_down

_HEADINGS = ("name", "kind", "ε", "low", "high", "coverage", "cap", "assumes")


def html(result: AuditResult) -> str:
    """Return an audit as HTML that needs no style sheet and no script."""
    image = base64.b64encode(picture.data(result, "svg")).decode("ascii")
    parts = [f"<p><strong>{escape(answer(result))}</strong></p>"]
    parts += [f"<p>⚠ {escape(f'{warning.message} {warning.what_to_do}')}</p>" for warning in result.warnings]
    rows = (*result.estimates, *result.bounds)
    if rows:
        head = "".join(f"<th>{heading}</th>" for heading in _HEADINGS)
        parts.append(f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(map(_row, rows))}</tbody></table>")
    parts.append(f'<img alt="{escape(answer(result), quote=True)}" src="data:image/svg+xml;base64,{image}"/>')
    return f'<div class="canaryproof-audit">{"".join(parts)}</div>'


def _row(row: AuditRow) -> str:
    cells = (
        row.name,
        row.kind,
        _end(row, row.epsilon),
        _end(row, row.low),
        number(row.high),
        row.basis,
        _end(row, row.cap),
        row.assumes,
    )
    return f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>"


def _end(row: AuditRow, value: float) -> str:
    # A lower bound that is rounded up is invalid.
    return number(value) if row.kind == ESTIMATE or math.isinf(value) else rounded_down(value)
