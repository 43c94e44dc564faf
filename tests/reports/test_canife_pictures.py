from xml.etree import ElementTree

from canaryproof.reports.canife_pictures import values
from canaryproof.reports.encoding import svg


def scenario(name, epsilons):
    methods = [
        {"name": f"method {i}", "cap": cap, "values": [{"epsilon": value} for value in found]}
        for i, (found, cap) in enumerate(zip(epsilons, (2.0, "inf"), strict=True))
    ]
    return {"name": name, "methods": methods, "analytical": {"epsilon": 5.0}}


def test_finite_values_are_drawn_and_infinite_ones_are_not():
    one = {"scenarios": [scenario("first", ([0.0, 1.0], [3.0, "inf"]))]}
    two = {"scenarios": [scenario("first", ([0.0, 1.0], [3.0, "inf"])), scenario("second", ([1.0], [4.0]))]}
    texts = [svg(values(document)) for document in (one, two)]
    for text in texts:
        ElementTree.fromstring(text)
    assert texts[0] == svg(values(one))
    assert texts[0].count("<use") < texts[1].count("<use")
