"""Calls one function of one tool, many times: a script that needs numpy and that tool, and nothing of this package.

``python -P worker.py REQUEST.json SCORES.npz ANSWER.json``. Each function is called as the tool's documentation shows
it, with its defaults unless the name says otherwise. Nothing is printed: tools print as they like.
"""

import faulthandler
import hashlib
import importlib
import json
import math
import signal
import sys
import time
import warnings
from importlib.metadata import version
from pathlib import Path

import numpy as np

# Scores from here on, at either end, are guessed at by methods that take counts of guesses: a tenth of the canaries.
_GUESSED = 0.1
# Distributions whose functions are another tool's.
_DISTRIBUTIONS = {"Andrew et al.": "canaryproof", "CANIFE": "canaryproof"}


# Methods that audit: each makes a function of an audit, a dictionary of scores, δ, α and a seed.


def _jax(name, strategy="Bonferroni", **options):
    def make():
        auditing = importlib.import_module("jax_privacy.auditing")

        def call(audit):
            auditor = auditing.CanaryScoreAuditor(audit["observed"], audit["unobserved"])
            given = dict(options)
            if strategy == "Explicit":
                given["threshold_strategy"] = auditing.Explicit(audit["threshold"])
            elif strategy in ("Split", "MultiSplit"):
                given["threshold_strategy"] = getattr(auditing, strategy)(seed=audit["seed"])
            if name == "epsilon_raw_counts":
                return auditor.epsilon_raw_counts(delta=audit["delta"])
            return getattr(auditor, name)(audit["alpha"], audit["delta"], **given)

        return call

    return make


def _opake(method):
    def make():
        auditing = importlib.import_module("opake.auditing")
        partition = importlib.import_module("opake.api.auditing._coin_flip")

        def call(audit):
            # Its own factory flips the coins; here they have been flipped, the same for all tools.
            inside = audit["inside"]
            index = np.arange(len(inside))
            coins = partition.CoinFlip(len(inside), index, inside, index[inside], index[~inside], len(inside))
            estimate = auditing.one_run(auditing.canary_scores(audit["scores"], canary_indices=index), coin_flip=coins)
            return getattr(estimate, method)().epsilon_at(delta=audit["delta"], significance=audit["alpha"])

        return call

    return make


def _guesses(audit):
    """Return canaries, guesses and right guesses: the highest tenth as in, the lowest as out, ties at random."""
    scores, inside = audit["scores"], audit["inside"]
    order = np.random.default_rng(audit["seed"]).permutation(len(scores))
    order = order[np.argsort(scores[order], kind="stable")]
    size = min(max(1, int(_GUESSED * len(scores))), len(scores) // 2)
    return len(scores), 2 * size, int(inside[order[-size:]].sum() + (~inside[order[:size]]).sum())


def _fdp_node():
    node = importlib.import_module("privacy_guard.analysis.mia.fdp_analysis_node").FDPAnalysisNode

    def call(audit):
        canaries, guesses, right = _guesses(audit)
        made = node(m=canaries, c=right, c_cap=guesses, threshold=audit["alpha"], delta=audit["delta"])
        return made.run_analysis().eps

    return call


def _analysis_node(output, **options):
    def make():
        node = importlib.import_module("privacy_guard.analysis.mia.analysis_node").AnalysisNode
        given = importlib.import_module("privacy_guard.analysis.base_analysis_input").BaseAnalysisInput
        frame = importlib.import_module("pandas").DataFrame

        def call(audit):
            np.random.seed(audit["seed"] % 2**32)  # noqa: NPY002 - what the tool draws from
            scores = given(*(frame({"score": audit[name]}) for name in ("observed", "unobserved")))
            made = node(scores, delta=audit["delta"], n_users_for_eval=len(audit["scores"]), **options)
            return getattr(made.run_analysis(), output)

        return call

    return make


def _privacy_estimates(method):
    def make():
        tool = importlib.import_module("privacy_estimates")

        def call(audit):
            seen, unseen = (int((audit[name] >= audit["threshold"]).sum()) for name in ("observed", "unobserved"))
            count = tool.AttackResults(
                FN=len(audit["observed"]) - seen, FP=unseen, TN=len(audit["unobserved"]) - unseen, TP=seen
            )
            return tool.compute_eps_lo(count=count, delta=audit["delta"], alpha=audit["alpha"], method=method)

        return call

    return make


def _own(name):
    def make():
        methods = importlib.import_module("canaryproof.verify.audit.bounds.catalogue").MEASURED
        bound = importlib.import_module("canaryproof.verify.audit.bounds.lower_bound")

        def call(audit):
            scores = bound.prepare(audit["observed"], audit["unobserved"], inclusion="coin", independent=True)
            return methods[name].values(scores, audit["delta"], audit["alpha"])[0][0]

        return call

    return make


AUDITORS = {
    "jax-privacy": {
        "epsilon_clopper_pearson": _jax("epsilon_clopper_pearson"),
        "epsilon_clopper_pearson, Explicit": _jax("epsilon_clopper_pearson", "Explicit"),
        "epsilon_clopper_pearson, Split": _jax("epsilon_clopper_pearson", "Split"),
        "epsilon_clopper_pearson, MultiSplit": _jax("epsilon_clopper_pearson", "MultiSplit"),
        "epsilon_one_run": _jax("epsilon_one_run"),
        "epsilon_one_run_fdp": _jax("epsilon_one_run_fdp"),
        "epsilon_from_gdp": _jax("epsilon_from_gdp"),
        "epsilon_raw_counts": _jax("epsilon_raw_counts"),
    },
    "opake-auditing": {"eps_delta": _opake("eps_delta"), "gdp": _opake("gdp")},
    "privacyguard-platform": {
        "FDPAnalysisNode": _fdp_node,
        "AnalysisNode, eps": _analysis_node("eps"),
        "AnalysisNode, eps_lb": _analysis_node("eps_lb"),
        # No resampling enters it.
        "AnalysisNode, eps_cp": _analysis_node("eps_cp", num_bootstrap_resampling_times=2),
    },
    "privacy-estimates": {
        name: _privacy_estimates(name) for name in ("beta", "jeffreys", "joint-beta", "joint-dirichlet")
    },
    "Andrew et al.": {"andrew": _own("andrew")},
    "CANIFE": {"canife": _own("canife"), "canife-code": _own("canife-code")},
    "canaryproof": {
        name: _own(name) for name in ("fixed-sequence", "bonferroni", "one-run", "one-run-gaussian", "gaussian-dp")
    },
}


# Accountants: each makes a function of a case, a dictionary.


def _exact_dp_accounting():
    tool = importlib.import_module("dp_accounting.gaussian_mechanism")

    def call(case):
        if case["kind"] == "noise":
            return tool.get_sigma_gaussian(case["epsilon"], case["delta"])
        return tool.get_epsilon_gaussian(case["sigma"], case["delta"])

    return call


def _accountant_dp_accounting(kind):
    def make():
        tool = importlib.import_module("dp_accounting")
        accounting = importlib.import_module(f"dp_accounting.{kind}")
        made = {"pld": "PLDAccountant", "rdp": "RdpAccountant"}[kind]

        def call(case):
            event = tool.GaussianDpEvent(case["sigma"])
            if case["sampling"] < 1.0:
                event = tool.PoissonSampledDpEvent(case["sampling"], event)
            accountant = getattr(accounting, made)()
            return accountant.compose(event, case["steps"]).get_epsilon(case["delta"])

        return call

    return make


def _opacus(kind):
    def make():
        tool = importlib.import_module("opacus.accountants")
        utils = importlib.import_module("opacus.accountants.utils")

        def call(case):
            if case["kind"] == "noise":
                return utils.get_noise_multiplier(
                    target_epsilon=case["epsilon"],
                    target_delta=case["delta"],
                    sample_rate=1.0,
                    steps=1,
                    accountant=kind,
                )
            accountant = tool.create_accountant(kind)
            accountant.history = [(case["sigma"], case["sampling"], case["steps"])]
            return accountant.get_epsilon(case["delta"])

        return call

    return make


def _jax_accounting(kind):
    def make():
        tool = importlib.import_module("jax_privacy.accounting")
        accountant = tool.DpsgdTrainingAccountant(getattr(tool, f"{kind}AccountantConfig")())
        # Sampling rates are one in so many examples.
        samples = 1_000_000

        def call(case):
            if case["kind"] == "noise":
                return tool.calibrate_noise_multiplier(
                    target_epsilon=case["epsilon"],
                    accountant=accountant,
                    batch_sizes=samples,
                    num_updates=1,
                    num_samples=samples,
                    target_delta=case["delta"],
                )
            params = tool.DpParams(
                noise_multipliers=case["sigma"],
                batch_size=round(case["sampling"] * samples),
                num_samples=samples,
                delta=case["delta"],
            )
            return accountant.compute_epsilon(case["steps"], params)

        return call

    return make


def _diffprivlib():
    mechanism = importlib.import_module("diffprivlib.mechanisms").GaussianAnalytic

    def call(case):
        return math.sqrt(mechanism(epsilon=case["epsilon"], delta=case["delta"], sensitivity=1.0).variance(0.0))

    return call


def _opendp():
    dp = importlib.import_module("opendp.prelude")
    dp.enable_features("contrib")
    space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)

    def profile(sigma, steps):
        single = dp.m.make_gaussian(*space, scale=sigma)
        made = single if steps == 1 else dp.c.make_composition([single] * steps)
        return dp.c.make_zCDP_to_approxDP(made)

    def call(case):
        if case["kind"] == "noise":
            return dp.binary_search_param(
                lambda sigma: dp.c.make_fix_delta(profile(sigma, 1), case["delta"]),
                d_in=1.0,
                d_out=(case["epsilon"], case["delta"]),
            )
        return profile(case["sigma"], case["steps"]).map(1.0).epsilon(case["delta"])

    return call


def _autodp():
    zoo = importlib.import_module("autodp.mechanism_zoo")
    calibrators = importlib.import_module("autodp.calibrator_zoo")
    transformers = importlib.import_module("autodp.transformer_zoo")

    def call(case):
        if case["kind"] == "noise":
            calibrate = calibrators.ana_gaussian_calibrator()
            return calibrate(zoo.ExactGaussianMechanism, case["epsilon"], case["delta"]).params["sigma"]
        if case["sampling"] < 1.0:
            sampled = transformers.AmplificationBySampling(PoissonSampling=True)(
                zoo.GaussianMechanism(case["sigma"]), case["sampling"], improved_bound_flag=True
            )
            return transformers.Composition()([sampled], [case["steps"]]).get_approxDP(case["delta"])
        if case["steps"] > 1:
            composed = transformers.ComposeGaussian()([zoo.ExactGaussianMechanism(case["sigma"])], [case["steps"]])
            return composed.get_approxDP(case["delta"])
        return zoo.ExactGaussianMechanism(case["sigma"]).get_approxDP(case["delta"])

    return call


def _prv():
    tool = importlib.import_module("prv_accountant")

    def call(case):
        if case["sampling"] < 1.0:
            single = tool.PoissonSubsampledGaussianMechanism(case["sampling"], case["sigma"])
        else:
            single = tool.GaussianMechanism(case["sigma"])
        # The errors that its documentation calls typical.
        made = tool.PRVAccountant(
            single, eps_error=0.1, delta_error=1e-3 * case["delta"], max_self_compositions=case["steps"]
        )
        return made.compute_epsilon(case["delta"], [case["steps"]])[2]

    return call


def _riskcal():
    accountant = importlib.import_module("riskcal.accountants").CTDAccountant
    find = importlib.import_module("riskcal.calibration.blackbox").find_noise_multiplier_for_epsilon_delta

    def call(case):
        if case["kind"] == "noise":
            return find(accountant, 1.0, 1, case["epsilon"], case["delta"])
        made = accountant()
        made.history = [(case["sigma"], case["sampling"], case["steps"])]
        return made.get_epsilon(delta=case["delta"])

    return call


def _own_gaussian():
    exact = importlib.import_module("canaryproof.kernels.gaussian_mechanism")

    def call(case):
        if case["kind"] == "noise":
            return exact.noise_multiplier(case["epsilon"], case["delta"])
        return exact.epsilon(case["delta"], case["sigma"] / math.sqrt(case["steps"]))

    return call


def _own_analytical(kind):
    def make():
        analytical = importlib.import_module("canaryproof.verify.papers.accounting.analytical")
        return lambda case: getattr(analytical, kind)(case["sigma"], case["delta"], case["steps"], case["sampling"])

    return make


ACCOUNTANTS = {
    "dp-accounting": {
        "gaussian_mechanism": _exact_dp_accounting,
        "PLDAccountant": _accountant_dp_accounting("pld"),
        "RdpAccountant": _accountant_dp_accounting("rdp"),
    },
    "opacus": {name: _opacus(name) for name in ("rdp", "prv", "gdp")},
    "jax-privacy": {"PLD": _jax_accounting("Pld"), "RDP": _jax_accounting("Rdp")},
    "diffprivlib": {"GaussianAnalytic": _diffprivlib},
    "opendp": {"make_gaussian": _opendp},
    "autodp": {"ExactGaussianMechanism": _autodp},
    "prv-accountant": {"PRVAccountant": _prv},
    "riskcal": {"CTDAccountant": _riskcal},
    "canaryproof": {"gaussian_mechanism": _own_gaussian, "rdp": _own_analytical("rdp"), "pld": _own_analytical("pld")},
}


def _late(number, _frame):
    raise TimeoutError("CPU seconds" if number == signal.SIGPROF else "seconds")


def _attempt(call, argument, limit, wait):
    """Call once: value or None, what it raised, and CPU seconds."""
    begun = time.process_time()
    signal.setitimer(signal.ITIMER_PROF, limit)
    signal.setitimer(signal.ITIMER_REAL, wait)
    # A call that does not return to Python takes no signal: then the process ends.
    faulthandler.dump_traceback_later(2.0 * wait, exit=True)
    try:
        value, raised = float(call(argument)), ""
    except TimeoutError as error:
        value, raised = None, f"no answer in {limit if str(error) == 'CPU seconds' else wait:g} {error}"
    # A tool may raise anything, and some end the process.
    except (Exception, SystemExit) as error:
        reason = " ".join(str(error).split())
        value, raised = None, f"{type(error).__name__}: {reason[:120]}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        faulthandler.cancel_dump_traceback_later()
    return [value, raised, time.process_time() - begun]


def _audits(call, request, arrays):
    answers = []
    for i, cell in enumerate(request["cells"]):
        rows = []
        for j, (scores, inside) in enumerate(zip(arrays[f"scores_{i}"], arrays[f"inside_{i}"], strict=True)):
            audit = {"scores": scores, "inside": inside, "observed": scores[inside], "unobserved": scores[~inside]}
            audit |= {"delta": cell["delta"], "threshold": cell["threshold"], "alpha": request["alpha"], "seed": j}
            rows.append(_attempt(call, audit, request["limit"], request["wait"]))
        answers.append(rows)
    return answers


def main(request_file, scores_file, answer_file):
    """Answer a request; what cannot even be imported is said in one line."""
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGPROF, _late)
    signal.signal(signal.SIGALRM, _late)
    request = json.loads(Path(request_file).read_text(encoding="utf-8"))
    tool, method, kind = request["tool"], request["method"], request["kind"]
    try:
        call = {"auditors": AUDITORS, "accountants": ACCOUNTANTS}[kind][tool][method]()
        calls = version(_DISTRIBUTIONS.get(tool, tool))
    except Exception as error:
        answer = {"missing": f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"}
    else:
        with np.errstate(all="ignore"):
            if kind == "accountants":
                rows = [_attempt(call, case, request["limit"], request["wait"]) for case in request["cells"]]
                answer = {"version": calls, "answers": rows}
            else:
                with np.load(scores_file) as arrays:
                    answer = {"version": calls, "answers": _audits(call, request, arrays)}
                    digest = hashlib.sha256(b"".join(arrays[name].tobytes() for name in sorted(arrays)))
                answer["digest"] = digest.hexdigest()
    Path(answer_file).write_text(json.dumps(answer), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
