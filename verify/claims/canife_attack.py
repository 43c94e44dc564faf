"""CANIFE's canary: the length of its update, and the two forms of its loss (Section 3.3, Algorithm 1)."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from canaryproof.verify.claims.canife_numbers import PAPER, fixed
from canaryproof.verify.claims.judging import claim, found
from canaryproof.verify.results import Outcome, Verdict

# Clients' learning rates (Appendix B), and the clip norm that both loss and updates have.
RATES = {"CIFAR10": "0.01", "CelebA": "0.899", "Sent140": "5.75", "Shakespeare": "3"}
CLIP = Fraction(1)


def judge_norm(rates: Mapping[str, str]) -> Outcome:
    """Judge that a canary's gradient of norm C or more makes an update of norm C.

    Parameters
    ----------
    rates
        Clients' learning rate by task.
    """
    # One sample and one local epoch are one step: the update is the gradient times the rate, clipped to C.
    norms = {name: min(CLIP, Fraction(rate) * CLIP) for name, rate in rates.items()}
    takes = {name: CLIP / Fraction(rates[name]) for name, norm in norms.items() if norm < CLIP}
    short = ", ".join(
        f"{name} (rate {rates[name]}: ‖u_c‖ may be {float(norms[name]):g}, C takes a gradient of {float(least):.4g})"
        for name, least in takes.items()
    )
    full = ", ".join(name for name in rates if name not in takes)
    evidence: dict[str, Any] = {"least_norms": {name: float(norm) for name, norm in norms.items()}}
    if not takes:
        return found(Verdict.CONFIRMED, f"a step with rate 1 or more reaches C = 1: {full}", **evidence)
    verdict = Verdict.QUALIFIED if full else Verdict.REFUTED
    return found(verdict, f"only where the rate is at least 1 ({full or 'nowhere'}), not on {short}", **evidence)


def judge_loss(clips: Sequence[Fraction]) -> Outcome:
    """Judge that Algorithm 1 minimises the loss of equation (1), by the first terms' ratio.

    Parameters
    ----------
    clips
        Clip norms C to try, the first of them the paper's.
    """
    update, gradient = (Fraction(3, 5), Fraction(4, 5)), (Fraction(1), Fraction(2))

    def squared(factor: Fraction) -> Fraction:
        return sum((u * factor * g for u, g in zip(update, gradient, strict=True)), Fraction(0)) ** 2

    ratios = {str(clip): squared(clip) / squared(Fraction(1)) for clip in clips}
    same = [clip for clip, ratio in ratios.items() if ratio == 1]
    listed = ", ".join(f"{ratio} for C = {clip}" for clip, ratio in ratios.items())
    verdict = (
        Verdict.CONFIRMED
        if len(same) == len(ratios)
        else Verdict.QUALIFIED
        if str(clips[0]) in same
        else Verdict.REFUTED
    )
    return found(
        verdict,
        f"only for C = 1, the value of all experiments: Algorithm 1 has C·∇ℓ in the products where equation (1) has "
        f"∇ℓ, its first term is larger by a factor of {listed}",
        ratios={clip: float(ratio) for clip, ratio in ratios.items()},
    )


CHECKS = (
    claim(
        "canife.section3.3.norm",
        PAPER + "Section 3.3; learning rates of Appendix B",
        "A gradient norm of at least C = 1 makes ‖u_c‖² = C²",
        fixed(judge_norm, RATES),
    ),
    claim(
        "canife.algorithm1.loss",
        PAPER + "Section 3.3, Algorithm 1",
        "Algorithm 1 minimises the loss of equation (1)",
        fixed(judge_loss, (CLIP, Fraction(2))),
    ),
)
