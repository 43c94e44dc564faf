"""Audit the privacy of one training run: an empirical ε from random canaries (Andrew et al., arXiv 2302.03098).

The first audit. Canaries are random unit vectors. Add them to what your mechanism sums, and audit what it releases::

    import numpy as np
    import canaryproof as cp

    canaries = cp.Canaries(seed=7, count=300, dim=100_000)
    noise = np.random.default_rng(1).normal(0, 1.54, 100_000)         # your mechanism: ε = 3 at δ = 1e-6
    release = canaries.sum(np.arange(300)) + noise                    # in units of the canaries' norm

    found = cp.audit_release(release, canaries, delta=1e-6, noise_multiplier=1.54)

    print(found)                                                      # the answer in a sentence, then its evidence
    found.to_frame()                                                  # every estimate and lower bound, a row each
    found.plot()                                                      # scores, estimate and claim in a picture

With scores instead of a release, cosines or any others such as logits or negated losses::

    cp.audit(cp.Scores(observed, dim=100_000), delta=1e-6, claim=3.0)
    cp.audit(cp.Scores(observed, unobserved, kind="any"), delta=1e-6)

In a training loop of your own, ``RoundScores`` keeps the scores, and ``CanaryClients`` the canaries too. ``watch``
looks at all that passes by in a training by Opacus or in a loop of your own. The modules ``two_gaussians``,
``gaussian_mechanism``, ``null_cosine`` and ``exact_law`` compute the numbers, ``certified`` proves them, and ``bounds``
has the lower bounds.
``canaryproof --help`` says what the command line does.
"""

import sys
from collections.abc import Callable
from importlib import import_module
from importlib.machinery import ModuleSpec
from typing import Any

if __name__ != "canaryproof":
    # This file lies in the folder of another package, and a second copy of it would have names of its own.
    raise ImportError(f"{__name__} is canaryproof itself: import canaryproof")


def _names_of(spec: ModuleSpec) -> tuple[Callable[[str], Any], list[str]]:
    """Return a module's function that loads a name with its first use, and its names, which its stub lists.

    What they need takes seconds to load.
    """
    stub = spec.loader.get_data(f"{spec.origin}i").decode()
    lines = (line.split() for line in stub.splitlines() if line.startswith("from "))
    origins = {public: (module, name) for _, module, _, name, _, public, *_ in lines}

    def load(name: str) -> Any:
        if name not in origins:
            raise AttributeError(f"module {spec.name!r} has no attribute {name!r}")
        module, attribute = origins[name]
        # A module of a package is no attribute of it before it has been loaded.
        value = getattr(import_module(module), attribute, None) or import_module(f"{module}.{attribute}")
        vars(sys.modules[spec.name])[name] = value
        return value

    return load, list(origins)


_load, _names = _names_of(__spec__)
__all__ = ["__version__", *_names]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        # Takes ten times as long to load as all the rest.
        from importlib.metadata import version

        globals()[name] = version("canaryproof")
        return globals()[name]
    if name not in _names:
        from canaryproof.kernels.successors import current_name

        name = current_name(__name__, name)
    return _load(name)


def __dir__() -> list[str]:
    return sorted(__all__)
