(* Finite probability, as far as the other files need it.

   Scores are float64 numbers, so that all that an audit sees is one of finitely many values: finite sums are enough.
   [R] is any ordered field, such as the real or the rational numbers. [law T] is a probability distribution on the
   finite set T. [Pr P A] is the probability of the event A. [iid P k] is the law of k independent draws of P. *)

From mathcomp Require Import all_ssreflect all_algebra.
Import Order.Theory GRing.Theory Num.Theory.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Local Open Scope ring_scope.

Section Probability.
Variable R : realFieldType.

Record law (T : finType) := Law {
  mass :> T -> R;
  mass_ge0 : forall x, 0 <= mass x;
  mass_sum : \sum_x mass x = 1 }.

Definition Pr (T : finType) (P : law T) (A : pred T) : R := \sum_(x | A x) P x.

Definition mean (T : finType) (P : law T) (f : T -> R) : R := \sum_x P x * f x.

Lemma Pr_mean (T : finType) (P : law T) (A : pred T) : Pr P A = mean P (fun x => (A x)%:R).
Proof. by rewrite /Pr big_mkcond; apply: eq_bigr => x _; case: (A x); rewrite ?mulr1 ?mulr0. Qed.

Lemma Pr_ge0 (T : finType) (P : law T) (A : pred T) : 0 <= Pr P A.
Proof. by apply: sumr_ge0 => x _; apply: mass_ge0. Qed.

Lemma Pr_all (T : finType) (P : law T) : Pr P predT = 1.
Proof. exact: mass_sum. Qed.

Lemma Pr_eq (T : finType) (P : law T) (A B : pred T) : A =1 B -> Pr P A = Pr P B.
Proof. by move=> AB; apply: eq_bigl. Qed.

Lemma Pr_sub (T : finType) (P : law T) (A B : pred T) : (forall x, A x -> B x) -> Pr P A <= Pr P B.
Proof.
move=> AB; rewrite /Pr [leRHS](bigID A) /= -[leLHS]addr0.
rewrite (eq_bigl A) ?ler_add2l; last by move=> x; case Ax: (A x); rewrite ?andbF // (AB _ Ax).
by apply: sumr_ge0 => x _; apply: mass_ge0.
Qed.

Lemma Pr_not (T : finType) (P : law T) (A : pred T) : Pr P (predC A) = 1 - Pr P A.
Proof. by rewrite -(mass_sum P) (bigID A) /= addrAC subrr add0r. Qed.

Lemma Pr_le1 (T : finType) (P : law T) (A : pred T) : Pr P A <= 1.
Proof. by rewrite -(Pr_all P); apply: Pr_sub. Qed.

(* The union bound: one of two events. *)
Lemma Pr_or (T : finType) (P : law T) (A B : pred T) : Pr P (predU A B) <= Pr P A + Pr P B.
Proof.
rewrite {1}/Pr (bigID A) /= ler_add //.
  rewrite (eq_bigl A) // => x; by case: (A x); rewrite ?andbF ?andbT.
by apply: (@Pr_sub _ P (fun x => (A x || B x) && ~~ A x) B) => x /andP[/orP[->|]].
Qed.

Lemma Pr_exists (T : finType) (P : law T) m (B : 'I_m -> pred T) :
  Pr P (fun x => [exists i, B i x]) <= \sum_i Pr P (B i).
Proof.
rewrite /Pr [leRHS](exchange_big_dep predT) //= big_mkcond; apply: ler_sum => x _.
case: ifP => [/existsP[i B_x]|_]; last by apply: sumr_ge0 => i _; apply: mass_ge0.
by rewrite (bigD1 i) //= ler_addl; apply: sumr_ge0 => j _; apply: mass_ge0.
Qed.

(* Independent draws: the probability of a tuple is the product of the probabilities of its members. *)
Definition draws_mass (T : finType) (P : law T) k (t : k.-tuple T) : R := \prod_(x <- t) P x.

Lemma sum_tuple0 (T : finType) (F : 0.-tuple T -> R) : \sum_t F t = F [tuple].
Proof. by rewrite (big_pred1 [tuple]) // => t; rewrite [t]tuple0; apply/esym/eqP. Qed.

Lemma sum_tupleS (T : finType) k (F : k.+1.-tuple T -> R) :
  \sum_t F t = \sum_x \sum_(t : k.-tuple T) F [tuple of x :: t].
Proof.
rewrite pair_big /= (reindex (fun p : T * k.-tuple T => [tuple of p.1 :: p.2])) //=.
exists (fun t : k.+1.-tuple T => (thead t, [tuple of behead t])) => [[x t] _|t _] /=.
  by rewrite theadE; congr (_, _); apply: val_inj.
by rewrite [t in RHS]tuple_eta.
Qed.

Lemma draws_ge0 (T : finType) (P : law T) k (t : k.-tuple T) : 0 <= draws_mass P t.
Proof. by apply: prodr_ge0 => x _; apply: mass_ge0. Qed.

Lemma draws_sum (T : finType) (P : law T) k : \sum_(t : k.-tuple T) draws_mass P t = 1.
Proof.
elim: k => [|k IH]; first by rewrite sum_tuple0 /draws_mass big_nil.
rewrite sum_tupleS -(mass_sum P); apply: eq_bigr => x _.
rewrite -[RHS]mulr1 -IH big_distrr /=; apply: eq_bigr => t _.
by rewrite /draws_mass big_cons.
Qed.

Definition iid (T : finType) (P : law T) k : law [finType of k.-tuple T] := Law (@draws_ge0 T P k) (draws_sum P k).

Lemma mean_iid0 (T : finType) (P : law T) (f : seq T -> R) : mean (iid P 0) (fun t => f t) = f [::].
Proof. by rewrite /mean sum_tuple0 /= /draws_mass big_nil mul1r. Qed.

(* The first draw, then the others. *)
Lemma mean_iidS (T : finType) (P : law T) k (f : seq T -> R) :
  mean (iid P k.+1) (fun t => f t) = mean P (fun x => mean (iid P k) (fun t => f (x :: t))).
Proof.
rewrite /mean sum_tupleS; apply: eq_bigr => x _; rewrite big_distrr /=; apply: eq_bigr => t _.
by rewrite /draws_mass big_cons mulrA.
Qed.

Lemma mean_le (T : finType) (P : law T) (f g : T -> R) : (forall x, f x <= g x) -> mean P f <= mean P g.
Proof. by move=> fg; apply: ler_sum => x _; apply: ler_wpmul2l; rewrite ?mass_ge0. Qed.

Lemma mean_shift (T : finType) (P : law T) (f : T -> R) (a : R) : mean P (fun x => f x + a) = mean P f + a.
Proof.
rewrite /mean (eq_bigr (fun x => P x * f x + P x * a)) => [|x _]; last exact: mulrDr.
by rewrite big_split /= -big_distrl /= mass_sum mul1r.
Qed.

(* "T is at most T' in law": P(T >= c) <= P(T' >= c) for all c. *)
Definition at_most_in_law (X Y : finType) (P : law X) (T : X -> nat) (P' : law Y) (T' : Y -> nat) :=
  forall c, Pr P (fun x => (c <= T x)%N) <= Pr P' (fun y => (c <= T' y)%N).

(* The mean of a function of a count, from the count's tail. *)
Lemma mean_by_tails (X : finType) (P : law X) (T : X -> nat) (g : nat -> R) n : (forall x, T x <= n)%N ->
  mean P (fun x => g (T x)) = g 0%N + \sum_(l < n) (g l.+1 - g l) * Pr P (fun x => (l < T x)%N).
Proof.
move=> Tn; pose d x := \sum_(l < n) (g l.+1 - g l) * (l < T x)%N%:R.
have gT x : g (T x) = g 0%N + d x.
  rewrite /d (eq_bigr (fun l : 'I_n => if (l < T x)%N then g l.+1 - g l else 0)); last first.
    by move=> l _; case: ltnP => _; rewrite ?mulr1 ?mulr0.
  rewrite -big_mkcond /= -(big_ord_widen _ (fun l => g l.+1 - g l) (Tn x)).
  have -> : \sum_(i < T x) (g i.+1 - g i) = g (T x) - g 0%N.
    by rewrite -(big_mkord xpredT (fun i => g i.+1 - g i)) telescope_sumr.
  by rewrite addrC subrK.
rewrite /mean (eq_bigr (fun x => P x * g 0%N + P x * d x)); last by move=> x _; rewrite gT mulrDr.
rewrite big_split /= -big_distrl /= mass_sum mul1r; congr (_ + _).
rewrite /d (eq_bigr (fun x => \sum_(l < n) P x * ((g l.+1 - g l) * (l < T x)%N%:R))); last first.
  by move=> x _; rewrite big_distrr.
rewrite exchange_big /=; apply: eq_bigr => l _; rewrite Pr_mean /mean big_distrr /=.
by apply: eq_bigr => x _; rewrite mulrCA.
Qed.

(* What is larger in law has the larger mean of every rising function. *)
Lemma mean_in_law (X Y : finType) (P : law X) (T : X -> nat) (P' : law Y) (T' : Y -> nat) (g : nat -> R) :
  at_most_in_law P T P' T' -> (forall l, g l <= g l.+1) -> mean P (fun x => g (T x)) <= mean P' (fun y => g (T' y)).
Proof.
move=> TT' g_rises.
pose n := maxn (\max_x T x) (\max_y T' y).
rewrite (@mean_by_tails _ P T g n) ?(@mean_by_tails _ P' T' g n).
- rewrite ler_add2l; apply: ler_sum => l _; apply: ler_wpmul2l; first by rewrite subr_ge0.
  exact: TT'.
- by move=> y; rewrite leq_max (leq_bigmax y) orbT.
- by move=> x; rewrite leq_max (leq_bigmax x).
Qed.

(* Sums of independent variables keep that order, and so does every statistic that rises in each variable
   (lower_bounds.md, section 3: "any statistic that rises in every score"). *)
Definition rises (f : seq nat -> R) := forall s l s', f (s ++ l :: s') <= f (s ++ l.+1 :: s').

Theorem rising_statistic (X Y : finType) (P : law X) (T : X -> nat) (P' : law Y) (T' : Y -> nat) k f :
  at_most_in_law P T P' T' -> rises f ->
  mean (iid P k) (fun t => f (map T t)) <= mean (iid P' k) (fun t => f (map T' t)).
Proof.
move=> TT'; elim: k f => [|k IH] f f_rises.
  by rewrite (mean_iid0 P (fun s => f (map T s))) (mean_iid0 P' (fun s => f (map T' s))).
rewrite (mean_iidS P k (fun s => f (map T s))) (mean_iidS P' k (fun s => f (map T' s))) /=.
apply: (@le_trans _ _ (mean P (fun x => mean (iid P' k) (fun t => f (T x :: map T' t))))).
  apply: mean_le => x; apply: (IH (fun s => f (T x :: s))) => s l s'.
  exact: (f_rises (T x :: s)).
apply: (mean_in_law (g := fun l => mean (iid P' k) (fun t => f (l :: map T' t))) TT') => l.
by apply: mean_le => t; apply: (f_rises [::]).
Qed.

(* The case that the tests use: a sum of counts. *)
Corollary sum_in_law (X Y : finType) (P : law X) (T : X -> nat) (P' : law Y) (T' : Y -> nat) k :
  at_most_in_law P T P' T' ->
  at_most_in_law (iid P k) (fun t => sumn (map T t)) (iid P' k) (fun t => sumn (map T' t)).
Proof.
move=> TT' c; rewrite !Pr_mean.
apply: (@rising_statistic _ _ P T P' T' k (fun s => (c <= sumn s)%N%:R) TT') => s l s'.
rewrite !sumn_cat /= ler_nat addSn addnS.
by case: (leqP c (_ + (l + _))%N) => // c_le; rewrite (leqW c_le).
Qed.

End Probability.

(* Independent draws from distributions that differ, for lower_bounds.md, sections 3a and 3b. *)
Section Draws.
Variables (R : realFieldType) (T : finType).

(* A probability distribution, or a part of one. *)
Record weights := Weights { weight :> T -> R; weight_ge0 : forall t, 0 <= weight t }.

(* The mean of F over independent draws, one from each distribution. *)
Fixpoint draws (ms : seq weights) (F : seq T -> R) : R :=
  if ms is m :: others then \sum_t m t * draws others (fun s => F (t :: s)) else F [::].

(* A sequence that may come out. *)
Definition drawn (ms : seq weights) (s : seq T) : bool := all2 (fun (m : weights) t => 0 < m t) ms s.

Lemma draws_le ms F G : (forall s, drawn ms s -> F s <= G s) -> draws ms F <= draws ms G.
Proof.
elim: ms F G => [|m ms IH] F G FG /=; first exact: FG.
apply: ler_sum => t _; have := weight_ge0 m t; rewrite le0r => /orP[/eqP->|m_gt0]; first by rewrite !mul0r.
by rewrite ler_pmul2l //; apply: IH => s s_drawn; apply: FG; rewrite /drawn /= m_gt0.
Qed.

Lemma draws_eq ms F G : (forall s, drawn ms s -> F s = G s) -> draws ms F = draws ms G.
Proof. by move=> FG; apply: le_anti; rewrite !draws_le // => s s_drawn; rewrite FG. Qed.

(* If F does not depend on the order of what is drawn, it does not matter in which order it is drawn. *)
Definition symmetric_in (F : seq T -> R) := forall s s', perm_eq s s' -> F s = F s'.

Lemma symmetric_cons F t : symmetric_in F -> symmetric_in (fun s => F (t :: s)).
Proof. by move=> F_sym s s' ss'; apply: F_sym; rewrite perm_cons. Qed.

Lemma draws_move F l m l' : symmetric_in F -> draws (l ++ m :: l') F = draws (m :: l ++ l') F.
Proof.
elim: l F => [//|a l IH] F F_sym /=.
rewrite (eq_bigr (fun t => \sum_u m u * (a t * draws (l ++ l') (fun s => F (t :: u :: s))))); last first.
  by move=> t _; rewrite (IH _ (symmetric_cons t F_sym)) /= big_distrr; apply: eq_bigr => u _; rewrite mulrCA.
rewrite exchange_big; apply: eq_bigr => u _; rewrite -big_distrr /=; congr (_ * _); apply: eq_bigr => t _.
congr (_ * _); apply: draws_eq => s _; apply: F_sym.
exact/permPl/(perm_catCA [:: t] [:: u] s).
Qed.

Lemma draws_perm (I : eqType) (g : I -> weights) l l' F : symmetric_in F -> perm_eq l l' ->
  draws (map g l) F = draws (map g l') F.
Proof.
elim: l l' F => [|x l IH] l' F F_sym ll'.
  by have /eqP := perm_size ll'; rewrite eq_sym => /nilP->.
have x_l' : x \in l' by rewrite -(perm_mem ll') mem_head.
case/splitPr: x_l' ll' => p q; rewrite perm_sym -cat1s perm_catCA cat1s perm_cons perm_sym => l_pq.
rewrite map_cat /= draws_move // -map_cat /=; apply: eq_bigr => t _; congr (_ * _).
by apply: IH => //; apply: symmetric_cons.
Qed.

(* One member is drawn from a mixture. *)
Lemma draws_mixture (I : finType) (a : I -> R) (mi : I -> weights) (m : weights) l l' F :
  (forall t, m t = \sum_i a i * mi i t) -> draws (l ++ m :: l') F = \sum_i a i * draws (l ++ mi i :: l') F.
Proof.
move=> m_mixture; elim: l F => [|b l IH] F /=.
  rewrite (eq_bigr (fun t => \sum_i a i * (mi i t * draws l' (fun s => F (t :: s))))); last first.
    by move=> t _; rewrite m_mixture big_distrl; apply: eq_bigr => i _; rewrite mulrA.
  by rewrite exchange_big; apply: eq_bigr => i _; rewrite -big_distrr.
rewrite (eq_bigr (fun t => \sum_i a i * (b t * draws (l ++ mi i :: l') (fun s => F (t :: s))))); last first.
  by move=> t _; rewrite IH big_distrr; apply: eq_bigr => i _; rewrite mulrCA.
by rewrite exchange_big; apply: eq_bigr => i _; rewrite -big_distrr.
Qed.

(* So are n of them, and each has a part of the mixture that it came from. *)
Lemma draws_mixtures (I : finType) (a : I -> R) (mi : I -> weights) (m : weights) n l l' F :
  (forall t, m t = \sum_i a i * mi i t) ->
  draws (l ++ nseq n m ++ l') F = \sum_(c : n.-tuple I) (\prod_(x <- c) a x) * draws (l ++ map mi c ++ l') F.
Proof.
move=> m_mixture; elim: n l => [|n IH] l; first by rewrite sum_tuple0 /= big_nil mul1r.
rewrite sum_tupleS /= (draws_mixture _ _ _ m_mixture); apply: eq_bigr => i _.
rewrite -cat_rcons IH big_distrr; apply: eq_bigr => c _.
by rewrite /= big_cons mulrA cat_rcons.
Qed.

End Draws.

Section Counts.
Variable R : realFieldType.

(* A sum over all sequences of n coins, of what depends on the number of heads: C(n, N) sequences have N of them. The
   weight of a sequence is the product of [a true] for each head and [a false] for each tail. *)
Lemma by_count (a : bool -> R) n (phi : nat -> R) :
  \sum_(c : n.-tuple bool) (\prod_(x <- c) a x) * phi (count id c) =
  \sum_(N < n.+1) 'C(n, N)%:R * a true ^+ N * a false ^+ (n - N) * phi N.
Proof.
elim: n phi => [|n IH] phi; first by rewrite sum_tuple0 big_nil big_ord1 /= !mulr1.
rewrite sum_tupleS big_bool /=.
under eq_bigr do rewrite big_cons add1n -mulrA.
under [X in _ + X]eq_bigr do rewrite big_cons add0n -mulrA.
rewrite -!big_distrr /= (IH (fun N => phi N.+1)) IH.
rewrite [X in a false * X]big_ord_recl [RHS]big_ord_recl /= !subn0 !bin0 !expr0 !mul1r mulrDr addrCA; congr (_ + _).
  by rewrite exprS mulrA.
rewrite [in RHS](eq_bigr (fun N : 'I_n.+1 => a true * ('C(n, N)%:R * a true ^+ N * a false ^+ (n - N) * phi N.+1) +
   'C(n, N.+1)%:R * a true ^+ N.+1 * a false ^+ (n - N) * phi N.+1)); last first.
  move=> N _; rewrite /bump /= add1n subSS binS natrD !mulrDl addrC exprS; congr (_ + _).
  by rewrite !mulrA [_ * a true]mulrC.
rewrite big_split /= -big_distrr /=; congr (_ + _).
rewrite [RHS]big_ord_recr /= bin_small // !mul0r addr0 big_distrr /=; apply: eq_bigr => N _.
rewrite /bump /= add1n mulrA; congr (_ * _).
by rewrite mulrCA -exprS subnSK.
Qed.
End Counts.
