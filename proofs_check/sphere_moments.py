"""Exact moments of inner products of independent uniform directions and a Gaussian vector, for symbolic d and k.

The vectors are the canaries c₁, …, c_k, independent and uniform on the unit sphere of R^d; Z ~ N(0, I_d); and the data
vectors' sum, of length s. As only inner products enter and the law is invariant under rotations, that sum may be taken
as s·X with X one more uniform direction.

The integral of a product of linear forms over the unit sphere is a sum over pairings,

    E[⟨c, a₁⟩ ⋯ ⟨c, a₂ₚ⟩] = Σ over pairings Π ⟨a, a′⟩ / (d(d + 2) ⋯ (d + 2p − 2)),

so that vectors are integrated out one after the other, and what remains is a rational function of d. Z is its length
times a uniform direction, independent of each other, with E[‖Z‖²ᵖ] = d(d + 2) ⋯ (d + 2p − 2). A sum over canaries
i, j, … = 1, …, k is split by which of its indices are equal: b different ones can be chosen in k(k − 1) ⋯ (k − b + 1)
ways.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, TypeAlias

import sympy
from sympy import Expr, Symbol

D = Symbol("d", positive=True)
K = Symbol("k", positive=True)
SIGMA = Symbol("sigma", positive=True)
S = Symbol("s", nonnegative=True)

# Rational functions of these four with rational coefficients, in sympy's sparse representation.
_FIELD = sympy.QQ.frac_field(D, K, SIGMA, S)
_DIM, _COUNT, _NOISE, _DATA = (_FIELD.from_sympy(symbol) for symbol in (D, K, SIGMA, S))

Z, X = "Z", "X"
Edge: TypeAlias = tuple[str, str]
Term: TypeAlias = tuple[Any, tuple[Edge, ...]]
# A sum of products of inner products. Names other than Z and X are indices of canaries; each runs from 1 to k.
Sum: TypeAlias = tuple[Term, ...]


def _rising(pairs: int) -> Any:
    """d(d + 2) ⋯ (d + 2p − 2)."""
    product = _FIELD.one
    for step in range(pairs):
        product *= _DIM + 2 * step
    return product


def _pairings(items: tuple[str, ...]) -> Iterator[tuple[Edge, ...]]:
    if not items:
        yield ()
        return
    first, rest = items[0], items[1:]
    for i, partner in enumerate(rest):
        for others in _pairings(rest[:i] + rest[i + 1 :]):
            yield ((first, partner), *others)


def _relabelled(edges: Sequence[Edge], *fixed: str) -> tuple[Edge, ...]:
    """Name all but the ``fixed`` vectors by their first appearance in sorted order: a key that equal graphs share."""
    names = {name: name for name in fixed}
    degrees = Counter(name for edge in edges for name in edge)
    for edge in sorted(edges, key=lambda e: (-edges.count(e), sorted((-degrees[e[0]], -degrees[e[1]])), e)):
        for label in edge:
            names.setdefault(label, f"v{len(names):02}")
    return tuple(sorted((min(a, b), max(a, b)) for a, b in ((names[u], names[v]) for u, v in edges)))


@cache
def _uniform(edges: tuple[Edge, ...]) -> Any:
    """Expectation of a product of inner products of different uniform directions."""
    if not edges:
        return _FIELD.one
    degrees: dict[str, int] = {}
    for edge in edges:
        for label in edge:
            degrees[label] = degrees.get(label, 0) + 1
    chosen = min(degrees, key=lambda vector: (degrees[vector], vector))
    others = [edge for edge in edges if chosen not in edge]
    partners = tuple(b if a == chosen else a for a, b in edges if chosen in (a, b))
    total = _FIELD.zero
    for pairing in _pairings(partners):
        total += _uniform(_relabelled([*others, *(pair for pair in pairing if pair[0] != pair[1])]))
    return total / _rising(degrees[chosen] // 2)


def _expectation(edges: Sequence[Edge]) -> Any:
    degrees = Counter(name for edge in edges for name in edge)
    if any(degree % 2 for degree in degrees.values()):
        # The sign of one vector changes the sign of the product and not the law.
        return _FIELD.zero
    degree = degrees[Z]
    # Inner products of a unit vector with itself are 1.
    return _rising(degree // 2) * _uniform(_relabelled([edge for edge in edges if edge[0] != edge[1]]))


def expectation(*edges: Edge) -> Expr:
    """Expected product of inner products of pairs of vectors, a rational function of d.

    ``Z`` is N(0, I_d), all other names are independent uniform directions.
    """
    return _to_sympy(_expectation(edges))


def release(index: str) -> Sum:
    """ρ = Σ cⱼ + s·X + σZ as a sum of vectors, j being named ``index``; to be completed by ``dot``."""
    return ((_FIELD.one, ((index, ""),)), (_NOISE, ((Z, ""),)), (_DATA, ((X, ""),)))


def vector(name: str, coefficient: Expr | int = 1) -> Sum:
    """One vector as a sum of vectors; to be completed by ``dot``."""
    return ((_FIELD.from_sympy(sympy.sympify(coefficient)), ((name, ""),)),)


def dot(first: Sum, second: Sum) -> Sum:
    """Inner product of two sums of vectors."""
    return tuple((a * b, ((left[0][0], right[0][0]),)) for a, left in first for b, right in second)


def times(*factors: Sum) -> Sum:
    """Product of sums of products."""
    product: Sum = ((_FIELD.one, ()),)
    for factor in factors:
        product = tuple((a * b, left + right) for a, left in product for b, right in factor)
    return product


def scaled(coefficient: Expr | int, terms: Sum) -> Sum:
    """Multiple of a sum."""
    number = _FIELD.from_sympy(sympy.sympify(coefficient))
    return tuple((number * a, edges) for a, edges in terms)


def plus(*parts: Sum) -> Sum:
    """Sum of sums."""
    return tuple(term for part in parts for term in part)


def _partitions(items: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], ...]]:
    if not items:
        yield ()
        return
    first, rest = items[0], items[1:]
    for blocks in _partitions(rest):
        yield ((first,), *blocks)
        for i, block in enumerate(blocks):
            yield (*blocks[:i], (first, *block), *blocks[i + 1 :])


def _falling(blocks: int) -> Any:
    product = _FIELD.one
    for step in range(blocks):
        product *= _COUNT - step
    return product


def _over_indices(edges: Sequence[Edge], value: Callable[[Sequence[Edge]], Any], *, even: bool) -> Any:
    """Sum of ``value`` over all values 1, …, k of the indices; ``even`` if it is 0 for vectors of odd degree."""
    degrees = Counter(name for edge in edges for name in edge)
    indices = tuple(sorted(degrees.keys() - {Z, X}))
    total = _FIELD.zero
    for blocks in _partitions(indices):
        if even and any(sum(degrees[name] for name in block) % 2 for block in blocks):
            continue
        name_of = {name: block[0] for block in blocks for name in block}
        total += _falling(len(blocks)) * value([(name_of.get(a, a), name_of.get(b, b)) for a, b in edges])
    return total


def sum_of_variances(*edges: Edge) -> Expr:
    """Sum of Var[Π⟨·, ·⟩] over all values 1, …, k of the indices, which are all names but ``Z`` and ``X``."""

    def variance(graph: Sequence[Edge]) -> Any:
        return _expectation([*graph, *graph]) - _expectation(graph) ** 2

    return _to_sympy(_over_indices(edges, variance, even=False))


def mean(terms: Sum) -> Expr:
    """Expectation of a sum over all values 1, …, k of the indices in each of its terms."""
    merged: dict[tuple[Edge, ...], Any] = {}
    for coefficient, edges in terms:
        graph = _relabelled(edges, Z, X)
        merged[graph] = merged.get(graph, _FIELD.zero) + coefficient
    total = _FIELD.zero
    for edges, coefficient in merged.items():
        total += coefficient * _over_indices(edges, _expectation, even=True)
    return _to_sympy(total)


def _to_sympy(element: Any) -> Expr:
    expression: Expr = sympy.factor(_FIELD.to_sympy(element))
    return expression
