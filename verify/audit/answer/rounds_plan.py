"""The plan of an audit of rounds: canaries that take part as people do, and the noise that their traces measure."""

import json
import math
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import optimize, special

from canaryproof.kernels.arrays import Array
from canaryproof.kernels.public import set_module
from canaryproof.verify.audit import rules
from canaryproof.verify.audit.accounting import accountant
from canaryproof.verify.audit.accounting.accountant import Claim, Neighbours
from canaryproof.verify.audit.answer.designs import COINS, DesignBounds, coins_for, design_bounds
from canaryproof.verify.audit.answer.notice import MOST_SCORES, least_count, least_part
from canaryproof.verify.audit.answer.result import CONFIDENCE, NOTICE
from canaryproof.verify.audit.blindspots.fault_map import summary
from canaryproof.verify.audit.estimators.noise_multiplier import noticed_share, power
from canaryproof.verify.audit.levels import POWER
from canaryproof.verify.audit.markup.digits import number, round_down
from canaryproof.verify.audit.rules import NumberRange

if TYPE_CHECKING:
    import pandas as pd

# Shares of the claimed noise that are planned for.
_SHARES = (0.9, 0.75, 0.5, 0.25)
# Deviations that show a trace.
_SEEN = 3.0
# A plan's canaries see noise so short that ε is this multiple of the claimed one.
_WORTH_SEEING = 2.0
_DIM = NumberRange("be a whole number from 1,000 to 1e12", 1000, 10**12, whole=True)
_ROUNDS = NumberRange("be a whole number from 1 to 1e6", 1, 10**6, whole=True)
_STRING = re.compile(r'"[^"]*"')
_DATA = NumberRange("be a number from 0 to 1e12", 0.0, 1e12)


@set_module("canaryproof.typing")
@dataclass(frozen=True)
class PlannedShare:
    """A share of the claimed noise, with the numbers of canaries that see it with probability 90%.

    Attributes
    ----------
    share
        Deviation of the noise, as a share of the claimed one.
    epsilon
        ε of the training with this noise.
    count
        Number of observed canaries without knowledge of others' data; None if 1,000,000 do not see it.
    count_of_known
        The same where others' updates are known and taken out of each release.
    """

    share: float
    epsilon: float
    count: int | None
    count_of_known: int | None


@set_module("canaryproof.typing")
@dataclass(frozen=True)
class RoundsPlan:
    """The plan of an audit of a training that is scored round by round.

    Attributes
    ----------
    mechanism
        The claimed mechanism: noise multiplier, rounds, rate or participations, and neighbours.
    dim, delta, data_norm, confidence, notice
        As asked.
    claim, noise_epsilon
        Claimed ε, and that of the noise.
    present
        Number of observed canaries whose trace is seen with probability 90%; None if 1,000,000 are too few.
    seeing
        Number that sees noise so short that ε is twice the claimed one; None as for a share.
    short_noise
        That noise, as a share of the claimed deviation.
    known
        Whether others' updates must be known to see it.
    deciding
        Number with which an honest audit decides with probability 90%: the most that others' data may be leaves the
        share of the noise that is asked for noticed. None if 1,000,000 are too few.
    count
        Number of canaries that take part. It is the largest of both and of what an honest audit needs to decide
        (``deciding``).
    total
        Number of all canaries. Those that take part in one round have an exact null, and all of them do. Else a fair
        coin decides on each whether it takes part, and with probability 99% at least ``count`` do.
    noise_share
        Variance that they add to the sum of all rounds, as a share of the noise's; a canary's rounds add up there.
    shares
        Shares of the claimed noise, with the canaries that see each.
    designs
        Lower bounds of scores that leak as much as is claimed; None with an exact null.
    """

    mechanism: Claim
    dim: int
    delta: float
    data_norm: float
    claim: float
    noise_epsilon: float
    present: int | None
    seeing: int | None
    short_noise: float
    known: bool
    deciding: int | None
    count: int
    noise_share: float
    shares: tuple[PlannedShare, ...]
    total: int
    designs: DesignBounds | None = None
    confidence: float = CONFIDENCE
    notice: float = NOTICE

    def commands(self, seed: int | str = 7, file: str | None = None) -> tuple[str, ...]:
        """Return the lines of Python that carry the plan out.

        Parameters
        ----------
        seed
            Seed of the canaries.
        file
            A file with this plan, which the audit is held against.

        Returns
        -------
        The lines.
        """
        from canaryproof.verify.audit.answer.plan import IMPORTS

        sigma, rounds, taken = (
            self.mechanism.noise_multiplier,
            self.mechanism.rounds,
            self.mechanism.participations,
        )
        total, known = self.total, ", known=cp.flatten(others)" if self.known else ""
        neighbours = ', neighbours="replace"' if self.mechanism.neighbours == "replace" else ""
        if taken is None:
            law: tuple[str, ...] = (
                f"schedule = cp.bernoulli(0, {self.mechanism.rate:g}, {rounds}, seed=8, "
                f"canaries=cp.Insertion({total}))",
            )
            clients = f"cp.CanaryClients(canaries, schedule, noise_multiplier={sigma:g})"
            score, claim = (
                "likelihood",
                f"cp.accounting.poisson({sigma:g}, rate={self.mechanism.rate:g}, rounds={rounds}{neighbours})",
            )
        else:
            law = (
                f"taken = np.tile(np.arange({rounds}) < {taken}, ({total}, 1))",
                "taken = np.random.default_rng(8).permuted(taken, axis=1).T",
                f"coins = np.random.default_rng(9).integers(2, size={total}) == 1",
                'schedule = cp.fixed_schedule(taken, coins, "coin")',
            )
            if self.designs is None:
                law = *law[:2], f"schedule = cp.fixed_schedule(taken, np.ones({total}, bool))"
            clients = "cp.CanaryClients(canaries, schedule)"
            score, claim = "known rounds", f"cp.accounting.gaussian({sigma:g}, participations={taken}{neighbours})"
        if self.claim > self.noise_epsilon * (1.0 + 1e-9):
            stated = f"cp.accounting.epsilon_delta({self.claim:g}, {self.delta:g}{neighbours})" if neighbours else None
            claim = f"{stated or format(self.claim, 'g')}, noise_multiplier={sigma:g}"
        asked = "" if self.confidence == CONFIDENCE else f", confidence={self.confidence:.10g}"
        asked += "" if self.notice == NOTICE else f", notice={self.notice:g}"
        audited = f"cp.audit(scores, {self.delta:g}, claim={claim}{asked})"
        return (
            IMPORTS,
            f"canaries = cp.Canaries(seed={seed}, count={total}, dim={self.dim})",
            *law,
            f"clients = {clients}",
            "total += clients.total(t, clip_norm)",
            f"clients.add(cp.flatten(delta), t{known})",
            f'scores = clients.scores("{score}")',
            f"print({audited})" if file is None else f'{audited}.report("audit.html", plan={json.dumps(file)})',
        )

    def rows(self) -> list[dict[str, Any]]:
        """Return the shares as dictionaries."""
        return [asdict(share) for share in self.shares]

    def to_frame(self) -> "pd.DataFrame":
        """Return the shares as a table, a row each."""
        # Pandas takes a second to load.
        import pandas as pd

        return pd.DataFrame(self.rows())

    def __str__(self) -> str:
        return self.text()

    def text(self, seed: int | str = 7, file: str | None = None) -> str:
        """Return the plan in words; seed and file are those of ``commands``."""
        # This import loads the plan of a release, which lays out lines.
        from canaryproof.verify.audit.answer.plan import wrap

        parts = self._parts(seed, file)
        return "\n".join(line for part, indent in parts for line in wrap(part, others=indent) or [""])

    def _parts(self, seed: int | str, file: str | None) -> Iterator[tuple[str, str]]:
        """Yield each line with the indentation of its continuation."""
        from canaryproof.verify.audit.answer.plan import OF_A_ROUND, canaries_clause, decides_clause

        yield f"Claimed: ε = {number(self.claim)} at δ = {self.delta:g}. {_describe(self.mechanism, self.dim)}", ""
        yield "", ""
        decided = "" if self.designs is None else COINS
        yield f"Take {self.total:,} canaries{decided}. With probability {100.0 * POWER:g}%,", ""
        yield f"  {canaries_clause(self.present)} see that they are there;", ""
        data = ", if others' updates are known" if self.known else ""
        # A share that is rounded up might not be noticed.
        share = round_down(100.0 * self.short_noise, 2)
        short = f"noise at {share}% of the claim (ε = {number(_WORTH_SEEING * self.claim)}){data};"
        yield f"  {canaries_clause(self.seeing)} notice {short}", "    "
        yield f"  {decides_clause(self.deciding, self.notice, allows_for_data=not self.known)}", "    "
        if self.designs is not None:
            yield str(self.designs), "  "
        yield f"Accuracy: they add {self.noise_share:.2g} of the variance that the noise has in the model.", "  "
        yield "", ""
        yield f"Canaries that see less noise with probability {100.0 * POWER:g}%, – if no number does:", ""
        yield from ((line, "") for line in self._table())
        yield summary(), ""
        yield "", ""
        yield f"Lines that carry it out{OF_A_ROUND}:", ""
        for line in self.commands(seed, file):
            # A line is not broken within a string.
            yield "  " + _STRING.sub(lambda string: string[0].replace(" ", "\0"), line), "    "

    def _table(self) -> Iterator[str]:
        others = "others' data unknown" if not self.data_norm else f"others' norm {self.data_norm:g}, unknown"
        rows = (
            ("noise, share of the claimed", [f"{row.share:g}" for row in self.shares]),
            ("its ε", [number(row.epsilon) for row in self.shares]),
            (others, [_cell(row.count) for row in self.shares]),
            ("others' data known", [_cell(row.count_of_known) for row in self.shares]),
        )
        for label, cells in rows:
            yield f"  {label:<30}" + "".join(f"{cell:>11}" for cell in cells)


def _cell(count: int | None) -> str:
    return "–" if count is None else f"{count:,}"


def _describe(mechanism: Claim, dim: int) -> str:
    sigma, rounds = mechanism.noise_multiplier, mechanism.rounds
    if mechanism.participations is None:
        how = f"Each of {rounds:,} rounds draws a client with probability {mechanism.rate:g},"
    else:
        how = f"A client takes part in {mechanism.participations:,} of {rounds:,} rounds, which the attacker knows,"
    neighbours = " (neighbours: replace)" if mechanism.neighbours == "replace" else ""
    return f"{how} and has noise of {sigma:g} clip norms in {dim:,} dimensions{neighbours}."


@set_module("canaryproof")
def plan_rounds(
    noise_multiplier: float,
    dim: float,
    rounds: float,
    *,
    rate: float | None = None,
    participations: float | None = None,
    delta: float = 1e-6,
    claim: float | None = None,
    data_norm: float = 0.0,
    neighbours: Neighbours = "add-or-remove",
    confidence: float = CONFIDENCE,
    notice: float = NOTICE,
) -> RoundsPlan:
    """Plan, before the run, an audit of a training that is scored round by round.

    Parameters
    ----------
    noise_multiplier
        Standard deviation σ of a round's noise, in clip norms, 0.01 ≤ σ ≤ 1e6.
    dim
        Dimension d of the model, 1,000 ≤ d ≤ 1e12.
    rounds
        Number T of rounds, 1 ≤ T ≤ 1e6.
    rate
        Rate of Poisson sampling in (0, 1]. The attacker knows it, and not the rounds (the score ``likelihood``).
    participations
        Number of rounds of each client, 1 by default. The attacker knows them (the score ``known rounds``).
    delta
        Target δ in (0, 1).
    claim
        Claimed ε; by default that of the noise, by ``accounting.poisson`` or ``accounting.gaussian``.
    data_norm
        Norm of the others' clipped sum in a round, in clip norms. Without it the numbers are for little data.
    neighbours
        Those of the claim: ``"add-or-remove"`` or ``"replace"``.
    confidence, notice
        Those of the audit: the confidence of its bounds, and the share of the claimed noise that must be noticed for
        the claim to pass.

    Returns
    -------
    The plan. A fault is noticed if the test of the claimed noise rejects it, at the confidence with half of α. Without
    others' updates it takes each canary's first round alone.

    Raises
    ------
    ValueError
        If an argument is outside its range, or the noise has a larger ε than claimed.

    Examples
    --------
    >>> import canaryproof as cp
    >>> planned = cp.plan_rounds(1.0, dim=1e6, rounds=64, participations=8, delta=1e-6)
    >>> print(" ".join(str(planned).split()).partition(" at δ")[0])
    Claimed: ε = 16.9
    """
    dimension, steps = int(_DIM.number("dim", dim)), int(_ROUNDS.number("rounds", rounds))
    delta, data = rules.DELTA.number("delta", delta), _DATA.number("data_norm", data_norm)
    confidence, notice = rules.CONFIDENCE.number("confidence", confidence), rules.SHARE.number("notice", notice)
    level = 0.5 * (1.0 - confidence)
    if rate is not None and participations is not None:
        raise ValueError("participations: must be left out where a rate is given")
    each: Array
    first: Array
    if rate is not None:
        q = NumberRange("lie above 0 and be at most 1", 1e-12, 1.0).number("rate", rate)
        mechanism = accountant.poisson(noise_multiplier, rate=q, rounds=steps, neighbours=neighbours)
        each, first = np.asarray(q * np.ones(steps)), np.asarray(q * (1.0 - q) ** np.arange(steps))
        if (drawn := float(first.sum())) <= delta:
            raise ValueError(f"delta: must be below {drawn:.4g}, the probability that a client takes part at all")
        never, rarely = 1.0 - drawn, 1.0 - q
        square = steps * q * (1.0 - q) + (steps * q) ** 2
    else:
        rule = NumberRange(f"be a whole number from 1 to {steps:,}", 1, steps, whole=True)
        taken = int(rule.number("participations", 1 if participations is None else participations))
        mechanism = accountant.gaussian(noise_multiplier, participations=taken, rounds=steps, neighbours=neighbours)
        each, first = np.asarray(np.ones(steps) * taken / steps), _first_rounds(steps, taken)
        never = rarely = 0.0
        square = float(taken**2)
    sigma, least = float(noise_multiplier), mechanism.epsilon(delta)
    claimed = least if claim is None else rules.CLAIM.number("claim", claim)
    lowest = max(least, rules.CLAIM.low)
    if claimed < lowest * (1.0 - 1e-9):
        raise ValueError(f"claim: must be at least {lowest:.4g}, not {claimed:.4g}; this noise has ε = {least:.4g}")
    short = _short(mechanism, sigma, delta, _WORTH_SEEING * claimed)
    spread = data / math.sqrt(dimension)
    counts = partial(_count, sigma=sigma, dim=dimension, level=level)
    unknown = partial(counts, measured=first, left_out=never, spread=spread)
    known = partial(counts, measured=each, left_out=rarely, spread=0.0)
    seeing = unknown(short)
    needs_data = seeing is None
    seeing = known(short) if seeing is None else seeing
    needs_data = needs_data and seeing is not None
    reach = (_SEEN + float(special.ndtri(POWER))) * math.hypot(sigma, 0.0 if needs_data else spread)
    enough = max(2.0, math.ceil(reach**2 / float((each if needs_data else first).sum())))
    present = int(enough) if enough <= MOST_SCORES else None
    measures = each if needs_data else first
    gate = level, notice
    decides = partial(
        _is_deciding, sigma=sigma, dim=dimension, spread=spread, test=measures, every=each, known=needs_data, gate=gate
    )
    deciding = least_count(decides, MOST_SCORES)
    count = total = max(seeing or 2, present or 2, deciding or 2)
    designs, members = None, float(count)
    if mechanism.participations != 1:
        total, designs = coins_for(count), design_bounds(count, claimed, delta, confidence)
        members = 0.5 * total
    shares = tuple(
        PlannedShare(
            share,
            replace(mechanism, noise_multiplier=share * sigma).epsilon(delta),
            unknown(share),
            known(share),
        )
        for share in _SHARES
    )
    return RoundsPlan(
        mechanism=mechanism,
        dim=dimension,
        delta=delta,
        data_norm=data,
        claim=claimed,
        noise_epsilon=least,
        present=present,
        seeing=seeing,
        short_noise=short,
        known=needs_data,
        deciding=deciding,
        count=count,
        noise_share=members * square / (sigma**2 * steps * dimension),
        shares=shares,
        total=total,
        designs=designs,
        confidence=confidence,
        notice=notice,
    )


def _short(mechanism: Claim, sigma: float, delta: float, epsilon: float) -> float:
    """Return the share of the noise that has a larger ε, to 1%: each value takes a composition."""

    def excess(log_share: float) -> float:
        # Noise with no ε at all, or with ε = 0, is as far as can be from a claim.
        reached = replace(mechanism, noise_multiplier=math.exp(log_share) * sigma).epsilon(delta)
        return math.log(min(max(reached, _LEAST), _MOST) / epsilon)

    low = -0.5
    while excess(low) < 0.0:
        low *= 2.0
    return math.exp(float(optimize.brentq(excess, low, 0.0, xtol=0.01)))


# Range of ε that is distinguished, beyond twice the claims that can be made.
_LEAST, _MOST = 1e-12, 1e12


def _first_rounds(rounds: int, taken: int) -> Array:
    """Return for each round the probability that it is the first of those drawn without replacement."""
    left = rounds - np.arange(rounds + 1.0)
    # C(left, taken)/C(rounds, taken): no round before is one of them.
    with np.errstate(invalid="ignore"):
        log_none = special.gammaln(left + 1.0) - special.gammaln(left - taken + 1.0)
    none = np.where(left >= taken, np.exp(log_none - log_none[0]), 0.0)
    return np.asarray(-np.diff(none))


def _is_deciding(
    count: int,
    sigma: float,
    dim: int,
    spread: float,
    test: Array,
    every: Array,
    gate: tuple[float, float],
    *,
    known: bool,
) -> bool:
    """Tell whether an honest audit decides with probability 90%: it would notice the share of noise that is asked for.

    Others' data that are not known may be as much as the measured noise allows: what all canaries measure, at both ends
    of its error.
    """
    measuring = count * float(every.sum())
    masked = 0.0
    if not known:
        inverse = 1.0 / math.hypot(sigma, spread) - 2.0 * float(special.ndtri(POWER)) / math.sqrt(measuring)
        masked = (1.0 / (inverse * sigma)) ** 2 - 1.0 if inverse > 0.0 else math.inf
    share = noticed_share(sigma, np.sqrt(count * test[test > 0.0]), dim, gate[0])
    return share**2 - masked >= gate[1] ** 2


def _count(
    share: float, sigma: float, measured: Array, left_out: float, dim: int, spread: float, level: float
) -> int | None:
    """Return the number of canaries, to 5%, that see a share of the noise, by the part measured in each round.

    What is measured of them all is a binomial number, where each is left out with a probability, or a fixed one.
    """
    trace = 1.0 / math.hypot(share * sigma, spread)
    served = np.sqrt(measured[measured > 0.0])
    total = float(measured.sum())

    def is_seen(count: int) -> bool:
        part = least_part(left_out / (count * total) + 2.0 / dim)
        return float(power(trace, sigma, math.sqrt(part * count) * served, dim, level)) >= POWER

    return least_count(is_seen, MOST_SCORES)
