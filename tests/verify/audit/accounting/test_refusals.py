"""What the accounting of claims refuses."""

import math
from functools import partial

import dp_accounting
import numpy as np

from canaryproof.verify.audit.accounting.accountant import (
    RandomTrainings,
    as_claim,
    best_of,
    epsilon_delta,
    fixed_batches,
    from_event,
    gaussian,
    noise_multiplier,
    poisson,
    shuffled,
)
from tests.refusals import refusals

SAMPLED, KNOWN = poisson(1.0, rate=0.1, rounds=9), gaussian(1.0, participations=1, rounds=9)
NOISE = "noise_multiplier: must lie between 0.01 and 1e+06, not"
Gaussian = dp_accounting.GaussianDpEvent
Sampled = dp_accounting.PoissonSampledDpEvent
# A claim that has neither rounds nor a noise multiplier refuses what only others can say.
CLAIMS = {"sampled": SAMPLED, "known": KNOWN, "stated": epsilon_delta(1, 1e-5)}


def with_known_rounds(claim="sampled", participations=1):
    CLAIMS[claim].with_known_rounds(participations)


def random_trainings(law="Poisson", mean=3.0, shape=1.0, made=2, score_covered=False):
    drawn = RandomTrainings(law=law, mean=mean, shape=shape, made=made, score_covered=score_covered)
    best_of(KNOWN, trainings=drawn)


def participation_quantile(claim="sampled", probability=0.5):
    CLAIMS[claim].participation_quantile(probability)


TABLE = {
    partial(gaussian, noise_multiplier=1.0, participations=1, rounds=2): [
        *(("noise_multiplier", value, f"{NOISE} {value!r}") for value in (0, math.nan, True, "1")),
        ("participations", 3, "participations: must be a whole number from 0 to 2, not 3"),
        *(("rounds", value, f"rounds: must be a whole number from 1 to 1e9, not {value}") for value in (0, 1.5)),
        ("neighbours", "x", "neighbours: must be one of add-or-remove, replace, not 'x'"),
    ],
    partial(fixed_batches, noise_multiplier=1.0, batch=10, records=100, rounds=3, neighbours="replace"): [
        ("batch", 101, "batch: must be a whole number from 1 to 100, not 101"),
        ("records", 0, "records: must be a whole number from 1 to 1e9, not 0"),
        ("neighbours", "zero-out", "neighbours: must be one of add-or-remove, replace, not 'zero-out'"),
    ],
    partial(shuffled, noise_multiplier=1.0, batches=10, epochs=3, neighbours="replace"): [
        ("noise_multiplier", 0, f"{NOISE} 0"),
        ("batches", 0, "batches: must be a whole number from 1 to 1e9, not 0"),
        ("epochs", 1.5, "epochs: must be a whole number from 1 to 1e9, not 1.5"),
        ("epochs", 10**9, "epochs: all batches: must be a whole number from 1 to 1e9, not 10000000000"),
        ("neighbours", "zero-out", "neighbours: must be one of add-or-remove, replace, not 'zero-out'"),
    ],
    random_trainings: [
        ("law", "geometric", "law: must be one of truncated negative binomial, Poisson, not 'geometric'"),
        ("mean", 0.5, "mean: must lie between 1 and 1e6, not 0.5"),
        ("shape", -0.5, "shape: must lie between 0 and 100, not -0.5"),
        ("made", 0, "made: must be a whole number from 1 to 1e9, not 0"),
        ("score_covered", "yes", "score_covered: must be True or False, not 'yes'"),
    ],
    partial(best_of, claim=KNOWN, trainings=2): [
        ("trainings", 0, "trainings: must be a whole number from 1 to 1e9, not 0"),
        ("claim", 3.0, "claim: must be a Claim, not 3.0"),
    ],
    partial(gaussian, noise_multiplier=1.0): [
        (
            "rounds",
            3,
            "rounds: must be given with the record's participations: participations=3 if it takes part in all, "
            "participations=1, rounds=3 if in one",
        ),
    ],
    partial(gaussian, noise_multiplier=1.0, participations=1): [
        ("participations", 1.5, "participations: must be a whole number from 0 to 1e9, not 1.5"),
    ],
    partial(poisson, noise_multiplier=1.0, rate=0.1, rounds=2): [
        ("noise_multiplier", "1", f"{NOISE} '1'"),
        ("rate", 1.1, "rate: must lie between 0 and 1, not 1.1"),
    ],
    partial(epsilon_delta, epsilon=1.0, delta=1e-5): [
        ("epsilon", 0, "epsilon: must lie between 0.001 and 10000, not 0"),
    ],
    partial(as_claim, SAMPLED, 1e-5, neighbours="add-or-remove"): [
        ("neighbours", "replace", "neighbours: must be add-or-remove, as in the claim, not replace"),
    ],
    partial(as_claim, value=3, delta=1e-5): [
        ("value", "3", "claim: must lie between 0.001 and 10000, not '3'"),
    ],
    partial(from_event, event=Gaussian(1.0)): [
        ("event", 3, "event: must be a dp_accounting.DpEvent, not 3"),
        ("event", Gaussian(0.0), f"event: {NOISE} 0.0"),
        (
            "event",
            dp_accounting.ComposedDpEvent(
                [dp_accounting.SelfComposedDpEvent(Sampled(rate, Gaussian(1.0)), 2**62) for rate in (0.1, 0.2)]
            ),
            "event: all rounds: must be a whole number from 1 to 1e9, not 9223372036854775808",
        ),
        *(
            (
                "event",
                event,
                "event: must be one that dp-accounting accounts for where neighbours are add-or-remove, not ",
            )
            for event in (
                dp_accounting.NoOpDpEvent(),
                dp_accounting.UnsupportedDpEvent(),
                Sampled(0.1, Sampled(0.1, Gaussian(1.0))),
                dp_accounting.SampledWithoutReplacementDpEvent(1000, 10, dp_accounting.LaplaceDpEvent(1.0)),
                dp_accounting.ComposedDpEvent([Gaussian(1.0), dp_accounting.UnsupportedDpEvent()]),
            )
        ),
    ],
    **{
        partial(call, delta=1e-5): [
            ("delta", delta, "delta: must lie strictly between 0 and 1, and be at least 2.23e-308, not ")
            for delta in (0.0, 1.0, 1e-310, math.nan, "x")
        ]
        for call in (KNOWN.epsilon, KNOWN.basis)
    },
    partial(KNOWN.power, false_positive_rate=0.5): [
        ("false_positive_rate", np.array([0.5, 2.0]), "false_positive_rate: must lie between 0 and 1, not 2"),
    ],
    partial(KNOWN.tradeoff, false_positive_rate=0.5): [
        ("false_positive_rate", "x", "false_positive_rate: must be an array of numbers, not of <U1"),
    ],
    with_known_rounds: [
        ("participations", 10, "participations: must be a whole number from 0 to 9, not 10"),
        ("claim", "stated", "with_known_rounds: must be asked of a claim with one noise multiplier for all rounds"),
    ],
    participation_quantile: [
        ("probability", 2, "probability: must lie between 0 and 1, not 2"),
        ("claim", "stated", "participation_quantile: must be asked of a claim with rounds or with a sampling rate"),
    ],
    partial(noise_multiplier, epsilon=3.0, delta=1e-300, participations=10**6): [
        ("epsilon", 0.001, "epsilon: must be at least 0.0368 for these rounds, not 0.001"),
    ],
    partial(noise_multiplier, epsilon=9999.0, delta=1e-300, rate=0.999, rounds=10**6): [
        ("epsilon", 0.001, "epsilon: must be at least 0.0368 for these rounds, not 0.001"),
    ],
    partial(noise_multiplier, epsilon=9999.0, delta=1e-5, rate=0.5, rounds=1): [
        ("rounds", None, "rounds: must be given with a rate"),
        ("participations", 2, "participations: must be left out where a rate is given"),
    ],
}


@refusals(TABLE)
def test_refusals(row):
    row.check()
