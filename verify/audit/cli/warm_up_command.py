"""Command ``canaryproof warm-up``: compiles what audits need before the first one, in an image or in CI."""

from collections.abc import Callable

import click


@click.command("warm-up")
def warm_up_command() -> None:
    """Compile what audits need, before the first one.

    Without it the first command that has much to compute does this, which takes some seconds. The code is kept in
    the folder that is printed: below that of the variable NUMBA_CACHE_DIR, or else in the user's cache. It is
    for this version and this kind of processor. Build it into an image, or keep it between jobs of CI.
    """
    # These load numpy and scipy, for which help does not wait.
    from canaryproof.kernels._code_folder import folder, is_writable
    from canaryproof.kernels._compiled import without_python
    from canaryproof.verify.audit.cli.progress import progress
    from canaryproof.verify.audit.files.errors import InputError

    if not is_writable(folder()):
        raise InputError(f"{folder()}: cannot be written, so that no compiled code can be kept there")
    jobs = _jobs()
    with progress("warm-up", equal_parts=False) as advance, without_python():
        for number, (name, job) in enumerate(jobs.items()):
            advance(name, number, len(jobs))
            job()
    files = [path for path in folder().rglob("*") if path.suffix in {".nbi", ".nbc"}]
    functions, size = sum(path.suffix == ".nbi" for path in files), sum(path.stat().st_size for path in files)
    click.echo(f"Compiled code of {functions} functions ({size / 1e6:.0f} MB) is in\n{folder()}")


def _jobs() -> dict[str, Callable[[], object]]:
    """Return small computations of each kind, which call what the commands of the library call."""
    import numpy as np

    from canaryproof.kernels.canaries import Canaries
    from canaryproof.kernels.orthonormal_canaries import OrthonormalCanaries
    from canaryproof.verify.audit.accounting import accountant
    from canaryproof.verify.audit.answer.plan import plan
    from canaryproof.verify.audit.answer.rounds_plan import plan_rounds
    from canaryproof.verify.audit.answer.run_audit import audit, audit_release
    from canaryproof.verify.audit.bounds.catalogue import METHODS
    from canaryproof.verify.audit.canaries.canary_clients import CanaryClients
    from canaryproof.verify.audit.canaries.participation import Insertion, bernoulli
    from canaryproof.verify.audit.canaries.scores import Scores

    generator, count, dim = np.random.default_rng(0), 64, 512
    seen, hidden = generator.normal(1.0, 1.0, count), generator.normal(0.0, 1.0, count)
    by_need = {need: [name for name, method in METHODS.items() if method.needs in ("", need)] for need in _NEEDS}

    def release(kind: Callable[..., Canaries | OrthonormalCanaries]) -> object:
        canaries = kind(seed=0, count=count, dim=dim)
        noised = canaries.sum(np.arange(count)) + generator.normal(0.0, 1.0, dim)
        return audit_release(noised, canaries, 1e-5, noise_multiplier=1.0, claim=5.0)

    def rounds() -> object:
        participation = bernoulli(0, 0.5, 4, 0, Insertion(2 * count, count))
        clients = CanaryClients(Canaries(0, 2 * count, dim), participation, noise_multiplier=1.0)
        for number in range(4):
            clients.add(clients.total(number, 1.0) + generator.normal(0.0, 1.0, dim), number)
        return audit(clients.scores("likelihood"), 1e-5, claim=accountant.poisson(1.0, rate=0.5, rounds=4))

    return {
        "releases": lambda: release(Canaries),
        "orthonormal canaries": lambda: release(OrthonormalCanaries),
        "cosines": lambda: audit(Scores(seen / dim**0.5, dim=dim), 1e-5, bounds=by_need["null"], claim=1.0),
        "scores": lambda: audit(Scores(seen, hidden, kind="any"), 1e-5, bounds=by_need["unobserved"], claim=1.0),
        "coins": lambda: audit(
            Scores(seen, hidden, kind="any", inclusion="coin"), 1e-5, bounds=by_need["unobserved"], claim=1.0
        ),
        "rounds": rounds,
        "plans": lambda: (plan(1.0, 1000), plan_rounds(1.0, 1000, 8, rate=0.25)),
    }


_NEEDS = ("null", "unobserved")
