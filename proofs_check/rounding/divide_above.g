@rnd = float<ieee_64,ne>;
q = rnd(ah / bh);
t rnd= q * bl;
c rnd= low + t;
e rnd= rh + rl;
d rnd= e / bh;
B = bh + bl;
A = ah + al;
P = q * B + (c - (low + t)) + (t - q * bl);
{ ah in [1,2] /\ |al| <= 1b-53 /\ |bl| <= 1b-53 /\ bh in [1,2] /\ q in [1,2] /\ |low| <= 1b-53 /\ |x| <= 12b-106
 /\ (rh + rl) - (A - P + x) in [0,0] -> |(q + d) - A / B| <= 52b-106 }
A - P -> (ah - q * bh) + al - q * bl - (c - (low + t)) - (t - q * bl);
ah - q * bh -> ((ah / bh) - q) * bh { bh <> 0 };
(q + d) - A / B -> (d - e / bh) + (e - (rh + rl)) / bh + (rh + rl) * (1 / bh - 1 / B)
 + ((rh + rl) - (A - P + x)) / B + x / B - (c - (low + t)) / B - (t - q * bl) / B { bh <> 0, B <> 0 };
1 / bh - 1 / B -> bl / (bh * B) { bh <> 0, B <> 0 };
