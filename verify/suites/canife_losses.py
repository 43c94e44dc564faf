"""CANIFE's losses and norm constants (Appendix D) on small networks and digits."""

import numpy as np

from canaryproof.verify.error_control import POWER
from canaryproof.verify.results import Check, Context, Design, Outcome, Subject
from canaryproof.verify.suites.canife_design import GAIN, NEARLY, POOR, SHARE, of_pairs, of_share, varied
from canaryproof.verify.suites.canife_judging import (
    PAPER,
    above,
    below,
    judged,
    share_above,
    share_below,
    spoken,
    visible,
    visible_share,
)
from canaryproof.verify.suites.training_tests import LEVEL


def losses(context: Context) -> Outcome:
    """Judge that the covariance loss attacks better than the mean's."""
    size = context.pick(80, 500)
    covariance, mean = (varied(context, size, loss=loss).accuracy[:, 0] for loss in ("covariance", "mean"))
    gain = covariance - mean
    for_it, against_it = [above(gain)], [below(gain)]
    finding = (
        f"accuracy {spoken(covariance)} with the covariance loss, {spoken(mean)} with the mean's (p = {for_it[0]:.1g})"
    )
    evidence = {"covariance": covariance.tolist(), "mean": mean.tolist(), "p": [*for_it, *against_it]}
    return Outcome(judged(for_it, against_it), finding, evidence, of_pairs(size, 1, "the loss does not move"))


def constancy(context: Context) -> Outcome:
    """Judge that the covariance loss attacks nearly always rightly, whatever the size of the pool."""
    size, pools = context.pick(80, 500), (32, 64, 256)
    found = {count: varied(context, size, pool=count).accuracy[:, 0] for count in pools}
    hits = {count: int((values >= POOR).sum()) for count, values in found.items()}
    for_it = [share_above(number, size, SHARE) for number in hits.values()]
    against_it = [share_below(number, size, SHARE) for number in hits.values()]
    listed = ", ".join(f"{count}: {hits[count]} ({values.mean():.4f})" for count, values in found.items())
    finding = f"attacks of {size} with accuracy {POOR:.0%} or more (mean accuracy) by pool {listed}"
    evidence = {"accuracy": {str(count): values.tolist() for count, values in found.items()}, "p": for_it + against_it}
    design = of_share(size, len(pools), f"attacks have an accuracy of {POOR:.0%}")
    return Outcome(judged(for_it, against_it), finding, evidence, design)


def sensitivity(context: Context) -> Outcome:
    """Judge that the mean's loss attacks the better, the larger the pool."""
    size = context.pick(140, 500)
    small, large = (varied(context, size, loss="mean", pool=count).accuracy[:, 0] for count in (32, 256))
    rise = large - small
    for_it, against_it = [above(rise)], [below(rise), below(rise, GAIN)]
    finding = (
        f"accuracy with the mean's loss {spoken(small)} with a pool of 32, {spoken(large)} with 256: a rise of "
        f"{rise.mean():+.3f} (p = {for_it[0]:.1g} for none, {below(rise, GAIN):.1g} for {GAIN:g} or more)"
    )
    evidence = {"32": small.tolist(), "256": large.tolist(), "p": [*for_it, *against_it]}
    return Outcome(judged(for_it, against_it), finding, evidence, of_pairs(size, 1, "the pool does not move"))


def constants(context: Context) -> Outcome:
    """Judge that a norm constant far too large spoils the design, and that C is enough."""
    size = context.pick(80, 500)
    enough, large = (varied(context, size, norm_constant=constant) for constant in (1.0, 1000.0))
    hits = int((enough.accuracy[:, 0] >= NEARLY).sum())
    harm = np.log(large.deviation[:, 0] / enough.deviation[:, 0])
    for_it, against_it = (
        [above(harm), share_above(hits, size, SHARE)],
        [below(harm), share_below(hits, size, SHARE)],
    )
    finding = (
        f"with the constant C {hits} of {size} attacks have accuracy {NEARLY:.0%} or more; deviation "
        f"{spoken(enough.deviation[:, 0])}, and {spoken(large.deviation[:, 0])} with 1,000 C"
    )
    design = Design(
        f"1,000 C does not widen the scores, or with C at most {SHARE:.0%} of attacks have accuracy {NEARLY:.0%}",
        LEVEL,
        f"the mean logarithm rises by {visible(size, 2):.2g} standard deviations, and "
        f"{visible_share(size, SHARE, 2):.2%} of attacks have it",
        POWER,
        size,
    )
    return Outcome(judged(for_it, against_it), finding, {"log ratio": harm.tolist(), "p": for_it + against_it}, design)


def health(context: Context) -> Outcome:
    """Judge that with a norm constant beyond all that the paper tries the attack fails."""
    size = context.pick(80, 500)
    found = varied(context, size, norm_constant=1000.0)
    fails, sound = int((found.accuracy[:, 0] < POOR).sum()), int((found.health >= POOR).sum())
    for_it = [share_above(fails, size, 0.5), share_above(sound, size, 0.5)]
    against_it = [share_below(fails, size, 0.5)]
    finding = (
        f"with 1,000 C, beyond both, accuracy {spoken(found.accuracy[:, 0])}, health {spoken(found.health)}: {fails} "
        f"of {size} attacks are below {POOR:.0%}, and {size - sound} canaries"
    )
    seen = visible_share(size, 0.5, 1)
    design = Design(
        f"with 1,000 C half of the attacks have an accuracy below {POOR:.0%}",
        LEVEL,
        f"{seen:.1%} of them have, or {1.0 - seen:.1%}",
        POWER,
        size,
    )
    evidence = {"accuracy": found.accuracy[:, 0].tolist(), "health": found.health.tolist(), "p": for_it + against_it}
    return Outcome(judged(for_it, against_it), finding, evidence, design)


CHECKS = (
    Check(
        "canife.study.losses",
        Subject.DOCUMENT,
        PAPER + "Appendix D, Figure 8a",
        "the covariance loss (loss 2) makes more accurate attacks than the mean's (loss 1)",
        losses,
    ),
    Check(
        "canife.study.loss-2",
        Subject.DOCUMENT,
        PAPER + "Appendix D, Figure 8a",
        "with the covariance loss the accuracy is high and nearly the same for all sizes of the pool",
        constancy,
    ),
    Check(
        "canife.study.loss-1",
        Subject.DOCUMENT,
        PAPER + "Appendix D, Figure 8a",
        "with the mean's loss the accuracy rises with the size of the pool",
        sensitivity,
    ),
    Check(
        "canife.study.norm-constant",
        Subject.DOCUMENT,
        PAPER + "Section 3.3 and Appendix D",
        "a norm constant far above C is bad for the design, and one around C is enough for a high accuracy",
        constants,
    ),
    Check(
        "canife.study.norm-health",
        Subject.DOCUMENT,
        PAPER + "Appendix D, Figure 9",
        "for norm constants beyond 50 the attack loses much of its accuracy, beyond 600 canaries lose health too",
        health,
    ),
)
