"use strict";
// Sorting and filtering of the layers. Without it the page is complete, in the order of the net.
const list = document.getElementById("layers");
const rows = [...list.children].map((item, order) => ({
  item,
  order,
  name: item.querySelector("h3").textContent,
  tone: item.dataset.tone,
  changed: "changed" in item.dataset,
}));
const sort = document.getElementById("sort");
const reverse = document.getElementById("reverse");
const sought = document.getElementById("name");
const tones = [...document.querySelectorAll("input[name=tone]")];
const changed = document.getElementById("changed");
const shown = document.getElementById("shown");
const byName = new Intl.Collator("en", { numeric: true }).compare;

// Verdicts ascend from the worst; of everything else the largest comes first. What was not measured stays last.
function compare(one, two, key, turn) {
  if (key === "order") return turn * (one.order - two.order);
  if (key === "name") return turn * byName(one.name, two.name) || one.order - two.order;
  const first = parseFloat(one.item.dataset[key]), second = parseFloat(two.item.dataset[key]);
  if (isNaN(first) || isNaN(second)) return isNaN(first) - isNaN(second) || one.order - two.order;
  return turn * (key === "verdict" ? first - second : second - first) || one.order - two.order;
}

function arrange() {
  const turn = reverse.checked ? -1 : 1;
  const sorted = [...rows].sort((one, two) => compare(one, two, sort.value, turn));
  list.append(...sorted.map((row) => row.item));
}

function filter() {
  const text = sought.value.trim().toLowerCase();
  const wanted = new Set(tones.filter((box) => box.checked).map((box) => box.value));
  let count = 0;
  for (const row of rows) {
    const fits = wanted.has(row.tone) && row.name.toLowerCase().includes(text)
      && (!changed || !changed.checked || row.changed);
    row.item.hidden = !fits;
    count += fits;
  }
  shown.textContent = `${count} of ${rows.length} layers`;
}

const tools = document.getElementById("tools");
tools.addEventListener("submit", (event) => event.preventDefault());
// Menus and boxes tell of a change, the field of each letter.
for (const kind of ["change", "input"]) {
  tools.addEventListener(kind, ({ target }) => (target === sort || target === reverse ? arrange() : filter()));
}
tools.hidden = rows.length < 2;
// A browser that goes back to the page restores what was chosen.
arrange();
filter();
