"""Fast numbers: compiled kernels in float64 (float32 for canaries), each with a multiprecision twin."""
