import re
from collections import defaultdict
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

import pytest
from click.testing import CliRunner

from canaryproof.proofs_check.rocq import __main__ as command
from canaryproof.proofs_check.rocq import sources


def needs(name):
    packages = sources.missing(name)
    return pytest.mark.skipif(bool(packages), reason=f"not installed: {' '.join(packages)}")


ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs/theory/machine_checked.md"
# An error in a statement, by the file it is in: each makes the statement false, and its proof must fail.
WRONG = [
    ("probability", "f (s ++ l :: s') <= f (s ++ l.+1 :: s')", "f (s ++ l.+1 :: s') <= f (s ++ l :: s')"),
    ("binomial", "\\sum_(c <= j < n.+1) 'C(n, j)", "\\sum_(c <= j < n) 'C(n, j)"),
    ("binomial", "0 <= p -> p <= q -> q <= 1", "0 <= p -> q <= p -> p <= 1"),
    ("binomial", "(fun t => Pr P A < lower (count A t)) <= alpha", "(fun t => Pr P A <= lower (count A t)) <= alpha"),
    ("binomial", "binomial_tail n s.+1 (lower s.+1) <= alpha", "binomial_tail n s.+2 (lower s.+1) <= alpha"),
    ("fixed_sequence", "(fun x => epsilon < bound eps", "(fun x => epsilon <= bound eps"),
    ("fixed_sequence", "e <= e' -> private e m -> private e' m", "e' <= e -> private e m -> private e' m"),
    ("private_pair", "worst_tail E delta (Pr Q (fun", "worst_tail E 0 (Pr Q (fun"),
    ("private_pair", "1 - E^-1 * (1 - u - delta)", "1 - E^-1 * (1 - u)"),
    ("private_pair", "(E * fpr < 1 - delta - fnr)", "(E * fpr <= 1 - delta - fnr)"),
    ("band", "exceeds E delta (1 - d.2)", "exceeds E delta (1 - d.2 - d.2)"),
    ("band", "count (fun c => l < c)%N cells", "count (fun c => l.+1 < c)%N cells"),
    ("precedence", "then 1 - below (nth 0 ends n) else 0", "then 1 - below (nth 0 ends n.+1) else 0"),
    ("precedence", "(count (fun y => (score x <= score y)%R)", "(count (fun y => (score x < score y)%R)"),
    ("thresholds", "alarm)) <= missed + alpha", "alarm)) <= missed"),
    ("thresholds", "1 - binomial_tail k0 r alarm <= missed", "1 - binomial_tail k0 r.-1 alarm <= missed"),
    ("thresholds", "(Pr Q (A i))]) <=\n  \\sum_i share i", "(Pr Q (A i))]) <=\n  \\sum_i share i * share i"),
    ("sides", "if label == side then E / (1 + E)", "if label != side then E / (1 + E)"),
    ("sides", "delta * shown label z + (1 - delta)", "delta * shown label z + (1 - delta - delta)"),
    ("pooled_order", "(b.2 == a.2) && (a.1 ==> b.1)", "(b.2 == a.2) && (b.1 ==> a.1)"),
    ("pooled_order", "f (s ++ false :: true :: s') <= f (s ++ true", "f (s ++ true :: false :: s') <= f (s ++ false"),
    ("pooled_order", "f (nseq shown.1 true ++ s", "f (nseq shown.1 false ++ s"),
    ("pooled_order", "count_mass (k + k0) k share.\nProof", "count_mass (k + k0) k0 share.\nProof"),
    ("ladders", "(unobserved_among_first (c + r).-1 (pooled", "(unobserved_among_first (c + r) (pooled"),
    ("ladders", "guesses rounded s <= most)%N].", "guesses rounded s < most)%N]."),
    ("ladders", "{homo rounded : a b / (a <= b)%N} -> private", "private"),
    ("default", "(rounded i) (most i) s)%:R) <= alpha", "(rounded i) (most i).-1 s)%:R) <= alpha"),
    ("default", "\\sum_kind share kind + sharp.\nProof", "\\sum_kind share kind.\nProof"),
    ("one_run", "m%:R * delta * beta E r v", "delta * beta E r v"),
    ("one_run", "(v%:R * point E r v)", "(v.+1%:R * point E r v)"),
    ("one_run", "0 < E -> private_in_every_coin E delta M", "0 < E -> private_in_every_coin (E + E) delta M"),
    ("one_run", "<= beta E r v.\n", "<= beta E r v.+1.\n"),
    ("default", "(critical i <= sumn [seq reached", "((critical i).-1 <= sumn [seq reached"),
    ("default", "number critical E delta <= share", "number critical E 0 <= share"),
    ("default", "(weighted_beta E w v) E delta kappa <= share", "(weighted_beta E w v) E 0 kappa <= share"),
    ("default", "(forall i, \\sum_kind share i kind <= alpha) ->", "(forall i kind, share i kind <= alpha) ->"),
    ("default", "forall M : coins m -> law R S, on_curve (line t) M -> on_curve (line t') M)", "True)"),
    ("weighted", "independent + m%:R * delta * (1", "independent + delta * (1"),
    ("weighted", "delta * (1 + E)^-1 * kappa", "delta * (1 + E)^-1 * (1 + E)^-1 * kappa"),
    ("weighted", "< v <= w j + weight_of", "< v < w j + weight_of"),
    ("weighted", "(forall s, injective (place s)) -> 0 < E", "0 < E"),
    ("weighted", "0 < E -> private_in_every_coin E delta M", "0 < E -> private_in_every_coin (E + E) delta M"),
    ("any_dependence", "k%:R * (E * u + delta) / n%:R", "(E * u + delta) / n%:R"),
    ("any_dependence", "n%:R * alpha / k%:R - delta)%R)", "n%:R * alpha / k%:R)%R)"),
    ("any_dependence", "alpha + (gamma + gamma).\nProof", "alpha + gamma.\nProof"),
    ("claimed_curve", "(r - j)%:R y x in least_total", "(r - j).+1%:R y x in least_total"),
    ("claimed_curve", "(0 < m)%N -> (v <= r)%N ->\n  r%:R / m%:R <", "(0 < m)%N -> (v <= r)%N ->\n  r%:R / m%:R <="),
    ("claimed_curve", "y <= a * x + b) -> curve y <= x.", "y <= a * x + b) -> curve y <= x + x."),
    ("monotone", "rejects j -> rejects' j", "rejects' j -> rejects j"),
    ("monotone", "all2 (fun z z' => score z <= score z') x x'", "all2 (fun z z' => score z' <= score z) x x'"),
    ("monotone", "f (pooled score x y) <= f (pooled", "f (pooled score x y) < f (pooled"),
    ("monotone", "(v <= r)%N -> delta <= delta' ->", "(v <= r)%N -> delta' <= delta ->"),
    ("double_double", "units_add : R := 6", "units_add : R := 5"),
    ("double_double", "- (ah + al) * (bh + bl)) <=", "- (ah + al) * (bh + bl)) <= units_add / 2 ^ 106 /\\ 0 <="),
    ("theorem_3_2", "1 - 3 / (2 * INR d) <", "1 - 1 / INR d <"),
    ("theorem_3_2", "gamma_quotient d ^ 2 <= 1 - 1 / INR d", "gamma_quotient d ^ 2 <= 1 - 3 / (2 * INR d)"),
    ("theorem_3_2", "S O => sqrt PI", "S O => sqrt (2 * PI)"),
    ("theorem_3_2", "gamma_quotient d / sqrt (INR d / 2)) 1", "gamma_quotient d / sqrt (INR d)) 1"),
    ("theorem_3_2", "gamma_quotient d / sqrt (PI * INR d) *", "gamma_quotient d / sqrt (2 * PI * INR d) *"),
    ("theorem_3_2", "exp (- (t * t) / 2) / sqrt (2 * PI).\nD", "exp (- (t * t) / 2) / sqrt PI.\nD"),
    ("theorem_3_2", "(- sqrt (INR d)) lambda) (Phi", "0 lambda) (Phi"),
    ("one_sum", "y * (1 - y) * (1 - cos", "2 * y * (1 - y) * (1 - cos"),
    ("one_sum", "INR (S w) * circle_mean", "INR w * circle_mean"),
    ("one_sum", "else u * s in", "else u * s / 2 in"),
    ("one_sum", "-> y' <= / 2 ->", "-> y' <= 1 ->"),
    ("normal_distance", "kolmogorov : R := 138", "kolmogorov : R := 137"),
    ("normal_distance", "below <= kolmogorov /\\ above", "below < most_above /\\ above"),
    ("canary_quantile", "Phi y = 1 - a / 2 ^ 32 ->", "Phi y = a / 2 ^ 32 ->"),
    ("canary_quantile", "first + z * value rest z end", "first - z * value rest z end"),
]


@pytest.fixture(scope="module")
def checked_before(tmp_path_factory) -> Callable[[str], Path]:
    """Return the folder in which the files that one requires are compiled, each once."""
    folder, done = tmp_path_factory.mktemp("rocq"), set()

    def compiled(name: str) -> Path:
        for required in re.findall(r"^From canaryproof Require Import (.*)\.$", sources.read(name), re.MULTILINE):
            for before in required.split():
                if before in sources.NAMES and before not in done:
                    compiled(before)
                    sources.check(before, sources.read(before), folder)
                    done.add(before)
        return folder

    return compiled


def test_every_file_is_listed():
    folder = files(sources.__package__)
    assert {path.name for path in folder.iterdir() if path.name.endswith(".v")} == {f"{n}.v" for n in sources.NAMES}


def test_every_file_stands_after_those_that_it_needs():
    needed = re.compile(r"^From canaryproof Require (?:Import )?([\w\s]+)\.", re.MULTILINE)
    found = 0
    for place, name in enumerate(sources.NAMES):
        others = {other for match in needed.findall(sources.read(name)) for other in match.split()}
        assert others.intersection(sources.NAMES) <= set(sources.NAMES[:place]), name
        found += len(others)
    assert found > len(sources.NAMES)


def test_no_file_has_a_gap_and_every_one_has_theorems():
    for name in sources.NAMES:
        assert not sources.gaps(sources.read(name)), name
        assert sources.theorems(sources.read(name)), name


def test_the_page_lists_the_theorems():
    listed = re.findall(r"^\| `(\w+)` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    checked = [theorem for name in sources.NAMES for theorem in sources.theorems(sources.read(name))]
    assert sorted(listed) == sorted(checked)


def test_the_proofs_name_the_theorems_of_their_sections():
    of_section = defaultdict(set)
    row = r"^\| `(\w+)` \|.*\| ([\w, ]+) \| (?:`\w+`(?:, )?)+ \|$"
    for theorem, numbers in re.findall(row, PAGE.read_text(encoding="utf-8"), re.MULTILINE):
        for number in numbers.split(", "):
            of_section[number].add(theorem)
    proofs = (ROOT / "proofs_check/lower_bounds.md").read_text(encoding="utf-8")
    line = r"^## (\w+)\. .*\n\n\*Checked by Rocq:\* ((?:.+\n)+)"
    named = {number: set(re.findall(r"`(\w+)`", names)) for number, names in re.findall(line, proofs, re.MULTILINE)}
    assert named == of_section


def test_the_files_name_code_that_exists():
    named = 0
    for name in sources.NAMES:
        (code, *_) = re.findall(r"Code: (.*?)\.\s", " ".join(sources.read(name).split())) or [""]
        for functions, path in re.findall(r"((?:\w+(?:, | and )?)+) in ([\w/]+\.py)", code):
            text = (ROOT / path).read_text(encoding="utf-8")
            for function in set(re.split(r", | and ", functions)) - {"", "and"}:
                named += 1
                assert re.search(rf"^(def )?{function}\b", text, re.MULTILINE), (name, function)
    assert named >= 20


@pytest.mark.parametrize("gap", ["Admitted.", "Axiom all : False.", "Variable x : nat. Parameter y : nat.", "admit."])
def test_a_gap_is_noticed(gap):
    assert sources.gaps(f"(* no Axiom here *) Lemma a : True. {gap}")


def test_without_rocq_nothing_is_checked_and_a_line_says_what_to_install(monkeypatch):
    monkeypatch.setattr(sources, "_libraries", frozenset)
    monkeypatch.setattr(sources.gappa, "installed", lambda: False)
    run = CliRunner().invoke(command.main)
    assert run.exit_code == 0
    assert "binomial.v: not checked, install coq libcoq-mathcomp\n" in run.output
    assert "double_double.v: not checked, install coq gappa libcoq-gappa\n" in run.output
    assert "theorem_3_2.v: not checked, install coq libcoq-coquelicot\n" in run.output
    assert run.output.endswith("canary_quantile.v: not checked, install coq libcoq-interval\n")
    assert run.output.count("not checked") == len(sources.NAMES)


@pytest.mark.parametrize(
    ("name", "statement", "wrong"),
    [
        pytest.param(*row, marks=[needs(row[0]), *([pytest.mark.deep] if row is not WRONG[0] else [])], id=str(index))
        for index, row in enumerate(WRONG)
    ],
)
def test_a_wrong_statement_is_not_proven(name, statement, wrong, checked_before):
    text = sources.read(name)
    assert statement in text
    with pytest.raises(sources.NotProvenError, match=rf"(?s){name}\.v: .*Error"):
        sources.check(name, text.replace(statement, wrong), checked_before(name))


@needs("probability")
@pytest.mark.deep
def test_an_axiom_is_noticed(tmp_path):
    text = (
        "Require Import ProofIrrelevance.\n"
        "Theorem same (A : Prop) (p q : A) : p = q.\nProof. apply proof_irrelevance. Qed."
    )
    with pytest.raises(sources.NotProvenError, match=r"same rests on .*proof_irrelevance"):
        sources.check("same", text, tmp_path)


@pytest.mark.deep
def test_all_files_are_proven():
    run = CliRunner().invoke(command.main)
    assert run.exit_code == 0, run.output
    for name in sources.NAMES:
        assert f"{name}.v: {'not checked' if sources.missing(name) else 'checked'}" in run.output
