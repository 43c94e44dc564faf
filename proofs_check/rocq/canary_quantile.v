(* The canary stream's quantile: polynomials near the normal quantile, cell by cell of the words.

   Code: cells in proofs_check/rounding/canary_quantile.py. The module quantile_cells has the numbers of some of them.
   A word a stands for the upper tail p = a/2^32, and y is its quantile where Phi(y) = 1 - p.

   Over a cell the polynomial's upper tail and p have nearly the same derivative, and at its centre nearly one value.
   So they are near each other, and the polynomial is near the quantile. *)

From Coq Require Import Reals Lra List.
From Coquelicot Require Import Coquelicot.
From Interval Require Import Tactic.
From canaryproof Require Import theorem_3_2 quantile_cells.
Local Open Scope R_scope.

(* A polynomial with the coefficients c, by Horner's scheme; its derivative, whose coefficients are n c_n. *)
Fixpoint value (c : list R) (z : R) : R := match c with nil => 0 | first :: rest => first + z * value rest z end.
Fixpoint times_order (n : R) (c : list R) : list R :=
  match c with nil => nil | first :: rest => n * first :: times_order (n + 1) rest end.
Definition slope (c : list R) (z : R) : R := value (times_order 1 (tl c)) z.

(* The polynomial of a cell of words errs by at most this part of the quantile. *)
Definition near_quantile (first last centre reach : R) (c : list R) (error : R) : Prop :=
  forall a y, first <= a <= last -> Phi y = 1 - a / 2 ^ 32 ->
  Rabs (value c ((a - centre) / reach) - y) <= error * y.

Lemma value_times_order n c z : value (times_order n c) z = n * value c z + z * slope c z.
Proof.
revert n; induction c as [| first rest before]; intros n; [unfold slope; simpl; ring |].
unfold slope; simpl; rewrite !before; ring.
Qed.

Lemma value_slope c z : is_derive (value c) z (slope c z).
Proof.
induction c as [| first rest before]; [apply (is_derive_const 0) |].
replace (slope (first :: rest) z) with (plus 0 (plus (mult 1 (value rest z)) (mult z (slope rest z))))
  by (unfold slope at 2; simpl; rewrite value_times_order; unfold plus, mult; simpl; ring).
apply (is_derive_plus (fun _ => first) (fun z => z * value rest z)); [apply (is_derive_const first) |].
apply (is_derive_mult (fun z => z) (value rest)); [apply (is_derive_id z) | exact before | exact Rmult_comm].
Qed.

Lemma value_at_0 c : value c 0 = hd 0 c.
Proof. destruct c; simpl; ring. Qed.

Fixpoint spread (c : list R) : R := match c with nil => 0 | first :: rest => Rabs first + spread rest end.

Lemma value_range c z : -1 <= z <= 1 -> hd 0 c - spread (tl c) <= value c z <= hd 0 c + spread (tl c).
Proof.
intros range.
assert (factor : forall v most, Rabs v <= most -> Rabs (z * v) <= most).
  intros v most v_le; rewrite Rabs_mult; assert (z_small : Rabs z <= 1) by (apply Rabs_le; lra).
  assert (z_ge0 := Rabs_pos z); assert (v_ge0 := Rabs_pos v); nra.
assert (bound : forall rest, Rabs (value rest z) <= spread rest).
  intros rest; induction rest as [| first rest before]; [simpl; rewrite Rabs_R0; lra |].
  exact (Rle_trans _ _ _ (Rabs_triang _ _) (Rplus_le_compat_l _ _ _ (factor _ _ before))).
destruct c as [| first rest]; [simpl; lra |].
assert (small := factor _ _ (bound rest)); apply Rabs_le_between in small; simpl; lra.
Qed.

Lemma Phi_slope y : is_derive Phi y (normal y).
Proof.
replace (normal y) with (plus 0 (normal y)) by (unfold plus; simpl; ring).
apply (is_derive_plus (fun _ => 1 / 2) (fun y => RInt normal 0 y)); [apply (is_derive_const (1 / 2)) |].
apply (is_derive_RInt normal (fun y => RInt normal 0 y) 0); [| apply continuous_normal].
exists (mkposreal 1 Rlt_0_1); intros b _; apply normal_is.
Qed.

Lemma increment (f df : R -> R) x y : (forall t, is_derive f t (df t)) ->
  exists t, Rmin x y <= t <= Rmax x y /\ f y - f x = df t * (y - x).
Proof.
intros derivative; apply MVT_gen; [intros t _; apply derivative |]; intros t _.
apply continuity_pt_filterlim, (ex_derive_continuous f); exists (df t); apply derivative.
Qed.

Lemma normal_falls x y : 0 <= x <= y -> normal y <= normal x.
Proof.
intros range; unfold normal; assert (pi_gt0 := PI_RGT_0).
apply Rmult_le_compat_r; [apply Rlt_le, Rinv_0_lt_compat, sqrt_lt_R0; lra | apply exp_le; nra].
Qed.

(* Where the upper tails differ by less than e times the density, the arguments differ by no more than e. *)
Lemma arguments_near x y e most : 0 <= e <= x -> x + e <= most -> Rabs (Phi x - Phi y) < e * normal most ->
  Rabs (x - y) <= e.
Proof.
intros [e_ge0 e_le] most_ge difference.
assert (rises : forall s t, s <= t -> Phi s <= Phi t).
  intros s t s_le; destruct (increment Phi normal s t Phi_slope) as [u [_ step]].
  assert (positive := normal_gt0 u); nra.
assert (least : forall s, 0 <= s -> s + e <= most -> e * normal most <= Phi (s + e) - Phi s).
  intros s s_ge0 s_le; destruct (increment Phi normal s (s + e) Phi_slope) as [u [range ->]].
  rewrite Rmin_left, Rmax_right in range by lra.
  replace (s + e - s) with e by ring; rewrite (Rmult_comm e).
  apply Rmult_le_compat_r; [exact e_ge0 | apply normal_falls; lra].
apply Rabs_def2 in difference.
apply Rabs_le; split; apply Rnot_lt_le; intros far.
- assert (step := least x ltac:(lra) most_ge); assert (beyond := rises (x + e) y ltac:(lra)); lra.
- assert (step := least (x - e) ltac:(lra) ltac:(lra)); assert (beyond := rises y (x - e) ltac:(lra)).
  replace (x - e + e) with x in step by ring; lra.
Qed.

(* A bound on the derivative limits how far the upper tails part from the centre on. *)
Lemma from_centre c step bound z : -1 <= z <= 1 ->
  (forall t, -1 <= t <= 1 -> Rabs (slope c t * normal (value c t) + step) <= bound) ->
  Rabs (Phi (value c z) + step * z - Phi (value c 0)) <= bound * Rabs z.
Proof.
intros z_range slopes.
destruct (increment (fun z => Phi (value c z) + step * z) (fun z => slope c z * normal (value c z) + step) 0 z)
  as [t [t_range change]].
  intros t; apply (is_derive_plus (fun z => Phi (value c z)) (fun z => step * z)).
    apply (is_derive_comp Phi (value c)); [apply Phi_slope | apply value_slope].
  auto_derive; [exact I | ring].
assert (t_inside : -1 <= t <= 1) by (unfold Rmin, Rmax in t_range; destruct (Rle_dec 0 z); lra).
rewrite Rmult_0_r, Rplus_0_r, Rminus_0_r in change; rewrite change, Rabs_mult.
apply Rmult_le_compat_r; [apply Rabs_pos | apply slopes; exact t_inside].
Qed.

Lemma by_slope first last centre reach c error least most floor :
  0 <= reach -> centre - reach <= first -> last <= centre + reach ->
  0 < error <= 1 -> 0 < least ->
  least <= hd 0 c - spread (tl c) -> hd 0 c + spread (tl c) <= most ->
  floor <= normal (most * (1 + error)) -> 0 < floor ->
  Rabs (RInt normal 0 (hd 0 c) - (1 / 2 - centre / 2 ^ 32)) <= error * least * floor / 8 ->
  (forall z, -1 <= z <= 1 -> Rabs (slope c z * normal (value c z) + reach / 2 ^ 32) <= error * least * floor / 8) ->
  near_quantile first last centre reach c error.
Proof.
intros reach_ge0 first_ge last_le [error_gt0 error_le1] least_gt0 least_le most_ge floor_le floor_gt0.
rewrite <- value_at_0; intros at_centre slopes a y a_range tail.
set (z := (a - centre) / reach).
assert (word : a = centre + reach * z /\ -1 <= z <= 1).
  unfold z; destruct (Req_dec reach 0) as [zero | nonzero].
    replace (a - centre) with 0 by lra; unfold Rdiv; rewrite Rmult_0_l; lra.
  split; [field; exact nonzero |].
  split; apply (Rmult_le_reg_r reach); try lra;
    unfold Rdiv; rewrite Rmult_assoc, Rinv_l, Rmult_1_r by exact nonzero; lra.
destruct word as [word z_range].
assert (range := value_range c z z_range).
assert (product_gt0 : 0 < error * least * floor) by (repeat apply Rmult_lt_0_compat; lra).
assert (difference : Rabs (Phi (value c z) - Phi y) <= error * least * floor / 4).
  rewrite tail, word.
  replace (Phi (value c z) - (1 - (centre + reach * z) / 2 ^ 32)) with
    (Phi (value c z) + reach / 2 ^ 32 * z - Phi (value c 0) + (RInt normal 0 (value c 0) - (1 / 2 - centre / 2 ^ 32)))
    by (unfold Phi; field).
  apply (Rle_trans _ _ _ (Rabs_triang _ _)).
  assert (change := from_centre _ _ _ _ z_range slopes); assert (z_small : Rabs z <= 1) by (apply Rabs_le; lra); nra.
assert (e_gt0 : 0 < error * least) by (apply Rmult_lt_0_compat; lra).
assert (near : Rabs (value c z - y) <= error * least / 2).
  apply (arguments_near _ _ _ (most * (1 + error))); [nra | nra |].
  apply (Rle_lt_trans _ _ _ difference); nra.
apply (Rle_trans _ _ _ near); apply Rabs_le_between in near; nra.
Qed.

(* Around p = 1/2 the quantile is 0 at the centre, and the error is relative to it. *)
Lemma by_slope_to_half first last reach c error least most floor :
  0 < reach -> 2 ^ 31 - reach <= first -> last < 2 ^ 31 ->
  0 < error <= 1 -> 0 < least ->
  hd 0 c = 0 -> hd 0 (tl c) + spread (tl (tl c)) <= - least -> spread (tl c) <= most ->
  floor <= normal (most * (1 + error)) -> 0 < floor ->
  (forall z, -1 <= z <= 1 -> Rabs (slope c z * normal (value c z) + reach / 2 ^ 32) <= error * least * floor / 8) ->
  near_quantile first last (2 ^ 31) reach c error.
Proof.
intros reach_gt0 first_ge last_lt [error_gt0 error_le1] least_gt0 starts_at_0 least_le most_ge floor_le floor_gt0.
intros slopes a y a_range tail; set (z := (a - 2 ^ 31) / reach).
assert (word : a = 2 ^ 31 + reach * z) by (unfold z; field; lra).
assert (z_range : -1 <= z < 0).
  split; [apply (Rmult_le_reg_l reach) | apply (Rmult_lt_reg_l reach)]; lra.
assert (value_ge : least * - z <= value c z).
  assert (rest := value_range (tl c) z ltac:(lra)).
  replace (value c z) with (z * value (tl c) z); [nra |].
  destruct c; simpl in *; [ring | rewrite starts_at_0; ring].
assert (range := value_range c z ltac:(lra)); rewrite starts_at_0 in range.
assert (product_gt0 : 0 < error * least * floor) by (repeat apply Rmult_lt_0_compat; lra).
assert (difference : Rabs (Phi (value c z) - Phi y) <= error * least * floor / 8 * - z).
  rewrite tail, word; replace (- z) with (Rabs z) by (apply Rabs_left; lra).
  replace (Phi (value c z) - (1 - (2 ^ 31 + reach * z) / 2 ^ 32))
    with (Phi (value c z) + reach / 2 ^ 32 * z - Phi (value c 0)).
    apply from_centre; [lra | exact slopes].
  rewrite value_at_0, starts_at_0; unfold Phi at 2; rewrite RInt_point; unfold zero; simpl; field.
assert (part_gt0 : 0 < least * - z) by (apply Rmult_lt_0_compat; lra).
assert (e_gt0 : 0 < error * (least * - z)) by (apply Rmult_lt_0_compat; lra).
assert (near : Rabs (value c z - y) <= error * (least * - z) / 2).
  apply (arguments_near _ _ _ (most * (1 + error))); [nra | nra |].
  apply (Rle_lt_trans _ _ _ difference).
  assert (0 < error * (least * - z) * floor) by (apply Rmult_lt_0_compat; lra).
  assert (error * (least * - z) * floor <= error * (least * - z) * normal (most * (1 + error)))
    by (apply Rmult_le_compat_l; lra).
  lra.
apply (Rle_trans _ _ _ near); apply Rabs_le_between in near; nra.
Qed.

(* A cell of the module: words, coefficients and error, and three numbers for the proof. *)
Definition near_on_cell (cell : R * R * R * R * list R * R * (R * R * R)) : Prop :=
  let '((first, last, centre, reach), c, error, _) := cell in near_quantile first last centre reach c error.

Ltac by_intervals :=
  cbv [value slope times_order spread normal hd tl];
  match goal with
  | |- context [RInt] => integral with (i_prec 100, i_degree 24, i_fuel 200)
  | |- forall z, _ => intros z z_range; interval with (i_taylor z, i_degree 15, i_prec 80)
  | |- _ => first [lra | interval with (i_prec 60)]
  end.

(* Cells below p = 1/2, every 16th one. *)
Theorem quantile_cells : List.Forall near_on_cell cells.
Proof.
unfold cells; repeat apply List.Forall_cons; try apply List.Forall_nil;
  match goal with
  | |- near_on_cell (_, _, _, (?least, ?most, ?floor)) => apply (by_slope _ _ _ _ _ _ least most floor)
  end; by_intervals.
Qed.

(* The cell that ends at p = 1/2. *)
Theorem quantile_near_half : near_on_cell central_cell.
Proof.
unfold central_cell.
match goal with |- near_on_cell ((?first, ?last, ?centre, ?reach), ?c, ?error, (?least, ?most, ?floor)) =>
  change (near_quantile first last centre reach c error); replace centre with (2 ^ 31) by ring;
  apply (by_slope_to_half _ _ _ _ _ least most floor) end;
  by_intervals.
Qed.
