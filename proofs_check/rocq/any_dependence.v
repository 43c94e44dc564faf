(* What holds whatever the scores' dependence, with an exact null, and what a state that the run shows costs:
   lower_bounds.md, section 6a, Theorems M and S.

   Code: largest_score in verify/audit/bounds/any_dependence.py. *)

From mathcomp Require Import all_ssreflect all_algebra.
From canaryproof Require Import probability private_pair.
Import Order.Theory GRing.Theory Num.Theory.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Local Open Scope ring_scope.

Section AnyDependence.
Variable R : realFieldType.

(* Markov's inequality for a count of events, however they depend on each other. *)
Lemma markov_count (X : finType) (P : law R X) k (A : 'I_k -> pred X) (n : nat) (a : R) : (0 < n)%N ->
  (forall i, Pr P (A i) <= a) -> Pr P (fun x => n <= \sum_(i < k) A i x)%N <= k%:R * a / n%:R.
Proof.
move=> n_gt0 small; rewrite ler_pdivl_mulr ?ltr0n //.
apply: (@le_trans _ _ (\sum_(i < k) Pr P (A i))); last first.
  by apply: le_trans (ler_sum _ (fun i _ => small i)) _; rewrite sumr_const card_ord mulr_natl.
under [leRHS]eq_bigr => i _ do rewrite Pr_mean /mean.
rewrite exchange_big Pr_mean /mean big_distrl /=; apply: ler_sum => x _.
rewrite -mulrA -big_distrr /=; apply: ler_wpmul2l; first exact: mass_ge0.
rewrite -natr_sum -natrM ler_nat; case: (n <= _)%N / idP => [n_le|_]; by rewrite ?mul1n ?mul0n.
Qed.

Section Release.
Variables (X : finType) (k : nat).
(* [M] is the law of directions and release with all canaries, [without i] the one in which canary i is left out. *)
Variables (M : law R X) (without : 'I_k -> law R X) (E delta : R).
Hypothesis E_gt0 : 0 < E.
Hypothesis private_M : forall i, private E delta M (without i).

(* Theorem M. *)
Theorem number_of_hits (hit : 'I_k -> pred X) (u : R) (n : nat) : (0 < n)%N ->
  (forall i, Pr (without i) (hit i) <= u) ->
  Pr M (fun x => n <= \sum_(i < k) hit i x)%N <= k%:R * (E * u + delta) / n%:R.
Proof.
move=> n_gt0 null; apply: markov_count => // i; have [hits _] := private_M i (hit i).
by apply: le_trans hits _; rewrite ler_add2r ler_pmul2l // null.
Qed.

(* [tail i] is the null's tail at canary i's score: without the canary it is at most c with probability at most c. The
   bound log((n alpha/k - delta)/u), u the n-th smallest tail, is above log E if n of the tails are below the c with
   E c + delta = n alpha/k. *)
Theorem largest_score (tail : 'I_k -> X -> R) (alpha : R) (n : nat) : (0 < n)%N -> (0 < k)%N ->
  (forall i x, 0 <= tail i x) -> (forall i c, 0 <= c -> Pr (without i) (fun x => tail i x < c) <= c) -> 0 <= alpha ->
  Pr M (fun x => n <= \sum_(i < k) (E * tail i x < n%:R * alpha / k%:R - delta)%R)%N <= alpha.
Proof.
move=> n_gt0 k_gt0 tail_ge0 null alpha_ge0.
set level := n%:R * alpha / k%:R - delta.
have below i x : (E * tail i x < level) = (tail i x < level / E) by rewrite ltr_pdivl_mulr // mulrC.
rewrite (Pr_eq _ (B := fun x => n <= \sum_(i < k) (tail i x < level / E)%R)%N); last first.
  by move=> x; congr (n <= _)%N; apply: eq_bigr => i _; rewrite below.
case: (lerP 0 level) => [level_ge0|level_lt0]; last first.
  have none i x : (tail i x < level / E) = false.
    apply/negbTE; rewrite -leNgt; apply: le_trans (tail_ge0 i x).
    by rewrite pmulr_lle0 ?invr_gt0 // ltW.
  rewrite /Pr big_pred0 // => x; apply/negbTE; rewrite -ltnNge.
  by rewrite big1 // => i _; rewrite none.
have u_ge0 : 0 <= level / E by rewrite divr_ge0 // ltW.
apply: le_trans (number_of_hits n_gt0 (fun i => null i _ u_ge0)) _.
have E_u : E * (level / E) = level by rewrite mulrCA divff ?mulr1 // gt_eqF.
have all_k : k%:R * (n%:R * alpha / k%:R) = n%:R * alpha.
  by rewrite mulrCA divff ?mulr1 // pnatr_eq0 -lt0n.
by rewrite E_u /level subrK all_k mulrAC divff ?mul1r // pnatr_eq0 -lt0n.
Qed.

End Release.
(* Theorem S. The run draws z once, independently of who takes part, and shows it. [P z] and [Q z] are the laws of the rest
   with a canary and without. *)
Section Shown.
Variables (Z X : finType) (w : law R Z).

Definition shown_mass (P : Z -> law R X) (zx : Z * X) : R := w zx.1 * P zx.1 zx.2.

Lemma shown_ge0 P zx : 0 <= shown_mass P zx.
Proof. by rewrite mulr_ge0 ?mass_ge0. Qed.

Lemma shown_mean P (A : Z -> pred X) : \sum_(zx | A zx.1 zx.2) shown_mass P zx = mean w (fun z => Pr (P z) (A z)).
Proof.
rewrite -(pair_big_dep predT (fun z x => A z x) (fun z x => w z * P z x)) /=.
by apply: eq_bigr => z _; rewrite /Pr big_distrr.
Qed.

Lemma shown_sum P : \sum_zx shown_mass P zx = 1.
Proof.
rewrite (shown_mean P (fun _ _ => true)) -(mass_sum w); apply: eq_bigr => z _.
by rewrite Pr_all mulr1.
Qed.

Definition shown P := Law (shown_ge0 P) (shown_sum P).

(* What a state costs at this E, by the event on which it costs most. *)
Definition costliest (E : R) (P Q : law R X) : pred X := fun x => E * Q x < P x.
Definition cost (E : R) (P Q : law R X) : R := Pr P (costliest E P Q) - E * Pr Q (costliest E P Q).

Lemma cost_most E P Q (A : pred X) : Pr P A - E * Pr Q A <= cost E P Q.
Proof.
have whole (B : pred X) : Pr P B - E * Pr Q B = \sum_(x | B x) (P x - E * Q x) by rewrite sumrB -big_distrr.
rewrite /cost !whole big_mkcond [leRHS]big_mkcond; apply: ler_sum => x _; rewrite /costliest -subr_gt0.
case: (A x); case: ltrP => //; exact: ltW.
Qed.

Lemma cost_ge0 E P Q : 0 <= cost E P Q.
Proof. by apply: le_trans (cost_most E P Q pred0); rewrite /Pr !big_pred0 // mulr0 subr0. Qed.

(* Markov's inequality: a state that costs more than delta is rare. *)
Lemma rare_states E gamma delta P Q : 0 < delta ->
  (forall A, Pr (shown P) A <= E * Pr (shown Q) A + gamma * delta) ->
  Pr w (fun z => delta < cost E (P z) (Q z)) <= gamma.
Proof.
move=> delta_gt0 private_PQ; rewrite -(ler_pmul2r delta_gt0).
have total : mean w (fun z => cost E (P z) (Q z)) <= gamma * delta.
  have := private_PQ (fun zx => costliest E (P zx.1) (Q zx.1) zx.2).
  rewrite /Pr !(shown_mean _ (fun z => costliest E (P z) (Q z))) -ler_subl_addl; apply: le_trans.
  rewrite /mean big_distrr -sumrB /=; apply: ler_sum => z _.
  by rewrite /cost mulrBr [E * (_ * _)]mulrCA.
apply: le_trans total; rewrite /Pr /mean big_distrl big_mkcond /=; apply: ler_sum => z _.
case: ltrP => [costs|_]; last by rewrite mulr_ge0 ?mass_ge0 ?cost_ge0.
by apply: ler_wpmul2l; rewrite ?mass_ge0 // ltW.
Qed.

(* A test that has level alpha given each state that is (E, delta)-private has level alpha + 2 gamma where the whole
   mechanism is (E, gamma delta)-private. *)
Theorem shown_state (T : finType) (observed : Z -> law R T) (rejects : Z -> pred T) (P Q : Z -> law R X)
    (E gamma delta alpha : R) : 0 < delta -> 0 <= alpha -> private E (gamma * delta) (shown P) (shown Q) ->
  (forall z, private E delta (P z) (Q z) -> Pr (observed z) (rejects z) <= alpha) ->
  mean w (fun z => Pr (observed z) (rejects z)) <= alpha + (gamma + gamma).
Proof.
move=> delta_gt0 alpha_ge0 private_PQ level.
pose dear z := (delta < cost E (P z) (Q z)) || (delta < cost E (Q z) (P z)).
have dear_rare : Pr w dear <= gamma + gamma.
  apply: le_trans (Pr_or w _ _) _; apply: ler_add; apply: rare_states => // A; have [] := private_PQ A; by [].
apply: (@le_trans _ _ (mean w (fun z => (dear z)%:R + alpha))); last first.
  by rewrite mean_shift -Pr_mean addrC ler_add2l.
apply: mean_le => z; case z_dear: (dear z); first by rewrite ler_paddr ?Pr_le1.
rewrite add0r; apply: level => A; move/negbT: z_dear; rewrite negb_or -!leNgt => /andP[PQ QP].
by split; rewrite -ler_subl_addl; [apply: le_trans PQ | apply: le_trans QP]; apply: cost_most.
Qed.

End Shown.
End AnyDependence.
