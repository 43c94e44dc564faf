"""Judges that the claims of the first version and of the submission share: printed numbers, orders, noise, caps."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise

from flint import arb, fmpq

from canaryproof.kernels.certified import Enclosure, at_precision
from canaryproof.verify.claims import final
from canaryproof.verify.claims.deciding import needs_data
from canaryproof.verify.claims.judging import claim, found, holds
from canaryproof.verify.results import Check, Outcome
from canaryproof.verify.suites import tables

# A judge's answer without the context, which only stochastic claims need.
Judge = Callable[[], Outcome]

V1 = "Andrew et al., arXiv 2302.03098v1"
CANARIES = 1000
ROUNDS, COHORT = 2048, 167
# What decides a row of results, in words.
STACKOVERFLOW = "federated StackOverflow and a word model trained on it"
STACKOVERFLOW_USERS = 341_000
STACKOVERFLOW_DELTA = STACKOVERFLOW_USERS**-1.1
_FINAL = {check.id: check for check in (*final.CHECKS, *tables.CHECKS)}


def fixed(id: str, source: str, statement: str, judge: Judge) -> Check:  # noqa: A002
    """Return a claim whose judge needs neither level nor seed.

    Parameters
    ----------
    id, source, statement
        As for ``judging.claim``.
    judge
        Function that gathers the evidence.
    """
    return claim(id, source, statement, lambda _: judge())


def experiment(table: str, document: str, number: int, statement: str, what: str) -> Check:
    """Return a row of experimental results, which only the data set decides.

    Parameters
    ----------
    table
        Id of the table.
    document
        Document and place in words.
    number
        Row, from 1.
    statement
        What the row says.
    what
        The data set.
    """
    id_ = f"{table}.row{number}"
    return claim(id_, document, statement, needs_data(id_, what))


def placed(document: str, name: str) -> Callable[[str, str, str, Judge], Check]:
    """Return the maker of a document's claims from their place in the id, place in words, statement and judge.

    Parameters
    ----------
    document, name
        Document in ids and in words.
    """

    def make(place: str, source: str, statement: str, judge: Judge) -> Check:
        return fixed(f"{document}.{place}", f"{name}, {source}", statement, judge)

    return make


def repeated(id: str, source: str, original: str, statement: str = "") -> Check:  # noqa: A002
    """Return a statement that the final version repeats with the same numbers: it is judged once, there.

    Parameters
    ----------
    id, source
        As for ``judging.claim``.
    original
        Id of the final version's claim.
    statement
        What it says, if the original speaks of tables that are numbered otherwise here.
    """
    check = _FINAL[original]
    return claim(id, source, statement or check.statement, check.judge)


def printed(text: str) -> tuple[Fraction, Fraction]:
    """Return what a printed decimal may have been before it was rounded.

    Parameters
    ----------
    text
        Decimal, such as ``0.0644``, ``8.20e-7`` or ``100k``.

    Returns
    -------
    Ends of the interval: half a unit of the last digit to either side.
    """
    digits, exponent = (text[:-1], "3") if text.endswith("k") else [*text.split("e"), "0"][:2]
    half = Fraction(1, 2) * Fraction(10) ** (int(exponent) - len(digits.partition(".")[2]))
    value = Fraction(digits) * Fraction(10) ** int(exponent)
    return value - half, value + half


def middle(text: str) -> Fraction:
    """Return a printed decimal as it stands."""
    return sum(printed(text), Fraction(0)) / 2


def agrees(value: Enclosure | Fraction | float, text: str) -> bool:
    """Return whether a number, or all of an enclosure, is printed as the text is."""
    low, high = printed(text)
    ends = (value.lo, value.hi) if isinstance(value, Enclosure) else (value, value)
    return low <= ends[0] and ends[1] <= high


def proven(compute: Callable[[], arb], text: str) -> tuple[bool, float]:
    """Prove whether a number is printed as the text is.

    Parameters
    ----------
    compute
        Ball of the number at flint's present precision.
    text
        The printed decimal.

    Returns
    -------
    Whether the whole ball, at 128 bits, lies in the text's rounding interval; and the ball's middle.
    """
    low, high = (fmpq(end.numerator, end.denominator) for end in printed(text))

    def decide() -> tuple[bool, float]:
        ball = compute()
        return bool(ball >= low) and bool(ball <= high), float(ball.mid())

    return at_precision(128, decide)


def belief(epsilon: str, prior: Fraction) -> arb:
    """Return the largest posterior belief that pure ε-DP allows from a prior, as a ball at flint's present precision.

    Parameters
    ----------
    epsilon
        ε as printed.
    prior
        Belief before, in (0, 1).
    """
    exact = Fraction(epsilon)
    odds = fmpq(prior.numerator, prior.denominator) / fmpq((1 - prior).numerator, (1 - prior).denominator)
    likely = odds * arb(fmpq(exact.numerator, exact.denominator)).exp()
    return likely / (1 + likely)


def decreasing(columns: Mapping[str, Sequence[float]]) -> Outcome:
    """Judge that each column falls strictly from row to row.

    Parameters
    ----------
    columns
        Printed numbers by name, from the lowest noise to the highest.
    """
    broken = [name for name, values in columns.items() if any(a <= b for a, b in pairwise(values))]
    finding = (
        f"{', '.join(broken) or 'none'} of {len(columns)} columns of {len(next(iter(columns.values())))} rows rises"
    )
    return found(holds(not broken), finding, columns={name: list(values) for name, values in columns.items()})


def below(pairs: Iterable[tuple[float, float]]) -> Outcome:
    """Judge that the first number of each pair is below the second.

    Parameters
    ----------
    pairs
        Printed numbers.
    """
    listed = list(pairs)
    ratios = [high / low for low, high in listed]
    held = sum(ratio > 1 for ratio in ratios)
    finding = f"in {held} of {len(listed)} pairs, by factors from {min(ratios):.3g} to {max(ratios):.3g}"
    return found(holds(held == len(listed)), finding, pairs=listed, ratios=ratios)
