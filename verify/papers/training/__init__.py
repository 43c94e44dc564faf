"""Algorithms 2 and 3 of Andrew et al. (arXiv 2302.03098) in real federated training."""
