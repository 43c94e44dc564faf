"""CANIFE's simplest setting: every client has one sample (Section 4.1)."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from canaryproof.verify.canife.attack import Mechanism, ScoreLaw, attack, halves, score_law
from canaryproof.verify.canife.design import Canary, Designer, noise


@dataclass(frozen=True)
class Cell:
    """An attack of the study.

    Attributes
    ----------
    pool, mechanism
        Mock clients that the canary was designed with, and the round.
    observed, unobserved
        Scores with the canary and without.
    law
        Their law.
    canary
        The canary, the same for all mechanisms of a pool.
    """

    pool: int
    mechanism: Mechanism
    observed: NDArray[np.float64]
    unobserved: NDArray[np.float64]
    law: ScoreLaw
    canary: Canary

    @property
    def deviation(self) -> float:
        """Mean of both kinds' standard deviations, the paper's measure of how well a canary is designed."""
        return float(0.5 * (self.observed.std(ddof=1) + self.unobserved.std(ddof=1)))


@dataclass(frozen=True)
class Examples:
    """Examples of clients that have one each.

    Attributes
    ----------
    inputs, labels
        Shape (clients, …) and (clients,).
    """

    inputs: NDArray[np.float32]
    labels: NDArray[np.int32]


def study(
    designer: Designer,
    params: Any,
    design: Examples,
    clients: Examples,
    classes: int,
    *,
    pools: Sequence[int],
    cohorts: Sequence[int],
    noise_multipliers: Sequence[float],
    trials: int,
    rng: np.random.Generator,
) -> list[Cell]:
    """Attack a frozen model for every size of design pool, cohort and noise.

    Parameters
    ----------
    designer
        Designs the canaries.
    params
        Parameters of the model.
    design
        Samples to design with; their law need not be the clients' (Appendix F).
    clients
        Samples of the clients that take part in trials.
    classes
        Number of classes.
    pools
        How many of the first samples of ``design`` are the pool.
    cohorts
        Clients in a trial.
    noise_multipliers
        σ.
    trials
        Trials of each attack, half of them with the canary.
    rng
        Source of randomness.

    Returns
    -------
    Cells, pools first.

    Notes
    -----
    Maddock et al. (arXiv 2210.02912), Section 4.1 and Figure 3, with another network and other images.
    """
    updates = designer.updates
    starts = noise(design.inputs.shape[1:], classes)

    def state(examples: Examples, count: int) -> Any:
        mask = np.ones((count, 1), np.float32)
        return updates.prepare(params, examples.inputs[:count, None], examples.labels[:count, None], mask)

    present = state(clients, len(clients.labels))
    cells = []
    for pool in pools:
        canary = designer.design(state(design, pool), starts, rng)
        response = updates.response(present, [canary])
        for cohort, sigma in product(cohorts, noise_multipliers):
            mechanism = Mechanism(cohort, sigma)
            observed, unobserved = attack(response, halves(trials, 1, rng), mechanism, rng).of()
            cells.append(Cell(pool, mechanism, observed, unobserved, score_law(response, mechanism), canary))
    return cells
