"""What differs between two runs, whose checks may have other names in the later one.

``python -m tests.run_differences BEFORE AFTER`` reads ``results.json`` in two folders, gives the first one the names of
``renamed.csv``, and prints each value that differs, by check. The exit status is 1 if any does.
"""

import csv
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import click

from canaryproof.verify.papers.records.report_input import read_run

TABLE = Path(__file__).with_name("renamed.csv")
# Of the keys in a check's evidence: "results.json:results[ID].evidence.KEY", in which ID may have wildcards.
_EVIDENCE = "results.json:results["


Names = Mapping[str, Mapping[str, list[str]]]


def new_names(text: str) -> Names:
    """Return the later names of each name, by kind."""
    names: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for row in csv.DictReader(text.splitlines()):
        names[row["kind"]][row["old"]].append(row["new"])
    return names


def renamed(row: Mapping[str, Any], names: Names, later: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Give a result the names that it has later: of a suite that became several, the one that its check is in."""
    (name,) = names["id"].get(row["id"], [row["id"]])
    (source,) = names["source"].get(row["source"], [row["source"]])
    suites = names["suite"].get(row["suite"], [row["suite"]])
    suite = next((suite for suite in suites if name in later and later[name]["suite"] == suite), suites[0])
    evidence = dict(row["evidence"])
    for old, (new,) in names["record"].items():
        if old.startswith(_EVIDENCE):
            pattern, _, key = old.removeprefix(_EVIDENCE).partition("].evidence.")
            if fnmatch(name, pattern) and key in evidence:
                evidence[new.rpartition(".")[2]] = evidence.pop(key)
    return {**row, "id": name, "source": source, "suite": suite, "evidence": evidence}


def differences(before: Any, after: Any, place: str = "") -> Iterator[str]:
    """Yield the places at which two documents differ, with both values."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in before | after:
            yield from differences(before.get(key, "(none)"), after.get(key, "(none)"), f"{place}.{key}")
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for i, pair in enumerate(zip(before, after, strict=True)):
            yield from differences(*pair, f"{place}[{i}]")
    elif before != after:
        yield f"{place}: {before} -> {after}"


@click.command()
@click.argument("before", type=click.Path(path_type=Path))
@click.argument("after", type=click.Path(path_type=Path))
def main(before: Path, after: Path) -> None:
    """Print what differs between two runs' folders but for names."""
    names = new_names(TABLE.read_text(encoding="utf-8"))
    later = {row["id"]: row for row in read_run(after).to_json()["results"]}
    rows = [renamed(row, names, later) for row in read_run(before).to_json()["results"]]
    found = list(differences({row["id"]: row for row in rows}, later))
    for line in found:
        click.echo(line.removeprefix("."))
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
