"""Claims without a table: what a document says of another, of its own algorithms, and of its next version.

``UNJUDGED`` lists the sentences with a number or a fact that no check can decide, each with its reason.
"""

import math
from collections.abc import Mapping
from functools import partial

import numpy as np
from scipy import special

from canaryproof.kernels import gaussian_mechanism
from canaryproof.kernels.threshold_attack import threshold_epsilon
from canaryproof.verify.audit.estimators import epsilon_estimators
from canaryproof.verify.papers.check.documents import CANIFE, FINAL, FIRST_VERSION, REVIEWS, SUBMISSION, Document
from canaryproof.verify.papers.check.results import Check, Outcome, Verdict
from canaryproof.verify.papers.check.verdicts import agreement, conclude, fixed, holds
from canaryproof.verify.papers.claims import distributions
from canaryproof.verify.papers.claims.canife import rules as canife_rules
from canaryproof.verify.papers.claims.final_bounds import largest_cosine
from canaryproof.verify.papers.claims.needs_data import NeedsData, undecidable
from canaryproof.verify.papers.claims.transcripts import Canife, Final

_DELTA = 1e-6


def _read(verdict: Verdict, finding: str) -> Outcome:
    """Judge a sentence about a text by that text."""
    return conclude(verdict, finding, read=finding)


def judge_log_domain(largest: str = Final.TABLE_3[0].estimate_all) -> Outcome:
    """Judge that the log domain is needed, by the largest printed ε and the largest exponent of a double."""
    limit = math.log(np.finfo(float).max)
    finding = f"e^ε exceeds all doubles from ε = {limit:.1f} on, and Table 3 prints {largest}"
    return conclude(holds(float(largest) > limit), finding, limit=limit)


def judge_memorisation(ratios: tuple[float, ...] = (1.0, 0.9, 1.1)) -> Outcome:
    """Judge that a higher mean of the cosines leads to a higher ε̂, with their deviation as it is."""
    means = np.linspace(0.0, 3.0, 301)
    falls = {
        ratio: float(np.diff(epsilon_estimators.both_directions(_DELTA, means, np.full_like(means, ratio))).min())
        for ratio in ratios
    }
    rising = all(fall > 0.0 for fall in falls.values())
    below = float(epsilon_estimators.both_directions(_DELTA, np.asarray(-0.5), np.asarray(1.0)))
    above = float(epsilon_estimators.both_directions(_DELTA, np.asarray(0.25), np.asarray(1.0)))
    finding = (
        f"the estimate rises with the mean from 0 to 3 null deviations at δ = {_DELTA:g}, at each of "
        f"{len(ratios)} ratios of deviations; a mean of −0.5 gives {below:.2f} and one of 0.25 gives {above:.2f}, but "
        "memorisation does not lower a mean below 0"
    )
    return conclude(holds(rising), finding, smallest_step=falls)


def judge_closed_form(rounds: int = Final.STACKOVERFLOW_ROUNDS) -> Outcome:
    """Judge that the largest cosine of an unobserved canary has no law in closed form."""
    mean, deviation, _ = largest_cosine(rounds, 0.0)
    finding = (
        "only for model deltas that are not nearly orthogonal: for nearly orthogonal ones, as noise makes them, "
        f"√d times the largest cosine has the law Φ(x)^T, which is {mean:.3f} ± {deviation:.3f} at T = {rounds}"
    )
    return conclude(holds(False, True), finding, mean=mean, deviation=deviation)


def judge_detects(epsilon: float = 3.0) -> Outcome:
    """Judge that ε̂ shows that some canaries have more influence, by the moments of a mixture of cosines."""
    mean = 1.0 / float(gaussian_mechanism.noise_multiplier(epsilon, _DELTA))
    deviation = distributions.moments_fitted(mean, _DELTA)[1]
    shift = {}
    for share, factor in ((0.001, 10.0), (0.01, 2.0), (0.5, 2.0)):
        centre = mean * (1.0 + share * (factor - 1.0))
        ratio = math.sqrt(1.0 + share * (1.0 - share) * ((factor - 1.0) * mean) ** 2)
        shift[f"{share:.1%} of canaries of {factor:g} times the influence"] = float(
            epsilon_estimators.both_directions(_DELTA, np.asarray(centre), np.asarray(ratio))
        )
    seen = {name: value - epsilon > 2.0 * deviation for name, value in shift.items()}
    listed = ", ".join(
        f"{value:.2f} for {name} ({'detected' if seen[name] else 'not detected'})" for name, value in shift.items()
    )
    finding = (
        f"only if ε̂ moves by more than twice its own deviation, which is {deviation:.2f} by Algorithm 1's estimator "
        f"from {Final.CANARIES:,} canaries: where the others have ε = {epsilon:g} at δ = {_DELTA:g}, it tends to "
        f"{listed}"
    )
    return conclude(holds(all(seen.values()), any(seen.values())), finding, estimates=shift)


def judge_displayed_epsilon() -> Outcome:
    """Judge the first version's displayed ε of a threshold, by Equation (1) and by its maximum at equal variances."""
    thresholds = np.linspace(-1.0, 3.0, 41)
    worst = 0.0
    for a in thresholds:
        f0, f1 = special.ndtr(a), special.ndtr(a - 1.0)
        displayed = max(math.log(max(f0 - _DELTA, 1e-300) / f1), math.log((1.0 - _DELTA - f1) / (1.0 - f0)))
        rates = (1.0 - f0, f1)
        printed = max(
            math.log(max(1.0 - _DELTA - rate, 1e-300) / other) for rate, other in (rates, tuple(reversed(rates)))
        )
        worst = max(worst, abs(displayed - printed))
    best = float(threshold_epsilon(_DELTA, 1.0, 1.0))
    exact = float(gaussian_mechanism.epsilon(_DELTA, 1.0))
    finding = (
        f"it is Equation (1) with FPR = 1 − F₀ and FNR = F₁, to {agreement(worst)}; at equal variances its largest "
        f"value is the exact ε to {agreement(abs(best / exact - 1.0))}"
    )
    return conclude(
        holds(worst < 1e-9 and abs(best / exact - 1.0) < 1e-8), finding, worst=worst, best=best, exact=exact
    )


def judge_positive() -> Outcome:
    """Judge that an observed canary's cosine is positive, at the noise multipliers of Table 1."""
    chances = {sigma: float(special.ndtr(1.0 / float(sigma))) for _, sigma in Final.TABLE_2_NOISE}
    listed = ", ".join(f"{chance:.0%} at noise {sigma}" for sigma, chance in chances.items())
    finding = (
        f"only on average: however large the model, of a Gaussian mechanism's observed cosines are positive {listed}, "
        "as mean and deviation vanish alike"
    )
    return conclude(holds(min(chances.values()) > 1.0 - 1e-6, min(chances.values()) > 0.5), finding, chances=chances)


# These are CANIFE's own words on what others describe.
_HOLDS, _MOCK = Verdict.CONFIRMED, "CANIFE's Section 3.1 emulates mock clients from a public design pool"
_COMPOSES = _read(_HOLDS, "CANIFE's Section 3.4, Appendix C.2 and Algorithm 2 do so, by RDP with Poisson sampling")
_OPACUS = _read(_HOLDS, "CANIFE's Section 4 says so: the RDP accountant with subsampling, as Opacus has it")
_SUBSET = _read(
    Verdict.REFUTED,
    f"the intermediary models, yes, but of clients' updates none: {_MOCK}, and no client of training sends the "
    "adversary an update",
)
_DIMENSION = _read(
    Verdict.QUALIFIED,
    "only if the number of parameters d is not knowledge of the architecture: canaries are vectors of R^d, compared "
    "with N(0, 1/d). The authors' answer to zCeQ says that d must be known",
)
_COMPOSITION = (
    "CANIFE estimates an equivalent noise of a round from its ε̂, and composes the RDP of the Gaussian mechanism with "
    "Poisson sampling"
)
_A_PRIORI = "The method needs no a priori knowledge about the model architecture, task, or DP training algorithm"
_COMBINATION, _ANGLE, _CLOSED, _CDF = (
    "Each model iterate is a linear combination of all updates received thus far, plus Gaussian noise",
    "The test statistic for all model updates is the maximum over rounds of the angle between canary and model delta",
    "The law of an unobserved canary's largest cosine over rounds can no longer be expressed in closed form",
    "The lower bounds use the exact CDF of the null distribution for the FPR, as described in Section 4",
)
_EASIER = "Where memorisation is easier, the cosines have a higher mean, leading to higher ε̂"

# Document, id, section, statement, outcome.
_ROWS: tuple[tuple[Document, str, str, str, Outcome], ...] = (
    (FINAL, "abstract.a-priori", "abstract and Section 6", _A_PRIORI, _DIMENSION),
    (SUBMISSION, "abstract.a-priori", "abstract and Section 6", _A_PRIORI, _DIMENSION),
    (
        FIRST_VERSION,
        "abstract.a-priori",
        "abstract and Section 7",
        "The method needs no a priori knowledge about the model architecture, task or data",
        _DIMENSION,
    ),
    (FINAL, "section2.canife.noise", "Section 2", _COMPOSITION, _COMPOSES),
    (SUBMISSION, "appendixF.canife.noise", "Appendix F", _COMPOSITION, _COMPOSES),
    (
        FINAL,
        "section5.4.canife.inverts",
        "Section 5.4",
        "CANIFE audits rounds, inverts ε of the Gaussian mechanism for their noise, and uses composition theorems",
        _COMPOSES,
    ),
    (
        SUBMISSION,
        "appendixH.canife.inverts",
        "Appendix H",
        "CANIFE audits rounds, inverts ε of the Gaussian mechanism for their noise, and uses composition theorems",
        _COMPOSES,
    ),
    (
        FINAL,
        "section2.canife.accountant",
        "Section 2",
        "CANIFE uses Opacus' RDP accountant with Poisson sampling",
        _OPACUS,
    ),
    (
        SUBMISSION,
        "appendixI.canife.accountant",
        "Appendix I",
        "CANIFE uses Opacus' RDP accountant with Poisson sampling",
        _OPACUS,
    ),
    (
        FINAL,
        "section2.canife.knowledge",
        "Section 2",
        "CANIFE assumes knowledge of all intermediary model updates, and of local updates of mock clients",
        _read(_HOLDS, f"{_MOCK}, and gives the adversary the current model"),
    ),
    *(
        (
            document,
            f"{prefix}.canife.knowledge",
            section,
            "CANIFE assumes knowledge of all intermediary model updates, and of local model updates sent by a subset "
            "of clients in each round",
            _SUBSET,
        )
        for document, prefix, section in (
            (FIRST_VERSION, "section2", "Section 2"),
            (SUBMISSION, "appendixF", "Appendix F"),
        )
    ),
    (
        FINAL,
        "table1.algorithms",
        "Table 1",
        "The auditor of Algorithm 2 controls a client's update and receives the final model, that of Algorithm 3 the "
        "intermediate ones",
        _read(_HOLDS, "Algorithm 2 scores θ_T by canary updates cⱼ, and Algorithm 3 each round's mean update"),
    ),
    (
        FINAL,
        "table1.canife",
        "Table 1",
        "CANIFE's auditor controls a client's sample, the privacy noise and the minibatch, and receives intermediate "
        "models",
        _read(
            _HOLDS,
            "Section 2 says in which sense: to assume Poisson samples and spherical Gaussian noise, as CANIFE's "
            "accounting does, is equivalent to controlling both. CANIFE's Section 3.1 gives its adversary the model "
            "and one client's sample",
        ),
    ),
    (
        REVIEWS,
        "references.same-paper",
        "reviewer ZyjW",
        "Zanella-Béguelin et al. (2022) and (2023) in the submission's references are the same paper",
        _read(_HOLDS, "both are Bayesian estimation of differential privacy, arXiv 2206.05199 and ICML 2023"),
    ),
    (
        REVIEWS,
        "references.steinke",
        "reviewer ZyjW",
        "The submission's reference Steinke (2022) lacks the publication forum",
        _read(_HOLDS, "it names none, nor does the final version"),
    ),
    (
        REVIEWS,
        "one-training-run",
        "authors' answers to reviewer ZyjW",
        "Nearly orthogonal random canaries can be combined with Steinke et al. for a formal lower bound of DP-SGD's ε "
        "in one training run",
        _read(
            _HOLDS,
            "in their technique a fair coin decides for each canary whether it takes part, as in the suite `bounds`; "
            "in Algorithm 3 nothing decides it by chance",
        ),
    ),
    *(
        (
            REVIEWS,
            f"promise.{name}",
            f"authors' answers to reviewer {reviewer}",
            f"The paper will {action}",
            # No document says which came first: the final version or the answers, which speak of a revision.
            _read(
                Verdict.NEEDS_DATA,
                "needs the version that came after the answers, which no document here is said to be; the final "
                f"version does not: {instead}",
            ),
        )
        for name, reviewer, action, instead in (
            ("accuracies", "LDHu", "have the table of accuracies in its appendix", "it has the sentence on 0.1% alone"),
            ("sweep", "LDHu and zCeQ", "have the sweep over d", "its Table 2 has d = 10⁶ only"),
            ("scheffe", "ZyjW", "cite Scheffé's theorem", "its proof of Theorem 3.2 names no theorem"),
            ("outside", "ZyjW", "say that f̂_d is 0 outside [−√d, √d]", "f̂_d is given inside only"),
            (
                "lower-bound",
                "ZyjW and zCeQ",
                "have the lower bound beside CANIFE's ε̂",
                "Section 5.4 has no lower bound",
            ),
            ("laplace", "zCeQ", "name other noise than Gaussian as an open question", "its conclusion does not"),
            ("attacks", "ZyjW", "say in its conclusion which attacks it does not detect", "its conclusion names none"),
            ("theorem", "ZyjW", "state Algorithm 1's correctness as a theorem", "Section 3.1 argues it in a paragraph"),
        )
    ),
)


def _combination() -> Outcome:
    return _read(
        Verdict.QUALIFIED,
        "only from θ₀ = 0: line 9 of Algorithm 2 adds to the initial parameters θ₀, which no update holds and which "
        "are in the final model's cosine",
    )


def _unchanged() -> Outcome:
    return _read(
        _HOLDS,
        "a canary that never took part is independent of the final model, so that its cosine has exactly Theorem 3.1's "
        "law, which Section 3 approximates by its limit, N(0, 1/d)",
    )


def _exact_cdf() -> Outcome:
    return _read(
        Verdict.QUALIFIED,
        "only for the final model: from all rounds, the text says, the null has no closed form and is sampled",
    )


def _angle() -> Outcome:
    return _read(
        _HOLDS,
        "the angle stands for its cosine, as the same sentence and the algorithm have it: the largest angle itself "
        "would be the smallest cosine",
    )


# Sentences of several documents, by judge: id and section in each.
_COMPUTED = (
    (judge_log_domain, "For numerical stability, the probabilities should be computed in the log domain",
     ((FINAL, "section3.2.log-domain", "Section 3.2"), (SUBMISSION, "appendixB.log-domain", "Appendix B"))),
    (_combination, _COMBINATION,
     ((FINAL, "section4.combination", "Section 4"), (SUBMISSION, "section4.combination", "Section 4"))),
    (_unchanged, "Section 3's argument that an unobserved canary's cosine follows N(0, 1/d) carries over unchanged",
     ((FINAL, "section4.unchanged", "Section 4"),)),
    (judge_memorisation, _EASIER,
     ((FINAL, "section4.memorisation", "Section 4"), (SUBMISSION, "section4.memorisation", "Section 4"))),
    (_angle, _ANGLE,
     ((FINAL, "section4.1.angle", "Section 4.1"), (FIRST_VERSION, "section4.1.angle", "Section 4.1"),
      (SUBMISSION, "section4.angle", "Section 4"))),
    (judge_closed_form, _CLOSED,
     ((FINAL, "section4.1.closed-form", "Section 4.1"), (FIRST_VERSION, "section4.1.closed-form", "Section 4.1"),
      (SUBMISSION, "section4.closed-form", "Section 4"))),
    (_exact_cdf, _CDF,
     ((FINAL, "section5.1.exact-cdf", "Section 5.1"), (SUBMISSION, "section5.exact-cdf", "Section 5"),
      (FIRST_VERSION, "section5.exact-cdf", "Section 5"))),
    (judge_detects, "Any aspect of training that causes some canaries to have more influence is detected by a higher ε̂",
     ((FINAL, "section5.4.detects", "Section 5.4"),)),
    (judge_displayed_epsilon, "The displayed ε(X₀ ‖ X₁; δ, a) is the lower bound on ε of the attack with threshold a",
     ((FIRST_VERSION, "section4.displayed-epsilon", "Section 4"),)),
    (judge_positive, "If the model grows and the numbers of canaries and iterations stay, its cosine with an observed "
     "canary will be positive, and with one that was not observed will vanish",
     ((FIRST_VERSION, "section4.positive", "Section 4"),)),
)  # fmt: skip

_CELEBA = Canife.CELEBA.data
_NOT_RECORDED = "accuracies by the design pool's size are compared between losses, and not for each of them"

CHECKS: tuple[Check, ...] = (
    *(document.claim(name, section, statement, fixed(lambda outcome: outcome, outcome))
      for document, name, section, statement, outcome in _ROWS),
    *(document.claim(name, section, statement, fixed(judge))
      for judge, statement, printings in _COMPUTED for document, name, section in printings),
    FIRST_VERSION.claim(
        "section2.intervals", "Section 2", "Jeffreys and Katz-log intervals have been shown to reduce variance",
        fixed(_read, Verdict.INCONCLUSIVE, "the works that are cited are not among the documents; their tables would "
              "decide"),
    ),
    CANIFE.claim(
        "section4.3.correlated", "Section 4.3", "The accuracies of the model and of the attack are highly correlated",
        NeedsData(Canife.SENT140.data, ("canife_figure5c",),
                  partial(canife_rules.goes_with_accuracy, ("inf",))),
    ),
    CANIFE.claim(
        "figure8.a.sizes", "Figure 8a, Appendix D",
        "The covariance loss attacks alike at all sizes of the design pool, and the mean's better with the size",
        undecidable(_CELEBA, _NOT_RECORDED),
    ),
    CANIFE.claim(
        "figure9.enough", "Figure 9, Appendix D",
        "A norm constant around C is enough for high accuracy and well-behaved optimisation",
        undecidable(_CELEBA, "well-behaved is no number"),
    ),
    CANIFE.claim(
        "appendixF.stable", "Appendix F", "The per-round ε̂ is fairly stable after the first epoch or so of training",
        NeedsData(Canife.SENT140.data, ("canife_figure1_sent140",), canife_rules.settles),
    ),
)  # fmt: skip

# Sentences that state something which no computation and no document here decides, by document and place.
UNJUDGED: Mapping[tuple[str, str], str] = {
    (FINAL.id, "Table 1, the six rows of central training"): "they are of works that are not among the documents",
    (SUBMISSION.id, "Table 5, the six rows of central training"): "they are of works that are not among the documents",
    (FINAL.id, "footnote 5, tight bounds for shuffling are not known"): "the literature of 2023 decides, and no number",
    (FINAL.id, "Section 5.2.1, a server momentum of 0.9"): "a setting and no statement; Algorithms 2 and 3 have "
    "none, but see `findings.estimates.momentum.final.table4`",
    (SUBMISSION.id, "Appendix D, a server momentum of 0.9"): "a setting and no statement; Algorithm 2 has none, "
    "but see `findings.estimates.momentum.submission.table3`",
}
