"""Gappa's proofs of the scripts in ``proofs_check/rounding``, as modules for Rocq's kernel.

Gappa takes the equations with which a script guides it for granted: its modules have them as hypotheses. Here each of
them becomes a lemma. Square roots need arguments that are not negative, which the theorems' conditions imply.
"""

import re
import subprocess

from canaryproof.proofs_check.rounding import gappa

_HINT = re.compile(r"^Hypothesis (\w+) : (.*)\.$", re.MULTILINE)
_DEFINITION = re.compile(r"^Definition (\w+)", re.MULTILINE)
# Equations of rational functions are proven by one tactic.
_RATIONAL = "intros; unfold Float1; first [ring | field; auto]."
_SIGNS = "Hypothesis ah_sign : (0 <= _ah)%R.\nHypothesis A_sign : (0 <= _A)%R.\n"
# The names r3 and so on are Gappa's, in the order of the script's terms.
_OF_ROOTS = {
    "a1": (
        "intros h; apply Rminus_diag_uniq_sym; transitivity ((sqrt _A * sqrt _A - _A) / r13)%R; unfold Float1; "
        "[field; exact h | rewrite sqrt_sqrt by exact A_sign; field; exact h]."
    ),
    "a3": (
        "intros h; apply (Rmult_eq_reg_r r39); [| exact h]; transitivity (sqrt _ah * sqrt _ah - sqrt _A * sqrt _A)%R; "
        "[ring | rewrite !sqrt_sqrt by assumption; unfold Float1; field; exact h]."
    ),
    "a4": (
        "transitivity (_al - (_r * _r - sqrt _ah * sqrt _ah))%R; [rewrite sqrt_sqrt by exact ah_sign; ring | ring]."
    ),
}


def modules() -> dict[str, str]:
    """Return the modules' texts by their names.

    Raises
    ------
    subprocess.CalledProcessError
        If Gappa does not prove a script.
    """
    return {f"gappa_{name.removesuffix('.g')}": _module(script) for name, script in gappa.scripts().items()}


def _module(script: str) -> str:
    run = subprocess.run(["gappa", "-Bcoq"], input=script, capture_output=True, text=True, check=True)
    signs, tactics = (_SIGNS, _OF_ROOTS) if "sqrt" in script else ("", {})
    lemmas = _HINT.sub(
        lambda hint: f"Lemma {hint[1]} : {hint[2]}.\n{tactics.get(hint[1], _RATIONAL)}\nQed.", run.stdout
    )
    unfolded = " ".join(_DEFINITION.findall(lemmas))
    return (
        f"Require Import Reals.\n{lemmas.replace('Lemma a1', f'{signs}Lemma a1', 1)}\n"
        f"#[global] Hint Unfold {unfolded} : gappa.\n"
    )
