"""What decides a training: the tables of an experiment's file, each field with its rule."""

from dataclasses import dataclass

from canaryproof.verify.federated.fields import flag, number, one_of, text, whole


@dataclass(frozen=True, kw_only=True)
class Heading:
    """What stands above the tables.

    Attributes
    ----------
    title
        What the experiment shows.
    source
        What it is an analogue of.
    seed
        Seed of all randomness.
    repetitions
        How often each cell is repeated with other randomness.
    """

    title: str = text(default="")
    source: str = text(default="")
    seed: int = whole(0, 2**63 - 1, default=0)
    repetitions: int = whole(1, 10_000, default=1)


@dataclass(frozen=True, kw_only=True)
class Data:
    """Table ``[data]``: whose examples are trained on.

    Attributes
    ----------
    format
        ``digits`` needs no folder.
    examples_per_client
        How many examples a client has (``digits``, ``idx``, ``cifar10``), or trains on at most (others).
    length
        Characters, or words, of an example of text.
    words
        Words of the vocabulary of StackOverflow: the most frequent ones.
    side
        Width and height in pixels to which CelebA's images are brought.
    """

    format: str = one_of("digits", "idx", "leaf", "plays", "tff", "cifar10")
    examples_per_client: int = whole(1, 10**5)
    length: int = whole(2, 10_000, default=80)
    words: int = whole(1, 10**6, default=10_000)
    side: int = whole(8, 178, default=84)


@dataclass(frozen=True, kw_only=True)
class Network:
    """Table ``[model]``.

    Attributes
    ----------
    name
        Model, as in ``federated.models``.
    hidden
        Width of its hidden layers; by default that of the papers.
    """

    name: str = one_of(
        "two_layer",
        "small_cnn",
        "char_lstm",
        "word_lstm",
        "four_layer_cnn",
        "resnet18",
        "sent140_lstm",
        "leaf_lstm",
    )
    hidden: int | None = whole(1, 10**5, default=None)


@dataclass(frozen=True, kw_only=True)
class Federated:
    """Table ``[training]``: DP-FedAvg.

    Attributes
    ----------
    participation
        How clients take part: ``shuffled`` in epochs, each once in every epoch; ``uniform``, so many in each round
        without replacement; ``bernoulli``, each in each round by a coin of its own.
    cohort
        Clients a round; with ``bernoulli``, their expected number.
    epochs, rounds
        How long to train: ``shuffled`` needs epochs, the others rounds.
    client_rate, local_epochs, batch_size
        Each client's own training.
    server, server_rate, momentum
        Server's optimiser, ``sgd`` or ``adam``.
    clip_norm
        Clip norm; the first one, if it adapts.
    clip_quantile, clip_rate
        With a quantile, the clip norm adapts to it with this learning rate; the noise on the number of unclipped
        clients is a twentieth of the cohort, as in Andrew et al. 2021.
    noise
        ``independent`` in each round, or correlated over rounds by a factorisation: ``tree``, or ``square_root``, whose
        cost grows with the square of the number of rounds.
    noise_multiplier, one_round_epsilon, epsilon
        Noise multiplier; or what decides it where noise is independent: the analytical ε of a client that takes part in
        one round, or the ε of all rounds with ``bernoulli`` by Rényi accounting, as CANIFE has it. ``inf`` is no noise.
    until_accuracy, accuracy_on, accuracy_every
        The training ends when its accuracy on held-out examples (``test``) or on clients' own (``train``), which is
        looked at after every so many rounds, is this or more; ``rounds`` is then the largest number of rounds.
        Participation is drawn and privacy is accounted for as if all of them were done: an upper bound.
    """

    participation: str = one_of("shuffled", "uniform", "bernoulli", default="shuffled")
    cohort: int = whole(1, 10**6)
    epochs: int | None = whole(1, 10**6, default=None)
    rounds: int | None = whole(1, 10**6, default=None)
    client_rate: float = number(0.0, 1e3)
    local_epochs: int = whole(1, 1000, default=1)
    batch_size: int = whole(1, 10**5)
    server: str = one_of("sgd", "adam", default="sgd")
    server_rate: float = number(0.0, 1e3)
    momentum: float = number(0.0, 0.999, default=0.0)
    clip_norm: float = number(1e-6, 1e6)
    clip_quantile: float | None = number(0.0, 1.0, default=None)
    clip_rate: float = number(0.0, 10.0, default=0.2)
    noise: str = one_of("independent", "tree", "square_root", default="independent")
    noise_multiplier: float | None = number(0.0, 1e6, default=None)
    one_round_epsilon: float | None = number(1e-3, 1e5, infinite=True, default=None)
    epsilon: float | None = number(1e-3, 1e5, infinite=True, default=None)
    until_accuracy: float | None = number(0.0, 1.0, default=None)
    accuracy_on: str = one_of("test", "train", default="test")
    accuracy_every: int = whole(1, 10**6, default=10)


@dataclass(frozen=True, kw_only=True)
class CanaryPlan:
    """Table ``[canaries]``.

    Attributes
    ----------
    count
        Observed canaries of a run; there are as many unobserved ones.
    inclusion
        ``fixed``, or ``coin`` if a fair coin decides on each of all these whether it is observed.
    participation
        ``clients``: as clients do; ``periods``: once in each of so many equal periods; ``last_rounds``: a Poisson
        number of the last rounds.
    presentations
        Number of ``periods``.
    last_rounds, mean
        How many rounds are the last, and the mean of the Poisson law.
    runs
        Models to train, each with so many canaries of its own; their scores are pooled.
    """

    count: int = whole(20, 10**6)
    inclusion: str = one_of("fixed", "coin", default="fixed")
    participation: str = one_of("clients", "periods", "last_rounds", default="clients")
    presentations: int = whole(1, 10**6, default=1)
    last_rounds: int = whole(1, 10**6, default=1)
    mean: float = number(0.01, 1e6, default=1.0)
    runs: int = whole(1, 1000, default=1)


@dataclass(frozen=True, kw_only=True)
class CanifePlan:
    """Table ``[canife]``: audits by CANIFE (Maddock et al., arXiv 2210.02912), by default with the settings it prints.

    Attributes
    ----------
    every
        Rounds between audits; without it there is one, after the last round.
    audits
        Attacks of an audit, each with a canary, mock clients and trials of its own.
    scores
        Trials of an attack, and so its scores.
    pool
        Held-out examples of the mock clients that a canary is designed with.
    steps, rate, norm_constant, loss
        As in ``canife.design.Settings``.
    label
        ``soft``: designed with the canary; ``class``: one class.
    start
        A design begins with ``noise``, or with a ``sample`` of a mock client, which it then leaves out.
    inclusion
        The canary takes part in half of the trials (``halves``), or in each by a coin (``coins``).
    """

    every: int | None = whole(1, 10**6, default=None)
    audits: int = whole(1, 1000, default=1)
    scores: int = whole(20, 10**5, default=100)
    pool: int = whole(1, 10**6, default=512)
    steps: int = whole(1, 10**6, default=2500)
    rate: float = number(1e-6, 1e3, default=1.0)
    norm_constant: float = number(0.0, 1e6, default=1.0)
    label: str = one_of("soft", "class", default="class")
    start: str = one_of("noise", "sample", default="noise")
    loss: str = one_of("covariance", "mean", default="covariance")
    inclusion: str = one_of("halves", "coins", default="halves")


@dataclass(frozen=True, kw_only=True)
class AuditPlan:
    """Table ``[audit]``.

    Attributes
    ----------
    delta
        Target δ.
    confidence
        Of intervals and bounds.
    without_canaries
        Whether to train the same model without canaries too, to see what they cost.
    """

    delta: float = number(1e-100, 0.5)
    confidence: float = number(0.5, 0.999999, default=0.95)
    without_canaries: bool = flag(default=False)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """All that decides a training, but its seeds; without random canaries, or without CANIFE, that plan is None."""

    data: Data
    model: Network
    training: Federated
    canaries: CanaryPlan | None = None
    canife: CanifePlan | None = None
    audit: AuditPlan

    @property
    def random_canaries(self) -> CanaryPlan:
        """The plan of random canaries, where there must be some."""
        if self.canaries is None:
            raise ValueError("canaries: this table must be there")
        return self.canaries

    def check(self) -> None:
        """Check fields against each other.

        Raises
        ------
        ValueError
            If two of them contradict each other; names them.
        """
        training = self.training
        needed, other = ("epochs", "rounds") if training.participation == "shuffled" else ("rounds", "epochs")
        if getattr(training, needed) is None or getattr(training, other) is not None:
            raise ValueError(f"training.{needed}: must be given with {training.participation}, and {other} must not")
        noises = (training.noise_multiplier, training.one_round_epsilon, training.epsilon)
        if noises.count(None) != 2:
            raise ValueError(
                "training.noise_multiplier: this, one_round_epsilon or epsilon must be given, and only one"
            )
        for name in ("one_round_epsilon", "epsilon"):
            if getattr(training, name) is not None and training.noise != "independent":
                raise ValueError(f"training.{name}: must be given with independent noise alone")
        if training.epsilon is not None and training.participation != "bernoulli":
            raise ValueError("training.epsilon: must be given with bernoulli alone")
        if training.server == "adam" and training.momentum:
            raise ValueError("training.momentum: must not be given with adam")
        if self.canaries is None and self.canife is None:
            raise ValueError("canaries: this table or canife must be there")
        if self.canaries is None and self.audit.without_canaries:
            raise ValueError("audit.without_canaries: must be given with the table canaries alone")
        if self.canaries is not None and training.until_accuracy is not None:
            # A random canary's rounds are drawn for the whole training.
            raise ValueError("training.until_accuracy: must not be given with the table canaries")
        if self.canife is not None and (training.noise != "independent" or training.clip_quantile is not None):
            raise ValueError("canife: must be given with independent noise and a fixed clip norm alone")
