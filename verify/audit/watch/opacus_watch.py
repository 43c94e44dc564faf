"""A watch over a training by Opacus: it takes what passes through the optimizer, and puts all back.

The optimizer's methods are replaced by ones that call them and look. A shadow run sets other gradients in place of the
examples', calls the training's own clipping, and puts gradients, fields and generators back, so that the trained
parameters are bit for bit those of the training without a watch.

Nothing here imports torch or Opacus.
"""

import math
import os
import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from canaryproof.kernels.arrays import SLICE, Array, Ints, on_host, precision
from canaryproof.verify.audit import rules
from canaryproof.verify.audit.accounting.accountant import Claim
from canaryproof.verify.audit.answer.findings import Question, Status
from canaryproof.verify.audit.canaries.inserted_canaries import InsertedCanaries, check_optimizer
from canaryproof.verify.audit.canaries.participation import Insertion, bernoulli
from canaryproof.verify.audit.watch.shadow_members import Parts, row_count
from canaryproof.verify.audit.watch.watch_answer import WatchAnswer
from canaryproof.verify.audit.watch.watch_record import AttackerEstimate, Observation, ShadowTrial
from canaryproof.verify.audit.watch.watching import Watch

_INSERT = rules.NumberRange("be a whole number of at least 2", 2, 10**6, whole=True)
# A released sum may be off by so much of itself from the noised one over the divisor, and an example's gradient alone
# from its row; the format's rounding comes on top.
_SCALED, _ALONE = 1e-3, 1e-3
# Examples of a batch whose gradients are taken alone, and of those that are a batch together for it.
_EXAMPLES, _TOGETHER = 4, 2
# Outputs of one example, before a network is said to draw nothing: two are equal by chance where few units are dropped.
_DRAWS = 32
# Cosine from which on a move of the parameters is along the unclipped gradient.
_ALONG = 0.99


class OpacusWatch(Watch):
    """A watch over a training by Opacus. ``canaryproof.watch(optimizer, loader, …)`` makes one.

    Parameters
    ----------
    optimizer
        What ``PrivacyEngine.make_private`` returns.
    loader
        The loader that it returns; None leaves the sampling open.
    delta
        δ of the claim.
    claim
        A ``Claim``, an ε, or None for what is configured.
    module
        The module that it returns. With it, parameters have names, an example's gradient is also computed alone, and a
        change of what the optimizer does not train is seen.
    engine
        The engine, whose ε is compared with that of the recorded steps.
    insert
        About the number of canaries that join the training: a fair coin decides on each of twice as many, and the
        others are for comparison. None leaves the training as it is.
    seed
        Seed of these canaries.

    Raises
    ------
    ValueError
        If an argument is out of its range, the optimizer is none of Opacus' that are served, or it is watched already.
        If canaries are to be inserted, and the claim has no number of steps.
    """

    is_in_one_process = True

    def __init__(
        self,
        optimizer: Any,
        loader: Any = None,
        *,
        delta: float,
        claim: Claim | float | None = None,
        module: Any = None,
        engine: Any = None,
        insert: int | None = None,
        seed: int = 0,
    ) -> None:
        check_optimizer(optimizer)
        if hasattr(optimizer, "canaryproof_watch"):
            raise ValueError("optimizer: is watched already; close that watch first")
        self._optimizer, self._engine = optimizer, engine
        # The sampler makes gradients of examples. The module is called by the training: the same object, or hooked.
        self._sampler: Any = None if module is None else _grad_sampler(module)
        self._module = self._sampler if callable(self._sampler) else getattr(self._sampler, "_module", module)
        self._params = list(optimizer.params)
        if not self._params:
            raise ValueError("optimizer: trains no parameters, so that nothing is released")
        self._is_ghost = type(optimizer).__name__.endswith("FastGradientClipping")
        self._divided_by = _divisor(optimizer)
        sampler = getattr(loader, "batch_sampler", None)
        rate = getattr(sampler, "sample_rate", None)
        # That of several processes has the members of all.
        members = getattr(sampler, "total_size", getattr(sampler, "num_samples", None))
        if members is None and loader is not None:
            members = len(loader.dataset)
        super().__init__(
            delta=delta,
            claim=claim,
            members=members,
            rate=rate,
            divisor=1.0,
            layers=dict(zip(_names(self._params, self._module), [p.numel() for p in self._params], strict=True)),
        )
        self._batches = _Batches(sampler)
        if loader is not None and not self._batches.is_recorded:
            because = "the loader has no batch sampler that could be recorded"
            self._observe(Question.SAMPLING, Status.CANNOT_SAY, "sampler", because)
        # These are of the step that is being taken: gradients so far, backward passes of a clipping, the clip norm, the
        # clipped sum made again with the gradients' lengths, the residual, and the noised sum.
        self._rows = 0
        self._accumulated = 1
        self._clip_norm: float | None = None
        self._again: list[Any] | None = None
        self._lengths: list[Array] = []
        self._residual: tuple[NDArray[Any], float] | None = None
        self._noised: Any = None
        self._is_changed = False
        # Versions and values of the parameters after the last step, and versions and bits of its other tensors.
        self._versions: list[int] | None = None
        self._values: list[Any] = []
        self._others = self._other_tensors()
        self._inputs: tuple[Any, Any] | None = None
        # Arguments of the last forward pass, and the gradients of its output by the two backward passes.
        self._passes: tuple[Any, Any, list[Any]] | None = None
        # Estimates from inserted canaries, and after how many steps they were made.
        self._estimates: tuple[AttackerEstimate, ...] = ()
        self._estimated = 0
        self._canaries = None if insert is None else self._make_canaries(int(_INSERT.number("insert", insert)), seed)
        self._patch()

    def _make_canaries(self, count: int, seed: int) -> InsertedCanaries:
        """Let canaries take part as members do, by the claim."""
        claim = self.claim
        every = claim is not None and claim.participations is not None and claim.participations == claim.rounds
        if claim is None or claim.rounds is None or (claim.rate is None and not every):
            raise ValueError("insert: needs a claim with its number of steps, such as accounting.poisson makes")
        drawn = bernoulli(0, 1.0 if claim.rate is None else claim.rate, claim.rounds, seed, Insertion(2 * count))
        return InsertedCanaries(self._optimizer, drawn, seed)

    # Patches, and their end.

    def _patch(self) -> None:
        optimizer = self._optimizer
        self._clip = self.patch(optimizer, "clip_and_accumulate", self._clip_and_look)
        self._add_noise = self.patch(optimizer, "add_noise", self._add_noise_and_look)
        self._scale = self.patch(optimizer, "scale_grad", self._scale_and_look)
        self._zero_grad = self.patch(optimizer, "zero_grad", self._look_and_zero_grad)
        self._patch_hook(self._take_step)
        inner = optimizer.original_optimizer
        if hasattr(inner, "register_step_post_hook"):
            self.at_close(inner.register_step_post_hook(lambda *_: self._keep_parameters()).remove)
        if self._module is not None and not self._is_ghost:
            hooked = self._module.register_forward_pre_hook(self._keep_inputs, with_kwargs=True)
            self.at_close(hooked.remove)
        if self._is_ghost:
            self._accumulate = self.patch(optimizer, "accumulate", self._accumulate_and_look)
            if self._module is not None:
                self.at_close(self._module.register_forward_hook(self._keep_output, with_kwargs=True).remove)
        self.at_close(self._batches.restore)

    def _patch_hook(self, hook: Callable[[Any], None]) -> None:
        optimizer = self._optimizer
        optimizer.canaryproof_watch = self
        self.at_close(lambda: vars(optimizer).pop("canaryproof_watch", None))
        self._hook = optimizer.step_hook
        optimizer.step_hook = hook

        def restore_hook() -> None:
            if optimizer.step_hook == hook:
                optimizer.step_hook = self._hook

        self.at_close(restore_hook)

    # These see what passes by.

    def _keep_inputs(self, _: Any, args: Any, kwargs: Any) -> None:
        if self._has_look_ahead() and self._rows == 0 and sys.modules["torch"].is_grad_enabled():
            self._inputs = (args, kwargs)

    def _clip_and_look(self) -> None:
        """Replace the optimizer's clipping, which is called for each physical batch."""
        self._has_clipping = True
        if self._has_changed_parameters():
            self._clip()
            return
        samples = self._optimizer.grad_samples
        count = len(samples[0])
        if self._rows == 0 and self._again is None:
            self._check_versions(samples)
            self._clip_norm = float(self._optimizer.max_grad_norm)
            if self._is_due():
                self._again = []
            if self._has_look_ahead() or self._was_apart:
                self._look_at_clipping(samples)
            if self._has_look_ahead():
                self._look_at_examples(count)
        if self._again is not None:
            self._sum_again(samples)
        self._rows += count
        self._accumulated = int(self._optimizer.accumulated_iterations)
        self._clip()

    def _insert_and_add_noise(self) -> None:
        """Add noise, and before it the canaries of a step."""
        if self.canaries is not None:
            self.canaries.enter()
        self._add_noise()
        if self.canaries is not None:
            self.canaries.take()

    def _add_noise_and_look(self) -> None:
        """Replace the optimizer's ``add_noise``, which is called once a step."""
        if self._is_changed:
            self._insert_and_add_noise()
            return
        was_clipped = self._clip_norm is not None
        clip_norm = float(self._optimizer.max_grad_norm if self._clip_norm is None else self._clip_norm)
        sums = [p.summed_grad for p in self._params if p.summed_grad is not None]
        is_whole = len(sums) == len(self._params)
        if not was_clipped and not self._is_ghost:
            because = f"the optimizer's clipping was not called in step {self.steps + 1}"
            self._observe(Question.CLIPPING, Status.CANNOT_SAY, "hook", because)
        # Noise may be added in place. This copy becomes the residual.
        total = flat(sums) if is_whole else None
        if was_clipped and total is not None:
            self._check_length(float(total.norm()), self._rows, clip_norm, max(map(precision, sums)))
            self._compare_sum_again(sums)
        self._again = None
        if self.canaries is not None:
            self.canaries.enter()
            total = flat([p.summed_grad for p in self._params])
        self._add_noise()
        if self.canaries is not None:
            self.canaries.take()
        self._noised = noised = flat([p.grad for p in self._params])
        if total is None:
            because = f"step {self.steps + 1} had no clipped sum"
            self._observe(Question.NOISE, Status.CANNOT_SAY, "sum", because)
            return
        largest = float(sys.modules["torch"].linalg.vector_norm(noised, math.inf))
        residual = on_host(total.neg_().add_(noised))
        residual /= clip_norm
        self._residual = residual, max(precision(p.grad) for p in self._params) * largest / clip_norm

    def _scale_and_look(self) -> None:
        """Replace the optimizer's ``scale_grad``: a step divides by one number, whoever was drawn."""
        self._scale()
        if self._is_changed or self._noised is None:
            return
        noised, self._noised = self._noised, None
        divisor = self._divided_by * self._accumulated
        start, length, apart = 0, 0.0, 0.0
        for released in _slices([p.grad for p in self._params]):
            part = noised[start : start + len(released)]
            start += len(released)
            length = math.hypot(length, float(released.norm()))
            apart = math.hypot(apart, float((part / divisor - released).norm()))
        if not apart <= (_SCALED + max(precision(p.grad) for p in self._params)) * length and math.isfinite(length):
            seen = float(noised.norm()) / length if length else math.inf
            because = f"the noised sum of step {self.steps + 1} is divided by {seen:.6g}, not by {divisor:.6g}"
            do = "Divide by the expected batch size: the number that was drawn is private."
            self._observe(Question.CLIPPING, Status.FAILED, "divisor", because, do)

    def _take_step(self, optimizer: Any) -> None:
        """Take a step where the accountant counts it."""
        if self._hook is not None:
            self._hook(optimizer)
        sigma = float(optimizer.noise_multiplier)
        self._read_claimed_rate()
        residual = self._residual
        if residual is None and not self._is_changed:
            because = f"the optimizer's noise was not seen in step {self.steps + 1}"
            self._observe(Question.NOISE, Status.CANNOT_SAY, "hook", because)
        was_seen = self._clip_norm is not None or (self._is_ghost and self._rows > 0)
        drawn = self._batches.members_of_step(self._rows if was_seen else None, self._accumulated)
        if drawn is None and self._batches.is_recorded:
            because = f"the members of step {self.steps + 1} are no batch of the loader"
            self._observe(Question.SAMPLING, Status.CANNOT_SAY, "matched", because)
        self._rows, self._accumulated = 0, 1
        self._clip_norm, self._again, self._residual, self._noised, self._lengths = None, None, None, None, []
        self._inputs = None
        self._take_noise_and_members(residual, sigma, drawn)

    def _take_noise_and_members(
        self, residual: tuple[NDArray[Any], float] | None, sigma: float, drawn: Ints | None
    ) -> None:
        """Take a step's noise, if it was seen, and who was drawn."""
        if residual is not None:
            self._take_residual(*residual, self._noise_of_gradients(sigma))
        self._count_step(sigma, drawn, None)

    def _noise_of_gradients(self, sigma: float) -> float:
        """Return the noise multiplier of the gradients, where a noised count is released with them (1905.03871)."""
        if type(self._optimizer).__name__ != "AdaClipDPOptimizer" or not sigma:
            return sigma
        return float((sigma**-2 - (2.0 * float(self._optimizer.unclipped_num_std)) ** -2) ** -0.5)

    def _read_claimed_rate(self) -> None:
        """Take the rate that the accountant counts on, where neither claim nor sampler has one."""
        history = getattr(getattr(self._engine, "accountant", None), "history", None)
        if self._claimed_rate is None and history:
            self._rate = self._claimed_rate = float(history[-1][1])

    def _accountant_epsilon(self) -> float | None:
        if self._engine is None or not self.steps:
            return None
        history = getattr(getattr(self._engine, "accountant", None), "history", ())
        if self._earlier is not None and sum(entry[2] for entry in history) == self.steps - self._earlier.steps:
            # It is in no checkpoint.
            self._note_accountant("was not resumed")
            return None
        try:
            return float(self._engine.get_epsilon(self.delta))
        except Exception as error:
            self._note_accountant(f"ended in {type(error).__name__}")
            return None

    def _note_accountant(self, why: str) -> None:
        because = f"the ε of Opacus' accountant, which {why}"
        self._observe(Question.ACCOUNTING, Status.NOT_LOOKED_AT, "engine", because)

    def _attackers(self) -> tuple[AttackerEstimate, ...]:
        """Return what Algorithms 2 and 3 of Andrew et al. (arXiv 2302.03098) estimate."""
        if self.canaries is None or not self.canaries.canary_clients.rounds:
            return ()
        if self._estimated != self.steps:
            # These load compiled kernels, which a watch that inserts nothing does without.
            from canaryproof.verify.audit.answer.run_audit import audit
            from canaryproof.verify.audit.canaries.scores import Scores

            largest, scores = self.canaries.scores("largest", known=False), {}
            # The final model is no vector of one process alone, and it has no direction where nothing moved.
            if self.is_in_one_process:
                with suppress(ValueError):
                    scores[_FINAL] = Scores(self.canaries.final()[0], dim=self.canaries.dim)
            scores[_LARGEST] = Scores(largest.observed, largest.unobserved)
            audits = [(name, audit(each, self.delta)) for name, each in scores.items()]
            self._estimates = tuple(
                AttackerEstimate(name, len(each.scores.observed), first.epsilon, first.low, first.high)
                for name, each in audits
                for first in each.estimates[: 0 if each.withheld else 1]
            )
            self._estimated = self.steps
        return self._estimates

    def _open_parts(self) -> Iterator[Observation]:
        yield from super()._open_parts()
        give = "Give module to the watch."
        if not self._clipping.alone:
            do = give if self._sampler is None else "Try cp.replay with your step."
            yield self._part(Question.CLIPPING, "whether the model mixes examples", do)
        if self._module is None:
            yield self._part(
                Question.LEAK, "what changes parameters and buffers that the optimizer does not train", give
            )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write what was recorded, and with inserted canaries their state next to it.

        Parameters
        ----------
        path
            As for ``Watch.save``. Files with its name and the endings ``.canaries`` and ``.others`` have the state.

        Raises
        ------
        OSError
            If it cannot be written.
        """
        super().save(path)
        if self.canaries is not None:
            self.canaries.save(Path(path))

    def resume(self, path: str | os.PathLike[str]) -> None:
        """Go on from what ``save`` wrote, as ``Watch.resume`` does, and with the canaries that were inserted.

        Parameters
        ----------
        path
            The file of a watch with the same claim and canaries, taken before the first step.

        Raises
        ------
        InputError
            If it cannot be read, or is of another claim, release or canaries.
        ValueError
            If a step was taken already.
        """
        super().resume(path)
        if self.canaries is not None:
            self.canaries.load(Path(path))

    def _has_changed_parameters(self) -> bool:
        """Tell whether other parameters are trained than at the start, and say so."""
        if [id(p) for p in self._optimizer.params] != [id(p) for p in self._params] and not self._is_changed:
            self._is_changed = True
            for question in (Question.NOISE, Question.CLIPPING):
                because = f"other parameters are trained from step {self.steps + 1} on than at the start"
                self._observe(question, Status.CANNOT_SAY, "parameters", because, "Make a watch for each part.")
        return self._is_changed

    # The clipping.

    def _factors(self, samples: list[Any]) -> tuple[list[Any], Any]:
        """Return the factors that scale gradients to the clip norm, and their lengths in clip norms."""
        torch = sys.modules["torch"]
        norms = [each.reshape(len(each), each[0].numel()).float().norm(dim=1) for each in samples]
        limits = getattr(self._optimizer, "max_grad_norms", None)
        if limits is not None:
            # Each parameter has a limit of its own.
            parts = [(limit / norm.clamp(min=1e-30)).clamp(max=1.0) for norm, limit in zip(norms, limits, strict=True)]
            ratios = [norm / limit for norm, limit in zip(norms, limits, strict=True)]
            return parts, torch.stack(ratios, dim=1).amax(dim=1)
        whole = torch.stack([norm.to(norms[0].device) for norm in norms], dim=1).norm(dim=1)
        factor = (self._clip_norm / whole.clamp(min=1e-30)).clamp(max=1.0)
        return [factor.to(norm.device) for norm in norms], whole / self._clip_norm

    def _sum_again(self, samples: list[Any]) -> None:
        """Add a physical batch to the clipped sum that is made again."""
        torch = sys.modules["torch"]
        assert self._again is not None
        if not len(samples[0]):
            return
        factors, lengths = self._factors(samples)
        self._lengths.append(on_host(lengths).astype(np.float64))
        parts = (
            torch.einsum("n,n...->...", factor.to(each.dtype), each)
            for factor, each in zip(factors, samples, strict=True)
        )
        self._again = (
            [total.add_(part) for total, part in zip(self._again, parts, strict=True)] if self._again else [*parts]
        )

    def _compare_sum_again(self, total: list[Any]) -> None:
        if self._again is None:
            return
        # Without a row the sum is 0.
        pairs = zip(_slices(total), _slices(self._again) if self._again else repeat(0.0), strict=False)
        apart = math.hypot(*(float((each - again).norm()) for each, again in pairs))
        lengths = np.concatenate(self._lengths) if self._lengths else np.zeros(0)
        self._note_sum(lengths, apart / (self._clip_norm or 1.0) / max(self._rows, 1), max(map(precision, total)))

    def _look_at_clipping(self, samples: list[Any]) -> None:
        """Run the optimizer's clipping with shadow members."""
        torch = sys.modules["torch"]
        dim = sum(self._layers.values()) if self._layers else 0
        count = row_count(len(samples[0]), dim, 4)
        rows = [on_host(each[:count]).reshape(count, p.numel()) for each, p in zip(samples, self._params, strict=True)]
        formats = [torch.finfo(p.dtype) for p in self._params]

        def clipped_sum(given: Parts) -> Parts:
            for p, sample, part in zip(self._params, samples, given, strict=True):
                like = torch.from_numpy(part).reshape(len(part), *p.shape)
                p.grad_sample = like.to(device=sample.device, dtype=sample.dtype)
                p.summed_grad = None
            self._clip()
            sums = [on_host(p.summed_grad).reshape(-1) for p in self._params]
            for p in self._params:
                p.grad_sample, p.summed_grad = None, None
            return sums

        with self._state():
            self._run_shadows(
                clipped_sum,
                rows,
                float(self._clip_norm or 1.0),
                max(float(each.eps) for each in formats),
                min(float(each.max) for each in formats),
            )

    @contextmanager
    def _state(self) -> Iterator[None]:
        """Put gradients, the optimizer's fields and all generators back."""
        torch, optimizer = sys.modules["torch"], self._optimizer
        held = [(p, [(name, getattr(p, name)) for name in _GRADIENTS if hasattr(p, name)]) for p in self._params]
        fields = {name: _copy(value) for name, value in vars(optimizer).items()}
        generators = {"torch": torch.get_rng_state(), "numpy": np.random.get_state(), "python": random.getstate()}  # noqa: NPY002
        own = getattr(optimizer, "generator", None)
        own_state = None if own is None else own.get_state()
        cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_available() and torch.cuda.is_initialized() else None
        try:
            yield
        finally:
            for p, values in held:
                for name, value in values:
                    setattr(p, name, value)
            vars(optimizer).clear()
            vars(optimizer).update(fields)
            torch.set_rng_state(generators["torch"])
            np.random.set_state(generators["numpy"])  # noqa: NPY002
            random.setstate(generators["python"])
            if own is not None:
                own.set_state(own_state)
            if cuda is not None:
                torch.cuda.set_rng_state_all(cuda)

    # Ghost clipping, which makes no gradients of examples: its factors are those of the output's gradients.

    def _keep_output(self, _: Any, args: Any, kwargs: Any, output: Any) -> None:
        tensor = getattr(output, "logits", output)
        if getattr(tensor, "requires_grad", False):
            gradients: list[Any] = []
            tensor.register_hook(lambda gradient: gradients.append(gradient.detach()))
            self._passes = (args, kwargs, gradients)

    def _accumulate_and_look(self) -> None:
        """Replace the optimizer's ``accumulate``, which is called for each physical batch."""
        self._has_clipping = True
        if self._rows == 0:
            self._check_versions(None)
        passes, self._passes = self._passes, None
        norms = getattr(self._sampler, "_per_sample_gradient_norms", None)
        if passes is None or len(passes[2]) != 2 or norms is None or len(norms) != len(passes[2][0]):
            because = f"the factors of ghost clipping were not seen in step {self.steps + 1}"
            do = "Train by the criterion that make_private returned, without which nothing is clipped"
            do += " and give the module to the watch." if self._sampler is None else "."
            self._observe(Question.CLIPPING, Status.CANNOT_SAY, "ghost", because, do)
        elif len(norms):
            self._look_at_factors(*passes, norms.float())
        self._accumulate()

    def _look_at_factors(self, args: Any, kwargs: Any, gradients: list[Any], norms: Any) -> None:
        """Compare what examples enter with to the clip norm: by Opacus' own norms, and by those of examples alone."""
        clip_norm, count = float(self._optimizer.max_grad_norm), len(norms)
        first, second = (each.reshape(count, -1).float().norm(dim=1) for each in gradients)
        scale = count if self._sampler.loss_reduction == "mean" else 1
        factors = second / (scale * first).clamp(min=1e-30)
        lengths = norms / clip_norm
        limit = 1.0 + _ALONE + 4.0 * max(precision(p) for p in self._params)
        entries = [("an example of the batch, by the norm that Opacus computes", float((factors * lengths).max()))]
        if self._has_look_ahead() and self._rows == 0:
            longest = [int(i) for i in norms.argsort(descending=True)[:_EXAMPLES]]
            alone = self._lengths_alone(args, kwargs, count, longest, scale * gradients[0])
            by_alone = [float(factors[i]) * length / clip_norm for i, length in alone.items()]
            # Two outputs of an example may be equal by chance, and more are drawn before anybody is accused.
            if self._is_random(args, kwargs, count, 2 if max(by_alone, default=0.0) <= limit else _DRAWS):
                because = "ghost clipping with dropout leaves no pass in which an example's norm could be taken alone"
                do = "Watch some steps with grad_sample_mode='hooks'."
                self._observe(Question.CLIPPING, Status.CANNOT_SAY, "dropout", because, do)
            else:
                entries += [("an example of the batch, by the norm of its gradient alone", each) for each in by_alone]
                near = limit - 1.0
                are_as_long = all(abs(float(norms[i]) - length) <= near * length for i, length in alone.items())
                self._look_at_outputs(args, kwargs, count, near, are_as_long=are_as_long)
        self._rows += count
        self._note_trials([ShadowTrial(name, self.steps + 1, entry, limit) for name, entry in entries])
        self._note_lengths(on_host(lengths).astype(np.float64))

    def _lengths_alone(self, args: Any, kwargs: Any, count: int, rows: list[int], weights: Any) -> dict[int, float]:
        """Return the norms of examples' gradients, each computed alone."""
        torch, lengths = sys.modules["torch"], {}
        try:
            with self._state(), torch.enable_grad(), self._without_hooks():
                for i in rows:
                    gradients = torch.autograd.grad(
                        self._output_alone(args, kwargs, count, i), self._params, weights[i : i + 1], allow_unused=True
                    )
                    parts = [float(each.float().square().sum()) for each in gradients if each is not None]
                    lengths[i] = math.sqrt(sum(parts))
        except Exception as error:
            because = f"an example could not be run alone: {type(error).__name__}: {error}"
            self._observe(Question.CLIPPING, Status.CANNOT_SAY, "alone", because[:200])
        return lengths

    def _look_at_outputs(self, args: Any, kwargs: Any, count: int, near: float, *, are_as_long: bool) -> None:
        """Compare the output of an example in a small batch with that of it alone; the gradients may be as long."""
        torch, i = sys.modules["torch"], self._looks % _TOGETHER
        if count < _TOGETHER:
            return
        try:
            with self._state(), torch.no_grad(), self._without_hooks():
                parts = _part(args, count, 0, _TOGETHER), _part(kwargs, count, 0, _TOGETHER)
                together = _tensor(self._sampler._module(*parts[0], **parts[1]), _TOGETHER)[i].float()
                alone = self._output_alone(args, kwargs, count, i)[0].float()
        except Exception:
            # A module that takes no part of a batch is not looked at.
            return
        length = max(float(alone.norm()), float(together.norm()))
        apart = float((alone - together).norm()) / length if length else 0.0
        if apart <= near:
            self._count_alone(int(are_as_long))
        elif not self._is_random(args, kwargs, count, _DRAWS):
            self._note_mixture("output", apart)

    def _note_mixture(self, part: str, apart: float) -> None:
        because = (
            f"an example's {part} depends on the others of its batch: alone it is {apart:.2g} of its length away "
            f"(step {self.steps + 1})"
        )
        do = "Take out of the model what mixes examples, or what computes gradients of examples wrongly."
        self._observe(Question.CLIPPING, Status.FAILED, "alone", because, do)

    # The gradient of an example alone.

    @contextmanager
    def _without_hooks(self) -> Iterator[None]:
        """Run the network as if no gradients of examples were made."""
        hooks = self._sampler if hasattr(self._sampler, "disable_hooks") else None
        if hooks is not None:
            hooks.disable_hooks()
        try:
            yield
        finally:
            if hooks is not None:
                hooks.enable_hooks()

    def _output_alone(self, args: Any, kwargs: Any, count: int, i: int) -> Any:
        """Return what the network makes of one example of a batch, alone."""
        return _tensor(self._sampler._module(*_part(args, count, i, i + 1), **_part(kwargs, count, i, i + 1)), 1)

    def _is_random(self, args: Any, kwargs: Any, count: int, draws: int) -> bool:
        """Tell whether the network draws random numbers, so that one example has several outputs."""
        torch, rounding = sys.modules["torch"], 4.0 * max(precision(p) for p in self._params)
        try:
            with self._state(), torch.no_grad(), self._without_hooks():
                first, *others = (self._output_alone(args, kwargs, count, 0).float() for _ in range(draws))
        except Exception:
            # It is said where the gradient is taken that an example does not run alone.
            return False
        return any(not float((first - other).norm()) <= rounding * float(first.norm()) for other in others)

    def _look_at_examples(self, count: int) -> None:
        """Compare gradients of examples with those that each has alone, in a pass of its own without dropout."""
        if self._inputs is None or self._sampler is None:
            return
        torch, module = sys.modules["torch"], self._module
        args, kwargs = self._inputs
        # Time may stand first, which no example has a row of.
        if count < _TOGETHER or _batch_size((args, kwargs)) != count or not getattr(self._sampler, "batch_first", True):
            return
        dropped = [each for each in module.modules() if type(each).__name__.startswith("Dropout") and each.training]
        try:
            with self._state(), torch.enable_grad():
                for each in dropped:
                    each.eval()
                apart = self._apart_from_alone(args, kwargs, count)
                is_apart = not apart <= _ALONE + 16.0 * max(precision(p) for p in self._params)
                if is_apart and self._is_random(args, kwargs, count, _DRAWS):
                    return
        except Exception:
            # A module that takes no part of a batch, or returns no tensor of one row each, is not looked at.
            return
        finally:
            for each in dropped:
                each.train()
        if is_apart:
            self._note_mixture("gradient", apart)
        else:
            self._count_alone()

    def _apart_from_alone(self, args: Any, kwargs: Any, count: int) -> float:
        """Return the relative distance of an example's gradient in a small batch from that alone.

        Alone it is taken by PyTorch, and where that is apart, by Opacus, whose gradients of examples are what is
        clipped: of an embedding with a padding index they have a row that PyTorch's leave at zero.
        """
        torch, params, few = sys.modules["torch"], self._params, _TOGETHER
        # One of them a look, in turn: what mixes examples may do so in one direction alone.
        i = self._looks % few
        joint = self._gradient_of_row(args, kwargs, count, range(few), i)
        with self._without_hooks():
            alone = self._output_alone(args, kwargs, count, i)
            gradients = torch.autograd.grad(alone, params, _weights_of(alone, few)[i : i + 1], allow_unused=True)
        pairs = zip(gradients, params, strict=True)
        apart = _relative_distance(joint, [torch.zeros_like(p) if own is None else own for own, p in pairs])
        if apart <= _ALONE:
            return apart
        del gradients, alone
        return min(apart, _relative_distance(joint, self._gradient_of_row(args, kwargs, count, range(i, i + 1), i)))

    def _gradient_of_row(self, args: Any, kwargs: Any, count: int, rows: range, i: int) -> list[Any]:
        """Return Opacus' gradient of an example among some of a batch, of a weighted sum of their outputs."""
        dropped = [p.register_post_accumulate_grad_hook(_drop_gradient) for p in self._params]
        for p in self._params:
            p.grad, p.grad_sample = None, None
        try:
            output = self._module(
                *_part(args, count, rows.start, rows.stop), **_part(kwargs, count, rows.start, rows.stop)
            )
            output = _tensor(output, len(rows))
            output.backward(_weights_of(output, _TOGETHER)[rows.start : rows.stop])
        finally:
            for hook in dropped:
                hook.remove()
        scale, gradient = len(rows) if self._sampler.loss_reduction == "mean" else 1, []
        for p in self._params:
            gradient.append(p.grad_sample[i - rows.start] / scale)
            p.grad_sample = None
        return gradient

    # Parameters that move between steps.

    def _keep_parameters(self) -> None:
        self._versions = [p._version for p in self._params]
        self._values = [p.detach().clone() for p in self._params]

    def _check_versions(self, samples: list[Any] | None) -> None:
        """Say which parameters moved since the last step, and whether along the unclipped gradient, if there is one."""
        before = f"before step {self.steps + 1}"
        # All tensors of a module take a while to find. What was written to stays so, and none is missed.
        if self._is_due() or self._has_look_ahead():
            self._check_others(before)
        self._has_moved(samples, before)
        # Nothing needs these until the parameters have moved by the step.
        self._versions, self._values = None, []

    def _look_and_zero_grad(self, *args: Any, **kwargs: Any) -> None:
        """Replace the optimizer's ``zero_grad``, until which the gradients of the last step are there."""
        if self._versions is not None and self._has_moved(self._samples(), f"before step {self.steps + 1}"):
            self._keep_parameters()
        self._zero_grad(*args, **kwargs)

    def close(self) -> WatchAnswer:
        """Look once more, at the end, also at what moved since the last step, and take nothing from then on.

        Returns
        -------
        The answer.
        """
        if not self._closed and self._versions is not None:
            after = f"after step {self.steps}"
            self._check_others(after)
            # A model that was moved to another device or format is no other model.
            kinds = [(p.dtype, p.device, p.shape) == (each.dtype, each.device, each.shape) for p, each in self._pairs()]
            if all(kinds) and self._has_moved(self._samples(), after, is_end=True):
                self._observe(
                    Question.LEAK, Status.NOT_LOOKED_AT, "end", "what moved the parameters after the last step"
                )
        return super().close()

    def _samples(self) -> list[Any] | None:
        """Return the gradients of the last step's examples, while they are there."""
        samples = [getattr(p, "grad_sample", None) for p in self._params]
        return samples if all(hasattr(each, "sum") for each in samples) else None

    def _pairs(self) -> Iterator[tuple[Any, Any]]:
        return zip(self._params, self._values, strict=True)

    def _has_moved(self, samples: list[Any] | None, when: str, *, is_end: bool = False) -> bool:
        """Return whether parameters moved since the last step, and say so; at the end only if along the gradient."""
        if self._versions is None:
            return False
        # A write to p.data leaves the version as it was.
        equal, versions = sys.modules["torch"].equal, zip(self._versions, self._pairs(), strict=True)
        moved = [i for i, (version, (p, held)) in enumerate(versions) if p._version != version or not equal(p, held)]
        product = size = length = 0.0
        for i in moved:
            change = (self._params[i].detach() - self._values[i]).float()
            size += float(change.square().sum())
            if samples is not None:
                gradient = samples[i].float().sum(dim=0)
                product += float((change * gradient).sum())
                length += float(gradient.square().sum())
        # Numbers that are none are equal to no number.
        if not size > 0.0:
            return False
        names = list(self._layers or ())
        shown = ", ".join(names[i] for i in moved[:3]) + (f" and {len(moved) - 3} more" if len(moved) > 3 else "")
        if abs(product) > _ALONG * math.sqrt(size * length) > 0.0:
            because = f"parameters moved along the gradient without clipping and noise, {when}: {shown}"
            self._observe(Question.LEAK, Status.FAILED, "step", because, "Take that step out of the training.")
        elif not is_end:
            because = f"parameters were moved by something else than the optimizer, {when}: {shown}"
            self._observe(Question.LEAK, Status.CANNOT_SAY, "moved", because, "Check that no data moves them.")
        return True

    def _check_others(self, when: str) -> None:
        """Say what changed that the optimizer does not train."""
        for name, seen in self._other_tensors().items():
            if seen != self._others.get(name, seen):
                because = f"{name}, which the optimizer does not train, changed {when}"
                do = "Check that no data is in it, or leave it as it is."
                self._observe(Question.LEAK, Status.CANNOT_SAY, "others", because, do)

    def _other_tensors(self) -> dict[str, tuple[int, int]]:
        """Return versions and bits of what the optimizer does not train: other parameters, floating-point buffers."""
        if self._module is None:
            return {}
        trained = {id(p) for p in self._params}
        tensors = [*self._module.named_parameters(), *self._module.named_buffers()]
        return {
            name.removeprefix("_module."): (each._version, _sum_of_bits(each))
            for name, each in tensors
            if id(each) not in trained and each.is_floating_point()
        }


class _Batches:
    """The batches that a sampler yields, of each of its iterators, and which of them a step has taken."""

    def __init__(self, sampler: Any) -> None:
        self.sampler, self._queues, self._class = sampler, [], type(sampler)
        self.is_recorded = False
        self._current: list[Ints] | None = None
        queues: list[list[Ints]] = []
        self._queues = queues

        def record(each: Any) -> Iterator[Any]:
            queue: list[Ints] = []
            queues.append(queue)
            for batch in self._class.__iter__(each):
                queue.append(np.array(batch, dtype=np.int64))
                yield batch

        try:
            # A loader in a loader takes the sampler itself, and asks for its class.
            body = {"__iter__": record, "__module__": self._class.__module__, "__qualname__": self._class.__qualname__}
            sampler.__class__ = type(self._class.__name__, (self._class,), body)
            self.is_recorded = True
        except (TypeError, AttributeError):
            pass

    def restore(self) -> None:
        """Give the sampler its class back."""
        if self.is_recorded:
            self.sampler.__class__ = self._class

    def members_of_step(self, rows: int | None, batches: int) -> Ints | None:
        """Return the members of the step that is being taken; None if no batch has as many as there are gradients.

        A loader may be ahead of the training, and another loop over it may have come between.
        """
        newest = self._queues[::-1]
        candidates = ([] if self._current is None else [self._current]) + [q for q in newest if q is not self._current]
        # A physical batch is a part of one, and a step that accumulates gradients has several.
        for queue in candidates:
            for count in sorted({1, batches}):
                members = self._take(queue, rows, count)
                if members is not None:
                    return members
        # An epoch that was broken off leaves batches that no step has taken.
        for queue in newest[:1]:
            for start in range(1, len(queue)):
                if self._size(queue[start : start + batches]) == rows:
                    del queue[:start]
                    return self._take(queue, rows, batches)
        return None

    def _take(self, queue: list[Ints], rows: int | None, batches: int) -> Ints | None:
        step = queue[:batches]
        if len(step) < batches or (rows is not None and self._size(step) != rows):
            return None
        del queue[:batches]
        # Batches of iterators before this one belong to no step any more.
        self._current = queue
        return np.concatenate(step)

    @staticmethod
    def _size(batches: list[Ints]) -> int:
        return sum(map(len, batches))


_FINAL, _LARGEST = "the final model (Algorithm 2)", "the largest cosine (Algorithm 3)"
_GRADIENTS = ("grad", "grad_sample", "summed_grad")


def _sum_of_bits(tensor: Any) -> int:
    """Return the sum of a tensor's bits as whole numbers, which is the same in any order; 0 where it has none here."""
    torch = sys.modules["torch"]
    kinds = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    try:
        return int(tensor.detach().reshape(-1).view(kinds[tensor.element_size()]).sum(dtype=torch.int64))
    except Exception:
        # Sharded, sparse or without memory: its version tells of most writes.
        return 0


def _drop_gradient(parameter: Any) -> None:
    """Keep no gradient of a whole batch where those of its examples are compared."""
    parameter.grad = None


def _weights_of(output: Any, count: int) -> Any:
    """Return weights of the numbers of so many examples' outputs, of which one is given."""
    torch, shape = sys.modules["torch"], (count, *output.shape[1:])
    weights = torch.linspace(1.0, 2.0, math.prod(shape), device=output.device).reshape(shape)
    return torch.cos(9.0 * weights).to(output.dtype)


def _relative_distance(rows: list[Any], others: list[Any]) -> float:
    """Return how far a gradient is from another one, in lengths of the other, layer by layer."""
    pairs = list(zip(rows, others, strict=True))
    square = sum(float((row.float() - other.float()).square().sum()) for row, other in pairs)
    size = sum(float(other.float().square().sum()) for _, other in pairs)
    return math.sqrt(square / size) if size else float(square > 0.0)


def _grad_sampler(module: Any) -> Any:
    """Return what makes gradients of a module's examples: itself, what it is wrapped in, or hooks; None without any."""
    if hasattr(module, "_module"):
        return module
    hooks = (hook for each in module.modules() for hook in each._forward_hooks.values())
    owners = (getattr(hook, "__self__", None) for hook in hooks)
    return next((owner for owner in owners if hasattr(owner, "disable_hooks")), None)


def _names(params: list[Any], module: Any) -> list[str]:
    """Return the names of parameters, or their shapes if the module is not known."""
    known = {} if module is None else {id(p): name.removeprefix("_module.") for name, p in module.named_parameters()}
    return [known.get(id(p), f"parameter {i} of shape {tuple(p.shape)}") for i, p in enumerate(params)]


def _divisor(optimizer: Any) -> float:
    mean = getattr(optimizer, "loss_reduction", "mean") == "mean"
    return float(optimizer.expected_batch_size) if mean else 1.0


def flat(tensors: list[Any]) -> Any:
    """Return the numbers of tensors one after the other, in a format of 32 bits or more, on the first one's device."""
    torch, device = sys.modules["torch"], tensors[0].device
    with torch.no_grad():
        parts = [(each if each.device == device else each.to(device)).reshape(-1) for each in tensors]
        return torch.cat([each.float() if each.element_size() < 4 else each for each in parts])


def _slices(tensors: list[Any]) -> Iterator[Any]:
    """Yield the vector of tensors' numbers by slices: of a short one, in one piece."""
    if sum(each.numel() for each in tensors) <= SLICE:
        yield flat(tensors)
        return
    held: list[Any] = []
    left, device = SLICE, tensors[0].device
    for tensor in tensors:
        for each in tensor.detach().reshape(-1).split(SLICE):
            left -= len(each)
            if left < 0:
                yield flat(held)
                held, left = [], SLICE - len(each)
            held.append(each.to(device))
    yield flat(held)


def _copy(value: Any) -> Any:
    """Copy what a run may change in place."""
    if isinstance(value, list):
        return list(value)
    return value.clone() if hasattr(value, "clone") and hasattr(value, "_version") else value


def _batch_size(given: Any) -> int:
    """Return the number of rows of the first tensor among arguments; 0 without one."""
    for each in _leaves(given):
        return int(each.shape[0])
    return 0


def _leaves(given: Any) -> Iterator[Any]:
    if isinstance(given, dict):
        given = list(given.values())
    if isinstance(given, list | tuple):
        for each in given:
            yield from _leaves(each)
    elif hasattr(given, "shape") and hasattr(given, "_version") and len(given.shape):
        yield given


def _part(given: Any, count: int, start: int, stop: int) -> Any:
    """Return arguments with those rows of each tensor that has one for each example."""
    if isinstance(given, dict):
        return {name: _part(each, count, start, stop) for name, each in given.items()}
    if isinstance(given, list | tuple):
        return type(given)(_part(each, count, start, stop) for each in given)
    if hasattr(given, "shape") and hasattr(given, "_version") and len(given.shape) and given.shape[0] == count:
        return given[start:stop]
    return given


def _tensor(output: Any, count: int) -> Any:
    """Return the output, or its logits: a tensor with a row for each example."""
    tensor = getattr(output, "logits", output)
    if not hasattr(tensor, "backward") or not len(tensor.shape) or tensor.shape[0] != count:
        raise TypeError("the module returns no tensor with a row for each example")
    return tensor
