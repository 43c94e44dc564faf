(* The order of observed and unobserved scores: lower_bounds.md, section 3a.

   Code: wrong_guesses, shown_numbers and rates_of_labels in verify/audit/bounds/guesses.py, and chance in
   verify/audit/bounds/ladders.py.

   All that the tests see of observed and unobserved scores is the labels in the order of the pool. Take a statistic
   that does not fall where an observed score moves before an unobserved one. Whatever the laws of the scores, it has at
   most the mean that it has for one law of labels:
   - the shown canaries are at the ends, observed ones first and unobserved ones last;
   - all others are on the high or on the low side, and all orders of a side are equally likely.
   The proof on paper puts X and U on one space. Here each pair of laws is a mixture ([shown_or_on_a_side]). Given which
   part each score came from, scores are sorted first, then sides. Neither makes the mean smaller. *)

From mathcomp Require Import all_ssreflect ssrAC all_algebra.
From canaryproof Require Import probability private_pair sides.
Import Order.Theory GRing.Theory Num.Theory.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Local Open Scope ring_scope.

Section Order.
Variable R : realFieldType.

(* A member of the pool is a label with a score. The highest score comes first, unobserved ones first among equals. *)
Definition before (a b : bool * R) : bool := (b.2 < a.2) || (b.2 == a.2) && (a.1 ==> b.1).

Lemma before_total : total before.
Proof.
move=> [a x] [b y]; rewrite /before /= [y == x]eq_sym.
by case: (ltgtP x y) => //= _; case: a; case: b.
Qed.

Lemma before_trans : transitive before.
Proof.
move=> [b y] [a x] [c z]; rewrite /before /= => /orP[yx|/andP[/eqP-> ab]] /orP[zy|/andP[/eqP-> bc]].
- by rewrite (lt_trans zy yx).
- by rewrite yx.
- by rewrite zy.
- by rewrite eqxx /=; case: a ab; rewrite ?orbT //= => /(implyP bc) ->; rewrite orbT.
Qed.

Lemma before_anti : antisymmetric before.
Proof.
move=> [a x] [b y]; rewrite /before /= [y == x]eq_sym.
by case: (ltgtP x y) => //= -> /andP[]; case: a; case: b.
Qed.

(* The labels of a pool, from the highest score on. *)
Definition labels (pool : seq (bool * R)) : seq bool := [seq member.1 | member <- sort before pool].

(* A statistic that does not fall where an observed canary moves before the unobserved one just before it. *)
Definition rises_in_order (f : seq bool -> R) :=
  forall s s', f (s ++ false :: true :: s') <= f (s ++ true :: false :: s').

Lemma rises_cons f b : rises_in_order f -> rises_in_order (fun s => f (b :: s)).
Proof. by move=> f_rises s s'; apply: (f_rises (b :: s)). Qed.

(* An observed label passes any labels downward, and f does not rise. *)
Lemma pass f s s' : rises_in_order f -> f (s ++ true :: s') <= f (true :: s ++ s').
Proof.
elim: s f => [//|b s IH] f f_rises /=; apply: le_trans (IH _ (rises_cons b f_rises)) _.
by case: b => //; apply: (f_rises [::]).
Qed.

(* Where sorting puts one member more. *)
Lemma labels_cons x s : exists s1 s2, [/\ sort before s = s1 ++ s2, sort before (x :: s) = s1 ++ x :: s2 &
  all (fun y => ~~ before x y) s1].
Proof.
set t := sort before s; have t_sorted : pairwise before t.
  by rewrite -sorted_pairwise; [apply: sort_sorted; apply: before_total | apply: before_trans].
exists [seq y <- t | ~~ before x y], [seq y <- t | before x y].
have split_t : perm_eq ([seq y <- t | ~~ before x y] ++ [seq y <- t | before x y]) t.
  by rewrite perm_catC perm_filterC.
have first_all : all (fun y => ~~ before x y) [seq y <- t | ~~ before x y] by apply: filter_all.
have last_all : all (before x) [seq y <- t | before x y] by apply: filter_all.
have rel12 : allrel before [seq y <- t | ~~ before x y] (x :: [seq y <- t | before x y]).
  apply/allrelP => y z; rewrite mem_filter => /andP[yx _]; rewrite inE => /orP[/eqP->|].
    by have := before_total y x; rewrite (negbTE yx) orbF.
  rewrite mem_filter => /andP[xz _]; apply: (before_trans _ xz).
  by have := before_total y x; rewrite (negbTE yx) orbF.
have by_order u v : perm_eq u v -> pairwise before u -> pairwise before v -> u = v.
  move=> uv; rewrite -!(sorted_pairwise before_trans) => u_sorted v_sorted.
  exact: (sorted_eq before_trans before_anti u_sorted v_sorted uv).
split=> //.
  apply: by_order; rewrite 1?perm_sym //.
  rewrite pairwise_cat !pairwise_filter ?t_sorted // !andbT; move: rel12; rewrite allrel_consr.
  by case/andP.
apply: by_order.
- have /permPl to_front := perm_catCA [seq y <- t | ~~ before x y] [:: x] [seq y <- t | before x y].
  rewrite perm_sort perm_sym; apply: perm_trans to_front _; rewrite /= perm_cons.
  by apply: perm_trans split_t _; rewrite perm_sort.
- by rewrite -sorted_pairwise; [apply: sort_sorted; apply: before_total | apply: before_trans].
- by rewrite pairwise_cat rel12 /= last_all !pairwise_filter.
Qed.

(* Let an unobserved member come before an observed one only where its score says so. Then sorting moves no observed
   member before an unobserved one, and does not raise f. *)
Definition justified (pool : seq (bool * R)) := pairwise (fun a b => a.1 || ~~ b.1 || before a b) pool.

Lemma sort_lowers f pool : rises_in_order f -> justified pool -> f (labels pool) <= f (map fst pool).
Proof.
rewrite /justified; elim: pool f => [|x s IH] f f_rises //=; rewrite /= => /andP[x_ok s_ok].
apply: le_trans (IH _ (rises_cons x.1 f_rises) s_ok); rewrite /labels.
have [s1 [s2 [sorted_s sorted_xs not_x]]] := labels_cons x s; rewrite sorted_xs sorted_s !map_cat /=.
case: x x_ok not_x sorted_xs => [[] z] /= x_ok not_x sorted_xs; first exact: pass.
(* An unobserved member passes only unobserved ones. *)
have -> : map fst s1 = nseq (size s1) false.
  rewrite -(size_map fst); apply/all_pred1P; rewrite all_map; apply/allP => y y_s1 /=.
  have y_s : y \in s by rewrite -(mem_sort before) sorted_s mem_cat y_s1.
  have := allP not_x y y_s1; apply: contraR => y_seen; have := allP x_ok y y_s.
  by rewrite /= eqbF_neg negbK in y_seen *; rewrite y_seen.
have -> n u : nseq n false ++ false :: u = false :: nseq n false ++ u by elim: n => //= n ->.
exact: lexx.
Qed.
End Order.

(* [rate label side] is the probability of a side, given the label. *)
Section Sides.
Variable R : realFieldType.
Variable rate : bool -> bool -> R.
Hypothesis rate_ge0 : forall b c, 0 <= rate b c.
Hypothesis right_side : rate true false * rate false true <= rate true true * rate false false.

(* The sum over all labels, given the sides. *)
Fixpoint label_sum (sides : seq bool) (f : seq bool -> R) : R :=
  if sides is c :: others then \sum_b rate b c * label_sum others (fun s => f (b :: s)) else f [::].

Lemma label_sum_le sides f g : (forall s, size s = size sides -> f s <= g s) -> label_sum sides f <= label_sum sides g.
Proof.
elim: sides f g => [|c sides IH] f g fg /=; first exact: fg.
by apply: ler_sum => b _; apply: ler_wpmul2l => //; apply: IH => s s_size; apply: fg; rewrite /= s_size.
Qed.

(* To move a high side before a low one just before it does not lower the sum, as "observed" is likelier there. *)
Lemma label_sum_swap s s' f : rises_in_order f ->
  label_sum (s ++ false :: true :: s') f <= label_sum (s ++ true :: false :: s') f.
Proof.
elim: s f => [|c s IH] f f_rises /=; last first.
  by apply: ler_sum => b _; apply: ler_wpmul2l => //; apply: IH; apply: rises_cons.
rewrite !big_bool /=.
set TT := label_sum s' _; set TF := label_sum s' _; set FT := label_sum s' _; set FF := label_sum s' _.
have FT_TF : FT <= TF by apply: label_sum_le => u _; apply: (f_rises [::]).
rewrite !mulrDr !mulrA [rate true false * rate true true]mulrC [rate false true * rate true false]mulrC.
rewrite [rate false false * rate true true]mulrC [rate false true * rate false false]mulrC.
rewrite [leLHS](AC (2*2) ((1*4)*(2*3))) [leRHS](AC (2*2) ((1*4)*(2*3))) /= ler_add2l -subr_ge0.
have -> x y u v : x * u + y * v - (y * u + x * v) = (x - y) * (u - v) :> R.
  by rewrite mulrBl !mulrBr opprB addrACA -opprD [x * v + _]addrC.
by rewrite mulr_ge0 // subr_ge0.
Qed.

(* So it is largest where all high sides come first. *)
Lemma label_sum_sorted sides f : rises_in_order f ->
  label_sum sides f <= label_sum (nseq (count id sides) true ++ nseq (count negb sides) false) f.
Proof.
elim: sides f => [|c sides IH] f f_rises; first exact: lexx.
have step : label_sum (c :: sides) f <=
    label_sum (c :: nseq (count id sides) true ++ nseq (count negb sides) false) f.
  by apply: ler_sum => b _; apply: ler_wpmul2l => //; apply: IH; apply: rises_cons.
apply: le_trans step _; case: c => //; rewrite /= add0n.
elim: (count id sides) f f_rises => [//|n IHn] f f_rises.
apply: (@le_trans _ _ (label_sum (true :: false :: nseq n true ++ nseq (count negb sides) false) f)).
  exact: (label_sum_swap [::]).
by apply: ler_sum => b _; apply: ler_wpmul2l => //; apply: IHn; apply: rises_cons.
Qed.

(* Members of the pool are labels with outcomes of a finite set S. *)
Variables (S : finType) (score : S -> R).
Let T := [finType of bool * S].

Definition pool (s : seq (bool * S)) : seq (bool * R) := [seq (member.1, score member.2) | member <- s].

Lemma symmetric_pool (f : seq bool -> R) : symmetric_in (fun s : seq T => f (labels (pool s))).
Proof.
move=> s s' ss'; rewrite /labels; suff -> : sort (@before R) (pool s) = sort (@before R) (pool s') by [].
exact/(perm_sortP (@before_total R) (@before_trans R) (@before_anti R))/perm_map.
Qed.

(* The label of a canary with the outcome z that is on the side c. *)
Lemma at_score_ge0 (cz : bool * S) (t : T) : 0 <= rate t.1 cz.1 * (t.2 == cz.2)%:R.
Proof. by rewrite mulr_ge0 ?rate_ge0 ?ler0n. Qed.

Definition at_score (cz : bool * S) := Weights (at_score_ge0 cz).

Lemma sum_members (X : T -> R) : \sum_t X t = \sum_b \sum_z X (b, z).
Proof. by rewrite pair_bigA; apply: eq_bigr; case. Qed.

Lemma draws_at_scores cz F :
  draws (map at_score cz) F = label_sum (map fst cz) (fun s => F (zip s (map snd cz))).
Proof.
elim: cz F => [//|[c z] cz IH] F /=.
rewrite sum_members.
apply: eq_bigr => b _ /=; rewrite (bigD1 z) //= eqxx mulr1 IH [X in _ + X]big1 ?addr0 // => z' /negbTE->.
by rewrite mulr0 mul0r.
Qed.

(* Given all outcomes with their sides: the sum over labels, k of them observed, is at most that of sorted sides. *)
Lemma given_scores (f : seq bool -> R) k cz : rises_in_order f ->
  draws (map at_score cz) (fun s => (count id (map fst s) == k)%:R * f (labels (pool s))) <=
  label_sum (nseq (count id (map fst cz)) true ++ nseq (count negb (map fst cz)) false)
    (fun s => (count id s == k)%:R * f s).
Proof.
move=> f_rises; pose higher (a b : bool * S) := score b.2 <= score a.2.
have higher_total : total higher by move=> a b; apply: le_total.
have higher_trans : transitive higher by move=> b a c ab bc; apply: le_trans bc ab.
rewrite (@draws_perm R T _ at_score cz (sort higher cz)); [|move=> s s' ss'|by rewrite perm_sym perm_sort]; last first.
  rewrite (symmetric_pool f ss'); congr (_ %:R * _); congr (_ == _).
  by apply/permP; apply: perm_map.
have sorted_cz := sort_sorted higher_total cz; move: sorted_cz (permEl (perm_sort higher cz)).
move: (sort higher cz) => {}cz' sorted_cz cz_cz'.
rewrite -[in X in _ <= X](permP (perm_map fst cz_cz') id) -[in X in _ <= X](permP (perm_map fst cz_cz') negb).
rewrite draws_at_scores; apply: le_trans (label_sum_sorted _ _); last first.
  move=> s s'; have -> : count id (s ++ false :: true :: s') = count id (s ++ true :: false :: s').
    by rewrite !count_cat.
  by apply: ler_wpmul2l; rewrite ?ler0n.
apply: label_sum_le => s s_size; rewrite size_map in s_size.
have unzipped : map fst (zip s (map snd cz')) = s by apply: unzip1_zip; rewrite size_map s_size.
rewrite unzipped; apply: ler_wpmul2l; first by rewrite ler0n.
have -> : f s = f (map fst (pool (zip s (map snd cz')))).
  by rewrite /pool -map_comp (@eq_map _ _ _ fst) ?unzipped.
apply: sort_lowers => //; rewrite /justified pairwise_map.
move: sorted_cz; rewrite sorted_pairwise // -(pairwise_map snd (fun x y => score y <= score x)).
have {1}<- : map snd (zip s (map snd cz')) = map snd cz' by apply: unzip2_zip; rewrite size_map s_size.
rewrite pairwise_map; apply: sub_pairwise => -[[] x] [b y] //= yx.
by rewrite /before /= andbT [_ || (_ == _)]orbC -le_eqVlt yx orbT.
Qed.

(* An outcome of a given law, with its label. *)
Lemma labelled_ge0 b (P : law R S) (t : T) : 0 <= (t.1 == b)%:R * P t.2.
Proof. by rewrite mulr_ge0 ?ler0n ?mass_ge0. Qed.

Definition labelled b (P : law R S) := Weights (labelled_ge0 b P).

Lemma labelled_sum b P X : \sum_t labelled b P t * X t = \sum_z P z * X (b, z).
Proof.
rewrite sum_members (bigD1 b) //= [X in _ + X]big1 ?addr0 => [|b' /negbTE b'_b].
  by apply: eq_bigr => z _; rewrite eqxx mul1r.
by apply: big1 => z _; rewrite b'_b !mul0r.
Qed.

Lemma labelled_total b P : \sum_t labelled b P t = 1.
Proof.
rewrite -(mass_sum P) [RHS](eq_bigr (fun z => P z * 1)) => [|z _]; last by rewrite mulr1.
by rewrite -(labelled_sum b P (fun _ => 1)); apply: eq_bigr => t _; rewrite mulr1.
Qed.

Lemma drawn_labels (I : Type) (label : I -> bool) (canary : I -> law R S) l s :
  drawn [seq labelled (label i) (canary i) | i <- l] s -> map fst s = map label l.
Proof.
elim: l s => [|i l IH] [|[b z] s] //= /andP[positive /IH->]; congr (_ :: _).
by move: positive; case: eqP => //; rewrite mul0r ltxx.
Qed.

Lemma perm_of_bools l : perm_eq l (nseq (count id l) true ++ nseq (count negb l) false).
Proof.
elim: l => [//|[] l IH]; first by rewrite /= perm_cons.
rewrite /= add0n perm_sym.
have /permPl to_front := perm_catCA (nseq (count id l) true) [:: false] (nseq (count negb l) false).
by apply: perm_trans to_front _; rewrite perm_cons perm_sym.
Qed.

(* [side c] is the law of an outcome on the side c. *)
Variable side : bool -> law R S.

Lemma at_side_ge0 c (t : T) : 0 <= rate t.1 c * side c t.2.
Proof. by rewrite mulr_ge0 ?rate_ge0 ?mass_ge0. Qed.

Definition at_side c := Weights (at_side_ge0 c).

Lemma at_side_mixture c t : at_side c t = \sum_z side c z * at_score (c, z) t.
Proof.
rewrite (bigD1 t.2) //= eqxx mulr1 big1 ?addr0 1?mulrC // => z /negbTE z_t.
by rewrite eq_sym z_t !mulr0.
Qed.

Lemma given_sides cs l F K : (forall zs, size zs = size cs -> draws (l ++ map at_score (zip cs zs)) F <= K) ->
  draws (l ++ map at_side cs) F <= K.
Proof.
elim: cs l => [|c cs IH] l given; first exact: (given [::]).
rewrite /= (draws_mixture _ _ _ (at_side_mixture c)) -[leRHS]mul1r -(mass_sum (side c)) big_distrl.
apply: ler_sum => z _; apply: ler_wpmul2l; first exact: mass_ge0.
rewrite -cat_rcons; apply: IH => zs zs_size; rewrite cat_rcons; apply: (given (z :: zs)).
by rewrite /= zs_size.
Qed.

(* Canaries that are not shown. *)
Section NotShown.
Variables (P Q : law R S).
Hypothesis P_sides : forall z, P z = \sum_c rate true c * side c z.
Hypothesis Q_sides : forall z, Q z = \sum_c rate false c * side c z.

Let whole (t : T) := labelled true P t + labelled false Q t.

Lemma whole_ge0 t : 0 <= whole t.
Proof. by rewrite addr_ge0 ?weight_ge0. Qed.

Lemma order_of_sides f k k0 : rises_in_order f ->
  'C(k + k0, k)%:R * draws (nseq k (labelled true P) ++ nseq k0 (labelled false Q)) (fun s => f (labels (pool s))) <=
  \sum_(N < (k + k0).+1) 'C(k + k0, N)%:R *
    label_sum (nseq N true ++ nseq (k + k0 - N) false) (fun s => (count id s == k)%:R * f s).
Proof.
move=> f_rises; set n := (k + k0)%N; pose F (s : seq T) := f (labels (pool s)).
pose Fk (s : seq T) := (count id (map fst s) == k)%:R * F s.
have F_sym : symmetric_in F := symmetric_pool f.
pose law_of b := if b then P else Q; pose lab b := labelled b (law_of b).
have -> : 'C(n, k)%:R * draws (nseq k (labelled true P) ++ nseq k0 (labelled false Q)) F =
    \sum_(l : n.-tuple bool) (\prod_(x <- l) 1) * draws ([::] ++ map lab l ++ [::]) Fk.
  transitivity (\sum_(l : n.-tuple bool) (\prod_(x <- l) 1) * ((count id l == k)%:R *
      draws (map lab (nseq k true ++ nseq k0 false)) F)).
    rewrite (@by_count R (fun _ => 1) n (fun N => (N == k)%:R * _)).
    have k_n : (k < n.+1)%N by rewrite ltnS leq_addr.
    rewrite (bigD1 (Ordinal k_n)) //= eqxx !expr1n !mulr1 mul1r map_cat !map_nseq big1 ?addr0 // => N N_k.
    by rewrite (_ : (N == k :> nat) = false) ?mul0r ?mulr0 //; apply: contraNF N_k => /eqP N_k; apply/eqP/val_inj.
  apply: eq_bigr => l _; congr (_ * _); rewrite cats0 cat0s.
  case: (eqVneq (count id l) k) => [l_k|l_k].
    rewrite mul1r (@draws_eq _ _ _ Fk F) => [|s /drawn_labels labels_l]; last first.
      by rewrite /Fk labels_l map_id l_k eqxx mul1r.
    apply: draws_perm => //; rewrite perm_sym; apply: perm_trans (perm_of_bools l) _.
    have -> : count negb l = k0 by apply/eqP; rewrite -(eqn_add2l k) -{1}l_k count_predC size_tuple.
    by rewrite l_k.
  rewrite mul0r (@draws_eq _ _ _ Fk (fun _ => 0)) => [|s /drawn_labels labels_l]; last first.
    by rewrite /Fk labels_l map_id (negbTE l_k) mul0r.
  by elim: (map lab l) => //= m ms IH; rewrite big1 // => t _; rewrite -IH mulr0.
rewrite -(@draws_mixtures _ _ _ _ _ (Weights whole_ge0)); last by move=> t; rewrite big_bool !mul1r.
rewrite (@draws_mixtures _ _ _ (fun _ => 1) at_side); last first.
  move=> [b z]; rewrite /= /whole /= !big_bool /= !mul1r; case: b; rewrite eqxx /= !(mul1r, mul0r) ?addr0 ?add0r.
    by rewrite P_sides big_bool.
  by rewrite Q_sides big_bool.
rewrite [leRHS](eq_bigr (fun N : 'I_n.+1 => 'C(n, N)%:R * 1 ^+ N * 1 ^+ (n - N) *
    label_sum (nseq N true ++ nseq (n - N) false) (fun s => (count id s == k)%:R * f s))); last first.
  by move=> N _; rewrite !expr1n !mulr1.
rewrite -(@by_count R (fun _ => 1) n (fun N => label_sum (nseq N true ++ nseq (n - N) false) _)).
apply: ler_sum => c _; apply: ler_wpmul2l; first by apply: prodr_ge0 => x _; apply: ler01.
rewrite cats0 cat0s; apply: (@given_sides c [::]) => zs zs_size /=.
have sides_c : map fst (zip c zs) = c by apply: unzip1_zip; rewrite zs_size.
apply: le_trans (given_scores k (zip c zs) f_rises) _; rewrite sides_c.
have count_c : (count id c + count negb c = n)%N by rewrite count_predC size_tuple.
by rewrite -(canRL (addKn _) count_c).
Qed.

End NotShown.
End Sides.

Section Unobserved.
Variables (R : realFieldType) (S : finType) (score : S -> R).

(* The labels from the highest score on, unobserved ones first among equals. *)
Definition pooled (observed unobserved : seq S) : seq bool :=
  labels ([seq (true, score z) | z <- observed] ++ [seq (false, score z) | z <- unobserved]).

(* P(B = j) for a binomial B. *)
Definition count_mass (n j : nat) (p : R) : R := 'C(n, j)%:R * p ^+ j * (1 - p) ^+ (n - j).

(* The mean of f where no canary is shown. N is the size of the high side. The sum over labels has the factor E/(1 + E)
   for each label on its own side and 1/(1 + E) for each on the other one, k labels being observed. *)
Definition order_mean (E : R) (k k0 : nat) (f : seq bool -> R) : R :=
  (\sum_(N < (k + k0).+1) 'C(k + k0, N)%:R *
    label_sum (rate E) (nseq N true ++ nseq (k + k0 - N) false) (fun s => (count id s == k)%:R * f s)) /
  'C(k + k0, k)%:R.

(* The mean where some canaries are shown. *)
Definition given_shown (E : R) (k k0 : nat) (shown : nat * nat) (f : seq bool -> R) : R :=
  order_mean E (k - shown.1) (k0 - shown.2) (fun s => f (nseq shown.1 true ++ s ++ nseq shown.2 false)).

(* The numbers shown are rounded up to the first declared pair that is not below them. *)
Definition rounded_up (k k0 : nat) (pairs : seq (nat * nat)) (i j : nat) : nat * nat :=
  nth (k, k0) pairs (find (fun pair => (i <= pair.1) && (j <= pair.2))%N pairs).

(* The largest mean that privacy allows. The numbers shown of both kinds are binomial. *)
Definition worst_mean (E delta : R) (k k0 : nat) (pairs : seq (nat * nat)) (f : seq bool -> R) : R :=
  \sum_(i < k.+1) \sum_(j < k0.+1) count_mass k i delta * count_mass k0 j delta *
    given_shown E k k0 (rounded_up k k0 pairs i j) f.

Let T := [finType of bool * S].

(* What comes first may be left out if F is at most F' whatever it is. *)
Lemma draws_prefix ms ms' (F F' : seq T -> R) :
  (forall (m : weights R T), List.In m ms -> \sum_t m t = 1) ->
  (forall s s', drawn ms s -> F (s ++ s') <= F' s') -> draws (ms ++ ms') F <= draws ms' F'.
Proof.
elim: ms F => [|m ms IH] F ones FF'.
  by apply: draws_le => s _; apply: (FF' [::]).
rewrite -[leRHS]mul1r -(ones m) ?big_distrl /=; last by left.
apply: ler_sum => t _; have := weight_ge0 m t; rewrite le0r => /orP[/eqP->|m_gt0]; first by rewrite !mul0r.
rewrite ler_pmul2l //; apply: IH => [m' m'_in|s s' s_drawn]; first by apply: ones; right.
by apply: (FF' (t :: s)); rewrite /drawn /= m_gt0.
Qed.

Lemma draws_iid b (P : law R S) k ms (F : seq T -> R) :
  draws (nseq k (labelled b P) ++ ms) F =
  mean (iid P k) (fun x => draws ms (fun s => F ([seq (b, z) | z <- x] ++ s))).
Proof.
elim: k F => [|k IH] F; first by rewrite (mean_iid0 P (fun x => draws ms (fun s => F ([seq (b, z) | z <- x] ++ s)))).
rewrite (mean_iidS P k (fun x => draws ms (fun s => F ([seq (b, z) | z <- x] ++ s)))).
transitivity (\sum_z P z * draws (nseq k (labelled b P) ++ ms) (fun s => F ((b, z) :: s))).
  exact: (labelled_sum b P (fun t => draws (nseq k (labelled b P) ++ ms) (fun s => F (t :: s)))).
by apply: eq_bigr => z _; rewrite IH.
Qed.

Lemma rises_between (f : seq bool -> R) a b : rises_in_order f -> rises_in_order (fun s => f (a ++ s ++ b)).
Proof. by move=> f_rises s s'; rewrite -!catA /= !catA -!catA /=; rewrite (catA a) (catA a s); apply: f_rises. Qed.

(* A canary has a label, and is shown or not. *)
Definition canary_weights (canary : bool * bool -> law R S) (c : bool * bool) := labelled c.1 (canary c).

(* At least the shown ones, i observed and j unobserved ones in all, may be put to the ends. *)
Lemma shown_at_the_ends (f : seq bool -> R) (canary : bool * bool -> law R S) (bs cs : seq bool) i j :
  rises_in_order f -> (count id bs <= i <= size bs)%N -> (count id cs <= j <= size cs)%N ->
  draws (map (canary_weights canary) ([seq (true, h) | h <- bs] ++ [seq (false, h) | h <- cs]))
    (fun s : seq T => f (labels (pool score s))) <=
  draws (map (canary_weights canary) (nseq (size bs - i) (true, false) ++ nseq (size cs - j) (false, false)))
    (fun s : seq T => f (nseq i true ++ labels (pool score s) ++ nseq j false)).
Proof.
move=> f_rises /andP[bs_i i_bs] /andP[cs_j j_cs]; set lab := canary_weights canary.
pose first (b : bool) n (hs : seq bool) := nseq (count id hs) (b, true) ++ nseq (n - count id hs) (b, false).
have split_all (b : bool) n hs : (count id hs <= n <= size hs)%N ->
    perm_eq [seq (b, h) | h <- hs] (first b n hs ++ nseq (size hs - n) (b, false)).
  move=> /andP[hs_n n_hs]; rewrite /first -catA -nseqD addnBAC // subnKC //.
  apply: perm_trans (perm_map _ (perm_of_bools hs)) _; rewrite map_cat !map_nseq.
  by rewrite -(canRL (addKn _) (count_predC id hs)).
set F := fun s : seq T => _.
have F_sym : symmetric_in F := symmetric_pool score f.
rewrite (@draws_perm R T _ lab _ ((first true i bs ++ first false j cs) ++
  (nseq (size bs - i) (true, false) ++ nseq (size cs - j) (false, false)))) //; last first.
  apply: perm_trans (perm_cat (split_all true i bs _) (split_all false j cs _)) _.
  - by rewrite bs_i.
  - by rewrite cs_j.
  exact/permPl/perm_catACA.
rewrite [X in draws X F]map_cat; apply: draws_prefix.
  by move=> m /List.in_map_iff [c [<- _]]; apply: labelled_total.
move=> s s' s_drawn.
have labels_s : map fst s = nseq i true ++ nseq j false.
  by rewrite (drawn_labels s_drawn) /first !map_cat !map_nseq /= -!nseqD !subnKC.
pose u1 := take i s; pose u2 := drop i s.
have u1_labels : map fst u1 = nseq i true by rewrite map_take labels_s take_size_cat // size_nseq.
have u2_labels : map fst u2 = nseq j false by rewrite map_drop labels_s drop_size_cat // size_nseq.
pose whole := pool score u1 ++ sort (@before R) (pool score s') ++ pool score u2.
have labels_whole : labels (pool score (s ++ s')) = labels whole.
  congr (map _ _); apply/(perm_sortP (@before_total R) (@before_trans R) (@before_anti R)).
  rewrite -{1}(cat_take_drop i s) /pool !map_cat -catA perm_cat2l perm_catC perm_cat2r perm_sym.
  exact/permEl/perm_sort.
rewrite /F labels_whole; apply: le_trans (sort_lowers f_rises _) _.
  have all_u1 a : a \in pool score u1 -> a.1.
    case/mapP => c c_u1 ->; have : c.1 \in map fst u1 by apply: map_f.
    by rewrite u1_labels => /nseqP[].
  have all_u2 a : a \in pool score u2 -> ~~ a.1.
    case/mapP => c c_u2 ->; have : c.1 \in map fst u2 by apply: map_f.
    by rewrite u2_labels => /nseqP[->].
  rewrite /justified !pairwise_cat; apply/and5P; split.
  - by apply/allrelP => a b /all_u1->.
  - by apply/(pairwiseP (false, 0)) => n m n_s m_s _; rewrite all_u1 // mem_nth.
  - by apply/allrelP => a b _ /all_u2->; rewrite orbT.
  - rewrite (sub_pairwise (r := @before R)) // => [a b ->|]; rewrite ?orbT //.
    by rewrite -sorted_pairwise; [apply: sort_sorted; apply: before_total | apply: before_trans].
  - by apply/(pairwiseP (false, 0)) => n m n_s m_s _; rewrite (all_u2 (nth _ _ m)) ?orbT // mem_nth.
rewrite /whole !map_cat /pool -!map_comp (@eq_map _ _ _ fst) // u1_labels (@eq_map _ _ _ fst) // u2_labels.
exact: lexx.
Qed.

(* The mean over k observed and k0 unobserved independent scores. *)
Theorem rising_in_the_order (E delta : R) k k0 (pairs : seq (nat * nat)) (P Q : law R S) f :
  1 <= E -> 0 <= delta <= 1 -> all (fun pair => (pair.1 <= k) && (pair.2 <= k0))%N pairs ->
  private E delta P Q -> rises_in_order f ->
  mean (iid P k) (fun x => mean (iid Q k0) (fun y => f (pooled x y))) <= worst_mean E delta k k0 pairs f.
Proof.
move=> E_ge1 delta_ok pairs_ok PQ f_rises.
have [shown [side mixture]] := shown_or_on_a_side E_ge1 delta_ok PQ.
pose rest_mass b z := \sum_c rate E b c * side c z.
have rate_pos b c := rate_ge0 b c E_ge1.
have rest_ge0 b z : 0 <= rest_mass b z by apply: sumr_ge0 => c _; rewrite mulr_ge0 ?mass_ge0.
have rest_sum b : \sum_z rest_mass b z = 1.
  rewrite exchange_big big_bool /= -!big_distrr /= !mass_sum !mulr1 /rate.
  have E1 : 1 + E != 0 by rewrite gt_eqF // addr_gt0 ?ltr01 // (lt_le_trans ltr01).
  by case: b; rewrite /= -mulrDl ?[E + 1]addrC divff.
pose rest b := Law (rest_ge0 b) (rest_sum b).
pose canary (c : bool * bool) := if c.2 then shown c.1 else rest c.1.
pose lab := canary_weights canary.
pose share (h : bool) := if h then delta else 1 - delta.
pose F (s : seq T) := f (labels (pool score s)).
have -> : mean (iid P k) (fun x => mean (iid Q k0) (fun y => f (pooled x y))) =
    draws (nseq k (labelled true P) ++ nseq k0 (labelled false Q)) F.
  rewrite draws_iid; apply: eq_bigr => x _; congr (_ * _).
  rewrite -[nseq k0 _]cats0 draws_iid; apply: eq_bigr => y _; congr (_ * _).
  by rewrite /= cats0 /F /pooled /pool map_cat -!map_comp.
have mix b (t : T) : labelled b (if b then P else Q) t = \sum_h share h * lab (b, h) t.
  rewrite big_bool /lab /canary_weights /canary /= mixture /=.
  by rewrite mulrDr !(mulrCA (_ == _)%:R).
have -> : draws (nseq k (labelled true P) ++ nseq k0 (labelled false Q)) F =
   \sum_(bs : k.-tuple bool) (\prod_(h <- bs) share h) * (\sum_(cs : k0.-tuple bool) (\prod_(h <- cs) share h) *
     draws (map lab ([seq (true, h) | h <- bs] ++ [seq (false, h) | h <- cs])) F).
  rewrite (@draws_mixtures _ _ _ share (fun h => lab (true, h)) _ _ [::] _ _ (mix true)); apply: eq_bigr => bs _.
  congr (_ * _); rewrite /= -[nseq k0 _]cats0.
  rewrite (@draws_mixtures _ _ _ share (fun h => lab (false, h)) _ _ _ _ _ (mix false)); apply: eq_bigr => cs _.
  by rewrite cats0 map_cat -!map_comp.
pose bound i j := given_shown E k k0 (rounded_up k k0 pairs i j) f.
have share_ge0 n (hs : n.-tuple bool) : 0 <= \prod_(h <- hs) share h.
  by case/andP: delta_ok => ge0 le1; apply: prodr_ge0 => -[]; rewrite /= ?subr_ge0.
apply: (@le_trans _ _ (\sum_(bs : k.-tuple bool) (\prod_(h <- bs) share h) *
    (\sum_(cs : k0.-tuple bool) (\prod_(h <- cs) share h) * bound (count id bs) (count id cs)))); last first.
  rewrite (by_count share k (fun i => \sum_(cs : k0.-tuple bool) (\prod_(h <- cs) share h) * bound i (count id cs))).
  rewrite /worst_mean; apply: ler_sum => i _; rewrite (by_count share k0 (bound i)) big_distrr.
  by apply: ler_sum => j _; rewrite /= mulrA; apply: lexx.
apply: ler_sum => bs _; apply: ler_wpmul2l => //; apply: ler_sum => cs _; apply: ler_wpmul2l => //.
have size_bs := size_tuple bs; have size_cs := size_tuple cs.
rewrite /bound; set pair := rounded_up _ _ _ _ _.
have [bs_pair cs_pair] : (count id bs <= pair.1 <= k)%N /\ (count id cs <= pair.2 <= k0)%N.
  rewrite /pair /rounded_up; set enough := fun pair : nat * nat => _.
  case: (boolP (has enough pairs)) => [found|]; last first.
    move/hasNfind->; rewrite nth_default //= !leqnn !andbT.
    by have := count_size id bs; have := count_size id cs; rewrite size_bs size_cs.
  have /andP[-> ->] := nth_find (k, k0) found.
  have in_range : (find enough pairs < size pairs)%N by rewrite -has_find.
  by have /andP[-> ->] := allP pairs_ok _ (mem_nth (k, k0) in_range).
apply: le_trans (@shown_at_the_ends f canary bs cs pair.1 pair.2 f_rises _ _) _; rewrite ?size_bs ?size_cs //.
rewrite map_cat !map_nseq /given_shown /order_mean.
set k' := (k - pair.1)%N; set k0' := (k0 - pair.2)%N.
rewrite ler_pdivl_mulr ?ltr0n ?bin_gt0 ?leq_addr // mulrC.
have f'_rises := rises_between (nseq pair.1 true) (nseq pair.2 false) f_rises.
exact: (@order_of_sides R (rate E) rate_pos (rate_right E_ge1) S score side (rest true) (rest false)
  (fun z => erefl) (fun z => erefl) _ k' k0' f'_rises).
Qed.
End Unobserved.

(* What the code walks over. Each canary is observed with the same probability [share], on the condition that k are.
   Then the size of the high side is binomial, and given it labels are independent. *)
Section Walk.
Variable R : realFieldType.

Lemma label_sum_of_sides (a : bool -> R) rates sides f :
  label_sum (fun b c => a c * rates b c) sides f = (\prod_(c <- sides) a c) * label_sum rates sides f.
Proof.
elim: sides f => [|c sides IH] f; first by rewrite big_nil mul1r.
by rewrite /= big_cons big_distrr; apply: eq_bigr => b _; rewrite IH mulrACA.
Qed.

Lemma label_sum_eq rates sides f g : (forall s, size s = size sides -> f s = g s) ->
  label_sum rates sides f = label_sum rates sides g :> R.
Proof.
elim: sides f g => [|c sides IH] f g fg /=; first exact: fg.
by apply: eq_bigr => b _; congr (_ * _); apply: IH => s s_size; apply: fg; rewrite /= s_size.
Qed.

Lemma label_sum_scaled x rates sides f : label_sum rates sides (fun s => x * f s) = x * label_sum rates sides f :> R.
Proof.
elim: sides f => [//|c sides IH] f /=; rewrite big_distrr; apply: eq_bigr => b _.
by rewrite (IH (fun s => f (b :: s))) mulrCA.
Qed.

Lemma label_sum_of_labels (p : bool -> R) rates sides f :
  label_sum (fun b c => p b * rates b c) sides f = label_sum rates sides (fun s => (\prod_(b <- s) p b) * f s).
Proof.
elim: sides f => [|c sides IH] f; first by rewrite /= big_nil mul1r.
rewrite /=; apply: eq_bigr => b _; rewrite IH -mulrA mulrCA; congr (_ * _).
by rewrite -label_sum_scaled; apply: label_sum_eq => s _; rewrite big_cons mulrA.
Qed.

Lemma label_sum_rates rates rates' sides f : (forall b c, rates b c = rates' b c) ->
  label_sum rates sides f = label_sum rates' sides f :> R.
Proof.
move=> same; elim: sides f => [//|c sides IH] f /=; apply: eq_bigr => b _.
by rewrite same IH.
Qed.

Lemma prod_of_bools (p : bool -> R) s : \prod_(b <- s) p b = p true ^+ count id s * p false ^+ count negb s.
Proof.
elim: s => [|b s IH]; first by rewrite big_nil mulr1.
by rewrite big_cons IH; case: b; rewrite /= add0n exprS; [rewrite mulrA | rewrite mulrCA].
Qed.

(* P(high side). *)
Definition high_share (E share : R) : R := share * rate E true true + (1 - share) * rate E false true.

(* P(label), given the side. *)
Definition walk_rate (E share : R) (label side : bool) : R :=
  (if label then share else 1 - share) * rate E label side /
  (if side then high_share E share else 1 - high_share E share).

Theorem walk_of_labels (E share : R) k k0 f : 1 <= E -> 0 < share < 1 ->
  order_mean E k k0 f =
  (\sum_(N < (k + k0).+1) count_mass (k + k0) N (high_share E share) *
    label_sum (walk_rate E share) (nseq N true ++ nseq (k + k0 - N) false) (fun s => (count id s == k)%:R * f s)) /
  count_mass (k + k0) k share.
Proof.
move=> E_ge1 /andP[share_gt0 share_lt1]; set n := (k + k0)%N.
have E_gt0 : 0 < E := lt_le_trans ltr01 E_ge1.
have E1_gt0 : 0 < 1 + E by rewrite addr_gt0 ?ltr01.
have rest_gt0 : 0 < 1 - share by rewrite subr_gt0.
have high_gt0 : 0 < high_share E share.
  by rewrite addr_gt0 // mulr_gt0 // divr_gt0 ?ltr01.
have low_gt0 : 0 < 1 - high_share E share.
  have -> : 1 - high_share E share = share * rate E true false + (1 - share) * rate E false false.
    by rewrite !rate_rest // !mulrBr !mulr1 addrACA -opprD addrC [share + _]addrC subrK addrC.
  by rewrite addr_gt0 // mulr_gt0 // divr_gt0 ?ltr01.
pose p (b : bool) := if b then share else 1 - share.
pose a (c : bool) := if c then high_share E share else 1 - high_share E share.
have a_gt0 c : 0 < a c by case: c.
have count_gt0 : 0 < 'C(n, k)%:R :> R by rewrite ltr0n bin_gt0 leq_addr.
have mass_gt0 : 0 < share ^+ k * (1 - share) ^+ k0 by rewrite mulr_gt0 ?exprn_gt0.
set M := share ^+ k * (1 - share) ^+ k0 in mass_gt0.
pose inner s := (count id s == k)%:R * f s.
suff key : \sum_(N < n.+1) count_mass n N (high_share E share) *
    label_sum (walk_rate E share) (nseq N true ++ nseq (n - N) false) inner =
    (\sum_(N < n.+1) 'C(n, N)%:R * label_sum (rate E) (nseq N true ++ nseq (n - N) false) inner) * M.
  rewrite key /order_mean -/n /count_mass addKn -[X in _ = _ / X]mulrA -/M invfM mulrACA divff ?mulr1 //.
  exact: lt0r_neq0.
rewrite big_distrl /=; apply: eq_bigr => N _; rewrite /count_mass -!mulrA; congr (_ * _).
have -> : high_share E share ^+ N * ((1 - high_share E share) ^+ (n - N) *
    label_sum (walk_rate E share) (nseq N true ++ nseq (n - N) false) inner) =
    label_sum (fun b c => a c * walk_rate E share b c) (nseq N true ++ nseq (n - N) false)
      inner.
  by rewrite label_sum_of_sides big_cat /= !big_nseq !iter_mulr_1 mulrA.
rewrite (@label_sum_rates _ (fun b c => p b * rate E b c)) => [|b c]; last first.
  by rewrite [LHS]mulrC; apply: divfK; apply: lt0r_neq0 (a_gt0 c).
rewrite label_sum_of_labels [RHS]mulrC -label_sum_scaled; apply: label_sum_eq => s.
rewrite size_cat !size_nseq => s_size.
rewrite /inner; case: (eqVneq (count id s) k) => [s_k|]; last by rewrite !(mul0r, mulr0).
have -> : \prod_(b <- s) p b = share ^+ k * (1 - share) ^+ k0; last by [].
rewrite prod_of_bools s_k; congr (_ * _ ^+ _); apply/eqP; rewrite -(eqn_add2l k) -{1}s_k count_predC s_size subnKC //.
by have := ltn_ord N; rewrite ltnS.
Qed.

End Walk.
