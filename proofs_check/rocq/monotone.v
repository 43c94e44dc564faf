(* The bound does not fall where it should not: lower_bounds.md, section 4, "Monotone".

   Code: fixed_sequence in verify/audit/bounds/fixed_sequence.py, ladder_bound in verify/audit/bounds/ladders.py. *)

From mathcomp Require Import all_ssreflect all_algebra.
From canaryproof Require Import probability binomial private_pair band precedence sides pooled_order ladders one_run.
From canaryproof Require Import fixed_sequence.
Import Order.Theory GRing.Theory Num.Theory.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Local Open Scope ring_scope.

Section Sequence.
Variable R : realFieldType.

(* If every test that rejected still does, the bound does not fall. *)
Theorem bound_does_not_fall (eps : nat -> R) n (rejects rejects' : nat -> bool) :
  (forall j, 0 <= eps j) -> (forall i j, (i <= j)%N -> eps i <= eps j) -> (forall j, rejects j -> rejects' j) ->
  bound eps n rejects <= bound eps n rejects'.
Proof.
move=> eps_ge0 rise more; have row : (rejected_in_a_row n rejects <= rejected_in_a_row n rejects')%N.
  apply: sub_find => j /=; apply: contra; exact: more.
rewrite /bound; case: (rejected_in_a_row n rejects) row => [|i]; first by case: (rejected_in_a_row _ _).
by case: (rejected_in_a_row n rejects') => // j; rewrite ltnS; apply: rise.
Qed.

End Sequence.

Section Scores.
Variables (R : realFieldType) (S : finType) (score : S -> R).

(* Each score of the second audit is at least that of the first. *)
Definition raised (x x' : seq S) : bool := all2 (fun z z' => score z <= score z') x x'.

Lemma raised_count (a : pred S) x x' : (forall z z', score z <= score z' -> a z -> a z') -> raised x x' ->
  (count a x <= count a x')%N.
Proof.
move=> a_rises; elim: x x' => [|z x IH] [|z' x'] //= /andP[zz' xx']; apply: leq_add; last exact: IH.
by case a_z: (a z); rewrite // (a_rises z z').
Qed.

Lemma lowered_count (a : pred S) x x' : (forall z z', score z <= score z' -> a z' -> a z) -> raised x x' ->
  (count a x' <= count a x)%N.
Proof.
move=> a_falls; elim: x x' => [|z x IH] [|z' x'] //= /andP[zz' xx']; apply: leq_add; last exact: IH.
by case a_z: (a z'); rewrite // (a_falls z z').
Qed.

(* The sum of weights. *)
Theorem weights_rise thresholds x x' : raised x x' ->
  (sumn [seq reached thresholds (score z) | z <- x] <= sumn [seq reached thresholds (score z) | z <- x'])%N.
Proof.
elim: x x' => [|z x IH] [|z' x'] //= /andP[zz' xx']; apply: leq_add; last exact: IH.
by apply: sub_count => t t_z; apply: le_trans zz'.
Qed.

(* The band. *)
Theorem band_rejection_rises (E delta : R) (Q : law R S) declared x x' : raised x x' ->
  band_rejects E delta Q score declared x -> band_rejects E delta Q score declared x'.
Proof.
move=> xx' /existsP[z /hasP[d d_in /andP[hits above]]]; apply/existsP; exists z; apply/hasP; exists d => //.
rewrite above andbT; apply: leq_trans hits _; apply: raised_count xx' => u u' uu' z_u; exact: le_trans uu'.
Qed.

(* Counts beyond ranks, where observed scores rise and unobserved ones fall. *)
Theorem count_above_rises r x x' y y' : raised x x' -> raised y' y ->
  (count (above_rank score r y) x <= count (above_rank score r y') x')%N.
Proof.
move=> xx' yy'; apply: (@leq_trans (count (above_rank score r y) x')).
  apply: raised_count xx' => z z' zz'; apply: leq_ltn_trans; apply: sub_count => u; exact: le_trans.
apply: sub_count => z; apply: leq_ltn_trans; apply: raised_count yy' => u u' uu' z_u; exact: le_trans uu'.
Qed.

Theorem count_below_rises r x x' y y' : raised x x' -> raised y' y ->
  (count (below_rank score r x) y <= count (below_rank score r x') y')%N.
Proof.
move=> xx' yy'; apply: (@leq_trans (count (below_rank score r x') y)).
  apply: sub_count => z; apply: leq_ltn_trans; apply: lowered_count xx' => u u' uu' u_z; exact: le_trans u_z.
apply: lowered_count yy' => z z' zz'; apply: leq_ltn_trans; apply: sub_count => u u_z; exact: le_trans zz'.
Qed.

(* The order of the scores. *)
Theorem order_rises (f : seq bool -> R) x x' y y' : rises_in_order f -> raised x x' -> raised y' y ->
  f (pooled score x y) <= f (pooled score x' y').
Proof.
move=> f_rises xx' yy'.
pose pairs : seq (bool * R * (bool * R)) :=
  zip [seq (true, score z) | z <- x] [seq (true, score z) | z <- x'] ++
  zip [seq (false, score z) | z <- y] [seq (false, score z) | z <- y'].
have size_x : size x = size x' by apply/eqP; move: xx'; rewrite /raised all2E => /andP[].
have size_y : size y = size y' by apply/eqP; move: yy'; rewrite /raised all2E eq_sym => /andP[].
have first : map fst pairs = [seq (true, score z) | z <- x] ++ [seq (false, score z) | z <- y].
  by rewrite /pairs map_cat; congr (_ ++ _); apply: unzip1_zip; rewrite !size_map ?size_x ?size_y.
have second : map snd pairs = [seq (true, score z) | z <- x'] ++ [seq (false, score z) | z <- y'].
  by rewrite /pairs map_cat; congr (_ ++ _); apply: unzip2_zip; rewrite !size_map ?size_x ?size_y.
pose label_ok (ab : bool * R * (bool * R)) :=
  (ab.1.1 == ab.2.1) && (if ab.1.1 then ab.1.2 <= ab.2.2 else ab.2.2 <= ab.1.2).
have pairs_ok : all label_ok pairs.
  rewrite /pairs all_cat; apply/andP; split.
    elim: x x' xx' {size_x first second pairs} => [|z x IH] [|z' x'] //= /andP[zz' xx'].
    by rewrite /label_ok /= zz' IH.
  elim: y y' yy' {size_y first second pairs} => [|z y IH] [|z' y'] //= /andP[zz' yy'].
  by rewrite /label_ok /= zz' IH.
pose later := relpre (@snd (bool * R) (bool * R)) (@before R).
have later_total : total later by move=> a b; apply: before_total.
have later_trans : transitive later by move=> b a c; apply: before_trans.
pose t := sort later pairs.
have t_second : map snd t = sort (@before R) (map snd pairs) by rewrite sort_map.
have t_ok : all label_ok t by rewrite /t all_sort.
have -> : pooled score x y = labels (map fst t).
  rewrite /pooled -first /labels; congr (map _ _).
  by apply/(perm_sortP (@before_total R) (@before_trans R) (@before_anti R)); rewrite perm_sym perm_map // perm_sort.
have -> : pooled score x' y' = map fst (map fst t).
  rewrite /pooled -second /labels -t_second -!map_comp; apply/eq_in_map => ab ab_t /=.
  by have /andP[/eqP] := allP t_ok _ ab_t.
apply: sort_lowers => //; rewrite /justified pairwise_map.
have t_sorted : pairwise later t by rewrite -sorted_pairwise // sort_sorted.
apply/(pairwiseP (false, 0, (false, 0))) => i j i_t j_t ij.
have := (pairwiseP (false, 0, (false, 0)) t_sorted) i j i_t j_t ij.
have /andP[/eqP label_i ok_i] := allP t_ok _ (mem_nth (false, 0, (false, 0)) i_t).
have /andP[/eqP label_j ok_j] := allP t_ok _ (mem_nth (false, 0, (false, 0)) j_t).
move: (nth _ t i) (nth _ t j) label_i ok_i label_j ok_j => [[a u] [a' u']] [[b v] [b' v']] /= <- + <-.
have le_or p q : (p < q) || (p == q) && true = (p <= q) :> bool by rewrite andbT orbC -le_eqVlt.
case: a => //; case: b => //= u'u vv'; rewrite /later /before /= !le_or => v'u'.
exact: le_trans vv' (le_trans v'u' u'u).
Qed.

Theorem ladder_rejection_rises high low guesses rounded most x x' y y' : {homo rounded : a b / (a <= b)%N} ->
  raised x x' -> raised y' y ->
  reaches score high low guesses rounded most x y -> reaches score high low guesses rounded most x' y'.
Proof.
move=> rounded_rises xx' yy' /or3P[/hasP[d d_in large]|/hasP[d d_in large]|few]; apply/or3P.
- by constructor 1; apply/hasP; exists d; rewrite // (leq_trans large) // count_above_rises.
- by constructor 2; apply/hasP; exists d; rewrite // (leq_trans large) // count_below_rises.
constructor 3; have f_rises := @rung_rises R [::] [::] guesses rounded most rounded_rises.
have := order_rises f_rises xx' yy'; rewrite ler_nat /rung_reached /= few /=.
by case: (_ <= most)%N.
Qed.

End Scores.

Section Delta.
Variable R : realFieldType.

Lemma worst_tail_in_delta (E delta delta' u : R) : 0 < E -> delta <= delta' ->
  worst_tail E delta u <= worst_tail E delta' u.
Proof.
move=> E_gt0 rise; rewrite /worst_tail !le_minr !le_minl lexx /=; apply/andP; split.
  by rewrite ler_add2l rise orbT.
by rewrite ler_add2l ler_opp2 ler_pmul2l ?invr_gt0 // ler_add2l ler_opp2 rise !orbT.
Qed.

(* The sum of weights is more often large for a larger delta, so that its critical value rises. *)
Theorem sum_tail_in_delta (E delta delta' : R) (X : finType) (Q : law R X) (score : X -> R) thresholds k c
    (E_ge1 : 1 <= E) (delta_ge0 : 0 <= delta) (delta'_ge0 : 0 <= delta') (rise : sorted <=%R thresholds) :
  delta <= delta' ->
  Pr (iid (worst_weight Q score E_ge1 delta_ge0 rise) k) (fun t => c <= sumn [seq nat_of_ord l | l <- t])%N <=
  Pr (iid (worst_weight Q score E_ge1 delta'_ge0 rise) k) (fun t => c <= sumn [seq nat_of_ord l | l <- t])%N.
Proof.
move=> larger; have E_gt0 := lt_le_trans ltr01 E_ge1.
apply: (@sum_in_law R _ _ _ (fun l => nat_of_ord l) _ (fun l => nat_of_ord l)) => l.
case: (leqP l (size thresholds)) => [l_n|n_l]; last first.
  rewrite {1}/Pr big_pred0 ?Pr_ge0 // => i; apply/negbTE; rewrite -ltnNge; apply: leq_trans n_l.
  exact: ltn_ord.
rewrite !(Pr_law_of_tails _ _ _ (leqW l_n)); case: l l_n => [|l] l_n /=; first exact: lexx.
by rewrite l_n; apply: worst_tail_in_delta.
Qed.

(* So is a count beyond a rank. *)
Theorem rank_tail_in_delta (E delta delta' : R) k k0 r c ends : 1 <= E -> 0 <= delta -> delta <= delta' ->
  sorted <=%R ends -> all (fun v => 0 <= v <= 1) ends ->
  rank_tail E delta k k0 r c ends <= rank_tail E delta' k k0 r c ends.
Proof.
move=> E_ge1 delta_ge0 larger ends_rise ends_ok; have E_gt0 := lt_le_trans ltr01 E_ge1.
apply: ler_sum => l _; apply: ler_wpmul2l; first by rewrite subr_ge0 beyond_falls.
rewrite /hits_in_cell; case: ifP => // l_n; have /andP[end_ge0 _] := allP ends_ok _ (mem_nth 0 l_n).
apply: binomial_tail_rises; rewrite ?worst_tail_le1 ?worst_tail_in_delta ?worst_tail_ge0 //.
Qed.

(* So is the number of right guesses with coins. *)
Theorem p_value_in_delta (E delta delta' : R) m r v : 0 < E -> (v <= r)%N -> delta <= delta' ->
  p_value m r v E delta <= p_value m r v E delta'.
Proof.
move=> E_gt0 v_r larger; rewrite ler_add2l.
have beta_ge0 : 0 <= beta E r v by apply: sumr_ge0 => j _; apply: point_ge0.
have beta_le1 : beta E r v <= 1.
  rewrite -(point_sum r E_gt0) /beta [leRHS](big_cat_nat _ _ _ (leq0n v) (leqW v_r)) /= ler_addr.
  by apply: sumr_ge0 => j _; apply: point_ge0.
apply: ler_wpmul2l; first by rewrite subr_ge0.
rewrite !le_minr !le_minl lexx /=; apply/orP; right.
apply: ler_wpmul2r; first by rewrite invr_ge0 mulr_ge0 ?ler0n ?point_ge0.
by apply: ler_wpmul2r => //; apply: ler_wpmul2l; rewrite ?ler0n.
Qed.

End Delta.
