"""Proofs that a machine repeats of the kernels' error bounds: ``make prove``."""
