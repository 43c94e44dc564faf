"""Command ``canaryproof self-test``: some rounds of somebody's training, looked at with all instruments."""

import importlib.util
import json
import sys
import traceback
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

import click

from canaryproof.verify.audit.cli.terminal import streams_of_user
from canaryproof.verify.audit.files.errors import InputError

_REFUTED = 1


@click.command("self-test")
@click.argument("training", metavar="FILE.py:FUNCTION")
@click.option("--members", type=float, required=True, help="Number of members of the training, such as its examples.")
@click.option("--dim", type=float, required=True, help="Dimension d of an update: the number of trained parameters.")
@click.option("--noise-multiplier", type=float, required=True, help="Claimed deviation of the noise, in clip norms.")
@click.option("--clip-norm", type=float, required=True, help="Claimed most that an update enters with.")
@click.option("--rate", type=float, help="Claimed probability of a member to take part in a round (Poisson sampling).")
@click.option("--divisor", type=float, help="What the noised sum is divided by; rate times members by default.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of the canaries.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def self_test_command(ctx: click.Context, /, training: str, as_json: bool, **claim: Any) -> None:
    """Look at some rounds of your own training with ten canaries.

    FUNCTION of FILE.py gets an inspection and runs some rounds. The canaries are further members, whose updates are
    inspection.update(i). After each round it calls inspection.add(release, drawn, known). It may call
    inspection.replay(step, members) too. The documentation has an example.

    The exit status is 1 if a test refutes what is claimed.
    """
    function = _function(training)
    # Loads compiled kernels, which a mistake in the options does not wait for.
    from canaryproof.verify.audit.answer.inspection import Inspection

    try:
        inspection = Inspection(**claim)
    except ValueError as error:
        raise InputError(f"--{str(error).replace('_', '-', 1)}") from error
    try:
        # Prints of the training are not the answer.
        with streams_of_user():
            function(inspection)
    except (Exception, SystemExit) as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(last.filename).name}, line {last.lineno}"
        raise InputError(f"{training}: raised {type(error).__name__} ({where}): {error}") from error
    if not inspection.rounds:
        raise InputError(f"{training}: must add at least one round by inspection.add(release, drawn, known)")
    if as_json:
        tests = [asdict(test) | {"failed": test.has_failed} for test in inspection.tests()]
        replays = [{"failed": case.has_failed, "answer": str(case)} for case in inspection.replays]
        document = {"failed": inspection.has_failed, "rounds": inspection.rounds, "tests": tests, "replays": replays}
        click.echo(json.dumps(document, indent=2))
    else:
        click.echo(str(inspection))
    ctx.exit(_REFUTED if inspection.has_failed else 0)


def _function(name: str) -> Callable[[Any], object]:
    """Return a function of a file."""
    file, _, attribute = name.rpartition(":")
    path = Path(file)
    if not file.endswith(".py") or not attribute:
        raise InputError(f"{name}: must be FILE.py:FUNCTION")
    if not path.is_file():
        raise InputError(f"{file}: there is no such file")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise InputError(f"{file}: must be a Python file")
    # The file finds its neighbours, as it does when Python runs it, and its classes find their module.
    sys.path.insert(0, str(path.parent.resolve()))
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    try:
        with streams_of_user():
            spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise InputError(f"{file}: raised {type(error).__name__}: {error}") from error
    function = getattr(module, attribute, None)
    if not callable(function):
        raise InputError(f"{file}: has no function {attribute}")
    return cast("Callable[[Any], object]", function)
