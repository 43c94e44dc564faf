"""The watch over a training: one call for each framework, and for a loop of one's own."""

from typing import Any, overload

from canaryproof.kernels.public import set_module
from canaryproof.kernels.refusals import checked_integer
from canaryproof.verify.audit.accounting.accountant import Claim
from canaryproof.verify.audit.watch.distributed_watch import watch_of_optimizer
from canaryproof.verify.audit.watch.flower_watch import FlowerWatch
from canaryproof.verify.audit.watch.loop_watch import LoopWatch
from canaryproof.verify.audit.watch.watching import Watch


@overload
def watch(
    optimizer: None = None,
    loader: None = None,
    *,
    delta: float,
    claim: Claim | float | None = None,
    module: None = None,
    engine: None = None,
    members: int | None = None,
    rate: float | None = None,
    clip_norm: None = None,
    divisor: float | None = None,
    insert: None = None,
    seed: int = 0,
) -> LoopWatch: ...


@overload
def watch(
    optimizer: Any,
    loader: Any = None,
    *,
    delta: float,
    claim: Claim | float | None = None,
    module: Any = None,
    engine: Any = None,
    members: int | None = None,
    rate: float | None = None,
    clip_norm: float | None = None,
    divisor: float | None = None,
    insert: int | None = None,
    seed: int = 0,
) -> Watch: ...


@set_module("canaryproof")
def watch(
    optimizer: Any = None,
    loader: Any = None,
    *,
    delta: float,
    claim: Claim | float | None = None,
    module: Any = None,
    engine: Any = None,
    members: int | None = None,
    rate: float | None = None,
    clip_norm: float | None = None,
    divisor: float | None = None,
    insert: int | None = None,
    seed: int = 0,
) -> LoopWatch | Watch:
    """Watch a training: its noise, clipping, sampling, accounting and leak.

    Parameters
    ----------
    optimizer, loader
        What ``PrivacyEngine.make_private`` of Opacus returns; or a strategy of Flower alone. The watch takes each step
        from them, and the loop stays as it is. Without them it watches a loop of one's own, which hands its steps over.
    delta
        δ of the claim, in (0, 1).
    claim
        What is claimed: a ``Claim`` of ``canaryproof.accounting``, or an ε. None watches what is configured. Only a
        ``Claim`` says the noise of a loop of one's own whose steps do not say it.
    module, engine
        Of Opacus: the module, whose parameters then have names and whose examples are looked at one by one, and the
        engine, whose ε is compared.
    members
        Number of members of the training, for the tests of who was drawn. Opacus' loader says it, and by default it is
        the number of Flower's nodes.
    rate
        Rate at which each member is drawn into a step; by default the claim's.
    clip_norm
        Of a strategy: most that a client's update enters with. Flower's wrappers say it.
    divisor
        What the noised sum is divided by before it is released, of a strategy less its learning rate as a factor. By
        default 1, where the sum itself is released, or what Flower's wrappers say.
    insert
        About the number of canaries that join the training of Opacus, for attackers who see less than a watch does: a
        fair coin decides on each of twice as many, and the others are for comparison. The watch then has them as
        ``canaries``. None leaves the training as it is.
    seed
        Seed of these canaries.

    Returns
    -------
    The watch. Print its ``answer()``; of a loop of one's own, hand each step over by its ``step``, or let it wrap the
    loop's functions by ``gradients``, ``noise`` and ``batches``.

    Raises
    ------
    ValueError
        If an argument is out of its range, or the optimizer is not served or is watched already.

    Examples
    --------
    >>> import numpy as np
    >>> import canaryproof as cp
    >>> claim = cp.accounting.poisson(1.0, rate=0.1, rounds=20)
    >>> watch = cp.watch(delta=1e-5, claim=claim, members=5000)
    >>> rng = np.random.default_rng(0)
    >>> gradients = rng.normal(size=(5000, 100))
    >>> for t in range(20):
    ...     drawn = np.flatnonzero(rng.random(5000) < 0.1)
    ...     rows = gradients[drawn]
    ...     norms = np.linalg.norm(rows, axis=1, keepdims=True)
    ...     total = (rows / norms.clip(1.0)).sum(axis=0)
    ...     release = total + 0.5 * rng.normal(size=100)  # half of the noise
    ...     watch.step(
    ...         release=release, total=total, gradients=rows, drawn=drawn, clip_norm=1.0
    ...     )
    >>> answer = watch.close()
    >>> failed = [f.question.value for f in answer.findings if f.status == "failed"]
    >>> print(answer.decision.outcome, failed)
    NOT PASSED ['noise', 'leak']
    """
    checked_integer("seed:", seed, 0, 2**64 - 1)
    loader_options = {"loader": loader, "module": module, "engine": engine, "insert": insert}
    loop_options = {"members": members, "rate": rate, "clip_norm": clip_norm, "divisor": divisor}
    if optimizer is None:
        _refuse(loader_options, "needs an optimizer")
        _refuse({"clip_norm": clip_norm}, "needs a strategy")
        return LoopWatch(
            delta=delta, claim=claim, members=members, rate=rate, divisor=1.0 if divisor is None else divisor
        )
    if hasattr(optimizer, "aggregate_train"):
        _refuse(loader_options, "is of an optimizer, and not of a strategy")
        return FlowerWatch(
            optimizer, delta=delta, claim=claim, members=members, rate=rate, clip_norm=clip_norm, divisor=divisor
        )
    kind = type(optimizer)
    if not any(base.__module__.startswith("opacus.") for base in kind.__mro__):
        raise ValueError(
            "optimizer: must be Opacus' DPOptimizer, as make_private returns it, or a strategy of Flower, not "
            f"{kind.__name__}; a loop of JAX, jax_privacy or one's own is watched without it"
        )
    _refuse(loop_options, "is read from the optimizer and its loader")
    options: dict[str, Any] = {"module": module, "engine": engine, "insert": insert, "seed": seed}
    return watch_of_optimizer(optimizer, loader, delta=delta, claim=claim, **options)


def _refuse(given: dict[str, Any], why: str) -> None:
    """Refuse options that another kind of training has."""
    for name, value in given.items():
        if value is not None:
            raise ValueError(f"{name}: {why}")
