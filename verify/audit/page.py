"""An audit as a notebook shows it: the answer, warnings, the rows and the picture."""

import base64
import math
from html import escape

from canaryproof.verify.audit import picture
from canaryproof.verify.audit.findings import ESTIMATE, AuditRow, Findings
from canaryproof.verify.audit.text import answer, number, rounded_down

_HEADINGS = ("name", "kind", "ε", "low", "high", "coverage", "cap", "assumes")


def html(found: Findings) -> str:
    """Return an audit as a piece of HTML that needs no style or script of its page's."""
    image = base64.b64encode(picture.data(found, "svg")).decode("ascii")
    parts = [f"<p><strong>{escape(answer(found))}</strong></p>"]
    parts += [f"<p>⚠ {escape(f'{one.message} {one.what_to_do}')}</p>" for one in found.warnings]
    rows = (*found.estimates, *found.bounds)
    if rows:
        head = "".join(f"<th>{heading}</th>" for heading in _HEADINGS)
        parts.append(f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(map(_row, rows))}</tbody></table>")
    parts.append(f'<img alt="{escape(answer(found), quote=True)}" src="data:image/svg+xml;base64,{image}"/>')
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
    # A bound that is rounded up would be none.
    return number(value) if row.kind == ESTIMATE or math.isinf(value) else rounded_down(value)
