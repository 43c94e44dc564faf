(* Bounds that are tests in a fixed order, each of them a test of this folder: the default with an exact null, with
   unobserved scores and with coins, and the bound at declared ranks from unobserved scores.

   Code: fixed_sequence in verify/audit/bounds/fixed_sequence.py, steinke in verify/audit/bounds/one_run.py, and precedence in
   verify/audit/bounds/precedence.py.

   Values of epsilon are given by E = e^epsilon, which rises with it. *)

From mathcomp Require Import all_ssreflect all_fingroup all_algebra.
From canaryproof Require Import probability private_pair band precedence pooled_order ladders one_run weighted claimed_curve
  fixed_sequence.
Import Order.Theory GRing.Theory Num.Theory.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Local Open Scope ring_scope.

Section Default.
Variable R : realFieldType.

(* The default with an exact null Q, of k independent scores. For each E i there are thresholds that are fixed in
   advance, and a critical value that the sum of k independent draws of W reaches with probability at most the share
   [sharp]. There are declared ranks with levels that k uniform numbers violate with probability at most the share
   [nested]. A value is rejected by the sum of weights or by the band. Then the bound is above an epsilon for which the
   mechanism is (epsilon, delta)-private with probability at most alpha = sharp + nested. *)
Theorem default_with_exact_null (X : finType) (Q : law R X) (score : X -> R) (k n : nat) (delta sharp nested : R)
    (E : nat -> R) (thresholds : nat -> seq R) (critical : nat -> nat) (declared : nat -> seq (nat * R))
    (E_ge1 : forall i, 1 <= E i) (delta_ge0 : 0 <= delta) (rise : forall i, sorted <=%R (thresholds i))
    (fall : forall i, falling (declared i)) :
  (forall i j, (i <= j)%N -> E i <= E j) ->
  (forall i, Pr (iid (worst_weight Q score (E_ge1 i) delta_ge0 (rise i)) k)
     (fun t => critical i <= sumn [seq nat_of_ord l | l <- t])%N <= sharp) ->
  (forall i, Pr (iid (uniform_cell (fall i)) k)
     (fun t => leaves (declared i) [seq nat_of_ord c | c <- t]) <= nested) ->
  0 <= sharp + nested ->
  forall (P : law R X) (true_E : R), 0 <= true_E -> private true_E delta P Q ->
  Pr (iid P k) (fun t => true_E < bound E n (fun i =>
    (critical i <= sumn [seq reached (thresholds i) (score x) | x <- t])%N ||
    band_rejects (E i) delta Q score (declared i) t)) <= sharp + nested.
Proof.
move=> E_rises sharp_level nested_level alpha_ge0.
apply: (@fixed_sequence R (law R X) _ (fun P => iid P k) (fun e P => private e delta P Q)) => //.
  by move=> e e' P ee'; apply: private_grows.
move=> i P PQ; apply: shares_of_alpha.
  by apply: le_trans (sharp_level i); apply: sum_test.
by apply: le_trans (nested_level i); apply: band => //; apply: lt_le_trans ltr01 _.
Qed.

(* The default where each canary has a coin of its own. For each E i there are guesses of several kinds (at both ends, or at
   one, or a few that must all be right), with numbers and weights that are fixed in advance, each with its critical number
   or weight of right ones, at which the p-value is at most its share of alpha. Shares may be others for each E i. *)
Section Coins.
Variables (m : nat) (S : finType).

(* Coins and what came out of the run, together. *)
Definition joint_mass (M : coins m -> law R S) (cs : coins m * S) : R := M cs.1 cs.2 / (2 ^ m)%N%:R.

Lemma joint_ge0 M cs : 0 <= joint_mass M cs.
Proof. by rewrite divr_ge0 ?mass_ge0 ?ler0n. Qed.

Lemma joint_average M (A : coins m -> pred S) :
  \sum_(cs | A cs.1 cs.2) joint_mass M cs = average (fun c => Pr (M c) (A c)).
Proof.
rewrite /joint_mass -big_distrl /=; congr (_ / _).
by rewrite -(pair_big_dep predT (fun c s => A c s) (fun c s => M c s)).
Qed.

Lemma joint_sum M : \sum_cs joint_mass M cs = 1.
Proof.
rewrite (joint_average M (fun _ _ => true)) -[RHS](@average_const R m 1) /average.
by congr (_ / _); apply: eq_bigr => c _; apply: mass_sum.
Qed.

Definition joint (M : coins m -> law R S) := Law (joint_ge0 M) (joint_sum M).

(* There are never more right guesses than guesses. *)
Lemma never_more (M : coins m -> law R S) (guess : S -> 'I_m -> option bool) (r v : nat) :
  (forall s, \sum_(j < m) (guess s j != None) = r)%N -> (r < v)%N ->
  average (fun c => Pr (M c) (fun s => v <= right guess c s)%N) = 0.
Proof.
move=> exact_number r_v; rewrite /average big1 ?mul0r // => c _; rewrite /Pr big_pred0 // => s.
by apply/negbTE; rewrite -ltnNge; apply: leq_ltn_trans r_v; apply: right_le.
Qed.

(* Guesses that weigh the same. *)
Definition counted (E delta share : R) (rejects : coins m -> pred S) : Prop :=
  exists (number critical : nat) (guess : S -> 'I_m -> option bool),
    [/\ (forall s, \sum_(j < m) (guess s j != None) = number)%N, (0 < critical)%N,
      ((critical <= number)%N -> p_value m number critical E delta <= share) &
      forall c s, rejects c s = (critical <= right guess c s)%N].

(* Guesses that have weights. *)
Definition weighed (E delta share : R) (rejects : coins m -> pred S) : Prop :=
  exists (r v : nat) (place : S -> 'I_r -> 'I_m) (guess : S -> 'I_r -> bool) (w : 'I_r -> nat)
      (Z : finType) (Q : law R Z) (order : Z -> {perm 'I_r}) (kappa : R),
    [/\ (forall s, injective (place s)), 0 <= kappa, decided_at_most w v E Q order kappa,
      weighted_p_value m (weighted_beta E w v) E delta kappa <= share &
      forall c s, rejects c s = (v <= weight_of w (right_ones place guess c s))%N].

Lemma level_of_guesses (E delta share : R) (rejects : coins m -> pred S) (M : coins m -> law R S) : 0 < E ->
  0 <= share -> private_in_every_coin E delta M ->
  counted E delta share rejects \/ weighed E delta share rejects -> average (fun c => Pr (M c) (rejects c)) <= share.
Proof.
move=> E_gt0 share_ge0 private [[number [critical [guess [exact_number critical_gt0 small rejects_eq]]]]|
  [r [v [place [guess [w [Z [Q [order [kappa [distinct kappa_ge0 decided small rejects_eq]]]]]]]]]]].
  have -> : average (fun c => Pr (M c) (rejects c)) = average (fun c => Pr (M c) (fun s => critical <= right guess c s)%N).
    by rewrite /average; congr (_ / _); apply: eq_bigr => c _; apply: Pr_eq => s; apply: rejects_eq.
  case: (leqP critical number) => [critical_le|critical_gt]; last by rewrite (never_more _ exact_number).
  by apply: le_trans (small critical_le); apply: one_run; rewrite ?critical_gt0.
apply: le_trans small; apply: le_trans (weighted_guesses guess distinct E_gt0 private kappa_ge0 decided).
by apply: average_le => c; rewrite (Pr_eq _ (rejects_eq c)).
Qed.

Theorem default_with_coins (kinds n : nat) (delta alpha : R) (E : nat -> R) (share : nat -> 'I_kinds -> R)
    (rejects : nat -> 'I_kinds -> coins m -> pred S) :
  (forall i, 0 < E i) -> (forall i j, (i <= j)%N -> E i <= E j) ->
  (forall i kind, counted (E i) delta (share i kind) (rejects i kind) \/
    weighed (E i) delta (share i kind) (rejects i kind)) ->
  (forall i kind, 0 <= share i kind) ->
  (forall i, \sum_kind share i kind <= alpha) -> 0 <= alpha ->
  forall (M : coins m -> law R S) (true_E : R), 0 <= true_E -> private_in_every_coin true_E delta M ->
  Pr (joint M) (fun cs => true_E < bound E n (fun i => [exists kind, rejects i kind cs.1 cs.2])) <= alpha.
Proof.
move=> E_gt0 E_rises tests share_ge0 shares alpha_ge0.
apply: (@fixed_sequence R _ _ joint (fun e M => private_in_every_coin e delta M)) => //.
  move=> e e' M ee' private c j A; apply: le_trans (private c j A) _.
  by rewrite ler_add2r; apply: ler_wpmul2r; rewrite ?Pr_ge0.
move=> i M private; apply: le_trans (shares i).
(* The union bound over the kinds. *)
apply: (@le_trans _ _ (\sum_kind Pr (joint M) (fun cs => rejects i kind cs.1 cs.2))).
  exact: Pr_exists.
apply: ler_sum => kind _; rewrite /Pr (joint_average M (rejects i kind)).
exact: level_of_guesses.
Qed.

(* The bound on mu of a Gaussian trade-off curve. For each mu i there is a number of guesses that is fixed in advance, and
   the number of right ones at which probabilities would sum to more than 1, were it reached with probability alpha. *)
Theorem gaussian_with_coins (n : nat) (mu : nat -> R) (line : R -> R -> R -> Prop) (curve : R -> R -> R)
    (number : nat -> nat) (guess : nat -> S -> 'I_m -> option bool) (critical : nat -> nat) (alpha : R) :
  (0 < m)%N -> (forall i j, (i <= j)%N -> mu i <= mu j) ->
  (forall t, curve_of_lines (line t) (curve t)) ->
  (forall t t', t <= t' -> forall M : coins m -> law R S, on_curve (line t) M -> on_curve (line t') M) ->
  (forall i s, \sum_(j < m) (guess i s j != None) = number i)%N ->
  (forall i, (critical i <= number i)%N ->
    (number i)%:R / m%:R < least_total (curve (mu i)) (number i) (critical i)
      (alpha * (critical i)%:R / m%:R) (alpha * (number i - critical i)%:R / m%:R)) ->
  0 <= alpha ->
  forall (M : coins m -> law R S) (true_mu : R), 0 <= true_mu -> on_curve (line true_mu) M ->
  Pr (joint M) (fun cs => true_mu < bound mu n (fun i => critical i <= right (guess i) cs.1 cs.2)%N) <= alpha.
Proof.
move=> m_gt0 mu_rises curves nested exact_number beyond alpha_ge0.
apply: (@fixed_sequence R _ _ joint (fun t M => on_curve (line t) M)) => //.
  by move=> t t' M tt'; apply: nested.
move=> i M private; rewrite /Pr (joint_average M (fun c s => critical i <= right (guess i) c s)%N).
case: (leqP (critical i) (number i)) => [critical_le|critical_gt].
  exact: ltW (curve_of_coins (exact_number i) (curves (mu i)) private m_gt0 critical_le (beyond i critical_le)).
by rewrite (never_more _ (exact_number i)).
Qed.

End Coins.

(* Scores of k canaries that took part and of k0 that did not, all independent. For each E i there are declared ranks at
   either end, each with its share of alpha and its critical count. *)
Section Unobserved.

Definition both_mass (X Y : finType) (P : law R X) (Q : law R Y) (xy : X * Y) : R := P xy.1 * Q xy.2.

Lemma both_ge0 X Y (P : law R X) (Q : law R Y) xy : 0 <= both_mass P Q xy.
Proof. by rewrite mulr_ge0 ?mass_ge0. Qed.

Lemma both_by_first X Y (P : law R X) (Q : law R Y) (A : X -> pred Y) :
  \sum_(xy | A xy.1 xy.2) both_mass P Q xy = mean P (fun x => Pr Q (A x)).
Proof.
rewrite -(pair_big_dep predT (fun x y => A x y) (fun x y => P x * Q y)) /=.
by apply: eq_bigr => x _; rewrite /Pr big_distrr.
Qed.

Lemma both_by_second X Y (P : law R X) (Q : law R Y) (A : X -> pred Y) :
  \sum_(xy | A xy.1 xy.2) both_mass P Q xy = mean Q (fun y => Pr P (A^~ y)).
Proof.
rewrite -(pair_big_dep predT (fun x y => A x y) (fun x y => P x * Q y)) /=.
rewrite (exchange_big_dep predT) //=; apply: eq_bigr => y _; rewrite /Pr big_distrr /=.
by apply: eq_bigr => x _; rewrite mulrC.
Qed.

Lemma both_sum X Y (P : law R X) (Q : law R Y) : \sum_xy both_mass P Q xy = 1.
Proof.
rewrite (both_by_first P Q (fun _ _ => true)) -(mass_sum P); apply: eq_bigr => x _.
by rewrite Pr_all mulr1.
Qed.

Definition both X Y (P : law R X) (Q : law R Y) := Law (both_ge0 P Q) (both_sum P Q).

Section Ranks.
Variables (S : finType) (score : S -> R) (k k0 kinds : nat) (delta : R) (ends : seq R).
Variables (share : 'I_kinds -> R) (high : 'I_kinds -> bool) (rank : 'I_kinds -> nat).

(* One of the ranks has at least its critical count beyond it. *)
Definition rank_reached (critical : 'I_kinds -> nat) (x : k.-tuple S) (y : k0.-tuple S) : bool :=
  [exists kind, critical kind <= if high kind then count (above_rank score (rank kind) y) x
                                 else count (below_rank score (rank kind) x) y]%N.

Lemma level_of_ranks (E : R) (critical : 'I_kinds -> nat) (P Q : law R S) :
  1 <= E -> 0 <= delta -> sorted <=%R ends -> all (fun v => 0 <= v <= 1) ends ->
  (forall kind, rank_tail E delta (if high kind then k else k0) (if high kind then k0 else k) (rank kind)
    (critical kind) ends <= share kind) ->
  (forall kind, 0 <= share kind) -> private E delta P Q ->
  Pr (both (iid P k) (iid Q k0)) (fun xy => rank_reached critical xy.1 xy.2) <= \sum_kind share kind.
Proof.
move=> E_ge1 delta_ge0 ends_rise ends_ok small share_ge0 PQ.
pose reaches kind (x : k.-tuple S) (y : k0.-tuple S) := (critical kind <=
  if high kind then count (above_rank score (rank kind) y) x else count (below_rank score (rank kind) x) y)%N.
apply: (@le_trans _ _ (\sum_kind Pr (both (iid P k) (iid Q k0)) (fun xy => reaches kind xy.1 xy.2))).
  exact: Pr_exists.
apply: ler_sum => kind _; apply: le_trans (small kind); rewrite /Pr /reaches; case: (high kind).
  rewrite (both_by_second _ _ (fun (x : k.-tuple S) (y : k0.-tuple S) =>
    critical kind <= count (above_rank score (rank kind) y) x)%N).
  exact: precedence.
rewrite (both_by_first _ _ (fun (x : k.-tuple S) (y : k0.-tuple S) =>
  critical kind <= count (below_rank score (rank kind) x) y)%N).
exact: precedence_turned.
Qed.

Theorem ranks_of_unobserved_scores (n : nat) (E : nat -> R) (critical : nat -> 'I_kinds -> nat) :
  (forall i, 1 <= E i) -> 0 <= delta -> (forall i j, (i <= j)%N -> E i <= E j) ->
  sorted <=%R ends -> all (fun v => 0 <= v <= 1) ends ->
  (forall i kind, rank_tail (E i) delta (if high kind then k else k0) (if high kind then k0 else k) (rank kind)
    (critical i kind) ends <= share kind) ->
  (forall kind, 0 <= share kind) ->
  forall (P Q : law R S) (true_E : R), 0 <= true_E -> private true_E delta P Q ->
  Pr (both (iid P k) (iid Q k0)) (fun xy => true_E < bound E n (fun i => rank_reached (critical i) xy.1 xy.2)) <=
  \sum_kind share kind.
Proof.
move=> E_ge1 delta_ge0 E_rises ends_rise ends_ok small share_ge0 P Q true_E true_ge0 PQ.
apply: (@fixed_sequence R (law R S * law R S) _ (fun m => both (iid m.1 k) (iid m.2 k0))
  (fun e m => private e delta m.1 m.2) E n _ _ _ E_rises _ _ (P, Q)) => //; last exact: sumr_ge0.
  by move=> e e' m ee'; apply: private_grows.
by move=> i [P' Q'] /= private_i; apply: (level_of_ranks (E_ge1 i)).
Qed.

(* The default with unobserved scores. For each E i there is a rung: declared ranks at either end with the counts that
   reach it, numbers of guesses, and the most wrong guesses that reach it. The number of wrong guesses among the first
   ones is rounded. Under the law with the fewest unobserved labels before observed ones that privacy allows, the rung
   is reached with probability at most alpha. *)
Theorem default_with_unobserved_scores (n : nat) (E : nat -> R) (pairs : seq (nat * nat))
    (tops bottoms : nat -> seq (nat * nat)) (guesses : nat -> nat * nat) (rounded : nat -> nat -> nat)
    (most : nat -> nat) (alpha : R) :
  (forall i, 1 <= E i) -> 0 <= delta <= 1 -> (forall i j, (i <= j)%N -> E i <= E j) ->
  all (fun pair => (pair.1 <= k) && (pair.2 <= k0))%N pairs ->
  (forall i, ranks_exist k0 (tops i) && ranks_exist k (bottoms i)) ->
  (forall i, {homo rounded i : a b / (a <= b)%N}) ->
  (forall i, worst_mean (E i) delta k k0 pairs
    (fun s => (rung_reached (tops i) (bottoms i) (guesses i) (rounded i) (most i) s)%:R) <= alpha) ->
  0 <= alpha ->
  forall (P Q : law R S) (true_E : R), 0 <= true_E -> private true_E delta P Q ->
  Pr (both (iid P k) (iid Q k0)) (fun xy => true_E < bound E n (fun i =>
    reaches score (tops i) (bottoms i) (guesses i) (rounded i) (most i) xy.1 xy.2)) <= alpha.
Proof.
move=> E_ge1 delta_ok E_rises pairs_ok ranks_ok rounded_rises small alpha_ge0 P Q true_E true_ge0 PQ.
apply: (@fixed_sequence R (law R S * law R S) _ (fun m => both (iid m.1 k) (iid m.2 k0))
  (fun e m => private e delta m.1 m.2) E n _ _ _ E_rises _ _ (P, Q)) => //.
  by move=> e e' m ee'; apply: private_grows.
move=> i [P' Q'] /= private_i; apply: le_trans (small i); have /andP[tops_ok bottoms_ok] := ranks_ok i.
rewrite /Pr (both_by_first _ _ (fun (x : k.-tuple S) (y : k0.-tuple S) =>
  reaches score (tops i) (bottoms i) (guesses i) (rounded i) (most i) x y)).
exact: ladder.
Qed.

(* With more scores or a larger delta than ladders serve, a value is rejected by a declared rank or by the number of
   wrong guesses, with shares of alpha. *)
Theorem default_with_shares (n : nat) (E : nat -> R) (critical : nat -> 'I_kinds -> nat) (pairs : seq (nat * nat))
    (guesses : nat -> nat * nat) (most : nat -> nat) (sharp : R) :
  (forall i, 1 <= E i) -> 0 <= delta <= 1 -> (forall i j, (i <= j)%N -> E i <= E j) ->
  sorted <=%R ends -> all (fun v => 0 <= v <= 1) ends ->
  (forall i kind, rank_tail (E i) delta (if high kind then k else k0) (if high kind then k0 else k) (rank kind)
    (critical i kind) ends <= share kind) ->
  (forall kind, 0 <= share kind) ->
  all (fun pair => (pair.1 <= k) && (pair.2 <= k0))%N pairs ->
  (forall i, worst_mean (E i) delta k k0 pairs (fun s => (wrong_guesses (guesses i) id s <= most i)%N%:R) <= sharp) ->
  0 <= sharp ->
  forall (P Q : law R S) (true_E : R), 0 <= true_E -> private true_E delta P Q ->
  Pr (both (iid P k) (iid Q k0)) (fun xy => true_E < bound E n (fun i =>
    rank_reached (critical i) xy.1 xy.2 || (wrong_guesses (guesses i) id (pooled score xy.1 xy.2) <= most i)%N)) <=
  \sum_kind share kind + sharp.
Proof.
move=> E_ge1 delta_ok E_rises ends_rise ends_ok small share_ge0 pairs_ok few sharp_ge0 P Q true_E true_ge0 PQ.
apply: (@fixed_sequence R (law R S * law R S) _ (fun m => both (iid m.1 k) (iid m.2 k0))
  (fun e m => private e delta m.1 m.2) E n _ _ _ E_rises _ _ (P, Q)) => //; last by rewrite addr_ge0 ?sumr_ge0.
  by move=> e e' m ee'; apply: private_grows.
move=> i [P' Q'] /= private_i; apply: shares_of_alpha.
  by apply: (level_of_ranks (E_ge1 i)) => //; case/andP: delta_ok.
apply: le_trans (few i); rewrite /Pr (both_by_first _ _ (fun (x : k.-tuple S) (y : k0.-tuple S) =>
  wrong_guesses (guesses i) id (pooled score x y) <= most i)%N).
exact: few_wrong_guesses.
Qed.

End Ranks.
End Unobserved.
End Default.
