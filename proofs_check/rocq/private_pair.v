(* What (epsilon, delta)-privacy says of a score's two laws, and the test of summed weights: lower_bounds.md, sections 1
   and 3.

   Code: worst_tail in verify/bounds/precedence.py; sum_test and least_rejecting in verify/bounds/fixed_sequence.py; fixed
   in verify/bounds/thresholds.py.

   A canary that took part has a score with the law P, one that did not has the law Q. [E] stands for e^epsilon, which is
   at least 1. No proof needs the exponential function. *)

From mathcomp Require Import all_ssreflect all_algebra.
From canaryproof Require Import probability binomial fixed_sequence.
Import Order.Theory GRing.Theory Num.Theory.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Local Open Scope ring_scope.

Section PrivatePair.
Variable R : realFieldType.

Definition private (E delta : R) (T : finType) (P Q : law R T) :=
  forall A : pred T, Pr P A <= E * Pr Q A + delta /\ Pr Q A <= E * Pr P A + delta.

(* The mechanisms that are private for e^epsilon = E are so for all larger E. *)
Lemma private_grows E E' delta T (P Q : law R T) : E <= E' -> private E delta P Q -> private E' delta P Q.
Proof.
move=> EE' PQ A; have [PA QA] := PQ A; split.
  by apply: le_trans PA _; rewrite ler_add2r; apply: ler_wpmul2r; rewrite ?Pr_ge0.
by apply: le_trans QA _; rewrite ler_add2r; apply: ler_wpmul2r; rewrite ?Pr_ge0.
Qed.

(* Equation (1): A is "the score is at least t", FNR the probability under P that it is not, FPR that under Q. *)
Theorem equation_1 E delta T (P Q : law R T) (A : pred T) : private E delta P Q ->
  1 - delta - Pr P (predC A) <= E * Pr Q A /\ 1 - delta - Pr Q A <= E * Pr P (predC A).
Proof.
move=> PQ; have [A_hit _] := PQ A; have [_ A_miss] := PQ (predC A).
rewrite !Pr_not in A_miss *; split.
  by rewrite opprB addrCA addrAC subrr add0r ler_subl_addr.
by rewrite addrAC ler_subl_addr.
Qed.

(* S*(u) = min(1, e^epsilon u + delta, 1 - e^-epsilon (1 - u - delta)): the law that privacy allows at most. *)
Definition worst_tail (E delta u : R) : R := Num.min 1 (Num.min (E * u + delta) (1 - E^-1 * (1 - u - delta))).

Theorem tail_under_worst_tail E delta T (P Q : law R T) (A : pred T) : 0 < E -> private E delta P Q ->
  Pr P A <= worst_tail E delta (Pr Q A).
Proof.
move=> E_gt0 PQ; have [hit _] := PQ A; have [_ miss] := equation_1 A PQ.
rewrite !le_minr Pr_le1 hit /= ler_subr_addl -ler_subr_addr mulrC ler_pdivr_mulr //.
by move: miss; rewrite Pr_not mulrC addrAC.
Qed.

Lemma worst_tail_rises E delta u v : 0 < E -> u <= v -> worst_tail E delta u <= worst_tail E delta v.
Proof.
move=> E_gt0 uv; rewrite /worst_tail !le_minr !le_minl lexx /=; apply/andP; split.
  by rewrite ler_add2r ler_pmul2l // uv orbT.
by rewrite ler_add2l ler_opp2 ler_pmul2l ?invr_gt0 // ler_add2r ler_add2l ler_opp2 uv !orbT.
Qed.

Lemma worst_tail_le1 E delta u : worst_tail E delta u <= 1.
Proof. by rewrite le_minl lexx. Qed.

Lemma worst_tail_ge0 E delta u : 1 <= E -> 0 <= delta -> 0 <= u -> 0 <= worst_tail E delta u.
Proof.
move=> E_ge1 delta_ge0 u_ge0; have E_gt0 : 0 < E := lt_le_trans ltr01 E_ge1.
rewrite !le_minr ler01 addr_ge0 ?mulr_ge0 ?(ltW E_gt0) //= subr_ge0 mulrC ler_pdivr_mulr // mul1r.
apply: le_trans E_ge1; rewrite -addrA ger_addl -opprD oppr_le0; exact: addr_ge0.
Qed.

(* A count of hits under the worst tail. The test that rejects where at least c of k scores reach a threshold that is
   fixed in advance has level P(Bin(k, S*(FPR)) >= c), for every private mechanism. *)
Theorem count_under_worst_tail E delta T (P Q : law R T) (A : pred T) k c : 0 < E -> private E delta P Q ->
  Pr (iid P k) (fun t => c <= count A t)%N <= binomial_tail k c (worst_tail E delta (Pr Q A)).
Proof. by move=> E_gt0 PQ; apply: count_in_law; rewrite ?worst_tail_le1 // tail_under_worst_tail. Qed.

(* The bound at a threshold that is fixed in advance, with an exact null. With the upper limit u of FNR it is the larger
   of log((1 - delta - u)/FPR) and log((1 - delta - FPR)/u): above epsilon if and only if one of these holds. *)
Definition exceeds (E delta fnr fpr : R) : bool := (E * fpr < 1 - delta - fnr) || (E * fnr < 1 - delta - fpr).

Theorem fixed_threshold E delta T (P Q : law R T) (A : pred T) k alpha lower : 0 < E -> private E delta P Q ->
  lower_limit k alpha lower -> 0 <= alpha ->
  Pr (iid P k) (fun t => exceeds E delta (1 - lower (count A t)) (Pr Q A)) <= alpha.
Proof.
move=> E_gt0 PQ limit alpha_ge0; apply: le_trans (clopper_pearson_lower P A limit alpha_ge0).
have [hit miss] := equation_1 A PQ; rewrite Pr_not in hit miss.
apply: Pr_sub => t; rewrite ltNge; apply: contraTN => lower_hit.
rewrite negb_or -!leNgt; apply/andP; split.
  apply: le_trans _ hit; rewrite ler_add2l ler_opp2 ler_add2l ler_opp2 //.
by apply: le_trans miss _; rewrite ler_pmul2l // ler_add2l ler_opp2.
Qed.

End PrivatePair.
