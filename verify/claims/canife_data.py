"""CANIFE's experimental results: what only a training on the named data set decides."""

from canaryproof.verify.claims.canife_numbers import CELEBA, PAPER, SENT140, SHAKESPEARE
from canaryproof.verify.claims.deciding import needs_data
from canaryproof.verify.claims.judging import claim

_CIFAR10 = "CIFAR10"
_CELEBA, _SENT140, _SHAKESPEARE = (task.data for task in (CELEBA, SENT140, SHAKESPEARE))

# Place in the ledger, place in words, statement, data set.
_RESULTS = (
    ("figure1.sent140", "Figure 1a", "Sent140: ε̂ far below ε = 10, 30 and 50", _SENT140),
    ("figure1.celeba", "Figure 1b", "CelebA: ε̂ far below ε = 10, 30 and 50", _CELEBA),
    ("figure1.shakespeare", "Figure 1c", "Shakespeare: ε̂ far below ε = 10, 30 and 50", _SHAKESPEARE),
    (
        "section4.hours",
        "Section 4, setup",
        "A training takes a few hours on an A100 GPU",
        "the four data sets and that GPU",
    ),
    ("section4.1.accuracy", "Section 4.1", "ResNet18 on CIFAR10 is trained to 60% test accuracy", _CIFAR10),
    ("figure3.a", "Figure 3a", "Without noise the histograms' mean standard deviation is 0.006", _CIFAR10),
    ("figure3.b", "Figure 3b", "At σ = 0.423 the histograms' mean standard deviation is 0.478", _CIFAR10),
    (
        "figure3.c",
        "Figure 3c",
        "At 60% train accuracy fewer clients a round make the attack tighter, a larger pool hardly does",
        _CIFAR10,
    ),
    ("section4.2.accuracy.sent140", "Section 4.2", "63.9% test accuracy on Sent140 at ε = 50", _SENT140),
    ("section4.2.accuracy.celeba", "Section 4.2", "89.9% test accuracy on CelebA at ε = 50", _CELEBA),
    ("section4.2.accuracy.shakespeare", "Section 4.2", "44.8% test accuracy on Shakespeare at ε = 50", _SHAKESPEARE),
    (
        "section4.2.health.measured",
        "Section 4.2",
        "Canary health over five runs is 0.970 ± 0.098, and 0.990 ± 0.01 after the first 1,000 rounds",
        _SENT140,
    ),
    ("figure4.a", "Figure 4a", "Sent140's per-round ε̂ is level within one epoch and then stays", _SENT140),
    ("figure4.b", "Figure 4b", "CelebA's per-round ε̂ is 4 to 5 times below the theoretical one", _CELEBA),
    ("figure4.c", "Figure 4c", "Final ε̂ over five runs varies little; Sent140's is lowest", _SENT140),
    ("figure5.a", "Figure 5a", "Neither initialisation nor the pool's size changes the deviation much", _CELEBA),
    ("figure5.b", "Figure 5b", "1,000 design iterations give 95% attack accuracy, 3,000 almost 100%", _CELEBA),
    ("section4.3.gpu", "Section 4.3", "Designing a canary takes a few minutes on a GPU", f"{_CELEBA} and a GPU"),
    ("figure5.c", "Figure 5c", "The attack's accuracy nears 100% as the model converges", _SENT140),
    ("appendixB.sent140.accuracy", "Appendix B", "64.8% test accuracy on Sent140 without privacy", _SENT140),
    ("appendixB.shakespeare.accuracy", "Appendix B", "44.4% on Shakespeare without privacy", _SHAKESPEARE),
    ("figure6", "Figure 6, Appendix C.5", "Without privacy ε̂ stays at its bound, infinite once", _SHAKESPEARE),
    ("figure7", "Figure 7, Appendix C.4", "Per-round ε̂ rises with attack accuracy, for ε = 10, 30, 50", _SENT140),
    ("figure8.a", "Figure 8a, Appendix D", "The covariance loss attacks better than the mean's (5 attacks)", _CELEBA),
    ("figure8.b", "Figure 8b, Appendix D", "Attack accuracy falls slowly with clients a round (5 runs)", _CELEBA),
    ("figure8.c", "Figure 8c, Appendix D", "Final ε̂ falls as there are fewer clients a round", _CELEBA),
    (
        "figure9",
        "Figure 9, Appendix D",
        "At 70% test accuracy, over 10 attacks, accuracy drops for norm constants above 50, health only above 600",
        _CELEBA,
    ),
)

CHECKS = tuple(
    claim(f"canife.{id_}", PAPER + place, statement, needs_data(f"canife.{id_}", data))
    for id_, place, statement, data in _RESULTS
)
