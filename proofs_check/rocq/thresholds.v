(* Bounds at declared thresholds and ranks: lower_bounds.md, section 1.

   Code: threshold_counts, best_of_thresholds and bonferroni in verify/audit/bounds/thresholds.py. *)

From mathcomp Require Import all_ssreflect all_algebra.
From canaryproof Require Import probability binomial private_pair precedence.
Import Order.Theory GRing.Theory Num.Theory.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Local Open Scope ring_scope.

Section Thresholds.
Variable R : realFieldType.

(* The two right sides of equation (1) fall in either rate: they exceed epsilon only if one of the limits fails. *)
Lemma exceeds_limits E delta (X : finType) (P Q : law R X) (A : pred X) (hit alarm : R) : 0 < E ->
  private E delta P Q -> exceeds E delta (1 - hit) alarm -> Pr P A < hit \/ alarm < Pr Q A.
Proof.
move=> E_gt0 PQ; have [hits misses] := equation_1 A PQ; rewrite Pr_not in hits misses.
case: (ltP (Pr P A) hit) => [fails|hit_P]; first by left.
case: (ltP alarm (Pr Q A)) => [fails|Q_alarm]; first by right.
case/orP; rewrite ltNge => /negP; case.
  apply: le_trans (le_trans hits _); last by rewrite ler_pmul2l.
  by rewrite ler_add2l ler_opp2 ler_add2l ler_opp2.
apply: le_trans (_ : 1 - delta - Pr Q A <= _); first by rewrite ler_add2l ler_opp2.
by apply: le_trans misses _; rewrite ler_pmul2l // ler_add2l ler_opp2.
Qed.

(* Thresholds that are declared, with an exact null: each has its share of alpha. *)
Theorem declared_thresholds E delta (X : finType) (P Q : law R X) (m : nat) (A : 'I_m -> pred X) k
    (share : 'I_m -> R) (lower : 'I_m -> nat -> R) :
  0 < E -> private E delta P Q -> (forall i, lower_limit k (share i) (lower i)) -> (forall i, 0 <= share i) ->
  Pr (iid P k) (fun t => [exists i, exceeds E delta (1 - lower i (count (A i) t)) (Pr Q (A i))]) <=
  \sum_i share i.
Proof.
move=> E_gt0 PQ limits share_ge0; apply: le_trans (Pr_exists _ _) _; apply: ler_sum => i _.
exact: fixed_threshold.
Qed.

(* The threshold is the r-th highest of k0 unobserved scores, and what is above it is counted. Its false alarm rate has
   an upper limit that the r-th smallest of k0 uniform numbers exceeds with probability at most [missed]. *)
Theorem declared_rank E delta (S : finType) (score : S -> R) (P Q : law R S) k k0 r alpha missed lower alarm :
  0 < E -> private E delta P Q -> lower_limit k alpha lower -> 0 <= alpha ->
  0 <= alarm <= 1 -> 1 - binomial_tail k0 r alarm <= missed ->
  mean (iid Q k0) (fun y => Pr (iid P k) (fun x =>
    exceeds E delta (1 - lower (count (above_rank score r y) x)) alarm)) <= missed + alpha.
Proof.
move=> E_gt0 PQ limit alpha_ge0 /andP[alarm_ge0 alarm_le1] alarm_missed.
pose fails (y : k0.-tuple S) := alarm < Pr Q (above_rank score r y).
apply: (@le_trans _ _ (mean (iid Q k0) (fun y => (fails y)%:R + alpha))).
  apply: mean_le => y; case: (boolP (fails y)) => [_|holds].
    by apply: le_trans (Pr_le1 _ _) _; rewrite ler_addl.
  rewrite add0r; apply: le_trans (clopper_pearson_lower P (above_rank score r y) limit alpha_ge0).
  by apply: Pr_sub => x /(exceeds_limits (above_rank score r y) E_gt0 PQ)[//|]; rewrite -/(fails y) (negbTE holds).
rewrite mean_shift ler_add2r -(Pr_mean (iid Q k0)).
exact: le_trans (beyond_rank score Q k0 r alarm_ge0 alarm_le1) alarm_missed.
Qed.

(* Several declared ranks, each with its share of alpha. *)
Theorem declared_ranks E delta (S : finType) (score : S -> R) (P Q : law R S) k k0 (m : nat) (rank : 'I_m -> nat)
    (alpha missed : 'I_m -> R) (lower : 'I_m -> nat -> R) (alarm : 'I_m -> R) :
  0 < E -> private E delta P Q -> (forall i, lower_limit k (alpha i) (lower i)) -> (forall i, 0 <= alpha i) ->
  (forall i, 0 <= alarm i <= 1) -> (forall i, 1 - binomial_tail k0 (rank i) (alarm i) <= missed i) ->
  mean (iid Q k0) (fun y => Pr (iid P k) (fun x => [exists i,
    exceeds E delta (1 - lower i (count (above_rank score (rank i) y) x)) (alarm i)])) <=
  \sum_i (missed i + alpha i).
Proof.
move=> E_gt0 PQ limits alpha_ge0 alarm_ok alarm_missed.
apply: (@le_trans _ _ (mean (iid Q k0) (fun y => \sum_i Pr (iid P k) (fun x =>
    exceeds E delta (1 - lower i (count (above_rank score (rank i) y) x)) (alarm i))))).
  by apply: mean_le => y; apply: Pr_exists.
rewrite /mean (eq_bigr (fun y => \sum_i iid Q k0 y * Pr (iid P k) (fun x =>
  exceeds E delta (1 - lower i (count (above_rank score (rank i) y) x)) (alarm i)))) => [|y _]; last exact: big_distrr.
rewrite exchange_big; apply: ler_sum => i _; exact: declared_rank.
Qed.

End Thresholds.
