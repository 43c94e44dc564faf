import dataclasses
import math
from functools import cache

import numpy as np
import pytest
from scipy import stats

import canaryproof as cp
from canaryproof.verify.audit.accounting import accountant
from canaryproof.verify.audit.answer.designs import DesignBounds, coins_for
from canaryproof.verify.audit.answer.rounds_plan import PlannedShare, RoundsPlan, _first_rounds, plan_rounds
from canaryproof.verify.audit.blindspots.fault_map import summary
from canaryproof.verify.audit.estimators.noise_multiplier import noticed_share
from canaryproof.verify.audit.levels import LEVEL, POWER
from tests.printed import numbers

DIM = 2000


@cache
def once():
    return plan_rounds(1.0, DIM, 10, delta=1e-5)


@cache
def sampled():
    return plan_rounds(0.8, DIM, 12, rate=0.25, delta=1e-5)


@cache
def crowded():
    """Plan canaries half of which come back in each round, as noise to the others, as many as there are dimensions."""
    return plan_rounds(1.0, 1000, 10, rate=0.5, delta=1e-5)


def test_the_claim_is_that_of_the_accounting():
    assert once().claim == cp.accounting.gaussian(1.0).epsilon(1e-5)
    assert sampled().claim == cp.accounting.poisson(0.8, rate=0.25, rounds=12).epsilon(1e-5)
    # It is below the ε of an attacker who knows the rounds, and may be claimed.
    assert sampled().claim < cp.accounting.gaussian(0.8, participations=12).epsilon(1e-5)
    for share in sampled().shares:
        claim = cp.accounting.poisson(0.8 * share.share, rate=0.25, rounds=12)
        assert share.epsilon == claim.epsilon(1e-5)


def test_the_first_of_some_rounds_has_the_law_of_the_smallest():
    rng = np.random.default_rng(0)
    drawn = rng.permuted(np.tile(np.arange(9), (20_000, 1)), axis=1)[:, :3].min(axis=1)
    expected = 20_000 * _first_rounds(9, 3)
    assert expected.sum() == pytest.approx(20_000)
    counts = np.bincount(drawn, minlength=9)
    assert (counts[expected == 0.0] == 0).all()
    assert stats.chisquare(counts[:7], expected[:7]).pvalue > LEVEL


def trained(planned, share, seed, known):
    """Carry the plan's lines out, with a share of the noise; return the scores and the line that audits them."""
    lines, names = planned.commands(), {"clip_norm": 1.0}
    inserted = next(i for i, line in enumerate(lines) if line.startswith("total += "))
    exec("\n".join(lines[:inserted]).replace("seed=7", f"seed={seed}"), names)
    sigma, rng = share * planned.mechanism.noise_multiplier, np.random.default_rng(seed)
    for t in range(planned.mechanism.rounds):
        names |= {"t": t, "total": np.zeros(planned.dim), "others": np.zeros(planned.dim)}
        exec(lines[inserted], names)
        names["delta"] = names["total"] + sigma * rng.normal(size=planned.dim)
        added = lines[inserted + 1]
        exec(added.replace(", t)", ", t, known=others)") if known else added, names)
    exec(lines[-2], names)
    return names["scores"], lines[-1].removeprefix("print(").removesuffix(")")


def count_of(planned, share, known):
    row = next(row for row in planned.shares if row.share == share)
    return row.count_of_known if known else row.count


@pytest.mark.deep
@pytest.mark.parametrize(
    ("planned", "share", "known"),
    [
        (once, 0.5, False),
        pytest.param(sampled, 0.75, True, marks=pytest.mark.deep),
        pytest.param(sampled, 0.5, False, marks=pytest.mark.deep),
        pytest.param(crowded, 0.9, False, marks=pytest.mark.deep),
    ],
)
def test_so_many_canaries_notice_a_share_of_the_noise(planned, share, known):
    count, runs = count_of(planned(), share, known), 80
    asked = dataclasses.replace(planned(), count=count, total=count if planned is once else coins_for(count))
    traces = [trained(asked, share, seed, known)[0].record.traces for seed in range(runs)]
    # Half of what 95% leaves belongs to the bound.
    noticed = sum(trace.p_value(planned().mechanism.noise_multiplier) < 0.025 for trace in traces)
    assert stats.binom.cdf(noticed, runs, POWER) > LEVEL


def test_an_honest_training_by_the_plans_lines_is_consistent():
    scores, line = trained(once(), 1.0, 3, False)
    found = eval(line, {"cp": cp, "scores": scores})
    assert found.decision.outcome == "PASSED"
    assert found.noticed_share == pytest.approx(once().short_noise, abs=0.05)


def test_a_larger_claim_is_the_one_that_is_audited():
    planned = plan_rounds(1.0, DIM, 10, delta=1e-5, claim=8.0)
    scores, line = trained(dataclasses.replace(planned, total=80), 1.0, 4, False)
    found = eval(line, {"cp": cp, "scores": scores})
    assert (found.claim, found.noise_multiplier) == (8.0, 1.0)
    # Noise whose ε is twice the claimed one, not twice that of the noise.
    assert cp.accounting.gaussian(planned.short_noise).epsilon(1e-5) == pytest.approx(16.0, rel=0.03)


def test_the_table_has_the_shares_of_the_plan():
    table = made_up().to_frame()
    assert list(table.columns) == ["share", "epsilon", "count", "count_of_known"]
    assert table.fillna(-1).to_numpy().tolist() == [[0.55, 9.5, -1, 7321], [0.35, 23.45, 321, 54]]


@pytest.mark.parametrize("options", [{}, {"rate": 0.5}, {"data_norm": 1e12}])
def test_the_least_noise_and_the_most_data_have_a_plan(options):
    planned = plan_rounds(0.01, DIM, 3, **options)
    mechanism = dataclasses.replace(planned.mechanism, noise_multiplier=0.01 * planned.short_noise)
    assert mechanism.epsilon(1e-6) == pytest.approx(2.0 * planned.claim, rel=0.05)
    # Who knows the data takes them out, so that they hide nothing.
    assert (planned.known, planned.present) == ("data_norm" in options, 2)


def test_data_hide_the_noise_and_knowing_them_does_not():
    hidden = plan_rounds(1.0, DIM, 10, delta=1e-5, data_norm=10.0 * math.sqrt(DIM))
    assert hidden.known
    assert [row.count for row in hidden.shares] == [None] * 4
    assert [row.count_of_known for row in hidden.shares] == [row.count_of_known for row in once().shares]
    assert ", t, known=cp.flatten(others))" in hidden.commands()[-3]


def test_it_fits_eighty_columns():
    for planned in (once(), sampled()):
        assert max(map(len, str(planned).splitlines())) <= 80


@pytest.mark.parametrize("sigma", [0.8, 2.0])
def test_canaries_add_the_squared_length_of_their_rounds_sum_to_the_noises(sigma):
    # Over 16 rounds: a canary adds up, and n of its rounds have the squared length n²; σ² in each coordinate.
    drawn = np.arange(17)
    for taken, square in (
        ({"participations": 4}, 16.0),
        ({"rate": 0.25}, float(stats.binom.pmf(drawn, 16, 0.25) @ drawn**2)),
    ):
        planned = plan_rounds(sigma, DIM, 16, delta=1e-5, **taken)
        assert planned.noise_share == pytest.approx(0.5 * square * planned.total / (16 * sigma**2 * DIM))


def made_up(**options):
    """A plan of which no two figures are equal, and whose claim is not that of its noise."""
    shares = (PlannedShare(0.55, 9.5, None, 7321), PlannedShare(0.35, 23.45, 321, 54))
    return RoundsPlan(
        **{
            "mechanism": accountant.poisson(0.75, rate=0.125, rounds=16),
            "dim": 1234,
            "delta": 2e-5,
            "data_norm": 17.5,
            "claim": 4.125,
            "noise_epsilon": 1.375,
            "present": 17,
            "seeing": 23,
            "short_noise": 0.619,
            "known": False,
            "deciding": 19,
            "confidence": 0.99,
            "notice": 0.45,
            "count": 22,
            "total": 66,
            "designs": DesignBounds(1.5, 0.75),
            "noise_share": 0.0083,
            "shares": shares,
        }
        | options
    )


def test_each_figure_of_the_page_is_the_plans():
    once_each = accountant.gaussian(0.75, participations=3, rounds=16)
    for mechanism, drawn in ((made_up().mechanism, ["16", "0.125"]), (once_each, ["3", "16"])):
        assert numbers(str(made_up(mechanism=mechanism)).partition("Lines that carry")[0]) == [
            *("4.12", "2e-05", *drawn, "0.75", "1234"),  # what is claimed
            *("66", "90", "17", "23", "61", "8.25", "19", "45", "1.5", "0.75", "0.0083"),  # the canaries
            *("90", "0.55", "0.35", "9.5", "23.4", "17.5", "321", "7321", "54"),  # less noise
            *numbers(summary()),  # the map of faults
        ]


PAGE = (
    "Claimed: ε = 4.12 at δ = 2e-05. {} and has noise of 0.75 clip norms in 1,234 dimensions{}. "
    "Take 66 canaries, each in by a fair coin. With probability 90%, {} see that they are there; "
    "{} notice noise at 61% of the claim (ε = 8.25){}; "
    "19 canaries: you would notice noise at 45% of the claim, as a gate asks{}. "
    "Bound at the claimed ε: 1.5 by coins, proven; k in, k out: 0.75, heuristic. "
    "Accuracy: they add 0.0083 of the variance that the noise has in the model. "
    "Canaries that see less noise with probability 90%, – if no number does: noise, share of the claimed 0.55 0.35 "
    f"its ε 9.5 23.4 {{}} – 321 others' data known 7,321 54 {summary()} "
    "Lines that carry it out; total is round t's clipped sum, delta what it adds:"
)
PAGES = [
    (
        {},
        "Each of 16 rounds draws a client with probability 0.125,",
        "",
        *("17 canaries: you would", "23 canaries: you would", "", "others' norm 17.5, unknown"),
    ),
    (
        {
            "mechanism": accountant.gaussian(0.75, participations=3, rounds=16, neighbours="replace"),
            "data_norm": 0.0,
            "known": True,
            "present": None,
            "seeing": None,
        },
        "A client takes part in 3 of 16 rounds, which the attacker knows,",
        " (neighbours: replace)",
        *["no number of canaries lets you"] * 2,
        *(", if others' updates are known", "others' data unknown"),
    ),
]


@pytest.mark.parametrize(("options", "how", "neighbours", "present", "seeing", "data", "others"), PAGES)
def test_a_plan_says_what_it_plans(options, how, neighbours, present, seeing, data, others):
    words = " ".join(str(made_up(**options)).split())
    room = ", even with as much of others' data as the audit cannot rule out" if not data else ""
    said = PAGE.format(how, neighbours, present, seeing, data, room, others)
    assert words.startswith(f"{said} import canaryproof as cp, numpy as np canaries = ")


GATE = ", confidence=0.99, notice=0.45"
SAMPLED = [
    "import canaryproof as cp, numpy as np",
    "canaries = cp.Canaries(seed=11, count=66, dim=1234)",
    "schedule = cp.bernoulli(0, 0.125, 16, seed=8, canaries=cp.Insertion(66))",
    "clients = cp.CanaryClients(canaries, schedule, noise_multiplier=0.75)",
    "total += clients.total(t, clip_norm)",
    "clients.add(cp.flatten(delta), t)",
    'scores = clients.scores("likelihood")',
    f"print(cp.audit(scores, 2e-05, claim=cp.accounting.poisson(0.75, rate=0.125, rounds=16){GATE}))",
]
KNOWN = [
    *SAMPLED[:2],
    "taken = np.tile(np.arange(16) < 3, (66, 1))",
    "taken = np.random.default_rng(8).permuted(taken, axis=1).T",
    "coins = np.random.default_rng(9).integers(2, size=66) == 1",
    'schedule = cp.fixed_schedule(taken, coins, "coin")',
    "clients = cp.CanaryClients(canaries, schedule)",
    *SAMPLED[4:6],
    'scores = clients.scores("known rounds")',
    f"print(cp.audit(scores, 2e-05, claim=cp.accounting.gaussian(0.75, participations=3){GATE}))",
]
OWN = f"print(cp.audit(scores, 2e-05, claim={{}}, noise_multiplier=0.75{GATE}))"


@pytest.mark.parametrize("taken", [None, 3])
@pytest.mark.parametrize("neighbours", ["add-or-remove", "replace"])
@pytest.mark.parametrize("own", [None, 100.5])
def test_the_lines_have_the_figures_of_the_plan_and_audit_what_it_claims(taken, neighbours, own):
    if taken is None:
        mechanism = accountant.poisson(0.75, rate=0.125, rounds=16, neighbours=neighbours)
    else:
        mechanism = accountant.gaussian(0.75, participations=taken, rounds=16, neighbours=neighbours)
    least = mechanism.epsilon(2e-5)
    planned = made_up(mechanism=mechanism, claim=own or least, noise_epsilon=least)
    lines = planned.commands(seed=11)
    audited = (SAMPLED if taken is None else KNOWN)[-1]
    if neighbours == "replace":
        audited = audited.replace("), conf", ', neighbours="replace"), conf')
    if own is not None:
        audited = OWN.format(
            'cp.accounting.epsilon_delta(100.5, 2e-05, neighbours="replace")' if neighbours == "replace" else "100.5"
        )
    assert list(lines) == [*(SAMPLED if taken is None else KNOWN)[:-1], audited]
    scores, line = trained(planned, 1.0, 11, known=False)
    found = eval(line, {"cp": cp, "scores": scores})
    assert found.claim == pytest.approx(own or least, rel=1e-9)
    assert (found.noise_multiplier, found.delta, found.neighbours) == (0.75, 2e-5, neighbours)


def test_the_lines_of_a_published_plan_write_a_report():
    line = made_up(claim=1.0).commands(file="a b.json")[-1]
    audited = SAMPLED[-1].removeprefix("print(").removesuffix(")")
    assert line == f'{audited}.report("audit.html", plan="a b.json")'


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("row", range(3))
def test_an_audit_of_so_many_notices_the_share_although_their_number_is_random(known, row):
    """The audit knows the number of those that were drawn, which is at least this one with probability 90%."""
    row, rounds, rate = sampled().shares[row], 12, 0.25
    count, draws = (row.count_of_known, rounds) if known else (row.count, 1)
    each = np.full(rounds, rate) if known else rate * (1.0 - rate) ** np.arange(rounds)
    least = stats.binom.ppf(0.1, count * draws, each.sum() / draws)
    assert noticed_share(0.8, np.sqrt(least * each / each.sum()), DIM, 0.025) >= row.share


@pytest.mark.parametrize("data", [0.0, 20.0, 1000.0])
@pytest.mark.parametrize(
    ("taken", "first", "every"), [({"rate": 0.25}, 1.0 - 0.75**12, 3.0), ({"participations": 3}, 1.0, 3.0)]
)
def test_so_many_are_seen_by_what_is_measured_of_each(taken, first, every, data):
    planned = plan_rounds(2.0, DIM, 12, delta=1e-5, data_norm=data, **taken)
    assert planned.known == (data == 1000.0)
    # A trace has the deviation of the noise and of unknown data. Known data leave all rounds and not the first alone.
    square, measured = (4.0, every) if planned.known else (4.0 + data**2 / DIM, first)
    standard_errors = 3.0 + stats.norm.ppf(POWER)
    assert planned.present == math.ceil(standard_errors**2 * square / measured)
    assert planned.count >= max(planned.present, planned.seeing)

    # An honest audit of as many, whose noise is measured one deviation of 90% too small: the most that others' data may
    # be is another deviation off, and at least half of the noise would be noticed.
    def deciding(count):
        lengths = np.full(12, math.sqrt(count * (every if planned.known else first) / 12))
        share = noticed_share(2.0, lengths, DIM, 0.025)
        if planned.known:
            return share >= 0.5
        left = 1.0 / math.sqrt(square) - 2.0 * stats.norm.ppf(0.9) / math.sqrt(count * every)
        return left > 0.0 and share**2 - (1.0 / (2.0 * left)) ** 2 + 1.0 >= 0.25

    # Rounds of unequal length, and numbers that are tried in steps of 5%.
    assert deciding(1.1 * planned.count)
    assert planned.count == max(planned.present, planned.seeing) or not deciding(0.85 * planned.count)


@pytest.mark.parametrize("planned", [once, sampled])
def test_a_planned_audit_of_an_honest_training_mostly_decides(planned):
    """Of 12 each is undecided with probability 15% at most, by its share or an estimate above the claim."""
    open_ones = 0
    for seed in range(12):
        scores, line = trained(planned(), 1.0, seed, False)
        found = cp.audit(scores, 1e-5, claim=planned().mechanism)
        assert "claim=" in line
        open_ones += (found.noticed_share or 0.0) < 0.5
    assert open_ones <= stats.binom.isf(1e-6, 12, 0.15)
