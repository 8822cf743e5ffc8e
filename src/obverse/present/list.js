"use strict";
// Filtering of what a page lists, by verdict and text. Without it the page is complete.
// Of several lists, the same place in each is the same thing: a row of the overview and its card.
const lists = [...document.querySelectorAll("[data-list]")];
const places = lists.map((list) => [...list.querySelectorAll("[data-tone]")]);
const rows = places[0].map((item, order) => ({
  item,
  order,
  everywhere: places.map((items) => items[order]),
  name: (item.querySelector("h3") || item).textContent,
  tone: item.dataset.tone,
  changed: "changed" in item.dataset,
}));
const sought = document.getElementById("name");
const tones = [...document.querySelectorAll("input[name=tone]")];
const changed = document.getElementById("changed");
const shown = document.getElementById("shown");

function filter() {
  const text = sought.value.trim().toLowerCase();
  const wanted = new Set(tones.filter((box) => box.checked).map((box) => box.value));
  let count = 0;
  for (const row of rows) {
    const fits = wanted.has(row.tone) && row.name.toLowerCase().includes(text)
      && (!changed || !changed.checked || row.changed);
    for (const one of row.everywhere) one.hidden = !fits;
    count += fits;
  }
  shown.textContent = `${count} of ${rows.length} ${lists[0].dataset.list}`;
}

const tools = document.getElementById("tools");
tools.addEventListener("submit", (event) => event.preventDefault());
// Menus and boxes tell of a change, the field of each letter.
for (const kind of ["change", "input"]) tools.addEventListener(kind, filter);
tools.hidden = rows.length < 2;
// A link to what is filtered out shows it again.
document.addEventListener("click", ({ target }) => {
  const link = target.closest("a[href^='#']");
  const aim = link && document.getElementById(link.hash.slice(1));
  if (aim && aim.hidden) aim.hidden = false;
});
// A browser that goes back to the page restores what was chosen.
filter();
