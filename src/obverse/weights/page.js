// Sorting of the layers, after list.js. Without it they stand in the order of the net.
const sort = document.getElementById("sort");
const reverse = document.getElementById("reverse");
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
  lists[0].append(...sorted.map((row) => row.item));
}

for (const kind of ["change", "input"]) {
  tools.addEventListener(kind, ({ target }) => (target === sort || target === reverse) && arrange());
}
arrange();
