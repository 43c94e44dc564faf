"""The ledger's transcription of the documents' tables and lists, compared with a second reading of their text.

The digests below come from a reading of the documents that did not look at the numbers in ``transcripts``.
A digit that is wrong or swapped in one of the two readings makes the digests differ.

To add a table or to correct one, read it in the document, not in ``transcripts``. Write a text file with one line for
each item of the attribute: its cells in the attribute's order, with its labels, separated by single spaces, and ∞ as
``inf``.
The digest is what ``sha256sum`` prints for that file. Where the digests differ, the document's text decides.

Values that are computed, and those that the documents' text does not print, have no digest.
"""

import re
from collections.abc import Mapping
from dataclasses import astuple, is_dataclass
from hashlib import sha256
from itertools import combinations
from operator import attrgetter

import pytest

from canaryproof.proofs_check import anderson_darling
from canaryproof.verify.papers.claims import transcripts

DIGESTS = {
    "QUANTILES": "93f6e618daace4c0468f3c6a2a2c3c4a1bcbefd770d5af82784d00b94f320131",
    "Final.TABLE_2": "1f81b1199ba27aae70f800e43367859b23dfdf884cb1f2d3696bd901d75e58cf",
    "Final.TABLE_2_NOISE": "2deff7cdb97d8207aab6f2948499aa1c50acebb251339b4f71a530ae2781f51a",
    "Final.TABLE_3": "b2f0a5bbcbd596c8dbdb9775f0f614b7b90538ab930b3b4c941e1200b55f9fba",
    "Final.TABLE_4": "df234c8b1cac709b06cbe8eff35f287478d381fb905c158eab4318364567e856",
    "Final.TABLE_5": "6c8c32ed18afb4cff3945d5e926597b293ade46ed86a2df8e22062ddfedac2ca",
    "Final.TABLE_1": "d8b1ba1f441dc19f6bca0655d0aeebed2ba788fb7e1875ec83ec84e1fd55f22a",
    "Final.TABLE_6": "4c712c753c2d23fa6d810828a1705cc94b4f2eda444da40a2a12e0b9084fd94b",
    "Final.CANARIES": "83c02ac2d48c863dab2ccf6870455aadfc2cec073b8db269b517c879d76aa6d9",
    "Final.PARAMETERS": "ed02d835d4f86aa0d41dcb8d60ef1318bb43ba0a72344cb049019f4a3c303a9d",
    "Final.STACKOVERFLOW_CLIENTS": "8a0777ee7523ce656b416baa445734b6ec3a392fdb912ec2a9400bcaa7e1425f",
    "Final.STACKOVERFLOW_ROUNDS": "3ed26e56eb4e40cb4d731e5e170955b7d03de05ec5486ef291e950aa119ba250",
    "Final.STACKOVERFLOW_COHORT": "87574c1abffa14d93d932b1f75f4360b83c6d1ccf3e514c6ca4de4081a9fbd31",
    "Final.EMNIST_USERS": "e93324c0daff45bbe680169f9758b07d820b9c4daffc7f92598e20fd49b77a68",
    "Final.EMNIST_EPOCHS": "238903180cc104ec2c5d8b3f20c5bc61b389ec0a967df8cc208cdc7cd454174f",
    "Final.EMNIST_ROUNDS": "792376c209f338959be4cf00c54dbf82662b90516082e23106faec4c43c69e49",
    "Final.EMNIST_COHORT": "39b8dc3fc8b44765c8e6f1adee04c5b465e555ab791cc42d0d9e810d5b64297c",
    "Final.EMNIST": "94b901ded9681400fdb83a6f5b0d564bd92813d7c53d1189e40120eac765f80b",
    "Final.CANIFE": "891ec74e5ac43435a173e6980100546b39cb3586f6cf8ead23e75803a6f3780c",
    "Final.ONE_SHOT": "724ea2f2fdc85557abedec556caa26a9d9cbb9f0a642a450c8acf4b05deec54b",
    "Final.CANIFE_ANALYTICAL": "30ae9d1d8025c1998bf33f9c02b1494dc2005b650a8f21b37112f34f339a0494",
    "Final.CANIFE_NOISE": "88930bd051d214a973581b9492a5ca110aea3fdd5dc65a68bc444b6173877bbd",
    "Final.COMPARISON": "0077f20e9bd7c2fb8e6b04da3e8644a3b02dff5fad799e57a5aab39f7af392ec",
    "Final.FASHION_BATCH": "56292515f7d3a7110811eb8de26b3f75f82a0766aa5a1fd66ebcfcb84fe6d5ff",
    "FirstVersion.TABLE_1": "3fe3b192b3269c9e695250c178cceed5e977ff556c4b6866c3a732e3dfdbb175",
    "FirstVersion.TABLE_2": "bb6891a46427fb02d5b8ba3c1ac0150a079366913837bc133b0c228d7300b8e3",
    "FirstVersion.TABLE_3": "8b37e9848cd3bbb45c730b6894e7bcd4c0e7e94f4090037ee3fd70137dfb4a4f",
    "FirstVersion.TABLE_4": "0460ce68942e10f1186169abcb85f3c3b1596c98c3242022097ea6928daff082",
    "FirstVersion.REPETITIONS": "ac04b94f82f9417be7bf22ff3b0f4bf55a01d1e221cb5ca781ac8dfb8839fec8",
    "FirstVersion.WEAK_CRITICAL_VALUE": "23e20c68c57bf841e0f921770fa92e9615e19eeb946c72350a189fd6d10f4209",
    "FirstVersion.CANARIES": "83c02ac2d48c863dab2ccf6870455aadfc2cec073b8db269b517c879d76aa6d9",
    "FirstVersion.USERS": "8a0777ee7523ce656b416baa445734b6ec3a392fdb912ec2a9400bcaa7e1425f",
    "FirstVersion.ROUNDS": "3ed26e56eb4e40cb4d731e5e170955b7d03de05ec5486ef291e950aa119ba250",
    "FirstVersion.COHORT": "87574c1abffa14d93d932b1f75f4360b83c6d1ccf3e514c6ca4de4081a9fbd31",
    "FirstVersion.SETTING": "6b13e5657c0e2480e60c5d07ecb6ba7bd121f9484368d188de8a857c2562e77f",
    "Submission.TABLE_1": "3fe3b192b3269c9e695250c178cceed5e977ff556c4b6866c3a732e3dfdbb175",
    "Submission.TABLE_2": "b2f0a5bbcbd596c8dbdb9775f0f614b7b90538ab930b3b4c941e1200b55f9fba",
    "Submission.TABLE_3": "e8a3562c86f3607bb7cc97f34860162a838c4a2d938b21aa8cfa026f5f4961f9",
    "Submission.TABLE_4": "8881504f264f97fdadbdc60b195267fe799efc6e79590167e264891298fbf1c7",
    "Submission.TABLE_5": "b327c3cba373c207b118d97c596f40f1be42cda0ca5afd61c63290f42be40e1a",
    "Submission.TABLE_6": "6c8c32ed18afb4cff3945d5e926597b293ade46ed86a2df8e22062ddfedac2ca",
    "Submission.SETTING": "6b13e5657c0e2480e60c5d07ecb6ba7bd121f9484368d188de8a857c2562e77f",
    "Submission.EMNIST": "8b7839d65b6e75c838d5a2c2c263e1fd493fc985bfe0a3fbdd1f941a9890625a",
    "Submission.CANIFE": "891ec74e5ac43435a173e6980100546b39cb3586f6cf8ead23e75803a6f3780c",
    "Submission.CANARIES": "724ea2f2fdc85557abedec556caa26a9d9cbb9f0a642a450c8acf4b05deec54b",
    "Submission.COMPARISON": "0077f20e9bd7c2fb8e6b04da3e8644a3b02dff5fad799e57a5aab39f7af392ec",
    "Reviews.ANALYTICAL": "30ae9d1d8025c1998bf33f9c02b1494dc2005b650a8f21b37112f34f339a0494",
    "Reviews.SWEEP": "5aaa10d360cfd19e8b7293ec1fb5672cd0f8c2a963a1ce0921bf5d69456d39b0",
    "Canife.TRIALS": "eea8254c7500ba3de996aa8ad6af399183f04e17d4a8102fde539dbc93a90012",
    "Canife.CAP": "04483b5846d8cf6dae4f92d6596f119194d943802283c79abaea39f51373b0c8",
    "Canife.TRAINED_EPSILON": "d6df3c6df1b1d214bd58952eea9efc77ce7d9855d5ceaeb6f37c7ba07e0fbdcc",
    "Canife.TOY_SIGMA": "2181733adc741b8466870a90a11180fb5cdf0a9722c6de4e1fc6461dd1a2b5a4",
    "Canife.DEVIATION": "a84a11c45ff276ee484c14bf2e5ad2148addba9a8aff23d2a32be0b87392a3cb",
    "Canife.NOISELESS": "d7047937a7dae82480b337c7b06bd73d4dce30525f4625b6501b0b27a60ccd57",
    "Canife.POOL": "240269e94afb4bbc4c643851e366bf4f0d870ff0753d250b854f748cf3516285",
    "Canife.ITERATIONS": "f739882f40e2be8022d26517e0b963ab2351687845ebe1cf320efd0d0d3e388a",
    "Canife.LATE_ROUNDS": "83c02ac2d48c863dab2ccf6870455aadfc2cec073b8db269b517c879d76aa6d9",
    "Canife.ACCURACIES": "1939d8ad2368eaffd4f4f56e3d9dd3178c03445af47a230b357e5316b8986f57",
    "Canife.FREE_ACCURACIES": "2fd3319857747e82b9ab05771497b1c0e83ea138f3ba026e587e346ce6e96125",
    "Canife.HEALTH": "0e3f7ceae3c305eb9a50c0269d89d1a65c9a0a5039aed466919671b8309e2c94",
    "Canife.LATE_HEALTH": "a1ef4674529c903516c754e3397fd9fa77b55f6315225b0e33bf1617aaf44ef2",
    "Canife.GAPS": "bf9ce7d4923ac95f1215bdd9b20495c54fa3f717e12edbba2a25ae8c75721e45",
    "Canife.TASKS": "522263f3177007f51a43873c38683c6e00d3051fd90be4f99d4e9993ce5a8371",
}


def nested(value):
    """The value as nested tuples: rows and mappings lose their types, numbers and texts stay."""
    if is_dataclass(value):
        return astuple(value)
    if isinstance(value, Mapping):
        return nested(tuple(value.items()))
    return tuple(map(nested, value)) if isinstance(value, tuple) else value


def cells(value):
    """All numbers and texts of a nested tuple, in order."""
    return [cell for item in value for cell in cells(item)] if isinstance(value, tuple) else [str(value)]


def digest(value):
    """Digest of a nested tuple, a line for each of its items; a lone value is one line."""
    items = value if isinstance(value, tuple) else (value,)
    return sha256("".join(" ".join(cells(item)) + "\n" for item in items).encode()).hexdigest()


def swaps(value):
    """Every version of a nested tuple with two different digits of one of its values swapped."""
    if isinstance(value, tuple):
        for index, item in enumerate(value):
            yield from ((*value[:index], swapped, *value[index + 1 :]) for swapped in swaps(item))
        return
    text = str(value)
    for left, right in combinations([match.start() for match in re.finditer(r"\d", text)], 2):
        if text[left] != text[right]:
            digits = list(text)
            digits[left], digits[right] = digits[right], digits[left]
            yield type(value)("".join(digits))


@pytest.mark.parametrize("name", DIGESTS)
def test_second_reading_agrees(name):
    agrees = digest(nested(attrgetter(name)(transcripts))) == DIGESTS[name]
    assert agrees, f"read {name} again in the document: the docstring of {__name__} says how"


@pytest.mark.parametrize("name", DIGESTS)
def test_two_swapped_digits_change_the_digest(name):
    faulty = list(swaps(nested(attrgetter(name)(transcripts))))
    assert faulty
    assert DIGESTS[name] not in map(digest, faulty)


def test_proofs_check_the_captions_of_the_same_tables():
    first, final = transcripts.FirstVersion.TABLE_4, transcripts.Final.TABLE_6
    assert list(anderson_darling.TABLE_4) == [float(statistic) for row in first.values() for statistic in row]
    assert list(anderson_darling.TABLE_6) == [statistic for _, row in final for statistic in row]


def test_every_table_has_a_digest():
    documents = [name for name, value in vars(transcripts).items() if isinstance(value, type)]
    tables = {
        f"{document}.{name}"
        for document in documents
        for name in vars(getattr(transcripts, document))
        if name.startswith("TABLE_")
    }
    assert tables
    assert tables <= DIGESTS.keys()
