"""What the first version says in its text: the experiments' setting, beliefs and sizes."""

from fractions import Fraction

from flint import arb, fmpq
from scipy import stats

from canaryproof.kernels.certified import gaussian_mechanism
from canaryproof.verify.claims.final_setup import lstm_parameters
from canaryproof.verify.claims.judging import found, holds
from canaryproof.verify.claims.v1_judging import (
    CANARIES,
    COHORT,
    ROUNDS,
    STACKOVERFLOW_DELTA,
    STACKOVERFLOW_USERS,
    V1,
    agrees,
    belief,
    placed,
    printed,
    proven,
)
from canaryproof.verify.results import Check, Outcome, Verdict

# TensorFlow Federated's documentation of stackoverflow.load_data: users of the training split.
STACKOVERFLOW_TRAINING_USERS = 342_477
# Census Bureau, June 2021: ε of the files of persons and of housing units in the redistricting release.
_CENSUS = ("17.14", "2.47")


def judge_users(users: str = "341k") -> Outcome:
    """Judge the number of users against the data set's documentation."""
    count = STACKOVERFLOW_TRAINING_USERS
    verdict = Verdict.CONFIRMED if agrees(Fraction(count), users) else Verdict.REFUTED
    if verdict is Verdict.REFUTED and agrees(Fraction(count - CANARIES), users):
        verdict = Verdict.QUALIFIED
    return found(
        verdict,
        f"TensorFlow Federated documents {count:,} training users, which is {count / 1000:.0f}k; it holds if canaries "
        f"took the places of {CANARIES:,} of them ({count - CANARIES:,})",
        documented=count,
    )


def judge_delta(text: str = "8.20e-7") -> Outcome:
    """Judge the value of δ = 341000^(−1.1)."""
    agreed, value = proven(lambda: arb(STACKOVERFLOW_USERS) ** arb(fmpq(-11, 10)), text)
    return found(
        holds(agreed),
        f"341000^(−1.1) = {value:.6e}, which is {value * STACKOVERFLOW_USERS:.2f} of one over the number of users",
        delta=value,
    )


def judge_quotient(text: str = "0.081") -> Outcome:
    """Judge the decimal value of the quotient printed as the sampling rate."""
    rate = Fraction(COHORT, ROUNDS)
    return found(
        holds(agrees(rate, text)), f"{COHORT}/{ROUNDS} = {float(rate):.5f}, printed {float(rate):.3f}", rate=float(rate)
    )


def judge_rate(text: str = "0.081") -> Outcome:
    """Judge the sampling rate of a client in a round."""
    rate = Fraction(COHORT, STACKOVERFLOW_USERS)
    return found(
        holds(agrees(rate, text)),
        f"clients of a round over all clients is {COHORT}/{STACKOVERFLOW_USERS:,} = {float(rate):.3e}, one in "
        f"{float(1 / rate):.0f}; the printed quotient divides by the rounds and would have a client take part in "
        f"{COHORT} rounds and not in one",
        rate=float(rate),
    )


def judge_epochs(rounds: int = ROUNDS, epochs: tuple[int, ...] = (1, 2, 3, 5, 10)) -> Outcome:
    """Judge that the rounds divide into the epochs."""
    uneven = [n for n in epochs if rounds % n]
    verdict = Verdict.QUALIFIED if uneven else Verdict.CONFIRMED
    finding = f"{rounds} rounds divide evenly by {', '.join(str(n) for n in epochs if n not in uneven)}"
    if uneven:
        finding += f", and by {', '.join(map(str, uneven))} only with epochs that differ by a round"
    return found(verdict, finding, remainders={n: rounds % n for n in epochs})


def judge_confidence(text: str = "0.993", epsilon: str = "5") -> Outcome:
    """Judge the belief that ε = 5 allows, for which no prior is stated."""
    even, value = proven(lambda: belief(epsilon, Fraction(1, 2)), text)
    _, low = proven(lambda: belief(epsilon, Fraction(1, 10)), text)
    return found(
        Verdict.QUALIFIED if even else Verdict.REFUTED,
        f"e^{epsilon}/(1 + e^{epsilon}) = {100 * value:.3f}% is the belief from even odds, which the text doesn't "
        f"state; from a prior of 10% it is {100 * low:.1f}%",
        even=value,
        tenth=low,
    )


def judge_loss_probability() -> Outcome:
    """Judge that an output with a loss above ε has probability δ at least, for the Gaussian mechanism at ε = 5."""
    delta, epsilon = STACKOVERFLOW_DELTA, 5.0
    sigma = gaussian_mechanism.noise_multiplier(epsilon, delta).lo
    tail = float(stats.norm.sf(epsilon * sigma - 0.5 / sigma))
    return found(
        holds(tail >= delta),
        f"δ = P(loss > ε) − e^ε·P'(loss > ε) is at most P(loss > ε) for every mechanism that has no smaller ε at δ; "
        f"for the Gaussian one at δ = {delta:.2e} that is {tail:.2e}",
        delta=delta,
        probability=tail,
    )


def judge_census(text: str = "19.6") -> Outcome:
    """Judge the ε of the census of 2020 and that it lies in the range printed with it."""
    total = sum((Fraction(part) for part in _CENSUS), Fraction(0))
    return found(
        holds(agrees(total, text) and 5 <= total <= 20),
        f"{' for persons plus '.join(_CENSUS)} for housing units is {float(total):g} (Census Bureau, June 2021), in "
        "5 to 20",
        total=float(total),
    )


def judge_sizes() -> Outcome:
    """Judge the sizes of problems said to be natural in production."""
    count, users = lstm_parameters(10_004), printed("341k")
    inside = 10**6 <= count < 10**7 and users[0] >= 10**5 and users[1] < 10**6
    return found(
        holds(inside and users[1] <= 10**8),
        f"{count:,} parameters and {STACKOVERFLOW_USERS:,} clients, inside 10⁵ to 10⁸ users",
        parameters=count,
        users=STACKOVERFLOW_USERS,
    )


_claim = placed("v1", V1)

CHECKS: tuple[Check, ...] = (
    _claim("section5.users", "Section 5", "there are 341k real clients", judge_users),
    _claim("section5.delta", "Section 5", "δ = 341000^(−1.1) is about 8.20 × 10⁻⁷", judge_delta),
    _claim("section5.quotient", "Section 5", "167/2048 is about 0.081", judge_quotient),
    _claim("section5.rate", "Section 5", "the rate of Bernoulli sampling of a client is 0.081", judge_rate),
    _claim(
        "section5.3.epochs",
        "Section 5.3",
        "2048 rounds are divided into 1, 2, 3, 5 or 10 epochs, each canary in each of them once",
        judge_epochs,
    ),
    _claim("section6.confidence", "Section 6", "ε = 5 lets an attacker be 99.3% confident", judge_confidence),
    _claim(
        "section6.probability",
        "Section 6",
        "an output that allows this confidence has probability δ at least",
        judge_loss_probability,
    ),
    _claim("section6.census", "Section 6", "the census of 2020 was released with ε = 19.6", judge_census),
    _claim(
        "section6.sizes",
        "Sections 6 and 7",
        "the experiments are of production size: millions of parameters, hundreds of thousands of clients, of 10⁵ to "
        "10⁸ users",
        judge_sizes,
    ),
)
