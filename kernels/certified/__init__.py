"""The kernels as proven enclosures, in ball arithmetic (python-flint's ``arb``).

For example:

>>> import canaryproof as cp
>>> enclosure = cp.certified.gaussian_mechanism.epsilon(1e-6, 1.54)
>>> print(f"{enclosure.lo:.12f}")
3.008355167619
"""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from canaryproof.kernels.certified._ball import Enclosure, Enclosures, Number, at_precision

if TYPE_CHECKING:
    from canaryproof.kernels.certified import binomial, gaussian_mechanism, null_cosine, two_gaussians

__all__ = [
    "Enclosure",
    "Enclosures",
    "Number",
    "at_precision",
    "binomial",
    "gaussian_mechanism",
    "null_cosine",
    "two_gaussians",
]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> ModuleType:
        """Load a kernel's enclosures with its first use, as each loads the compiled kernel too."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return import_module(f"{__name__}.{name}")
