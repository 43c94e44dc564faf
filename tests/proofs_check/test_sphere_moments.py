import itertools

import numpy as np
import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st

from canaryproof.proofs_check.sphere_moments import (
    SIGMA,
    D,
    K,
    S,
    Z,
    dot,
    expectation,
    mean,
    release,
    scaled,
    sum_of_variances,
    times,
    vector,
)


def on_circle(edges):
    """Expectation for d = 2 by an exact quadrature: the mean over equally spaced angles, one vector fixed."""
    names = sorted({name for edge in edges for name in edge})
    nodes = 2 * (len(edges) + 1)
    angles = 2.0 * np.pi * np.arange(nodes) / nodes
    total = 0.0
    for chosen in itertools.product(angles, repeat=len(names) - 1):
        place = dict(zip(names, (0.0, *chosen), strict=True))
        total += np.prod([np.cos(place[a] - place[b]) for a, b in edges])
    return total / nodes ** (len(names) - 1)


edges_of_graphs = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abc")), min_size=1, max_size=6)


@given(edges_of_graphs)
def test_agrees_with_exact_quadrature_on_the_circle(edges):
    assert float(expectation(*edges).subs(D, 2)) == pytest.approx(on_circle(edges), abs=1e-12)


@given(edges_of_graphs, st.permutations("abc"))
def test_names_and_order_do_not_matter(edges, names):
    renamed = [(dict(zip("abc", names, strict=True))[b], dict(zip("abc", names, strict=True))[a]) for a, b in edges]
    assert expectation(*edges) == expectation(*reversed(renamed))


def test_known_moments():
    assert expectation(("a", "b"), ("a", "b")) == 1 / D
    assert sympy.cancel(expectation(*[("a", "b")] * 4) - 3 / (D * (D + 2))) == 0
    # A triangle: ⟨a,b⟩⟨b,c⟩⟨c,a⟩.
    assert expectation(("a", "b"), ("b", "c"), ("c", "a")) == 1 / D**2
    assert expectation((Z, Z), (Z, Z)) == D * (D + 2)
    assert [expectation(*[("a", Z)] * (2 * p)) for p in (1, 2, 3)] == [1, 3, 15]
    assert expectation(("a", "b")) == expectation(("a", Z)) == 0


def brute_force(terms, count, dim):
    """Sum over all values of the indices, term by term, without partitions."""
    total = sympy.Integer(0)
    for coefficient, edges in terms:
        indices = sorted({name for edge in edges for name in edge} - {"Z", "X"})
        for values in itertools.product(range(count), repeat=len(indices)):
            name_of = dict(zip(indices, (f"c{value}" for value in values), strict=True))
            value = expectation(*((name_of.get(a, a), name_of.get(b, b)) for a, b in edges)).subs(D, dim)
            total += sympy.sympify(str(coefficient)).subs({sympy.Symbol("d"): dim, sympy.Symbol("k"): count}) * value
    return total


@pytest.mark.parametrize(("count", "dim"), [(2, 3), (3, 5)])
def test_sums_by_partitions_are_sums_over_all_indices(count, dim):
    terms = scaled(1 / K, times(dot(vector("i"), release("a")), dot(vector("i"), release("b"))))
    at = {D: dim, K: count, SIGMA: sympy.Symbol("sigma"), S: sympy.Symbol("s")}
    assert sympy.expand(mean(terms).subs(at) - brute_force(terms, count, dim)) == 0


def test_sum_of_variances_counts_every_value_of_the_indices():
    # Var⟨cᵢ, cⱼ⟩ is 1/d for the k(k − 1) ordered pairs and 0 for i = j.
    assert sympy.cancel(sum_of_variances(("i", "j")) - K * (K - 1) / D) == 0


def test_variance_of_a_sum_by_its_product_with_itself():
    product = scaled(1 / K, dot(vector("i"), release("a")))
    again = scaled(1 / K, dot(vector("j"), release("b")))
    expected = SIGMA**2 / K + (2 * K - 2 + S**2) / (D * K)
    variance = mean(times(product, again)) - mean(product) * mean(again)
    assert sympy.cancel(variance - expected) == 0
