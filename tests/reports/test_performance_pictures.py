import matplotlib as mpl
import pytest

from canaryproof.reports.figures import svg
from tests.benchmarks import performance as pictures

ROW = {"label": "canaryproof", "threads": 1, "seconds": 1.0, "coordinates": 10**9}


@pytest.fixture(autouse=True)
def text(monkeypatch):
    """Write letters, not their outlines."""
    monkeypatch.setitem(pictures.STYLE, "svg.fonttype", "none")


def test_bars_are_named_and_have_their_values():
    numpy = {**ROW, "label": "numpy, PCG64", "seconds": 6.7}
    skipped = {"label": "JAX, threefry", "skipped": "jax is not installed"}
    drawn = svg(pictures.coordinates({"algorithm_1": [ROW, numpy, skipped], "stored": {**ROW, "seconds": 0.125}}))
    for words in ("canaryproof, 1 thread", "numpy, PCG64", "memory, stored canaries", ">6.7<", ">0.12<"):
        assert words in drawn
    assert "JAX" not in drawn


def test_each_block_of_rounds_has_a_panel():
    rows = [{**ROW, "label": label} for label in ("block_cosines", "cosines, float64", "stored, V Cᵀ")]
    drawn = svg(pictures.rounds({"rounds": [{"rounds": n, "timings": rows} for n in (32, 64)]}))
    assert "32 rounds at once" in drawn
    assert "64 rounds at once" in drawn


def test_points_are_told_apart_by_dimension():
    cells = [[10**5, 10], [10**5, 100], [10**6, 10]]
    timings = [{"coordinates": d * k, "seconds": 1e-9 * d * k} for d, k in cells]
    drawn = svg(pictures.scaling({"scaling": {"cells": cells, "timings": timings}}))
    assert "d = 100,000" in drawn
    assert "d = 1,000,000" in drawn
    assert "slope 1" in drawn


def test_the_style_of_others_is_left_alone():
    before = dict(mpl.rcParams)
    pictures.coordinates({"algorithm_1": [ROW], "stored": ROW})
    assert dict(mpl.rcParams) == before
