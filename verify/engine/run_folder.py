"""Reading a run's folder: its results, finished or not, and what else lies there."""

import json
import stat
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from canaryproof.verify.check.results import Run
from canaryproof.verify.engine.run_file import kept
from canaryproof.verify.files.reading import InputError

if TYPE_CHECKING:
    from canaryproof.reports.material import Material

RESULTS, RUN_FILE = "results.json", "run.sqlite"
ENVIRONMENT, CANIFE, PERFORMANCE = "environment.json", "canife.json", "performance.json"
# What canaryproof train leaves.
_EXPERIMENT, _TIMINGS = "experiment.json", "timings.json"


def read_run(folder: Path) -> Run:
    """Read the run that ``canaryproof verify --out`` left in a folder.

    Parameters
    ----------
    folder
        The folder, which holds ``results.json``.

    Returns
    -------
    The run.

    Raises
    ------
    InputError
        If the folder or the file cannot be read, or the file breaks a rule.
    """
    if not folder.is_dir():
        raise InputError(f"{folder}: must be a folder, as canaryproof verify --out leaves it")
    file = folder / RESULTS
    try:
        return Run.from_json(_read(file))
    except ValueError as error:
        raise InputError(f"{file}: {error}") from error


def read_material(folder: Path) -> "Material":
    """Read all that a report is made from.

    Parameters
    ----------
    folder
        The run's folder. Where it has no results yet, those that an interrupted run has found so far are taken. What
        benchmarks left beside them, and trainings in folders in it, come along.

    Returns
    -------
    The material.

    Raises
    ------
    InputError
        If something cannot be read, or breaks a rule.
    """
    from canaryproof.reports.material import Material, Training

    unfinished, environment = "", _object(folder / ENVIRONMENT) or {}
    if folder.is_dir() and not (folder / RESULTS).exists() and (folder / RUN_FILE).exists():
        run, environment = _read_unfinished(folder / RUN_FILE)
        unfinished = f"This run was interrupted. It has {len(run.results):,} results so far, and --resume goes on."
    else:
        run = read_run(folder)
    trainings = {
        path.parent.name: Training(_required(path.with_name(RESULTS)), _timings(path.with_name(_TIMINGS)))
        for path in sorted(folder.glob(f"*/{_EXPERIMENT}"))
        if path.with_name(_TIMINGS).exists()
    }
    return Material(
        run,
        {str(name): str(value) for name, value in environment.items()},
        _object(folder / CANIFE),
        _object(folder / PERFORMANCE),
        trainings,
        unjudged(run),
        unfinished,
    )


def unjudged(run: Run) -> dict[str, int]:
    """Count the documents' statements that this version judges and a run did not, by suite."""
    # The guard reads runs by this module.
    from canaryproof.verify.engine import expected

    judged = {(result.suite, result.id) for result in run.results}
    return dict(Counter(suite for suite, name in expected.read() if (suite, name) not in judged))


def _read_unfinished(file: Path) -> tuple[Run, dict[str, str]]:
    meta, rows = kept(file)
    try:
        document = {"version": meta["version"], "level": meta["level"], "seed": int(meta["seed"])}
        return Run.from_json({**document, "results": [json.loads(row) for row in rows]}), meta
    except (KeyError, ValueError) as error:
        raise InputError(f"{file}: is damaged ({error})") from error


def _object(file: Path) -> Mapping[str, Any] | None:
    return _required(file) if file.exists() else None


def _required(file: Path) -> Mapping[str, Any]:
    document = _read(file)
    if not isinstance(document, dict):
        raise InputError(f"{file}: must be an object")
    return document


def _timings(file: Path) -> list[Any]:
    found = _required(file).get("trainings")
    if not isinstance(found, list):
        raise InputError(f"{file}: trainings: must be a list")
    return found


def _read(file: Path) -> object:
    try:
        # Opening a pipe would wait for its writer.
        if not stat.S_ISREG(file.stat().st_mode):
            raise ValueError("must be a regular file")
        return json.loads(file.read_text(encoding="utf-8"), parse_constant=_refuse)
    except OSError as error:
        raise InputError(f"{file}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{file}: must be text in UTF-8") from error
    except RecursionError as error:
        raise InputError(f"{file}: is nested too deeply") from error
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise InputError(f"{file}: {place}: truncated or damaged, as it is not JSON ({error.msg})") from error
    except ValueError as error:
        raise InputError(f"{file}: {error}") from error


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"is not JSON, which has no number {constant}")
