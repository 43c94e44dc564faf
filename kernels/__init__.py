"""Fast numbers: compiled kernels in float64 (float32 for canaries), each with a multiprecision twin."""

# Before the first kernel.
from canaryproof.kernels import _compiled as _compiled
