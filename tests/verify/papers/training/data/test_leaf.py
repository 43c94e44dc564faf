import io
import json
import re
import string
import struct
import zlib
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from made_images import celeba as write
from made_images import glove, leaf_part, sent140, shakespeare
from made_images import tweet as made_tweet
from PIL import Image

from canaryproof.verify.audit.files.errors import InputError
from canaryproof.verify.papers.training.data import leaf
from canaryproof.verify.papers.training.data.tokens import SHAKESPEARE

IMAGES = "raw/img_align_celeba"


def load(folder, side=32):
    return leaf.load(folder, side=side)


def test_images_are_read_when_they_are_asked_for(tmp_path):
    write(tmp_path)
    federation = load(tmp_path)
    assert (federation.name, federation.clients, federation.classes, federation.vocabulary) == ("celeba", 4, 2, None)
    np.testing.assert_array_equal(federation.starts, [0, 4, 8, 12, 16])
    assert (federation.test_inputs.shape, federation.test_inputs.dtype) == ((4, 32, 32, 3), np.float32)
    np.testing.assert_array_equal(federation.test_starts, [0, 4])
    assert [part.shape for part in federation.template] == [(1, 32, 32, 3), (1,)]
    inputs, labels, mask = federation.cohort([2, 0], 5)
    assert (inputs.shape, inputs.dtype, labels.dtype, mask.dtype) == (
        (2, 5, 32, 32, 3),
        np.float32,
        np.int32,
        np.float32,
    )
    np.testing.assert_array_equal(mask, [[1, 1, 1, 1, 0]] * 2)
    np.testing.assert_array_equal(inputs[:, 4], inputs[:, 3])
    given_labels = json.loads(next((tmp_path / "train").iterdir()).read_text())["user_data"]
    np.testing.assert_array_equal(labels[:, :4], [given_labels["3"]["y"], given_labels["1"]["y"]])
    # Bright images smile in the made data.
    np.testing.assert_array_equal(inputs.mean(axis=(2, 3, 4)) > 0.5, labels == 1)
    assert federation.cohort([1], 2)[0].shape == (1, 2, 32, 32, 3)


@pytest.mark.parametrize("side", [32, 84, 178])
def test_the_middle_of_the_image_is_scaled(tmp_path, side):
    write(tmp_path, users=2)
    image = Image.open(tmp_path / IMAGES / "000002.jpg")
    # By another road: a box of the image instead of a cut of the scaled one, to the pixel that rounding may shift.
    height = side * 218 // 178
    top = round((height - side) / 2)
    box = (0, top * 218 / height, 178, (top + side) * 218 / height)
    expected = np.asarray(image.resize((side, side), Image.Resampling.BILINEAR, box=box))
    found = load(tmp_path, side).cohort([0], 2)[0][0, 1] * 255
    np.testing.assert_array_equal(found, np.round(found))
    assert np.abs(found - expected).max() <= 2


def test_the_split_may_be_by_sample_or_left_to_us(tmp_path):
    write(tmp_path, users=2, images=20)
    everybody = {"1": ([f"{i:06d}.jpg" for i in range(1, 21)], [0, 1] * 10), "2": (["000021.jpg"], [1])}
    # Python 2 halves whole numbers.
    leaf_part(tmp_path, "all_data", everybody)
    for part in ("train", "test"):
        (tmp_path / part).rename(tmp_path / f"old {part}")
    federation = load(tmp_path)
    np.testing.assert_array_equal(federation.starts, [0, 18, 19])
    np.testing.assert_array_equal(federation.test_starts, [0, 2])
    np.testing.assert_array_equal(federation.test_labels, [0, 1])
    for part, first in (("train", 0), ("test", 10)):
        leaf_part(tmp_path, part, {"1": (everybody["1"][0][first : first + 10], [0, 1] * 5), "2": everybody["2"]})
    federation = load(tmp_path)
    np.testing.assert_array_equal(federation.starts, [0, 10, 11])
    np.testing.assert_array_equal(federation.test_starts, [0, 10, 11])


def test_held_out_images_are_of_the_first_clients_that_fit(tmp_path, monkeypatch):
    write(tmp_path, users=2)
    part = {f"u{i}": ([f"{j:06d}.jpg" for j in range(1, 4)], [0, 1, 0]) for i in range(3)}
    leaf_part(tmp_path, "test", part)
    for images, held in ((9, 9), (8, 6), (6, 6), (5, 3), (1, 3)):
        monkeypatch.setattr(leaf, "_LARGEST_TEST", images * 12 * 32**2)
        federation = load(tmp_path)
        assert federation.test_starts[-1] == len(federation.test_inputs) == len(federation.test_labels) == held
    monkeypatch.undo()
    # A tenth of CelebA's 202,599 images at LEAF's 84 × 84.
    assert leaf._LARGEST_TEST // (12 * 84**2) > 20_260


def test_the_digest_is_of_the_images(tmp_path):
    write(tmp_path)
    digest = load(tmp_path).digest
    assert load(tmp_path).digest == digest
    assert load(tmp_path, 33).digest != digest
    path = tmp_path / IMAGES / "000001.jpg"
    path.write_bytes((path.parent / "000002.jpg").read_bytes())
    assert load(tmp_path).digest != digest


def test_formats_and_modes(tmp_path):
    write(tmp_path, users=2)
    place = tmp_path / IMAGES
    rng = np.random.default_rng(3)
    grey = rng.integers(0, 256, (40, 50), np.uint8)
    Image.fromarray(grey).save(place / "grey.png")
    leaf_part(tmp_path, "train", {"1": (["grey.png"], [1])})
    image = load(tmp_path, 40).cohort([0], 1)[0][0, 0] * 255
    # Its shorter side is 40 already; the middle is cut out, and there are three equal planes.
    np.testing.assert_array_equal(image, np.repeat(grey[:, 5:45, np.newaxis], 3, axis=2))


def saved(size, form="PNG", **options):
    file = io.BytesIO()
    Image.new("RGB", size, (9, 99, 199)).save(file, form, **options)
    return file.getvalue()


def declared(width, height):
    """A PNG whose header declares a size, and which has a small stream of zeros."""

    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    rows = zlib.compress(bytes(10**6), 9)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


UNREADABLE = "is not a readable JPEG or PNG file ("
SIDES = "its sides must have 16 to 1024 pixels, not "


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "the file is empty"),
        (b"not an image", UNREADABLE + "cannot identify image file"),
        (saved((20, 20), "JPEG")[:-100], UNREADABLE + "Truncated File Read"),
        (saved((40, 40), "JPEG")[:-10], UNREADABLE + "image file is truncated"),
        (saved((20, 20), "PNG")[:-30], UNREADABLE),
        (saved((20, 20), "GIF"), UNREADABLE + "cannot identify image file"),
        (saved((20, 20), "BMP"), UNREADABLE + "cannot identify image file"),
        (saved((20, 20), "TIFF"), UNREADABLE + "cannot identify image file"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 20 20\n", UNREADABLE + "cannot identify image file"),
        (saved((20, 15)), SIDES + "20 × 15"),
        (saved((16, 1025)), SIDES + "16 × 1025"),
        (declared(5000, 5000), SIDES + "5000 × 5000"),
        (declared(10**5, 10**5), UNREADABLE + "Image size (10000000000 pixels) exceeds limit"),
        (declared(1024, 1024), UNREADABLE + "image file is truncated"),
        (declared(20, 0), UNREADABLE),
        (bytes(2**20 + 1), "must have at most 1048576 bytes"),
    ],
)
def test_damaged_images_are_refused(tmp_path, refusal, content, said):
    write(tmp_path, users=2)
    federation = load(tmp_path)
    (tmp_path / IMAGES / "000002.jpg").write_bytes(content)
    assert refusal(lambda _: federation.cohort([0], 4), tmp_path).startswith(f"{IMAGES}/000002.jpg: {said}")


def test_missing_images_are_refused(tmp_path, refusal):
    write(tmp_path, users=2)
    (tmp_path / IMAGES / "000007.jpg").unlink()
    said = f"{IMAGES}: must hold the image 000007.jpg, which a user of the JSON files has"
    assert refusal(load, tmp_path) == said
    (tmp_path / IMAGES / "000007.jpg").mkdir()
    assert refusal(load, tmp_path) == f"{IMAGES}/000007.jpg: must be a regular file"
    (tmp_path / IMAGES).rename(tmp_path / "elsewhere")
    said = ": must hold a folder img_align_celeba, or raw/img_align_celeba, with the images"
    assert refusal(load, tmp_path) == said
    # The folder itself may be a link, as its owner made it, and stand beside the others.
    (tmp_path / "elsewhere" / "000007.jpg").rmdir()
    (tmp_path / "elsewhere" / "000007.jpg").write_bytes((tmp_path / "elsewhere" / "000001.jpg").read_bytes())
    (tmp_path / "img_align_celeba").symlink_to(tmp_path / "elsewhere")
    assert load(tmp_path).cohort([0], 4)[0].shape == (1, 4, 32, 32, 3)


def test_links_out_of_the_folder_are_refused(tmp_path, refusal):
    write(tmp_path, users=2)
    path = tmp_path / IMAGES / "000002.jpg"
    secret = tmp_path.with_name(f"{tmp_path.name}-secret.jpg")
    path.rename(secret)
    path.symlink_to(secret)
    said = f"{IMAGES}/000002.jpg: must not be a link that leads out of {tmp_path}"
    assert refusal(load, tmp_path) == said
    path.unlink()
    path.symlink_to(path.name)
    said = f"{IMAGES}/000002.jpg: Too many levels of symbolic links"
    assert refusal(lambda place: load(place).cohort([0], 2), tmp_path) == said
    path.unlink()
    path.symlink_to("000001.jpg")
    inputs, _, _ = load(tmp_path).cohort([0], 2)
    np.testing.assert_array_equal(inputs[0, 0], inputs[0, 1])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from([saved((20, 20), "JPEG"), saved((20, 20), "PNG")]), st.data())
def test_damaged_bytes_are_read_or_refused(tmp_path, content, data):
    path = tmp_path / "a.jpg"
    damaged = bytearray(content)
    place = data.draw(st.integers(0, len(damaged) - 1))
    damaged[place : place + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=4))
    path.write_bytes(damaged)
    with suppress(InputError):
        assert leaf._decoded(path, 16).shape == (16, 16, 3)


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
        ("{", "line 1, column 2: truncated or damaged, as it is not JSON (Expecting property name"),
        (changed()[:-5], "line 1, column 146: truncated or damaged"),
        ("{} {}", "line 1, column 4: truncated or damaged, as it is not JSON (Extra data"),
        ("[" * 100_000, "is nested too deeply"),
        ("9" * 5000, "Exceeds the limit"),
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
        (user([image(0.5)], [0]).replace("0.5", "NaN"), "is not JSON, which has no number NaN"),
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


SPOKEN = {
    "ann": ([made_tweet("@bob I don't... LOVE it!"), made_tweet("so so bad")], [1, 0]),
    "bob": ([made_tweet("")], [0]),
}
OTHER = {"cyd": ([made_tweet("naïve it :-( #so")], [0])}


def written(folder):
    leaf_part(folder, "train", SPOKEN)
    leaf_part(folder, "test", OTHER)
    return folder


def test_without_vectors_tokens_are_the_words_characters(tmp_path):
    federation = leaf.load(written(tmp_path), 12)
    assert (federation.name, federation.clients, federation.classes) == ("sent140", 2, 2)
    assert (federation.vocabulary, federation.vectors) == (101, None)
    alphabet = string.printable + "_"

    def spelt(row):
        return "".join(alphabet[token] for token in row)

    assert [spelt(row) for row in federation.inputs] == ["bobIdon't...", "sosobad_____", "_" * 12]
    # The ï is not printable ASCII; of ":-(" and "#" nothing is left.
    assert [spelt(row) for row in federation.test_inputs] == ["na_veitso___"]
    np.testing.assert_array_equal(federation.labels, [1, 0, 0])
    np.testing.assert_array_equal(federation.test_starts, [0, 1])
    assert (federation.inputs.dtype, federation.labels.dtype) == (np.int32, np.int32)


def test_with_vectors_tokens_are_words(tmp_path):
    glove(tmp_path / "glove.6B.50d.txt", ["the", "it", "bad", "!", "naïve", "love", "so"], 50)
    federation = leaf.load(written(tmp_path), 6)
    # The words that occur among the first six of a tweet, in the file's order.
    assert (federation.name, federation.classes, federation.vocabulary) == ("sent140", 2, 5)
    assert (federation.vectors.shape, federation.vectors.dtype) == ((5, 50), np.float32)
    assert (federation.vectors[0] == 0).all()
    assert (federation.vectors[1:] != 0).any(axis=1).all()
    # "bob", "I", "don't", ".", ".", "." and no more.
    np.testing.assert_array_equal(federation.inputs, [[0] * 6, [4, 4, 2, 0, 0, 0], [0] * 6])
    np.testing.assert_array_equal(federation.test_inputs, [[3, 1, 4, 0, 0, 0]])
    longer = leaf.load(tmp_path, 25)
    # "LOVE" has no vector, as in LEAF.
    tokens = {"it": 1, "bad": 2, "!": 3, "naïve": 4, "so": 5}
    words = re.findall(r"[\w']+|[.,!?;]", SPOKEN["ann"][0][0][4])
    np.testing.assert_array_equal(longer.inputs[0, : len(words)], [tokens.get(word, 0) for word in words])
    np.testing.assert_array_equal(longer.inputs[0, len(words) :], 0)


def test_vectors_make_a_difference_to_the_digest(tmp_path):
    sent140(tmp_path, dimensions=50)
    digest = leaf.load(tmp_path, 25).digest
    path = tmp_path / "glove.6B.50d.txt"
    text = path.read_text()
    word = text.split("\n")[1]
    path.write_text(text.replace(word, word[:-1] + ("1" if word[-1] != "1" else "2")))
    assert leaf.load(tmp_path, 25).digest != digest
