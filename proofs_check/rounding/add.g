@rnd = float<ieee_64,ne>;
sh = rnd(ah + bh);
th = rnd(al + bl);
r rnd= sl + th;
vh = rnd(sh + r);
w rnd= vl + tl;
{ ah in [1,2] /\ |al| <= 1b-53 /\ |bl| <= 1b-53 /\ bh in [-2,2]
 /\ sl - (ah + bh - sh) in [0,0] /\ tl - (al + bl - th) in [0,0] /\ vl - (sh + r - vh) in [0,0]
 -> |(vh + w) - ((ah + al) + (bh + bl))| <= 6b-106 }
(vh + w) - ((ah + al) + (bh + bl)) -> (w - (vl + tl)) + (r - (sl + th)) + (vl - (sh + r - vh))
 + (sl - (ah + bh - sh)) + (tl - (al + bl - th));
