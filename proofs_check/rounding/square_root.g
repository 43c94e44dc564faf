@rnd = float<ieee_64,ne>;
r = rnd(sqrt(ah));
e rnd= rh + rl;
d rnd= e / (2 * r);
A = ah + al;
{ ah in [1,4] /\ |al| <= 1b-52 /\ |x| <= 24b-106 /\ A in [0.99,4.01]
 /\ (rh + rl) - (A - r * r + x) in [0,0] -> |(r + d) - sqrt(A)| <= 19b-106 }
(r + d) - sqrt(A) -> (d - e / (2 * r)) + (e - (rh + rl)) / (2 * r) + ((rh + rl) - (A - r * r + x)) / (2 * r)
 + x / (2 * r) + (r - sqrt(A)) * (r - sqrt(A)) / (2 * r) { r <> 0 };
r - sqrt(A) -> (r - sqrt(ah)) + (sqrt(ah) - sqrt(A));
sqrt(ah) - sqrt(A) -> (0 - al) / (sqrt(ah) + sqrt(A)) { sqrt(ah) + sqrt(A) <> 0 };
A - r * r -> al - (r - sqrt(ah)) * (r + sqrt(ah));
(rh + rl) -> ((rh + rl) - (A - r * r + x)) + (A - r * r) + x;
