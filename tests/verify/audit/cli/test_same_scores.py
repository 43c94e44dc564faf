"""One file through audit and review: the same finding on its input, and the same bound."""

import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from canaryproof.verify.command_line import main

RNG = np.random.default_rng(6)
MEMBERS, OTHERS = RNG.normal(1.0, 1.0, 400), RNG.normal(0.0, 1.0, 400)


def printed(*arguments):
    result = CliRunner().invoke(main, [*map(str, arguments), "--json"])
    assert (result.exit_code, result.stderr) == (0, "")
    return json.loads(result.stdout)


def write(path, form, observed, unobserved):
    if form == "npz":
        np.savez(path, observed=observed, unobserved=unobserved)
        return
    if form == "labels":
        member = np.repeat([1, 0], [len(observed), len(unobserved)])
        frame = pd.DataFrame({"score": np.r_[observed, unobserved], "member": member})
    else:
        frame = pd.DataFrame(dict(zip(form.split("/"), (observed, unobserved), strict=True)))
    frame.to_csv(path, index=False) if path.suffix == ".csv" else frame.to_parquet(path)


FORMS = ["labels", "observed/unobserved", "in/out", "train/test", "member/nonmember", "loss_train/loss_test"]
CASES = [*((f"s.{suffix}", form) for suffix in ("csv", "parquet") for form in FORMS), ("s.npz", "npz")]


@pytest.mark.parametrize(("name", "form"), CASES)
def test_both_read_every_form_and_find_the_same(tmp_path, name, form):
    if name == "s.parquet":
        pytest.importorskip("pyarrow", reason="reads .parquet")
    file = tmp_path / name
    write(file, form, MEMBERS, OTHERS)
    audited = printed("audit", file, "--kind", "any", "--delta", "1e-5", "--bound", "fixed-sequence")
    reviewed = printed("review", file, "--delta", "1e-5")
    assert (audited["count"], audited["null_count"]) == (400, 400)
    (bound,) = (each for each in reviewed["bounds"] if each["name"] == "fixed-sequence")
    assert bound["epsilon"] == pytest.approx(audited["bounds"][0]["low"], rel=1e-12)
    assert reviewed["withheld"] == ""
    # As raw losses are.
    write(file, form, -MEMBERS, -OTHERS)
    audited = printed("audit", file, "--kind", "any", "--delta", "1e-5", "--claim", "4")
    reviewed = printed("review", file, "--delta", "1e-5", "--epsilon", "4")
    finding = audited["findings"][0]
    assert (finding["question"], finding["status"], audited["decision"]["status"]) == ("input", "failed", 4)
    assert (reviewed["opinion"], reviewed["bounds"], reviewed["choices"]) == ("not judged", [], [])
    assert finding["do"] in reviewed["withheld"]
    assert "Negate" in reviewed["withheld"]
