"""The kernels as proven enclosures, in ball arithmetic (python-flint's ``arb``)."""

from canaryproof.kernels.certified._ball import Enclosure, Number, at_precision

__all__ = ["Enclosure", "Number", "at_precision"]
