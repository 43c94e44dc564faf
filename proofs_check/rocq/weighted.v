(* One run with a fair coin for each canary, and guesses that have weights: lower_bounds.md, section 6, equation (5).

   Code: p_value, law_of_wrong and share_of_delta in verify/audit/bounds/weights.py.

   [E] stands for e^epsilon. Guesses stand at r positions, and a pattern says which of them are right. *)

From mathcomp Require Import all_ssreflect all_fingroup all_algebra.
From canaryproof Require Import probability one_run.
Import Order.Theory GRing.Theory Num.Theory.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Local Open Scope ring_scope.

Section Weighted.
Variable R : realFieldType.

Section Patterns.
Variable r : nat.

Definition pattern := {ffun 'I_r -> bool}.

(* Position j is made right, or wrong. *)
Definition put (j : 'I_r) (x : bool) (C : pattern) : pattern := [ffun i => if i == j then x else C i].

(* Positions of [A] are as in D, others as in B. *)
Definition mixed (A : pred 'I_r) (D B : pattern) : pattern := [ffun i => if A i then D i else B i].

Lemma put_put j x y (C : pattern) : put j x (put j y C) = put j x C.
Proof. by apply/ffunP => i; rewrite !ffunE; case: eqP. Qed.

Lemma put_same j (C : pattern) : put j (C j) C = C.
Proof. by apply/ffunP => i; rewrite !ffunE; case: eqP => // ->. Qed.

Lemma put_at j x (C : pattern) : put j x C j = x.
Proof. by rewrite ffunE eqxx. Qed.

(* A sum over all patterns, by what they have at j. *)
Lemma sum_at j (F : pattern -> R) : \sum_C F C = \sum_(D : pattern | ~~ D j) (F (put j true D) + F D).
Proof.
rewrite (bigID (fun C : pattern => C j)) /= big_split /=; congr (_ + _).
rewrite (reindex_onto (put j true) (put j false)) /=; last first.
  by move=> C Cj; rewrite put_put -[in RHS](put_same j C) Cj.
apply: eq_bigl => D; rewrite put_at put_put /=; case Dj: (D j); last first.
  by rewrite -[in X in _ == X](put_same j D) Dj eqxx.
by apply/eqP => same; have := put_at j false D; rewrite same Dj.
Qed.

(* Each position is right with probability E/(1 + E), independently. *)
Definition fresh (E : R) (C : pattern) : R := \prod_j ((if C j then E else 1) / (1 + E)).

Definition fresh_mean (E : R) (F : pattern -> R) : R := \sum_B fresh E B * F B.

Variable E : R.
Hypothesis E_gt0 : 0 < E.

Let E1_neq0 : 1 + E != 0.
Proof. by rewrite gt_eqF // E1_gt0. Qed.

Lemma fresh_sum : \sum_C fresh E C = 1.
Proof.
rewrite /fresh -(bigA_distr_bigA (fun (j : 'I_r) (x : bool) => (if x then E else 1) / (1 + E))) /=.
by apply: big1 => j _; rewrite big_bool /= -mulrDl [E + 1]addrC divff.
Qed.

Lemma fresh_ge0 C : 0 <= fresh E C.
Proof.
apply: prodr_ge0 => j _; apply: divr_ge0; last by rewrite ltW // E1_gt0.
by case: (C j); rewrite ?ler01 // ltW.
Qed.

Lemma fresh_put j (D : pattern) : ~~ D j -> fresh E (put j true D) = E * fresh E D.
Proof.
move=> /negbTE Dj; rewrite /fresh (bigD1 j) //= [in RHS](bigD1 j) //= put_at Dj !mulrA mulr1.
by congr (_ * _); apply: eq_bigr => i /negbTE ij; rewrite ffunE ij.
Qed.

Lemma fresh_mean_const x : fresh_mean E (fun=> x) = x.
Proof. by rewrite /fresh_mean -big_distrl /= fresh_sum mul1r. Qed.

Lemma fresh_mean_eq F G : F =1 G -> fresh_mean E F = fresh_mean E G.
Proof. by move=> FG; apply: eq_bigr => B _; rewrite FG. Qed.

Lemma fresh_mean_at j (G : pattern -> R) :
  fresh_mean E G = fresh_mean E (fun B => (E * G (put j true B) + G (put j false B)) / (1 + E)).
Proof.
rewrite /fresh_mean !(sum_at j); apply: eq_bigr => D Dj; rewrite !fresh_put // !put_put.
have -> : put j false D = D by rewrite -[RHS](put_same j D) (negbTE Dj).
have whole f a b : E * f * a + f * b = f * (E * a + b) by rewrite -mulrA mulrCA -mulrDr.
rewrite !whole; set y := _ + _; congr (_ * _).
by rewrite -[X in _ + X]mul1r -mulrDl [E + 1]addrC mulrC divfK.
Qed.


(* The mean of h where the positions of [A] are as in D, and the others fresh. *)
Definition revealed (A : pred 'I_r) (h : pattern -> R) (D : pattern) : R := fresh_mean E (fun B => h (mixed A D B)).

(* By how much more h is where j is right. *)
Definition gain (j : 'I_r) (h : pattern -> R) (C : pattern) : R := h (put j true C) - h (put j false C).

(* Revealing one more position. *)
Lemma revealed_step (A A' : pred 'I_r) j h (D : pattern) : ~~ A j -> (forall i, A' i = (i == j) || A i) ->
  revealed A' h D - revealed A h D = (if D j then 1 else - E) / (1 + E) * revealed A (gain j h) D.
Proof.
move=> /negbTE Aj A'_A; rewrite /revealed (fresh_mean_at j (fun B => h (mixed A D B))) /fresh_mean -sumrB big_distrr /=.
apply: eq_bigr => B _; rewrite -mulrBr [RHS]mulrCA; congr (_ * _).
have put_in x : mixed A D (put j x B) = put j x (mixed A D B).
  by apply/ffunP => i; rewrite !ffunE; case: eqP => // ->; rewrite Aj.
have -> : mixed A' D B = put j (D j) (mixed A D B).
  by apply/ffunP => i; rewrite !ffunE A'_A; case: eqP => // ->.
rewrite !put_in /gain mulrAC; apply: (canRL (mulfK E1_neq0)); rewrite mulrBl divfK //.
case: (D j); set h1 := h (put j true _); set h0 := h (put j false _); rewrite mulrDr mulr1 opprD addrA.
  by rewrite mul1r [h1 * E]mulrC addrK.
by rewrite addrAC [h0 + _]addrC addrK mulNr mulrBr opprB [h0 * E]mulrC.
Qed.

(* p is a law of patterns. *)
Variable p : pattern -> R.
Hypothesis p_sum : \sum_C p C = 1.

Lemma revealed_sum (A A' : pred 'I_r) j h : ~~ A j -> (forall i, A' i = (i == j) || A i) ->
  \sum_D p D * revealed A' h D - \sum_D p D * revealed A h D =
  (\sum_(D : pattern | ~~ D j) (p (put j true D) - E * p D) * revealed A (gain j h) D) / (1 + E).
Proof.
move=> Aj A'_A; rewrite -sumrB.
under eq_bigr => D _ do rewrite -mulrBr (revealed_step _ _ Aj A'_A).
rewrite (sum_at j) big_distrl /=; apply: eq_bigr => D Dj; rewrite put_at (negbTE Dj).
have -> : revealed A (gain j h) (put j true D) = revealed A (gain j h) D.
  apply: fresh_mean_eq => B; congr (gain j h _); apply/ffunP => i; rewrite !ffunE.
  by case: eqP => // ->; rewrite (negbTE Aj).
by rewrite mul1r !mulrA -!mulrDl mulrN [p D * E]mulrC [LHS]mulrAC.
Qed.

(* Positions are revealed one after the other: the mean of h under p less that under the fresh law. *)
Lemma telescope h (order : {perm 'I_r}) :
  \sum_C p C * h C - fresh_mean E h = (\sum_j \sum_(D : pattern | ~~ D j)
    (p (put j true D) - E * p D) * revealed (fun i => order i < order j)%N (gain j h) D) / (1 + E).
Proof.
pose F k := \sum_D p D * revealed (fun i => order i < k)%N h D.
have -> : \sum_C p C * h C = F r.
  apply: eq_bigr => D _; congr (_ * _); rewrite -[LHS](fresh_mean_const).
  by apply: fresh_mean_eq => B; congr h; apply/ffunP => i; rewrite ffunE ltn_ord.
have -> : fresh_mean E h = F 0%N.
  rewrite -[LHS]mul1r -p_sum big_distrl; apply: eq_bigr => D _; congr (_ * _).
  by apply: fresh_mean_eq => B; congr h; apply/ffunP => i; rewrite ffunE.
rewrite -(telescope_sumr _ (leq0n r)) big_mkord (reindex_inj (@perm_inj _ order)) /= big_distrl /=.
apply: eq_bigr => j _; apply: revealed_sum; first by rewrite ltnn.
by move=> i; rewrite ltnS leq_eqVlt (inj_eq val_inj) (inj_eq perm_inj).
Qed.

End Patterns.

(* m canaries with a coin each. What came out puts distinct canaries at r positions, and guesses for each that it took part
   or that it did not. *)
Section Coins.
Variables (m r : nat) (S : finType) (place : S -> 'I_r -> 'I_m) (guess : S -> 'I_r -> bool).
Hypothesis distinct : forall s, injective (place s).

(* Which guesses are right. *)
Definition right_ones (c : coins m) (s : S) : pattern r := [ffun j => guess s j == c (place s j)].

(* Turning over the coin of the canary at j makes a right guess on it wrong, and leaves the others. *)
Lemma right_turned_at j (c : coins m) s : right_ones c s j ->
  right_ones (turned (place s j) c) s = put j false (right_ones c s).
Proof.
rewrite ffunE => /eqP guessed; apply/ffunP => i; rewrite !ffunE (inj_eq (@distinct s)).
by case: (i =P j) => [->|//]; rewrite guessed; case: (c _).
Qed.

(* Each canary stands at one position at most. *)
Lemma one_place s (B : pred 'I_r) : \sum_i ([exists j, (place s j == i) && B j])%:R = \sum_j (B j)%:R :> R.
Proof.
transitivity (\sum_i \sum_j ((place s j == i) && B j)%:R : R).
  apply: eq_bigr => i _; case: existsP => [[j /andP[/eqP at_i Bj]]|none].
    rewrite (bigD1 j) //= at_i eqxx Bj big1 ?addr0 // => l lj.
    by rewrite -at_i (inj_eq (@distinct s)) (negbTE lj).
  by rewrite big1 // => j _; case at_i: (_ && _) => //; case: none; exists j.
rewrite exchange_big /=; apply: eq_bigr => j _.
by rewrite (bigD1 (place s j)) //= eqxx big1 ?addr0 // => i; rewrite eq_sym => /negbTE->.
Qed.

Variables (E delta : R) (M : coins m -> law R S).
Hypothesis private : private_in_every_coin E delta M.
Hypothesis E_gt0 : 0 < E.

(* The probability that C are the right ones. *)
Definition right_mass (C : pattern r) : R := average (fun c => Pr (M c) (fun s => right_ones c s == C)).

Lemma right_mean (F : pattern r -> R) :
  \sum_C right_mass C * F C = average (fun c => mean (M c) (fun s => F (right_ones c s))).
Proof.
rewrite /right_mass /average; under eq_bigr => C _ do rewrite mulrAC big_distrl /=.
rewrite -big_distrl exchange_big /=; congr (_ / _); apply: eq_bigr => c _; rewrite /mean.
under eq_bigr => C _ do rewrite Pr_mean /mean big_distrl /=.
rewrite exchange_big; apply: eq_bigr => s _ /=.
rewrite (bigD1 (right_ones c s)) //= eqxx mulr1 big1 ?addr0 // => C.
by rewrite eq_sym => /negbTE->; rewrite mulr0 mul0r.
Qed.

Lemma right_mass_total : \sum_C right_mass C = 1.
Proof.
under eq_bigr => C _ do rewrite -[right_mass C]mulr1.
rewrite (right_mean (fun=> 1)) -[RHS](@average_const R m 1) /average; congr (_ / _); apply: eq_bigr => c _.
by rewrite /mean -big_distrl /= mass_sum mul1r.
Qed.

(* A set of pairs (j, D): the guess at j is right, or wrong, and D are the right ones of the others. *)
Variable U : 'I_r -> pred (pattern r).

Lemma one_coin i :
  average (fun c => Pr (M c) (fun s =>
    [exists j, (place s j == i) && (right_ones c s j && U j (put j false (right_ones c s)))])) <=
  E * average (fun c => Pr (M c) (fun s =>
    [exists j, (place s j == i) && (~~ right_ones c s j && U j (right_ones c s))])) + delta.
Proof.
set wrong := fun c => Pr (M c) (fun s => [exists j, (place s j == i) && (~~ right_ones c s j && _)]).
rewrite -(average_turned i wrong) -[X in _ <= _ + X](@average_const R m) /average mulrA big_distrr /= -mulrDl -big_split /=.
apply: average_le => c; apply: le_trans (private c i _) _; rewrite ler_add2r ler_pmul2l //.
apply: Pr_sub => s /existsP[j /andP[/eqP at_i /andP[is_right u]]]; apply/existsP; exists j.
by rewrite -at_i eqxx right_turned_at //= put_at.
Qed.

Lemma sum_average (B : 'I_m -> coins m -> pred S) :
  \sum_i average (fun c => Pr (M c) (B i c)) = average (fun c => mean (M c) (fun s => \sum_i (B i c s)%:R)).
Proof.
rewrite /average -big_distrl exchange_big /=; congr (_ / _); apply: eq_bigr => c _.
under eq_bigr => i _ do rewrite Pr_mean /mean.
by rewrite exchange_big /mean; apply: eq_bigr => s _; rewrite big_distrr.
Qed.

Lemma over_places (B : 'I_r -> pred (pattern r)) :
  \sum_i average (fun c => Pr (M c) (fun s => [exists j, (place s j == i) && B j (right_ones c s)])) =
  \sum_j \sum_(C | B j C) right_mass C.
Proof.
transitivity (\sum_C right_mass C * \sum_j (B j C)%:R); last first.
  under eq_bigr => C _ do rewrite big_distrr /=.
  rewrite exchange_big; apply: eq_bigr => j _; rewrite [RHS]big_mkcond; apply: eq_bigr => C _.
  by case: (B j C); rewrite ?mulr1 ?mulr0.
rewrite sum_average right_mean /average; congr (_ / _); apply: eq_bigr => c _; apply: eq_bigr => s _.
by rewrite one_place.
Qed.

Lemma all_coins :
  \sum_j \sum_(D : pattern r | ~~ D j && U j D) (right_mass (put j true D) - E * right_mass D) <= m%:R * delta.
Proof.
have -> : m%:R * delta = \sum_(i < m) delta by rewrite sumr_const card_ord mulr_natl.
under eq_bigr => j _ do rewrite sumrB -big_distrr /=.
rewrite sumrB -big_distrr /= ler_subl_addr addrC -(over_places (fun j C => ~~ C j && U j C)).
have -> : \sum_j \sum_(D : pattern r | ~~ D j && U j D) right_mass (put j true D) =
    \sum_j \sum_(C : pattern r | C j && U j (put j false C)) right_mass C.
  apply: eq_bigr => j _; rewrite [RHS]big_mkcond [RHS](sum_at j) [LHS]big_mkcondr /=; apply: eq_bigr => D Dj.
  have -> : put j false (put j true D) = D by rewrite put_put -[RHS](put_same j D) (negbTE Dj).
  by rewrite put_at (negbTE Dj) addr0.
rewrite -(over_places (fun j C => C j && U j (put j false C))) big_distrr -big_split /=.
by apply: ler_sum => i _; apply: one_coin.
Qed.

End Coins.

(* What weighs: position j has the declared weight [w j]. *)
Definition weight_of r (w : 'I_r -> nat) (C : pattern r) : nat := (\sum_j w j * C j)%N.

(* The tail of the weight of right guesses, each right with probability E/(1 + E) independently. *)
Definition weighted_beta r (E : R) (w : 'I_r -> nat) (v : nat) : R := fresh_mean E (fun B => (v <= weight_of w B)%N%:R).

(* It depends on the guess at j whether the weight of v is reached. *)
Definition decides r (w : 'I_r -> nat) (v : nat) (j : 'I_r) (C : pattern r) : bool :=
  (weight_of w (put j false C) < v <= w j + weight_of w (put j false C))%N.

Lemma gain_decides r (w : 'I_r -> nat) v j (C : pattern r) :
  gain j (fun C => (v <= weight_of w C)%N%:R) C = (decides w v j C)%:R :> R.
Proof.
rewrite /gain /decides; have -> : weight_of w (put j true C) = (w j + weight_of w (put j false C))%N.
  rewrite /weight_of (bigD1 j) //= [in RHS](bigD1 j) //= !put_at muln1 muln0 add0n; congr (_ + _)%N.
  by apply: eq_bigr => i /negbTE ij; rewrite !ffunE ij.
case: leqP => [v_others|_] /=; last by rewrite subr0.
by rewrite (leq_trans v_others) ?leq_addl ?subrr.
Qed.

(* [Q] is a law of the orders in which the positions are revealed, such as that of independent times. Where the positions
   before j are as in D and the others fresh, the guess at j decides with probability kappa at most. *)
Definition decided_at_most r (w : 'I_r -> nat) (v : nat) (E : R) (Z : finType) (Q : law R Z) (order : Z -> {perm 'I_r})
    (kappa : R) :=
  forall j (D : pattern r), mean Q (fun z => fresh_mean E (fun B =>
    (decides w v j (mixed (fun i => order z i < order z j)%N D B))%:R)) <= kappa.

(* The bound of the probability that right guesses weigh v, from that of independent ones, and what delta costs. *)
Definition weighted_p_value (m : nat) (independent E delta kappa : R) : R :=
  independent + m%:R * delta * (1 + E)^-1 * kappa.

(* Equation (5). *)
Theorem weighted_guesses (m r v : nat) (S : finType) (place : S -> 'I_r -> 'I_m) (guess : S -> 'I_r -> bool)
    (w : 'I_r -> nat) (Z : finType) (Q : law R Z) (order : Z -> {perm 'I_r}) (E delta kappa : R) (M : coins m -> law R S) :
  (forall s, injective (place s)) -> 0 < E -> private_in_every_coin E delta M ->
  0 <= kappa -> decided_at_most w v E Q order kappa ->
  average (fun c => Pr (M c) (fun s => v <= weight_of w (right_ones place guess c s))%N) <=
  weighted_p_value m (weighted_beta E w v) E delta kappa.
Proof.
move=> distinct E_gt0 private kappa_ge0 kappa_most.
pose h C : R := (v <= weight_of w C)%N%:R.
pose p := right_mass place guess M.
pose D_p j D := p (put j true D) - E * p D.
have p_sum : \sum_C p C = 1 by apply: right_mass_total.
have -> : average (fun c => Pr (M c) (fun s => v <= weight_of w (right_ones place guess c s))%N) = \sum_C p C * h C.
  rewrite right_mean /average; congr (_ / _); apply: eq_bigr => c _.
  by rewrite Pr_mean.
rewrite -ler_subl_addl.
(* The mean over all orders. *)
have -> : \sum_C p C * h C - weighted_beta E w v = (\sum_j \sum_(D : pattern r | ~~ D j) D_p j D *
    mean Q (fun z => revealed E (fun i => order z i < order z j)%N (gain j h) D)) / (1 + E).
  rewrite -[LHS]mul1r -{1}(mass_sum Q) big_distrl /=.
  under eq_bigr => z _ do rewrite (telescope E_gt0 p_sum h (order z)) mulrA big_distrr /=.
  rewrite -big_distrl exchange_big /=; congr (_ / _); apply: eq_bigr => j _.
  under eq_bigr => z _ do rewrite big_distrr /=.
  rewrite exchange_big; apply: eq_bigr => D _; rewrite /mean big_distrr; apply: eq_bigr => z _.
  by rewrite mulrCA.
rewrite [leRHS]mulrAC; apply: ler_wpmul2r; first by rewrite invr_ge0 ltW // E1_gt0.
apply: (@le_trans _ _ (kappa * \sum_j \sum_(D : pattern r | ~~ D j && (0 < D_p j D)) D_p j D)); last first.
  rewrite [leRHS]mulrC; apply: ler_wpmul2l => //.
  exact: (all_coins _ distinct private E_gt0).
rewrite big_distrr; apply: ler_sum => j _ /=; rewrite big_distrr [leRHS]big_mkcondr; apply: ler_sum => D _ /=.
have decided : mean Q (fun z => revealed E (fun i => order z i < order z j)%N (gain j h) D) =
    mean Q (fun z => fresh_mean E (fun B => (decides w v j (mixed (fun i => order z i < order z j)%N D B))%:R)).
  by apply: eq_bigr => z _; congr (_ * _); apply: fresh_mean_eq => B; apply: gain_decides.
rewrite decided mulrC; case: ltrP => [positive|negative]; first by rewrite ler_wpmul2r // ltW.
rewrite mulr_ge0_le0 //; apply: sumr_ge0 => z _; apply: mulr_ge0; first exact: mass_ge0.
by apply: sumr_ge0 => B _; rewrite mulr_ge0 ?ler0n // fresh_ge0.
Qed.

End Weighted.
