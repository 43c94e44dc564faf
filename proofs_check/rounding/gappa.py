"""Scripts for Gappa, which bounds the rounding of straight-line code, and their runs.

Each script is one operation of ``_double_double`` on pairs, its arguments scaled by powers of two, which is exact.
``two_sum`` and ``two_product`` are exact, so that what they leave is given by its equation. A script asks Gappa for the
bound that ``primitives`` builds on: what is written is made of ``primitives.UNITS``, and can't drift from it.
"""

import shutil
import subprocess
from pathlib import Path

from canaryproof.proofs_check.rounding.primitives import UNITS

_HEADER = "@rnd = float<ieee_64,ne>;\n"
_PAIRS = "ah in [1,2] /\\ |al| <= 1b-53 /\\ |bl| <= 1b-53"

# |a + b − result| for |b| ≤ |a|, relative to a: the larger operand.
_ADD = """\
sh = rnd(ah + bh);
th = rnd(al + bl);
r rnd= sl + th;
vh = rnd(sh + r);
w rnd= vl + tl;
{{ {pairs} /\\ bh in [-2,2]
 /\\ sl - (ah + bh - sh) in [0,0] /\\ tl - (al + bl - th) in [0,0] /\\ vl - (sh + r - vh) in [0,0]
 -> |(vh + w) - ((ah + al) + (bh + bl))| <= {bound} }}
(vh + w) - ((ah + al) + (bh + bl)) -> (w - (vl + tl)) + (r - (sl + th)) + (vl - (sh + r - vh))
 + (sl - (ah + bh - sh)) + (tl - (al + bl - th));
"""
_MULTIPLY = """\
h = rnd(ah * bh);
p1 rnd= ah * bl;
p2 rnd= al * bh;
t rnd= p1 + p2;
c rnd= low + t;
{{ {pairs} /\\ bh in [1,2] /\\ low - (ah * bh - h) in [0,0]
 -> |(h + c) - (ah + al) * (bh + bl)| <= {bound} }}
(h + c) - (ah + al) * (bh + bl) -> (c - (low + t)) + (t - (p1 + p2)) + (p1 - ah * bl) + (p2 - al * bh) - al * bl
 + (low - (ah * bh - h));
"""
# The remainder's sum errs by x, at most ``add`` of an operand of at most 2. Quotients below 1 get half the bound.
_DIVIDE = """\
q = rnd(ah / bh);
t rnd= q * bl;
c rnd= low + t;
e rnd= rh + rl;
d rnd= e / bh;
B = bh + bl;
A = ah + al;
P = q * B + (c - (low + t)) + (t - q * bl);
{{ {pairs} /\\ bh in [1,2] /\\ q in [{least},{most}] /\\ |low| <= 1b-53 /\\ |x| <= {rest}
 /\\ (rh + rl) - (A - P + x) in [0,0] -> |(q + d) - A / B| <= {bound} }}
A - P -> (ah - q * bh) + al - q * bl - (c - (low + t)) - (t - q * bl);
ah - q * bh -> ((ah / bh) - q) * bh {{ bh <> 0 }};
(q + d) - A / B -> (d - e / bh) + (e - (rh + rl)) / bh + (rh + rl) * (1 / bh - 1 / B)
 + ((rh + rl) - (A - P + x)) / B + x / B - (c - (low + t)) / B - (t - q * bl) / B {{ bh <> 0, B <> 0 }};
1 / bh - 1 / B -> bl / (bh * B) {{ bh <> 0, B <> 0 }};
"""
_SQUARE_ROOT = """\
r = rnd(sqrt(ah));
e rnd= rh + rl;
d rnd= e / (2 * r);
A = ah + al;
{{ ah in [1,4] /\\ |al| <= 1b-52 /\\ |x| <= {rest} /\\ A in [0.99,4.01]
 /\\ (rh + rl) - (A - r * r + x) in [0,0] -> |(r + d) - sqrt(A)| <= {bound} }}
(r + d) - sqrt(A) -> (d - e / (2 * r)) + (e - (rh + rl)) / (2 * r) + ((rh + rl) - (A - r * r + x)) / (2 * r)
 + x / (2 * r) + (r - sqrt(A)) * (r - sqrt(A)) / (2 * r) {{ r <> 0 }};
r - sqrt(A) -> (r - sqrt(ah)) + (sqrt(ah) - sqrt(A));
sqrt(ah) - sqrt(A) -> (0 - al) / (sqrt(ah) + sqrt(A)) {{ sqrt(ah) + sqrt(A) <> 0 }};
A - r * r -> al - (r - sqrt(ah)) * (r + sqrt(ah));
(rh + rl) -> ((rh + rl) - (A - r * r + x)) + (A - r * r) + x;
"""


def scripts() -> dict[str, str]:
    """Return the scripts by their files' names."""

    def units(count: float) -> str:
        return f"{count:g}b-106"

    sums = UNITS["add"]
    return {
        "add.g": _HEADER + _ADD.format(pairs=_PAIRS, bound=units(sums)),
        "multiply.g": _HEADER + _MULTIPLY.format(pairs=_PAIRS, bound=units(UNITS["multiply"])),
        "divide_above.g": _HEADER
        + _DIVIDE.format(pairs=_PAIRS, least="1", most="2", rest=units(2 * sums), bound=units(UNITS["divide"])),
        "divide_below.g": _HEADER
        + _DIVIDE.format(pairs=_PAIRS, least="0.5", most="1", rest=units(2 * sums), bound=units(UNITS["divide"] // 2)),
        "square_root.g": _HEADER + _SQUARE_ROOT.format(rest=units(4 * sums), bound=units(UNITS["square_root"])),
    }


def installed() -> bool:
    """Whether Gappa is on the path."""
    return shutil.which("gappa") is not None


def proves(script: str) -> bool:
    """Whether Gappa proves a script's bound."""
    run = subprocess.run(["gappa"], input=script, capture_output=True, text=True, check=False, timeout=120)
    return run.returncode == 0


def write(folder: Path) -> None:
    """Write all scripts into a folder."""
    for name, script in scripts().items():
        (folder / name).write_text(script)
