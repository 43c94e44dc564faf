(* Theorem 3.2 of Andrew et al. (arXiv 2302.03098): the cosine times the square root of d tends to a normal number.

   Code: _ROW_2, _NORMAL and judge_convergence in proofs_check/theorem_3_2.py, and gamma_bounds in
   proofs_check/normal_distance.py.

   The cosine is that of a fixed direction with one drawn uniformly in d dimensions. Its density is taken as given; that
   it has mass 1 is proven here, for d from 3 on. *)

From Coq Require Import Reals Lra Lia.
From Coquelicot Require Import Coquelicot.
Local Open Scope R_scope.

(* The Gamma function at n/2: its value is sqrt pi at 1/2 and 1 at 1, and Gamma(x + 1) = x Gamma(x). *)
Fixpoint half_gamma (n : nat) : R :=
  match n with
  | S (S m) => match m with O => 1 | _ => INR m / 2 * half_gamma m end
  | S O => sqrt PI
  | O => 0
  end.

Definition gamma_quotient (d : nat) : R := half_gamma d / half_gamma (d - 1).

(* The density of the cosine times sqrt d where t is at most sqrt d in size; it is 0 elsewhere. *)
Definition density (d : nat) (t : R) : R :=
  gamma_quotient d / sqrt (PI * INR d) * sqrt (1 - t * t / INR d) ^ (d - 3).

(* The standard normal density and distribution function; see normal_law below. *)
Definition normal (t : R) : R := exp (- (t * t) / 2) / sqrt (2 * PI).
Definition Phi (lambda : R) : R := 1 / 2 + RInt normal 0 lambda.

(* ---- Integrals of powers of the cosine over a quarter circle, after Wallis ---- *)

Definition cos_power (n : nat) : R := RInt (fun x => cos x ^ n) 0 (PI / 2).

Lemma continuous_cos_power n x : continuous (fun y => cos y ^ n) x.
Proof. apply (ex_derive_continuous (fun y => cos y ^ n)); auto_derive; exact I. Qed.

Lemma cos_power_is n : is_RInt (fun x => cos x ^ n) 0 (PI / 2) (cos_power n).
Proof.
apply (RInt_correct (fun x => cos x ^ n)), (ex_RInt_continuous (fun x => cos x ^ n)).
intros x _; apply continuous_cos_power.
Qed.

Lemma combined_RInt (f g : R -> R) a b k m F G : is_RInt f a b F -> is_RInt g a b G ->
  is_RInt (fun x => k * f x - m * g x) a b (k * F - m * G).
Proof.
intros f_is g_is; exact (is_RInt_minus _ _ _ _ _ _ (is_RInt_scal _ _ _ k _ f_is) (is_RInt_scal _ _ _ m _ g_is)).
Qed.

(* The difference is the integral of a derivative, of cos^(n + 1) sin, which is 0 at both ends. *)
Lemma cos_power_step n : INR (S (S n)) * cos_power (S (S n)) = INR (S n) * cos_power n.
Proof.
assert (zero : is_RInt (fun x => INR (S (S n)) * cos x ^ S (S n) - INR (S n) * cos x ^ n) 0 (PI / 2)
  (cos (PI / 2) ^ S n * sin (PI / 2) - cos 0 ^ S n * sin 0)).
  apply (is_RInt_derive (fun x => cos x ^ S n * sin x)).
    intros x _; auto_derive; [exact I |].
    assert (circle : sin x * sin x = 1 - cos x * cos x) by (generalize (sin2_cos2 x); unfold Rsqr; lra).
    change (match n with O => 1 | S _ => INR n + 1 end) with (INR (S n)).
    rewrite (S_INR (S n)), <- !tech_pow_Rmult.
    transitivity (- INR (S n) * cos x ^ n * (sin x * sin x) + cos x * cos x * cos x ^ n); [ring |].
    rewrite circle; ring.
  intros x _.
  apply (ex_derive_continuous (fun x => INR (S (S n)) * cos x ^ S (S n) - INR (S n) * cos x ^ n)).
  auto_derive; repeat split.
assert (same := is_RInt_unique _ _ _ _ zero).
rewrite (is_RInt_unique _ _ _ _ (combined_RInt _ _ _ _ _ _ _ _ (cos_power_is (S (S n))) (cos_power_is n))) in same.
rewrite sin_0, cos_PI2, pow_i in same by lia.
lra.
Qed.

Lemma cos_power_0 : cos_power 0 = PI / 2.
Proof. unfold cos_power; simpl; rewrite RInt_const; unfold scal; simpl; unfold mult; simpl; ring. Qed.

Lemma cos_power_1 : cos_power 1 = 1.
Proof.
apply is_RInt_unique; replace 1 with (minus (sin (PI / 2)) (sin 0))
  by (rewrite sin_PI2, sin_0; unfold minus, plus, opp; simpl; ring).
apply (is_RInt_derive sin (fun x => cos x ^ 1)).
  intros x _; auto_derive; [exact I | simpl; ring].
intros x _; apply continuous_cos_power.
Qed.

Lemma cos_power_falls n : cos_power (S n) <= cos_power n.
Proof.
assert (quarter := PI2_RGT_0).
apply (is_RInt_le (fun x => cos x ^ S n) (fun x => cos x ^ n) 0 (PI / 2)).
- lra.
- apply cos_power_is.
- apply cos_power_is.
- intros x range; rewrite <- tech_pow_Rmult.
  assert (cos_ge0 : 0 <= cos x) by (apply cos_ge_0; lra).
  assert (power := pow_le (cos x) n cos_ge0).
  assert (bound := COS_bound x); nra.
Qed.

(* ---- The quotient of Gammas ---- *)

Lemma half_gamma_gt0 n : 0 < half_gamma (S n).
Proof.
enough (both : 0 < half_gamma (S n) /\ 0 < half_gamma (S (S n))) by tauto.
induction n as [| n [odd even]].
  split; [apply sqrt_lt_R0, PI_RGT_0 | exact Rlt_0_1].
split; [exact even |].
change (0 < INR (S n) / 2 * half_gamma (S n)).
assert (0 < INR (S n)) by (apply lt_0_INR; lia).
apply Rmult_lt_0_compat; lra.
Qed.

(* The quotient at d = m + 2. Neighbours have the product (d - 1)/2, and Wallis' integrals show that it rises with d. *)
Local Notation quotient m := (gamma_quotient (S (S m))).

Lemma quotient_gt0 m : 0 < quotient m.
Proof. exact (Rdiv_lt_0_compat _ _ (half_gamma_gt0 (S m)) (half_gamma_gt0 m)). Qed.

Lemma quotient_product m : quotient m * quotient (S m) = INR (S m) / 2.
Proof.
change (half_gamma (S (S m)) / half_gamma (S m) * (INR (S m) / 2 * half_gamma (S m) / half_gamma (S (S m)))
  = INR (S m) / 2).
assert (0 < half_gamma (S m)) by apply half_gamma_gt0.
assert (0 < half_gamma (S (S m))) by apply half_gamma_gt0.
field; split; lra.
Qed.

Lemma quotient_wallis m : quotient m * (2 * cos_power m) = sqrt PI.
Proof.
assert (root_gt0 : 0 < sqrt PI) by apply sqrt_lt_R0, PI_RGT_0.
enough (both : quotient m * (2 * cos_power m) = sqrt PI /\ quotient (S m) * (2 * cos_power (S m)) = sqrt PI) by tauto.
induction m as [| m [before at_m]].
  change (gamma_quotient 2) with (1 / sqrt PI); change (gamma_quotient 3) with (1 / 2 * sqrt PI / 1).
  rewrite cos_power_0, cos_power_1.
  replace (2 * (PI / 2)) with (sqrt PI * sqrt PI) by (rewrite sqrt_sqrt; [field | apply Rlt_le, PI_RGT_0]).
  split; field; lra.
split; [exact at_m |].
assert (0 < INR (S (S m))) by (apply lt_0_INR; lia).
assert (positive := quotient_gt0 (S m)).
rewrite <- before.
apply (Rmult_eq_reg_l (quotient (S m) * INR (S (S m)))); [| apply Rgt_not_eq, Rmult_lt_0_compat; assumption].
transitivity (2 * (quotient (S m) * quotient (S (S m))) * (INR (S (S m)) * cos_power (S (S m)))); [ring |].
rewrite quotient_product, cos_power_step.
transitivity (2 * (quotient m * quotient (S m)) * INR (S (S m)) * cos_power m); [rewrite quotient_product | ]; field.
Qed.

Lemma quotient_rises m : quotient m <= quotient (S m).
Proof.
assert (at_m := quotient_wallis m); assert (after := quotient_wallis (S m)); assert (falls := cos_power_falls m).
assert (root_gt0 : 0 < sqrt PI) by apply sqrt_lt_R0, PI_RGT_0.
assert (first := quotient_gt0 m); assert (second := quotient_gt0 (S m)).
assert (cos_power_gt0 : 0 < 2 * cos_power m).
  apply (Rmult_lt_reg_l (quotient m)); [exact first |]; rewrite at_m; lra.
apply (Rmult_le_reg_r (2 * cos_power m)); [exact cos_power_gt0 |].
rewrite at_m, <- after; apply Rmult_le_compat_l; lra.
Qed.

Lemma quotient_above m : quotient m * quotient m <= INR (S m) / 2.
Proof.
rewrite <- quotient_product; apply Rmult_le_compat_l; [apply Rlt_le, quotient_gt0 | apply quotient_rises].
Qed.

Lemma quotient_below m : INR m / 2 <= quotient m * quotient m.
Proof.
destruct m as [| m].
  assert (positive := quotient_gt0 0); simpl INR; nra.
rewrite <- quotient_product; apply Rmult_le_compat_r; [apply Rlt_le, quotient_gt0 | apply quotient_rises].
Qed.

(* The function h of step 1 in proofs_check/normal_distance.py: it falls from m to m + 2, and tends to 1. *)
Definition excess (m : nat) : R := 2 * (quotient m * quotient m) / (INR m + / 2).

Lemma excess_falls m : excess (S (S m)) < excess m.
Proof.
assert (m_ge0 := pos_INR m); assert (q_gt0 := quotient_gt0 m); assert (next_gt0 := quotient_gt0 (S m)).
assert (step : quotient (S (S m)) = quotient m * ((INR m + 2) / (INR m + 1))).
  assert (first := quotient_product m); assert (second := quotient_product (S m)).
  rewrite S_INR in first; rewrite S_INR, S_INR in second.
  apply (Rmult_eq_reg_l (quotient (S m))); [| lra].
  rewrite second.
  transitivity (quotient m * quotient (S m) * ((INR m + 2) / (INR m + 1))); [rewrite first; field; lra | ring].
unfold excess; rewrite step, !S_INR; apply Rminus_gt_0_lt.
replace (_ - _) with (quotient m * quotient m
  / ((INR m + / 2) * ((INR m + 1) * (INR m + 1)) * (INR m + 1 + 1 + / 2))) by (field; lra).
apply Rdiv_lt_0_compat; [nra |].
repeat apply Rmult_lt_0_compat; lra.
Qed.

Lemma excess_near m : 1 - / (INR m + / 2) <= excess m <= 1 + / (INR m + / 2).
Proof.
assert (m_ge0 := pos_INR m); assert (above := quotient_above m); assert (below := quotient_below m).
rewrite S_INR in above.
assert (inverse : 0 < / (INR m + / 2)) by (apply Rinv_0_lt_compat; lra).
replace (1 - / (INR m + / 2)) with ((INR m - / 2) * / (INR m + / 2)) by (field; lra).
replace (1 + / (INR m + / 2)) with ((INR m + 1 + / 2) * / (INR m + / 2)) by (field; lra).
split; apply Rmult_le_compat_r; lra.
Qed.

(* Limits as d grows. *)
Lemma eventually_above (M : R) : eventually (fun d => M < INR d).
Proof. exact (proj2 (is_lim_seq_spec INR p_infty) is_lim_seq_INR M). Qed.

Lemma vanishing c : is_lim_seq (fun d => c / INR d) 0.
Proof.
replace (Finite 0) with (Rbar_mult c (Rbar_inv p_infty)) by (simpl; f_equal; ring).
apply is_lim_seq_scal_l, is_lim_seq_inv; [exact is_lim_seq_INR | discriminate].
Qed.

Lemma near_one c : is_lim_seq (fun d => 1 + c / INR d) 1.
Proof.
replace (Finite 1) with (Finite (1 + 0)) by (f_equal; ring).
apply is_lim_seq_plus'; [apply is_lim_seq_const | apply vanishing].
Qed.

Lemma exp_near_one c : is_lim_seq (fun d => exp (c / INR d)) 1.
Proof.
rewrite <- exp_0; apply is_lim_seq_continuous; [apply derivable_continuous_pt, derivable_pt_exp | apply vanishing].
Qed.

Lemma excess_gt1 m : 1 < excess m.
Proof.
apply (Rle_lt_trans _ (excess (S (S m)))); [| apply excess_falls].
assert (falls : forall k, excess (m + 2 * S k) <= excess (m + 2 * k)).
  intros k; replace (m + 2 * S k)%nat with (S (S (m + 2 * k))) by lia; apply Rlt_le, excess_falls.
assert (limit : is_lim_seq (fun k => excess (m + 2 * k)) 1).
  apply (is_lim_seq_le_le_loc (fun k => 1 + -1 / INR k) _ (fun k => 1 + 1 / INR k));
    [| apply near_one | apply near_one].
  exists 1%nat; intros k k_ge1.
  assert (k_gt0 : 0 < INR k) by (apply lt_0_INR; lia).
  assert (inverse : / (INR (m + 2 * k) + / 2) <= / INR k).
    apply Rinv_le_contravar; [exact k_gt0 |]; assert (INR k <= INR (m + 2 * k)) by (apply le_INR; lia); lra.
  assert (near := excess_near (m + 2 * k)); unfold Rdiv; lra.
replace (S (S m)) with (m + 2 * 1)%nat by lia.
exact (is_lim_seq_decr_compare (fun k => excess (m + 2 * k)) 1 limit falls 1).
Qed.

(* Step 1 in proofs_check/normal_distance.py. *)
Theorem gamma_bounds (d : nat) : (2 <= d)%nat ->
  1 - 3 / (2 * INR d) < 2 / INR d * gamma_quotient d ^ 2 <= 1 - 1 / INR d.
Proof.
intros d_ge2; destruct d as [| [| m]]; [lia | lia |].
assert (m_ge0 := pos_INR m); assert (above := quotient_above m); assert (below := excess_gt1 m).
rewrite !S_INR in *.
assert (twice : INR m + / 2 < 2 * (quotient m * quotient m)).
  apply (Rmult_lt_reg_r (/ (INR m + / 2))); [apply Rinv_0_lt_compat; lra |].
  rewrite Rinv_r by lra; exact below.
assert (inverse : 0 < / (INR m + 1 + 1)) by (apply Rinv_0_lt_compat; lra).
replace (1 - 3 / (2 * (INR m + 1 + 1))) with ((INR m + / 2) * / (INR m + 1 + 1)) by (field; lra).
replace (1 - 1 / (INR m + 1 + 1)) with ((INR m + 1) * / (INR m + 1 + 1)) by (field; lra).
replace (2 / (INR m + 1 + 1) * quotient m ^ 2) with (2 * (quotient m * quotient m) * / (INR m + 1 + 1))
  by (field; lra).
split; [apply Rmult_lt_compat_r | apply Rmult_le_compat_r]; lra.
Qed.

Definition ratio (d : nat) : R := gamma_quotient d / sqrt (INR d / 2).

Lemma ratio_bounds d : (2 <= d)%nat -> 1 - 3 / 2 / INR d <= ratio d <= 1 /\ 0 < ratio d.
Proof.
intros d_ge2; destruct (gamma_bounds d d_ge2) as [below above].
assert (d_gt0 : 0 < INR d) by (apply lt_0_INR; lia).
assert (root_gt0 : 0 < sqrt (INR d / 2)) by (apply sqrt_lt_R0; lra).
assert (root : sqrt (INR d / 2) * sqrt (INR d / 2) = INR d / 2) by (apply sqrt_sqrt; lra).
assert (ratio_gt0 : 0 < ratio d).
  apply Rdiv_lt_0_compat; [| exact root_gt0].
  destruct d as [| [| m]]; [lia | lia | apply quotient_gt0].
assert (square : 2 / INR d * gamma_quotient d ^ 2 = ratio d * ratio d).
  unfold ratio; replace (2 / INR d) with (/ (sqrt (INR d / 2) * sqrt (INR d / 2))) by (rewrite root; field; lra).
  field; lra.
assert (inverse : 0 < / INR d) by (apply Rinv_0_lt_compat; exact d_gt0).
replace (3 / (2 * INR d)) with (3 / 2 / INR d) in below by (field; lra).
rewrite square in *; unfold Rdiv in *.
repeat split; nra.
Qed.

(* Wallis' ratio: Gamma(d/2) / Gamma((d - 1)/2) is like sqrt(d/2). *)
Theorem gamma_ratio : is_lim_seq (fun d => gamma_quotient d / sqrt (INR d / 2)) 1.
Proof.
apply (is_lim_seq_le_le_loc (fun d => 1 + - (3 / 2) / INR d) _ (fun _ => 1)).
- exists 2%nat; intros d d_ge2; destruct (ratio_bounds d d_ge2) as [bounds _].
  unfold ratio in bounds; unfold Rdiv in *; lra.
- apply near_one.
- apply is_lim_seq_const.
Qed.

(* ---- The density has mass 1 ---- *)

Lemma continuous_density d t : continuous (density d) t.
Proof.
unfold density, Rdiv; generalize (/ INR d); intros inverse.
apply (continuous_mult (fun _ => _) (fun y => sqrt (1 - y * y * inverse) ^ (d - 3))); [apply continuous_const |].
apply (continuous_comp (fun y => sqrt (1 - y * y * inverse)) (fun z => z ^ (d - 3))).
  apply continuous_sqrt_comp, (ex_derive_continuous (fun y => 1 - y * y * inverse)); auto_derive; exact I.
apply (ex_derive_continuous (fun z => z ^ (d - 3))); auto_derive; exact I.
Qed.

Lemma density_is d a b : is_RInt (density d) a b (RInt (density d) a b).
Proof.
apply (RInt_correct (density d)), (ex_RInt_continuous (density d)); intros t _; apply continuous_density.
Qed.

Lemma density_even d t : density d (- t) = density d t.
Proof. unfold density; replace (- t * - t) with (t * t) by ring; reflexivity. Qed.

(* The integral over t is one over the angle: t = sqrt d sin y. *)
Lemma half_mass d : (3 <= d)%nat -> RInt (density d) 0 (sqrt (INR d)) = 1 / 2.
Proof.
intros d_ge3; assert (d_gt0 : 0 < INR d) by (apply lt_0_INR; lia).
assert (wallis : gamma_quotient d * (2 * cos_power (S (d - 3))) = sqrt PI).
  destruct d as [| [| [| n]]]; [lia | lia | lia |].
  replace (S (S (S n)) - 3)%nat with n by lia; apply quotient_wallis.
assert (pi_gt0 := PI_RGT_0); assert (quarter := PI2_RGT_0).
assert (root_gt0 : 0 < sqrt (INR d)) by (apply sqrt_lt_R0; exact d_gt0).
assert (root : sqrt (INR d) * sqrt (INR d) = INR d) by (apply sqrt_sqrt; lra).
assert (root_pi_gt0 : 0 < sqrt PI) by (apply sqrt_lt_R0; exact pi_gt0).
assert (turned : is_RInt (fun y => scal (sqrt (INR d) * cos y) (density d (sqrt (INR d) * sin y))) 0 (PI / 2)
  (RInt (density d) (sqrt (INR d) * sin 0) (sqrt (INR d) * sin (PI / 2)))).
  apply (is_RInt_comp (density d) (fun y => sqrt (INR d) * sin y) (fun y => sqrt (INR d) * cos y)).
    intros y _; apply continuous_density.
  intros y _; split; [auto_derive; [exact I | ring] |].
  apply (ex_derive_continuous (fun y => sqrt (INR d) * cos y)); auto_derive; exact I.
rewrite sin_0, sin_PI2, Rmult_0_r, Rmult_1_r in turned.
rewrite <- (is_RInt_unique _ _ _ _ turned).
transitivity (gamma_quotient d / sqrt PI * cos_power (S (d - 3))).
  apply is_RInt_unique.
  apply (is_RInt_ext (fun y => scal (gamma_quotient d / sqrt PI) (cos y ^ S (d - 3)))).
    intros y; rewrite Rmin_left, Rmax_right by lra; intros range.
    assert (cos_ge0 : 0 <= cos y) by (apply cos_ge_0; lra).
    assert (circle : cos y * cos y = 1 - sin y * sin y) by (generalize (sin2_cos2 y); unfold Rsqr; lra).
    change (gamma_quotient d / sqrt PI * cos y ^ S (d - 3) = sqrt (INR d) * cos y * density d (sqrt (INR d) * sin y)).
    unfold density.
    replace (1 - sqrt (INR d) * sin y * (sqrt (INR d) * sin y) / INR d) with (cos y * cos y).
      rewrite sqrt_square by exact cos_ge0; rewrite sqrt_mult_alt by lra; rewrite <- tech_pow_Rmult; field; lra.
    transitivity (1 - sqrt (INR d) * sqrt (INR d) / INR d * (sin y * sin y)); [| field; lra].
    rewrite root, circle; field; lra.
  apply (is_RInt_scal (fun y => cos y ^ S (d - 3))), cos_power_is.
replace (gamma_quotient d / sqrt PI * cos_power (S (d - 3)))
  with (gamma_quotient d * (2 * cos_power (S (d - 3))) / sqrt PI / 2) by (field; lra).
rewrite wallis; change (sqrt PI / sqrt PI / 2 = 1 / 2 :> R); field; lra.
Qed.

Lemma even_RInt (f : R -> R) (b l : R) : (forall t, f (- t) = f t) -> is_RInt f 0 b l -> is_RInt f 0 (- b) (- l).
Proof.
intros even f_is.
assert (reversed : is_RInt (fun t => - f (- t)) 0 (- b) l).
  apply (is_RInt_comp_opp f 0 (- b) l); rewrite Ropp_0, Ropp_involutive; exact f_is.
apply (is_RInt_ext (fun t => - - f (- t))).
  intros t _; rewrite Ropp_involutive; apply even.
exact (is_RInt_opp (fun t => - f (- t)) 0 (- b) l reversed).
Qed.

Lemma even_distribution (f : R -> R) (a b l m : R) : (forall t, f (- t) = f t) ->
  is_RInt f 0 a l -> is_RInt f 0 b m -> is_RInt f (- a) b (l + m).
Proof.
intros even below above.
assert (turned : is_RInt f (- a) 0 (- - l)) by exact (is_RInt_swap f (- a) 0 (- l) (even_RInt f a l even below)).
rewrite Ropp_involutive in turned; exact (is_RInt_Chasles _ _ _ _ _ _ turned above).
Qed.

Lemma distribution d lambda : (3 <= d)%nat ->
  is_RInt (density d) (- sqrt (INR d)) lambda (1 / 2 + RInt (density d) 0 lambda).
Proof.
intros d_ge3; apply even_distribution; [apply density_even | | apply density_is].
rewrite <- (half_mass d d_ge3); apply density_is.
Qed.

Theorem density_mass (d : nat) : (3 <= d)%nat -> is_RInt (density d) (- sqrt (INR d)) (sqrt (INR d)) 1.
Proof.
intros d_ge3; replace 1 with (1 / 2 + RInt (density d) 0 (sqrt (INR d))) by (rewrite half_mass by exact d_ge3; field).
apply distribution; exact d_ge3.
Qed.

(* ---- Its limit ---- *)

Lemma exp_le x y : x <= y -> exp x <= exp y.
Proof. intros [less | ->]; [apply Rlt_le, exp_increasing; exact less | apply Rle_refl]. Qed.

Lemma exp_power y n : exp y ^ n = exp (INR n * y).
Proof.
induction n as [| n before]; [simpl; rewrite Rmult_0_l, exp_0; reflexivity |].
rewrite <- tech_pow_Rmult, before, <- exp_plus, S_INR; f_equal; ring.
Qed.

Lemma root_exp y : sqrt (exp y) = exp (y / 2).
Proof. rewrite <- (sqrt_square (exp (y / 2))) by apply Rlt_le, exp_pos; rewrite <- exp_plus; do 2 f_equal; field. Qed.

(* From 1 - x <= e^-x, and from 1/(1 - x) = 1 + x/(1 - x) <= e^(x/(1 - x)). *)
Lemma power_above x n : sqrt (1 - x) ^ n <= exp (INR n * (- x / 2)).
Proof.
rewrite <- exp_power; apply pow_incr; split; [apply sqrt_pos |].
rewrite <- root_exp; apply sqrt_le_1_alt; assert (tangent := exp_ineq1_le (- x)); lra.
Qed.

Lemma power_below x n : x < 1 -> exp (INR n * (- (x / (1 - x)) / 2)) <= sqrt (1 - x) ^ n.
Proof.
intros x_lt1; rewrite <- exp_power; apply pow_incr; split; [apply Rlt_le, exp_pos |].
rewrite <- root_exp; apply sqrt_le_1_alt.
rewrite exp_Ropp; assert (tangent := exp_ineq1_le (x / (1 - x))).
replace (1 - x) with (/ (1 + x / (1 - x))) at 2 by (field; lra).
apply Rinv_le_contravar; [| exact tangent].
replace (1 + x / (1 - x)) with (/ (1 - x)) by (field; lra); apply Rinv_0_lt_compat; lra.
Qed.

Lemma density_ratio d t : (1 <= d)%nat -> density d t = ratio d / sqrt (2 * PI) * sqrt (1 - t * t / INR d) ^ (d - 3).
Proof.
intros d_ge1; assert (0 < INR d) by (apply lt_0_INR; lia); assert (pi_gt0 := PI_RGT_0).
assert (0 < sqrt (2 * PI)) by (apply sqrt_lt_R0; lra); assert (0 < sqrt (INR d / 2)) by (apply sqrt_lt_R0; lra).
unfold density, ratio; f_equal.
replace (PI * INR d) with (2 * PI * (INR d / 2)) by field; rewrite sqrt_mult_alt by lra.
field; split; lra.
Qed.

Lemma normal_gt0 t : 0 < normal t.
Proof. assert (pi_gt0 := PI_RGT_0); apply Rdiv_lt_0_compat; [apply exp_pos | apply sqrt_lt_R0; lra]. Qed.

Definition factor_below (d : nat) (s : R) : R := (1 + - (3 / 2) / INR d) * exp (- (s * s) / INR d).
Definition factor_above (d : nat) (s : R) : R := exp (3 / 2 * s / INR d).

(* The quotient of both densities lies between these numbers where t^2 <= s <= d/2; both tend to 1. *)
Lemma density_near_normal d s t : (3 <= d)%nat -> t * t <= s <= INR d / 2 ->
  factor_below d s * normal t <= density d t <= factor_above d s * normal t.
Proof.
intros d_ge3 [t_le s_le].
destruct (ratio_bounds d ltac:(lia)) as [[ratio_below ratio_above] ratio_gt0].
assert (d_large : 3 <= INR d) by (replace 3 with (INR 3) by (simpl; ring); apply le_INR; lia).
assert (pi_gt0 := PI_RGT_0); assert (root_gt0 : 0 < sqrt (2 * PI)) by (apply sqrt_lt_R0; lra).
assert (inverse : 0 < / sqrt (2 * PI)) by (apply Rinv_0_lt_compat; exact root_gt0).
assert (exponent : INR (d - 3) = INR d - 3) by (rewrite minus_INR by lia; simpl; ring).
assert (d_inverse : 0 < / INR d) by (apply Rinv_0_lt_compat; lra).
assert (square := Rle_0_sqr t); unfold Rsqr in square.
rewrite density_ratio by lia.
assert (power_gt0 : 0 <= sqrt (1 - t * t / INR d) ^ (d - 3)) by apply pow_le, sqrt_pos.
split.
- apply (Rle_trans _ (ratio d / sqrt (2 * PI) * (exp (- (s * s) / INR d) * exp (- (t * t) / 2)))).
    unfold factor_below, normal.
    replace ((1 + - (3 / 2) / INR d) * exp (- (s * s) / INR d) * (exp (- (t * t) / 2) / sqrt (2 * PI)))
      with ((1 + - (3 / 2) / INR d) / sqrt (2 * PI) * (exp (- (s * s) / INR d) * exp (- (t * t) / 2)))
      by (field; lra).
    apply Rmult_le_compat_r; [apply Rmult_le_pos; apply Rlt_le, exp_pos |].
    apply Rmult_le_compat_r; [lra | unfold Rdiv in *; lra].
  apply Rmult_le_compat_l; [apply Rmult_le_pos; lra |].
  assert (x_lt1 : t * t / INR d < 1) by (apply (Rmult_lt_reg_r (INR d)); [lra | field_simplify; lra]).
  apply (Rle_trans _ (exp (INR (d - 3) * (- (t * t / INR d / (1 - t * t / INR d)) / 2)))); [| apply power_below; lra].
  rewrite <- exp_plus, exponent; apply exp_le.
  assert (smaller : - (s * s) / INR d <= - (t * t * (t * t)) / INR d) by (apply Rmult_le_compat_r; nra).
  apply (Rle_trans _ (- (t * t * (t * t)) / INR d + - (t * t) / 2)); [lra |].
  apply Rminus_le_0.
  replace (_ - _) with (t * t * (t * t * (INR d - 2 * (t * t)) + 3 * INR d) * / (2 * INR d * (INR d - t * t)))
    by (field; lra).
  assert (0 <= t * t * (INR d - 2 * (t * t))) by (apply Rmult_le_pos; lra).
  apply Rmult_le_pos; [apply Rmult_le_pos; lra | apply Rlt_le, Rinv_0_lt_compat, Rmult_lt_0_compat; lra].
- apply (Rle_trans _ (1 / sqrt (2 * PI) * exp (INR (d - 3) * (- (t * t / INR d) / 2)))).
    apply Rmult_le_compat; [apply Rmult_le_pos; lra | exact power_gt0 | | apply power_above].
    apply Rmult_le_compat_r; lra.
  unfold factor_above, normal.
  replace (exp (3 / 2 * s / INR d) * (exp (- (t * t) / 2) / sqrt (2 * PI)))
    with (1 / sqrt (2 * PI) * (exp (3 / 2 * s / INR d) * exp (- (t * t) / 2))) by (field; lra).
  rewrite exponent, <- exp_plus; apply Rmult_le_compat_l; [lra | apply exp_le].
  assert (larger : 3 / 2 * (t * t) / INR d <= 3 / 2 * s / INR d) by (apply Rmult_le_compat_r; lra).
  replace ((INR d - 3) * (- (t * t / INR d) / 2)) with (3 / 2 * (t * t) / INR d + - (t * t) / 2) by (field; lra).
  lra.
Qed.

Lemma factor_limits s : is_lim_seq (fun d => factor_below d s) 1 /\ is_lim_seq (fun d => factor_above d s) 1.
Proof.
split; [| apply exp_near_one].
replace (Finite 1) with (Finite (1 * 1)) by (f_equal; ring).
apply is_lim_seq_mult'; [apply near_one | apply exp_near_one].
Qed.

Lemma squeezed (u : nat -> R) s l : eventually (fun d => factor_below d s * l <= u d <= factor_above d s * l) ->
  is_lim_seq u l.
Proof.
intros near; destruct (factor_limits s) as [below above].
apply (is_lim_seq_le_le_loc _ _ _ _ near); replace (Finite l) with (Finite (1 * l)) by (f_equal; ring);
  apply is_lim_seq_mult'; [exact below | apply is_lim_seq_const | exact above | apply is_lim_seq_const].
Qed.

Lemma eventually_near s : eventually (fun d => (3 <= d)%nat /\ s <= INR d / 2).
Proof.
destruct (eventually_above (2 * s)) as [N above]; exists (N + 3)%nat; intros d d_ge; split; [lia |].
assert (large := above d ltac:(lia)); lra.
Qed.

Theorem density_limit (t : R) : is_lim_seq (fun d => density d t) (normal t).
Proof.
apply (squeezed _ (t * t)); destruct (eventually_near (t * t)) as [N near]; exists N; intros d d_ge.
destruct (near d d_ge) as [d_ge3 s_le]; apply density_near_normal; [exact d_ge3 | lra].
Qed.

(* ---- Convergence in distribution ---- *)

Lemma continuous_normal t : continuous normal t.
Proof.
unfold normal, Rdiv; generalize (/ sqrt (2 * PI)); intros inverse.
apply (ex_derive_continuous (fun t => exp (- (t * t) * / 2) * inverse)); auto_derive; exact I.
Qed.

Lemma normal_is a b : is_RInt normal a b (RInt normal a b).
Proof.
apply (RInt_correct normal), (ex_RInt_continuous normal); intros t _; apply continuous_normal.
Qed.

Lemma normal_even t : normal (- t) = normal t.
Proof. unfold normal; replace (- t * - t) with (t * t) by ring; reflexivity. Qed.

Lemma positive_limit lambda : 0 <= lambda ->
  is_lim_seq (fun d => RInt (density d) 0 lambda) (RInt normal 0 lambda).
Proof.
intros lambda_ge0; apply (squeezed _ (lambda * lambda)).
destruct (eventually_near (lambda * lambda)) as [N near]; exists N; intros d d_ge.
destruct (near d d_ge) as [d_ge3 s_le].
assert (inside : forall t, 0 < t < lambda -> factor_below d (lambda * lambda) * normal t <= density d t
  <= factor_above d (lambda * lambda) * normal t).
  intros t range; apply density_near_normal; [exact d_ge3 | split; [nra | exact s_le]].
split.
- apply (is_RInt_le (fun t => factor_below d (lambda * lambda) * normal t) (density d) 0 lambda _ _ lambda_ge0).
  + exact (is_RInt_scal _ _ _ _ _ (normal_is 0 lambda)).
  + apply density_is.
  + intros t range; exact (proj1 (inside t range)).
- apply (is_RInt_le (density d) (fun t => factor_above d (lambda * lambda) * normal t) 0 lambda _ _ lambda_ge0).
  + apply density_is.
  + exact (is_RInt_scal _ _ _ _ _ (normal_is 0 lambda)).
  + intros t range; exact (proj2 (inside t range)).
Qed.

Lemma half_limit lambda : is_lim_seq (fun d => RInt (density d) 0 lambda) (RInt normal 0 lambda).
Proof.
destruct (Rle_lt_dec 0 lambda) as [ge0 | lt0]; [apply positive_limit; exact ge0 |].
assert (turned : forall f, (forall t, f (- t) = f t) -> (forall a b, is_RInt f a b (RInt f a b)) ->
  RInt f 0 lambda = - RInt f 0 (- lambda)).
  intros f even f_is; apply is_RInt_unique; rewrite <- (Ropp_involutive lambda) at 1.
  apply even_RInt; [exact even | apply f_is].
rewrite (turned normal normal_even normal_is).
apply (is_lim_seq_ext (fun d => - RInt (density d) 0 (- lambda))).
  intros d; rewrite (turned (density d) (density_even d) (density_is d)); reflexivity.
apply (is_lim_seq_opp (fun d => RInt (density d) 0 (- lambda)) (RInt normal 0 (- lambda))), positive_limit; lra.
Qed.

(* What lies beyond b, by e^(-t^2/4) <= 4/t^2. *)
Lemma density_tail d b : (6 <= d)%nat -> 0 < b <= sqrt (INR d) -> RInt (density d) b (sqrt (INR d)) <= 4 / b.
Proof.
intros d_ge6 [b_gt0 b_le].
destruct (ratio_bounds d ltac:(lia)) as [[_ ratio_above] ratio_gt0].
assert (d_large : 6 <= INR d) by (replace 6 with (INR 6) by (simpl; ring); apply le_INR; lia).
assert (exponent : INR (d - 3) = INR d - 3) by (rewrite minus_INR by lia; simpl; ring).
assert (pi_large := PI_RGT_0).
assert (root_ge1 : 1 <= sqrt (2 * PI)).
  rewrite <- sqrt_1; apply sqrt_le_1_alt; assert (pi_ge2 := PI2_1); lra.
assert (far : is_RInt (fun t => 4 / (t * t)) b (sqrt (INR d)) (minus (- (4 / sqrt (INR d))) (- (4 / b)))).
  apply (is_RInt_derive (fun t => - (4 / t))).
    intros t; rewrite Rmin_left by exact b_le; intros range; auto_derive; [lra | field; lra].
  intros t; rewrite Rmin_left by exact b_le; intros range.
  apply (ex_derive_continuous (fun t => 4 / (t * t))); auto_derive; nra.
apply (Rle_trans _ (minus (- (4 / sqrt (INR d))) (- (4 / b)))).
  apply (is_RInt_le (density d) (fun t => 4 / (t * t)) b (sqrt (INR d)) _ _ b_le (density_is d _ _) far).
  intros t [t_gt _]; rewrite density_ratio by lia.
  assert (t2_gt0 : 0 < t * t) by nra.
  apply (Rle_trans _ (1 * exp (INR (d - 3) * (- (t * t / INR d) / 2)))).
    apply Rmult_le_compat; [apply Rdiv_le_0_compat; lra | apply pow_le, sqrt_pos | | apply power_above].
    apply (Rmult_le_reg_r (sqrt (2 * PI))); [lra |]; field_simplify; lra.
  rewrite Rmult_1_l; apply (Rle_trans _ (exp (- (t * t / 4)))).
    apply exp_le; rewrite exponent; apply Rminus_le_0.
    replace (_ - _) with (t * t * (INR d - 6) / (4 * INR d)) by (field; lra).
    apply Rdiv_le_0_compat; nra.
  rewrite exp_Ropp; replace (4 / (t * t)) with (/ (t * t / 4)) by (field; lra).
  apply Rinv_le_contravar; [lra |]; assert (tangent := exp_ineq1_le (t * t / 4)); lra.
assert (root_inverse : 0 < 4 / sqrt (INR d)) by (apply Rdiv_lt_0_compat; lra).
unfold minus, plus, opp; simpl; lra.
Qed.

Lemma normal_half b : 0 < b -> 1 / 2 - 4 / b <= RInt normal 0 b <= 1 / 2.
Proof.
intros b_gt0.
assert (near : eventually (fun d => 1 / 2 - 4 / b <= RInt (density d) 0 b <= 1 / 2)).
  destruct (eventually_above (b * b)) as [N above]; exists (N + 6)%nat; intros d d_ge.
  assert (large := above d ltac:(lia)).
  assert (b_le : b <= sqrt (INR d)) by (rewrite <- (sqrt_square b) by lra; apply sqrt_le_1_alt; lra).
  assert (whole := half_mass d ltac:(lia)).
  assert (parts : RInt (density d) 0 (sqrt (INR d)) = RInt (density d) 0 b + RInt (density d) b (sqrt (INR d)))
    by exact (is_RInt_unique _ _ _ _ (is_RInt_Chasles _ _ _ _ _ _ (density_is d 0 b) (density_is d b _))).
  assert (tail := density_tail d b ltac:(lia) (conj b_gt0 b_le)).
  assert (tail_ge0 : 0 <= RInt (density d) b (sqrt (INR d))).
    apply (RInt_ge_0 (density d)); [exact b_le | eexists; apply density_is |]; intros t _.
    destruct (ratio_bounds d ltac:(lia)) as [_ ratio_gt0]; rewrite density_ratio by lia.
    assert (pi_gt0 := PI_RGT_0); assert (0 < sqrt (2 * PI)) by (apply sqrt_lt_R0; lra).
    apply Rmult_le_pos; [apply Rdiv_le_0_compat; lra | apply pow_le, sqrt_pos].
  lra.
assert (limit := half_limit b).
split.
- apply (is_lim_seq_le_loc (fun _ => 1 / 2 - 4 / b) (fun d => RInt (density d) 0 b) (1 / 2 - 4 / b) (RInt normal 0 b));
    [destruct near as [N near]; exists N; intros d d_ge; apply near; exact d_ge | apply is_lim_seq_const | exact limit].
- apply (is_lim_seq_le_loc (fun d => RInt (density d) 0 b) (fun _ => 1 / 2) (RInt normal 0 b) (1 / 2));
    [destruct near as [N near]; exists N; intros d d_ge; apply near; exact d_ge | exact limit | apply is_lim_seq_const].
Qed.

(* Phi(lambda) is the normal density's mass below lambda: its mass above 0 is the limit of that of the cosine's, 1/2. *)
Theorem normal_law (lambda : R) : is_lim (fun a => RInt normal (- a) lambda) p_infty (Phi lambda).
Proof.
apply (is_lim_ext (fun a => RInt normal 0 a + RInt normal 0 lambda)).
  intros a; symmetry; apply is_RInt_unique, even_distribution; [apply normal_even | apply normal_is | apply normal_is].
apply is_lim_plus'; [| apply is_lim_const].
apply (is_lim_le_le_loc (fun b => 1 / 2 - 4 / b) (fun _ => 1 / 2)); [| | apply is_lim_const].
  exists 0; intros b b_gt0; apply normal_half; exact b_gt0.
replace (Finite (1 / 2)) with (Finite (1 / 2 + -4 * 0)) by (f_equal; ring).
apply (is_lim_ext (fun b => 1 / 2 + -4 * / b)); [intros b; unfold Rdiv; ring |].
apply is_lim_plus'; [apply is_lim_const |].
apply (is_lim_scal_l (fun b => / b) (-4) p_infty 0).
apply (is_lim_inv (fun b => b) p_infty p_infty); [apply is_lim_id | discriminate].
Qed.

(* Theorem 3.2: P(tau <= lambda/sqrt d) tends to Phi(lambda). *)
Theorem convergence (lambda : R) : is_lim_seq (fun d => RInt (density d) (- sqrt (INR d)) lambda) (Phi lambda).
Proof.
apply (is_lim_seq_ext_loc (fun d => 1 / 2 + RInt (density d) 0 lambda)).
  exists 3%nat; intros d d_ge3; symmetry; apply is_RInt_unique, distribution; exact d_ge3.
apply is_lim_seq_plus'; [apply is_lim_seq_const | apply half_limit].
Qed.
