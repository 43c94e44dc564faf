(* A band for all declared ranks at once, with an exact null: lower_bounds.md, section 2.

   Code: simultaneous, band and staying_above in verify/audit/bounds/thresholds.py. *)

From mathcomp Require Import all_ssreflect all_algebra.
From canaryproof Require Import probability binomial private_pair.
Import Order.Theory GRing.Theory Num.Theory.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Local Open Scope ring_scope.

Section Band.
Variable R : realFieldType.

(* Declared are ranks j with levels L_j, the largest level first. *)
Definition levels (declared : seq (nat * R)) : seq R := [seq d.2 | d <- declared].

Definition level_tail (declared : seq (nat * R)) (c : nat) : R := if c is l.+1 then nth 0 (levels declared) l else 1.

(* Levels are probabilities, and fall in the order in which they are declared. *)
Definition falling (declared : seq (nat * R)) : bool :=
  sorted (fun x y => y <= x) (levels declared) && all (fun x => 0 <= x <= 1) (levels declared).

Lemma level_tail_falls declared c : falling declared -> level_tail declared c.+1 <= level_tail declared c.
Proof.
move=> /andP[falls /allP probabilities].
have level_ok l : 0 <= nth 0 (levels declared) l <= 1.
  case: (ltnP l (size (levels declared))) => l_n; first exact/probabilities/mem_nth.
  by rewrite nth_default ?lexx ?ler01.
case: c => [|l] /=; first by case/andP: (level_ok 0%N).
case: (ltnP l.+1 (size (levels declared))) => l_n; last first.
  by rewrite [leLHS]nth_default //; case/andP: (level_ok l).
apply: (sorted_ltn_nth (fun y x z yx zy => le_trans zy yx) 0 falls) => //; rewrite inE //.
exact: ltnW.
Qed.

Lemma level_tail_end declared : level_tail declared (size (levels declared)).+1 = 0.
Proof. by rewrite /= nth_default. Qed.

(* A uniform number U says how many levels are above it: P(more than l are) is the l-th level. *)
Definition uniform_cell declared (ok : falling declared) :=
  law_of_tails (erefl 1) (fun c => level_tail_falls c ok) (level_tail_end declared).

(* "Not all U_(j) >= L_j": at least j of the numbers are below L_j for some declared j. *)
Definition leaves (declared : seq (nat * R)) (cells : seq nat) : bool :=
  [exists l : 'I_(size declared), (nth (0%N, 0%R) declared l).1 <= count (fun c => l < c)%N cells]%N.

(* The rate of hits at the threshold x, S_P, is rarely small at an observed score: P(S_P(X) < u) <= u. *)
Lemma tail_of_tail (X : finType) (P : law R X) (score : X -> R) u : 0 <= u ->
  Pr P (fun x => Pr P (fun y => score x <= score y) < u) <= u.
Proof.
move=> u_ge0; pose small := [pred x | Pr P (fun y => score x <= score y) < u].
case: (pickP small) => [x0 x0_small|none]; last by rewrite /Pr big_pred0.
case: (@arg_minP _ _ _ x0 small score x0_small) => x x_small x_least; apply: le_trans (ltW x_small).
by apply: Pr_sub => y; apply: x_least.
Qed.

(* The band rejects E where at some threshold at least j scores are hits, and equation (1) with the rate L_j is
   exceeded. Any member of X may be the threshold, also one that the scores choose. *)
Definition band_rejects (E delta : R) (X : finType) (Q : law R X) (score : X -> R) (declared : seq (nat * R))
    (t : seq X) : bool :=
  [exists x : X, has (fun d : nat * R => (d.1 <= count (fun y => (score x <= score y)%R) t)%N &&
    exceeds E delta (1 - d.2) (Pr Q (fun y => score x <= score y))) declared].

Theorem band E delta (X : finType) (P Q : law R X) (score : X -> R) declared (ok : falling declared) k :
  0 < E -> private E delta P Q ->
  Pr (iid P k) (fun t => band_rejects E delta Q score declared t) <=
  Pr (iid (uniform_cell ok) k) (fun t => leaves declared [seq nat_of_ord c | c <- t]).
Proof.
move=> E_gt0 PQ; pose S x := Pr P (fun y => score x <= score y).
pose above x := count (fun u => S x < u) (levels declared).
have above_nth x l : (l < size (levels declared))%N -> (l < above x)%N = (S x < nth 0 (levels declared) l).
  move=> l_n; apply: prefix_count => // i j /andP[ij j_n] small; apply: lt_le_trans small _.
  case/andP: ok => falls _.
  apply: (sorted_leq_nth (fun y x z yx zy => le_trans zy yx) (fun x => lexx x) 0 falls) => //; rewrite inE //.
  exact: leq_ltn_trans ij j_n.
apply: (@le_trans _ _ (Pr (iid P k) (fun t => leaves declared (map above t)))).
  apply: Pr_sub => t /existsP[x /(has_nthP (0%N, 0%R))[l l_n /andP[]]].
  set d := nth _ _ _ => hits exceeded; apply/existsP; exists (Ordinal l_n) => /=.
  have l_levels : (l < size (levels declared))%N by rewrite size_map.
  have small : S x < nth 0 (levels declared) l.
    rewrite (nth_map (0%N, 0%R)) // -/d ltNge; apply: contraL exceeded => large.
    have [hit miss] := equation_1 (fun y => score x <= score y) PQ; rewrite Pr_not in hit miss.
    rewrite /exceeds negb_or -!leNgt; apply/andP; split.
      by apply: le_trans hit; rewrite ler_add2l ler_opp2 ler_add2l ler_opp2.
    by apply: le_trans miss _; rewrite ler_pmul2l // ler_add2l ler_opp2.
  apply: leq_trans hits _; rewrite count_map; apply: sub_count => y xy /=.
  rewrite above_nth //; apply: le_lt_trans small; apply: Pr_sub => z; exact: le_trans.
rewrite !Pr_mean.
apply: (@rising_statistic R X _ P above _ (fun c => nat_of_ord c) k (fun s => (leaves declared s)%:R)).
  move=> [|l]; first by rewrite (Pr_law_of_tails _ _ _ (leq0n _)) Pr_le1.
  case: (ltnP l (size (levels declared))) => [l_n|n_l]; last first.
    rewrite {1}/Pr big_pred0 ?Pr_ge0 // => x; apply/negbTE; rewrite -leqNgt; apply: leq_trans n_l; exact: count_size.
  rewrite (Pr_law_of_tails _ _ _ (leqW l_n)) /=.
  rewrite (@Pr_eq _ _ _ _ (fun x => S x < nth 0 (levels declared) l)) => [|x]; last exact: above_nth.
  apply: tail_of_tail; case/andP: ok => _ /allP/(_ _ (mem_nth 0 l_n)) /andP[level_ge0 _]; exact: level_ge0.
move=> s l s'; rewrite ler_nat; case left_cells: (leaves _ (s ++ l :: s')) => //.
case/existsP: left_cells => i few; have -> // : leaves declared (s ++ l.+1 :: s').
apply/existsP; exists i; apply: leq_trans few _; rewrite !count_cat leq_add2l /= leq_add2r.
by case: (ltnP i l) => // i_l; rewrite ltnS (ltnW i_l).
Qed.

End Band.
