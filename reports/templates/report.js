"use strict";
const filter = document.getElementById("filter");
const claims = [...document.querySelectorAll(".claims > li")];
const apply = () => {
  const chosen = Object.entries(Object.fromEntries(new FormData(filter))).filter(([, value]) => value);
  for (const claim of claims) claim.hidden = chosen.some(([name, value]) => claim.dataset[name] !== value);
  for (const group of document.querySelectorAll(".group")) group.hidden = !group.querySelector(".claims > li:not([hidden])");
  const shown = claims.filter((claim) => !claim.hidden).length;
  filter.querySelector("output").value = `${shown} of ${claims.length} shown`;
};
const open = () => {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!target) return;
  const claim = target.closest(".claims > li");
  if (claim && claim.hidden) { filter.reset(); apply(); }
  for (let fold = target.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
  target.scrollIntoView();
};
filter.addEventListener("change", apply);
filter.addEventListener("submit", (event) => event.preventDefault());
filter.addEventListener("reset", () => setTimeout(apply));
filter.hidden = false;
apply();
addEventListener("hashchange", open);
open();
// Paper cannot be opened.
let folded = [];
addEventListener("beforeprint", () => {
  folded = [...document.querySelectorAll("details:not([open])")];
  for (const fold of folded) fold.open = true;
});
addEventListener("afterprint", () => { for (const fold of folded) fold.open = false; });
