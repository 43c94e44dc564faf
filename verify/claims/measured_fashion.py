"""Rules for the comparison with CANIFE on Fashion-MNIST: the rows of its benchmark, and a training of our own."""

from canaryproof.verify.benchmark.canife_printed import PRINTED, compared
from canaryproof.verify.claims import measured
from canaryproof.verify.claims.finished import Measurements
from canaryproof.verify.claims.judging import found
from canaryproof.verify.results import Outcome, Verdict

# "Negligible" and "much", as shares of the training's time.
_NEGLIGIBLE, _MUCH = 0.1, 0.5
_NOT_STATED = "not stated, and ours: learning rates, width, δ of the conversion and how many trainings there were"


def printed(claim: str, measurements: Measurements) -> Outcome | None:
    """Take over what the benchmark found of a claim, reading by reading.

    Parameters
    ----------
    claim
        Id in the benchmark's rows.
    measurements
        The folder's.
    """
    rows = [row for row in measurements.benchmark or () if claim in row["id"].split(", ")]
    if not rows:
        return None
    listed = "; ".join(f"{row['method']} {row['reading']} ({row['finding']})" for row in rows)
    readings = {row["method"]: row["reading"] for row in rows}
    return found(Verdict(rows[0]["verdict"]), f"{listed}; {_NOT_STATED}", readings=readings)


def ours(measurements: Measurements) -> Outcome | None:
    """Judge the printed mean and deviation of Algorithm 3: under Poisson samples, or else in a shuffled epoch."""
    poisson = printed("final.section5.4.ours", measurements)
    claim = next(one for one in PRINTED if "final.section5.4.ours" in one.ids)
    cells = measurements.experiments["fashion_mnist"].cells
    if poisson is None or len(cells) != 1 or not all(one.attacks for one in cells[0].repetitions):
        return None
    values = [one.attacks["all"].fitted for one in cells[0].repetitions]
    verdict, finding = compared(values, claim.mean, claim.deviation, float("inf"))
    shuffled = f"in a shuffled epoch {measured.shown(values)} ({finding})"
    total = poisson.verdict
    if verdict is Verdict.CONFIRMED and total is not Verdict.CONFIRMED:
        total = Verdict.QUALIFIED
    return found(total, f"{poisson.finding}; {shuffled}: {verdict}", shuffled=values, **poisson.evidence)


def cost(measurements: Measurements) -> Outcome | None:
    """Judge that random canaries add negligible time to a training, and CANIFE's design much more than they do."""
    if not (seconds := measurements.seconds):
        return None
    canaries, canife = (seconds[name] / seconds["training"] for name in ("oneshot", "canife"))
    verdict = Verdict.CONFIRMED if canaries <= _NEGLIGIBLE and canife > canaries else Verdict.QUALIFIED
    if canife <= canaries:
        verdict = Verdict.REFUTED
    return found(verdict, _shares(canaries, canife), seconds=dict(seconds))


def crafting(measurements: Measurements) -> Outcome | None:
    """Judge that crafting canaries costs much: half of the training's time or more."""
    if not (seconds := measurements.seconds):
        return None
    canaries, canife = (seconds[name] / seconds["training"] for name in ("oneshot", "canife"))
    verdict = Verdict.CONFIRMED if canife >= _MUCH else Verdict.QUALIFIED
    return found(
        Verdict.REFUTED if canife <= _NEGLIGIBLE else verdict, _shares(canaries, canife), seconds=dict(seconds)
    )


def _shares(canaries: float, canife: float) -> str:
    return f"random canaries took {canaries:.2g} and CANIFE {canife:.2g} of the training's time, with our code"
