"""The quality of the canary stream: the exact law of its coordinates, tests of their independence, its raw words."""
