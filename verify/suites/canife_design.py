"""What makes a good canary: CANIFE's ablations (Section 4.3, Appendix D) on small networks and digits.

Deviations are of scores without noise, in rounds of 64 clients. "As printed" is Adam with rate 1 from uniform pixels
with a fixed label; the default is ours, with rate 0.1 from normal pixels and a soft label.
"""

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from canaryproof.verify.error_control import POWER
from canaryproof.verify.results import Check, Context, Design, Outcome, Subject, Verdict
from canaryproof.verify.suites.canife_judging import (
    PAPER,
    above,
    below,
    both,
    judged,
    ratio,
    share_above,
    share_below,
    spoken,
    visible,
    visible_share,
)
from canaryproof.verify.suites.training_tests import LEVEL

if TYPE_CHECKING:
    from canaryproof.verify.suites.canife_studies import Sample

Array = NDArray[np.float64]

_PURPOSE = "canife/design"
# What is said of nearly all designs holds for more than this share, of which some failures leave no doubt.
SHARE = 0.7
# An attack that is nearly always right, and one that no longer is.
NEARLY, POOR = 0.99, 0.95
# What ratios are usually taken for equal, and the least rise of an accuracy that five attacks could show.
_EQUAL, GAIN = 1.25, 0.05


def varied(context: Context, size: int, *, printed: bool = False, **changes: Any) -> "Sample":
    """Repeat the base design, or that as printed, with other fields of the plan or of its settings."""
    from canaryproof.verify.canife.design import AS_PRINTED
    from canaryproof.verify.suites import canife_studies as studies

    settings = AS_PRINTED if printed else studies.BASE
    of_plan: dict[str, Any] = {"start": "uniform"} if printed else {}
    of_plan |= {name: changes.pop(name) for name in ("start", "pool", "training") if name in changes}
    plan = studies.Plan(replace(settings, **changes), **of_plan)
    return studies.sample(context, _PURPOSE, plan, size)


def default(context: Context) -> Outcome:
    """Judge that designs of the default settings do not fail, and that their soft labels are probabilities."""
    from canaryproof.verify.suites import canife_studies as studies

    size = context.pick(80, 500)
    found = studies.sample(context, _PURPOSE, studies.Plan(studies.DEFAULT), size)
    hits = int((found.healthy & (np.abs(found.label - 1.0) < 1e-5)).sum())
    wrong = share_above(hits, size, SHARE)
    first = int((found.healthy & (found.attempts == 1)).sum())
    finding = (
        f"{hits} of {size} canaries are healthy and have a label of weight 1, {first} from the first start; deviation "
        f"of the scores {spoken(found.deviation[:, 0])}"
    )
    evidence = {"attempts": found.attempts.tolist(), "healthy": found.healthy.tolist(), "p": wrong}
    verdict = Verdict.CONFIRMED if wrong <= 0.5 * LEVEL else Verdict.REFUTED
    return Outcome(verdict, finding, evidence, of_share(size, 1, "designs are healthy"))


def rate(context: Context) -> Outcome:
    """Judge that Adam with rate 1 finds canaries of nearly no loss in a few thousand steps, in most designs."""
    size = context.pick(200, 500)
    ours, printed = varied(context, size, steps=2500), varied(context, size, printed=True)
    verdicts, parts, tests = [], [], []
    for found in (ours, printed):
        hits = int(found.healthy.sum())
        for_it, against_it = share_above(hits, size, 0.5), share_below(hits, size, 0.5)
        verdicts.append(judged([for_it], [against_it], 0.5 * LEVEL))
        parts.append(f"{size - hits} of {size} fail, mean accuracy {spoken(found.accuracy[:, 0])}")
        tests += [for_it, against_it]
    finding = (
        f"2,500 steps: with our rate 0.1, normal pixels and soft label {parts[0]}; as printed (rate 1, uniform pixels, "
        f"fixed label) {parts[1]}, while mean health is {spoken(printed.health)}"
    )
    evidence = {"default": ours.accuracy[:, 0].tolist(), "printed": printed.accuracy[:, 0].tolist(), "p": tests}
    seen = visible_share(size, 0.5, 1, 0.5 * LEVEL)
    design = Design(
        "half of designs end with a loss of at most 2% of that of a sample without gradient",
        LEVEL,
        f"{seen:.1%} of them do, or {1.0 - seen:.1%}, with either setting",
        POWER,
        size,
    )
    return Outcome(both(*verdicts), finding, evidence, design)


def steps(context: Context) -> Outcome:
    """Judge that designs get better with iterations, by paired tests of neighbours."""
    size, counts = context.pick(80, 500), (100, 1000, 2500)
    found = [varied(context, size, steps=count) for count in counts]
    falls = [np.log(one.deviation[:, 0] / more.deviation[:, 0]) for one, more in pairwise(found)]
    for_it, against_it = [above(fall) for fall in falls], [below(fall) for fall in falls]
    listed = ", ".join(
        f"{count:,}: {spoken(one.deviation[:, 0])} ({one.accuracy.mean():.3f})"
        for count, one in zip(counts, found, strict=True)
    )
    finding = f"deviation (accuracy) by iterations {listed}; the larger p-value is {max(for_it):.1g}"
    evidence = {
        "deviation": {str(count): one.deviation[:, 0].tolist() for count, one in zip(counts, found, strict=True)},
        "p": [*for_it, *against_it],
    }
    return Outcome(judged(for_it, against_it), finding, evidence, of_pairs(size, 2, "more iterations do not narrow"))


def start(context: Context) -> Outcome:
    """Judge that a random start and a sample of the pool do equally well."""
    size = context.pick(50, 300)
    one, other = (varied(context, size, start=start).deviation[:, 0] for start in ("normal", "pool"))
    values, margin = np.log(other / one), np.log(_EQUAL)
    for_it, against_it = (
        [below(values, margin), above(values, -margin)],
        [above(values, margin), below(values, -margin)],
    )
    # As printed, canaries fail so often that only the accuracy tells something: one without a gradient has scores 0.
    literal = [varied(context, size, printed=True, **change).accuracy[:, 0] for change in ({}, {"start": "pool"})]
    design = Design(
        f"starting from a sample of the pool makes the deviation {_EQUAL:g} times as large or small, or more",
        LEVEL,
        f"it makes no difference, and the margin is {visible(size, 2):.2g} standard deviations of a pair's logarithm",
        POWER,
        size,
    )
    finding = (
        f"from random pixels the scores' deviation is {spoken(one)}, from a sample of the pool {spoken(other)}, "
        f"{ratio(other, one):.2f} times; as printed, accuracy {spoken(literal[0])} and {spoken(literal[1])}"
    )
    evidence = {"log ratio": values.tolist(), "p": [*for_it, *against_it]}
    return Outcome(judged(for_it, against_it), finding, evidence, design)


def model(context: Context) -> Outcome:
    """Judge that attacks on a model that has learnt are the more accurate, in our design and as printed."""
    size = context.pick(80, 500)
    verdicts, parts, evidence = [], [], {}
    for name, printed in (("ours", False), ("as printed", True)):
        early, late = (varied(context, size, printed=printed, training=count).accuracy[:, 0] for count in (0, 300))
        rise = late - early
        for_it, against_it = [above(rise)], [below(rise), below(rise, GAIN)]
        verdicts.append(judged(for_it, against_it, 0.5 * LEVEL))
        parts.append(f"{name} {spoken(early)} before training and {spoken(late)} after")
        evidence[name] = {"early": early.tolist(), "late": late.tolist(), "p": [*for_it, *against_it]}
    finding = f"accuracy of the attack {'; '.join(parts)} 300 steps, to 91% of held-out images"
    return Outcome(both(*verdicts), finding, evidence, of_pairs(size, 1, "training does not move", 0.5 * LEVEL))


def of_pairs(size: int, parts: int, null: str, level: float = LEVEL) -> Design:
    """Return the design of tests of pairs' mean differences."""
    seen = visible(size, parts, level)
    return Design(
        f"{null} the mean of what is measured",
        LEVEL,
        f"it moves by {seen:.2g} standard deviations of a pair's difference",
        POWER,
        size,
    )


def of_share(size: int, parts: int, what: str, level: float = LEVEL) -> Design:
    """Return the design of tests of a share."""
    seen = visible_share(size, SHARE, parts, level)
    return Design(f"at most {SHARE:.0%} of {what}", LEVEL, f"{seen:.2%} of them", POWER, size)


CHECKS = (
    Check(
        "canife.study.iterations",
        Subject.DOCUMENT,
        PAPER + "Section 4.3, Figure 5b",
        "more design iterations make a better canary, up to some thousands",
        steps,
    ),
    Check(
        "canife.study.rate",
        Subject.DOCUMENT,
        PAPER + "Sections 4 and 4.3",
        "Adam with rate 1, from random pixels and in a few thousand iterations, designs nearly optimal canaries",
        rate,
    ),
    Check(
        "canife.study.start",
        Subject.DOCUMENT,
        PAPER + "Section 4.3, Figure 5a",
        "whether the design begins at random or from a sample of the pool makes no difference to the scores' deviation",
        start,
    ),
    Check(
        "canife.study.model",
        Subject.DOCUMENT,
        PAPER + "Section 4.3, Figure 5c",
        "the attack is inaccurate early in training and becomes accurate as the model does",
        model,
    ),
    Check(
        "canife.design",
        Subject.IMPLEMENTATION,
        "verify.canife.design",
        "more than seven in ten canaries of the default settings are healthy, with labels that are probabilities",
        default,
    ),
)
