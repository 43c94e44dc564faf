"""CANIFE for a model of one's own: canaries from the gradients that a function gives, and the audit of their scores.

A step of the design needs the derivative of equation (1)'s loss L by the sample z, which enters by the gradient
g = ∇_θ ℓ(θ, z) alone. With v = ∂L/∂g it is ∂⟨v, g⟩/∂z, the derivative of ∇_z ℓ(θ + t·v, z) by t at 0: a difference of
two gradients by the sample. First gradients suffice, also where a framework has no second ones. Arrays meet in
operators alone, so that they stay those of numpy, torch or JAX, on their device.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from canaryproof.kernels.arguments import checked_reals
from canaryproof.kernels.arrays import Array, floating, is_of, on_host, precision
from canaryproof.kernels.public import set_module
from canaryproof.kernels.refusals import refusals_of
from canaryproof.verify.audit import rules
from canaryproof.verify.audit.accounting import accountant
from canaryproof.verify.audit.accounting.accountant import Claim
from canaryproof.verify.audit.answer.findings import Decision, Finding
from canaryproof.verify.audit.answer.run_audit import Audit, audit
from canaryproof.verify.audit.answer.text import WIDTH, wrap
from canaryproof.verify.audit.canaries.scores import Scores
from canaryproof.verify.audit.files.json_records import plain
from canaryproof.verify.audit.markup.digits import number
from canaryproof.verify.audit.rules import NumberRange
from canaryproof.verify.papers.accounting.sampled_gaussian import composed_epsilon, noise_of_round
from canaryproof.verify.papers.canife.attack import accuracy
from canaryproof.verify.papers.canife.measure import Deltas, round_epsilon, rounds_served, training_epsilon
from canaryproof.verify.papers.canife.options import AS_PRINTED, TEXTS
from canaryproof.verify.papers.records.training_record import largest_finite

# (parameters, sample) to the gradients of the loss of this one sample, by the parameters and by the sample.
Gradients = Callable[[Any, Any], tuple[Any, Any]]

_STEPS = NumberRange("be a whole number from 1 to 1e6", 1, 10**6, whole=True)
_SEED = NumberRange("be a whole number from 0 to 2^63 - 1", 0, 2**63 - 1, whole=True)
_POSITIVE = NumberRange("be above 0 and finite", math.ulp(0.0), math.nextafter(math.inf, 0.0))
# Half of the digits of float16 leave nothing of a difference.
_COARSEST = 1e-6
# By how much rounding may lengthen a vector that was clipped.
_ROUNDING = 1e-3


@set_module("canaryproof.typing")
@dataclass(frozen=True, eq=False)
class DesignedCanary:
    """A canary that ``design_canary`` made.

    Attributes
    ----------
    sample
        The sample, an array like the one that the design began with; of tokens, a row for each, 1 at its own place.
    update
        What a client who holds it alone sends: its clipped update, shape (dim,).
    loss, initial_loss
        Loss of equation (1) at the end and at the start.
    norm
        Length of the gradient by which it was designed, before clipping.
    clip_norm
        Clip norm.
    """

    sample: Any
    update: NDArray[np.floating]
    loss: float
    initial_loss: float
    norm: float
    clip_norm: float

    @property
    def health(self) -> float:
        """Share of the initial loss that the design took away, 1 at best (Section 4.2)."""
        return 1.0 - self.loss / self.initial_loss if self.initial_loss else 0.0

    @property
    def is_poor(self) -> bool:
        """Whether the loss is above 2% of the squared clip norm, which a sample without any gradient has.

        The health does not tell: of an initial loss in the hundreds even such a sample takes nearly all away.
        """
        return not self.loss <= AS_PRINTED.largest_loss * self.clip_norm**2

    def score(self, release: ArrayLike) -> float:
        """Score a release: the product with the canary's direction, so that canaries of all rounds are comparable.

        Parameters
        ----------
        release
            The noised sum of a round's clipped updates, not divided, shape (dim,).

        Raises
        ------
        ValueError
            If it has another shape.
        """
        vector = _vector("release", release, len(self.update))
        length = float(np.linalg.norm(self.update))
        return float(np.vdot(self.update, vector)) / length if length else 0.0


@set_module("canaryproof")
def design_canary(
    gradients: Gradients,
    params: Any,
    updates: Any,
    start: Any,
    *,
    clip_norm: float = 1.0,
    steps: int = AS_PRINTED.steps,
    rate: float = AS_PRINTED.rate,
    least_norm: float = AS_PRINTED.norm_constant,
    update: Callable[[Any], ArrayLike] | None = None,
    tokens: bool = False,
    seed: int = 0,
) -> DesignedCanary:
    """Design a canary for a model by CANIFE (Maddock et al., arXiv 2210.02912, Algorithm 1 and equation 1).

    The sample moves by Adam, in so many steps, towards a gradient that is orthogonal to the clients' updates and not
    shorter than ``least_norm``. By default the options are those that the paper prints, and there is one design:
    look at ``is_poor``, and design from another start, or at a rate of 0.1 and a least norm of 1.25, where it is.

    Parameters
    ----------
    gradients
        Function of the parameters and the sample that returns two gradients of the loss of this one sample, new arrays
        each: by the parameters, shape (dim,), and by the sample, in its shape. It is called three times a step and once
        at the end, also with parameters next to ``params``, and decides what the sample's numbers mean: pixels,
        embeddings, or pixels and the logits of a soft label.
    params
        The frozen model's parameters as one vector, shape (dim,), at least float32.
    updates
        Clipped updates of mock clients, shape (clients, dim). For several canaries in a round add the updates of those
        that you have.
    start
        Sample to begin with.
    clip_norm
        Clip norm C of a client's update.
    steps, rate
        Steps of Adam, and its learning rate.
    least_norm
        Length that the gradient is to have at least, in clip norms.
    update
        Function of the sample that returns the clipped update of a client who holds it alone, where that is not one
        step: the design is by one step even so, the first way of the paper's Appendix F. By default the clipped
        negative gradient.
    tokens
        Whether the sample is a text. ``start`` then has the logits of its tokens, a row for each and a column for each
        word of the vocabulary, and the functions get weights of words: rows that add up to 1. The design moves the
        logits through the Gumbel-softmax distribution (Section 3.3), and the canary is the best of 32 texts that are
        drawn of them at the end.
    seed
        Seed of these draws.

    Returns
    -------
    The canary. ``params``, ``updates``, ``start`` and gradients are arrays of one library, numpy, torch or JAX, and so
    is its sample.

    Raises
    ------
    ValueError
        If an argument breaks a rule, the gradients are not finite or of other shapes, or updates are not clipped.

    Examples
    --------
    >>> import numpy as np
    >>> import canaryproof as cp
    >>> data = np.random.default_rng(0).normal(size=(50, 100))
    >>> def gradients(params, sample):  # of a linear regression, whose targets are 1
    ...     error = sample @ params - 1.0
    ...     return error * sample, error * params
    >>> updates = data / np.linalg.norm(data, axis=1, keepdims=True)
    >>> canary = cp.design_canary(
    ...     gradients, np.zeros(100), updates, np.ones(100), steps=300, rate=0.1
    ... )
    >>> print(canary.is_poor, f"{np.abs(updates @ canary.update).max():.3f}")
    False 0.000
    """
    bound = _POSITIVE.number("clip_norm", clip_norm)
    count, speed = int(_STEPS.number("steps", steps)), _POSITIVE.number("rate", rate)
    least = bound * _POSITIVE.number("least_norm", least_norm)
    model = _Model(gradients, params, len(_vector("params", params, None)))
    if precision(params) > _COARSEST:
        raise ValueError("params: must be of at least float32, as the design takes differences of gradients")
    if np.ndim(updates) != 2 or np.shape(updates)[1] != model.dim:
        raise ValueError(f"updates: must have the shape (clients, {model.dim}), not {tuple(np.shape(updates))}")
    _check_lengths("updates", on_host(updates), bound)
    text = _Text.begin(start, _SEED.number("seed", seed)) if tokens else None
    point = 1.0 * start if text is None else text.logits
    first = second = 0.0 * point
    begun = math.nan
    for step in range(count):
        sample = point if text is None else text.draw_weights(point)
        now = model.loss(sample, updates, least)
        begun = begun if step else now.value
        slope = model.derivative(sample, now.slope)
        if text is not None:
            slope = text.through(slope)
        first = 0.9 * first + 0.1 * slope
        second = 0.999 * second + 0.001 * slope**2
        mean, square = first / (1.0 - 0.9 ** (step + 1)), second / (1.0 - 0.999 ** (step + 1))
        point = point - speed * mean / (square**0.5 + 1e-8)
    ends = [point] if text is None else text.draw_texts(point)
    last, sample = min(((model.loss(end, updates, least), end) for end in ends), key=lambda pair: pair[0].value)
    if update is None:
        sent = -floating(last.vector) * min(1.0, bound / last.norm if last.norm else 1.0)
    else:
        sent = _vector("update", update(sample), model.dim)
        _check_lengths("update", sent[None], bound)
    return DesignedCanary(sample, sent, last.value, begun, last.norm, bound)


class _Loss(NamedTuple):
    """Equation (1) at a sample: its value, its derivative by the gradient, and the gradient with its length."""

    value: float
    slope: Any
    vector: Any
    norm: float


@dataclass(frozen=True)
class _Model:
    """A frozen model, by the gradients of its loss for a sample."""

    gradients: Gradients
    params: Any
    dim: int

    def by_params(self, sample: Any) -> Any:
        """Return the gradient by the parameters."""
        return _check_gradient("parameters", self.gradients(self.params, sample)[0], (self.dim,))

    def loss(self, sample: Any, updates: Any, least: float) -> _Loss:
        """Return the loss of the canary's design."""
        vector = self.by_params(sample)
        products, norm = updates @ vector, _length(vector)
        short = max(least - norm, 0.0)
        # The hinge has no derivative at a gradient of 0, and the sample stays.
        slope = 2.0 * (products @ updates) - (2.0 * short / norm if norm else 0.0) * vector
        return _Loss(float(products @ products) + short**2, slope, vector, norm)

    def derivative(self, sample: Any, along: Any) -> Any:
        """Return the derivative by the sample of ⟨v, g⟩, where g is the gradient by the parameters."""
        reach = _length(along)
        if not reach:
            return 0.0 * sample
        # Kinks, as of ReLU, err by the distance, rounding by the spacing over it: both are small at its root.
        near = math.sqrt(precision(self.params)) * (1.0 + _length(self.params)) / reach
        beyond, before = (self.gradients(self.params + side * near * along, sample)[1] for side in (1.0, -1.0))
        return _check_gradient("sample", beyond - before, np.shape(sample)) / (2.0 * near)


@dataclass
class _Text:
    """A text of tokens: draws of the Gumbel-softmax distribution of their logits, as ``canife.text`` has it for JAX."""

    example: Any
    logits: Array
    rng: np.random.Generator
    weights: Array

    @classmethod
    def begin(cls, start: Any, seed: float) -> Self:
        """Begin at logits, an array of any library with the words on its last axis."""
        logits = floating(start).astype(np.float64)
        if logits.ndim < 1 or logits.shape[-1] < 2:
            raise ValueError("start: of tokens must have a column for each word of the vocabulary, two at least")
        return cls(1.0 * start, logits, np.random.default_rng(int(seed)), np.zeros_like(logits))

    def draw_weights(self, logits: Array) -> Any:
        """Draw weights of words: softmax of logits and Gumbel noise, at temperature 1."""
        noised = logits + self.rng.gumbel(size=logits.shape)
        weights = np.exp(noised - noised.max(axis=-1, keepdims=True))
        self.weights = weights / weights.sum(axis=-1, keepdims=True)
        return self._like(self.weights)

    def through(self, slope: Any) -> Array:
        """Return the derivative by the logits of one by the weights that were drawn last."""
        by_weights = on_host(slope).astype(np.float64)
        centred = by_weights - (self.weights * by_weights).sum(axis=-1, keepdims=True)
        return np.asarray(self.weights * centred)

    def draw_texts(self, logits: Array) -> Iterator[Any]:
        """Draw whole texts: the largest of logits and Gumbel noise is a draw from their softmax."""
        for _ in range(TEXTS):
            words = (logits + self.rng.gumbel(size=logits.shape)).argmax(axis=-1)
            yield self._like(np.eye(logits.shape[-1])[words])

    def _like(self, values: Array) -> Any:
        if is_of("torch", "Tensor", self.example):
            return self.example.new_tensor(values)
        return 0.0 * self.example + values.astype(on_host(self.example).dtype)


def _check_gradient(name: str, gradient: Any, shape: tuple[int, ...]) -> Any:
    if np.shape(gradient) != tuple(shape):
        raise ValueError(
            f"gradients: by the {name} must have the shape {tuple(shape)}, not {tuple(np.shape(gradient))}"
        )
    if not math.isfinite(float((gradient**2).sum())):
        raise ValueError(f"gradients: by the {name} must be finite")
    return gradient


def _length(vector: Any) -> float:
    """Return a vector's length, whatever library it is of."""
    return math.sqrt(float(vector @ vector))


def _vector(name: str, values: ArrayLike, dim: int | None) -> NDArray[np.floating]:
    """Return a vector of an argument as numpy's."""
    try:
        vector = floating(values)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error
    if vector.ndim != 1 or dim not in (None, len(vector)):
        wanted = "one axis" if dim is None else f"the shape ({dim},)"
        raise ValueError(f"{name}: must have {wanted}, not the shape {vector.shape}")
    return vector


def _check_lengths(name: str, vectors: NDArray[np.floating], clip_norm: float) -> None:
    longest = float(np.linalg.norm(vectors, axis=1).max(initial=0.0))
    if not longest <= clip_norm * (1.0 + _ROUNDING):
        raise ValueError(f"{name}: must be clipped to the clip norm {clip_norm:g}; one has the length {longest:.6g}")


@set_module("canaryproof.typing")
@dataclass(frozen=True)
class CanifeRound:
    """CANIFE's measures of an audited round.

    Attributes
    ----------
    round, serves
        Round, and the number of rounds that its audit stands for.
    scores
        Number of its scores.
    accuracy
        Largest share of scores that a threshold gets right.
    epsilon, low, high
        ε̂ of the round at the best threshold and δ = 1/n for n scores, and the paper's 95% limits, which are those of a
        threshold fixed in advance.
    cap
        The largest value that ε̂ can have, with one error; it has it without any error, too.
    noise_multiplier
        Noise multiplier at which a round has this ε, which is composed; infinite if the accounting has none.
    """

    round: int
    serves: int
    scores: int
    accuracy: float
    epsilon: float
    low: float
    high: float
    cap: float
    noise_multiplier: float


@set_module("canaryproof.typing")
@dataclass(frozen=True)
class CanifeAudit:
    """An audit by CANIFE: that of its scores, and the paper's four measures.

    Attributes
    ----------
    audit
        Audit of the scores against the claim of one round, as of ``canaryproof.audit``: decision, findings, bounds.
    rounds
        Measures of each audited round.
    claimed_round, claimed
        ε of a round with the canary in it, and of the training, by the paper's Rényi accounting.
    estimate, cap
        ε̂ of the training, composed of the rounds', and what it would be if each round had its largest.
    """

    audit: Audit
    rounds: tuple[CanifeRound, ...]
    claimed_round: float
    claimed: float
    estimate: float
    cap: float

    @property
    def decision(self) -> Decision | None:
        """The decision on the claim of one round."""
        return self.audit.decision

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings that it is made of."""
        return self.audit.findings

    def to_dict(self) -> dict[str, Any]:
        """Return the measures in JSON's own types; infinite numbers are the word ``inf``."""
        measures = {name: getattr(self, name) for name in ("claimed_round", "claimed", "estimate", "cap")}
        document: dict[str, Any] = plain({**measures, "rounds": [asdict(each) for each in self.rounds]})
        return document

    def __str__(self) -> str:
        rows = [("training", self.claimed, self.estimate, self.cap)]
        rows += [(f"round {each.round:,}", self.claimed_round, each.epsilon, each.cap) for each in self.rounds]
        # The mark above an ε takes no column.
        table = [f"{'CANIFE':<14}{'accounted ε':>12}{'ε̂':>11}{'ε̂ at most':>14}"]
        table += [f"{name:<14}{number(a):>12}{number(b):>10}{number(c):>13}" for name, a, b, c in rows]
        return "\n".join([str(self.audit), "", *table, "", *wrap(_MEANING, WIDTH)])


_MEANING = (
    "ε̂ estimates what this attack learns, and is neither an upper nor a lower bound on ε. Where it is "
    "the most that so many scores can show, more scores could give a larger one."
)


@set_module("canaryproof")
def audit_canife(
    scores: ArrayLike,
    inserted: ArrayLike,
    *,
    claim: Claim,
    delta: float,
    rounds: ArrayLike | None = None,
    confidence: float = 0.95,
) -> CanifeAudit:
    """Audit a training by the scores of CANIFE's canaries, of frozen rounds or of running ones.

    Parameters
    ----------
    scores
        Scores by ``DesignedCanary.score``, a row for each trial: shape (trials,), or (trials, canaries) where a round
        has several.
    inserted
        Whether the canary took part, by a fair coin of its own in each trial; shape of ``scores``.
    claim
        Claim of the training, of ``accounting.poisson`` for add-or-remove neighbours, or of ``accounting.gaussian``
        where a client takes part in each round.
    delta
        δ of the training, in (0, 1). That of a round's ε̂ is 1/n for n scores, as the paper has it.
    rounds
        Round that each trial's audit begins with, from 1 on, shape (trials,): the audit stands for it and the rounds
        until the next one, and the first audit also for those before. All trials of a frozen model have its round;
        running measurements have the first round of their period. By default there is one audit for the whole training.
    confidence
        Confidence of the audit's bounds.

    Returns
    -------
    The audit. Its decision is on the ε of one round, which is what a coin decides about: the canary's trace is in no
    other round. The measures of the training are estimates.

    Raises
    ------
    ValueError
        If an argument breaks a rule, or an audit has no score with a canary or none without.

    Examples
    --------
    >>> import numpy as np
    >>> import canaryproof as cp
    >>> rng = np.random.default_rng(0)
    >>> inserted = rng.random(400) < 0.5
    >>> # noise multiplier 1, and a canary orthogonal to all clients
    >>> scores = inserted + rng.normal(size=400)
    >>> claim = cp.accounting.poisson(1.0, rate=0.01, rounds=1000)
    >>> rounds = np.repeat([250, 500, 750, 1000], 100)
    >>> found = cp.audit_canife(scores, inserted, claim=claim, delta=1e-5, rounds=rounds)
    >>> numbers = f"{found.estimate:.2f} of {found.claimed:.2f}, at most {found.cap:.2f}"
    >>> print(f"{found.decision.outcome}, {numbers}")
    PASSED, 0.91 of 2.10, at most 1.55
    """
    sigma, sampling, whole = _mechanism(claim)
    delta = rules.DELTA.number("delta", delta)
    values = checked_reals("scores:", scores)
    if np.isnan(values).any():
        raise ValueError("scores: must be numbers, not nan")
    with refusals_of("inserted:"):
        took = on_host(inserted)
    if took.dtype != bool or took.shape != values.shape or values.ndim not in (1, 2):
        raise ValueError("inserted: must be True or False for each score")
    audited = np.ones(len(values), int) if rounds is None else on_host(rounds)
    if audited.shape != (len(values),) or audited.dtype.kind not in "iu":
        raise ValueError("rounds: must be a whole number for each trial")
    if min(took.sum(), (~took).sum()) < 2:
        raise ValueError("inserted: must be True for at least 2 scores, and False for at least 2")
    coins = Scores(values[took], values[~took], kind="any", inclusion="coin")
    of_round = audit(coins, delta, confidence, accountant.gaussian(sigma))
    begins = np.unique(audited)
    served = rounds_served(begins.tolist(), whole)
    measures = tuple(
        _measure(int(begin), serves, values[audited == begin], took[audited == begin], delta)
        for begin, serves in zip(begins, served, strict=True)
    )

    def compose(epsilons: list[float]) -> float:
        # Each audit has a δ of its scores' own, which composition does without.
        return training_epsilon(epsilons, served, sampling, Deltas(math.nan, delta, delta))

    return CanifeAudit(
        of_round,
        measures,
        claimed_round=composed_epsilon([sigma], [1], 1.0, delta),
        claimed=composed_epsilon([sigma], [whole], sampling, delta),
        estimate=compose([each.epsilon for each in measures]),
        cap=compose([each.cap for each in measures]),
    )


def _mechanism(claim: Claim) -> tuple[float, float, int]:
    """Return noise multiplier, rate and rounds of a claim that CANIFE's composition serves."""
    if not isinstance(claim, Claim):
        raise ValueError(f"claim: {rules.refusal('a claim of canaryproof.accounting', claim)}")
    rate = 1.0 if claim.participations == claim.rounds else claim.rate
    if claim.noise_multiplier is None or claim.rounds is None or rate is None or claim.neighbours != "add-or-remove":
        raise ValueError("claim: must be Poisson sampling, or each round, and neighbours add-or-remove")
    return claim.noise_multiplier, rate, claim.rounds


def _measure(audited: int, serves: int, scores: Any, inserted: Any, delta: float) -> CanifeRound:
    """Measure an audited round."""
    seen, unseen = scores[inserted], scores[~inserted]
    if not seen.size or not unseen.size:
        raise ValueError(f"inserted: the audit of round {audited} needs scores with a canary and without")
    rate = 1.0 / scores.size
    estimate = round_epsilon(seen, unseen, rate, zero_counts="capped")
    cap = largest_finite(seen.size, unseen.size, rate)
    noise = noise_of_round(estimate.epsilon, delta)
    values = estimate.epsilon, estimate.lower, estimate.upper, cap, noise
    return CanifeRound(audited, serves, scores.size, accuracy(seen, unseen), *values)
