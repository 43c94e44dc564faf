import io
import json
import struct
import zlib
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from made_images import celeba as write
from made_images import leaf_part
from PIL import Image

from canaryproof.verify.files.reading import InputError
from canaryproof.verify.training.data import leaf

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
    path.rename(tmp_path / "secret.jpg")
    path.symlink_to(tmp_path / "secret.jpg")
    said = f"{IMAGES}/000002.jpg: must be a file in this folder, not a link out of it"
    assert refusal(load, tmp_path) == said
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
