"use strict";
document.documentElement.classList.add("scripted");
const filter = document.getElementById("filter");
const groups = [...document.querySelectorAll(".group")];
const claims = [...document.querySelectorAll(".claims > li")].map((item) => ({
  item, fold: item.firstElementChild, suite: item.dataset.suite, verdict: item.parentElement.dataset.verdict,
  document: item.closest(".group").dataset.document, text: item.textContent.toLowerCase(),
}));
const verdicts = [...new Set(claims.map((claim) => claim.verdict))];
const named = () => document.getElementById(decodeURIComponent(location.hash.slice(1)));
const count = (place, chosen) => { place.textContent = chosen.length.toLocaleString("en"); };
const apply = () => {
  const chosen = Object.entries(Object.fromEntries(new FormData(filter))).filter(([, value]) => value.trim());
  const words = filter.elements.search.value.toLowerCase().split(/\s+/);
  const exact = chosen.filter(([name]) => name !== "search");
  // A claim that the address names is shown whatever is chosen.
  const target = named();
  for (const claim of claims) {
    const fits = exact.every(([name, value]) => claim[name] === value) && words.every((word) => claim.text.includes(word));
    claim.fits = fits;
    claim.item.hidden = !fits && claim.fold !== target;
  }
  for (const group of groups) {
    const mine = claims.filter((claim) => claim.fits && claim.document === group.dataset.document);
    const [all, ...each] = group.querySelectorAll(":scope > summary .shown");
    count(all, mine);
    for (const [i, list] of [...group.querySelectorAll(".claims")].entries()) {
      count(each[i], mine.filter((claim) => claim.verdict === list.dataset.verdict));
      list.hidden = !list.querySelector("li:not([hidden])");
    }
    group.hidden = !group.querySelector(".claims > li:not([hidden])");
    if (chosen.length) group.open = true;
  }
  const fitting = claims.filter((claim) => claim.fits);
  const parts = verdicts.map((verdict) => [verdict, fitting.filter((claim) => claim.verdict === verdict).length]);
  filter.querySelector("output").value = `${fitting.length} of ${claims.length} shown: `
    + parts.filter(([, number]) => number).map(([verdict, number]) => `${number} ${verdict}`).join(", ");
  if (!fitting.length) filter.querySelector("output").value = `0 of ${claims.length} shown`;
  const query = new URLSearchParams(chosen).toString();
  // Some places, such as a frame without an address, let no address be changed.
  try { history.replaceState(null, "", `${location.pathname}${query ? `?${query}` : ""}${location.hash}`); } catch { }
};
const open = () => {
  const target = named();
  if (!target) return;
  if (target.classList.contains("jump")) {
    filter.reset();
    filter.elements.verdict.value = target.id;
    apply();
    return void filter.scrollIntoView();
  }
  apply();
  for (let fold = target.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
  target.scrollIntoView();
};
for (const [name, value] of new URLSearchParams(location.search)) if (filter.elements[name]) filter.elements[name].value = value;
filter.addEventListener("input", apply);
filter.addEventListener("submit", (event) => event.preventDefault());
filter.addEventListener("reset", () => setTimeout(apply));
filter.hidden = false;
apply();
addEventListener("hashchange", open);
open();
// Paper cannot be opened. What is confirmed stays closed on it.
let folded = [];
addEventListener("beforeprint", () => {
  folded = [...document.querySelectorAll("details:not([open])")].filter((fold) => !fold.closest(".confirmed, .needs-data"));
  for (const fold of folded) fold.open = true;
});
addEventListener("afterprint", () => { for (const fold of folded) fold.open = false; });
