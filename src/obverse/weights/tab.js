// The Audit tab: the layers of the net, one after the other as they are measured.
import { ask, newest } from "./api.js";
import { el, numbers, percent, problem, say, short, slider } from "./ui.js";

export function auditTab(panel, about) {
  const layers = about.net.weights;
  let open = false, done = {};
  const keep = slider({ id: "audit-keep", label: "Share of a layer's inputs kept", min: 0.1, max: 1, step: 0.05, value: 1, show: percent, change: () => measure(),
    hint: "ρ: how many of the inputs the mask leaves when h goes down and up." });
  const tiles = numbers([["audit-done", "Layers measured"], ["audit-random", "Untouched"], ["audit-share", "Smallest random share"], ["audit-ratio", "Worst layer ÷ shuffled"], ["audit-error", "Its recovery error"]]);
  const list = el("div", {}), trouble = el("div", {});
  // drawn by the server from numbers alone; what all pictures refer to
  const shared = el("div", {});
  shared.innerHTML = about.shared;

  panel.append(shared,
    el("p", {}, "What in each layer of this net is signal, and what is like random numbers? The profile, the scales of rows and columns, is taken off first. The line in each chart is what random entries give; recovery is also measured with the layer's entries shuffled (grey) and with fresh normal ones (outline)."),
    el("div", { class: "controls" }, keep.element), el("p", {}), tiles.element, trouble, list);

  const cards = layers.map((layer) => {
    const card = el("article", { class: "layer", "aria-label": layer.name },
      el("div", { class: "top" }, el("h3", {}, layer.name), el("span", { class: "note" }, `${layer.rows} × ${layer.columns}, ${layer.kind}`)),
      el("p", { class: "note" }, "waiting…"));
    list.append(card);
    return card;
  });

  const measure = newest(async () => {
    const wanted = keep.value;
    if (done.keep !== wanted) {
      done = { keep: wanted, layers: [] };
      for (const card of cards) card.classList.add("stale");
    }
    for (const [at, layer] of layers.entries()) {
      if (!open || keep.value !== wanted) return again();
      if (done.layers[at]) continue;
      let found;
      try { found = await ask("audit", { layer: layer.name, keep: wanted }); problem(trouble, null); } catch (error) { problem(trouble, error); return; }
      if (keep.value !== wanted) return again();
      done.layers[at] = found;
      render(cards[at], found);
      summary();
    }
  });
  function again() { if (open) measure(); }

  function summary() {
    const found = done.layers.filter(Boolean), judged = found.filter((one) => one.ratio !== null);
    const worst = judged.reduce((a, b) => (a && a.ratio >= b.ratio ? a : b), null);
    tiles.show("audit-done", `${found.length} of ${layers.length}`);
    tiles.show("audit-random", `${found.filter((one) => one.verdict === "untouched").length}`, `of ${found.filter((one) => one.verdict !== "not judged").length} judged`);
    const shared = found.filter((one) => one.random_share !== null);
    const least = shared.reduce((a, b) => (a && a.random_share[0] <= b.random_share[0] ? a : b), null);
    tiles.show("audit-share", least ? `${least.random_is_bound ? "≤ " : ""}${percent(least.random_share[0])}` : "–", least ? least.random_is_bound ? least.name : `${least.name}, ${percent(least.random_share[1])} to ${percent(least.random_share[2])}` : "no layer is large enough to judge");
    tiles.show("audit-ratio", worst ? short(worst.ratio) : "–", worst ? worst.name : "no layer is large enough to judge");
    tiles.show("audit-error", worst ? short(worst.recovery) : "–", worst ? `random weights: ${short(worst.predicted)}` : "");
    if (found.length === layers.length) say(`${found.length} layers measured.`);
  }

  return { show() { open = true; measure(); }, hide() { open = false; } };
}

function render(card, found) {
  card.classList.remove("stale");
  card.replaceChildren(
    el("div", { class: "top" }, el("h3", {}, found.name), el("span", { class: `pill ${found.tone}` }, found.verdict), el("span", { class: "note" }, `${found.shape}, ${found.kind}`)),
    ...(found.sentence === found.verdict ? [] : [el("p", {}, found.sentence)]),
    el("div", { class: "cells" }, found.cells.map((cell) => {
      const picture = el("div", cell.picture ? {} : { class: "missing" }, cell.picture ? "" : cell.missing);
      if (cell.picture) picture.innerHTML = cell.picture; // SVG of numbers, drawn by the server
      return el("div", { class: "cell" }, el("h4", {}, cell.title), picture,
        el("dl", {}, cell.keys.map(([label, value]) => el("div", {}, el("dt", {}, label), el("dd", {}, value)))));
    })));
}
