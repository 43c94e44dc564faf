"""Kinds of FILE that ``canaryproof audit`` takes: scores or a release, each with the options that are not for it."""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from canaryproof.verify.audit import rules
from canaryproof.verify.audit.cli.options import EngineLost, cluster
from canaryproof.verify.audit.cli.release_options import make_canaries, show_progress
from canaryproof.verify.audit.files.errors import InputError
from canaryproof.verify.audit.files.reading import ScoreKind

if TYPE_CHECKING:
    from canaryproof.verify.audit.answer.release_sums import Scoring
    from canaryproof.verify.audit.answer.run_audit import Audit
    from canaryproof.verify.audit.canaries.scores import Scores

# Options of every audit; options of scores with a record, and of scores.
_ASKED = ("delta", "claim", "noise_multiplier", "notice", "ask", "tried", "confidence", "bounds", "force")
_MECHANISM, _GIVEN = ("rate", "rounds", "participations"), ("kind", "dim", "inclusion", "neighbours", "inserted")
COLUMNS = ("score", "member", "id_column")
# Values that say of a release what is so.
_HARMLESS = {"kind": ScoreKind.COSINE}


@dataclass(frozen=True)
class AuditInput:
    """A kind of FILE: what is not for it, by parameter with the rule, and how it is audited by the options."""

    refused: Mapping[str, str]
    audit: Callable[[Path, Mapping[str, Any]], "Audit"]

    def check(self, context: click.Context) -> None:
        """Refuse an option that is not for this kind of FILE."""
        for parameter in context.command.params:
            rule = self.refused.get(str(parameter.name))
            given = context.params[str(parameter.name)]
            if rule is not None and given not in (None, (), parameter.default, _HARMLESS.get(str(parameter.name))):
                raise InputError(f"{parameter.opts[0]}: {rule}")


def choose_input(options: Mapping[str, Any]) -> AuditInput:
    """Return the kind of FILE that the options are of; a release's canaries are always given."""
    given = [options[name] is not None for name in ("count", "seed")]
    if any(given) and not all(given):
        raise InputError("--canaries and --canary-seed: must be given together")
    return _RELEASE if any(given) else _SCORES


def _pick(options: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return {name: options[name] for name in names}


def _audit_scores(file: Path, options: Mapping[str, Any]) -> "Audit":
    scores = read_scores(file, _pick(options, _GIVEN), _pick(options, COLUMNS), options["unobserved"])
    mechanism = _pick(options, _MECHANISM)
    if scores.record is None and any(value is not None for value in mechanism.values()):
        source = click.get_current_context().get_parameter_source
        of_plan = any(source(name) is ParameterSource.DEFAULT_MAP for name in mechanism)
        named = f"{options['plan']} is a plan" if of_plan else "--rate, --rounds and --participations are"
        raise InputError(
            f"{file}: must have a record of rounds, as Scores.save of Python writes it, because {named} of rounds"
        )
    from canaryproof.verify.audit.answer.run_audit import audit

    _check_bounds(options["bounds"])
    try:
        return audit(scores, **_pick(options, _ASKED), **mechanism)
    except ValueError as error:
        raise InputError(f"{file}: {error}") from error


def read_scores(
    file: Path, given: Mapping[str, Any], columns: Mapping[str, str | None], unobserved: Path | None
) -> "Scores":
    """Read scores of any form; what is given is by names of ``score_files``."""
    npy = file.suffix.lower() == ".npy" and unobserved is None
    if npy and given["dim"] is None and given["kind"] != ScoreKind.ANY:
        raise InputError(f"{file}: cosines need --dim; a released vector needs --canaries and --canary-seed")
    # Loads compiled kernels.
    from canaryproof.verify.audit.canaries.score_files import read_any_scores

    try:
        scores, result = read_any_scores(file, given, columns, unobserved)
    except InputError:
        raise
    except ValueError as error:
        raise InputError(f"--{error}") from error
    if scores is None:
        raise InputError(f'{file}: has no scores, and "canaryproof review" says what its {result.form} show')
    if result.repetitions > 1:
        raise InputError(
            f"{file}: has canaries that are up to {result.repetitions} times in the data, and a claim is about one "
            f'record: "canaryproof review" says what so many together show'
        )
    return scores


def _audit_release(file: Path, options: Mapping[str, Any]) -> "Audit":
    # Audits of scores do without.
    from canaryproof.verify.audit.files.stored_release import open_release

    release = open_release(file, *(options[name] for name in ("only", "skip", "base", "canary_norm")))
    workers = cluster(options["engine_name"])
    from canaryproof.kernels.slices import blocks
    from canaryproof.verify.audit.answer.run_audit import audit_release

    _check_bounds(options["bounds"])
    scoring = None if workers is None else _executor_scoring(workers.results)
    asked = _pick(options, (*_ASKED, "state", "neighbours", "data_norm", "difference"))
    try:
        with show_progress("scoring canaries", options["count"] * len(blocks(release.dim))) as advance:
            canaries = make_canaries(options["directions"], options["seed"], options["count"], release.dim)
            return audit_release(release, canaries, advance=advance, scoring=scoring, **asked)
    except InputError:
        raise
    except ValueError as error:
        reason = str(error).removeprefix("release: ")
        raise InputError(f"{file}: {reason}") from error


def _executor_scoring(results: Callable[..., Any]) -> "Scoring":
    """Send blocks to an executor."""
    # Loads numba.
    from canaryproof.verify.audit.engine.executors import EngineError, Lost

    def scoring(function: str, tasks: Any) -> Iterator[tuple[int, Any]]:
        try:
            with contextlib.closing(results(function, tasks)) as answers:
                for number, answer in answers:
                    if isinstance(answer, Lost):
                        raise EngineLost(f"block {number} of the release was given up: {answer.reason}")
                    yield number, answer
        except EngineError as error:
            raise EngineLost(str(error)) from error

    return scoring


def _check_bounds(names: tuple[str, ...]) -> None:
    from canaryproof.verify.audit.bounds.catalogue import METHODS

    try:
        rules.bounds(names, METHODS, "--bound")
    except ValueError as error:
        raise InputError(str(error)) from error


_OF_RELEASES = ("directions", "canary_norm", "only", "skip", "base", "state", "engine_name", "data_norm", "difference")
_SCORES = AuditInput(
    dict.fromkeys(_OF_RELEASES, "must be given with --canaries and --canary-seed alone"), _audit_scores
)
_NO_COLUMNS = "must not be given with --canaries, as a released vector has no columns"
_RELEASE = AuditInput(
    {
        "dim": "must not be given with --canaries, as a released vector has its own length",
        "unobserved": "must not be given with --canaries, as the scores are those of a release",
        "kind": "must not be given with --canaries, as the scores of a released vector are cosines",
        "inclusion": "must not be given with --canaries, as all of them are in the release",
        "inserted": "must not be given with --canaries, as others are taken out of each score",
        **dict.fromkeys(COLUMNS, _NO_COLUMNS),
        **dict.fromkeys(_MECHANISM, "is for scores with a record of rounds"),
    },
    _audit_release,
)
