(* A fixed sequence needs no correction: lower_bounds.md, section 4.

   Code: fixed_sequence in verify/audit/bounds/fixed_sequence.py, and steinke in verify/audit/bounds/one_run.py. *)

From mathcomp Require Import all_ssreflect all_algebra.
From canaryproof Require Import probability.
Import Order.Theory GRing.Theory Num.Theory.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Local Open Scope ring_scope.

Section FixedSequence.
Variable R : realFieldType.

(* The values 0 <= eps 0 <= eps 1 <= ... are tested in this order, n of them at most, until one is not rejected.
   [rejects j] says whether the test of eps j rejects. The bound is the last value that was rejected, or else 0. *)
Definition rejected_in_a_row (n : nat) (rejects : nat -> bool) : nat := find (predC rejects) (iota 0 n).

Definition bound (eps : nat -> R) (n : nat) (rejects : nat -> bool) : R :=
  if rejected_in_a_row n rejects is j.+1 then eps j else 0.

Lemma rejected_before n rejects j : (j < rejected_in_a_row n rejects)%N -> (j < n)%N /\ rejects j.
Proof.
move=> j_before; have j_n : (j < n)%N.
  by rewrite -(size_iota 0 n); apply: (leq_trans j_before); apply: find_size.
split=> //; have := before_find 0%N j_before; rewrite nth_iota // add0n /=.
by move/negbFE.
Qed.

(* [observed m] is the law of what the audit sees of the mechanism m, one of the finitely many values of T.
   [private e m] stands for "m is (e, delta)-private". Those sets of mechanisms grow with e. Each test has level alpha:
   under every mechanism that is private for its value it rejects with probability at most alpha. Then the bound is
   above an epsilon for which the mechanism is private with probability at most alpha. *)
Theorem fixed_sequence (mechanism : Type) (T : finType) (observed : mechanism -> law R T)
    (private : R -> mechanism -> Prop) (eps : nat -> R) (n : nat) (rejects : nat -> T -> bool) (alpha : R) :
  (forall e e' m, e <= e' -> private e m -> private e' m) ->
  (forall i j, (i <= j)%N -> eps i <= eps j) ->
  (forall j m, private (eps j) m -> Pr (observed m) (rejects j) <= alpha) ->
  0 <= alpha ->
  forall (m : mechanism) (epsilon : R), 0 <= epsilon -> private epsilon m ->
  Pr (observed m) (fun x => epsilon < bound eps n (fun j => rejects j x)) <= alpha.
Proof.
move=> grow rise level alpha_ge0 m epsilon epsilon_ge0 m_private.
(* J is the first value that is not below epsilon. It does not depend on what is observed. *)
pose J := find (fun j => epsilon <= eps j) (iota 0 n).
case: (ltnP J n) => [J_n|n_J]; last first.
  (* There is none: the bound is never above epsilon. *)
  rewrite /Pr big_pred0 // => x; apply/negbTE; rewrite -leNgt /bound.
  case rows: (rejected_in_a_row _ _) => [//|j].
  have [j_n _] : (j < n)%N /\ rejects j x.
    by apply: (@rejected_before n (fun j => rejects j x)); rewrite rows.
  have /(before_find 0%N) : (j < J)%N := leq_trans j_n n_J.
  by rewrite nth_iota // add0n => /negbT; rewrite -ltNge => /ltW.
have J_above : epsilon <= eps J.
  have : has (fun j => epsilon <= eps j) (iota 0 n) by rewrite has_find size_iota.
  by move/(nth_find 0%N); rewrite -/J nth_iota.
(* If the bound is above epsilon, the test of J rejected, too. *)
apply: le_trans (level J m (grow _ _ _ J_above m_private)); apply: Pr_sub => x.
rewrite /bound; case rows: (rejected_in_a_row _ _) => [|j]; first by rewrite ltNge epsilon_ge0.
move=> above; have J_j : (J <= j)%N.
  rewrite leqNgt; apply/negP => j_J; have := before_find 0%N j_J.
  by rewrite nth_iota ?(ltn_trans j_J) // add0n (ltW above).
by have [] : (J < n)%N /\ rejects J x by apply: (@rejected_before n (fun j => rejects j x)); rewrite rows.
Qed.

(* A value that is rejected if one of two tests rejects it, with shares of alpha, has level alpha (Bonferroni). *)
Theorem shares_of_alpha (T : finType) (P : law R T) (A B : pred T) (a b : R) :
  Pr P A <= a -> Pr P B <= b -> Pr P (fun x => A x || B x) <= a + b.
Proof. by move=> A_a B_b; apply: le_trans (Pr_or P A B) _; apply: ler_add. Qed.

(* A bound that is never larger than one with level alpha has level alpha: so has the least of the bounds of several
   designs of delta, if one of them has it. *)
Theorem least_of_bounds (T : finType) (P : law R T) (value least : T -> R) (epsilon alpha : R) :
  (forall x, least x <= value x) -> Pr P (fun x => epsilon < value x) <= alpha ->
  Pr P (fun x => epsilon < least x) <= alpha.
Proof. by move=> smaller; apply: le_trans; apply: Pr_sub => x above; apply: lt_le_trans above (smaller x). Qed.

End FixedSequence.
