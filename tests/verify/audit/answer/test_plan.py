import dataclasses
import math
from functools import cache, partial

import numpy as np
import pytest
from scipy import stats

from canaryproof.kernels import gaussian_mechanism
from canaryproof.verify.audit.answer import plan as module
from canaryproof.verify.audit.answer.designs import DesignBounds, coins_for, design_bounds
from canaryproof.verify.audit.answer.misuse import misuse, visible_trace
from canaryproof.verify.audit.answer.plan import AuditPlan, PlannedFault, plan
from canaryproof.verify.audit.blindspots.fault_map import summary
from canaryproof.verify.audit.bounds.catalogue import METHODS
from canaryproof.verify.audit.bounds.lower_bound import prepare
from canaryproof.verify.audit.estimators.noise_multiplier import noticed_share
from canaryproof.verify.audit.levels import LEVEL, POWER
from tests.printed import numbers


# Made when a test first needs them: planning takes longer than all else that collecting the tests does.
@cache
def usual():
    return plan(1.54, 100_000)


@cache
def all_rounds():
    """Four rounds, all of which the attacker sees."""
    return plan(1.54, 100_000, 4, claim=3.1, all_rounds=True)


def count(name, value):
    return next(fault.count for fault in usual().faults if (fault.name, fault.value) == (name, value))


def test_it_lists_faults_of_a_release_whose_epsilon_is_above_the_claimed_one():
    assert {fault.name for fault in usual().faults} >= {"less-noise", "dilution", "unclipped", "few-states"}
    assert all(fault.epsilon > usual().claim for fault in usual().faults)
    assert usual().claim == pytest.approx(float(gaussian_mechanism.epsilon(1e-6, 1.54)))
    assert len(usual().to_frame()) == len(usual().faults)
    assert list(usual().to_frame()["count"].isna()) == [fault.count is None for fault in usual().faults]


def test_what_no_number_sees():
    assert count("unclipped", 100.0) is None
    assert count("low-rank", 0.001) is None
    assert count("dilution", 4.0) is None
    assert count("less-noise", 0.5) < count("dilution", 0.25) < count("less-noise", 0.9)


def faulty_release(name, value, dim, rng):
    """A release with a fault, without its canaries."""
    noise = 1.54 * rng.standard_normal(dim)
    if name == "less-noise":
        return value * noise
    if name == "dilution":
        data = rng.standard_normal(dim)
        return 0.5 * noise + 1.54 * math.sqrt(value * dim) * data / np.linalg.norm(data)
    return noise * (np.arange(dim) >= value * dim)


@pytest.mark.deep(every=2)
@pytest.mark.parametrize(
    ("name", "value"),
    [("less-noise", 0.5), ("less-noise", 0.75), ("dilution", 0.25), ("no-noise-on-a-share", 0.5)],
)
def test_so_many_canaries_notice_a_fault_with_the_stated_probability(name, value):
    dim, runs, rng = 10_000, 400, np.random.default_rng(3)
    planned = plan(1.54, dim)
    needed = next(fault.count for fault in planned.faults if (fault.name, fault.value) == (name, value))
    critical, noticed = stats.nct.isf(0.025, dim - 1, math.sqrt(needed) / 1.54), 0
    for _ in range(runs):
        # The sum of the canaries points in a random direction.
        direction = rng.standard_normal(dim)
        direction /= np.linalg.norm(direction)
        released = math.sqrt(needed) * direction + faulty_release(name, value, dim, rng)
        cosine = float(direction @ released) / float(np.linalg.norm(released))
        noticed += math.sqrt((dim - 1) / (1.0 - cosine**2)) * cosine > critical
    assert stats.binomtest(noticed, runs, POWER).pvalue > LEVEL


def test_the_plans_canaries_are_noticed_if_they_are_absent():
    rng, runs = np.random.default_rng(1), 200
    norm = math.sqrt(usual().release_noise ** 2 * usual().dim + usual().present)
    noticed = 0
    for _ in range(runs):
        cosines = rng.standard_normal(usual().present) / math.sqrt(usual().dim)
        noticed += "absent" in [one.kind for one in misuse(cosines, None, usual().dim, release_norm=norm)]
    assert stats.binomtest(noticed, runs, POWER).pvalue > LEVEL


def test_noise_adds_up_over_rounds():
    several, one = plan(0.5, 100_000, rounds=16, claim=3.0), plan(2.0, 100_000, claim=3.0)
    assert several.release_noise == one.release_noise
    assert several.faults == one.faults
    assert several.noise_share == one.noise_share == several.count / (4.0 * 100_000)


def test_for_replacing_a_record_the_distance_is_doubled():
    planned, half = plan(1.54, 100_000, neighbours="replace"), plan(0.77, 100_000)
    assert planned.claim == half.claim
    assert planned.release_epsilon == half.release_epsilon
    # Noise is tested, whoever the neighbours are: the same share of it takes as many canaries.
    counts = {(fault.name, fault.value): fault.count for fault in planned.faults}
    for fault in usual().faults:
        if fault.name == "normalised-after-noise":
            # The number of clients is the same for both neighbours.
            assert (fault.name, fault.value) not in counts
        else:
            assert counts[fault.name, fault.value] == fault.count
    truths = {(fault.name, fault.value): fault.epsilon for fault in half.faults}
    assert all(fault.epsilon == truths[fault.name, fault.value] for fault in planned.faults)
    # ε of twice the claim is that of a share of half the noise.
    twice = float(gaussian_mechanism.noise_multiplier(2.0 * planned.claim, planned.delta))
    assert planned.short_noise == pytest.approx(2.0 * twice / 1.54, rel=1e-12)
    assert planned.commands()[-1].endswith("--noise-multiplier 1.54 --neighbours replace")
    assert "neighbours: replace. The release" in " ".join(str(planned).split())
    assert "replace" not in str(usual())


def bounds_of_rounds(share, count, runs):
    """Bounds by coins from the largest cosines over four rounds with a share of the claimed noise."""
    rng = np.random.default_rng(count)
    z = rng.standard_normal((2, runs, count, all_rounds().rounds))
    z[0, ..., 0] += 1.0 / (share * 1.54)
    scores = prepare(*z.max(axis=-1), inclusion="coin")
    return METHODS["one-run"].values(scores, all_rounds().delta, 0.05)[0]


def quarter_of_noise(planned):
    return next(one.count for one in planned.faults if (one.name, one.value) == ("less-noise", 0.25))


@pytest.mark.deep
@pytest.mark.parametrize(
    ("share", "above", "needed"),
    [pytest.param(1.0, 0.0, lambda planned: planned.present, marks=pytest.mark.deep), (0.25, 3.1, quarter_of_noise)],
)
def test_so_many_canaries_of_all_rounds_raise_an_alarm(share, above, needed):
    runs, count = 60, needed(all_rounds())
    for size, enough in ((count, True), (count // 3, False)):
        seen = int((bounds_of_rounds(share, size, runs) > above).sum())
        # Their probability is at least what is stated, and not so for a third of them.
        assert (stats.binom.cdf(seen, runs, POWER) > LEVEL) == enough


def test_all_rounds_have_a_claim_and_commands_of_their_own():
    assert all_rounds().release_noise == 1.54
    assert all_rounds().count == max(one for one in (all_rounds().present, all_rounds().seeing) if one is not None)
    assert all_rounds().noise_share == 0.5 * all_rounds().total / (1.54**2 * 4 * 100_000)
    assert f"OrthonormalCanaries(seed=7, count={all_rounds().total}, dim=100000)" in all_rounds().commands()[1]
    # Beyond what a transform holds. No number of scores exceeds this claim, so that the faults take no time.
    assert "= cp.Canaries(" in plan(1.54, 10**9, 4, claim=20.0, all_rounds=True).commands()[1]
    asked = "--inclusion coin --dim 100000 --delta 1e-06 --noise-multiplier 1.54 --claim 3.1"
    assert all_rounds().commands()[-1] == f"canaryproof audit rounds.npz {asked}"


@pytest.mark.deep
def test_more_rounds_hide_more():
    few, many = (plan(1.0, 10**6, rounds, claim=6.0, all_rounds=True) for rounds in (1, 100))
    assert few.present < many.present
    quarter = [next(one.count for one in plan.faults if one.value == 0.25) for plan in (few, many)]
    assert quarter[0] < quarter[1]


@pytest.mark.parametrize(
    "make",
    [
        usual,
        all_rounds,
        partial(plan, 0.05, 10**12, 10**6, claim=20.0),
        partial(plan, 10**6, 10**4, 1000, 1e-12, claim=0.001),
        pytest.param(partial(plan, 1.0, 10**6, 500, claim=3.0), marks=pytest.mark.deep),
        pytest.param(partial(plan, 0.01, 10**12, 10**9, claim=10**4, all_rounds=True), marks=pytest.mark.deep),
    ],
)
def test_it_is_a_page_of_80_columns(make):
    lines = str(make()).splitlines()
    assert len(lines) <= 41
    assert max(map(len, lines)) <= 80
    assert all("None" not in line for line in lines)


def test_equal_arguments_give_an_equal_plan():
    first = usual()
    module._count.cache_clear()
    again = plan(1.54, 100_000)
    assert dataclasses.replace(again, seconds=0.0) == dataclasses.replace(first, seconds=0.0)
    assert usual().seconds > 0.0


@pytest.mark.parametrize("dim", [1000, 100_000])
def test_no_fewer_canaries_than_planned_show_that_they_are_there(dim):
    planned = plan(1.54, dim)

    assert 1.0 / planned.release_noise >= visible_trace(planned.present)
    assert 1.0 / planned.release_noise < visible_trace(planned.present - 1)


def made_up(**options):
    """A plan of which no two figures are equal."""
    fault = PlannedFault("less-noise", "less noise", "share", 0.55, 9.5, 321)
    return AuditPlan(
        **{
            "noise_multiplier": 0.75,
            "rounds": 16,
            "dim": 12_345,
            "delta": 2e-5,
            "all_rounds": False,
            "neighbours": "add-or-remove",
            "claim": 4.125,
            "release_noise": 3.0,
            "release_epsilon": 1.375,
            "directions": "independent",
            "seeing": 230,
            "short_noise": 0.619,
            "present": 170,
            "deciding": 150,
            "notice": 0.45,
            "count": 229,
            "noise_share": 0.0083,
            "seconds": 5.5,
            "faults": (fault, dataclasses.replace(fault, value=0.65, count=None)),
            "total": 517 if options.get("all_rounds") else 229,
            "designs": DesignBounds(1.5, 0.75) if options.get("all_rounds") else None,
        }
        | options
    )


def test_the_commands_have_the_figures_of_the_plan():
    for rounds in (1, 16):
        *_, command = made_up(rounds=rounds).commands()
        assert command == (
            "canaryproof audit release.npy --canaries 229 --canary-seed 7 --delta 2e-05 --noise-multiplier 3 "
            "--claim 4.125 --notice 0.45"
        )
    # The ε of the noise itself follows from it, and is no claim of its own.
    *_, command = made_up(rounds=1, claim=1.0, release_epsilon=1.0).commands()
    assert command.endswith("--delta 2e-05 --noise-multiplier 3 --notice 0.45")
    *_, command = made_up(confidence=0.999, notice=0.5).commands()
    assert command.endswith("--claim 4.125 --confidence 0.999")
    *_, command = made_up(rounds=1).commands("SEED", "a plan.json")
    assert command == "canaryproof audit release.npy --plan 'a plan.json' --report audit.html"
    *_, command = made_up(all_rounds=True).commands()
    assert command == (
        "canaryproof audit rounds.npz --inclusion coin --dim 12345 --delta 2e-05 --noise-multiplier 3 --claim 4.125 "
        "--notice 0.45"
    )
    made = made_up(rounds=1).commands()[0]
    assert made == "canaryproof canaries --seed 7 --count 229 --dim 12345 --out canaries.npy"
    for directions, name in (("independent", "Canaries"), ("orthonormal", "OrthonormalCanaries")):
        for all_rounds, count in ((False, 229), (True, 517)):
            commands = made_up(all_rounds=all_rounds, directions=directions).commands()
            assert commands[1] == f"canaries = cp.{name}(seed=7, count={count}, dim=12345)"
            assert ("--directions orthonormal" in commands[-1]) == (directions == "orthonormal" and not all_rounds)


def test_the_commands_insert_each_canary_in_one_round():
    coins = np.random.default_rng(0).integers(2, size=517) == 1
    for all_rounds, members in ((False, np.arange(229)), (True, np.flatnonzero(coins))):
        (inserted,) = (line for line in made_up(all_rounds=all_rounds).commands() if line.startswith("total += "))
        indices = inserted.removeprefix("total += clip_norm * canaries.sum(").removesuffix(")")
        everybody = [index for t in range(16) for index in eval(indices, {"np": np, "t": t, "coins": coins}).tolist()]
        assert sorted(everybody) == members.tolist()


def test_each_figure_of_the_page_is_the_plans():
    page = str(made_up())
    above, below = page.split("Lines that carry it out")
    assert numbers(above) == [
        *("4.12", "2e-05", "16", "3", "12345", "1.38"),  # what is claimed
        *("229", "90", "170", "230", "61", "8.25", "150", "45"),  # the canaries
        *("0.0083", f"{0.75 * math.sqrt(1.0083):.7g}", "0.75", "5.5"),  # their cost
        *("90", "0.55", "321", "0.65"),  # the faults
        *numbers(summary()),  # the map of faults
    ]
    assert all(" ".join(line.split()) in " ".join(below.replace("\\", "").split()) for line in made_up().commands())
    assert numbers(str(made_up(all_rounds=True)))[:17] == [
        *("4.12", "2e-05", "16", "3", "12345", "1.38"),
        *("517", "90", "170", "0", "230", "61", "8.25", "150", "45"),
        *("1.5", "0.75"),
    ]


# What a made-up plan says, whose figures stand there once.
CLAIMED = "Claimed: ε = 4.12 at δ = 2e-05"
NOISE = "has noise of 3 canary norms in 12,345 dimensions: ε = 1.38 for a client who takes part once."
SHARE = (
    "noise at 61% of the claim (ε = 8.25); 150 canaries: you would notice noise at 45% of the claim, as a gate asks."
)
COST = (
    "Accuracy: they add 0.0083 to the noise's variance, k/(σ²Td), as would a noise multiplier of "
    f"{0.75 * math.sqrt(1.0083):.7g} instead of 0.75. Time: 5.5 s to make them and score"
)
DESIGNS = "Bound at the claimed ε: 1.5 by coins, proven; k in, k out: 0.75, heuristic."
FAULTS = (
    "Canaries that see a fault with probability 90%, – if no number does: "
    "noise, share of the claimed 0.55: 321, 0.65: –"
)
PAGES = [
    (
        {},
        f"{CLAIMED}. The release, one noisy sum of 16 rounds, {NOISE} If it is the change of a model, plan it "
        "with --difference or cp.plan_rounds. Take 229 canaries. With probability 90%, "
        "170 canaries: you would notice that they are missing from the release; "
        f"230 canaries: you would notice {SHARE} {COST} the release (part measured here). {FAULTS} {summary()} "
        "Lines that carry it out; total is round t's clipped sum, noisy that with noise:",
    ),
    (
        {"rounds": 1, "neighbours": "replace", "seeing": None},
        f"{CLAIMED}, neighbours: replace. The release, one noisy sum, {NOISE} If it is the change of a model, plan it "
        "with --difference or cp.plan_rounds. Take 229 canaries. With probability 90%, "
        "170 canaries: you would notice that they are missing from the release; "
        f"no number of canaries lets you notice {SHARE} {COST} the release (part measured here). {FAULTS} {summary()} "
        "Lines that carry it out:",
    ),
    (
        {"all_rounds": True, "directions": "orthonormal"},
        f"{CLAIMED}. Each of 16 rounds, all of which the attacker sees, {NOISE} "
        "Take 517 orthonormal canaries, each in by a fair coin. "
        "With probability 90%, 170 canaries: you would see that they are there (lower bound above 0); "
        f"230 canaries: you would notice {SHARE} {DESIGNS} {COST} all rounds (part measured here). {FAULTS} "
        f"{summary()} "
        "Lines that carry it out; total is round t's clipped sum, delta what it adds:",
    ),
]


@pytest.mark.parametrize(("options", "said"), PAGES)
def test_a_plan_says_what_it_plans(options, said):
    planned = made_up(**options)
    words = " ".join(str(planned).split())
    assert words.startswith(f"{said} ")
    carried_out = " ".join(" ".join(line.split()) for line in planned.commands())
    assert words.removeprefix(f"{said} ").replace("\\ ", "") == carried_out


@pytest.mark.parametrize("count", [2, 3, 229, 10**6])
def test_no_fewer_coins_let_so_many_take_part_with_99_percent(count):
    total = coins_for(count)
    assert stats.binom.sf(count - 1, total, 0.5) >= 0.99 > stats.binom.sf(count - 1, total - 1, 0.5)


@pytest.mark.parametrize("rounds", [1, 4])
def test_the_bounds_of_both_designs_are_about_the_median_audits(rounds):
    """The deviation of the quotient of both medians is at most 4%, and 20% is five of it."""
    count, trace = 100, 1.0 / float(gaussian_mechanism.noise_multiplier(8.0, 1e-5))
    found = design_bounds(count, 8.0, 1e-5, 0.95, rounds)
    z = np.random.default_rng(6).standard_normal((2, 200, count, rounds))
    z[0, ..., 0] += trace
    for value, name, inclusion in ((found.coins, "one-run", "coin"), (found.halves, "fixed-sequence", "fixed")):
        values = METHODS[name].values(prepare(*z.max(axis=-1), inclusion=inclusion), 1e-5, 0.05)[0]
        assert value == pytest.approx(np.median(values), rel=0.2)


def test_the_time_is_what_was_measured_of_all_coordinates_and_rounds(monkeypatch):
    def measured(seconds):
        clock = iter([0.0, seconds])
        monkeypatch.setattr(module.time, "perf_counter", lambda: next(clock))

    measured(0.5)
    # Three times the coordinates that were measured, in as many rounds as are scored at once.
    assert module._seconds(3.0 * 2**22, 1) == pytest.approx(1.5)
    measured(0.5)
    # Of 70 rounds, 32 are scored at once.
    assert module._seconds(2.0 * 2**22, 70) == pytest.approx(3.0)
    measured(0.6)
    # Three sums of a transform of 2¹⁷ coordinates; 5 sums and one score of 2²⁰.
    assert module._transform_seconds(2**20, 5) == pytest.approx(0.2 * 6 * 8 * 20 / 17)


def test_the_time_is_that_of_the_canaries_in_all_their_rounds(monkeypatch):
    for name in ("_count", "_count_in_rounds"):
        monkeypatch.setattr(module, name, lambda *_, **__: 234)
    monkeypatch.setattr(module, "_seconds", lambda coordinates, rounds: (coordinates, rounds))
    monkeypatch.setattr(module, "_transform_seconds", lambda dim, rounds: (dim, rounds))
    assert plan(1.0, 10_000, 4, delta=1e-4).seconds == (234 * 10_000, 1)
    # Each round is summed up, and scored; the first score is counted with the sums.
    assert plan(1.0, 10_000, 4, delta=1e-4, claim=8.0, all_rounds=True).seconds == (10_000, 7)
    monkeypatch.setattr(module, "_LARGEST_TRANSFORM", 9999)
    assert plan(1.0, 10_000, 4, delta=1e-4, claim=8.0, all_rounds=True).seconds == (coins_for(234) * 10_000, 4)


def test_faults_that_no_number_sees_stand_with_their_values():
    fault = PlannedFault("unclipped", "no clipping", "norm", 23.5, 9.5, None)
    (row,) = (line for line in str(made_up(faults=(fault,))).splitlines() if "client's norm" in line)
    assert numbers(row) == ["23.5"]
    (row,) = (
        line
        for line in str(made_up(faults=(fault, dataclasses.replace(fault, value=57.5)))).splitlines()
        if "client's norm" in line
    )
    assert numbers(row) == ["23.5", "57.5"]


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (5.55, "5.5 s"),
        (99.6, "100 s"),
        (119.0, "119 s"),
        (150.0, "2 minutes"),
        (4.2 * 3600.0, "4 hours"),
        (12.6 * 86400.0, "13 days"),
    ],
)
def test_time_is_in_its_largest_unit(seconds, shown):
    assert f"Time: {shown} to make them" in str(made_up(seconds=seconds))


def test_a_claim_below_that_of_the_noise_is_refused_with_both():
    private = float(gaussian_mechanism.epsilon(1e-6, 1.54))
    with pytest.raises(ValueError, match=r"^claim: ") as caught:
        plan(1.54, 100_000, claim=1.25)
    assert numbers(str(caught.value)) == [f"{private:.4g}", "1.25", f"{private:.4g}"]


@pytest.mark.parametrize("dim", [1000, 100_000])
@pytest.mark.parametrize("share", [0.9, 0.75, 0.5])
def test_a_release_of_so_many_notices_the_share_although_their_sums_length_is_random(dim, share):
    """The audit knows the length of the sum, which is at least this one with probability 90%."""
    planned = usual() if dim == 100_000 else plan(1.54, dim)
    (count,) = (fault.count for fault in planned.faults if (fault.name, fault.value) == ("less-noise", share))
    # The square is k, and two times the cosine of each pair, whose variance is 1/d.
    least = count - stats.norm.ppf(0.9) * 2.0 * math.sqrt(0.5 * count * (count - 1) / dim)
    assert noticed_share(1.54, np.array([math.sqrt(least)]), dim, 0.025) >= share
