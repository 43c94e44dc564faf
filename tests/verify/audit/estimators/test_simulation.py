import numba
import numpy as np

from canaryproof.verify.audit.estimators import simulation


def simulate(key=0, runs=40, **changes):
    arguments = {"count": 30, "dim": 1000, "noise_multiplier": 1.0, **changes}
    return simulation.simulate(runs, key=np.random.SeedSequence(key), **arguments)


def test_runs_do_not_depend_on_the_number_of_threads(monkeypatch):
    many = simulate()
    monkeypatch.setattr(numba, "get_num_threads", lambda: 1)
    assert np.array_equal(simulate().distance, many.distance)


def test_runs_differ_from_each_other_and_between_keys():
    assert np.unique(simulate().distance).size == 40
    assert not np.any(simulate(key=1).distance == simulate(key=2).distance)


def test_data_dilutes_the_distance():
    # √(1 + (k + s²)/(σ²d)) = √(1 + (30 + 8000)/1000) ≈ 3: far beyond the noise of 1/√(30·40).
    assert simulate(data_norm=np.sqrt(8000)).distance.mean() < 0.5 * simulate().distance.mean()


def test_there_are_no_data_unless_they_are_asked_for():
    assert np.array_equal(simulate().distance, simulate(data_norm=0.0).distance)
    assert not np.array_equal(simulate().distance, simulate(data_norm=1.0).distance)
