"""The cells of watches: kinds of training, and what is answered about each, as the pages say it.

Nothing here imports a framework, so that the pages are held against these tables where none is installed.
"""

from dataclasses import dataclass, field
from typing import Any

# Options of make_private.
_PER_LAYER = {"clipping": "per_layer", "max_grad_norm": [0.5] * 4}
_ADAPTIVE = {
    "clipping": "adaptive",
    "target_unclipped_quantile": 0.5,
    "clipbound_learning_rate": 0.2,
    "max_clipbound": 10.0,
    "min_clipbound": 0.1,
    "unclipped_num_std": 2.0,
}
_GHOST = {"grad_sample_mode": "ghost"}
_VIRTUAL = {"physical": 16}


@dataclass(frozen=True)
class Cell:
    """A kind of training: options of make_private and of the loop, and what is changed besides.

    The claim is the mechanism by Poisson sampling, or None for what is configured. A question is that which
    cannot be answered where the answer is *cannot say*.
    """

    options: dict[str, Any] = field(default_factory=dict)
    loop: dict[str, Any] = field(default_factory=dict)
    model: dict[str, Any] = field(default_factory=dict)
    scheduler: tuple[str, float] | None = None
    workers: int = 0
    change: str = ""
    claim: str | None = "poisson"
    question: str = ""


DECIDED = {
    "`hooks`": Cell(),
    "`hooks`, virtual steps": Cell(loop=_VIRTUAL),
    "`functorch`": Cell({"grad_sample_mode": "functorch"}),
    "`functorch`, virtual steps": Cell({"grad_sample_mode": "functorch"}, _VIRTUAL),
    "`ew`": Cell({"grad_sample_mode": "ew"}),
    "`ew`, virtual steps": Cell({"grad_sample_mode": "ew"}, _VIRTUAL),
    "`ghost`": Cell(_GHOST),
    "`ghost`, virtual steps": Cell(_GHOST, _VIRTUAL),
    "per-layer clipping": Cell(_PER_LAYER),
    "per-layer clipping, virtual steps": Cell(_PER_LAYER, _VIRTUAL),
    "adaptive clipping": Cell(_ADAPTIVE),
    "adaptive clipping, virtual steps": Cell(_ADAPTIVE, _VIRTUAL),
    "a loss that is a sum": Cell({"loss_reduction": "sum"}),
    "a loss that is a sum, `ghost`": Cell({"loss_reduction": "sum"} | _GHOST),
    "a clip norm by schedule": Cell(scheduler=("ExponentialGradClip", 0.98)),
    "noise by schedule": Cell(scheduler=("ExponentialNoise", 0.99), claim=None),
    "frozen parameters": Cell(model={"frozen": True}),
    "frozen parameters, `ghost`": Cell(_GHOST, model={"frozen": True}),
    "tied parameters, dropout": Cell(model={"tied": True}),
    "bfloat16": Cell(model={"dtype": "bfloat16"}),
    "Adam": Cell(model={"inner": "Adam"}),
    "a generator of your own": Cell({"noise_generator": 5}),
    "`wrap_model=False`": Cell({"wrap_model": False}),
    "`wrap_model=False`, `ghost`": Cell({"wrap_model": False} | _GHOST),
    "`rand_on_empty=True`": Cell({"rand_on_empty": True}),
    "loaders with workers": Cell(workers=2),
    "loaders with workers, virtual steps": Cell(loop=_VIRTUAL, workers=2),
}

CANNOT_SAY = {
    "a sound clipping of your own": Cell(change="normalised", question="clipping"),
    "`ghost`, dropout": Cell(_GHOST, model={"dropout": True}, question="clipping"),
    "`ghost`, no `module`": Cell(_GHOST, change="no module", question="clipping"),
    "another loader than the watched one": Cell(change="other loader", question="sampling"),
    "a clipping that is replaced later": Cell(change="replaced", question="clipping"),
    "a noise that is replaced later": Cell(change="other noise", question="noise"),
    "parameters that are frozen later": Cell(change="frozen later", question="noise"),
    "parameters that something else moves between two steps": Cell(change="decay", question="leak"),
    "no loader": Cell(change="no loader", question="sampling"),
}

# Of each other page its kinds of training, for which the tests have what makes them. Where nobody can say, it is so on
# these questions.
DECIDED_ELSEWHERE = {
    "jax_privacy": (
        "compiled functions",
        "functions that are not compiled",
        "batches without padding",
        "batches that are drawn ahead",
        "correlated noise, with its matrix",
        "a claim about replacing a member",
        "`clipped_grad` and `gaussian_privatizer`",
    ),
    "flower": ("`DifferentialPrivacyServerSideFixedClipping`", "a strategy of your own"),
    "processes": ("flat clipping", "per-layer clipping", "`ghost`"),
}
CANNOT_SAY_ELSEWHERE = {
    "jax_privacy": {
        "correlated noise, without its matrix": ("noise",),
        "a step that is compiled as a whole": ("noise", "clipping"),
        "a key among the arguments, without padding": ("clipping",),
    },
    "flower": {
        "`DifferentialPrivacyClientSideFixedClipping`": ("clipping",),
        "a strategy that cannot be copied": ("clipping",),
        "an answer that is an error": ("clipping", "leak"),
        "a model that moves between two rounds": ("leak",),
    },
    "processes": {
        "noise of another process than the first": ("noise",),
        "FSDP": ("noise", "clipping", "sampling"),
    },
}

# What is refused has no training; the tests have a case for each name.
REFUSED = ("an optimizer that is not Opacus'", "a second watch")
