"""How far a run of given d, k and noise is from its limits; the suites and ``canaryproof convergence`` share it."""
