(* What (epsilon, delta)-privacy makes of a canary: it is shown, or is on one of two sides. lower_bounds.md, section 3a.

   Code: rates_of_labels in verify/audit/bounds/guesses.py.

   [E] stands for e^epsilon, which is at least 1. A label is true for a canary that took part (an observed one), and a
   side is true for the high side. *)

From mathcomp Require Import all_ssreflect all_algebra.
From canaryproof Require Import probability private_pair.
Import Order.Theory GRing.Theory Num.Theory.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Local Open Scope ring_scope.

Section Sides.
Variables (R : realFieldType) (S : finType).

(* Given that a canary is not shown, it is on the side of its label with probability E/(1 + E). *)
Definition rate (E : R) (label side : bool) : R := if label == side then E / (1 + E) else 1 / (1 + E).

(* Of two functions whose ratio is within the factor E, the one with the larger sum can be lowered. Then both have the
   same sum, and their ratio is still within E. *)
Lemma level (E : R) (p q : S -> R) : 1 <= E -> (forall z, 0 <= q z) -> (forall z, p z <= E * q z) ->
  (forall z, q z <= E * p z) -> \sum_z q z <= \sum_z p z ->
  exists p', (forall z, 0 <= p' z <= p z) /\ (forall z, p' z <= E * q z) /\ (forall z, q z <= E * p' z) /\
    \sum_z p' z = \sum_z q z.
Proof.
move=> E_ge1 q_ge0 p_q q_p v_u; set u := \sum_z p z; set v := \sum_z q z in v_u *.
have E_gt0 : 0 < E := lt_le_trans ltr01 E_ge1.
have v_ge0 : 0 <= v by apply: sumr_ge0.
have low_p z : q z / E <= p z by rewrite ler_pdivr_mulr // mulrC.
have low_v : v / E <= v by rewrite ler_pdivr_mulr // ler_pemulr.
pose t := (u - v) / (u - v / E); have low_u : v / E <= u := le_trans low_v v_u.
have t_ge0 : 0 <= t by rewrite divr_ge0 ?subr_ge0.
have t_le1 : t <= 1.
  have := low_u; rewrite le_eqVlt => /orP[/eqP equal|less]; first by rewrite /t equal subrr invr0 mulr0 ler01.
  by rewrite ler_pdivr_mulr ?subr_gt0 // mul1r ler_add2l ler_opp2.
have p'_p z : p z - t * (p z - q z / E) <= p z by rewrite ger_addl oppr_le0 mulr_ge0 // subr_ge0.
have low_p' z : q z / E <= p z - t * (p z - q z / E).
  by rewrite ler_subr_addl -ler_subr_addr ler_pimull // subr_ge0.
exists (fun z => p z - t * (p z - q z / E)); split; [|split; [|split]] => [z|z|z|].
- by rewrite p'_p andbT (le_trans _ (low_p' z)) // divr_ge0 // ltW.
- exact: le_trans (p'_p z) (p_q z).
- by rewrite -ler_pdivr_mull // mulrC.
- rewrite sumrB -big_distrr /= sumrB -big_distrl /= -/u -/v.
  case: (eqVneq (u - v / E) 0) => [equal|differ]; last by rewrite /t divfK // opprB addrCA subrr addr0.
  rewrite equal mulr0 subr0; apply: le_anti; rewrite v_u andbT; move/eqP: equal; rewrite subr_eq0 => /eqP->.
  by rewrite low_v.
Qed.

(* What P has above E Q is delta at most. *)
Lemma excess (E delta : R) (P Q : law R S) : private E delta P Q -> 1 - delta <= \sum_z Num.min (P z) (E * Q z).
Proof.
move=> PQ; pose A := [pred z | E * Q z < P z]; have [large _] := PQ A.
rewrite ler_subl_addr -(mass_sum P) (bigID A) [in X in _ <= X](bigID A) /= addrAC ler_add //.
  by rewrite [X in _ <= X + _](eq_bigr (fun z => E * Q z)) -?big_distrr //= => z A_z; exact/min_idPr/ltW.
by apply: ler_sum => z; rewrite -leNgt => /min_idPl->.
Qed.

(* P and Q have parts of mass 1 - delta whose ratio is within E. *)
Lemma common (E delta : R) (P Q : law R S) : 1 <= E -> 0 <= delta <= 1 -> private E delta P Q ->
  exists p q : S -> R, [/\ forall z, 0 <= p z <= P z, forall z, 0 <= q z <= Q z,
    forall z, p z <= E * q z, forall z, q z <= E * p z & \sum_z p z = 1 - delta /\ \sum_z q z = 1 - delta].
Proof.
move=> E_ge1 /andP[delta_ge0 delta_le1] PQ; have E_gt0 : 0 < E := lt_le_trans ltr01 E_ge1.
have E_ge0 := ltW E_gt0.
pose p z := Num.min (P z) (E * Q z); pose q z := Num.min (Q z) (E * P z).
have p_ge0 z : 0 <= p z by rewrite le_minr mulr_ge0 ?mass_ge0.
have q_ge0 z : 0 <= q z by rewrite le_minr mulr_ge0 ?mass_ge0.
have grow x : 0 <= x -> x <= E * (E * x) by move=> x_ge0; rewrite mulrA ler_pemull // mulr_ege1.
have p_q z : p z <= E * q z.
  by rewrite /p /q minr_pmulr // le_minr !le_minl lexx orbT /= grow ?mass_ge0.
have q_p z : q z <= E * p z.
  by rewrite /p /q minr_pmulr // le_minr !le_minl lexx orbT /= grow ?mass_ge0.
have p_P z : p z <= P z by rewrite le_minl lexx.
have q_Q z : q z <= Q z by rewrite le_minl lexx.
have p_sum : 1 - delta <= \sum_z p z := excess PQ.
have q_sum : 1 - delta <= \sum_z q z by apply: (@excess E delta Q P) => A; have [] := PQ A.
(* Both sums become equal, and then 1 - delta. *)
suff [p' [q' [p'_ok q'_ok p'_q' q'_p' [equal large]]]] : exists p' q' : S -> R,
    [/\ forall z, 0 <= p' z <= P z, forall z, 0 <= q' z <= Q z, forall z, p' z <= E * q' z,
      forall z, q' z <= E * p' z & \sum_z p' z = \sum_z q' z /\ 1 - delta <= \sum_z q' z].
  pose a := (1 - delta) / (\sum_z q' z).
  have v_ge0 : 0 <= \sum_z q' z by apply: sumr_ge0 => z _; case/andP: (q'_ok z).
  have a_ge0 : 0 <= a by rewrite divr_ge0 // subr_ge0.
  have a_sum : a * (\sum_z q' z) = 1 - delta.
    case: (eqVneq (\sum_z q' z) 0) => [zero|positive]; last by rewrite divfK.
    by apply: le_anti; rewrite zero mulr0 subr_ge0 delta_le1 -[X in _ <= X]zero.
  have a_le1 : a <= 1.
    move: v_ge0; rewrite le_eqVlt => /orP[/eqP zero|positive]; first by rewrite /a -zero invr0 mulr0 ler01.
    by rewrite ler_pdivr_mulr // mul1r.
  exists (fun z => a * p' z), (fun z => a * q' z); split=> [z|z|z|z|].
  - by have /andP[ge0 le] := p'_ok z; rewrite mulr_ge0 //= (le_trans _ le) // ler_pimull.
  - by have /andP[ge0 le] := q'_ok z; rewrite mulr_ge0 //= (le_trans _ le) // ler_pimull.
  - by rewrite mulrCA ler_wpmul2l.
  - by rewrite mulrCA ler_wpmul2l.
  - by rewrite -!big_distrr /= equal.
case: (lerP (\sum_z q z) (\sum_z p z)) => [v_u|/ltW u_v].
  have [p' [p'_p [p'_q [q_p' equal]]]] := level E_ge1 q_ge0 p_q q_p v_u.
  exists p', q; split=> // z; last by rewrite q_ge0 q_Q.
  by have /andP[-> le] := p'_p z; apply: le_trans le _.
have [q' [q'_q [q'_p [p_q' equal]]]] := level E_ge1 p_ge0 q_p p_q u_v.
exists p, q'; split=> //; [move=> z|move=> z|by rewrite equal]; first by rewrite p_ge0 p_P.
by have /andP[-> le] := q'_q z; apply: le_trans le _.
Qed.

(* What is not negative is a multiple of a law. *)
Lemma scaled (L : law R S) (f : S -> R) (a : R) : 0 <= a -> (forall z, 0 <= f z) -> \sum_z f z = a ->
  exists M : law R S, forall z, f z = a * M z.
Proof.
move=> a_ge0 f_ge0 f_sum; case: (eqVneq a 0) => [zero|not_zero].
  exists L => z; rewrite zero mul0r; move: f_sum; rewrite zero => f_sum.
  by apply: (psumr_eq0P _ f_sum) => // y _.
have ge0 z : 0 <= f z / a by rewrite divr_ge0.
have sum1 : \sum_z f z / a = 1 by rewrite -big_distrl /= f_sum divff.
by exists (Law ge0 sum1) => z; rewrite /= mulrC divfK.
Qed.

Lemma mixed (E x y : R) : 1 < E -> E / (1 + E) * ((E * x - y) / (E - 1)) + 1 / (1 + E) * ((E * y - x) / (E - 1)) = x.
Proof.
move=> E_gt1; have E1 : 1 + E != 0 by rewrite gt_eqF // addr_gt0 ?ltr01 // (lt_trans ltr01).
have E_1 : E - 1 != 0 by rewrite subr_eq0 gt_eqF.
rewrite !mulf_div -mulrDl; apply: canLR (mulfK _) _; first by rewrite mulf_neq0.
by rewrite mul1r mulrBr addrA subrK [1 + E]addrC [(E + 1) * _]mulrC -subr_sqr_1 mulrBr mulr1 [x * _]mulrC expr2 mulrA.
Qed.

(* With probability delta a canary is shown: its score has a law that depends on its label. Otherwise it is on a side,
   and on it the score has a law that does not depend on the label. *)
Theorem shown_or_on_a_side (E delta : R) (P Q : law R S) : 1 <= E -> 0 <= delta <= 1 -> private E delta P Q ->
  exists shown side : bool -> law R S, forall label z,
    (if label then P else Q) z = delta * shown label z + (1 - delta) * \sum_c rate E label c * side c z.
Proof.
move=> E_ge1 delta_ok PQ; have [p [q [p_ok q_ok p_q q_p [p_sum q_sum]]]] := common E_ge1 delta_ok PQ.
case/andP: delta_ok => delta_ge0 delta_le1.
have rest_ge0 : 0 <= 1 - delta by rewrite subr_ge0.
have [shown_P shown_PE] : exists M : law R S, forall z, P z - p z = delta * M z.
  apply: (scaled P) => // [z|]; first by rewrite subr_ge0; case/andP: (p_ok z).
  by rewrite sumrB mass_sum p_sum opprB addrCA subrr addr0.
have [shown_Q shown_QE] : exists M : law R S, forall z, Q z - q z = delta * M z.
  apply: (scaled P) => // [z|]; first by rewrite subr_ge0; case/andP: (q_ok z).
  by rewrite sumrB mass_sum q_sum opprB addrCA subrr addr0.
have [high [low [high_low_p high_low_q]]] : exists high low : law R S,
   (forall z, p z = (1 - delta) * (rate E true true * high z + rate E true false * low z)) /\
   (forall z, q z = (1 - delta) * (rate E false true * high z + rate E false false * low z)).
  move: E_ge1; rewrite le_eqVlt => /orP[/eqP E_1|E_gt1].
    have [L LE] := scaled P rest_ge0 (fun z => proj1 (andP (p_ok z))) p_sum.
    have half : 1 / (1 + 1) + 1 / (1 + 1) = 1 :> R by rewrite -mulrDl divff // -(natrD _ 1 1) pnatr_eq0.
    exists L, L; rewrite /rate /= -E_1; split=> z; rewrite -mulrDl half mul1r -LE //.
    by apply: le_anti; have := p_q z; have := q_p z; rewrite -E_1 !mul1r => -> ->.
  have E_1 : 0 < E - 1 by rewrite subr_gt0.
  have sum_ok : (E * (1 - delta) - (1 - delta)) / (E - 1) = 1 - delta.
    by rewrite -{2}[1 - delta]mul1r -mulrBl mulrC mulKf // gt_eqF.
  have [high highE] : exists M : law R S, forall z, (E * p z - q z) / (E - 1) = (1 - delta) * M z.
    apply: (scaled P) => // [z|]; first by rewrite divr_ge0 ?subr_ge0 // ltW.
    by rewrite -big_distrl /= sumrB -big_distrr /= p_sum q_sum.
  have [low lowE] : exists M : law R S, forall z, (E * q z - p z) / (E - 1) = (1 - delta) * M z.
    apply: (scaled P) => // [z|]; first by rewrite divr_ge0 ?subr_ge0 // ltW.
    by rewrite -big_distrl /= sumrB -big_distrr /= p_sum q_sum.
  exists high, low; rewrite /rate /=; split=> z; rewrite mulrDr 2!(mulrCA (1 - delta)) -highE -lowE.
    by rewrite mixed.
  by rewrite addrC mixed.
exists (fun b => if b then shown_P else shown_Q), (fun c => if c then high else low) => -[] z; rewrite big_bool /=.
  by rewrite -shown_PE -high_low_p subrK.
by rewrite -shown_QE -high_low_q subrK.
Qed.
End Sides.

Section Rates.
Variable R : realFieldType.

Lemma rate_ge0 (E : R) b c : 1 <= E -> 0 <= rate E b c.
Proof.
move=> E_ge1; have E_ge0 := le_trans ler01 E_ge1.
by rewrite /rate; case: ifP => _; rewrite divr_ge0 ?addr_ge0 ?ler01.
Qed.

Lemma rate_right (E : R) : 1 <= E -> rate E true false * rate E false true <= rate E true true * rate E false false.
Proof.
move=> E_ge1; have E_gt0 : 0 < E := lt_le_trans ltr01 E_ge1; rewrite /rate /= !mulf_div mul1r.
by rewrite ler_pmul2r ?mulr_ege1 ?invr_gt0 ?mulr_gt0 ?addr_gt0 ?ltr01.
Qed.

Lemma rate_rest (E : R) b : 1 <= E -> rate E b false = 1 - rate E b true.
Proof.
move=> E_ge1; have E1 : 1 + E != 0 by rewrite gt_eqF // addr_gt0 ?ltr01 // (lt_le_trans ltr01).
by apply/eqP; rewrite eq_sym subr_eq /rate; case: b; rewrite /= -mulrDl ?[E + 1]addrC divff.
Qed.

End Rates.
