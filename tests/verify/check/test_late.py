from canaryproof.kernels import two_gaussians
from canaryproof.verify.check.late import late


def test_a_replaced_function_is_seen(monkeypatch):
    found = late(two_gaussians, "epsilon", direction="both")
    assert found(1e-6, 1.0, 1.0, 0.0, 1.0) == two_gaussians.epsilon(1e-6, 1.0, 1.0, 0.0, 1.0)
    monkeypatch.setattr(two_gaussians, "epsilon", lambda *_, direction: direction)
    assert found(1e-6, 1.0, 1.0, 0.0, 1.0) == "both"
    assert (found.__module__, found.__name__) == ("canaryproof.kernels.two_gaussians", "epsilon")
