(* Precedence tests, from unobserved scores: lower_bounds.md, section 2a.

   Code: rank_tail, order_statistic and precedence in verify/audit/bounds/precedence.py. *)

From mathcomp Require Import all_ssreflect all_algebra.
From canaryproof Require Import probability binomial private_pair.
Import Order.Theory GRing.Theory Num.Theory.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Local Open Scope ring_scope.

Section Precedence.
Variable R : realFieldType.
Variables (S : finType) (score : S -> R).

(* A score is above the r-th highest unobserved one if fewer than r unobserved ones are at least as high. *)
Definition above_rank (r : nat) (unobserved : seq S) (x : S) : bool :=
  (count (fun y => (score x <= score y)%R) unobserved < r)%N.

(* The null's probability of what is above the r-th highest of k0 unobserved scores is at most the r-th smallest of k0
   uniform numbers, in law: that one is at most v with the probability P(Bin(k0, v) >= r). *)
Lemma beyond_rank (Q : law R S) k0 r v : 0 <= v -> v <= 1 ->
  Pr (iid Q k0) (fun y => v < Pr Q (above_rank r y)) <= 1 - binomial_tail k0 r v.
Proof.
move=> v_ge0 v_le1; pose B := [pred z | Pr Q (fun w => score z < score w) <= v].
have B_large : v <= Pr Q B.
  case: (pickP (predC B)) => [z z_out|all_in]; last first.
    rewrite (_ : Pr Q B = 1) // -(Pr_all Q); apply: Pr_eq => z; exact: negbFE (all_in z).
  case: (@arg_maxP _ _ _ z (predC B) score z_out) => top top_out top_most.
  apply: (@le_trans _ _ (Pr Q (fun w => score top < score w))); first by rewrite ltW // ltNge.
  apply: Pr_sub => w w_top; case B_w: (B w) => //.
  by have /= := top_most w (negbT B_w); rewrite leNgt w_top.
apply: (@le_trans _ _ (1 - Pr (iid Q k0) (fun y => r <= count B y)%N)); last first.
  by rewrite ler_add2l ler_opp2; apply: count_in_law_above.
rewrite -Pr_not; apply: Pr_sub => y; rewrite /= ltNge; apply: contra => many.
case: (pickP (above_rank r y)) => [x0 x0_above|none]; last by rewrite /Pr big_pred0.
case: (@arg_minP _ _ _ x0 (above_rank r y) score x0_above) => x x_above x_least.
(* One of the unobserved scores in B is below x. *)
have : has (fun z => B z && (score z < score x)) y.
  case: (boolP (has _ _)) => // /hasPn none_below.
  have few : (count B y <= count (fun z => (score x <= score z)%R) y)%N.
    rewrite (@eq_in_count _ B (fun z => B z && (score x <= score z))) => [|z z_y].
      by apply: sub_count => z /andP[].
    by have := none_below z z_y; case: (B z) => //=; rewrite -leNgt.
  by have := leq_ltn_trans (leq_trans many few) x_above; rewrite ltnn.
case/hasP => z _ /andP[/= B_z z_x]; apply: le_trans B_z; apply: Pr_sub => w w_above.
exact: lt_le_trans z_x (x_least w w_above).
Qed.

(* What the code computes: each uniform number is put at the upper end of its cell of a fixed grid, and what lies beyond
   the grid counts as a rejection. [below v] is the probability that the r-th smallest of k0 uniform numbers is at most
   v, and [hits v] that of c hits there. *)
Section Grid.
Variables (E delta : R) (k k0 r c : nat) (ends : seq R).
Hypothesis E_ge1 : 1 <= E.
Hypothesis delta_ge0 : 0 <= delta.
Hypothesis ends_rise : sorted <=%R ends.
Hypothesis ends_ok : all (fun v => 0 <= v <= 1) ends.

Definition below (v : R) : R := binomial_tail k0 r v.

Definition hits (v : R) : R := binomial_tail k c (worst_tail E delta v).

Definition beyond (l : nat) : R :=
  if l is n.+1 then if (n < size ends)%N then 1 - below (nth 0 ends n) else 0 else 1.

Definition hits_in_cell (l : nat) : R := if (l < size ends)%N then hits (nth 0 ends l) else 1.

(* P(N_r >= c) is at most this sum over the cells. *)
Definition rank_tail : R := \sum_(0 <= l < (size ends).+1) (beyond l - beyond l.+1) * hits_in_cell l.

Lemma end_ok l : (l < size ends)%N -> 0 <= nth 0 ends l <= 1.
Proof. by move=> l_n; apply: (allP ends_ok); apply: mem_nth. Qed.

Lemma ends_le l : (l.+1 < size ends)%N -> nth 0 ends l <= nth 0 ends l.+1.
Proof. by move=> l_n; apply: (sorted_leq_nth le_trans lexx) => //; rewrite inE // ltnW. Qed.

Lemma binomial_tail_le1 n j (p : R) : 0 <= p <= 1 -> binomial_tail n j p <= 1.
Proof. by move=> p_ok; rewrite -(binomial_count n j p_ok) Pr_le1. Qed.

Lemma worst_ok v : 0 <= v -> 0 <= worst_tail E delta v <= 1.
Proof. by move=> v_ge0; rewrite worst_tail_ge0 ?worst_tail_le1. Qed.

Lemma hits_rises u v : 0 <= u -> u <= v -> hits u <= hits v.
Proof.
move=> u_ge0 uv; have E_gt0 := lt_le_trans ltr01 E_ge1.
by apply: binomial_tail_rises; rewrite ?worst_tail_rises ?worst_tail_le1 //; case/andP: (worst_ok u_ge0).
Qed.

Lemma beyond_falls l : beyond l.+1 <= beyond l.
Proof.
have below_le1 n : (n < size ends)%N -> 0 <= 1 - below (nth 0 ends n).
  by move=> n_s; rewrite subr_ge0; apply: binomial_tail_le1; apply: end_ok.
case: l => [|l] /=.
  case: ifP => l_n; last exact: ler01.
  rewrite ger_addl oppr_le0 /below -(binomial_count k0 r (end_ok l_n)); exact: Pr_ge0.
case: (ltnP l.+1 (size ends)) => l_n; last by case: ifP => // l_n'; apply: below_le1.
rewrite (ltnW l_n) ler_add2l ler_opp2; case/andP: (end_ok (ltnW l_n)) => ge0 _; case/andP: (end_ok l_n) => _ le1.
by apply: binomial_tail_rises => //; apply: ends_le.
Qed.

Lemma beyond_end : beyond (size ends).+1 = 0.
Proof. by rewrite /= ltnn. Qed.

Lemma hits_in_cell_rises l : hits_in_cell l <= hits_in_cell l.+1.
Proof.
rewrite /hits_in_cell; case: (ltnP l.+1 (size ends)) => l_n.
  by rewrite (ltnW l_n); apply: hits_rises (ends_le l_n); case/andP: (end_ok (ltnW l_n)).
case: ifP => // l_n'; apply: binomial_tail_le1; apply: worst_ok; by case/andP: (end_ok l_n').
Qed.

(* N_r >= c: at least c of k observed scores are above the r-th highest of k0 unobserved ones. *)
Theorem precedence (P Q : law R S) : private E delta P Q ->
  mean (iid Q k0) (fun y => Pr (iid P k) (fun x => c <= count (above_rank r y) x)%N) <= rank_tail.
Proof.
move=> PQ; have E_gt0 := lt_le_trans ltr01 E_ge1.
pose G (y : k0.-tuple S) := Pr Q (above_rank r y).
pose cell y := count (fun v => v < G y) ends.
apply: (@le_trans _ _ (mean (iid Q k0) (fun y => hits_in_cell (cell y)))).
  apply: mean_le => y; apply: (@le_trans _ _ (hits (G y))); first exact: count_under_worst_tail.
  rewrite /hits_in_cell; case: ifP => cell_n; last first.
    by apply: binomial_tail_le1; apply: worst_ok; apply: Pr_ge0.
  apply: hits_rises; first exact: Pr_ge0.
  have := @prefix_count _ (fun v => v < G y) ends (cell y); rewrite ltnn => prefix.
  rewrite leNgt -prefix // => i j /andP[ij j_n]; apply: le_lt_trans.
  by apply: (sorted_leq_nth le_trans lexx) => //; rewrite inE // (leq_ltn_trans ij).
pose cells := law_of_tails (erefl 1) beyond_falls beyond_end.
apply: (@le_trans _ _ (mean cells (fun l => hits_in_cell l))); last first.
  rewrite /mean /rank_tail big_mkord; exact: lexx.
apply: (mean_in_law (T' := fun l : 'I_(size ends).+1 => nat_of_ord l)); last exact: hits_in_cell_rises.
move=> [|l]; first by rewrite (Pr_law_of_tails _ _ _ (leq0n _)) Pr_le1.
case: (ltnP l (size ends)) => l_n; last first.
  rewrite {1}/Pr big_pred0 ?Pr_ge0 // => y; apply/negbTE; rewrite -leqNgt; apply: leq_trans l_n; exact: count_size.
rewrite (Pr_law_of_tails _ _ _ (leqW l_n)) /= l_n.
case/andP: (end_ok l_n) => ge0 le1; apply: le_trans (beyond_rank Q k0 r ge0 le1); apply: Pr_sub => y.
rewrite /cell prefix_count // => i j /andP[ij j_n]; apply: le_lt_trans.
by apply: (sorted_leq_nth le_trans lexx) => //; rewrite inE // (leq_ltn_trans ij).
Qed.

End Grid.
End Precedence.

(* M_r >= c: at least c of k0 unobserved scores are below the r-th lowest of k observed ones. The kinds are exchanged,
   and all scores turned over. *)
Section Turned.
Variable R : realFieldType.
Variables (S : finType) (score : S -> R).

Definition below_rank (r : nat) (observed : seq S) (y : S) : bool :=
  (count (fun x => (score x <= score y)%R) observed < r)%N.

Corollary precedence_turned (E delta : R) (k k0 r c : nat) (ends : seq R) (P Q : law R S) :
  1 <= E -> 0 <= delta -> sorted <=%R ends -> all (fun v => 0 <= v <= 1) ends -> private E delta P Q ->
  mean (iid P k) (fun x => Pr (iid Q k0) (fun y => c <= count (below_rank r x) y)%N) <= rank_tail E delta k0 k r c ends.
Proof.
move=> E_ge1 delta_ge0 ends_rise ends_ok PQ.
have QP : private E delta Q P by move=> A; have [P_A Q_A] := PQ A.
apply: le_trans (precedence (fun x => - score x) k0 k r c E_ge1 delta_ge0 ends_rise ends_ok QP).
apply: mean_le => x; apply: Pr_sub => y; rewrite (eq_count (a2 := above_rank (fun x => - score x) r x)) // => z.
by rewrite /below_rank /above_rank; congr (_ < _)%N; apply: eq_count => w; rewrite ler_opp2.
Qed.

End Turned.
