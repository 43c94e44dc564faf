"""The kernels' twins in mpmath: the plainest transcription of each formula, to any precision."""
