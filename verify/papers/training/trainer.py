"""DP-FedAvg with canaries: Algorithms 2 and 3 of Andrew et al. (arXiv 2302.03098) in one run.

Both algorithms train alike; they differ in what their attackers see. ``Trainer`` hands each round's delta to the canary
clients, for Algorithm 3, and has the final and the initial parameters, for Algorithm 2::

    trainer = Trainer(federation, model, participation, training, canary_clients)
    trainer.run()
    canary_clients.all_rounds()
    canary_clients.final(trainer.theta), canary_clients.final(trainer.theta - trainer.initial)

The same arguments give the same bits, on one machine, also if the run was stopped and goes on from a checkpoint.
"""

import math
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NoReturn

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.flatten_util import ravel_pytree
from numpy.typing import ArrayLike, NDArray

from canaryproof.verify.audit.canaries.canary_clients import CanaryClients, product
from canaryproof.verify.audit.canaries.participation import Participation, check
from canaryproof.verify.audit.estimators.noise_multiplier import RoundTraces
from canaryproof.verify.audit.files import checkpoint
from canaryproof.verify.papers.training.clients import Clients, CohortSums
from canaryproof.verify.papers.training.clipping import Clip
from canaryproof.verify.papers.training.data.federation import FederatedData
from canaryproof.verify.papers.training.faults import Fault, Unclipped, faulty_noise
from canaryproof.verify.papers.training.networks import Model
from canaryproof.verify.papers.training.noise import Noise

OPTIMISERS = ("sgd", "adam")

# Adam's other constants, β₁, β₂ and τ of Reddi et al. (arXiv 2003.00295): the defaults of FedAdam in Flower 1.43.
_FIRST_DECAY, _SECOND_DECAY, _ADAPTIVITY = 0.9, 0.99, 1e-3


class Server:
    """The model's flat parameters θ and the optimiser that changes them: ``sgd``, or ``adam`` for FedAdam.

    With ``sgd`` and no momentum a step is θ ← θ + ηρ̄, line 9 of Algorithm 2. Momentum and ``adam`` mix the deltas of
    all rounds. FedAdam (Reddi et al., arXiv 2003.00295) has the correction of Adam's bias. Whoever sees all iterates
    undoes momentum; in any case Algorithm 3's attacker is one who sees ρ̄.
    """

    def __init__(self, name: str, rate: float, momentum: float, initial: ArrayLike) -> None:
        self.theta: NDArray[np.float32] = np.asarray(initial, np.float32)
        initial_state, self._step = _optimiser(name, rate, momentum)
        self._state: Any = initial_state(self.theta)

    def step(self, delta: ArrayLike) -> None:
        """Change the parameters by a round's delta ρ̄, shape (dim,)."""
        theta, self._state = self._step(self.theta, self._state, np.asarray(delta, np.float32))
        self.theta = np.asarray(theta)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return all that changes from step to step, by name."""
        leaves = jax.tree.leaves(self._state)
        return {"theta": self.theta} | {f"optimiser_{i}": np.asarray(x) for i, x in enumerate(leaves)}

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Take over what ``arrays`` returned."""
        leaves, structure = jax.tree.flatten(self._state)
        self.theta = arrays["theta"]
        self._state = jax.tree.unflatten(structure, [jnp.asarray(arrays[f"optimiser_{i}"]) for i in range(len(leaves))])


# Another training with the same optimiser is not compiled anew.
@cache
def _optimiser(name: str, rate: float, momentum: float) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Make the functions that give the first state, and new parameters and state from these and a delta."""
    if name == "sgd" and momentum == 0.0:
        # A call of JAX takes longer than the sum. What overflows is seen by the caller.
        def add(theta: NDArray[np.float32], state: Any, delta: NDArray[np.float32]) -> tuple[NDArray[np.float32], Any]:
            with np.errstate(all="ignore"):
                return theta + np.float32(rate) * delta, state

        return lambda _: (), add
    if name == "adam":
        optimiser = optax.adam(rate, _FIRST_DECAY, _SECOND_DECAY, _ADAPTIVITY)
    else:
        optimiser = optax.sgd(rate, momentum)

    @jax.jit
    def step(theta: jax.Array, state: Any, delta: jax.Array) -> tuple[jax.Array, Any]:
        change, state = optimiser.update(-delta, state, theta)
        return jnp.asarray(optax.apply_updates(theta, change)), state

    return optimiser.init, step


@dataclass(frozen=True, kw_only=True)
class Training:
    """Options of a training, among them clip norm function S, noise generator Z, and the initial parameters' seed."""

    clip: Clip
    noise: Noise
    client_rate: float
    batch_size: int
    examples_per_client: int
    local_epochs: int = 1
    server: str = "sgd"
    server_rate: float = 1.0
    momentum: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("client_rate", "server_rate"):
            if not 0.0 <= getattr(self, name) < math.inf:
                raise ValueError(f"{name} must be finite and not negative, not {getattr(self, name)!r}")
        for name in ("batch_size", "examples_per_client", "local_epochs"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)!r}")
        if self.server not in OPTIMISERS:
            raise ValueError(f"server must be {' or '.join(OPTIMISERS)}, not {self.server!r}")
        if not 0.0 <= self.momentum < 1.0:
            raise ValueError(f"momentum must lie in [0, 1), not {self.momentum!r}")


_PARTS = ("training", "scoring", "noise")
_FILE = "training.npz"


class DivergenceError(ValueError):
    """A number of the training is not finite: a client's update, a round's delta or the parameters."""


@dataclass(frozen=True)
class Round:
    """A finished round."""

    number: int  # t, from 0 on
    delta: NDArray[np.float32]  # ρ̄, what Algorithm 3's attacker sees, shape (dim,)
    known: NDArray[np.float64]  # the clients' part of it, for an attacker who knows all data
    clip_norm: float  # S(t)
    clients: int  # how many took part
    canaries: int
    unclipped: int  # of clients and canaries, how many had an update of norm S(t) or less; canaries always have


class Trainer:
    """A training, round by round.

    ``initial`` is θ₀, ``rounds`` the number of rounds done. ``clients`` does their part of a round. ``seconds`` is the
    time that training, scoring (with the canaries' updates) and noise have taken so far, by ``clock``. A ``fault`` is
    one of the server, by which audits are compared; ``training`` and accounting know nothing of it.
    """

    def __init__(
        self,
        federation: FederatedData,
        model: Model,
        participation: Participation,
        training: Training,
        canary_clients: CanaryClients | None = None,
        fault: Fault | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        count = len(participation.included) if canary_clients is None else canary_clients.canaries.count
        check(participation, federation.clients, count)
        if canary_clients is not None and canary_clients.canaries.dim != model.dim:
            raise ValueError(f"canary_clients: dim must be the model's, {model.dim}, not {canary_clients.canaries.dim}")
        if canary_clients is not None and canary_clients.participation is not participation:
            raise ValueError("canary_clients: participation must be the training's")
        self._model, self.participation, self._training = model, participation, training
        self._federation, self.canary_clients = federation, canary_clients
        self._fault, self._noise, self._clock = fault, faulty_noise(training.noise, fault), clock
        flat, self._unravel = ravel_pytree(model.init(training.seed))
        self.initial: NDArray[np.float32] = np.asarray(flat)
        self.rounds = 0
        self.seconds = dict.fromkeys(_PARTS, 0.0)
        # Each round has the cosine of its canaries' sum with the delta less the clients' part, and the sum's length.
        self._known_data = np.zeros((2, participation.rounds))
        self._clip_norm = training.clip.initial
        self._server = Server(training.server, training.server_rate, training.momentum, self.initial)
        clients = Clients(
            federation,
            model,
            rate=training.client_rate,
            epochs=training.local_epochs,
            batch_size=training.batch_size,
            examples=training.examples_per_client,
            cohort=max(len(participation.clients(t)) for t in range(participation.rounds)),
        )
        self.clients: CohortSums = Unclipped(clients) if fault is Fault.CLIPPING else clients

    @property
    def theta(self) -> NDArray[np.float32]:
        """Parameters θ now, flat, shape (dim,)."""
        return self._server.theta

    @property
    def params(self) -> Any:
        """Parameters now, in the model's shapes."""
        return self._unravel(jnp.asarray(self._server.theta))

    def round(self) -> Round:
        """Do the next round: lines 3 to 9 of Algorithm 2, 3 to 13 of Algorithm 3.

        Line 9 divides by the number m of those who took part; where that is random, it tells of a client too, which no
        accounting here counts. Where nobody takes part, the delta is Z(t) and not the quotient by m = 0. A
        ``DivergenceError`` says that an update, the delta or the new parameters are not finite.
        """
        t, clip_norm = self.rounds, self._clip_norm
        clients = self.participation.clients(t)
        with self._timed("training"):
            cohort = self.clients.sum(self._server.theta, clients, clip_norm)
        wrong = np.flatnonzero(~np.isfinite(cohort.norms))
        if len(wrong):
            self._refuse(f"the update of client {clients[wrong[0]]} is not finite")
        total, canaries = cohort.total.copy(), 0
        if self.canary_clients is not None:
            with self._timed("scoring"):
                canaries = len(self.canary_clients.participants(t))
                total += self.canary_clients.total(t, clip_norm)
        with self._timed("noise"):
            total += self._noise.sample(t, self._model.dim, clip_norm)
        with self._timed("training"), np.errstate(over="ignore"):
            members = max(1, len(clients) + canaries)
            delta, known = (total / members).astype(np.float32), cohort.total / members
        if not np.isfinite(delta).all():
            self._refuse("its delta is not finite")
        if self.canary_clients is not None:
            with self._timed("scoring"):
                self.canary_clients.add(delta, round=t)
                if canaries:
                    own = self.canary_clients.total(t, 1.0)
                    length = float(np.linalg.norm(own))
                    self._known_data[:, t] = np.clip(product(own, delta - known) / length, -1.0, 1.0), length
        with self._timed("training"):
            self._server.step(delta)
            finite = bool(np.isfinite(self.theta).all())
        if not finite:
            self._refuse("the parameters are not finite")
        unclipped = int(np.count_nonzero(cohort.norms <= clip_norm)) + canaries
        self._clip_norm = self._training.clip.following(clip_norm, unclipped, len(clients) + canaries, t)
        self.rounds += 1
        return Round(t, delta, known, clip_norm, len(clients), canaries, unclipped)

    @property
    def known_data(self) -> RoundTraces | None:
        """Traces of the canaries for an attacker who takes all clients' updates out of each release."""
        measured = self._known_data[1] > 0.0
        if not measured.any():
            return None
        cosines, lengths = self._known_data[:, measured]
        return RoundTraces(cosines, lengths, self._model.dim, residual=True, rounds=self.rounds)

    def run(self, until: int | None = None, on_round: Callable[[Round], object] | None = None) -> None:
        """Do the rounds that remain, or those until so many are done; ``on_round`` is called after each."""
        last = self.participation.rounds if until is None else min(until, self.participation.rounds)
        while self.rounds < last:
            done = self.round()
            if on_round is not None:
                on_round(done)

    def pauses(self, stops: Iterable[int], on_round: Callable[[Round], object] | None = None) -> Iterator[int]:
        """Do the rounds that remain, and pause when so many are done as each of the rising ``stops`` says.

        Yields the number of rounds done. Whoever leaves at a pause leaves the later rounds undone.
        """
        for stop in stops:
            if stop >= self.rounds:
                self.run(until=stop, on_round=on_round)
                yield self.rounds
        self.run(on_round=on_round)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write a checkpoint to a folder of its own; a crash leaves the old one or the new one, whole."""
        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        if self.canary_clients is not None:
            self.canary_clients.save(target / _canaries_file(self.rounds))
        checkpoint.write(target / _FILE, self._description, self._state())
        # Only from here on are the scores of an earlier round of no use.
        for old in target.glob("canaries-*"):
            if not old.name.startswith(_canaries_file(self.rounds)):
                old.unlink()

    @staticmethod
    def has_saved(folder: Path) -> bool:
        """Whether there is something in a folder from which a training can go on."""
        return (folder / _FILE).exists()

    def load(self, folder: str | os.PathLike[str]) -> None:
        """Take over what ``save`` wrote; going on from it gives the same bits as without a stop.

        A ``ValueError`` names the file, the field and the rule if one is damaged, or of a training with other
        arguments.
        """
        source = Path(folder)
        state = checkpoint.read(source / _FILE, self._description, self._state())
        rounds = int(state["rounds"])
        if self.canary_clients is not None:
            scores = source / _canaries_file(rounds)
            self.canary_clients.load(scores)
            if self.canary_clients.rounds != rounds:
                raise ValueError(f"{scores}: rounds: must be {rounds}, not {self.canary_clients.rounds}")
        self.rounds, self._clip_norm = rounds, float(state["clip_norm"])
        self.seconds = dict(zip(_PARTS, state["seconds"].tolist(), strict=True))
        self._known_data = state["known_data"]
        self._server.restore(state)

    def _state(self) -> dict[str, NDArray[Any]]:
        numbers = {"rounds": self.rounds, "clip_norm": self._clip_norm, "seconds": list(self.seconds.values())}
        state = {name: np.asarray(value) for name, value in numbers.items()} | {"known_data": self._known_data}
        return state | self._server.arrays()

    @cached_property
    def _description(self) -> dict[str, Any]:
        """All that decides the bits, where it is not a number by what it makes."""
        training, federation = self._training, self._federation
        rounds = range(self.participation.rounds)
        options = {entry.name: getattr(training, entry.name) for entry in fields(training)}
        return (
            options
            | {
                "initial": checkpoint.digest(self.initial),
                "examples": federation.digest,
                "participation": checkpoint.digest(*(np.asarray(self.participation.clients(t)) for t in rounds)),
                # Kinds of noise that begin alike differ in one of the last two rounds.
                "noise": checkpoint.digest(*(np.asarray(self._noise.sample(t, 1, 1.0)) for t in rounds[-2:])),
                "clip": [training.clip.initial, training.clip.following(training.clip.initial, 0, 1, 0)],
                "canaries": self.canary_clients is not None,
            }
            | ({} if self._fault is None else {"fault": self._fault.name})
        )

    @contextmanager
    def _timed(self, part: str) -> Iterator[None]:
        start = self._clock()
        yield
        self.seconds[part] += self._clock() - start

    def _refuse(self, problem: str) -> NoReturn:
        raise DivergenceError(f"the model diverged in round {self.rounds}: {problem}")


def _canaries_file(rounds: int) -> str:
    return f"canaries-{rounds}.npz"
