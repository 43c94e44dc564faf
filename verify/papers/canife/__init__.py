"""CANIFE (Maddock et al., arXiv 2210.02912), complete: canary design, attack, measurement and composition."""
