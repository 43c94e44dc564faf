(* Sums, products, quotients and square roots of pairs of floats: the errors that rounding makes.

   Code: add, multiply, divide and square_root in kernels/_double_double.py. The scripts of proofs_check/rounding have
   the same statements, and Gappa writes their proofs as terms for Rocq's kernel: the modules gappa_add and so on. Here
   the statements are written anew, by hand, so that neither Gappa nor what prepares its terms must be believed.

   [rnd] rounds to the nearest float64, halfway cases to the even one. Overflow is left aside, and arguments are scaled
   by powers of two. A pair is high + low. What a sum or product leaves, such as [sl], is taken as exact. *)

From Coq Require Import Reals Lra.
From Gappa Require Import Gappa_library.
From canaryproof Require gappa_add gappa_multiply gappa_divide_above gappa_divide_below gappa_square_root.
Local Open Scope R_scope.

Notation rnd := (rounding_float rndNE 53%positive (-1074)%Z).

(* Errors are these numbers times 2^-106. *)
Definition units_add : R := 6.
Definition units_multiply : R := 9.
Definition units_divide : R := 52.
Definition units_square_root : R := 19.

(* Gappa refutes that the error is larger. What remains is that its premisses are those of the theorem. *)
Ltac by_gappa lemma :=
  unfold units_add, units_multiply, units_divide, units_square_root in *;
  match goal with |- ?error <= ?bound => destruct (Rle_lt_dec error bound); [assumption | exfalso] end;
  apply lemma; repeat match goal with x := _ |- _ => subst x end; autounfold with gappa;
  unfold BND, float2R, Defs.F2R, Float1, Raux.bpow, Z.pow_pos in *; simpl in *;
  rewrite ?Rmult_0_l; repeat split; try apply Rabs_pos; try (intros [_ ?]); lra.

(* The error relative to a, the larger operand. *)
Theorem add_pairs (ah al bh bl : R) :
  1 <= ah <= 2 -> Rabs al <= / 2 ^ 53 -> Rabs bl <= / 2 ^ 53 -> -2 <= bh <= 2 ->
  let sh := rnd (ah + bh) in let sl := ah + bh - sh in
  let th := rnd (al + bl) in let tl := al + bl - th in
  let r := rnd (sl + th) in
  let vh := rnd (sh + r) in let vl := sh + r - vh in
  let w := rnd (vl + tl) in
  Rabs ((vh + w) - ((ah + al) + (bh + bl))) <= units_add / 2 ^ 106.
Proof. intros; by_gappa (gappa_add.l1 ah bh sl al bl vl tl). Qed.

Theorem multiply_pairs (ah al bh bl : R) :
  1 <= ah <= 2 -> Rabs al <= / 2 ^ 53 -> Rabs bl <= / 2 ^ 53 -> 1 <= bh <= 2 ->
  let h := rnd (ah * bh) in let low := ah * bh - h in
  let t := rnd (rnd (ah * bl) + rnd (al * bh)) in
  let c := rnd (low + t) in
  Rabs ((h + c) - (ah + al) * (bh + bl)) <= units_multiply / 2 ^ 106.
Proof. intros; by_gappa (gappa_multiply.l1 ah bh low bl al). Qed.

(* The remainder a - q b is a sum of pairs, rh + rl, that errs by x: at most [units_add] of an operand of at most 2.
   [low] is what the product of q and bh leaves. *)
Definition remainder (ah al bh bl q low rh rl x : R) : Prop :=
  let t := rnd (q * bl) in let c := rnd (low + t) in
  let product := q * (bh + bl) + (c - (low + t)) + (t - q * bl) in
  Rabs low <= / 2 ^ 53 /\ Rabs x <= 2 * units_add / 2 ^ 106 /\ rh + rl = ah + al - product + x.

Theorem divide_pairs_above (ah al bh bl low rh rl x : R) :
  1 <= ah <= 2 -> Rabs al <= / 2 ^ 53 -> Rabs bl <= / 2 ^ 53 -> 1 <= bh <= 2 ->
  let q := rnd (ah / bh) in 1 <= q <= 2 -> remainder ah al bh bl q low rh rl x ->
  Rabs ((q + rnd (rnd (rh + rl) / bh)) - (ah + al) / (bh + bl)) <= units_divide / 2 ^ 106.
Proof.
intros ? ? ? ? q ? [? [? ?]]; by_gappa (gappa_divide_above.l1 ah al bh bl low rh rl x).
Qed.

(* Quotients below 1 have half the error. *)
Theorem divide_pairs_below (ah al bh bl low rh rl x : R) :
  1 <= ah <= 2 -> Rabs al <= / 2 ^ 53 -> Rabs bl <= / 2 ^ 53 -> 1 <= bh <= 2 ->
  let q := rnd (ah / bh) in 1 / 2 <= q <= 1 -> remainder ah al bh bl q low rh rl x ->
  Rabs ((q + rnd (rnd (rh + rl) / bh)) - (ah + al) / (bh + bl)) <= units_divide / 2 / 2 ^ 106.
Proof.
intros ? ? ? ? q ? [? [? ?]]; by_gappa (gappa_divide_below.l1 ah al bh bl low rh rl x).
Qed.

Theorem square_root_pair (ah al rh rl x : R) :
  1 <= ah <= 4 -> Rabs al <= / 2 ^ 52 ->
  let r := rnd (sqrt ah) in Rabs x <= 4 * units_add / 2 ^ 106 -> rh + rl = ah + al - r * r + x ->
  Rabs ((r + rnd (rnd (rh + rl) / rnd (2 * r))) - sqrt (ah + al)) <= units_square_root / 2 ^ 106.
Proof.
intros ? al_small r ? ?.
assert (- / 2 ^ 52 <= al <= / 2 ^ 52) by (revert al_small; unfold Rabs; destruct (Rcase_abs al); lra).
by_gappa (gappa_square_root.l1 ah rh rl al x).
Qed.
