import re
import shutil
from importlib import import_module
from pathlib import Path

import pytest

from canaryproof.verify.papers.suites.worst_case import table
from canaryproof.verify.papers.suites.worst_case.search import BUDGETS, Domain, measure
from canaryproof.verify.papers.suites.worst_case.targets import TARGETS
from tests.worst_inputs import write

BY_NAME = {target.name: target for target in TARGETS}
ROWS = table.read()


def test_every_kernel_has_a_worst_input_in_both_domains():
    assert [(row.function, row.domain) for row in ROWS] == [(t.name, d) for t in TARGETS for d in Domain]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.function}-{row.domain}")
def test_errors_only_go_down(row):
    case = measure(BY_NAME[row.function], row.domain, row.arguments)
    assert (case.enclosure.lo, case.enclosure.hi) == (row.lo, row.hi)
    # The exponential and the logarithm of another machine's C library may differ in the last bit of a float.
    assert case.share <= row.share + 1.0 / BUDGETS[row.domain]


@pytest.mark.parametrize("topic", dict.fromkeys(target.topic.replace("-", "_") for target in TARGETS))
def test_the_kernels_say_what_was_found(topic):
    said = re.search(
        r"Worst (?:found )?by search: ([\d.]+) ulps in practice, ([\d.]+) anywhere",
        " ".join(import_module(f"canaryproof.kernels.{topic}").__doc__.split()),
    )
    found = {
        domain: max(
            row.ulps for row in ROWS if row.function.startswith(topic.replace("_", "-")) and row.domain is domain
        )
        for domain in Domain
    }
    for number, domain in zip(said.groups(), Domain, strict=True):
        # Rounded up, by less than one.
        assert 0.0 <= float(number) - found[domain] + 1e-6 < 1.0


def test_a_changed_table_is_refused(tmp_path, monkeypatch):
    folder = Path(table.__file__).parent
    for name in ("worst_inputs.csv", "worst_inputs.csv.sha256"):
        shutil.copy(folder / name, tmp_path)
    monkeypatch.setattr(table, "files", lambda _: tmp_path)
    assert table.read() == ROWS
    path = tmp_path / "worst_inputs.csv"
    path.write_text(path.read_text().replace("0x1.", "0x1.0", 1))
    with pytest.raises(ValueError, match=r"worst_inputs\.csv"):
        table.read()


def test_what_is_written_is_read_back(tmp_path, monkeypatch):
    write(ROWS[:3], tmp_path)
    monkeypatch.setattr(table, "files", lambda _: tmp_path)
    assert table.read() == ROWS[:3]
