"""Sizes and scenarios of the comparison with CANIFE."""

from dataclasses import dataclass

from canaryproof.verify.benchmark.canife_faults import Fault

SEED = 0


@dataclass(frozen=True)
class Setting:
    """Sizes of a training and of its audits.

    Attributes
    ----------
    batch
        Examples in a round on average, one of each client that takes part.
    canaries
        Observed random canaries; as many are unobserved.
    every
        CANIFE audits each round whose number, from 1 on, is a multiple of this.
    pool
        Mock clients, whose examples are held-out ones.
    steps
        Steps of a canary's design.
    trials
        Numbers of scores of an audit; the first is CANIFE's own.
    noise_multiplier, clip_norm, delta
        σ, C and δ of the training.
    rate
        Learning rate of DP-SGD.
    """

    batch: int
    canaries: int
    every: int
    pool: int
    steps: int = 2500
    trials: tuple[int, ...] = (100, 1000, 10_000)
    noise_multiplier: float = 0.2
    clip_norm: float = 1.0
    delta: float = 1e-5
    rate: float = 1.0


@dataclass(frozen=True)
class Scenario:
    """What a training does otherwise than CANIFE takes for granted.

    Attributes
    ----------
    name
        Its name.
    shuffled
        Whether each client takes part once, in an order that is shuffled; else rounds are Poisson samples.
    fault
        A fault of the server.
    """

    name: str
    shuffled: bool = False
    fault: Fault | None = None
