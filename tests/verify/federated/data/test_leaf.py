import json
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from made_images import shakespeare

from canaryproof.verify.files.reading import InputError
from canaryproof.verify.training.data import leaf
from canaryproof.verify.training.data.tokens import SHAKESPEARE


def content(users, **others):
    """A file as LEAF writes it, of lists x and y by user."""
    return {
        "users": list(users),
        "num_samples": [len(y) for _, y in users.values()],
        "user_data": {user: {"x": x, "y": y} for user, (x, y) in users.items()},
        **others,
    }


def put(folder, **parts):
    for name, users in parts.items():
        part, _, number = name.partition("_")
        (folder / part).mkdir(exist_ok=True)
        text = users if isinstance(users, str) else json.dumps(content(users))
        (folder / part / f"all_data_{number}_niid_0_keep_0_{part}_9.json").write_text(text)
    return folder


def image(grey):
    return [grey] * 783 + [1.0]


def tweet(text):
    return ["1467810369", "Mon Apr 06 22:19:45 PDT 2009", "NO_QUERY", "somebody", text, "training"]


WRITERS = {"f0": ([image(0.25), image(0.5)], [61, 3]), "f1": ([image(0)], [0])}
ROLES = {"KING": (["abcd", "bcda"], ["a", "b"]), "FOOL": (["aaaa"], ["d"])}
TWEETS = {"ann": ([tweet("so good"), tweet("so so bad")], [1, 0]), "bob": ([tweet("")], [0])}


def test_femnist(tmp_path):
    federation = leaf.load(put(tmp_path, train_0=WRITERS, train_1={"f2": ([image(1)], [9])}, test_0=WRITERS))
    assert (federation.name, federation.clients, federation.classes, federation.vocabulary) == ("femnist", 3, 62, None)
    assert (federation.inputs.shape, federation.inputs.dtype) == ((4, 28, 28, 1), np.float32)
    np.testing.assert_array_equal(federation.starts, [0, 2, 3, 4])
    np.testing.assert_array_equal(federation.labels, [61, 3, 0, 9])
    np.testing.assert_array_equal(federation.inputs[:, 0, 0, 0], [0.25, 0.5, 0, 1])
    assert federation.inputs[0, -1, -1, 0] == 1
    np.testing.assert_array_equal(federation.test_labels, [61, 3, 0])


def test_shakespeare_predicts_the_character_that_follows(tmp_path):
    federation = leaf.load(put(tmp_path, train_0=ROLES, test_0={"LEAR": (["abéd"], ["é"])}), 3)
    assert (federation.name, federation.clients, federation.classes, federation.vocabulary) == (
        "shakespeare",
        2,
        80,
        80,
    )
    a, b, c, d = (SHAKESPEARE.index(letter) for letter in "abcd")
    np.testing.assert_array_equal(federation.inputs, [[b, c, d], [c, d, a], [a, a, a]])
    np.testing.assert_array_equal(federation.labels, [a, b, d])
    # A character that is not of LEAF's alphabet.
    np.testing.assert_array_equal(federation.test_inputs, [[b, 79, d]])
    np.testing.assert_array_equal(federation.test_labels, [79])
    assert (federation.inputs.dtype, federation.labels.dtype) == (np.int32, np.int32)


def test_shakespeare_split_by_sample_counts_what_it_leaves_out(tmp_path, refusal):
    shakespeare(tmp_path)
    federation = leaf.load(tmp_path)
    np.testing.assert_array_equal(federation.starts, [0, 765, 1530, 2295, 3060])
    np.testing.assert_array_equal(federation.test_starts, [0, 6, 12, 18, 24])
    for count in (78, 80, 1, -1):
        put(tmp_path, test_0=changed(num_samples=[2 + count, 2]))
        assert "x, y and num_samples must be of one length" in refusal(leaf.load, tmp_path)
    [path] = tmp_path.glob("train/*")
    path.write_text(user([tweet("a")], [1], 80))
    assert refusal(leaf.load, tmp_path).endswith(LENGTHS + "1, 1 and 80")


def test_held_out_examples_are_by_their_users_in_either_split(tmp_path):
    other = {"LEAR": (["abcd"] * 3, ["a"] * 3), "TOM": (["abcd"], ["b"])}
    by_user = leaf.load(put(tmp_path, train_0=ROLES, test_0=other), 4)
    np.testing.assert_array_equal(by_user.test_starts, [0, 3, 4])
    by_sample = leaf.load(put(tmp_path, train_0=ROLES, test_0=ROLES), 4)
    np.testing.assert_array_equal(by_sample.test_starts, [0, 2, 3])
    assert by_sample.clients == by_user.clients == 2


@pytest.mark.parametrize("place", ["all", "."])
def test_without_a_test_part_a_tenth_is_held_out(tmp_path, place):
    many = {"f0": ([image(i / 20) for i in range(20)], list(range(20))), "f1": WRITERS["f1"]}
    put(tmp_path, all=many)
    folder = tmp_path / "all"
    if place == "all":
        folder.rename(tmp_path / "all_data")
        folder = tmp_path
    federation = leaf.load(folder)
    np.testing.assert_array_equal(federation.starts, [0, 18, 19])
    np.testing.assert_array_equal(federation.test_labels, [18, 19])


def test_users_that_leaf_dropped_and_other_keys_do_not_count(tmp_path):
    dropped = content(ROLES, hierarchies=["a play"])
    dropped["user_data"] |= {"NOBODY": {"x": [], "y": []}}
    dropped["user_data"]["KING"]["raw"] = "abcdab"
    federation = leaf.load(put(tmp_path, train=json.dumps(dropped), test=ROLES), 4)
    assert federation.clients == 2


def changed(**keys):
    return json.dumps({**content(ROLES), **keys})


def user(x, y, count=None):
    return json.dumps(
        {"users": ["u"], "num_samples": [len(y) if count is None else count], "user_data": {"u": {"x": x, "y": y}}}
    )


LENGTHS = "user 'u': x, y and num_samples must be of one length, not 0: "
PIXELS = "user 'u': x must be lists of 784 numbers between 0 and 1"
IMAGE = "user 'u': x must be names of images such as 000001.jpg, not "
KEYS = "must be an object with lists users and num_samples and an object user_data"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the file is empty"),
        ("{", "is not readable JSON (Expecting property name"),
        (changed()[:-5], "is not readable JSON"),
        ("{} {}", "is not readable JSON (Extra data"),
        ("[" * 100_000, "is nested too deeply"),
        ("9" * 5000, "is not readable JSON (Exceeds the limit"),
        ("[]", "must be an object"),
        ("{}", KEYS),
        (changed(users="KING"), KEYS),
        (changed(users=["KING"]), "users and num_samples must have one length, not 0: 1 and 2"),
        (changed(users=[], num_samples=[]), "users and num_samples must have one length, not 0: 0 and 0"),
        (changed(users=["KING", 7]), "user '7': user_data must have an object for each user"),
        (changed(users=["KING", ["FOOL"]]), "user \"['FOOL']\": user_data must have an object for each user"),
        (changed(users=["KING", "NOBODY"]), "user 'NOBODY': user_data must have an object for each user"),
        (changed(users=["KING", "KING"], num_samples=[2, 2]), "user 'KING': must be named once"),
        (changed(user_data={"KING": [], "FOOL": []}), "user 'KING': user_data must have an object"),
        (changed(user_data={"KING": {"x": []}}), "user 'KING': must have lists x and y"),
        (user([], []), LENGTHS + "0, 0 and 0"),
        (user(["abcd"], ["a", "b"]), LENGTHS + "1, 2 and 2"),
        (user(["abcd"], ["a"], 2), LENGTHS + "1, 1 and 2"),
        (user(["abcd"], ["a"], "1"), LENGTHS + "1, 1 and 1"),
        (user(["abcd", 1], ["a", "b"]), "user 'u': x must be strings"),
        (user(["abcd"], ["ab"]), "user 'u': y must be single characters"),
        (user(["abcd"], [1]), "user 'u': y must be single characters"),
        (user([image(0.5), image(1.5)], [0, 0]), PIXELS),
        (user([image(-0.1)], [0]), PIXELS),
        (user([image(0.5)[1:]], [0]), PIXELS),
        (user([image(0.5), [0.5]], [0, 0]), PIXELS),
        (user([[0.5, *["0.5"] * 783]], [0]), PIXELS),
        (user([[None] * 784], [0]), PIXELS),
        (user([[10**400] * 784], [0]), PIXELS),
        (user([0.5], [0]), PIXELS),
        (user([{"a": 1}], [0]), PIXELS),
        (user([image(0.5)], [0]).replace("0.5", "NaN"), "is not readable JSON (NaN is not a number)"),
        (user([image(0.5)], [0]).replace("0.5", "1e999"), PIXELS),
        (user([image(0.5)], [62]), "user 'u': y must be whole numbers from 0 to 61, not 62"),
        (user([image(0.5)], [-1]), "user 'u': y must be whole numbers from 0 to 61, not -1"),
        (user([image(0.5)], [True]), "user 'u': y must be whole numbers from 0 to 61, not True"),
        (user([image(0.5)], ["3"]), "user 'u': y must be whole numbers from 0 to 61, not 3"),
        (user([tweet("a")], [4]), "user 'u': y must be whole numbers from 0 to 1, not 4"),
        (user([tweet("a")[:4]], [1]), "user 'u': x must be lists of strings: id, date, query, user and text"),
        (user([tweet("a"), tweet(5)], [1, 1]), "user 'u': x must be lists of strings"),
        (user([tweet("a"), "abcd"], [1, 1]), "user 'u': x must be lists of strings"),
        (user(["../1.jpg"], [1]), IMAGE + "'../1.jpg'"),
        (user(["/etc/1.jpg"], [1]), IMAGE + "'/etc/1.jpg'"),
        (user(["1.jpg", "..\\2.jpg"], [1, 1]), IMAGE + "'..\\\\2.jpg'"),
        (user(["1.jpg", ".2.jpg"], [1, 1]), IMAGE + "'.2.jpg'"),
        (user(["1.jpg", "a\0.jpg"], [1, 1]), IMAGE + "'a\\x00.jpg'"),
        (user(["1.jpg", "2.jpg\n"], [1, 1]), IMAGE + "'2.jpg\\n'"),
        (user(["1.jpg", "2.gif"], [1, 1]), IMAGE + "'2.gif'"),
        (user(["1.jpg", 2], [1, 1]), IMAGE + "'2'"),
        (user(["1.jpg"], [2]), "user 'u': y must be whole numbers from 0 to 1, not 2"),
        (user(["1.jpg"], [0.5]), "user 'u': y must be whole numbers from 0 to 1, not 0.5"),
        (user(["1.jpg"], ["1"]), "user 'u': y must be whole numbers from 0 to 1, not 1"),
    ],
)
def test_other_files_are_refused(tmp_path, refusal, text, said):
    [path] = put(tmp_path, train=text, test=ROLES).glob("train/*")
    assert refusal(leaf.load, tmp_path, 4).startswith(f"train/{path.name}: {said}")


def test_other_folders_are_refused(tmp_path, refusal):
    assert refusal(leaf.load, tmp_path, 0) == ": length must be at least 1, not 0"
    assert refusal(leaf.load, tmp_path) == ": must hold .json files"
    put(tmp_path, train_0=ROLES)
    assert refusal(leaf.load, tmp_path) == "test: must be a folder"
    put(tmp_path, test=WRITERS)
    assert refusal(leaf.load, tmp_path) == ": train and test must be of one data set, not shakespeare and femnist"
    put(tmp_path, train_1=TWEETS)
    assert refusal(leaf.load, tmp_path) == "train: must hold one data set, not sent140, shakespeare"
    assert refusal(leaf.load, tmp_path / "test") == ": must have a folder test, or a user with ten examples"


def test_bytes_that_are_not_text_are_refused(tmp_path, refusal):
    [path] = put(tmp_path, train=ROLES, test=ROLES).glob("test/*")
    path.write_bytes(b'{"users": "\xff"}')
    assert refusal(leaf.load, tmp_path) == f"test/{path.name}: must be text in UTF-8"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["x", "y", "u"]), inner, max_size=3),
    max_leaves=6,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_json_is_read_or_refused(tmp_path, data):
    given_content = json.loads(user(["abcd"], ["a"]))
    place = data.draw(st.sampled_from(["users", "num_samples", "user_data", "x", "y", "u"]))
    holder = given_content["user_data"]["u"] if place in "xy" else given_content["user_data"]
    (given_content if place in given_content else holder)[place] = data.draw(JSON)
    put(tmp_path, train=json.dumps(given_content), test=ROLES)
    with suppress(InputError):
        leaf.load(tmp_path, 4)
