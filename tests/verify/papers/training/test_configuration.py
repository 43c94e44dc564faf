import re
import tomllib
from importlib.resources import files

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from canaryproof.verify.audit.files.errors import InputError
from canaryproof.verify.papers.training import configuration
from canaryproof.verify.papers.training.configuration import SIZES, names, read

VALID = """
title = "Noise"
seed = 3

[data]
format = "digits"
examples_per_client = 5

[model]
name = "two_layer"

[training]
cohort = 20
epochs = 2
client_rate = 0.1
batch_size = 5
server_rate = 1
clip_norm = 0.5
noise_multiplier = 0.1

[canaries]
count = 20

[audit]
delta = 1e-3
"""


@pytest.fixture
def write(tmp_path):
    def to_file(text):
        (tmp_path / "one.toml").write_bytes(text if isinstance(text, bytes) else text.encode())
        return str(tmp_path / "one.toml")

    return to_file


def refusal(path, size="quick"):
    with pytest.raises(InputError) as error:
        read(path, size)
    message = error.value.message
    assert "\n" not in message
    return message.removeprefix(f"{path}: ")


def test_values_and_defaults_are_those_of_the_file(write):
    found = read(write(VALID), "quick")
    assert (found.name, found.size, found.heading.title, found.heading.seed) == ("one.toml", "quick", "Noise", 3)
    assert found.heading.repetitions == 1
    (cell,) = found.cells
    assert cell.swept == {}
    training = cell.settings.training
    assert (training.cohort, training.epochs, training.rounds) == (20, 2, None)
    # A whole number serves where any number does.
    assert (training.server_rate, type(training.server_rate)) == (1.0, float)
    assert cell.settings.canaries.inclusion == "fixed"


def test_tables_of_canaries_may_be_missing_one_at_a_time(write):
    random, canife = "[canaries]\ncount = 20", "[canife]\nevery = 7"
    (cell,) = read(write(VALID), "quick").cells
    assert cell.settings.canife is None
    assert cell.settings.random_canaries.count == 20
    (cell,) = read(write(VALID.replace(random, canife)), "quick").cells
    assert cell.settings.canaries is None
    with pytest.raises(ValueError, match="this table must be there"):
        _ = cell.settings.random_canaries
    # Settings as Section 4 prints them.
    plan = cell.settings.canife
    assert (plan.every, plan.audits, plan.scores, plan.pool, plan.steps) == (7, 1, 100, 512, 2500)
    assert (plan.rate, plan.norm_constant, plan.label, plan.loss) == (1.0, 1.0, "class", "covariance")
    swept = "[[sweep]]\ncanife.pool = [32, 64]\n"
    found = read(write(VALID.replace(random, "") + swept), "quick").cells
    assert [cell.settings.canife.pool for cell in found] == [32, 64]


def test_a_size_replaces_parts_of_tables(write):
    path = write(VALID + "[full]\nrepetitions = 7\ntraining.epochs = 9\n")
    quick, full = (read(path, size) for size in SIZES)
    assert [found.heading.repetitions for found in (quick, full)] == [1, 7]
    assert [found.cells[0].settings.training.epochs for found in (quick, full)] == [2, 9]
    assert full.cells[0].settings.training.cohort == 20


def test_axes_are_combined_and_lists_of_one_axis_go_together(write):
    sweep = """
    [[sweep]]
    training.noise_multiplier = [0.1, 0.2]
    [[sweep]]
    canaries.count = [100, 20, 30]
    canaries.runs = [1, 5, 3]
    """
    found = read(write(VALID + sweep), "full")
    assert found.axes == (("training.noise_multiplier",), ("canaries.count", "canaries.runs"))
    values = [
        (c.settings.training.noise_multiplier, c.settings.canaries.count, c.settings.canaries.runs) for c in found.cells
    ]
    assert values == [(noise, *pair) for noise in (0.1, 0.2) for pair in ((100, 1), (20, 5), (30, 3))]
    assert found.cells[-1].swept == {"training.noise_multiplier": 0.2, "canaries.count": 30, "canaries.runs": 3}


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("seed = 3", "sead = 3", "sead: there is no such field; there are title, source, seed"),
        ("seed = 3", "seed = -1", "seed: must be a whole number from 0 to 9223372036854775807, not -1"),
        ('title = "Noise"', 'title = "a\\nb"', "title: must be a line of at most 1000 characters"),
        ("cohort = 20", "cohort = true", "training.cohort: must be a whole number from 1 to 1000000, not True"),
        ("cohort = 20", "cohort = 2.0", "training.cohort: must be a whole number from 1 to 1000000, not 2.0"),
        ("cohort = 20", "", "training.cohort: is missing"),
        ("clip_norm = 0.5", "clip_norm = nan", "training.clip_norm: must be a number from 1e-06 to 1e+06, not nan"),
        ("clip_norm = 0.5", "clip_norm = inf", "training.clip_norm: must be a number from 1e-06 to 1e+06, not inf"),
        (
            "noise_multiplier = 0.1",
            'noise_multiplier = "0"',
            "training.noise_multiplier: must be a number from 0 to 1e",
        ),
        (
            "noise_multiplier = 0.1",
            "",
            "training.noise_multiplier: this, one_round_epsilon or epsilon must be given, and only",
        ),
        (
            "noise_multiplier = 0.1",
            "noise_multiplier = 0\none_round_epsilon = inf",
            "training.noise_multiplier: this, one_round",
        ),
        (
            "noise_multiplier = 0.1",
            'one_round_epsilon = 3\nnoise = "tree"',
            "training.one_round_epsilon: must be given with independent noise alone",
        ),
        (
            "noise_multiplier = 0.1",
            "epsilon = 3",
            "training.epsilon: must be given with bernoulli alone",
        ),
        (
            "noise_multiplier = 0.1",
            'epsilon = 3\nnoise = "tree"',
            "training.epsilon: must be given with independent noise alone",
        ),
        ("[canaries]\ncount = 20", "", "canaries: this table or canife must be there"),
        ("[canaries]\ncount = 20", "[canaries]", "canaries.count: is missing"),
        ("[canaries]", "[canife]\nscores = 19\n[canaries]", "canife.scores: must be a whole number from 20 to 100000"),
        ("[canaries]", "[canife]\nscore = 19\n[canaries]", "canife.score: there is no such field; there are every, "),
        ("[canaries]", '[canife]\nlabel = "hard"\n[canaries]', "canife.label: must be one of soft, class, not 'hard'"),
        ("[canaries]", "[canife]\nstart = 1\n[canaries]", "canife.start: must be one of noise, sample, not 1"),
        ("[canaries]", "canife = 1\n[canaries]", "training.canife: there is no such field"),
        (
            "noise_multiplier = 0.1",
            'noise_multiplier = 0.1\nnoise = "tree"\n[canife]',
            "canife: must be given with independent noise and a fixed clip norm alone",
        ),
        (
            "noise_multiplier = 0.1",
            "noise_multiplier = 0.1\nclip_quantile = 0.5\n[canife]",
            "canife: must be given with independent noise and a fixed clip norm alone",
        ),
        ("epochs = 2", "epochs = 2\nuntil_accuracy = 0.5", "training.until_accuracy: must not be given with the table"),
        ("epochs = 2", "epochs = 2\nuntil_accuracy = 60", "training.until_accuracy: must be a number from 0 to 1, not"),
        (
            "[canaries]\ncount = 20\n\n[audit]",
            "[canife]\n[audit]\nwithout_canaries = true",
            "audit.without_canaries: must be given with the table canaries alone",
        ),
        ("epochs = 2", "rounds = 2", "training.epochs: must be given with shuffled, and rounds must not"),
        ("epochs = 2", 'epochs = 2\nparticipation = "uniform"', "training.rounds: must be given with uniform, and epo"),
        ("epochs = 2", 'epochs = 2\nserver = "adam"\nmomentum = 0.9', "training.momentum: must not be given with adam"),
        ('"digits"', '"pixels"', "data.format: must be one of digits, idx, leaf, plays, tff, cifar10, not 'pixels'"),
        ("delta = 1e-3", "delta = 1e-3\nwithout_canaries = 1", "audit.without_canaries: must be true or false, not 1"),
        ("[audit]", "[audits]", "audits: there is no such field; there are title, source, seed, repetitions, data"),
        ("[audit]", "[[audit]]", "audit: must be a table, not [{'delta': 0.001}]"),
        ("seed = 3", "seed = 3\nquick = 3", "quick: must be a table, not 3"),
        ("seed = 3", "seed = 3\nunstated = 3", "unstated: must be a list of fields, not 3"),
        (
            "seed = 3",
            "seed = 3\nunstated = [[1]]",
            "unstated[0]: must be a field, such as training.batch_size, not [1]",
        ),
        ("seed = 3", "full.training.cohort = 0", "training.cohort: must be a whole number from 1 to 1000000, not 0"),
        ("[audit]", "[sweep]\n[audit]", "sweep: must be written as [[sweep]], as there may be several"),
        ("[audit]", "[[sweep]]\n[audit]", "sweep[0]: must have lists of one length"),
        (
            "[audit]",
            "[[sweep]]\ncanaries.count = [50]\n[[sweep]]\ncanaries.count = [60]\n[audit]",
            "sweep[1].canaries.count: must not be in two sweeps",
        ),
        (
            "[audit]",
            "[[sweep]]\ncanaries.count = 5\n[audit]",
            "sweep[0].canaries.count: must be a list of values, not 5",
        ),
        (
            "[audit]",
            "[[sweep]]\ncanaries.count = []\n[audit]",
            "sweep[0].canaries.count: must be a list of values, not",
        ),
        (
            "[audit]",
            "[[sweep]]\ncanaries.cound = [9]\n[audit]",
            "canaries.cound: there is no such field; there are cou",
        ),
        (
            "[audit]",
            "[[sweep]]\ncanaries.count = [20, 5]\n[audit]",
            "canaries.count: must be a whole number from 20 to",
        ),
        (
            "[audit]",
            "[[sweep]]\nseed.x = [1]\n[audit]",
            "sweep[0].seed.x: there is no such field; tables are data, mod",
        ),
        ("[audit]", "[[sweep]]\nseed = [1]\n[audit]", "sweep[0].seed: must be a table, not [1]"),
        (
            "[audit]",
            "[[sweep]]\ncanaries.count = [20, 30]\ncanaries.runs = [1]\n[audit]",
            "sweep[0]: must have lists of one length",
        ),
    ],
)
def test_what_breaks_a_rule_is_named_in_one_line(write, before, after, message):
    assert before in VALID
    assert refusal(write(VALID.replace(before, after))).startswith(message)


def test_a_wrong_size_is_refused_whichever_is_asked_for(write):
    path = write(VALID + "[full]\ncanaries.count = 3\n")
    assert refusal(path, "quick") == refusal(path, "full")


def test_the_number_of_cells_is_bounded(write):
    axes = [f"[[sweep]]\ntraining.{name} = {[0.5] * 40}\n" for name in ("noise_multiplier", "clip_norm")]
    assert refusal(write(VALID + "".join(axes))) == "sweep: must have at most 1000 combinations"


def test_a_byte_order_mark_is_skipped(write):
    expected = read(write(VALID), "quick")
    assert read(write(b"\xef\xbb\xbf" + VALID.encode()), "quick") == expected


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b"\xff = 1", "must be text in UTF-8"),
        (b"seed = ", "is not TOML: Invalid value (at end of document)"),
        (b"a = " + 10**4 * b"[", "is nested too deeply"),
        (b"#" * (2**14 + 1), "must have at most 16384 bytes"),
        (b".".join([b"a"] * 8000) + b" = 1", "a: there is no such field"),
        (b"[data]\n" + b".".join([b"format"] * 2000) + b" = 1", "data.format: is nested too deeply"),
        (b"\n".join(b"a%d.b = 1" % i for i in range(1000)), "a0: there is no such field"),
        (VALID.encode() + b"[quick.quick]\nseed = 3\n", "quick.quick: there is no such field"),
        (VALID.encode() + b"[full.quick]\nseed = 3\n", "full.quick: there is no such field"),
        (b"seed = " + 5000 * b"9", "Exceeds the limit"),
    ],
)
def test_damaged_files_are_refused_in_one_line(write, content, message):
    assert refusal(write(content)).startswith(message)


def test_a_file_that_is_not_there_and_an_unknown_name_are_refused(tmp_path):
    assert refusal(str(tmp_path / "none.toml")) == "No such file or directory"
    assert refusal("none").endswith(f"an experiment that comes with the package: {', '.join(names())}")


@pytest.mark.parametrize("name", names())
@pytest.mark.parametrize("size", SIZES)
def test_experiments_that_come_with_the_package_are_valid(name, size):
    found = read(name, size)
    assert found.name == name
    assert found.heading.title
    assert found.heading.source


@pytest.mark.parametrize("name", names())
def test_what_is_unstated_is_listed_and_says_why(name):
    text = (files(configuration.__package__) / "experiments" / f"{name}.toml").read_text()
    table, marked, section = "", set(), ""
    for line in text.splitlines():
        if match := re.fullmatch(r"\[+(.+?)\]+", line):
            section = match[1]
            table = "" if section in ("quick", "full", "quick.sweep", "full.sweep") else f"{section}."
        field, _, rest = line.partition(" = ")
        if "# unstated" in rest and field.isprintable():
            marked.add(table + field)
    listed = set(tomllib.loads(text).get("unstated", []))
    assert marked - {"repetitions", "canaries.presentations"} <= listed, marked - listed
    # A comment above a sweep speaks of all fields in it.
    swept = {
        line.partition(" = ")[0]
        for part in re.findall(r"\n# [^\n]*[Uu]nstated[^\n]*\n((?:[^\n]+\n)+)", text)
        for line in part.splitlines()
    }
    above = {"canaries.participation"} | swept
    assert listed <= marked | above, listed - marked - above


def test_the_list_of_unstated_fields_had_another_name(tmp_path, caplog):
    path = tmp_path / "one.toml"
    path.write_text('ours = ["training.cohort"]\n' + VALID, encoding="utf-8")
    assert read(str(path), "quick").unstated == ("training.cohort",)
    assert caplog.messages == ["ours has left experiment in 0.3: use unstated"]


@given(st.text(max_size=300) | st.text("[].=\"'{}\n1e-#tfrainqusw", max_size=300))
@example("[[sweep]]\n[quick]\n[[quick.sweep]]")
def test_any_text_is_read_or_refused_in_one_line(tmp_path_factory, text):
    path = tmp_path_factory.mktemp("any") / "any.toml"
    for content in (text, VALID + text):
        path.write_text(content, encoding="utf-8", newline="")
        message = ""
        try:
            read(str(path), "quick")
        except InputError as error:
            message = error.message
        assert "\n" not in message
