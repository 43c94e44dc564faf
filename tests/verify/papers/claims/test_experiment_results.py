import hashlib
import json
from dataclasses import replace
from pathlib import Path

import made_results
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_results import RULES, context, figure, judge, rising

from canaryproof.verify.audit.files.errors import InputError
from canaryproof.verify.papers.check.results import Verdict
from canaryproof.verify.papers.claims import experiment_results
from canaryproof.verify.papers.records.report_input import document_of

CONFIRMED, QUALIFIED, REFUTED, INCONCLUSIVE, NEEDS_DATA = Verdict
PUBLISHED = Path(__file__).parents[4] / "reports" / "published"


@pytest.fixture(scope="module")
def whole():
    """Results as a training writes them."""
    return json.dumps(
        made_results.document(
            "final_figure2", lambda cell, _: ([made_results.run()], rising(cell, np.random.default_rng(7)))
        )
    )


def test_the_folder_may_be_that_of_the_experiment_itself(tmp_path):
    figure(tmp_path, "final_figure2")
    assert set(experiment_results.read(tmp_path / "final_figure2").experiments) == {"final_figure2"}


def test_other_measurements_have_another_digest(tmp_path):
    for i in (1, 2):
        figure(tmp_path / str(i), "final_figure2", factor=float(i))
    first, second = (experiment_results.read(tmp_path / str(i)) for i in (1, 2))
    assert first.digest != second.digest
    assert first.digest == experiment_results.read(tmp_path / "1").digest


@pytest.mark.parametrize(
    ("claim", "verdict"),
    [
        ("final.section5.4.canife", INCONCLUSIVE),
        ("submission.appendixH.canife", INCONCLUSIVE),
        ("final.section5.4.ours", INCONCLUSIVE),
        ("submission.appendixH.canaries", INCONCLUSIVE),
        ("review.canife.bound", QUALIFIED),
    ],
)
def test_the_published_measurements_on_fashion_mnist_decide_what_findings_md_says(claim, verdict):
    assert judge(claim, PUBLISHED).verdict is verdict


def damage(folder, change):
    file = folder / "final_figure2" / "results.json"
    made = json.loads(file.read_text())
    change(made)
    file.write_text(json.dumps(made))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.pop("size"), "size: is missing"),
        (lambda d: d.update(size="huge"), "size: must be one of quick, full, not 'huge'"),
        (lambda d: d.update(cells=[]), "cells: must not be empty"),
        (lambda d: d["cells"][0].update(dim="4"), "cells[0].dim: must be a whole number, not '4'"),
        (lambda d: d["cells"][0].update(dim=True), "cells[0].dim: must be a whole number, not True"),
        (lambda d: d["cells"][0].update(results=[]), "cells[0].results: must not be empty"),
        (
            lambda d: d["cells"][1]["settings"]["training"].update(cohort=100),
            "cells[1].settings.training.cohort: must be 167 as in final_figure2, not 100",
        ),
        (
            lambda d: d["cells"][1]["settings"]["training"].update(batch_size="16"),
            "cells[1].settings.training.batch_size: must be a whole number from 1 to 100000, not '16'",
        ),
        (
            lambda d: d["cells"][1]["settings"]["audit"].pop("delta"),
            "cells[1].settings.audit.delta: is missing",
        ),
        (
            lambda d: d["cells"][0]["results"][0]["audits"]["final"]["exact"].update(distance=[1]),
            "cells[0].results[0].audits.final.exact.distance: must be a number, not [1]",
        ),
        (
            lambda d: d["cells"][0]["results"][0]["audits"]["final"]["exact"].update(distance=10**400),
            "cells[0].results[0].audits.final.exact.distance: must be finite, not " + "1" + 59 * "0",
        ),
        (
            lambda d: d["cells"][0]["results"][0]["audits"]["all"].pop("unobserved"),
            "cells[0].results[0].audits.all.unobserved: is missing",
        ),
        *(
            (
                lambda d, change=change: change(d["cells"][1]["results"][0]["audits"]["final"]["exact"]),
                f"cells[1].results[0].audits.final.exact.{message}",
            )
            for change, message in (
                (lambda audit: audit.update(ratio=0.0), "ratio: must be above 0, and errors not below"),
                (lambda audit: audit.update(distance_error=-1e-9), "ratio: must be above 0, and errors not below"),
                (lambda audit: audit.update(ratio_error=-1e-9), "ratio: must be above 0, and errors not below"),
                (lambda audit: audit["normality"].update(statistic=0), "normality.statistic: must be above 0"),
                (lambda audit: audit.update(observed=1), "observed: must be from 2 to 20,000"),
                (lambda audit: audit.update(observed=20_001), "observed: must be from 2 to 20,000"),
                (lambda audit: audit["estimates"].pop("fitted"), "estimates.fitted: is missing"),
                (lambda audit: audit["estimates"].pop("pinned"), "estimates.pinned: is missing"),
                (lambda audit: audit["bounds"].pop("andrew"), "bounds.andrew: is missing"),
            )
        ),
    ],
)
def test_damaged_results_are_refused_in_one_line(tmp_path, change, message):
    figure(tmp_path, "final_figure2")
    damage(tmp_path, change)
    with pytest.raises(InputError) as error:
        experiment_results.read(tmp_path)
    assert error.value.message == f"{tmp_path}/final_figure2/results.json: {message}"


def places(value, place=()):
    """Keys of all values in a document, of lists the first entry's."""
    items = value.items() if isinstance(value, dict) else enumerate(value[:1]) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*place, key)
        yield from places(inner, (*place, key))


@given(data=st.data())
def test_any_change_is_read_or_refused_in_one_line(tmp_path_factory, whole, data):
    folder = tmp_path_factory.mktemp("any")
    made = json.loads(whole)
    *inner, last = data.draw(st.sampled_from(list(places(made))))
    value = made
    for key in inner:
        value = value[key]
    value[last] = data.draw(st.sampled_from([None, True, -1, 0, 0.5, "x", "inf", "nan", [], {}, [[]], 10**400]))
    made_results.write(folder, made | {"name": "final_figure2"})
    (folder / "final_figure2" / "results.json").write_text(json.dumps(made))
    try:
        given_ = context(folder)
    except InputError as error:
        message = error.message
    else:
        message = ""
    assert "\n" not in message
    assert len(message) < 1000
    if message:
        return
    for claim in ("final.figure1.measured", "final.figure2.measured", "final.table6.row1.measured"):
        assert RULES[claim](given_).verdict in list(Verdict)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        ("}", "line 1, column 1: truncated or damaged, as it is not JSON (Expecting value)"),
        ('{"name": NaN}', "is not JSON, which has no number NaN"),
        ("[" * 200_000, "is nested too deeply"),
    ],
)
def test_a_file_that_is_no_json_is_refused(tmp_path, text, message):
    (tmp_path / "results.json").write_text(text)
    with pytest.raises(InputError) as error:
        experiment_results.read(tmp_path)
    assert error.value.message == f"{tmp_path}/results.json: {message}"


def test_folders_that_hold_nothing_or_one_experiment_twice_are_refused(tmp_path):
    with pytest.raises(InputError, match="must be a folder"):
        experiment_results.read(tmp_path / "none")
    with pytest.raises(InputError, match="must hold folders that canaryproof train"):
        experiment_results.read(tmp_path)
    figure(tmp_path, "final_figure2")
    (tmp_path / "final_figure2").rename(tmp_path / "one")
    figure(tmp_path, "final_figure2")
    with pytest.raises(InputError, match="name: final_figure2 is in final_figure2 too"):
        experiment_results.read(tmp_path)


@pytest.mark.parametrize(
    ("change", "decides"),
    [
        (lambda _: None, True),
        (lambda d: d.update(level="quick"), False),
        (lambda d: d["printed"].update(fashion=False), False),
        (lambda d: d.update(printed=None), False),
    ],
)
def test_the_benchmark_on_fashion_mnist_in_full_alone_decides(tmp_path, change, decides):
    made = document_of((PUBLISHED / "canife.json").read_bytes())
    made["scenarios"] = made["scenarios"][:1]
    change(made)
    (tmp_path / "canife.json").write_text(json.dumps(made))
    assert (experiment_results.read(tmp_path).benchmark is not None) is decides
    verdict = judge("final.section5.4.canife", tmp_path).verdict
    assert verdict is (INCONCLUSIVE if decides else NEEDS_DATA)
    (tmp_path / "again").mkdir()
    (tmp_path / "again" / "canife.json").write_text(json.dumps(made))
    if decides:
        with pytest.raises(InputError, match=r"again/canife.json: another folder has such results too"):
            experiment_results.read(tmp_path)
    else:
        assert experiment_results.read(tmp_path).benchmark is None


@pytest.mark.parametrize("claim", ["final.figure1.measured", "final.figure2.measured", "final.table6.row1.measured"])
def test_trainings_without_audits_decide_nothing(tmp_path, claim):
    figure(tmp_path, "final_figure2")
    assert RULES[claim](context(tmp_path)).verdict is not Verdict.NEEDS_DATA
    damage(tmp_path, lambda d: [repetition.pop("audits") for cell in d["cells"] for repetition in cell["results"]])
    assert RULES[claim](context(tmp_path)).verdict is Verdict.NEEDS_DATA


def test_a_file_of_the_users_own_with_a_known_name_is_none_of_the_papers(tmp_path):
    figure(tmp_path, "final_figure2")
    damage(tmp_path, lambda d: d.update(source="my own"))
    with pytest.raises(InputError, match="must hold folders that canaryproof train"):
        experiment_results.read(tmp_path)


def test_an_experiment_whose_source_states_all_is_none_of_the_papers(tmp_path, monkeypatch):
    figure(tmp_path, "final_figure2")
    shipped = experiment_results.configuration.read("final_figure2", "full")
    monkeypatch.setattr(experiment_results.configuration, "read", lambda *_: replace(shipped, unstated=()))
    with pytest.raises(InputError, match="must hold folders that canaryproof train"):
        experiment_results.read(tmp_path)


def test_what_is_read_is_the_experiment_with_what_its_source_leaves_open(tmp_path):
    figure(tmp_path, "final_figure2")
    (found,) = experiment_results.read(tmp_path).experiments.values()
    shipped = experiment_results.configuration.read("final_figure2", "full")
    assert (found.name, found.size, found.folder) == ("final_figure2", "full", "final_figure2")
    assert found.unstated == shipped.unstated
    noises = [cell.settings["training.noise_multiplier"] for cell in found.cells]
    assert noises == [cell.settings.training.noise_multiplier for cell in shipped.cells]


def test_the_digest_is_of_all_files_in_the_order_of_their_folders(tmp_path):
    figure(tmp_path, "final_figure2")
    alone = (tmp_path / "final_figure2" / "results.json").read_bytes()
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "canife.json").write_bytes((PUBLISHED / "canife.json").read_bytes())
    both = [(tmp_path / "a" / "canife.json").read_bytes(), alone]
    joined = "".join(hashlib.sha256(one).hexdigest() for one in both)
    assert experiment_results.read(tmp_path).digest == hashlib.sha256(joined.encode()).hexdigest()[:16]


@pytest.mark.parametrize(("observed", "error"), [(2, 0.0), (20_000, 1e-9)])
def test_the_ends_of_what_an_audit_may_be_are_allowed(tmp_path, observed, error):
    figure(tmp_path, "final_figure2")
    change = {"observed": observed, "ratio": 1e-9, "distance_error": error, "ratio_error": error}
    damage(tmp_path, lambda d: d["cells"][0]["results"][0]["audits"]["final"]["exact"].update(change))
    assert experiment_results.read(tmp_path).experiments
