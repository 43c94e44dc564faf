(* How probable one sum of the weights of right guesses is: lower_bounds.md, section 6, the bound of kappa in equation (5).

   Code: share_of_delta in verify/audit/bounds/weights.py. *)

From Coq Require Import Reals Lra Lia List ZArith.
From Coquelicot Require Import Coquelicot.
Import ListNotations.
Local Open Scope R_scope.

(* A guess has a weight, and is right with a probability. *)
Definition guess : Type := (nat * R)%type.

(* The probability that the right ones of independent guesses weigh v. *)
Fixpoint one_sum (l : list guess) (v : Z) : R :=
  match l with
  | [] => if Z.eq_dec v 0 then 1 else 0
  | (w, p) :: others => (1 - p) * one_sum others v + p * one_sum others (v - Z.of_nat w)
  end.

(* The real and the imaginary part of the mean of exp(i V x), V what the right ones weigh. *)
Fixpoint wave (l : list guess) (x : R) : R * R :=
  match l with
  | [] => (1, 0)
  | (w, p) :: others =>
      let (re, im) := wave others x in
      let c := 1 - p + p * cos (INR w * x) in let s := p * sin (INR w * x) in
      (c * re - s * im, c * im + s * re)
  end.

(* The real part of the mean of exp(i (V - v) x). *)
Definition turned (l : list guess) (v : Z) (x : R) : R :=
  fst (wave l x) * cos (IZR v * x) + snd (wave l x) * sin (IZR v * x).

(* The mean over n + 1 equidistant points of a circle. *)
Definition circle_mean (n : nat) (f : R -> R) : R :=
  sum_f_R0 (fun k => f (2 * PI * INR k / INR (S n))) n / INR (S n).

Lemma turned_next w p l v x :
  turned ((w, p) :: l) v x = (1 - p) * turned l v x + p * turned l (v - Z.of_nat w) x.
Proof.
unfold turned; simpl; destruct (wave l x) as [re im]; simpl.
replace (IZR (v - Z.of_nat w) * x) with (IZR v * x - INR w * x) by (rewrite minus_IZR, <- INR_IZR_INZ; ring).
rewrite cos_minus, sin_minus; ring.
Qed.

Lemma circle_mean_le n f g : (forall x, f x <= g x) -> circle_mean n f <= circle_mean n g.
Proof.
intros fg; unfold circle_mean, Rdiv; apply Rmult_le_compat_r.
- apply Rlt_le, Rinv_0_lt_compat, lt_0_INR; apply Nat.lt_0_succ.
- apply sum_Rle; intros k _; apply fg.
Qed.

Lemma circle_mean_linear n a b f g :
  circle_mean n (fun x => a * f x + b * g x) = a * circle_mean n f + b * circle_mean n g.
Proof.
unfold circle_mean.
rewrite <- (sum_eq (fun k => f (2 * PI * INR k / INR (S n)) * a + g (2 * PI * INR k / INR (S n)) * b)).
- rewrite plus_sum, <- !scal_sum; field; apply not_0_INR; discriminate.
- intros k _; ring.
Qed.

(* cos 2ky is 1 if sin y is 0, and else the sum of cosines telescopes. *)
Lemma cosines (y : R) (n : nat) :
  2 * sin y * sum_f_R0 (fun k => cos (2 * INR k * y)) n = sin ((2 * INR n + 1) * y) + sin y.
Proof.
induction n as [|n IH].
- simpl; replace ((2 * 0 + 1) * y) with y by ring; replace (2 * 0 * y) with 0 by ring; rewrite cos_0; ring.
- rewrite tech5, Rmult_plus_distr_l, IH, S_INR.
  replace ((2 * INR n + 1) * y) with (2 * (INR n + 1) * y - y) by ring.
  replace ((2 * (INR n + 1) + 1) * y) with (2 * (INR n + 1) * y + y) by ring.
  rewrite sin_minus, sin_plus; ring.
Qed.

Lemma sine_of_multiple (y : R) (k : nat) : sin y = 0 -> sin (INR k * y) = 0.
Proof.
intros zero; induction k as [|k IH]; [simpl; rewrite Rmult_0_l; apply sin_0|].
rewrite S_INR, Rmult_plus_distr_r, Rmult_1_l, sin_plus, IH, zero; ring.
Qed.

Lemma whole_turns (v : Z) (y : R) : sin (2 * PI * IZR v - y) = - sin y.
Proof.
assert (turns : forall k : nat, sin (2 * PI * INR k - y) = - sin y /\ sin (2 * PI * - INR k - y) = - sin y).
{ intros k; split.
  - replace (2 * PI * INR k - y) with (- y + 2 * INR k * PI) by ring; rewrite sin_period; apply sin_neg.
  - replace (2 * PI * - INR k - y) with (- (y + 2 * INR k * PI)) by ring; rewrite sin_neg, sin_period; reflexivity. }
destruct (Z_le_dec 0 v) as [v_ge0|v_lt0].
- rewrite <- (Z2Nat.id v v_ge0), <- INR_IZR_INZ; apply turns.
- assert (w_ge0 : (0 <= - v)%Z) by lia.
  replace (IZR v) with (- IZR (- v)) by (rewrite opp_IZR; ring).
  rewrite <- (Z2Nat.id (- v) w_ge0), <- INR_IZR_INZ; apply turns.
Qed.

Lemma mean_cosine (n : nat) (v : Z) : (if Z.eq_dec v 0 then 1 else 0) <= circle_mean n (fun x => cos (IZR v * x)).
Proof.
assert (N_gt0 : 0 < INR (S n)) by (apply lt_0_INR, Nat.lt_0_succ).
pose (y := IZR v * PI / INR (S n)).
assert (angle : forall k, IZR v * (2 * PI * INR k / INR (S n)) = 2 * INR k * y) by (intros k; unfold y; field; lra).
unfold circle_mean; rewrite (sum_eq _ (fun k => cos (2 * INR k * y))) by (intros k _; rewrite angle; reflexivity).
destruct (Req_dec (sin y) 0) as [zero|other].
- rewrite (sum_eq _ (fun _ => 1)).
  + rewrite sum_cte; replace (1 * INR (S n) / INR (S n)) with 1 by (field; lra).
    destruct (Z.eq_dec v 0); lra.
  + intros k _; replace (2 * INR k * y) with (2 * (INR k * y)) by ring.
    rewrite cos_2a_sin, (sine_of_multiple y k zero); ring.
- destruct (Z.eq_dec v 0) as [->|_].
  + exfalso; apply other; unfold y; replace (0 * PI / INR (S n)) with 0 by (field; lra); apply sin_0.
  + assert (sum0 : sum_f_R0 (fun k => cos (2 * INR k * y)) n = 0).
    { apply (Rmult_eq_reg_l (2 * sin y)); [|lra].
      rewrite cosines, Rmult_0_r.
      replace ((2 * INR n + 1) * y) with (2 * PI * IZR v - y)
        by (unfold y; rewrite S_INR in *; field; lra).
      rewrite whole_turns; ring. }
    rewrite sum0; unfold Rdiv; lra.
Qed.

(* The mean over a circle is the probability of all sums that are v but for multiples of the number of points. *)
Lemma sum_in_waves (n : nat) (l : list guess) : List.Forall (fun g => 0 <= snd g <= 1) l ->
  forall v, one_sum l v <= circle_mean n (turned l v).
Proof.
induction l as [|[w p] l IH]; intros probabilities v.
- eapply Rle_trans; [apply (mean_cosine n)|]; apply circle_mean_le; intros x; unfold turned; simpl; lra.
- inversion probabilities as [|? ? range others]; subst; simpl in range; simpl one_sum.
  apply (Rle_trans _ (circle_mean n (fun x => (1 - p) * turned l v x + p * turned l (v - Z.of_nat w) x))).
  + rewrite circle_mean_linear; apply Rplus_le_compat; apply Rmult_le_compat_l; try lra; apply IH; assumption.
  + apply circle_mean_le; intros x; rewrite turned_next; apply Rle_refl.
Qed.

(* The modulus of one guess's wave, by its variance p (1 - p). *)
Lemma one_modulus (p a c s : R) : Rsqr c + Rsqr s = 1 -> a <= p * (1 - p) -> 0 <= 1 - c ->
  Rsqr (1 - p + p * c) + Rsqr (p * s) <= Rsqr (exp (- (a * (1 - c)))).
Proof.
intros circle small c_le1.
replace (Rsqr (1 - p + p * c) + Rsqr (p * s)) with (1 - 2 * (p * (1 - p)) * (1 - c))
  by (rewrite Rsqr_mult; replace (Rsqr s) with (1 - Rsqr c) by lra; unfold Rsqr; ring).
replace (Rsqr (exp (- (a * (1 - c))))) with (exp (- (2 * a * (1 - c))))
  by (unfold Rsqr; rewrite <- exp_plus; f_equal; ring).
apply (Rle_trans _ (1 + - (2 * a * (1 - c)))); [nra | apply exp_ineq1_le].
Qed.

(* The exponent of what is above all moduli together, y a number for each guess. *)
Definition one_exponent (w : nat) (y x : R) : R := y * (1 - y) * (1 - cos (INR w * x)).

Definition exponent (l : list (guess * R)) (x : R) : R :=
  fold_right (fun g total => one_exponent (fst (fst g)) (snd g) x + total) 0 l.

Lemma modulus (l : list (guess * R)) x :
  List.Forall (fun g => snd g * (1 - snd g) <= snd (fst g) * (1 - snd (fst g))) l ->
  Rsqr (fst (wave (map fst l) x)) + Rsqr (snd (wave (map fst l) x)) <= Rsqr (exp (- exponent l x)).
Proof.
induction l as [|[[w p] y] l IH]; intros small.
- simpl; rewrite Ropp_0, exp_0; unfold Rsqr; lra.
- inversion small as [|? ? here others]; subst; simpl in here; specialize (IH others).
  simpl; destruct (wave (map fst l) x) as [re im]; simpl in IH |- *.
  assert (one := one_modulus p (y * (1 - y)) (cos (INR w * x)) (sin (INR w * x))).
  assert (circle := sin2_cos2 (INR w * x)); assert (c_le1 := COS_bound (INR w * x)).
  specialize (one ltac:(lra) here ltac:(lra)).
  unfold one_exponent; rewrite Ropp_plus_distr, exp_plus, Rsqr_mult.
  revert one IH; generalize (1 - p + p * cos (INR w * x)), (p * sin (INR w * x)); intros c s one IH.
  apply (Rle_trans _ ((Rsqr c + Rsqr s) * (Rsqr re + Rsqr im))); [unfold Rsqr; nra|].
  apply Rmult_le_compat; try assumption; apply Rplus_le_le_0_compat; apply Rle_0_sqr.
Qed.

(* One value of the sum, where y (1 - y) is at most the variance of each guess. *)
Theorem one_sum_most (n : nat) (l : list (guess * R)) (v : Z) :
  List.Forall (fun g => 0 <= snd (fst g) <= 1 /\ snd g * (1 - snd g) <= snd (fst g) * (1 - snd (fst g))) l ->
  one_sum (map fst l) v <= circle_mean n (fun x => exp (- exponent l x)).
Proof.
intros guesses; apply (Rle_trans _ (circle_mean n (turned (map fst l) v))).
- apply sum_in_waves, List.Forall_map, (List.Forall_impl _ (fun g both => proj1 both) guesses).
- apply circle_mean_le; intros x; apply Rsqr_incr_0_var; [|apply Rlt_le, exp_pos].
  eapply Rle_trans; [|apply (modulus l x), (List.Forall_impl _ (fun g both => proj2 both) guesses)].
  unfold turned; assert (circle := sin2_cos2 (IZR v * x)).
  revert circle; generalize (fst (wave (map fst l) x)), (snd (wave (map fst l) x)), (cos (IZR v * x)), (sin (IZR v * x)).
  intros re im c s circle; apply (Rle_trans _ ((Rsqr re + Rsqr im) * (Rsqr s + Rsqr c))); [|rewrite circle; lra].
  assert (0 <= Rsqr (re * s - im * c)) by apply Rle_0_sqr; unfold Rsqr in *; lra.
Qed.

(* It depends on a guess of weight w + 1 whether v is reached: so many values of the others' sum. *)
Corollary decided_most (n w : nat) (l : list (guess * R)) (v : Z) :
  List.Forall (fun g => 0 <= snd (fst g) <= 1 /\ snd g * (1 - snd g) <= snd (fst g) * (1 - snd (fst g))) l ->
  sum_f_R0 (fun t => one_sum (map fst l) (v - 1 - Z.of_nat t)) w <=
  INR (S w) * circle_mean n (fun x => exp (- exponent l x)).
Proof.
intros guesses; rewrite Rmult_comm, <- sum_cte; apply sum_Rle; intros t _; apply one_sum_most; assumption.
Qed.

(* A position that is not revealed with probability u is right with probability 1 - u (1 - s) if D has it, and u s if not. *)
Theorem least_variance (u s : R) (right : bool) : 0 <= u <= 1 -> / 2 <= s <= 1 ->
  let p := if right then 1 - u * (1 - s) else u * s in
  0 <= p <= 1 /\ u * (1 - s) * (1 - u * (1 - s)) <= p * (1 - p).
Proof.
intros u_range s_range; destruct right; simpl; split; try nra.
assert (0 <= u * (2 * s - 1) * (1 - u)) by (repeat apply Rmult_le_pos; lra); nra.
Qed.

(* It rises in y, so that the mean over the circle falls. *)
Theorem variance_rises (y y' : R) : 0 <= y <= y' -> y' <= / 2 -> y * (1 - y) <= y' * (1 - y').
Proof. intros range half; nra. Qed.
