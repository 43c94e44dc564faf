(* One run with a fair coin for each canary: lower_bounds.md, section 6, equation (4).

   Code: p_value in verify/audit/bounds/one_run.py.

   [E] stands for e^epsilon. B is binomial with r trials of probability E/(1 + E), and b j = P(B = j). *)

From mathcomp Require Import all_ssreflect ssrAC all_algebra.
From canaryproof Require Import probability.
Import Order.Theory GRing.Theory Num.Theory.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Local Open Scope ring_scope.

Section OneRun.
Variable R : realFieldType.

Definition point (E : R) (r j : nat) : R := 'C(r, j)%:R * E ^+ j / (1 + E) ^+ r.

Definition beta (E : R) (r v : nat) : R := \sum_(v <= j < r.+1) point E r j.

(* The bound of the probability of v right ones of r guesses on m canaries. *)
Definition p_value (m r v : nat) (E delta : R) : R :=
  beta E r v + (1 - beta E r v) * Num.min 1 (m%:R * delta * beta E r v / (v%:R * point E r v)).

Section Binomial.
Variables (E : R) (r : nat).
Hypothesis E_gt0 : 0 < E.
Let b := point E r.

Lemma E1_gt0 : 0 < 1 + E.
Proof. by rewrite addr_gt0 ?ltr01. Qed.

Lemma point_gt0 j : (j <= r)%N -> 0 < b j.
Proof. by move=> j_r; rewrite /b /point divr_gt0 ?mulr_gt0 ?exprn_gt0 ?E1_gt0 // ltr0n bin_gt0. Qed.

Lemma point_ge0 j : 0 <= b j.
Proof. by rewrite /b /point divr_ge0 ?mulr_ge0 ?exprn_ge0 ?(ltW E_gt0) ?(ltW E1_gt0) ?ler0n. Qed.

Lemma point_sum : \sum_(0 <= j < r.+1) b j = 1.
Proof.
rewrite /b /point -big_distrl /= big_mkord.
rewrite (eq_bigr (fun j : 'I_r.+1 => 1 ^+ (r - j) * E ^+ j *+ 'C(r, j))); last first.
  by move=> j _; rewrite expr1n mul1r mulr_natl.
by rewrite -exprDn divff // expf_neq0 // gt_eqF ?E1_gt0.
Qed.

(* (j + 1) P(B = j + 1) = e^epsilon (r - j) P(B = j). *)
Lemma point_next j : j.+1%:R * b j.+1 = E * (r - j)%:R * b j.
Proof.
rewrite /b /point !mulrA; congr (_ / _); rewrite -natrM mul_bin_left natrM exprS -!mulrA; congr (_).
by rewrite [in RHS]mulrCA; congr (_ * _); rewrite mulrCA.
Qed.

End Binomial.

(* From the inequalities between the probabilities of the numbers of right guesses to the bound. These are all the
   properties of b j = P(B = j) that are needed. *)
Section Counts.
Variables (E : R) (r : nat) (b : nat -> R).
Hypothesis E_gt0 : 0 < E.
Hypothesis point_gt0 : forall j, (j <= r)%N -> 0 < b j.
Hypothesis point_ge0 : forall j, 0 <= b j.
Hypothesis point_sum : \sum_(0 <= j < r.+1) b j = 1.
Hypothesis point_next : forall j, j.+1%:R * b j.+1 = E * (r - j)%:R * b j.

(* P(B = j + 1)/P(B = j) falls in j, also with the factors j + 1 and j. *)
Lemma ratio_falls i j k l : ((r - i) * l <= k * i.+1)%N -> b i.+1 * (l%:R * b j) <= b i * (E * k%:R * b j).
Proof.
move=> factors; rewrite -(ler_pmul2l (ltr0Sn R i)) [leLHS]mulrA point_next.
rewrite [leLHS](AC (3*2) (1*3*5*(2*4))) [leRHS](AC (1*(1*3)) (3*2*5*(1*4))) /= -!natrM [(_ * k)%N]mulnC.
by apply: ler_wpmul2l; rewrite ?ler_nat ?mulr_ge0 ?point_ge0 ?(ltW E_gt0).
Qed.

Lemma ratio_rises i j k l : (l * i.+1 <= (r - i) * k)%N -> b i * (E * l%:R * b j) <= b i.+1 * (k%:R * b j).
Proof.
move=> factors; rewrite -(ler_pmul2l (ltr0Sn R i)) [leRHS]mulrA point_next.
rewrite [leRHS](AC (3*2) (1*3*5*(2*4))) [leLHS](AC (1*(1*3)) (3*2*5*(1*4))) /= -!natrM [(_ * l)%N]mulnC.
by apply: ler_wpmul2l; rewrite ?ler_nat ?mulr_ge0 ?point_ge0 ?(ltW E_gt0).
Qed.

Let below j := \sum_(0 <= i < j) b i.
Let above j := \sum_(j <= i < r.+1) b i.

(* P(B >= j)/(j P(B = j)) falls in j. *)
Lemma above_falls j : (0 < j < r)%N -> above j.+1 / (j.+1%:R * b j.+1) <= above j / (j%:R * b j).
Proof.
move=> /andP[j_gt0 j_r].
have j_b : 0 < j%:R * b j by rewrite mulr_gt0 ?ltr0n // point_gt0 // ltnW.
have j1_b : 0 < j.+1%:R * b j.+1 by rewrite mulr_gt0 ?ltr0n // point_gt0.
rewrite ler_pdivr_mulr // mulrAC ler_pdivl_mulr //.
rewrite /above big_add1 /= [X in _ <= X * _]big_nat_recr ?(ltnW j_r) //= mulrDl.
apply: ler_paddr; first by rewrite mulr_ge0 ?point_ge0 // ltW.
rewrite !big_distrl /= !big_nat; apply: ler_sum => i /andP[j_i i_r].
by rewrite point_next; apply: ratio_falls; apply: leq_mul; rewrite ?leq_sub2l // leqW.
Qed.

(* P(B < j)/(j P(B = j)) rises in j. *)
Lemma below_rises j : (0 < j < r)%N -> below j / (j%:R * b j) <= below j.+1 / (j.+1%:R * b j.+1).
Proof.
move=> /andP[j_gt0 j_r].
have j_b : 0 < j%:R * b j by rewrite mulr_gt0 ?ltr0n // point_gt0 // ltnW.
have j1_b : 0 < j.+1%:R * b j.+1 by rewrite mulr_gt0 ?ltr0n // point_gt0.
rewrite ler_pdivr_mulr // mulrAC ler_pdivl_mulr //.
rewrite /below [X in _ <= X * _]big_nat_recl //= mulrDl.
apply: ler_paddl; first by rewrite mulr_ge0 ?point_ge0 // ltW.
rewrite !big_distrl /= !big_nat; apply: ler_sum => i /andP[_ i_j].
by rewrite point_next; apply: ratio_rises; apply: leq_mul; rewrite ?leq_sub2l // ltnW.
Qed.

(* The weight of D_u is V (u + 1)/((u + 1) P(B = u + 1)). *)
Variable v : nat.
Hypothesis v_ok : (0 < v <= r)%N.
Let bt := above v.
Let V j := if (j <= v)%N then bt * below j else (1 - bt) * above j.
Let weight u := V u.+1 / (u.+1%:R * b u.+1).

Lemma below_v : below v = 1 - bt.
Proof.
have v_r : (v <= r.+1)%N by case/andP: v_ok => _ /leqW.
by rewrite -point_sum (big_cat_nat _ _ _ (leq0n v) v_r) addrK.
Qed.

Lemma above_end : above r.+1 = 0.
Proof. by rewrite /above big_geq. Qed.

Lemma bt_ge0 : 0 <= bt.
Proof. by apply: sumr_ge0 => i _; apply: point_ge0. Qed.

Lemma bt_le1 : bt <= 1.
Proof. by rewrite -subr_ge0 -below_v; apply: sumr_ge0 => i _; apply: point_ge0. Qed.

(* What the weights are for: they turn the D_u into P(W >= v) - P(B >= v). *)
Lemma V_step j : (j <= r)%N -> V j - V j.+1 = b j * ((v <= j)%N%:R - bt).
Proof.
move=> j_r; rewrite /V; case: (ltnP j v) => [j_v|v_j].
  by rewrite (ltnW j_v) /below big_nat_recr //= [bt * (_ + _)]mulrDr opprD addrA subrr !sub0r mulrN mulrC.
have -> : (if (j <= v)%N then bt * below j else (1 - bt) * above j) = (1 - bt) * above j.
  by case: leqP => // j_v; have -> : j = v by [apply/eqP; rewrite eqn_leq j_v]; rewrite below_v mulrC.
by rewrite -mulrBr /above big_ltn // addrK mulrC.
Qed.

Lemma weight_ge0 u : 0 <= weight u.
Proof.
apply: divr_ge0; last by apply: mulr_ge0; rewrite ?ler0n.
by rewrite /V; case: ifP => _; apply: mulr_ge0; rewrite ?bt_ge0 ?subr_ge0 ?bt_le1 // sumr_ge0.
Qed.

(* The largest weight. *)
Lemma weight_most u : (u < r)%N -> weight u <= (1 - bt) * bt / (v%:R * b v).
Proof.
move=> u_r; case/andP: v_ok => v_gt0 v_r; rewrite /weight /V; case: (leqP u.+1 v) => [u_v|v_u].
  rewrite -below_v [X in _ <= X / _]mulrC -!mulrA; apply: ler_wpmul2l; first exact: bt_ge0.
  elim: v u_v v_r {v_gt0} => // w IH; rewrite leq_eqVlt => /orP[/eqP[<-]|u_w] w_r //.
  apply: le_trans (IH u_w (ltnW w_r)) (below_rises _); rewrite w_r andbT.
  exact: leq_ltn_trans (leq0n u) u_w.
rewrite -!mulrA; apply: ler_wpmul2l; first by rewrite subr_ge0 bt_le1.
elim: u u_r v_u => [|w IH] w_r; first by rewrite ltnS leqNgt v_gt0.
rewrite ltnS leq_eqVlt => /orP[/eqP v_w|v_w].
  by rewrite -v_w; apply: above_falls; rewrite v_gt0 v_w.
by apply: le_trans (above_falls _) (IH (ltnW w_r) v_w).
Qed.

(* p j = P(W = j), and D_u = (u + 1) p_(u + 1) - e^epsilon (r - u) p_u. *)
Variable p : nat -> R.
Hypothesis p_ge0 : forall j, 0 <= p j.
Hypothesis p_sum : \sum_(0 <= j < r.+1) p j = 1.
Let D u := u.+1%:R * p u.+1 - E * (r - u)%:R * p u.

Lemma weighted_sum : \sum_(0 <= u < r) D u * weight u = \sum_(v <= j < r.+1) p j - bt.
Proof.
have b_gt0 j : (j <= r)%N -> b j != 0 by move=> j_r; rewrite gt_eqF // point_gt0.
have -> : \sum_(0 <= u < r) D u * weight u =
    \sum_(0 <= u < r) p u.+1 * (V u.+1 / b u.+1) - \sum_(0 <= u < r) p u * (V u.+1 / b u).
  rewrite -sumrB !big_nat; apply: eq_bigr => u /andP[_ u_r].
  rewrite /D mulrBl; congr (_ - _); rewrite /weight.
    by rewrite invfM [LHS](AC (2*(1*2)) ((1*4)*(2*(3*5)))) /= divff ?mul1r // pnatr_eq0.
  rewrite point_next invfM [LHS](AC (2*(1*2)) ((1*4)*(2*(3*5)))) /= divff ?mul1r //.
  by rewrite mulf_neq0 ?gt_eqF // ltr0n subn_gt0.
have -> : \sum_(0 <= u < r) p u.+1 * (V u.+1 / b u.+1) = \sum_(0 <= j < r.+1) p j * (V j / b j).
  by rewrite [RHS]big_nat_recl // /V /below leq0n [X in bt * X]big_geq // mulr0 mul0r mulr0 add0r.
have -> : \sum_(0 <= u < r) p u * (V u.+1 / b u) = \sum_(0 <= j < r.+1) p j * (V j.+1 / b j).
  rewrite [RHS]big_nat_recr //= /V leqNgt ltnS; case/andP: v_ok => _ ->.
  by rewrite above_end mulr0 mul0r mulr0 addr0.
rewrite -sumrB (eq_big_nat _ _ (F2 := fun j => p j * (v <= j)%N%:R - p j * bt)); last first.
  move=> j /andP[_ j_r]; rewrite -mulrBr -mulrBl V_step // -mulrBr mulrAC divff ?mul1r //.
  exact: b_gt0.
rewrite sumrB -big_distrl /= p_sum mul1r; congr (_ - _).
have v_r : (v <= r.+1)%N by case/andP: v_ok => _ /leqW.
rewrite (big_cat_nat _ _ _ (leq0n v) v_r) /= [X in X + _]big_nat big1 ?add0r; last first.
  by move=> j /andP[_ j_v]; rewrite leqNgt j_v mulr0.
by apply: eq_big_nat => j /andP[v_j _]; rewrite v_j mulr1.
Qed.

(* If no set of numbers has sum D_u above [c], P(W >= v) is at most P(B >= v) and c times the largest weight. *)
Lemma tail_of_counts c : (forall U : pred nat, \sum_(0 <= u < r | U u) D u <= c) ->
  \sum_(v <= j < r.+1) p j <= bt + (1 - bt) * bt / (v%:R * b v) * c.
Proof.
move=> sums; rewrite -ler_subl_addl -weighted_sum.
set most := _ / _.
have most_ge0 : 0 <= most.
  apply: divr_ge0; first by rewrite mulr_ge0 ?bt_ge0 ?subr_ge0 ?bt_le1.
  by apply: mulr_ge0; rewrite ?ler0n.
apply: (@le_trans _ _ (most * \sum_(0 <= u < r | 0 < D u) D u)); last exact: ler_wpmul2l.
rewrite [leRHS]mulrC big_distrl [leRHS]big_mkcond /= !big_nat; apply: ler_sum => u /andP[_ u_r].
case: ltrP => [D_gt0|D_le0]; first by rewrite ler_pmul2l // weight_most.
by rewrite mulr_le0_ge0 ?weight_ge0.
Qed.

End Counts.

(* m canaries, each included by a fair coin of its own. What comes out of the run is one of the finitely many values of
   S, with a law [M c] that depends on all the coins c. *)
Section Coins.
Variables (m r : nat) (S : finType).

Definition coins := {ffun 'I_m -> bool}.

(* All 2^m outcomes are equally likely. *)
Definition average (f : coins -> R) : R := (\sum_c f c) / (2 ^ m)%N%:R.

(* Coin j turned over. *)
Definition turned (j : 'I_m) (c : coins) : coins := [ffun i => if i == j then ~~ c i else c i].

(* The mechanism is (epsilon, delta)-private in every coin. *)
Definition private_in_every_coin (E delta : R) (M : coins -> law R S) :=
  forall c j (A : pred S), Pr (M c) A <= E * Pr (M (turned j c)) A + delta.

(* Guesses are decided by what came out. Of each canary it is guessed that it took part, that it did not, or nothing;
   there are always r guesses. [right] is the number of right ones. *)
Variable guess : S -> 'I_m -> option bool.
Hypothesis number : forall s, (\sum_(j < m) (guess s j != None) = r)%N.

Definition right (c : coins) (s : S) : nat := \sum_(j < m) (guess s j == Some (c j)).

Lemma turnedK j : involutive (turned j).
Proof. by move=> c; apply/ffunP => i; rewrite !ffunE; case: (i == j); rewrite ?negbK. Qed.

Lemma average_le f g : (forall c, f c <= g c) -> average f <= average g.
Proof. by move=> fg; rewrite /average ler_wpmul2r ?invr_ge0 ?ler0n //; apply: ler_sum => c _. Qed.

Lemma average_turned j f : average (fun c => f (turned j c)) = average f.
Proof. by rewrite /average [in RHS](reindex_inj (inv_inj (turnedK j))). Qed.

Lemma average_const x : average (fun=> x) = x.
Proof.
rewrite /average sumr_const card_ffun card_bool card_ord -[x *+ _]mulr_natr mulfK //.
by rewrite pnatr_eq0 expn_eq0.
Qed.

Lemma wrong_or_right (c : coins) s : (\sum_(j < m) (guess s j == Some (~~ c j)) + right c s = r)%N.
Proof.
rewrite -(number s) /right -big_split /=; apply: eq_bigr => j _.
by case: (guess s j) => [g|] //; case: g; case: (c j).
Qed.

Lemma right_le c s : (right c s <= r)%N.
Proof. by rewrite -(wrong_or_right c s) leq_addl. Qed.

(* Turning a coin over makes a right guess on it wrong, and leaves the others. *)
Lemma right_turned j (c : coins) s : guess s j = Some (c j) -> right c s = (right (turned j c) s).+1.
Proof.
move=> guessed; rewrite /right (bigD1 j) //= [in RHS](bigD1 j) //= guessed eqxx !ffunE eqxx.
have -> : (Some (c j) == Some (~~ c j)) = false by case: (c j).
congr (_.+1); apply: eq_bigr => i /negbTE i_j.
by rewrite ffunE i_j.
Qed.

Variables (E delta : R) (M : coins -> law R S).
Hypothesis private : private_in_every_coin E delta M.
Hypothesis E_gt0 : 0 < E.

(* P(W = u), W the number of right guesses. *)
Let p (u : nat) := average (fun c => Pr (M c) (fun s => right c s == u)).

Lemma right_mass_ge0 u : 0 <= p u.
Proof. by rewrite /p /average divr_ge0 ?ler0n //; apply: sumr_ge0 => c _; apply: Pr_ge0. Qed.

Lemma right_tail w : \sum_(w <= j < r.+1) p j = average (fun c => Pr (M c) (fun s => w <= right c s)%N).
Proof.
rewrite /p /average -big_distrl exchange_big /=; congr (_ / _); apply: eq_bigr => c _.
rewrite [RHS]/Pr (eq_bigr (fun u => \sum_s (if right c s == u then M c s else 0))); last first.
  by move=> u _; rewrite /Pr big_mkcond.
rewrite exchange_big [RHS]big_mkcond; apply: eq_bigr => s _ /=.
case: leqP => [w_right|right_w]; last first.
  rewrite big_nat_cond; apply: big1 => u /andP[/andP[w_u _] _]; rewrite ltn_eqF //; exact: leq_trans w_u.
have right_r : (right c s < r.+1)%N by rewrite ltnS right_le.
rewrite (bigD1_seq (right c s)) ?iota_uniq ?mem_index_iota ?w_right //= eqxx big1 ?addr0 // => u.
by rewrite eq_sym => /negbTE ->.
Qed.

Lemma right_mass_sum : \sum_(0 <= j < r.+1) p j = 1.
Proof.
by rewrite right_tail /average (eq_bigr (fun=> 1)) => [|c _]; [apply: average_const | apply: Pr_all].
Qed.

(* Privacy in the coin of canary j: it is guessed right, with u others, or wrong with u others. *)
Lemma one_canary j (U : pred nat) :
  average (fun c => Pr (M c) (fun s => (guess s j == Some (c j)) && U (right c s).-1)) <=
  E * average (fun c => Pr (M c) (fun s => (guess s j == Some (~~ c j)) && U (right c s))) + delta.
Proof.
rewrite -(average_turned j (fun c => Pr (M c) (fun s => (guess s j == Some (~~ c j)) && U (right c s)))).
rewrite -[X in _ <= _ + X]average_const /average mulrA big_distrr /= -mulrDl -big_split /=.
apply: average_le => c; apply: le_trans (private c j _) _; rewrite ler_add2r ler_pmul2l //.
apply: Pr_sub => s /andP[/eqP guessed u]; rewrite ffunE eqxx negbK guessed eqxx /=.
by move: u; rewrite (right_turned guessed).
Qed.

(* Sums over the numbers of right guesses have one term for each outcome. *)
Lemma one_term (F : nat -> R) (U : pred nat) w :
  \sum_(0 <= u < r | U u) F u * (w == u)%:R = if (w < r)%N && U w then F w else 0.
Proof.
case: ltnP => w_r /=.
  rewrite big_mkord big_mkcond (bigD1 (Ordinal w_r)) //= eqxx mulr1 big1 ?addr0 // => u /negbTE u_w.
  by case: ifP => // _; rewrite (_ : (w == u) = false) ?mulr0 // eq_sym -[RHS]u_w.
rewrite big_nat_cond big1 // => u /andP[/andP[_ u_r] _].
by rewrite (_ : (w == u) = false) ?mulr0 // gtn_eqF // (leq_trans u_r).
Qed.

(* The sum over the canaries counts right guesses, *)
Lemma right_sum c (U : pred nat) :
  \sum_(j < m) Pr (M c) (fun s => (guess s j == Some (c j)) && U (right c s).-1) =
  \sum_(0 <= u < r | U u) u.+1%:R * Pr (M c) (fun s => right c s == u.+1).
Proof.
under [LHS]eq_bigr => j _ do rewrite Pr_mean /mean.
under [RHS]eq_bigr => u _ do rewrite Pr_mean /mean big_distrr /=.
rewrite exchange_big [RHS]exchange_big /=; apply: eq_bigr => s _; rewrite -big_distrr /=.
under [RHS]eq_bigr => u _ do rewrite mulrCA.
rewrite -[RHS]big_distrr /=; congr (_ * _).
case W: (right c s) => [|w] /=.
  rewrite [RHS]big1 => [|u _]; last by rewrite mulr0.
  apply: big1 => j _; rewrite (_ : _ && _ = false) //; apply/negbTE; rewrite negb_and; apply/orP; left.
  by apply/negP => guessed; move: W; rewrite /right (bigD1 j) //= guessed.
under [RHS]eq_bigr => u _ do rewrite eqSS.
rewrite one_term; have -> /= : (w < r)%N by rewrite -W right_le.
case: (U w); last by apply: big1 => j _; rewrite andbF.
by under eq_bigr => j _ do rewrite andbT; rewrite -natr_sum -W.
Qed.

(* and wrong ones. *)
Lemma wrong_sum c (U : pred nat) :
  \sum_(j < m) Pr (M c) (fun s => (guess s j == Some (~~ c j)) && U (right c s)) =
  \sum_(0 <= u < r | U u) (r - u)%:R * Pr (M c) (fun s => right c s == u).
Proof.
under [LHS]eq_bigr => j _ do rewrite Pr_mean /mean.
under [RHS]eq_bigr => u _ do rewrite Pr_mean /mean big_distrr /=.
rewrite exchange_big [RHS]exchange_big /=; apply: eq_bigr => s _; rewrite -big_distrr /=.
under [RHS]eq_bigr => u _ do rewrite mulrCA.
rewrite -[RHS]big_distrr /=; congr (_ * _); rewrite one_term.
have wrong : (\sum_(j < m) (guess s j == Some (~~ c j)) = r - right c s)%N by rewrite -(wrong_or_right c s) addnK.
case: (U _); last by rewrite andbF; apply: big1 => j _; rewrite andbF.
under eq_bigr => j _ do rewrite andbT; rewrite -natr_sum wrong andbT.
by case: ltnP => // r_right; have /eqP -> : (r - right c s == 0)%N by rewrite subn_eq0.
Qed.

Lemma sums (U : pred nat) :
  \sum_(0 <= u < r | U u) (u.+1%:R * p u.+1 - E * (r - u)%:R * p u) <= m%:R * delta.
Proof.
rewrite sumrB ler_subl_addr.
have turn f g : (forall c, f c = g c) -> average f = average g.
  by move=> fg; rewrite /average (eq_bigr _ (fun c _ => fg c)).
have sum_average (I : Type) (s : seq I) (A : pred I) (F : I -> coins -> R) :
    \sum_(i <- s | A i) average (F i) = average (fun c => \sum_(i <- s | A i) F i c).
  by rewrite /average -big_distrl /= exchange_big.
have scale x f : x * average f = average (fun c => x * f c) by rewrite /average mulrA big_distrr.
rewrite (eq_bigr (fun u => average (fun c => u.+1%:R * Pr (M c) (fun s => right c s == u.+1)))); last first.
  by move=> u _; rewrite /p scale.
rewrite sum_average (turn _ _ (fun c => esym (right_sum c U))) -sum_average.
rewrite (eq_bigr (fun u => E * average (fun c => (r - u)%:R * Pr (M c) (fun s => right c s == u)))) /=; last first.
  by move=> u _; rewrite /p -mulrA scale.
rewrite -big_distrr /= [X in E * X]sum_average (turn _ _ (fun c => esym (wrong_sum c U))) -[X in E * X]sum_average.
have -> : m%:R * delta = \sum_(j < m) delta by rewrite sumr_const card_ord mulr_natl.
rewrite addrC big_distrr -big_split /=.
by apply: ler_sum => j _; apply: one_canary.
Qed.

End Coins.

(* Equation (4): the probability of at least v right ones of r guesses, r fixed in advance, and all guesses decided by
   what came out. *)
Theorem one_run (m r v : nat) (S : finType) (guess : S -> 'I_m -> option bool) (E delta : R) (M : coins m -> law R S) :
  (forall s, \sum_(j < m) (guess s j != None) = r)%N ->
  0 < E -> private_in_every_coin E delta M -> (0 < v <= r)%N ->
  average (fun c => Pr (M c) (fun s => v <= right guess c s)%N) <= p_value m r v E delta.
Proof.
move=> number E_gt0 private v_ok.
pose p (u : nat) := average (fun c => Pr (M c) (fun s => right guess c s == u)).
have p_ge0 : forall j, 0 <= p j by exact: right_mass_ge0.
have p_sum : \sum_(0 <= j < r.+1) p j = 1 by exact: right_mass_sum number M.
rewrite -(right_tail number) /p_value.
have -> : beta E r v = \sum_(v <= i < r.+1) point E r i by [].
have gt0 := point_gt0 E_gt0; have ge0 := point_ge0 r E_gt0; have sum1 := point_sum r E_gt0.
set bt := \sum_(v <= i < r.+1) point E r i.
have bt_le1 : bt <= 1.
  case/andP: v_ok => _ /leqW v_r; rewrite -(sum1) (big_cat_nat _ _ _ (leq0n v) v_r) /= ler_addr.
  by apply: sumr_ge0 => i _.
rewrite minElt; case: ifP => _.
  rewrite mulr1 addrC subrK -p_sum; case/andP: v_ok => _ /leqW v_r.
  by rewrite (big_cat_nat _ _ _ (leq0n v) v_r) /= ler_addr sumr_ge0.
apply: le_trans (tail_of_counts E_gt0 (@gt0 r) ge0 sum1 (point_next E r) v_ok p_sum (sums number private E_gt0)) _.
by rewrite -/bt ler_add2l [leLHS](AC (3*2) (1*(4*5*2*3))).
Qed.

(* At delta = 0 the bound is P(B >= v): Steinke, Nasr and Jagielski (arXiv 2305.08846), Theorem 5.2. *)
Corollary one_run_pure (m r v : nat) (S : finType) (guess : S -> 'I_m -> option bool) (E : R) (M : coins m -> law R S) :
  (forall s, \sum_(j < m) (guess s j != None) = r)%N ->
  0 < E -> private_in_every_coin E 0 M -> (0 < v <= r)%N ->
  average (fun c => Pr (M c) (fun s => v <= right guess c s)%N) <= beta E r v.
Proof.
move=> number E_gt0 private v_ok; apply: le_trans (one_run number E_gt0 private v_ok) _.
by rewrite /p_value mulr0 !mul0r minElt ltr10 mulr0 addr0.
Qed.

End OneRun.
