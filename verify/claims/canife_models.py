"""CANIFE's models: parameters counted from the architectures.

What Appendix B leaves open is taken from the authors' public code (github.com/facebookresearch/canife) and from LEAF
(github.com/TalwalkarLab/leaf); a count that needs the code is qualified.
"""

from collections.abc import Mapping
from typing import NamedTuple

from canaryproof.verify.claims.canife_numbers import PAPER, fixed
from canaryproof.verify.claims.judging import claim, found
from canaryproof.verify.results import Outcome, Verdict

_SOURCE = PAPER + "Appendix B"


def _dense(inputs: int, outputs: int) -> int:
    return (inputs + 1) * outputs


def _convolution(width: int, inputs: int, outputs: int, bias: bool = True) -> int:
    return (width * width * inputs + bias) * outputs


def _normalisation(channels: int) -> int:
    """Scale and shift, the same for batch and for group normalisation."""
    return 2 * channels


def _lstm(inputs: int, hidden: int, biases: int) -> int:
    return 4 * hidden * (inputs + hidden + biases)


def _stacked_lstm(inputs: int, hidden: int, biases: int = 2) -> int:
    """Two layers; PyTorch gives each two bias vectors, TensorFlow one."""
    return _lstm(inputs, hidden, biases) + _lstm(hidden, hidden, biases)


def resnet18(classes: int, stem: int = 7) -> int:
    """Count the parameters of He et al.'s ResNet18 with three input channels.

    Parameters
    ----------
    classes
        Outputs of the last layer.
    stem
        Width of the first convolution.
    """
    total = _convolution(stem, 3, 64, bias=False) + _normalisation(64)
    inputs = 64
    for outputs in (64, 128, 256, 512):
        for first in (inputs, outputs):
            total += _convolution(3, first, outputs, bias=False) + _convolution(3, outputs, outputs, bias=False)
            total += 2 * _normalisation(outputs)
        if inputs != outputs:
            total += _convolution(1, inputs, outputs, bias=False) + _normalisation(outputs)
        inputs = outputs
    return total + _dense(512, classes)


def four_layers(classes: int, side: int, padding: int, normalisations: int, rounds_up: bool = False) -> int:
    """Count the parameters of four 3 × 3 convolutions of 32 channels, halved each, and one dense layer.

    Parameters
    ----------
    classes
        Outputs of the last layer.
    side
        Width of the square image.
    padding
        Pixels added on each side before a convolution.
    normalisations
        Separate normalisation layers: 4, or 1 that all layers share, or 0.
    rounds_up
        Whether an odd width is halved upwards.
    """
    for _ in range(4):
        side = (side + 2 * padding - 2 + rounds_up) // 2
    convolutions = _convolution(3, 3, 32) + 3 * _convolution(3, 32, 32)
    return convolutions + normalisations * _normalisation(32) + _dense(32 * side * side, classes)


def sentiment(symbols: int, width: int, head: int = 0, biases: int = 2) -> int:
    """Count the parameters of the Sent140 LSTM: trained embedding, two layers of 100, two classes.

    Parameters
    ----------
    symbols, width
        Rows and columns of the embedding; no rows where it is not trained.
    head
        Units of a dense layer before the last, or 0.
    biases
        Bias vectors an LSTM layer.
    """
    last = _dense(100, head) + _dense(head, 2) if head else _dense(100, 2)
    return symbols * width + _stacked_lstm(width, 100, biases) + last


def characters(symbols: int, classes: int, biases: int = 2) -> int:
    """Count the parameters of LEAF's Shakespeare LSTM: embedding in 8 dimensions, two layers of 256.

    Parameters
    ----------
    symbols, classes
        Characters that are read, and that are predicted.
    biases
        Bias vectors an LSTM layer.
    """
    return 8 * symbols + _stacked_lstm(8, 256, biases) + _dense(256, classes)


# Characters of the three canaries of Table 1 (a line's end not counted, as its print is ambiguous).
TABLE_1 = " !&',123467;>?ADEFHIMNPQRVXYZabcdefghiklmnoprstuvwxy}"


class Model(NamedTuple):
    """A printed number of parameters, the counts as the text specifies the model, and those of unstated readings."""

    id: str
    name: str
    printed: int
    stated: Mapping[str, int]
    unstated: Mapping[str, int]


MODELS = (
    Model(
        "celeba.resnet",
        "ResNet18 for CelebA's two classes",
        11_177_538,
        {"He et al.'s ResNet18 with 2 outputs": resnet18(2)},
        {"3 × 3 stem": resnet18(2, stem=3), "1,000 outputs": resnet18(1000)},
    ),
    Model(
        "celeba.cnn",
        "four-layer CNN after LEAF's",
        29_282,
        {"LEAF's, 84 × 84 pixels": four_layers(2, 84, 1, 4, rounds_up=True)},
        {
            "32 × 32 pixels padded by 2, one normalisation shared by the four layers": four_layers(2, 32, 2, 1),
            "the same with four normalisations": four_layers(2, 32, 2, 4),
        },
    ),
    Model(
        "sent140.lstm",
        "two-layer LSTM for Sent140 after LEAF's",
        272_102,
        {
            "LEAF's code, 400,001 words in 100 dimensions": sentiment(400_001, 100, 128, 1),
            "LEAF's paper, GloVe in 300 dimensions not trained, dense layer of 128": sentiment(0, 300, 128, 1),
            "the same with two biases": sentiment(0, 300, 128),
            "the same with one dense layer": sentiment(0, 300),
        },
        {"101 characters embedded in 300 dimensions and trained, one dense layer, two biases": sentiment(101, 300)},
    ),
    Model(
        "shakespeare.lstm",
        "two-layer LSTM for Shakespeare after LEAF's, 47 classes",
        819_920,
        {
            "LEAF's, 47 characters and classes": characters(47, 47, 1),
            "the same with two biases": characters(47, 47),
            "80 characters, 47 classes, two biases": characters(80, 47),
        },
        {"80 characters and classes, two biases": characters(80, 80), "the same, one bias": characters(80, 80, 1)},
    ),
)


def _judge_model(model: Model) -> Outcome:
    def matching(counts: Mapping[str, int]) -> list[str]:
        return [name for name, count in counts.items() if count == model.printed]

    counts = {**model.stated, **model.unstated}
    listed = "; ".join(f"{name}: {count:,}" for name, count in counts.items())
    if matching(model.stated):
        return found(Verdict.CONFIRMED, f"counted as stated: {listed}", counts=counts, printed=model.printed)
    named = matching(model.unstated)
    if named:
        return found(Verdict.QUALIFIED, f"only with {named[0]} ({listed})", counts=counts, printed=model.printed)
    return found(Verdict.REFUTED, f"no reading gives {model.printed:,} ({listed})", counts=counts)


def judge_classes(classes: int, parameters: int) -> Outcome:
    """Judge a number of classes by the parameters of LEAF's LSTM, which reads what it predicts, and by the canaries.

    Parameters
    ----------
    classes
        Printed number of classes.
    parameters
        Printed number of parameters.
    """
    rows = []
    for biases in (1, 2):
        fixed = characters(0, 0, biases)
        solved, rest = divmod(parameters - fixed, characters(1, 1, biases) - fixed)
        rows.append({"biases": biases, "classes": solved, "left_over": rest})
    exact = [row for row in rows if row["left_over"] == 0]
    if not exact:
        return found(Verdict.INCONCLUSIVE, f"{parameters:,} parameters fit no number of classes", solutions=rows)
    solution = exact[0]["classes"]
    verdict = Verdict.CONFIRMED if solution == classes >= len(TABLE_1) else Verdict.REFUTED
    return found(
        verdict,
        f"{parameters:,} parameters are those of {solution} classes and of no other number; "
        f"{classes} would make {characters(classes, classes):,}. LEAF's alphabet has 80 characters, and the three "
        f"canaries of Table 1 alone have {len(TABLE_1)}",
        solutions=rows,
        characters_of_table_1=len(TABLE_1),
    )


def _of(model: Model) -> tuple[str, str, str]:
    return f"canife.appendixB.{model.id}", _SOURCE, f"The {model.name} has {model.printed:,} parameters"


CHECKS = (
    *(claim(*_of(model), fixed(_judge_model, model)) for model in MODELS),
    claim(
        "canife.appendixB.shakespeare.classes",
        _SOURCE,
        "Shakespeare is next-character prediction with 47 classes",
        fixed(judge_classes, 47, 819_920),
    ),
)
