(* The constants of the distance between the cosine's law and the normal one: proofs_check/normal_distance.py, step 4.

   Code: analytic_range, KOLMOGOROV and TOTAL_VARIATION in proofs_check/normal_distance.py.

   The steps before it, and the dimensions below 450, are judged there by other means. *)

From Coq Require Import Reals Lra.
From Interval Require Import Tactic.
Local Open Scope R_scope.

(* phi He_3/4: the standard normal density times Hermite's polynomial of degree 3, over 4. *)
Definition wave (t : R) : R := exp (- (t * t) / 2) / sqrt (2 * PI) * (t * t * t - 3 * t) / 4.

(* The largest values of its two signs, below and above the square root of 3, rounded up. *)
Definition most_below : R := 13765 / 100000.
Definition most_above : R := 3740 / 100000.

Lemma wave_below t : 0 <= t <= sqrt 3 -> - wave t <= most_below.
Proof.
intros range; assert (0 <= t <= 1733 / 1000)
  by (split; [lra | apply (Rle_trans _ (sqrt 3)); [lra | interval with (i_prec 60)]]).
unfold wave, most_below; interval with (i_bisect t, i_autodiff t, i_prec 60).
Qed.

Lemma wave_above t : 0 <= t <= 12 -> wave t <= most_above.
Proof.
intros range.
unfold wave, most_above; interval with (i_bisect t, i_autodiff t, i_prec 60).
Qed.

(* Farther out e^-y <= 27/y^3 is enough, with y = t^2/2. *)
Lemma wave_far t : 12 <= t -> wave t <= most_above.
Proof.
intros far.
assert (y_gt0 : 0 < t * t / 2) by nra.
assert (cube : t * t / 2 / 3 * (t * t / 2 / 3) * (t * t / 2 / 3) <= exp (t * t / 2)).
  replace (exp (t * t / 2)) with (exp (t * t / 2 / 3) * exp (t * t / 2 / 3) * exp (t * t / 2 / 3))
    by (rewrite <- !exp_plus; f_equal; field).
  assert (third : 0 <= t * t / 2 / 3 <= exp (t * t / 2 / 3)).
    split; [lra | apply Rlt_le; apply (Rlt_trans _ (1 + t * t / 2 / 3)); [lra | apply exp_ineq1; lra]].
  apply Rmult_le_compat; [nra | lra | | lra].
  apply Rmult_le_compat; lra.
assert (small : exp (- (t * t) / 2) <= 216 / (t * t * t * t * t * t)).
  replace (- (t * t) / 2) with (- (t * t / 2)) by field; rewrite exp_Ropp.
  replace (216 / (t * t * t * t * t * t)) with (/ (t * t / 2 / 3 * (t * t / 2 / 3) * (t * t / 2 / 3))) by (field; lra).
  apply Rinv_le_contravar; [| exact cube].
  assert (0 < t * t / 2 / 3) by lra.
  apply Rmult_lt_0_compat; [apply Rmult_lt_0_compat |]; lra.
assert (root : 2 <= sqrt (2 * PI)) by interval with (i_prec 60).
unfold wave, most_above.
apply (Rle_trans _ (216 / (t * t * t * t * t * t) / 2 * (t * t * t) / 4)).
  unfold Rdiv; apply Rmult_le_compat_r; [lra |].
  apply Rmult_le_compat; [| nra | | nra].
    apply Rmult_le_pos; [apply Rlt_le, exp_pos | apply Rlt_le, Rinv_0_lt_compat; lra].
  apply Rmult_le_compat; [apply Rlt_le, exp_pos | apply Rlt_le, Rinv_0_lt_compat; lra | exact small |].
  apply Rinv_le_contravar; lra.
replace (216 / (t * t * t * t * t * t) / 2 * (t * t * t) / 4) with (27 * (/ t * / t * / t)) by (field; lra).
assert (inverse : 0 < / t <= / 12) by (split; [apply Rinv_0_lt_compat | apply Rinv_le_contravar]; lra).
assert (square : 0 < / t * / t <= / 12 * / 12) by (split; [apply Rmult_lt_0_compat | apply Rmult_le_compat]; lra).
assert (/ t * / t * / t <= / 12 * / 12 * / 12) by (apply Rmult_le_compat; lra).
lra.
Qed.

(* c/2 of step 3, with u = 1/d. *)
Definition half_c (u : R) : R := 9 / 32 / (1 - 3 * u / 2).

Definition kolmogorov : R := 138 / 1000.
Definition total_variation : R := 396 / 1000.

(* t1 and t2 are where the densities cross. What step 4 shows of the distances there, times d - 1, is below the
   constants for all d from 450 on. *)
Theorem analytic_range (u t1 t2 : R) : 0 <= u <= 1 / 450 -> 0 <= t1 <= sqrt 3 -> 0 <= t2 ->
  let below := (1 - u) * (- wave t1 + u * half_c u) in
  let above := (1 - u) * (wave t2 + u * (half_c u + 5 / 2) + 192 * u * u) in
  below <= kolmogorov /\ above <= kolmogorov /\ 2 * (below + above) <= total_variation.
Proof.
intros u_small t1_small t2_ge0 below above.
assert (t1_bound : - wave t1 <= most_below) by (apply wave_below; exact t1_small).
assert (t2_bound : wave t2 <= most_above) by (destruct (Rle_lt_dec t2 12); [apply wave_above | apply wave_far]; lra).
assert (below_most : below <= (1 - u) * (most_below + u * half_c u)) by (apply Rmult_le_compat_l; lra).
assert (above_most : above <= (1 - u) * (most_above + u * (half_c u + 5 / 2) + 192 * u * u))
  by (apply Rmult_le_compat_l; lra).
assert ((1 - u) * (most_below + u * half_c u) <= kolmogorov)
  by (unfold most_below, half_c, kolmogorov; interval with (i_bisect u, i_autodiff u, i_prec 60)).
assert ((1 - u) * (most_above + u * (half_c u + 5 / 2) + 192 * u * u) <= 6 / 100)
  by (unfold most_above, half_c; interval with (i_bisect u, i_autodiff u, i_prec 60)).
unfold kolmogorov, total_variation in *; lra.
Qed.
