(* Wrong guesses, and ranks and guesses together: lower_bounds.md, sections 3a and 3b.

   Code: count_wrong in verify/audit/bounds/guesses.py, _limits and ladder_bound in verify/audit/bounds/ladders.py. *)

From mathcomp Require Import all_ssreflect all_algebra.
From canaryproof Require Import probability private_pair precedence sides pooled_order.
Import Order.Theory GRing.Theory Num.Theory.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Local Open Scope ring_scope.

(* What the tests ask of the labels, from the highest score on. *)
Section Labels.

(* z_n, the number of unobserved ones among the first n, and the number of observed ones among the last n. *)
Definition unobserved_among_first (n : nat) (s : seq bool) : nat := count negb (take n s).

Definition observed_among_last (n : nat) (s : seq bool) : nat := count id (drop (size s - n) s).

Lemma first_falls n s s' :
  (unobserved_among_first n (s ++ true :: false :: s') <= unobserved_among_first n (s ++ false :: true :: s'))%N.
Proof.
rewrite /unobserved_among_first; elim: s n => [|b s IH] [|n] //=; last by rewrite leq_add2l.
by case: n => [|n] //=.
Qed.

Lemma last_falls n s s' :
  (observed_among_last n (s ++ true :: false :: s') <= observed_among_last n (s ++ false :: true :: s'))%N.
Proof.
rewrite /observed_among_last !size_cat /=; move: (_ - n)%N => m; elim: s m => [|b s IH] m.
  by case: m => [|[|m]] //=; rewrite leq_addl.
by case: m => [|m]; [rewrite /= leq_add2l; have := IH 0%N; rewrite !drop0 | apply: IH].
Qed.

(* The wrong ones of some high and low guesses. The number of wrong high ones is rounded. *)
Definition wrong_guesses (guesses : nat * nat) (rounded : nat -> nat) (s : seq bool) : nat :=
  (rounded (unobserved_among_first guesses.1 s) + observed_among_last guesses.2 s)%N.

(* A rung is reached where one of its ranks or the number of wrong guesses reaches it. A rank d.1 with the count d.2 at
   the high end does so if z_n < d.1 for n = d.1 + d.2 - 1. *)
Definition rung_reached (high low : seq (nat * nat)) (guesses : nat * nat) (rounded : nat -> nat) (most : nat)
    (s : seq bool) : bool :=
  [|| has (fun d => unobserved_among_first (d.2 + d.1).-1 s < d.1)%N high,
      has (fun d => observed_among_last (d.2 + d.1).-1 s < d.1)%N low
    | (wrong_guesses guesses rounded s <= most)%N].

Lemma rung_rises (R : realFieldType) high low guesses rounded most :
  {homo rounded : a b / (a <= b)%N} ->
  rises_in_order (fun s => (rung_reached high low guesses rounded most s)%:R : R).
Proof.
move=> rounded_rises s s'; rewrite ler_nat; case reached: (rung_reached _ _ _ _ _ (s ++ false :: _)) => //.
suff -> : rung_reached high low guesses rounded most (s ++ true :: false :: s') by [].
case/or3P: reached => [/hasP[d d_in small]|/hasP[d d_in small]|few]; apply/or3P.
- by constructor 1; apply/hasP; exists d => //; apply: leq_ltn_trans small; apply: first_falls.
- by constructor 2; apply/hasP; exists d => //; apply: leq_ltn_trans small; apply: last_falls.
- constructor 3; apply: leq_trans few; apply: leq_add; last exact: last_falls.
  exact/rounded_rises/first_falls.
Qed.

(* The number of observed ones above the r-th unobserved one. *)
Fixpoint observed_above (r : nat) (s : seq bool) : nat :=
  if s is b :: s' then if b then ((0 < r) + observed_above r s')%N else observed_above r.-1 s' else 0%N.

Lemma observed_above0 s : observed_above 0 s = 0%N.
Proof. by elim: s => [//|[] s IH]. Qed.

Lemma observed_above_limit r c s : (0 < r <= count negb s)%N ->
  (c <= observed_above r s)%N = (unobserved_among_first (c + r).-1 s < r)%N.
Proof.
rewrite /unobserved_among_first; elim: s r c => [|b s IH] r c /andP[r_gt0 r_s]; first by case: r r_gt0 r_s.
case: b r_s => /= r_s.
  rewrite r_gt0 add1n; case: c => [|c].
    rewrite /= add0n; apply/esym; case: r r_gt0 {r_s} => // r _; rewrite ltnS /=.
    by apply: leq_trans (count_size _ _) _; rewrite size_take; case: ltnP.
  rewrite ltnS IH ?r_gt0 // addSn /=; case: r r_gt0 r_s => // r _ _.
  by rewrite addnS.
case: r r_gt0 r_s => // -[|r] _ r_s /=.
  by rewrite observed_above0 addn1; case: c.
rewrite IH; last by rewrite -ltnS.
by rewrite !addnS /= ltnS.
Qed.

End Labels.

Section Ranks.
Variables (R : realFieldType) (S : finType).

Lemma above_in_order r (t1 t2 : seq (bool * R)) : pairwise (@before R) (t1 ++ t2) ->
  count (fun a => a.1 && (count (fun b => ~~ b.1 && (a.2 <= b.2)%R) (t1 ++ t2) < r)%N) t2 =
  observed_above (r - count negb (map fst t1)) (map fst t2).
Proof.
elim: t2 t1 => [//|a t2 IH] t1 ordered.
rewrite -cat_rcons in ordered *; rewrite /= IH // map_rcons -[rcons (map _ _) _]cats1.
rewrite [count negb (_ ++ _)]count_cat /= addn0.
rewrite cat_rcons pairwise_cat /= in ordered; case/and3P: ordered => first _ /andP[last _].
case: a first last {IH} => [[] z] first last; rewrite /= ?addn0; last by rewrite add0n addn1 subnS.
congr (_ + _)%N; rewrite subn_gt0; congr (nat_of_bool (_ < r)%N).
rewrite cat_rcons count_cat /= add0n [X in (_ + X)%N](_ : _ = 0%N) ?addn0; last first.
  apply/eqP; rewrite -leqn0 leqNgt -has_count; apply/hasPn => -[[] y] y_t2 //=; rewrite -ltNge.
  by have := allP last _ y_t2; rewrite /before /= andbF orbF.
rewrite count_map; apply: eq_in_count => -[b y] y_t1 /=.
have /allrelP/(_ _ _ y_t1 (mem_head _ _)) := first; rewrite /before /= => above.
by case: b above y_t1 => //= above _; apply/idP; move: above; rewrite /= andbT orbC -le_eqVlt.
Qed.

Variable score : S -> R.

Lemma count_pooled (x y : seq S) : count id (pooled score x y) = size x /\ count negb (pooled score x y) = size y.
Proof.
rewrite /pooled /labels !count_map !(permP (permEl (perm_sort _ _))) !count_cat !count_map /=.
split.
  by rewrite (eq_count (a2 := predT)) // count_predT [X in (_ + X)%N](eq_count (a2 := pred0)) // count_pred0 addn0.
by rewrite (eq_count (a2 := pred0)) // count_pred0 [X in (_ + X)%N](eq_count (a2 := predT)) // count_predT.
Qed.

(* At least c observed scores are above the r-th highest unobserved one if and only if z_(c + r - 1) <= r - 1. *)
Theorem rank_is_a_limit r c (x y : seq S) : (0 < r <= size y)%N ->
  (c <= count (above_rank score r y) x)%N = (unobserved_among_first (c + r).-1 (pooled score x y) < r)%N.
Proof.
move=> r_ok; rewrite -observed_above_limit; last by have [_ ->] := count_pooled x y.
congr (c <= _)%N; rewrite /pooled /labels; set pool := [seq _ | _ <- x] ++ _.
have sorted_pool : pairwise (@before R) ([::] ++ sort (@before R) pool).
  by rewrite -sorted_pairwise; [apply: sort_sorted; apply: before_total | apply: before_trans].
have := @above_in_order r [::] (sort (@before R) pool) sorted_pool; rewrite /= subn0 => <-.
rewrite (permP (permEl (perm_sort (@before R) pool))) /pool count_cat !count_map /=.
rewrite [X in (_ + X)%N](eq_count (a2 := pred0)) // count_pred0 addn0; apply: eq_count => z /=; rewrite /above_rank.
rewrite (permP (permEl (perm_sort (@before R) _))) count_cat !count_map /=.
by rewrite [X in (X + _)%N](eq_count (a2 := pred0)) // count_pred0.
Qed.

End Ranks.

(* Unobserved scores below the r-th lowest observed one: the kinds are exchanged, and all scores turned over. *)
Section Turned.
Variables (R : realFieldType) (S : finType) (score : S -> R).

Lemma pooled_turned (x y : seq S) : pooled (fun z => - score z) y x = [seq ~~ b | b <- rev (pooled score x y)].
Proof.
pose turn (a : bool * R) := (~~ a.1, - a.2).
rewrite /pooled /labels; set pool := _ ++ [seq (false, score z) | z <- y].
have -> : sort (@before R) ([seq (true, - score z) | z <- y] ++ [seq (false, - score z) | z <- x]) =
    [seq turn a | a <- rev (sort (@before R) pool)].
  apply: (sorted_eq (@before_trans R) (@before_anti R)).
  - exact/sort_sorted/before_total.
  - rewrite sorted_map rev_sorted.
    apply: (sub_sorted _ (sort_sorted (@before_total R) pool)) => a b; rewrite /before /= ltr_opp2 eqr_opp eq_sym.
    by rewrite implybNN.
  - apply: (perm_trans (permEl (perm_sort _ _))); rewrite perm_sym.
    apply: (perm_trans (perm_map _ (permEl (perm_rev _)))); apply: (perm_trans (perm_map _ (permEl (perm_sort _ _)))).
    by rewrite /pool map_cat -!map_comp perm_catC.
by rewrite -map_rev -!map_comp.
Qed.

Corollary rank_is_a_limit_turned r c (x y : seq S) : (0 < r <= size x)%N ->
  (c <= count (below_rank score r x) y)%N = (observed_among_last (c + r).-1 (pooled score x y) < r)%N.
Proof.
move=> r_ok; have := @rank_is_a_limit R S (fun z => - score z) r c y x r_ok.
rewrite pooled_turned /unobserved_among_first -map_take take_rev count_map count_rev => limit.
rewrite /observed_among_last -[X in (X < r)%N](eq_count (a1 := preim negb negb)) => [|b]; last by rewrite /= negbK.
rewrite -limit; congr (c <= _)%N; apply: eq_count => z; rewrite /below_rank /above_rank.
by congr (_ < _)%N; apply: eq_count => w; rewrite ler_opp2.
Qed.

End Turned.

Section Ladders.
Variables (R : realFieldType) (S : finType) (score : S -> R).

(* W is at least W* in law. *)
Theorem few_wrong_guesses (E delta : R) k k0 (pairs : seq (nat * nat)) (P Q : law R S) guesses w :
  1 <= E -> 0 <= delta <= 1 -> all (fun pair => (pair.1 <= k) && (pair.2 <= k0))%N pairs -> private E delta P Q ->
  mean (iid P k) (fun x => Pr (iid Q k0) (fun y => wrong_guesses guesses id (pooled score x y) <= w)%N) <=
  worst_mean E delta k k0 pairs (fun s => (wrong_guesses guesses id s <= w)%N%:R).
Proof.
move=> E_ge1 delta_ok pairs_ok PQ.
have f_rises := @rung_rises R [::] [::] guesses id w (fun a b ab => ab).
apply: le_trans (rising_in_the_order score E_ge1 delta_ok pairs_ok PQ f_rises).
by apply: mean_le => x; rewrite Pr_mean.
Qed.

(* What an audit compares: counts of scores beyond ranks, and wrong guesses. *)
Definition reaches (high low : seq (nat * nat)) (guesses : nat * nat) (rounded : nat -> nat) (most : nat)
    (x y : seq S) : bool :=
  [|| has (fun d => d.2 <= count (above_rank score d.1 y) x)%N high,
      has (fun d => d.2 <= count (below_rank score d.1 x) y)%N low
    | (wrong_guesses guesses rounded (pooled score x y) <= most)%N].

Definition ranks_exist (n : nat) (declared : seq (nat * nat)) : bool := all (fun d => 0 < d.1 <= n)%N declared.

(* T is at most T* in law: a rung is reached with at most the probability that it has for the worst law of labels. *)
Theorem ladder (E delta : R) k k0 (pairs : seq (nat * nat)) (P Q : law R S) high low guesses rounded most :
  1 <= E -> 0 <= delta <= 1 -> all (fun pair => (pair.1 <= k) && (pair.2 <= k0))%N pairs ->
  ranks_exist k0 high -> ranks_exist k low -> {homo rounded : a b / (a <= b)%N} -> private E delta P Q ->
  mean (iid P k) (fun x => Pr (iid Q k0) (fun y => reaches high low guesses rounded most x y)) <=
  worst_mean E delta k k0 pairs (fun s => (rung_reached high low guesses rounded most s)%:R).
Proof.
move=> E_ge1 delta_ok pairs_ok /allP high_ok /allP low_ok rounded_rises PQ.
have f_rises := @rung_rises R high low guesses rounded most rounded_rises.
apply: le_trans (rising_in_the_order score E_ge1 delta_ok pairs_ok PQ f_rises).
apply: mean_le => x; rewrite -Pr_mean; apply: Pr_sub => y.
case/or3P => [/hasP[d d_in count_d]|/hasP[d d_in count_d]|few]; apply/or3P.
- by constructor 1; apply/hasP; exists d; rewrite // -rank_is_a_limit // size_tuple high_ok.
- by constructor 2; apply/hasP; exists d; rewrite // -rank_is_a_limit_turned // size_tuple low_ok.
- by constructor 3.
Qed.

End Ladders.
