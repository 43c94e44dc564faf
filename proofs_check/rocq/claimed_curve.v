(* One run with a fair coin for each canary, and the trade-off curve that is claimed: lower_bounds.md, section 6.

   Code: excess_of_curve, p_value_of_curve and mahloujifar in verify/audit/bounds/one_run.py.

   A curve is given by lines: whatever the other coins, no event is more probable than a x + b, where x is its probability
   with the coin turned over, and (a, b) is one of the lines. Each is a pair (e^epsilon, delta) that the claim grants.
   [curve y] is at most each x at which all lines allow the probability y. *)

From mathcomp Require Import all_ssreflect ssrAC all_algebra.
From canaryproof Require Import probability one_run fixed_sequence.
Import Order.Theory GRing.Theory Num.Theory.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Local Open Scope ring_scope.

Section ClaimedCurve.
Variable R : realFieldType.

(* The least probability that the curve asks of one more outcome, in which j of r guesses are right and gap = r - j wrong:
   y is the sum of l P(l are right)/m over l > j, and x that of (r - l) P(l)/m. *)
Definition least_next (curve : R -> R) (gap y x : R) : R := if curve y <= x then 0 else (curve y - x) / gap.

(* The sum of both down to j = 0. *)
Fixpoint least_total (curve : R -> R) (r i : nat) (y x : R) : R :=
  if i is j.+1 then
    let p := least_next curve (r - j)%:R y x in least_total curve r j (y + j%:R * p) (x + (r - j)%:R * p)
  else y + x.

Section Recursion.
Variables (r : nat) (curve : R -> R) (q : nat -> R).
Hypothesis curve_rises : forall y y', y <= y' -> curve y <= curve y'.
Hypothesis q_ge0 : forall j, 0 <= q j.
Let y i := \sum_(i <= j < r.+1) j%:R * q j.
Let x i := \sum_(i <= j < r.+1) (r - j)%:R * q j.
Hypothesis allowed : forall i, (i < r)%N -> curve (y i.+1) <= x i.

Lemma y_step i : (i <= r)%N -> y i = i%:R * q i + y i.+1.
Proof. by move=> i_r; rewrite /y big_ltn. Qed.

Lemma x_step i : (i <= r)%N -> x i = (r - i)%:R * q i + x i.+1.
Proof. by move=> i_r; rewrite /x big_ltn. Qed.

(* The law's totals stay above those of the recursion, and so do the sums of j P(j). *)
Lemma least_total_below i y' x' : (i <= r)%N -> 0 <= (y i - y') + (x i - x') ->
  i%:R * ((y i - y') + (x i - x')) <= r%:R * (y i - y') -> least_total curve r i y' x' <= y 0%N + x 0%N.
Proof.
elim: i y' x' => [|i IH] y' x' i_r /=; set F := _ + _ => F_ge0 G_ge0.
  by rewrite -subr_ge0 opprD addrACA.
have ir := ltnW i_r.
have iF : i%:R * F <= r%:R * (y i.+1 - y').
  by apply: le_trans G_ge0; apply: (ler_wpmul2r F_ge0); rewrite ler_nat leqnSn.
have r_gt0 : 0 < r%:R :> R by rewrite ltr0n; apply: leq_ltn_trans (leq0n i) i_r.
have y'_le : y' <= y i.+1.
  rewrite -subr_ge0 -(pmulr_rge0 _ r_gt0); by apply: le_trans G_ge0; rewrite mulr_ge0 ?ler0n.
have total (a : R) : i%:R * (r%:R * a) = r%:R * (i%:R * a) by rewrite mulrCA.
have whole (a : R) : i%:R * a + (r - i)%:R * a = r%:R * a by rewrite -mulrDl -natrD subnKC.
set s := least_next _ _ _ _.
have F_step : (y i - (y' + i%:R * s)) + (x i - (x' + (r - i)%:R * s)) = F + r%:R * (q i - s).
  rewrite y_step // x_step // mulrBr -!whole /F !opprD.
  by rewrite [LHS](AC ((2*2)*(2*2)) (((2*3)*(6*7))*((1*5)*(4*8)))).
have G_step : i%:R * (F + r%:R * (q i - s)) <= r%:R * (y i - (y' + i%:R * s)).
  by rewrite mulrDr total y_step // opprD [_ + y _ + _](AC (2*2) ((2*3)*(1*4))) /= -mulrBr mulrDr ler_add2r.
apply: IH => //; rewrite F_step //; rewrite /s /least_next in F_step G_step *.
case: (lerP (curve y') x') F_step G_step => [_ _ _|x'_lt].
  by rewrite subr0 addr_ge0 ?mulr_ge0 ?ler0n ?q_ge0.
have gap_gt0 : 0 < (r - i)%:R :> R by rewrite ltr0n subn_gt0.
rewrite [(r - i)%:R * _]mulrCA divff ?mulr1 ?gt_eqF // [x' + _]addrC subrK => F_step G_step.
have x_le : 0 <= x i - curve y' by rewrite subr_ge0; apply: le_trans (allowed i_r); apply: curve_rises.
rewrite -(pmulr_rge0 _ gap_gt0) [X in X * _]natrB // mulrBl subr_ge0; apply: le_trans G_step _.
by rewrite -F_step [leRHS]mulrDr ler_addl mulr_ge0 ?ler0n.
Qed.

End Recursion.

Section Coins.
Variables (m r : nat) (S : finType) (guess : S -> 'I_m -> option bool).
Hypothesis number : forall s, (\sum_(j < m) (guess s j != None) = r)%N.

(* Whatever the other coins, no event is more probable than the lines allow. *)
Definition on_curve (line : R -> R -> Prop) (M : coins m -> law R S) :=
  forall a b, line a b -> 0 < a /\ private_in_every_coin a b M.

Definition curve_of_lines (line : R -> R -> Prop) (curve : R -> R) :=
  (forall y y', y <= y' -> curve y <= curve y') /\
  forall y x, 0 <= x -> (forall a b, line a b -> y <= a * x + b) -> curve y <= x.

(* If at least v of r guesses were right with probability alpha, probabilities would sum to more than 1: so they are not.
   No assumption is made but coins and the claim. *)
Theorem curve_of_coins (line : R -> R -> Prop) (curve : R -> R) (M : coins m -> law R S) (v : nat) (alpha : R) :
  curve_of_lines line curve -> on_curve line M -> (0 < m)%N -> (v <= r)%N ->
  r%:R / m%:R < least_total curve r v (alpha * v%:R / m%:R) (alpha * (r - v)%:R / m%:R) ->
  average (fun c => Pr (M c) (fun s => v <= right guess c s)%N) < alpha.
Proof.
move=> [curve_rises curve_least] private m_gt0 v_r; apply: contraTT; rewrite -!leNgt => alpha_le.
pose p (u : nat) := average (fun c => Pr (M c) (fun s => right guess c s == u)).
pose q u := p u / m%:R.
have m_R : 0 < m%:R :> R by rewrite ltr0n.
have q_ge0 j : 0 <= q j by rewrite divr_ge0 ?ler0n ?right_mass_ge0.
have total i : \sum_(i <= j < r.+1) j%:R * q j + \sum_(i <= j < r.+1) (r - j)%:R * q j =
    r%:R * (\sum_(i <= j < r.+1) p j) / m%:R.
  rewrite -big_split -mulrA big_distrl big_distrr /= !big_nat; apply: eq_bigr => j /andP[_ j_r].
  by rewrite -mulrDl -natrD subnKC.
have -> : r%:R / m%:R = \sum_(0 <= j < r.+1) j%:R * q j + \sum_(0 <= j < r.+1) (r - j)%:R * q j.
  by rewrite total (right_mass_sum number M) mulr1.
have tail_v := right_tail number M v.
have start : \sum_(v <= j < r.+1) j%:R * q j - alpha * v%:R / m%:R +
    (\sum_(v <= j < r.+1) (r - j)%:R * q j - alpha * (r - v)%:R / m%:R) =
    r%:R * (\sum_(v <= j < r.+1) p j - alpha) / m%:R.
  rewrite addrACA total -opprD -mulrDl -mulrDr -natrD subnKC // -mulrBl mulrBr.
  by rewrite [alpha * _]mulrC.
have scaled (w : nat -> nat) i n : \sum_(i <= j < n) (w j)%:R * p j = m%:R * \sum_(i <= j < n) (w j)%:R * q j.
  rewrite big_distrr /=; apply: eq_bigr => j _.
  by rewrite [RHS]mulrCA /q [m%:R * _]mulrC divfK // gt_eqF.
apply: least_total_below => //.
- move=> i i_r; apply: curve_least; first by apply: sumr_ge0 => j _; rewrite mulr_ge0 ?ler0n.
  move=> a b /private[a_gt0 private_ab].
  have := sums number private_ab a_gt0 (fun u => i <= u)%N.
  have from (F : nat -> R) : \sum_(0 <= u < r | (i <= u)%N) F u = \sum_(i <= u < r) F u.
    by rewrite [RHS](big_nat_widenl i 0%N).
  rewrite from sumrB ler_subl_addl => step.
  rewrite -(ler_pmul2l m_R) mulrDr [m%:R * (a * _)]mulrCA -(scaled id) -(scaled (fun j => r - j)%N) big_add1 /=.
  apply: le_trans step _; rewrite ler_add2r [X in a * X]big_nat_recr ?(ltnW i_r) //= subnn mul0r addr0 big_distrr /=.
  by apply: ler_sum => j _; rewrite mulrA.
- by rewrite start divr_ge0 ?ler0n // mulr_ge0 ?ler0n // subr_ge0 tail_v.
- rewrite start -mulrA mulrCA; apply: ler_wpmul2l; first exact: ler0n.
  rewrite mulrA mulrBr mulrBl [v%:R * alpha]mulrC ler_add2r [v%:R * _]big_distrr big_distrl /= !big_nat.
  by apply: ler_sum => j /andP[v_j _]; rewrite -mulrA; apply: ler_wpmul2r; rewrite ?ler_nat ?q_ge0.
Qed.

End Coins.
End ClaimedCurve.
