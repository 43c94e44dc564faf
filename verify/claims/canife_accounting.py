"""CANIFE's theoretical ε: Rényi accounting under Poisson sampling, as Appendix C.1 has it.

δ of training is printed nowhere, so that what depends on it is judged under several.
"""

from functools import cache

from canaryproof.verify.claims.canife_numbers import TRAINED_EPSILON, Task, noise_for
from canaryproof.verify.sampled_rdp import rdp


@cache
def trained(task: Task, delta: float) -> float:
    """Return the noise multiplier of a training to ε = 50.

    Parameters
    ----------
    task
        The training.
    delta
        δ of its guarantee.
    """
    return noise_for(TRAINED_EPSILON, lambda sigma: rdp(sigma, delta, task.rounds, task.sampling), 0.25, 0.8)


def one_round(task: Task, delta: float) -> float:
    """Theoretical per-round ε: one round of a training to ε = 50 without sampling."""
    return rdp(trained(task, delta), delta)
