"""Each argument of each public call, exchanged for what nobody means: it is refused in a line that names it."""

import datetime
import warnings
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from functools import partial

import numpy as np
import pandas as pd
import pytest

import canaryproof as cp
from canaryproof import accounting, bounds, exact_law, gaussian_mechanism, null_cosine, two_gaussians


class NoArray:
    """It looks like an array, and is none."""

    def __array__(self, *_: object, **__: object) -> np.ndarray:
        raise RuntimeError("no array here")


RNG = np.random.default_rng(1)
DATA = RNG.normal(size=100)
CANARIES = cp.Canaries(seed=7, count=20, dim=100)
ORTHONORMAL = cp.OrthonormalCanaries(seed=7, count=20, dim=100)
GROUPED = cp.GroupedCanaries(7, 20, (50, 50), (0.6, 0.8))
RELEASE = CANARIES.sum() + DATA
COSINES = CANARIES.cosines(RELEASE)
OTHERS = cp.Canaries(seed=8, count=20, dim=100).cosines(RELEASE)
INSERTION = cp.Insertion(count=10)
SCHEDULE = cp.uniform(clients=50, cohort=10, rounds=20, seed=1, canaries=INSERTION)
TEN = cp.Canaries(3, 10, 100)
MASKED = np.ma.masked_array(RELEASE, mask=[True] + [False] * 99)
FRAME = pd.DataFrame({"score": [*COSINES, *OTHERS], "member": [1] * 20 + [0] * 20})

NONSENSE = {
    "none": None,
    "true": True,
    "numpy true": np.True_,
    "text": "x",
    "no text": "",
    "digits": "3",
    "long text": "x" * 10**6,
    "bytes": b"1",
    "-1": -1,
    "-1.5": -1.5,
    "0": 0,
    "1/2": 0.5,
    "1/2 in float32": np.float32(0.5),
    "1/3": Fraction(1, 3),
    "nan": float("nan"),
    "inf": float("inf"),
    "-inf": float("-inf"),
    "2**63": 2**63,
    "10**400": 10**400,
    "smallest": 5e-324,
    "largest": 1.7e308,
    "complex": 1 + 1j,
    "decimal nan": Decimal("NaN"),
    "time": np.timedelta64(1),
    "date": datetime.date(2020, 1, 1),
    "[]": [],
    "[text]": ["a"],
    "[None]": [None],
    "[1]": [1],
    "ragged": [[1.0, 2.0], [3.0]],
    "dict": {},
    "set": {1},
    "range": range(3),
    "slice": slice(0, -1),
    "generator": (i for i in ()),
    "object": object(),
    "ellipsis": ...,
    "class": int,
    "function": lambda *_, **__: None,
    "no array": NoArray(),
    "1.0 in an array": np.array(1.0),
    "empty array": np.zeros(0),
    "masked": MASKED,
    "texts": np.array(["a"] * 100),
    "objects": np.array([None] * 100),
    "dates": np.array(["2020-01-01"] * 100, "datetime64[D]"),
    "complex array": RELEASE * 1j,
    "long doubles": RELEASE.astype(np.longdouble),
    "nans": np.full(100, np.nan),
    "matrix": RELEASE.reshape(10, 10),
    "integers": np.arange(100),
    "truths": np.ones(100, bool),
    "structures": np.zeros(100, [("a", float)]),
    "table": pd.DataFrame({"a": [1]}),
}

# What an argument of a kind may take of these, though it need not; all else must be refused.
NUMBER = {
    "-1",
    "-1.5",
    "0",
    "1/2",
    "1/2 in float32",
    "1/3",
    "inf",
    "2**63",
    "10**400",
    "smallest",
    "largest",
    "1.0 in an array",
}
WHOLE = {"0", "-1", "2**63", "10**400", "1.0 in an array"}
VECTOR = {"nans"}
NUMBERS = NUMBER | VECTOR | {"nan", "-inf", "[]", "[1]", "range", "empty array", "matrix", "integers", "table"}
NUMBERS -= {"1/3", "10**400"}
INTEGERS = {"none", "[]", "[1]", "range", "empty array", "integers"}
FLAG = {"true", "numpy true"}
TEXTS = {"none", "[]", "[text]", "empty array", "generator", "set"}
COLUMN = {"none", "text", "no text", "digits", "long text"}
FUNCTION = {"function", "class"}
OPTIONAL = {"none"}
RECORD: set[str] = set()
WORD: set[str] = set()


def rounds_of(delta: object) -> None:
    cp.RoundScores(CANARIES).add(delta)


def drawn_by(drawn: object) -> None:
    cp.SamplingTests(0.1, 20).add(drawn)


def residual_of(residual: object) -> None:
    cp.ResidualTests(1.0, 100).add(residual)


def batch_sum(batch: np.ndarray) -> np.ndarray:
    return np.asarray(batch).sum(axis=0) if len(batch) else np.zeros(3)


NOISE = {"noise_multiplier": (1.0, NUMBER)}
DELTA = {"delta": (1e-6, NUMBER)}
NEIGHBOURS = {"neighbours": ("replace", WORD)}
LEVELS = DELTA | {"confidence": (0.95, NUMBER)}
SEED = {"seed": (1, WHOLE)}
ASKED = {"claim": (5.0, NUMBER | OPTIONAL), "noise_multiplier": (1.0, NUMBER | OPTIONAL), "bounds": ((), TEXTS)}
MEANS = {name: (value, NUMBERS) for name, value in (("mu1", 0.0), ("sigma1", 1.0), ("mu2", 1.0), ("sigma2", 1.0))}
DRAWS = {"count": (5, WHOLE), "dim": (100, WHOLE), "rng": (RNG, RECORD)} | {
    name: (value, NUMBERS) for name, value in (("noise_multiplier", 1.0), ("data_norm", 0.0))
}
SCHEDULED = SEED | {"clients": (50, WHOLE), "canaries": (INSERTION, RECORD)}

# Each call with good values of its arguments, and their kinds.
CALLS: dict[str, tuple[Callable[..., object], dict[str, tuple[object, set[str]]]]] = {
    "Canaries": (cp.Canaries, SEED | {"count": (20, WHOLE), "dim": (100, WHOLE)}),
    "OrthonormalCanaries": (
        cp.OrthonormalCanaries,
        SEED | {"count": (20, WHOLE), "dim": (100, WHOLE), "layers": (2, WHOLE)},
    ),
    "GroupedCanaries": (
        cp.GroupedCanaries,
        SEED | {"count": (20, WHOLE), "sizes": ((50, 50), RECORD), "norms": ((0.6, 0.8), RECORD)},
    ),
    **{
        f"{type(each).__name__}.{name}": (getattr(each, name), arguments)
        for each in (CANARIES, ORTHONORMAL, GROUPED)
        for name, arguments in {
            "vector": {"j": (3, WHOLE)},
            "block_cosines": {"vectors": (RELEASE[np.newaxis], VECTOR)},
            "sum": {"indices": ([0, 1], INTEGERS), "weights": ([1.0, 2.0], NUMBERS | OPTIONAL)},
            "partial_products": {"vector": (RELEASE, VECTOR), "start": (0, WHOLE), "indices": ([1], INTEGERS)},
            "scores": {"vectors": (RELEASE[np.newaxis], VECTOR), "indices": ([1], INTEGERS)},
            "squared_norms": {"coordinates": (slice(0, 10), OPTIONAL | {"slice"})},
        }.items()
        if hasattr(each, name)
    },
    "ShardedCanaries": (
        cp.ShardedCanaries,
        {"whole": (CANARIES, RECORD), "shards": ([slice(0, 100)], RECORD), "add_up": (lambda sums: sums, FUNCTION)},
    ),
    "Scores": (
        cp.Scores,
        {
            "observed": (COSINES, VECTOR),
            "unobserved": (OTHERS, VECTOR | OPTIONAL),
            "dim": (100, WHOLE | OPTIONAL),
            "kind": ("cosine", WORD),
            "inclusion": ("fixed", WORD),
        },
    ),
    "audit": (
        cp.audit,
        LEVELS | ASKED | {"scores": (cp.Scores(COSINES, dim=100), RECORD), "force": (False, FLAG)},
    ),
    "audit_release": (
        cp.audit_release,
        LEVELS | ASKED | {"release": (RELEASE, VECTOR), "canaries": (CANARIES, RECORD), "force": (False, FLAG)},
    ),
    "release_sums": (
        cp.release_sums,
        {"release": (RELEASE, VECTOR), "canaries": (CANARIES, RECORD), "start": (0, WHOLE)},
    ),
    "plan": (
        cp.plan,
        NOISE | LEVELS | NEIGHBOURS | {"dim": (1000, WHOLE), "rounds": (1, WHOLE), "notice": (0.5, NUMBER)},
    ),
    "review": (
        cp.review,
        LEVELS
        | {
            "source": (FRAME, RECORD),
            "epsilon": (1.0, NUMBER | OPTIONAL),
            "inclusion": ("fixed", WORD),
            "tried": (1, WHOLE | OPTIONAL),
            "score": ("score", COLUMN),
            "member": ("member", COLUMN),
            "kind": ("any", OPTIONAL),
        },
    ),
    "flatten": (
        cp.flatten,
        {"tree": ({"a": np.zeros(2)}, NUMBERS | {"ragged"}), "skip": (None, TEXTS), "scale": (None, NUMBER | OPTIONAL)},
    ),
    "split": (
        cp.split,
        {"vector": (np.ones(2), VECTOR), "like": ({"a": np.zeros(2)}, NUMBERS), "skip": (None, TEXTS)},
    ),
    "replay": (
        cp.replay,
        NEIGHBOURS
        | {
            "step": (batch_sum, FUNCTION),
            "members": (0.1 * RNG.normal(size=(5, 3)), NUMBERS),
            "sensitivity": (1.0, NUMBER),
            "extremes": (None, OPTIONAL | {"table"}),
            "tolerance": (1e-3, NUMBER),
        },
    ),
    "watch": (
        cp.watch,
        DELTA
        | {
            "claim": (3.0, NUMBER | OPTIONAL),
            "members": (20, WHOLE | OPTIONAL),
            "rate": (0.5, NUMBER | OPTIONAL),
            "divisor": (1.0, NUMBER),
            "seed": (0, WHOLE),
        },
    ),
    "audit_canife": (
        cp.audit_canife,
        LEVELS
        | {
            "scores": (RNG.normal(size=100), VECTOR | {"integers"}),
            "inserted": (np.arange(100) % 2 == 0, {"truths"}),
            "claim": (accounting.poisson(1.0, rate=0.1, rounds=10), RECORD),
        },
    ),
    "Insertion": (cp.Insertion, {"count": (4, WHOLE), "observed": (2, WHOLE | OPTIONAL), "pattern": (None, OPTIONAL)}),
    "bernoulli": (cp.bernoulli, SCHEDULED | {"rate": (0.1, NUMBER), "rounds": (5, WHOLE)}),
    "uniform": (cp.uniform, SCHEDULED | {"cohort": (10, WHOLE), "rounds": (5, WHOLE)}),
    "shuffled_epochs": (cp.shuffled_epochs, SCHEDULED | {"cohort": (10, WHOLE), "epochs": (2, WHOLE)}),
    "fixed_schedule": (
        cp.fixed_schedule,
        {"table": (np.ones((4, 6), bool), WORD), "included": (np.ones(6, bool), WORD), "inclusion": ("fixed", WORD)},
    ),
    "RoundScores": (
        cp.RoundScores,
        {
            "canaries": (CANARIES, RECORD),
            "block": (4, WHOLE),
            "sampling": (None, OPTIONAL),
            "memory": (None, NUMBER | OPTIONAL),
            "keep_table": (False, FLAG),
        },
    ),
    "RoundScores.add": (rounds_of, {"delta": (RELEASE, VECTOR)}),
    "CanaryClients": (
        cp.CanaryClients,
        {
            "canaries": (TEN, RECORD),
            "participation": (SCHEDULE, RECORD),
            "block": (4, WHOLE),
            "noise_multiplier": (1.0, NUMBER | OPTIONAL),
            "keep_table": (False, FLAG),
        },
    ),
    "WhitenedClients": (
        cp.WhitenedClients,
        {"canaries": (TEN, RECORD), "participation": (SCHEDULE, RECORD), "strategy": (np.eye(20), VECTOR)},
    ),
    "ResidualTests": (
        cp.ResidualTests,
        NOISE | {"dim": (100, WHOLE), "layers": ([50, 50], INTEGERS), "tolerance": (0.01, NUMBER)},
    ),
    "ResidualTests.add": (residual_of, {"residual": (DATA, VECTOR)}),
    "SamplingTests": (cp.SamplingTests, {"rate": (0.1, NUMBER), "members": (20, WHOLE)}),
    "SamplingTests.add": (drawn_by, {"drawn": ([1, 2], INTEGERS - OPTIONAL)}),
    "seed_tests": (
        cp.seed_tests,
        {name: ({"a": np.full(3, float(i))}, RECORD) for i, name in enumerate(("before", "first", "second"))},
    ),
    "epsilon_delta": (accounting.epsilon_delta, NEIGHBOURS | DELTA | {"epsilon": (1.0, NUMBER)}),
    "fixed_batches": (
        accounting.fixed_batches,
        NOISE | NEIGHBOURS | {"batch": (10, WHOLE), "records": (100, WHOLE), "rounds": (5, WHOLE)},
    ),
    "gaussian": (accounting.gaussian, NOISE | NEIGHBOURS | {"participations": (3, WHOLE | OPTIONAL)}),
    "poisson": (accounting.poisson, NOISE | NEIGHBOURS | {"rate": (0.1, NUMBER), "rounds": (3, WHOLE)}),
    "shuffled": (accounting.shuffled, NOISE | NEIGHBOURS | {"batches": (5, WHOLE), "epochs": (2, WHOLE)}),
    "best_of": (accounting.best_of, {"claim": (accounting.gaussian(1.0), RECORD), "trainings": (3, WHOLE)}),
    "RandomTrainings": (
        accounting.RandomTrainings,
        {"law": ("Poisson", WORD), "mean": (3.0, NUMBER), "made": (3, WHOLE), "shape": (1.0, NUMBER)}
        | {"score_covered": (True, FLAG)},
    ),
    "Claim.epsilon": (accounting.gaussian(1.0).epsilon, {"delta": (1e-6, NUMBER)}),
    "gaussian_mechanism.epsilon": (
        gaussian_mechanism.epsilon,
        {"delta": (1e-6, NUMBERS), "noise_multiplier": (1.0, NUMBERS)},
    ),
    "gaussian_mechanism.delta": (
        gaussian_mechanism.delta,
        {"epsilon": (1.0, NUMBERS), "noise_multiplier": (1.0, NUMBERS)},
    ),
    "gaussian_mechanism.noise_multiplier": (
        gaussian_mechanism.noise_multiplier,
        {"epsilon": (1.0, NUMBERS), "delta": (1e-6, NUMBERS)},
    ),
    **{
        f"null_cosine.{name}": (getattr(null_cosine, name), {argument: (0.1, NUMBERS), "dim": (100.0, NUMBERS)})
        for name, argument in (("cdf", "x"), ("logsf", "x"), ("pdf", "x"), ("isf", "q"), ("ppf", "q"))
    },
    "two_gaussians.epsilon": (two_gaussians.epsilon, MEANS | {"delta": (1e-6, NUMBERS)}),
    "two_gaussians.log_delta": (two_gaussians.log_delta, MEANS | {"epsilon": (1.0, NUMBERS)}),
    "exact_law.cosines": (exact_law.cosines, DRAWS),
    "exact_law.inner_products": (exact_law.inner_products, DRAWS),
    "bounds.prepare": (bounds.prepare, {"observed": (COSINES, NUMBERS), "unobserved": (OTHERS, NUMBERS)}),
    "bounds.cosine_null": (bounds.cosine_null, {"dim": (100, WHOLE)}),
    "bounds.lower_bounds": (
        bounds.lower_bounds,
        LEVELS | {"scores": (bounds.prepare(COSINES, OTHERS), RECORD), "names": ((), TEXTS)},
    ),
}
# A refusal fits a line of a log, with the names of all bounds that there are.
_LONGEST = 700


def complaint(call: partial[object], argument: str, value: object, *, may_be_taken: bool) -> str:
    """Say in words what is wrong with the answer to a value; empty if nothing is."""
    try:
        call(**{argument: value})
    except UnicodeError as error:
        return f"raises {error!r:.200}"
    except ValueError as error:
        text = str(error)
        if "\n" in text or len(text) > _LONGEST:
            return f"is refused in {text.count(chr(10)) + 1} lines of {len(text)} characters"
        # A rule of two arguments may name the other one, and a rule of a file has the file's name.
        names = [*call.keywords, argument, argument.replace("_", " "), f"{value}: "]
        return "" if any(name in text for name in names) else f"is refused without its name: {text[:200]}"
    except Exception as error:
        return f"raises {error!r:.200}"
    return "" if may_be_taken else "is taken"


def complaints(name: str, values: dict[str, object]) -> Iterator[str]:
    call, arguments = CALLS[name]
    good = {argument: value for argument, (value, _) in arguments.items()}
    call(**good)
    for argument, (_, taken) in arguments.items():
        if taken is FUNCTION:
            # It is called, and what it does is its own.
            values = {key: value for key, value in values.items() if key not in FUNCTION}
        others = {other: value for other, value in good.items() if other != argument}
        for key, value in values.items():
            said = complaint(partial(call, **others), argument, value, may_be_taken=key in taken)
            if said:
                yield f"{name}({argument}={key}) {said}"


@pytest.mark.deep(every=20)
@pytest.mark.parametrize("name", CALLS)
def test_what_nobody_means_is_refused_by_name(name):
    """Of the calls one in twenty is tried, in ``make test-deep`` each."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = list(complaints(name, NONSENSE))
    assert not found, "\n".join(found)
