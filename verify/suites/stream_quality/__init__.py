"""The quality of the canary stream: the exact law of its coordinates, tests of their independence, its raw words."""

# Before the first compiled function: numba keeps none of another version then.
from canaryproof.kernels import _compiled as _compiled
