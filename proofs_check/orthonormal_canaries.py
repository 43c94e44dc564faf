"""Orthonormal canaries: the exact lines of ``orthonormal_canaries.md``."""

from collections.abc import Callable
from fractions import Fraction
from itertools import product
from math import comb

import numpy as np
import sympy
from numpy.typing import NDArray
from sympy import Expr, Matrix, Rational, Symbol, sqrt

from canaryproof.proofs_check.displayed_lines import held, line
from canaryproof.verify.papers.check.results import Check, Outcome

_SOURCE = "proofs_check/orthonormal_canaries.md"
_D, _R, _T = Symbol("d", positive=True), Symbol("r", positive=True), Symbol("t", positive=True)


def walsh(order: int) -> NDArray[np.int64]:
    """√n times the Walsh–Hadamard matrix H."""
    return np.array([[(-1) ** (p & i).bit_count() for i in range(order)] for p in range(order)])


def _split(dim: int) -> tuple[int, int]:
    order = 2 ** (dim.bit_length() - 1)
    return order, dim - order


def _window(dim: int, start: int, signs: tuple[int, ...]) -> Matrix:
    """Return A_w or B_w: H D_w on the window's coordinates."""
    order, _ = _split(dim)
    matrix = sympy.eye(dim)
    matrix[start : start + order, start : start + order] = Matrix(walsh(order) * signs) / sqrt(order)
    return matrix


def _rotation(dim: int) -> Matrix:
    order, rest = _split(dim)
    matrix = sympy.eye(dim)
    for i in range(rest):
        matrix[i, i] = matrix[order + i, order + i] = sqrt(Rational(rest, dim))
        matrix[i, order + i] = -sqrt(Rational(order, dim))
        matrix[order + i, i] = sqrt(Rational(order, dim))
    return matrix


def _orthonormal(cosine_square: Expr) -> Outcome:
    """Judge the step from H of order n to 2n, and the rotation."""
    old = sympy.MatrixSymbol("H", 2, 2).as_explicit()
    new = Matrix(sympy.BlockMatrix([[old, old], [old, -old]]))
    blocks = (np.block([[walsh(n), walsh(n)], [walsh(n), -walsh(n)]]) == walsh(2 * n) for n in (1, 2, 4, 8, 16))
    facts = {
        "H of order 2n": (new * new.T - 2 * sympy.diag(old * old.T, old * old.T)).expand() == sympy.zeros(4),
        "its blocks": all(same.all() for same in blocks),
        "G": sympy.simplify(cosine_square + (_D - _R) / _D) == 1,
    }
    return held(facts, "H of every order and G are orthonormal, and so is their product with signs, for every d")


def _rounding(constant: int) -> Outcome:
    """Judge the error of a pair of G: 5/2 of the terms of each part, the norm of which is at most c + s, and 1."""
    root = sympy.sqrt(_T) + sympy.sqrt(1 - _T)
    largest = max(root.subs(_T, at) for at in (0, 1, *sympy.solve(sympy.diff(root), _T)))
    error = Rational(5, 2) * largest + 1
    return held({"below the constant": bool(error < constant)}, f"a pair of G errs by less than {float(error):.4g}u")


def mean_squares(dim: int, exchanged: Fraction) -> NDArray[np.object_]:
    """E M_pi² of one layer: the product of the windows' and G's mean squares; G exchanges this share of a pair."""
    order, rest = _split(dim)
    windows = []
    for start in (rest, 0):
        window = np.full((dim, dim), Fraction(0))
        np.fill_diagonal(window, Fraction(1))
        window[start : start + order, start : start + order] = Fraction(1, order)
        windows.append(window)
    rotated = np.full((dim, dim), Fraction(0))
    np.fill_diagonal(rotated, Fraction(1))
    for i in range(rest):
        rotated[i, i] = rotated[order + i, order + i] = 1 - exchanged
        rotated[i, order + i] = rotated[order + i, i] = exchanged
    last, first = windows[1], windows[0]
    squares: NDArray[np.object_] = last @ rotated @ last @ first
    return squares


def _second_moment(exchanged: Callable[[int], Fraction]) -> Outcome:
    dims = range(2, 18)
    facts = {"1/d everywhere": all((mean_squares(dim, exchanged(dim)) == Fraction(1, dim)).all() for dim in dims)}
    # α on the last r coordinates, (1 − rα)/n on the first n = d − r.
    rotated = _R / _D * _T + (_D - _R) / _D * (1 - _R * _T) / (_D - _R)
    facts["G gives 1/d, whatever α is"] = sympy.simplify(rotated - 1 / _D) == 0
    return held(facts, f"E M_pi² = 1/d for all rows and coordinates, for every d; gone through up to d = {dims[-1]}")


def share(dim: int) -> Fraction:
    """n/d: what G exchanges."""
    return Fraction(_split(dim)[0], dim)


def fourth_moment(data: tuple[Fraction | int, ...], layers: int) -> Fraction:
    """E(√d·⟨c, x⟩)⁴ over signs, d a power of two: formulas (3) and (4), for data of any norm."""
    squares = [Fraction(value) ** 2 for value in data]
    square, fourth = sum(squares) ** 2, sum(value**2 for value in squares)
    if layers == 1:
        return Fraction(3 * square - 2 * fourth)
    return Fraction(3 * square - Fraction(2, len(data)) * (3 * square - 2 * fourth))


def _scores(data: tuple[int, ...], layers: int) -> NDArray[np.int64]:
    """d^(L/2) times the scores of all rows, for all signs: integers."""
    dim = len(data)
    signs = np.array(list(product((-1, 1), repeat=dim)))
    scores = np.array([data])
    for _ in range(layers):
        scores = (scores[:, np.newaxis] * signs).reshape(-1, dim) @ walsh(dim)
    return scores


def _moments(formula: Callable[[tuple[Fraction | int, ...], int], Fraction]) -> Outcome:
    examples = {2: ((1, 0), (2, 1)), 4: ((1, 0, 0, 0), (1, 2, 0, -1), (1, 1, 1, 1))}
    facts = {}
    for dim in examples:
        for layers in (1, 2):
            facts[f"d = {dim}, {layers} layers"] = all(
                Fraction(int((_scores(data, layers) ** 4).sum()), dim ** (2 * layers - 2) * _scores(data, layers).size)
                == formula(data, layers)
                for data in examples[dim]
            )
    axes = np.eye(8, dtype=np.int64).tolist()
    facts["one layer on an axis"] = all((abs(_scores(tuple(axis), 1)) == 1).all() for axis in axes)
    sums = np.unique(_scores((0, 1, 0, 0), 2), return_counts=True)
    facts["two layers on an axis"] = sums[0].tolist() == [-4, -2, 0, 2, 4] and all(
        int(count) * 2**4 == comb(4, k) * _scores((0, 1, 0, 0), 2).size for k, count in enumerate(sums[1])
    )
    return held(facts, "all signs: (3) and (4); on an axis one layer is ±1/√d, and two are a scaled sum of d signs")


def _two_layers(below: int, above: int) -> Outcome:
    """Judge the sizes of the five terms of (5), times d, at the largest d/n and the worst t = r/n."""
    cubic = _T**2 * (1 - _T)
    worst = max(cubic.subs(_T, root) for root in (*sympy.solve(sympy.diff(cubic), _T), 0, 1))
    negative = 3 * 2 * 2**2 + 3 * 6 * worst + 2 * 3 + 2 * 3
    positive = 3 * (6 * Rational(1, 4) + 4 * sqrt(27))
    facts = {"below": bool(negative < below), "above": bool(positive < above)}
    return held(facts, f"from −{float(negative):.4g}/d to {float(positive):.4g}/d for all data")


def _white(signed: Callable[[Matrix], Matrix]) -> Outcome:
    facts: dict[str, bool] = {}
    for dim, starts in ((2, (0, 0)), (3, (1, 0, 0))):
        order, _ = _split(dim)
        for signs in product((-1, 1), repeat=order * len(starts)):
            *others, last = (_window(dim, s, signs[w * order : (w + 1) * order]) for w, s in enumerate(starts))
            matrix = signed(last * _rotation(dim) * sympy.prod(reversed(others)))
            facts[f"d = {dim}"] = facts.get(f"d = {dim}", True) and (matrix * matrix.T).expand() == sympy.eye(dim)
    return held(facts, "the covariance of the z_j is C Cᵀ = I for all signs: they are independent N(0, 1)")


def _line(topic: str, statement: str, judge: Callable[[], Outcome]) -> Check:
    return line(f"orthonormal.proof.{topic}", _SOURCE, statement, judge, own=True)


LINES = (
    _line("transform", "the matrix of canaries is orthonormal, for every d", lambda: _orthonormal(_R / _D)),
    _line("rounding", "a rotated pair errs by less than 5 units of roundoff", lambda: _rounding(5)),
    _line(
        "noise",
        "beside Gaussian noise the scores of orthonormal canaries are exactly independent normal numbers",
        lambda: _white(lambda matrix: matrix),
    ),
    _line(
        "second-moment",
        "scores against fixed data x have the mean square ‖x‖²/d, for every row and any d",
        lambda: _second_moment(share),
    ),
    _line(
        "one-layer",
        "where d is a power of two, scores against fixed data have the fourth moments (3) and (4)",
        lambda: _moments(fourth_moment),
    ),
    _line(
        "two-layers",
        "scores of two layers against any fixed data have a kurtosis within 67/d of 3",
        lambda: _two_layers(39, 67),
    ),
)
