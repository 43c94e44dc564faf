import re
from importlib.resources import files

import numpy as np
from scipy import special

from canaryproof.verify.audit.blindspots import mechanisms
from canaryproof.verify.audit.blindspots.mechanisms import MECHANISMS, AtlasClaim
from canaryproof.verify.papers.suites.blindspots import CHECKS

TEXT = (files("canaryproof.proofs_check") / "blind_spots.md").read_text()


def test_every_mechanism_has_its_truth_told():
    told = set(re.findall(r"`([a-z-]+)`", TEXT))
    assert set(MECHANISMS) <= told


def test_checks_named_are_there():
    for pattern in re.findall(r"`(blindspots\.[a-z.-]+)\*?`", TEXT):
        assert any(check.id.startswith(pattern) for check in CHECKS), pattern


def test_the_long_clients_number_is_the_lemmas():
    bound = MECHANISMS["unclipped"].distance(10.0, AtlasClaim(1.0, 1e-5, 10**6))
    assert f"at most {bound:.2f} to" in TEXT.replace("\n", " ")


def test_the_attacks_number_is_the_enumerations():
    # Some of the values tell the share to a fraction of a percent; tried one by one, not looked up among all.
    index = np.arange(128, 2**24, 256)
    noise = special.ndtri((index + 0.5) / 2**24).astype(np.float32)
    releases = (np.float32(1.0) + noise)[:, np.newaxis]
    told = mechanisms.are_impossible_alone(releases, np.zeros(1), 24, 1.0)
    assert f"in {told.mean():.0%} of draws" in TEXT.replace("\n", " ")
