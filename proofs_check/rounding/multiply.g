@rnd = float<ieee_64,ne>;
h = rnd(ah * bh);
p1 rnd= ah * bl;
p2 rnd= al * bh;
t rnd= p1 + p2;
c rnd= low + t;
{ ah in [1,2] /\ |al| <= 1b-53 /\ |bl| <= 1b-53 /\ bh in [1,2] /\ low - (ah * bh - h) in [0,0]
 -> |(h + c) - (ah + al) * (bh + bl)| <= 9b-106 }
(h + c) - (ah + al) * (bh + bl) -> (c - (low + t)) + (t - (p1 + p2)) + (p1 - ah * bl) + (p2 - al * bh) - al * bl
 + (low - (ah * bh - h));
