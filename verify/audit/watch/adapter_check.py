"""Whether an adapter of a watch is sound: it is tried on a small training, honest and with faults.

An adapter takes what passes by in somebody's trainer, and hands it to a watch. It can be wrong in both directions:
accuse an honest training, or see nothing of a broken one. And it can break the training itself. So the same training
is run with the watch and without, and everything that both leave is compared: parameters, generators, and which
attributes of which objects there are.
"""

import gc
import random
import sys
import tempfile
import tracemalloc
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any, Protocol

import numpy as np

from canaryproof.kernels.arrays import Ints, on_host
from canaryproof.kernels.public import set_module
from canaryproof.verify.audit.accounting.accountant import Claim
from canaryproof.verify.audit.answer.findings import GateOutcome, Question, Status
from canaryproof.verify.audit.watch.watch_answer import WatchAnswer, answer_of
from canaryproof.verify.audit.watch.watch_record import read_record
from canaryproof.verify.audit.watch.watching import Watch

# Questions of which a fault must be tried. A leak follows from the others, and accounting is tried with more steps.
_TRIED = (Question.NOISE, Question.CLIPPING, Question.SAMPLING)
# Steps after the watch was closed, the step after which it is asked, and steps whose cost is measured. None of these is
# a look, or makes a sum again.
_AFTER, _ASKED = 3, 3
# Steps with another claim, whose looks have shadow members.
_SHORT = 8
_FIRST, _COSTED = 64, 256
_ORDINARY = [step for step in range(1, _COSTED + 1) if step & (step - 1) and (step - 1) % 10]
_EARLY = [step for step in _ORDINARY if _FIRST < step < 2 * _FIRST]
_LATE = [step for step in _ORDINARY if step > 3 * _FIRST]
# A step may make so many times as many calls as an earlier one, and so many more; it may leave so many bytes, besides
# those of a vector, and take so many, besides half of those of the gradients.
_MORE, _CALLS, _LEFT, _TAKEN = 1.1, 8, 4096, 2**18
# Objects that are smaller are none of a model's vectors.
_SMALL = 256
_FEWEST = 32
# Objects of a training that are compared.
_OBJECTS = 50_000


@set_module("canaryproof.testing")
class AdapterTraining(Protocol):
    """A small training that an adapter is tried on, with faults that can be switched on.

    Attributes
    ----------
    steps
        Steps that its claim is about, at least 32.
    claim
        The mechanism that is claimed.
    faults
        Of each fault the question that fails: one or more each for ``noise``, ``clipping`` and ``sampling``.
    left_open
        Questions that the adapter cannot look at: these stay open in an honest training, and need no fault, but for a
        sampling of which members are handed over.
    exchanged
        Attributes of a training that ``watch`` exchanges for functions that it wraps, and that stay so.
    """

    steps: int
    claim: Claim
    faults: Mapping[str, str]
    left_open: Collection[str]
    exchanged: Collection[str]

    def start(self, fault: str | None) -> Any:
        """Return a new training before its first step: an object with all that belongs to it.

        Parameters
        ----------
        fault
            Name of a fault that it has; None for an honest one. Two calls with the same return the same training: what
            it draws comes from generators with fixed seeds, or from the global ones, which are seeded before.
        """

    def watch(self, training: Any, claim: Claim | float | None) -> Watch:
        """Attach the adapter to a training, with a claim, and return the watch.

        Parameters
        ----------
        training
            What ``start`` returned. If the adapter exchanges a part of it, that is exchanged here.
        claim
            The mechanism, its ε, or None: each is tried.
        """

    def run(self, training: Any) -> Iterator[object]:
        """Yield after each step of the training, for as many steps as are asked for.

        Parameters
        ----------
        training
            What ``start`` returned, and ``watch`` may have changed.
        """

    def state(self, training: Any) -> object:
        """Return parameters, and generators that are not global: arrays or others, in lists, tuples or mappings.

        Parameters
        ----------
        training
            What ``start`` returned.
        """


@set_module("canaryproof.testing")
def check_adapter(training: AdapterTraining) -> None:
    """Check an adapter of a watch on a training: call it in a test of your own test suite.

    Parameters
    ----------
    training
        A small training, with faults and the adapter.

    Raises
    ------
    AssertionError
        If the adapter is not sound. It says in a line each what is wrong.
    ValueError
        If the training cannot show it: it has too few steps, no fault for a question, or two runs of it differ.

    Notes
    -----
    An adapter is sound if

    - the honest training is PASSED, but for questions that are left open, and each step is counted once, when it is
      taken, with its noise and its members;
    - it does not fail where its ε alone, or nothing, is claimed;
    - each fault is NOT PASSED by its question, a shadow member sees one of the clipping, and twice as many steps as
      claimed are NOT PASSED by accounting;
    - parameters and generators are those of a run without a watch, bit for bit, and so are the names and functions that
      objects of the training and their classes have as attributes, and the functions of modules: when the watch is
      closed, and three steps later;
    - a step makes hardly more calls after 200 steps than after 100, and no step keeps an array as large as a model, or
      takes as much memory as the gradients of its examples besides, where these have half a megabyte or more;
    - the watch's file gives the same answer again.

    It runs eight trainings, two of them for 256 steps, and one more for each fault.
    """
    _check_case(training)
    # A first training makes caches and imports, which belong to no watch.
    with _global_seeds():
        training.start(None)
    plain = _Run(training, watched=False)
    again = _Run(training, watched=False)
    if (plain.states, plain.generators) != (again.states, again.generators):
        raise ValueError("training: two runs without a watch must leave the same state")
    watched = _Run(training, watched=True)
    _assert_none([*_wrong_answers(training, watched), *_wrong_states(watched, again)])
    assert watched.watch is not None
    _assert_none(
        [
            *_other_claims(training, watched.watch.delta),
            *_costs(training, watched),
            *_missed_faults(training),
        ]
    )


@contextmanager
def _run_name(run: str, watch: Watch | None) -> Iterator[None]:
    """Say in which run something was raised that is not without a watch."""
    try:
        yield
    except StopIteration as error:
        raise ValueError("run: must yield after each step, for as many steps as are asked for") from error
    except Exception as error:
        if watch is None:
            raise
        raise AssertionError(f"the adapter is not sound:\n- {run} raised {type(error).__name__}: {error}") from error


def _assert_none(problems: list[str]) -> None:
    if problems:
        raise AssertionError("\n".join(["the adapter is not sound:", *(f"- {each}" for each in problems)]))


def _check_case(case: AdapterTraining) -> None:
    if case.steps < _FEWEST:
        raise ValueError(f"steps: must be at least {_FEWEST}, not {case.steps!r}")
    questions = {question.value for question in Question}
    for name, given in (("left_open", case.left_open), ("faults", case.faults.values())):
        for question in given:
            if question not in questions:
                raise ValueError(f"{name}: must have questions of {sorted(questions)}, not {question!r}")
    for question in _TRIED:
        if question not in case.left_open and question not in case.faults.values():
            raise ValueError(f"faults: must have one that fails {question.value}, or left_open must have it")


class _Run:
    """A run of a training, with or without its watch, for the claimed steps and some more: what it leaves."""

    def __init__(self, case: AdapterTraining, *, watched: bool) -> None:
        with _global_seeds():
            training = case.start(None)
            before = _functions_of_modules()
            self.watch = case.watch(training, case.claim) if watched else None
            iterator = case.run(training)
            self.counted = [self._step(iterator, step) for step in range(1, case.steps + 1)]
            with _run_name("closing the watch", self.watch):
                self.answer = None if self.watch is None else self.watch.close()
            self.states, self.attributes = [_comparable(case.state(training))], [_attributes(training, case.exchanged)]
            for step in range(1, _AFTER + 1):
                with _run_name(f"step {step} after the watch was closed", self.watch):
                    next(iterator)
            self.later = None if self.watch is None else self.watch.answer()
            self.states.append(_comparable(case.state(training)))
            self.attributes.append(_attributes(training, case.exchanged))
            self.exchanged = [
                name for name, each in _functions_of_modules().items() if before.get(name, each) is not each
            ]
            self.generators = _generators()

    def _step(self, iterator: Iterator[object], step: int) -> int:
        with _run_name(f"step {step} of the honest training", self.watch):
            next(iterator)
        if self.watch is None:
            return 0
        if self.watch.steps == _ASKED:
            # To ask is to change nothing.
            self.watch.answer()
        return self.watch.steps


def _wrong_answers(case: AdapterTraining, run: _Run) -> Iterator[str]:
    """Yield what is wrong with the answer on the honest training, and with what was counted."""
    answer, watch = run.answer, run.watch
    assert answer is not None
    assert watch is not None
    assert run.later is not None
    outcome = GateOutcome.CANNOT_SAY if case.left_open else GateOutcome.PASSED
    is_open = {finding.question.value for finding in answer.findings if finding.status is not Status.AS_CLAIMED}
    if answer.decision.outcome is not outcome or is_open != set(case.left_open):
        yield f"the honest training is {answer.decision.outcome}: {answer.cause}"
    for number, counted in enumerate(run.counted, 1):
        if counted != number:
            yield f"after step {number} the watch has counted {counted}"
            break
    record = watch._record()
    for question, seen in ((Question.NOISE, record.noise), (Question.SAMPLING, record.sampling)):
        steps = 0 if seen is None else seen.steps
        if question not in case.left_open and steps != case.steps:
            yield f"the {question.value} of {steps} steps was looked at, of {case.steps}"
    if Question.CLIPPING not in case.left_open and not record.clipping.trials:
        yield "the clipping was never run with a shadow member"
    if record.sampling is not None and Question.SAMPLING not in case.faults.values():
        yield "members are handed over, and faults has none that fails sampling, such as a member who is drawn twice"
    if run.later.to_json() != answer.to_json():
        yield "the watch goes on after it was closed"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "watch.json"
        watch.save(path)
        if answer_of(read_record(path)).to_json() != answer.to_json():
            yield "the file has another answer than the watch"


def _wrong_states(run: _Run, plain: _Run) -> Iterator[str]:
    """Yield how a run with a watch differs from one without."""
    if run.states[0] != plain.states[0]:
        yield "the training's state is not that without a watch"
    elif run.states[1] != plain.states[1]:
        yield "the training's state is not that without a watch, in steps after the watch was closed"
    for name, state in plain.generators.items():
        if run.generators[name] != state:
            yield f"the global generator of {name} is not in the state that it has without a watch"
    for name in run.exchanged:
        yield f"after the watch was closed, {name} is another function than before"
        break
    for with_watch, without in zip(run.attributes, plain.attributes, strict=True):
        if with_watch != without:
            path = next(each for each in with_watch | without if with_watch.get(each) != without.get(each))
            shown = ", ".join(sorted(set(with_watch.get(path, ())) ^ set(without.get(path, ()))))
            yield f"after the watch was closed, attributes of the training differ at {path}: {shown}"
            break


def _other_claims(case: AdapterTraining, delta: float) -> Iterator[str]:
    """Yield whether an honest training fails by another claim, which is about a member more or less."""
    for claim, words in ((case.claim.epsilon(delta), "an ε alone"), (None, "nothing")):
        failed = _failures(_watch_of(case, None, _SHORT, claim).close())
        if failed:
            yield f"the honest training must not fail where {words} is claimed: {', '.join(failed)} failed"


def _missed_faults(case: AdapterTraining) -> Iterator[str]:
    """Yield which faults the watch does not fail, or fails by another question."""
    is_seen = Question.CLIPPING not in case.faults.values()
    for fault, question in case.faults.items():
        watch = _watch_of(case, fault, case.steps, case.claim)
        answer, worst = watch.close(), watch._record().clipping.worst
        is_seen |= question == Question.CLIPPING and worst is not None and worst.is_excessive
        if question not in _failures(answer):
            failed = ", ".join(_failures(answer)) or "none"
            yield f"the fault {fault!r} must fail {question}: {answer.decision.outcome}, {failed} failed"
    if not is_seen:
        yield "no fault of the clipping is seen by a shadow member, as if it were run by a formula of the adapter's own"
    answer = _watch_of(case, None, 2 * case.steps, case.claim).close()
    if Question.ACCOUNTING not in case.left_open and Question.ACCOUNTING not in _failures(answer):
        yield f"twice as many steps as claimed must fail accounting: {answer.decision.outcome}"


def _watch_of(case: AdapterTraining, fault: str | None, steps: int, claim: Claim | float | None) -> Watch:
    with _global_seeds():
        training = case.start(fault)
        watch = case.watch(training, claim)
        iterator = case.run(training)
        words = "the honest training" if fault is None else f"the training with the fault {fault!r}"
        for step in range(1, steps + 1):
            with _run_name(f"step {step} of {words}", watch):
                next(iterator)
        return watch


def _failures(answer: WatchAnswer) -> list[str]:
    return [finding.question.value for finding in answer.findings if finding.status is Status.FAILED]


def _costs(case: AdapterTraining, run: _Run) -> Iterator[str]:
    """Yield in what the cost of a step grows, or is as large as the gradients of its examples."""
    (calls, left, taken, counted), (own_calls, own_left, own_taken, _) = (
        _measure(case, watched=each) for each in (True, False)
    )
    if counted != _COSTED:
        yield f"after step {_COSTED} the watch has counted {counted}"
    early, late = (median(calls[step] - own_calls[step] for step in steps) for steps in (_EARLY, _LATE))
    if late > _MORE * max(early, 0) + _CALLS:
        yield f"a step makes more and more calls: {early:.0f} early, and {late:.0f} after {_LATE[0]} steps"
    assert run.watch is not None
    record = run.watch._record()
    dim = 0 if record.noise is None else record.noise.dim
    first, last = (left[step].sum() - own_left[step].sum() for step in (_FIRST, _COSTED))
    each = (last - first) / (_COSTED - _FIRST)
    if each > _LEFT + 8 * dim:
        yield f"each step leaves {each:,.0f} bytes more, which is above a vector of {dim:,} numbers"
    # The gradients of a last step are larger or smaller than a vector is.
    first, last = (_vectors(left[step], dim) - _vectors(own_left[step], dim) for step in (_FIRST, _COSTED))
    if last - first > (_COSTED - _FIRST) / 2:
        yield f"the steps {_FIRST + 1} to {_COSTED} leave {last - first} arrays as large as a vector of {dim:,} numbers"
    seen = record.clipping
    rows = 4 * dim * seen.gradients / max(1, seen.sums)
    more = median(taken[step] - own_taken[step] for step in taken)
    if more > _TAKEN + rows / 2:
        yield f"a step takes {more:,.0f} bytes more than without a watch, as if it copied all gradients"


def _vectors(sizes: Ints, dim: int) -> int:
    """Return how many objects are as large as a vector in single precision, or nearly so."""
    return int(np.count_nonzero(sizes >= max(2 * dim, _SMALL)))


def _measure(case: AdapterTraining, *, watched: bool) -> tuple[dict[int, int], dict[int, Ints], dict[int, int], int]:
    """Return by step the calls, the bytes of what is held, and the most that it took; and the steps counted."""
    calls: dict[int, int] = {}
    left: dict[int, Ints] = {}
    taken: dict[int, int] = {}
    counted = _COSTED
    with _global_seeds():
        training = case.start(None)
        watch = case.watch(training, case.claim) if watched else None
        iterator = case.run(training)
        for step in range(1, _COSTED + 1):
            if step in _ORDINARY and step <= _FEWEST:
                taken[step] = _traced_peak(iterator)
            elif step in _EARLY or step in _LATE:
                calls[step] = _count_calls(iterator)
            else:
                next(iterator)
            if step in (_FIRST, _COSTED):
                left[step] = _bytes_of([training, watch])
        if watch is not None:
            counted = watch.steps
            watch.close()
    return calls, left, taken, counted


def _count_calls(iterator: Iterator[object]) -> int:
    """Return how many calls a step makes."""
    count = 0

    def see(_: object, event: str, __: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(see)
    try:
        next(iterator)
    finally:
        sys.setprofile(before)
    return count


def _traced_peak(iterator: Iterator[object]) -> int:
    """Return the most bytes of memory that a step takes at a time, of what Python and numpy take."""
    is_traced = tracemalloc.is_tracing()
    if not is_traced:
        tracemalloc.start()
    tracemalloc.reset_peak()
    before, _ = tracemalloc.get_traced_memory()
    try:
        next(iterator)
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        if not is_traced:
            tracemalloc.stop()


@contextmanager
def _global_seeds() -> Iterator[None]:
    """Seed the global generators, and put them back."""
    torch = sys.modules.get("torch")
    held = random.getstate(), np.random.get_state(), None if torch is None else torch.get_rng_state()  # noqa: NPY002
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002
    if torch is not None:
        torch.manual_seed(0)
    try:
        yield
    finally:
        random.setstate(held[0])
        np.random.set_state(held[1])  # noqa: NPY002
        if torch is not None and held[2] is not None:
            torch.set_rng_state(held[2])


def _generators() -> dict[str, object]:
    torch = sys.modules.get("torch")
    states = {"random": random.getstate(), "numpy": _comparable(np.random.get_state())}  # noqa: NPY002
    return states | ({} if torch is None else {"torch": _comparable(torch.get_rng_state())})


def _comparable(value: object) -> object:
    """Return what can be compared, and does not change with the value."""
    if isinstance(value, Mapping):
        return tuple((str(name), _comparable(each)) for name, each in value.items())
    if isinstance(value, list | tuple):
        return tuple(map(_comparable, value))
    if isinstance(value, np.random.Generator):
        return _comparable(value.bit_generator.state)
    if isinstance(value, random.Random):
        return value.getstate()
    if hasattr(value, "get_state"):
        return _comparable(value.get_state())
    if "key<" in str(getattr(value, "dtype", "")):
        # A key of JAX is no array of numbers.
        return _comparable(sys.modules["jax"].random.key_data(value))
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        array = on_host(value)
        return str(array.dtype), array.shape, array.tobytes()
    return value


# These say nothing of a training, or lead to everything.
_PASSED_OVER = (
    *(ModuleType, type, FunctionType, BuiltinFunctionType, MethodType),
    *(str, bytes, int, float, complex, np.ndarray, Path),
)


def _attributes(training: object, exchanged: Collection[str]) -> dict[str, tuple[str, ...]]:
    """Return of each object of a training its class, and the names of its attributes and which functions they are."""
    objects: dict[str, tuple[str, ...]] = {}
    classes: dict[str, type] = {}
    seen, waiting = {id(training)}, [("training", training)]
    while waiting and len(objects) < _OBJECTS:
        path, each = waiting.pop()
        entries: Collection[object] = ()
        if isinstance(each, Mapping):
            entries = each.values()
        elif isinstance(each, list | tuple | set | frozenset):
            entries = each
        if entries:
            objects[f"{path}[…]"] = (f"{len(entries)} entries",)
        parts = [(f"{path}[{number}]", part) for number, part in enumerate(entries)]
        if isinstance(getattr(each, "__dict__", None), dict):
            names = {name: part for name, part in vars(each).items() if each is not training or name not in exchanged}
            parts += [(f"{path}.{name}", part) for name, part in names.items()]
            objects[path] = (type(each).__qualname__, *_names_of(names))
        for kind in type(each).__mro__:
            if kind.__module__ != "builtins":
                classes[f"the class {kind.__qualname__}"] = kind
        for name, part in parts:
            if id(part) not in seen and not isinstance(part, _PASSED_OVER):
                seen.add(id(part))
                waiting.append((name, part))
    return objects | {path: tuple(_names_of(_attributes_of(kind))) for path, kind in classes.items()}


def _attributes_of(kind: type) -> dict[str, object]:
    """Return a class' attributes, but for what Python keeps there, such as names of slots once an object is copied."""
    return {name: part for name, part in vars(kind).items() if callable(part) or not name.startswith("__")}


def _names_of(attributes: Mapping[str, object]) -> list[str]:
    """Return the names of attributes, and which functions they are."""
    functions = (f"{name} = {_name_of(part)}" for name, part in attributes.items() if callable(part))
    return [*sorted(attributes), *sorted(functions)]


def _name_of(function: object) -> str:
    """Return a function's name, and where it is written: one that wraps another may have its name."""
    name, code = getattr(function, "__qualname__", type(function).__qualname__), getattr(function, "__code__", None)
    return name if code is None else f"{name} ({Path(code.co_filename).name}:{code.co_firstlineno})"


def _functions_of_modules() -> dict[str, object]:
    """Return the functions of all modules by their names."""
    # Most functions of numpy have a kind of their own.
    kinds = (FunctionType, BuiltinFunctionType, MethodType, type(np.flatnonzero))
    return {
        f"{module}.{name}": each
        for module, held in list(sys.modules.items())
        for name, each in list(getattr(held, "__dict__", {}).items())
        if isinstance(each, kinds)
    }


def _bytes_of(roots: list[object]) -> Ints:
    """Return how many bytes each object has that can be reached, with the numbers of arrays."""
    seen = {id(getattr(module, "__dict__", None)) for module in list(sys.modules.values())}
    waiting, sizes = list(roots), []
    held: list[object] = []
    while waiting:
        each = waiting.pop()
        if id(each) in seen or isinstance(each, ModuleType | type):
            continue
        seen.add(id(each))
        held.append(each)
        size = sys.getsizeof(each, 0)
        if not isinstance(each, np.ndarray) and hasattr(type(each), "nbytes") and hasattr(type(each), "dtype"):
            size += int(each.nbytes)  # type: ignore[attr-defined]
        sizes.append(size)
        if isinstance(each, np.ndarray):
            waiting.append(each.base)
        waiting += gc.get_referents(each)
    return np.array(sizes, np.int64)
