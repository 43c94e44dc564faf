"""Which functions each proof of this folder is of, by a digest of their code.

A proof is of the functions below, and of all that they reach in the modules below. Changed code breaks the pins of the
proofs that reach it, and no others.
"""

import json
from importlib.resources import files

from canaryproof.proofs_check.code_digest import Definition, code_digest
from canaryproof.proofs_check.rounding import budgets

TABLE = "pins.json"
_KERNELS = "canaryproof.kernels"
_PAIRS, _TAILS, _BALLS = (f"{_KERNELS}.{name}" for name in ("_double_double", "_tails", "certified._pair_balls"))
_COSINE, _BINOMIAL, _STREAM = (f"{_KERNELS}.{name}" for name in ("null_cosine", "binomial", "_canary_stream"))
MODULES = {
    *(_PAIRS, _TAILS, _BALLS, _COSINE, _BINOMIAL, _STREAM),
    *(f"{_KERNELS}.{name}" for name in ("two_gaussians", "gaussian_mechanism")),
}

# The functions that compute, and those that state the bounds which others rely on.
_ROOTS: dict[str, tuple[Definition, ...]] = {
    **{
        f"{name} of pairs": ((_PAIRS, name), (_BALLS, name.upper()))
        for name in ("add", "multiply", "divide", "square_root")
    },
    "logarithm": ((_PAIRS, "log"), (_BALLS, "LOGARITHM")),
    "logarithm of 1 + a": ((_PAIRS, "log1p"), (_BALLS, "LOGARITHM")),
    "exponential, |a| < 1e9": ((_PAIRS, "exp"), (_BALLS, "EXPONENTIAL")),
    "Mills ratio, series": ((_TAILS, "CHEBYSHEV"), (_TAILS, "CHEBYSHEV_LOW"), (_BALLS, "MILLS")),
    "Mills ratio, x > -37": ((_TAILS, "mills_ratio"), (_BALLS, "MILLS")),
    "Gauss-Legendre nodes and weights": ((_TAILS, "NODES"), (_TAILS, "WEIGHTS")),
    "log-gamma series, z >= 20, absolute": ((_BINOMIAL, "_log_gamma"),),
    "density series, w >= 20, absolute": ((_COSINE, "DENSITY_SERIES"),),
    "density at 0, d >= 100": ((_COSINE, "_density_scale"),),
    "canary quantile": ((_STREAM, "_depth"), (_STREAM, "_normal")),
}


def _roots() -> dict[str, tuple[Definition, ...]]:
    """Return the functions that each proof is of: of a budget, the kernel that it names."""
    roots = dict(_ROOTS)
    for row in budgets.read():
        module, function, *_ = row.function.replace("-", "_").split(".")
        roots[row.function] = ((f"{_KERNELS}.{module}", function),)
    return roots


def digests() -> dict[str, str]:
    """Return the digest of the code that each proof is of."""
    return {name: code_digest(definitions, MODULES) for name, definitions in _roots().items()}


def written() -> str:
    """Return the table of all digests."""
    return json.dumps(digests(), indent=2) + "\n"


def read() -> dict[str, str]:
    """Read the digests that were recorded with the proofs."""
    pins: dict[str, str] = json.loads((files(__package__) / TABLE).read_text())
    return pins
