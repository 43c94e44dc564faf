"""Lower bounds on ε from the scores of canaries: those of the literature as printed, and valid ones."""

# Before the first compiled function: numba keeps none of another version then.
from canaryproof.kernels import _compiled as _compiled
