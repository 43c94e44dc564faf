"""Command ``canaryproof self-test``: somebody's own training, run under its watch."""

import importlib.util
import inspect
import shutil
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from canaryproof.verify.audit.cli.terminal import streams_of_user
from canaryproof.verify.audit.files.errors import InputError

if TYPE_CHECKING:
    from canaryproof.verify.audit.watch.watch_answer import WatchAnswer


@click.command("self-test")
@click.argument("training", metavar="FILE.py:FUNCTION")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def self_test_command(ctx: click.Context, /, training: str, as_json: bool) -> None:
    """Run some steps of your own training under a watch.

    FUNCTION of FILE.py takes no argument. It makes a watch with canaryproof.watch, trains, and returns the watch. The
    documentation has an example.

    The exit status is that of the answer: 0 PASSED, 1 NOT PASSED, 3 CANNOT SAY.
    """
    answer = _answer(training, _function(training))
    terminal = shutil.get_terminal_size().columns, getattr(sys.stdout, "encoding", None) or "utf-8"
    click.echo(answer.to_json() if as_json else answer.text(*terminal))
    ctx.exit(answer.decision.status)


def _answer(name: str, function: Callable[[], object]) -> "WatchAnswer":
    """Run a training, and return what its watch says."""
    from canaryproof.verify.audit.watch.watching import Watch

    needed = [each for each in inspect.signature(function).parameters.values() if each.default is each.empty]
    if any(each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD) for each in needed):
        raise InputError(f"{name}: must take no argument and return its watch. {_INSTEAD}")
    try:
        # Prints of the training are not the answer.
        with streams_of_user():
            watch = function()
            answer = watch.close() if isinstance(watch, Watch) else None
    except (Exception, SystemExit) as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(last.filename).name}, line {last.lineno}"
        raise InputError(f"{name}: raised {type(error).__name__} ({where}): {error}") from error
    if answer is None:
        raise InputError(f"{name}: must return its watch, which canaryproof.watch makes")
    if not answer.steps:
        raise InputError(f"{name}: its watch saw no step")
    return answer


def _function(name: str) -> Callable[[], object]:
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
    return cast("Callable[[], object]", function)


# An inspection was handed over until 0.3, with these three methods.
_INSTEAD = (
    "In place of an inspection's add there is watch.step(release=…, total=…, gradients=…, drawn=…), and in place of "
    "update and replay watch.clipping(…)"
)
