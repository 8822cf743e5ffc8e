// The theory bench: the predicted recovery curve at once, and the simulated points as they arrive.
import { ask, newest } from "./api.js";
import { choice, el, numbers, problem, say, short, slider, svg } from "./ui.js";
import { plot } from "./plot.js";

const LABELS = {
  offset: "offset θ, in units of the noise √(2/t)‖h‖", sparsity: "k, non-zeros of h", kept: "t, inputs kept",
};
const ENOUGH = 400; // draws of W; then the points stand still
// Where theory and simulation agree, which the page opens with, and two places where they part.
const AGREE = { n: 1000, m: 500, k: 30, t: 800, offset: 1.5, law: "normal", axis: "offset" };
const PLACES = [
  ["They agree", AGREE],
  ["They part: 30 inputs kept", { ...AGREE, k: 5, t: 30 }],
  ["They part: one entry in ten", { ...AGREE, k: 5, t: 200, law: "one in ten" }],
];

export function benchTab(panel, about) {
  const most = about.bench.most_side;
  let predicted = null, sums = null, settings = "", open = false, seed = 0;

  const shape = (id, label, value, low, hint) => slider({ id, label, min: low, max: most, step: 10, value, hint, change: moved });
  const n = shape("n", "n, inputs", AGREE.n, 50, "Width of the layer that is generated.");
  const m = shape("m", "m, hidden units", AGREE.m, 50, "Width of the layer that is recovered.");
  const k = slider({ id: "k", label: "k, non-zeros of h", min: 1, max: 200, value: AGREE.k, change: moved });
  const t = slider({ id: "t", label: "t, inputs kept", min: 10, max: 1000, step: 10, value: AGREE.t, change: moved });
  const offset = slider({ id: "offset", label: "Offset θ", min: 0, max: about.bench.most_offset, step: 0.05, value: AGREE.offset,
    show: (value) => `${value.toFixed(2)} × noise`, change: moved, hint: "One threshold for all units, in units of the noise √(2/t)‖h‖." });
  const law = choice({ id: "law", label: "Entries of W", options: about.bench.laws.map((name) => [name, words(name)]), value: AGREE.law, change: moved });
  const axis = choice({ id: "axis", label: "Draw the error over", options: [["offset", "the offset θ"], ["sparsity", "the sparsity k"], ["kept", "the inputs kept t"]], value: AGREE.axis, change: moved });

  const tiles = numbers([
    ["predicted", "Predicted ‖ĥ − h‖²/‖h‖²"], ["measured", "Measured there"], ["away", "Measured − predicted"], ["best", "Best offset, and its error"],
  ]);
  const figure = el("div", {}), trouble = el("div", {}), state = el("p", { class: "note", id: "bench-state" });

  panel.append(
    el("p", {}, "One layer of random weights W: h goes down to x = r(αWh) ⊙ mask and up again to ĥ = r(Wᵀx − θ). The curve is the closed form; the points are simulated with W of your choice and know nothing of it."),
    el("div", { class: "row", role: "group", "aria-label": "Settings to start from" },
      PLACES.map(([label, place]) => el("button", { type: "button", onclick: () => go(place) }, label))),
    el("div", { class: "bench" },
      el("div", { class: "controls" }, n.element, m.element, k.element, t.element, offset.element, law.element, axis.element,
        el("div", { class: "row" }, el("button", { type: "button", id: "reseed", onclick: () => { seed = (seed + 1) % 1000; moved(); } }, "Draw other weights"))),
      el("div", {}, trouble, tiles.element,
        el("ul", { class: "legend" },
          el("li", {}, svg("svg", { viewBox: "0 0 28 14", class: "plot" }, svg("path", { class: "curve", d: "M0 7H28" })), "predicted for normal entries"),
          el("li", {}, svg("svg", { viewBox: "0 0 28 14", class: "plot" }, svg("path", { class: "bar", d: "M14 0V14" }), svg("circle", { class: "point", cx: 14, cy: 7, r: 4.5 })), "measured, ± 2 standard errors"),
          el("li", {}, svg("svg", { viewBox: "0 0 28 14", class: "plot" }, svg("path", { class: "here", d: "M14 0V14" })), "your setting")),
        figure, state)));

  function body() {
    return { n: n.value, m: m.value, k: Math.min(k.value, m.value), t: Math.min(t.value, n.value), offset: offset.value, axis: axis.value };
  }

  function go(place) {
    n.set(place.n);
    m.set(place.m);
    k.set(place.k, { max: Math.min(place.m, 400) });
    t.set(place.t, { max: place.n });
    offset.set(place.offset);
    law.set(place.law);
    axis.set(place.axis);
    moved();
  }

  function moved() {
    k.set(Math.min(k.value, m.value), { max: Math.min(m.value, 400) });
    t.set(Math.min(t.value, n.value), { max: n.value });
    predict();
    measure();
  }

  const predict = newest(async () => {
    const asked = body();
    try {
      predicted = { ...(await ask("predict", asked)), asked: JSON.stringify(asked) };
      problem(trouble, null);
    } catch (error) { problem(trouble, error); return; }
    render();
  });

  const measure = newest(async () => {
    while (open) {
      const place = body(), asked = { ...place, law: law.value, seed };
      const now = JSON.stringify(asked);
      if (now !== settings) { settings = now; sums = null; render(); }
      if (sums && sums.count >= ENOUGH) break;
      let found;
      try { found = await ask("measure", { ...asked, first: sums ? sums.count : 0 }); } catch (error) { problem(trouble, error); break; }
      if (now !== settings || JSON.stringify({ ...body(), law: law.value, seed }) !== now) continue;
      if (!sums) sums = { asked: JSON.stringify(place), at: found.at, count: found.count, sum: found.sum, squares: found.squares };
      else {
        sums.count += found.count;
        found.sum.forEach((value, at) => { sums.sum[at] += value; sums.squares[at] += found.squares[at]; });
      }
      render();
    }
  });

  function measured() {
    if (!sums) return [];
    return sums.at.map((at, index) => {
      const mean = sums.sum[index] / sums.count;
      const variance = Math.max(0, sums.squares[index] / sums.count - mean * mean);
      return [at, mean, sums.count > 1 ? Math.sqrt(variance / (sums.count - 1)) : null];
    });
  }

  function render() {
    if (!predicted) return;
    const fits = sums && sums.asked === predicted.asked; // else one of the two is under way
    const points = fits ? measured() : [], own = points.pop();
    tiles.show("predicted", short(predicted.predicted));
    tiles.show("best", short(predicted.best), `at ${predicted.best_offset.toFixed(2)} × noise`);
    tiles.show("measured", own ? short(own[1]) : "…", own && own[2] !== null ? `± ${short(own[2], 2)}` : "");
    tiles.show("away", own ? short(own[1] - predicted.predicted, 2) : "…", own && own[2] ? `${short((own[1] - predicted.predicted) / own[2], 2)} × its standard error` : "");
    const curve = predicted.curve, values = [...curve.map((point) => point[1]), ...points.map((point) => point[1])].filter((value) => value > 0);
    const log = predicted.axis !== "offset";
    figure.replaceChildren(plot({
      title: `Predicted recovery error over ${LABELS[predicted.axis]}, and ${points.length} measured points`,
      x: { label: LABELS[predicted.axis], low: curve[0][0], high: curve.at(-1)[0], log },
      y: { label: "‖ĥ − h‖²/‖h‖²", low: log ? Math.max(1e-4, Math.min(...values)) : 0, high: 1.05 * Math.max(...values, 1e-6), log },
      curves: [{ points: curve }], points: points.map(([at, value, error]) => [at, value, error === null ? 0 : 2 * error]), here: predicted.at,
      size: innerWidth < 768 ? [400, 300] : undefined,
    }));
    const draws = sums ? `${sums.count} draws of W` : "first draws of W under way";
    state.textContent = `${draws}${sums && sums.count >= ENOUGH ? ", enough" : ""}. ` + (predicted.theorem
      ? "k < t < k², as Theorem 2.3 asks."
      : "Outside k < t < k², which Theorem 2.3 asks; the closed form needs no such condition.") +
      " The closed form takes ĥ as normal: good to 3\u00a0% from t = 500 on and to 8\u00a0% at t = 100; at t = 30 it says too little, by up to 41\u00a0%." +
      (law.value === "normal" ? "" : " The closed form is for normal entries: other laws may differ by their kurtosis and mean.");
    if (own) say(`Predicted ${short(predicted.predicted)}, measured ${short(own[1])} after ${sums.count} draws.`);
  }

  return {
    show() { open = true; moved(); },
    hide() { open = false; },
  };
}

function words(name) {
  return { normal: "normal", uniform: "uniform", signs: "±1", laplace: "Laplace", "student t (5)": "Student t, 5 degrees of freedom", "one in ten": "one in ten not zero" }[name]
    ?? `entries of ${name.replace("layer: ", "")}, drawn at random`;
}
