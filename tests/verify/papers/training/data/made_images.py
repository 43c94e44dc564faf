"""Tiny data sets in exactly the formats of CIFAR-10 and LEAF's CelebA, Sent140 and Shakespeare, with made content."""

import json

import numpy as np
from PIL import Image

BATCHES = (*(f"data_batch_{i}" for i in range(1, 6)), "test_batch")
WORDS = ("so", "good", "bad", "I", "love", "it", "don't", "!", "www", "?")
GLOVE = "glove.6B.50d.txt"


def cifar10_batches(images=4, seed=1):
    """Labels and images, 3,072 bytes each, of all batches by name."""
    rng = np.random.default_rng(seed)
    return {
        name: (rng.integers(0, 10, images, np.uint8), rng.integers(0, 256, (images, 3072), np.uint8))
        for name in BATCHES
    }


def cifar10_binary(folder, images=4, seed=1):
    """Write the binary distribution of CIFAR-10."""
    for name, (labels, pixels) in cifar10_batches(images, seed).items():
        (folder / f"{name}.bin").write_bytes(np.column_stack([labels, pixels]).tobytes())


def leaf_part(folder, part, users, **others):
    """Write a file of LEAF's, of lists x and y by user."""
    content = {
        "users": list(users),
        "num_samples": [len(y) for _, y in users.values()],
        "user_data": {user: {"x": x, "y": y} for user, (x, y) in users.items()},
        **others,
    }
    (folder / part).mkdir(parents=True, exist_ok=True)
    (folder / part / f"all_data_0_0_keep_0_{part}_9.json").write_text(json.dumps(content))


def celeba(folder, users=5, images=4, seed=1):
    """Write LEAF's CelebA, split by user: the last user is held out."""
    rng = np.random.default_rng(seed)
    place = folder / "raw" / "img_align_celeba"
    place.mkdir(parents=True)
    everybody = {}
    for user in range(users):
        names = [f"{user * images + i + 1:06d}.jpg" for i in range(images)]
        labels = rng.integers(0, 2, images)
        for name, label in zip(names, labels, strict=True):
            coarse = rng.integers(0, 128, (6, 5, 3), np.uint8) + np.uint8(127 * label)
            Image.fromarray(coarse).resize((178, 218), Image.Resampling.BICUBIC).save(place / name, quality=90)
        # LEAF halves the attribute −1 or 1 plus one.
        everybody[str(user + 1)] = (names, (labels / 1).tolist())
    held_out = {str(users): everybody.pop(str(users))}
    leaf_part(folder, "train", everybody)
    leaf_part(folder, "test", held_out)


def tweet(text, user="somebody"):
    return ["1467810369", "Mon Apr 06 22:19:45 PDT 2009", "NO_QUERY", user, text, "training"]


def sent140(folder, users=5, tweets=4, dimensions=None, seed=1):
    """Write LEAF's Sent140, split by user, and, with dimensions, GloVe's vectors of most of its words beside it."""
    rng = np.random.default_rng(seed)
    everybody = {}
    for user in range(users):
        words = rng.integers(0, len(WORDS), (tweets, 6))
        texts = [tweet(" ".join(WORDS[i] for i in row), f"user{user}") for row in words]
        everybody[f"user{user}"] = (texts, [int(2 * (row == 1).sum() >= (row == 2).sum()) for row in words])
    held_out = {f"user{users - 1}": everybody.pop(f"user{users - 1}")}
    leaf_part(folder, "train", everybody)
    leaf_part(folder, "test", held_out)
    if dimensions:
        glove(folder / f"glove.6B.{dimensions}d.txt", ("the", *WORDS[:8]), dimensions, seed)


def glove(path, words, dimensions, seed=1):
    """Write vectors as GloVe's files have them."""
    vectors = np.random.default_rng(seed).normal(0, 0.4, (len(words), dimensions))
    lines = (" ".join([word, *(f"{x:.5g}" for x in row)]) for word, row in zip(words, vectors, strict=True))
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def shakespeare(folder, users=4, examples=850, seed=1):
    """Write LEAF's Shakespeare, split by sample: 79 examples overlap, and are left out and counted."""
    rng = np.random.default_rng(seed)
    train, test = {}, {}
    first, overlap = int(0.9 * examples), 79
    for user in range(users):
        words = " ".join(rng.choice(["thou", "art", "King,", "O", "fie!", "the"], 80 + examples))
        texts = [words[i : i + 80] for i in range(examples)]
        labels = [words[i + 80] for i in range(examples)]
        train[f"A_PLAY_ROLE{user}"] = (texts[:first], labels[:first])
        test[f"A_PLAY_ROLE{user}"] = (texts[first + overlap :], labels[first + overlap :])
    plays = {"hierarchies": ["A_PLAY"] * users}
    leaf_part(folder, "train", train, **plays)
    leaf_part(folder, "test", test, num_samples=[examples - first] * users, **plays)
