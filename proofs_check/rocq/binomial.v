(* Binomial counts, and Clopper and Pearson's limits: lower_bounds.md, section 1.

   Code: lower and upper in kernels/binomial.py. *)

From mathcomp Require Import all_ssreflect all_algebra.
From canaryproof Require Import probability.
Import Order.Theory GRing.Theory Num.Theory.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Local Open Scope ring_scope.

Section Binomial.
Variable R : realFieldType.

(* P(B >= c) for a binomial B with n trials of probability p. *)
Definition binomial_tail (n c : nat) (p : R) : R :=
  \sum_(c <= j < n.+1) 'C(n, j)%:R * p ^+ j * (1 - p) ^+ (n - j).

(* One trial of probability p. *)
Lemma trial_ge0 (p : R) : 0 <= p <= 1 -> forall x : bool, 0 <= (if x then p else 1 - p).
Proof. by move=> /andP[p_ge0 p_le1] [] //; rewrite subr_ge0. Qed.

Lemma trial_sum (p : R) : \sum_(x : bool) (if x then p else 1 - p) = 1.
Proof. by rewrite big_bool /= addrC subrK. Qed.

Definition trial (p : R) (p_ok : 0 <= p <= 1) : law R [finType of bool] := Law (trial_ge0 p_ok) (trial_sum p).

Lemma Pr_trial (p : R) (p_ok : 0 <= p <= 1) A : Pr (trial p_ok) A = (A true)%:R * p + (A false)%:R * (1 - p).
Proof. by rewrite Pr_mean /mean big_bool /= !(mulrC (_%:R)). Qed.

(* Of n + 1 trials c + 1 succeed if the first does and c of the others, or it fails and c + 1 of the others succeed. *)
Lemma binomial_tailS n c (p : R) :
  binomial_tail n.+1 c.+1 p = p * binomial_tail n c p + (1 - p) * binomial_tail n c.+1 p.
Proof.
rewrite /binomial_tail big_add1 /=.
rewrite (eq_bigr (fun j => p * ('C(n, j)%:R * p ^+ j * (1 - p) ^+ (n - j)) +
    'C(n, j.+1)%:R * p ^+ j.+1 * (1 - p) ^+ (n - j))); last first.
  by move=> j _; rewrite subSS binS natrD !mulrDl addrC exprS mulrCA !mulrA.
rewrite big_split /= -big_distrr /=; congr (_ + _).
case: (leqP c n) => c_n; last first.
  by rewrite !big_geq ?mulr0 ?ltnS ?(ltnW c_n) //.
rewrite big_nat_recr //= bin_small // !mul0r addr0 big_add1 /= big_distrr /=.
rewrite !big_nat; apply: eq_bigr => j /andP[_ j_n].
by rewrite [RHS]mulrC -[RHS]mulrA -exprSr subnSK.
Qed.

Lemma binomial_tail0 n (p : R) : binomial_tail n 0 p = 1.
Proof.
rewrite /binomial_tail big_mkord -[RHS](expr1n _ n) -[in RHS](subrK p 1) exprDn.
by apply: eq_bigr => j _; rewrite mulr_natl mulrnAl mulrC.
Qed.

Lemma binomial_tail_above c (p : R) : binomial_tail 0 c.+1 p = 0.
Proof. by rewrite /binomial_tail big_geq. Qed.

(* The number of successes among n independent trials is binomial. *)
Theorem binomial_count n c (p : R) (p_ok : 0 <= p <= 1) :
  Pr (iid (trial p_ok) n) (fun t => c <= sumn (map nat_of_bool t))%N = binomial_tail n c p.
Proof.
rewrite Pr_mean.
elim: n c => [|n IH] c.
  rewrite (mean_iid0 _ (fun s => (c <= sumn (map nat_of_bool s))%N%:R)) /= leqn0.
  by case: c => [|c]; rewrite ?binomial_tail0 ?binomial_tail_above.
rewrite (mean_iidS _ n (fun s => (c <= sumn (map nat_of_bool s))%N%:R)) {1}/mean big_bool.
case: c => [|c].
  pose others := mean (iid (trial p_ok) n) (fun t => (0 <= sumn (map nat_of_bool t))%N%:R).
  by rewrite -[LHS]/(p * others + (1 - p) * others) /others !IH !binomial_tail0 !mulr1 addrC subrK.
by rewrite binomial_tailS -!IH.
Qed.

Lemma binomial_tail_falls n c (p : R) : 0 <= p <= 1 -> binomial_tail n c.+1 p <= binomial_tail n c p.
Proof. by move=> p_ok; rewrite -!(binomial_count _ _ p_ok); apply: Pr_sub => t; apply: ltnW. Qed.

(* A binomial count under stochastic order: more likely trials have the larger tails. *)
Theorem binomial_tail_rises n c (p q : R) : 0 <= p -> p <= q -> q <= 1 -> binomial_tail n c p <= binomial_tail n c q.
Proof.
move=> p_ge0 pq q_le1.
have p_ok : 0 <= p <= 1 by rewrite p_ge0 (le_trans pq).
have q_ok : 0 <= q <= 1 by rewrite q_le1 (le_trans p_ge0).
rewrite -(binomial_count _ _ p_ok) -(binomial_count _ _ q_ok).
apply: sum_in_law => -[|[|l]]; rewrite !Pr_trial /= ?mul1r ?mul0r ?addr0 //.
by rewrite ![_ + (1 - _)]addrC !subrK.
Qed.

(* The same for the counts of events of probability p_A and p_B. *)
Theorem count_in_law (X : finType) (P : law R X) (A : pred X) k c (q : R) : Pr P A <= q -> q <= 1 ->
  Pr (iid P k) (fun t => c <= count A t)%N <= binomial_tail k c q.
Proof.
move=> A_q q_le1; have q_ok : 0 <= q <= 1 by rewrite q_le1 (le_trans (Pr_ge0 P A)).
rewrite -(binomial_count _ _ q_ok).
rewrite (@Pr_eq _ _ _ _ (fun t : k.-tuple X => c <= sumn (map (fun x => nat_of_bool (A x)) t))%N); last first.
  by move=> t; rewrite sumn_count.
apply: (@sum_in_law R X _ P (fun x => nat_of_bool (A x)) _ nat_of_bool) => -[|[|l]];
  rewrite !Pr_trial /= ?mul1r ?mul0r ?addr0.
- by rewrite addrC subrK Pr_le1.
- by rewrite (@Pr_eq _ _ _ _ A) // => x; case: (A x).
- by rewrite (@Pr_eq _ _ _ _ pred0) ?/Pr ?big_pred0_eq // => x; case: (A x).
Qed.

Theorem count_in_law_above (X : finType) (P : law R X) (A : pred X) k c (q : R) : 0 <= q -> q <= Pr P A ->
  binomial_tail k c q <= Pr (iid P k) (fun t => c <= count A t)%N.
Proof.
move=> q_ge0 q_A; have q_ok : 0 <= q <= 1 by rewrite q_ge0 (le_trans q_A) ?Pr_le1.
rewrite -(binomial_count _ _ q_ok).
rewrite [leRHS](@Pr_eq _ _ _ _ (fun t : k.-tuple X => c <= sumn (map (fun x => nat_of_bool (A x)) t))%N); last first.
  by move=> t; rewrite sumn_count.
apply: (@sum_in_law R _ X _ nat_of_bool P (fun x => nat_of_bool (A x))) => -[|[|l]];
  rewrite !Pr_trial /= ?mul1r ?mul0r ?addr0.
- by rewrite addrC subrK -(Pr_all P).
- by rewrite (@Pr_eq _ _ P _ A) // => x; case: (A x).
- exact: Pr_ge0.
Qed.

(* Clopper and Pearson's lower limit of a rate, from s successes in n trials, is the p with P(B >= s) = alpha; it is 0
   for s = 0. All that the proof needs is P(B >= s) <= alpha there, so that a limit may be rounded down. *)
Definition lower_limit (n : nat) (alpha : R) (lower : nat -> R) :=
  lower 0%N <= 0 /\ forall s, (s <= n)%N -> lower s <= 1 /\ binomial_tail n s.+1 (lower s.+1) <= alpha.

(* The limit is above the true rate with probability at most alpha. *)
Theorem clopper_pearson_lower (X : finType) (P : law R X) (A : pred X) n alpha lower :
  lower_limit n alpha lower -> 0 <= alpha -> Pr (iid P n) (fun t => Pr P A < lower (count A t)) <= alpha.
Proof.
move=> [lower0 limit] alpha_ge0; set p := Pr P A.
have p_ge0 : 0 <= p := Pr_ge0 P A.
(* The least count that is so unlikely under p. *)
have unlikely : exists c, binomial_tail n c p <= alpha by exists n.+1; rewrite /binomial_tail big_geq.
case: (ex_minnP unlikely) => c c_unlikely c_least.
apply: le_trans c_unlikely; apply: le_trans (count_in_law n c (lexx p) (Pr_le1 P A)).
apply: Pr_sub => t above; apply: c_least.
have t_n : (count A t <= n)%N by rewrite -[leqRHS](size_tuple t) count_size.
case: (count A t) above t_n => [|s] above s_n; first by case/idP: (lt_geF above); rewrite (le_trans lower0).
have [_ small] := limit s (ltnW s_n); have [lower_le1 _] := limit s.+1 s_n.
exact: le_trans (binomial_tail_rises n s.+1 p_ge0 (ltW above) lower_le1) small.
Qed.

(* The upper limit is 1 less the lower limit of the rate of failures. *)
Theorem clopper_pearson_upper (X : finType) (P : law R X) (A : pred X) n alpha lower :
  lower_limit n alpha lower -> 0 <= alpha -> Pr (iid P n) (fun t => 1 - lower (n - count A t)%N < Pr P A) <= alpha.
Proof.
move=> limit alpha_ge0; apply: le_trans (clopper_pearson_lower P (predC A) limit alpha_ge0); apply: Pr_sub => t.
have -> : count (predC A) t = (n - count A t)%N.
  by rewrite -(addKn (count A t) (count (predC A) t)) count_predC size_tuple.
by rewrite Pr_not !ltr_subl_addr addrC.
Qed.

End Binomial.
