"""The costs of audits by the shapes of their arrays, in multiply-adds.

The number of parameters drops out of all shares. An example's gradient takes three per parameter, forward and twice
backward; an inner product takes one. What our code took in seconds is on the page of the comparison with CANIFE.
"""

import math
from collections.abc import Mapping

from canaryproof.verify.papers.check.results import Outcome
from canaryproof.verify.papers.check.verdicts import conclude, holds
from canaryproof.verify.papers.claims.transcripts import Canife, Final

_GRADIENT = 3
# "Negligible" and "much", as shares of the training's work.
_NEGLIGIBLE, _MUCH = 0.1, 0.5
# Sentences of StackOverflow's training split a client, by TensorFlow Federated's documentation.
_SENTENCES = 135_818_730 / 342_477


def shares(rounds: int, examples: float, audits: int) -> Mapping[str, float]:
    """Return each audit's share of a training's work, for rounds of so many examples."""
    training = rounds * examples * _GRADIENT
    count = 2 * Final.CANARIES
    designed = audits * Canife.ITERATIONS * (Canife.POOL + _GRADIENT)
    return {
        "Algorithm 3": rounds * count / training,
        "Algorithm 2, or known rounds": count / training,
        # Fast transforms of twice the power of two below d take log₂ d additions a coordinate, here of d = 10⁵.
        "Algorithm 3 with orthonormal canaries": rounds * math.log2(10**5) / training,
        "CANIFE": designed / training,
    }


def _fashion() -> Mapping[str, float]:
    rounds = math.ceil(Final.FASHION_EXAMPLES / Final.FASHION_BATCH)
    return shares(rounds, Final.FASHION_BATCH, rounds // int(Final.COMPARISON["rounds between audits"]))


def judge_negligible() -> Outcome:
    """Judge that random canaries add negligible computation, and CANIFE's design much."""
    fashion = _fashion()
    large = shares(Final.STACKOVERFLOW_ROUNDS, Final.STACKOVERFLOW_COHORT * _SENTENCES, 0)
    negligible = [part["Algorithm 3"] <= _NEGLIGIBLE for part in (fashion, large)]
    listed = ", ".join(f"{name} {share:.2g}" for name, share in fashion.items())
    finding = (
        "only of crafting, which random canaries are spared, or where a round's training costs far more than "
        f"{2 * Final.CANARIES:,} inner products to score them: on StackOverflow Algorithm 3 is "
        f"{large['Algorithm 3']:.1g} of the training's multiply-adds, by its sentences alone. In Section 5.4's own "
        f"training the shares are {listed}, of CANIFE as its Algorithm 1 is printed; with one matrix of the pool it "
        "has far fewer"
    )
    costly = fashion["CANIFE"] >= _MUCH
    return conclude(
        holds(all(negligible) and costly, any(negligible) and costly), finding, fashion=fashion, large=large
    )


def judge_crafting() -> Outcome:
    """Judge that crafting CANIFE's canaries costs much: half of the training's work or more."""
    fashion = _fashion()
    finding = (
        f"{Canife.ITERATIONS:,} steps of {Canife.POOL} inner products an audit are {fashion['CANIFE']:.0f} times the "
        "training's multiply-adds, as Algorithm 1 is printed; with one matrix of the pool they are far fewer"
    )
    return conclude(holds(fashion["CANIFE"] >= _MUCH), finding, shares=fashion)
