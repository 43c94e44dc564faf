from xml.etree import ElementTree

from canaryproof.reports.canife import values
from canaryproof.reports.figures import svg


def scenario(name, epsilons):
    methods = [
        {"name": f"method {i}", "cap": cap, "values": [{"epsilon": value} for value in found]}
        for i, (found, cap) in enumerate(zip(epsilons, (2.0, "inf"), strict=True))
    ]
    return {"name": name, "methods": methods, "analytical": {"epsilon": 5.0}}


def test_values_are_drawn():
    first = scenario("first", ([0.0, 1.0], [3.0, "inf"]))
    one, two = [first], [first, scenario("second", ([1.0], [4.0]))]
    texts = [svg(values(scenarios)) for scenarios in (one, two)]
    for text in texts:
        ElementTree.fromstring(text)
    assert texts[0] == svg(values(one))
    assert texts[0].count("<use") < texts[1].count("<use")


def test_there_are_marks_for_all_scenarios_of_the_benchmark():
    from canaryproof.verify.comparison.canife import SCENARIOS

    figure = values([scenario(one.name, ([1.0], ["inf"])) for one in SCENARIOS])
    drawn = {line.get_label(): (line.get_marker(), line.get_color()) for line in figure.axes[0].get_lines()}
    marks = [drawn[one.name] for one in SCENARIOS]
    assert len(set(marks)) == len(marks)
