(* What (epsilon, delta)-privacy says of a score's two laws, and the test of summed weights: lower_bounds.md, sections 1
   and 3.

   Code: worst_tail in verify/audit/bounds/precedence.py, sum_test and least_rejecting in verify/audit/bounds/fixed_sequence.py, and
   fixed_threshold in verify/audit/bounds/thresholds.py.

   A canary that took part has a score with the law P, one that did not has the law Q. [E] stands for e^epsilon, which
   is at least 1. No proof needs the exponential function. *)

From mathcomp Require Import all_ssreflect all_algebra.
From canaryproof Require Import probability binomial.
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

(* The test of summed weights. A score's weight is the number of thresholds that it reaches. The thresholds rise, and
   are fixed in advance. *)
Definition reached (thresholds : seq R) (score : R) : nat := count (fun t => t <= score) thresholds.

(* The law of W on 0, ..., n with P(W >= l) = tail l: its probabilities are the steps of the tail. *)
Section LawOfTails.
Variables (n : nat) (tail : nat -> R).
Hypothesis tail_begin : tail 0%N = 1.
Hypothesis tail_falls : forall l, tail l.+1 <= tail l.
Hypothesis tail_end : tail n.+1 = 0.

Lemma step_ge0 (l : 'I_n.+1) : 0 <= tail l - tail l.+1.
Proof. by rewrite subr_ge0. Qed.

Lemma steps_from c : (c <= n.+1)%N -> \sum_(c <= l < n.+1) (tail l - tail l.+1) = tail c.
Proof.
move=> c_n; apply: oppr_inj; rewrite -sumrN (eq_bigr (fun l => tail l.+1 - tail l)) => [|l _]; last exact: opprB.
by rewrite telescope_sumr // tail_end sub0r.
Qed.

Lemma steps_sum : \sum_(l < n.+1) (tail l - tail l.+1) = 1.
Proof. by rewrite -(big_mkord xpredT (fun l => tail l - tail l.+1)) steps_from. Qed.

Definition law_of_tails : law R [finType of 'I_n.+1] := Law step_ge0 steps_sum.

Lemma Pr_law_of_tails c : (c <= n.+1)%N -> Pr law_of_tails (fun l => c <= l)%N = tail c.
Proof. by move=> c_n; rewrite -(steps_from c_n) big_geq_mkord. Qed.

End LawOfTails.

(* Where what holds of a member holds of all before it, the first members are those of which it holds. *)
Lemma prefix_count (a : pred R) (s : seq R) l : (forall i j, (i <= j < size s)%N -> a (nth 0 s j) -> a (nth 0 s i)) ->
  (l < size s)%N -> (l < count a s)%N = a (nth 0 s l).
Proof.
elim: s l => // x s IH l before l_n /=; case ax: (a x).
  case: l l_n => [|l] l_n; first by rewrite /= ax.
  by rewrite add1n ltnS IH //= => i j ij; apply: (before i.+1 j.+1).
have none y : y \in s -> a y = false.
  move=> y_s; apply/negP => ay; have := before 0%N (index y s).+1; rewrite /= ltnS index_mem y_s nth_index //.
  by rewrite ax => /(_ isT ay).
rewrite (eq_in_count (a2 := pred0)) ?count_pred0 //.
by case: l l_n => [|l] l_n; rewrite /= ?ax // none // mem_nth.
Qed.

(* A score's weight is at least l if and only if it reaches the l-th threshold. *)
Lemma reached_nth thresholds score l : sorted <=%R thresholds -> (l < size thresholds)%N ->
  (l < reached thresholds score)%N = (nth 0 thresholds l <= score).
Proof.
move=> rise l_n; apply: prefix_count => // i j /andP[ij j_n]; apply: le_trans.
by apply: (sorted_leq_nth le_trans lexx) => //; rewrite inE // (leq_ltn_trans ij).
Qed.

Definition sum_tail (E delta : R) (X : finType) (Q : law R X) (score : X -> R) (thresholds : seq R) (l : nat) : R :=
  if l is l'.+1 then
    if (l' < size thresholds)%N then worst_tail E delta (Pr Q (fun x => nth 0 thresholds l' <= score x)) else 0
  else 1.

Lemma sum_tail_falls E delta X (Q : law R X) score thresholds l : 1 <= E -> 0 <= delta -> sorted <=%R thresholds ->
  sum_tail E delta Q score thresholds l.+1 <= sum_tail E delta Q score thresholds l.
Proof.
move=> E_ge1 delta_ge0 rise; have E_gt0 := lt_le_trans ltr01 E_ge1.
case: l => [|l] /=; first by case: ifP => _; rewrite ?worst_tail_le1 ?ler01.
case: (ltnP l.+1 _) => [l_n|_]; last by case: ifP => // _; rewrite worst_tail_ge0 ?Pr_ge0.
rewrite (ltnW l_n); apply: worst_tail_rises => //; apply: Pr_sub => x; apply: le_trans.
by apply: (sorted_leq_nth le_trans lexx) => //; rewrite inE // ltnW.
Qed.

Lemma sum_tail_end E delta X (Q : law R X) score thresholds :
  sum_tail E delta Q score thresholds (size thresholds).+1 = 0.
Proof. by rewrite /= ltnn. Qed.

(* W, with P(W >= l) = S*(S_Q(t_l)). *)
Definition worst_weight E delta X (Q : law R X) (score : X -> R) thresholds
    (E_ge1 : 1 <= E) (delta_ge0 : 0 <= delta) (rise : sorted <=%R thresholds) :=
  law_of_tails (erefl 1) (fun l => sum_tail_falls Q score l E_ge1 delta_ge0 rise)
    (sum_tail_end E delta Q score thresholds).

(* The sum of the weights of k independent scores is at most that of k independent draws of W. *)
Theorem sum_test E delta X (P Q : law R X) (score : X -> R) thresholds k c
    (E_ge1 : 1 <= E) (delta_ge0 : 0 <= delta) (rise : sorted <=%R thresholds) : private E delta P Q ->
  Pr (iid P k) (fun t => c <= sumn [seq reached thresholds (score x) | x <- t])%N <=
  Pr (iid (worst_weight Q score E_ge1 delta_ge0 rise) k) (fun t => c <= sumn [seq nat_of_ord l | l <- t])%N.
Proof.
move=> PQ; have E_gt0 := lt_le_trans ltr01 E_ge1.
apply: (@sum_in_law R X _ P (fun x => reached thresholds (score x)) _ (fun l => nat_of_ord l)) => l.
case: (leqP l (size thresholds)) => [l_n|n_l]; last first.
  rewrite {1}/Pr big_pred0 ?Pr_ge0 // => x; apply/negbTE; rewrite -ltnNge; apply: leq_ltn_trans n_l.
  exact: count_size.
rewrite (Pr_law_of_tails _ _ _ (leqW l_n)); case: l l_n => [|l] l_n /=; first exact: Pr_le1.
rewrite l_n; apply: le_trans (tail_under_worst_tail (fun x => nth 0 thresholds l <= score x) E_gt0 PQ).
by apply: Pr_sub => x; rewrite reached_nth.
Qed.

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
