from dataclasses import fields

from canaryproof.verify.papers.canife import options
from canaryproof.verify.papers.comparison.canife_designs import BOTH, DESIGNS
from canaryproof.verify.papers.training.configuration import read


def parts(design):
    """All that a design is made of, by name."""
    named = {field.name: getattr(design.options, field.name) for field in fields(design.options)}
    return {**named, "start": design.start, "inclusion": design.inclusion}


def test_each_design_between_changes_one_thing_and_the_redesign_all():
    printed, redesigned = map(parts, BOTH)
    between = {design.name: parts(design) for design in DESIGNS if design.kind in ("choice", "change")}
    changed = {name: {key for key in own if own[key] != printed[key]} for name, own in between.items()}
    assert all(len(keys) == 1 for keys in changed.values())
    of_redesign = {key for key in redesigned if redesigned[key] != printed[key]}
    assert of_redesign | {"label", "inclusion"} == set().union(*changed.values())
    others = {("label", options.AS_PRINTED.label), ("inclusion", "coins"), ("start", "sample")}
    for name, own in between.items():
        (key,) = changed[name]
        assert own[key] == redesigned[key] or (key, own[key]) in others


def test_the_experiment_and_the_benchmark_mean_the_same_by_as_printed():
    (cell,) = read("fashion_mnist", "full").cells
    plan, (printed, _) = cell.settings.canife, BOTH
    assert (plan.rate, plan.norm_constant, plan.label, plan.loss, plan.steps) == (
        printed.options.rate,
        printed.options.norm_constant,
        printed.options.label,
        printed.options.loss,
        printed.options.steps,
    )
    # ``noise`` is of uniform pixels there, and a design is made once.
    assert (plan.start, plan.vector, printed.start, printed.options.restarts) == ("noise", "gradient", "uniform", 0)
    assert plan.inclusion == printed.inclusion
