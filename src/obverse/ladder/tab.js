// The Ladder tab: a region graph that can be built, its teacher, and both gradients of an edge side by side.
import { ask, newest } from "./api.js";
import { choice, colour, el, numbers, onScheme, problem, rgb, say, short, slider, svg, tick } from "./ui.js";
import { plot } from "./plot.js";

export function ladderTab(panel, about) {
  const limits = about.ladder;
  const state = { leaves: 4, regions: [], chosen: new Set(), edge: null, seed: 0, number: 0 };
  let answer = null, timer = null;

  const preset = choice({ id: "preset", label: "Begin with", options: [["tree", "a tree of pairs"], ["threes", "a tree of threes"], ["windows", "overlapping windows"]], value: "tree", change: () => load() });
  const leaves = slider({ id: "leaves", label: "Leaves", min: 2, max: limits.most_leaves, value: 4, change: () => load() });
  const summary = choice({ id: "summary", label: "Teacher: a region tells of its children", options: limits.summaries.map((name) => [name, { full: "everything (full)", and: "whether all are 1 (and)", or: "whether any is 1 (or)", xor: "their parity (xor)", majority: "their majority" }[name]]), value: "full", change: () => update() });
  const values = slider({ id: "values", label: "Values of an input", min: 2, max: 3, value: 2, change: () => update() });
  const nodes = slider({ id: "nodes", label: "Student: nodes of a region", min: 1, max: 6, value: 3, change: () => update() });
  const steps = slider({ id: "steps", label: "Steps of gradient descent", min: 0, max: limits.most_steps, value: 20, change: () => update() });
  const lr = slider({ id: "lr", label: "Learning rate", min: -2, max: 0, step: 0.05, value: -1.3, show: (at) => short(10 ** at, 2), change: () => update() });
  const linear = tick({ id: "linear", label: "Linear student, without ReLU", change: () => update() });
  const message = choice({ id: "message", label: "Gradient from events", options: [["recursive", "through the whole recursion"], ["weight", "edge by edge, from the true averages"]], value: "recursive", change: () => update() });

  const lines = svg("g"), shapes = svg("g");
  const graph = svg("svg", { class: "graph", id: "graph", role: "group", "aria-label": "Region graph: press regions to choose them, then join them" }, lines, shapes);
  const join = el("button", { type: "button", id: "join", onclick: joinChosen }, "Join chosen regions");
  const remove = el("button", { type: "button", id: "remove", onclick: removeLast }, "Remove the last region");
  const play = el("button", { type: "button", id: "play", onclick: toggle }, "Train, step by step");
  const tiles = numbers([["worst", "Largest gap of any ΔW"], ["inputs", "Inputs, all enumerated"], ["loss", "Loss on inputs"], ["loss-events", "Loss as events tell it"]]);
  const matrices = el("div", { class: "matrices" }), table = el("div", { class: "scroll" }), losses = el("div", {}), trouble = el("div", {}), verdict = el("p", { id: "verdict" });

  panel.append(
    el("p", {}, "Average backpropagation in a locally connected net over all inputs that show the same event, and small matrices are left. Build a region graph, choose what the teacher tells, and see when gradients from events alone are those of backpropagation on every input."),
    el("div", { class: "bench" },
      el("div", { class: "controls" }, preset.element, leaves.element, values.element, summary.element, nodes.element, linear.element, message.element, lr.element, steps.element,
        el("div", { class: "row" }, play, el("button", { type: "button", id: "reweigh", onclick: () => { state.seed += 1; update(); } }, "Other weights"))),
      el("div", {},
        el("div", { class: "two" },
          el("figure", {}, el("h3", {}, "The region graph"), graph, el("div", { class: "row" }, join, remove),
            el("figcaption", {}, "Press regions to choose them, then join them into a new one above. One top region is needed. Below each name: its events.")),
          el("figure", {}, el("h3", {}, "Losses while it learns"), losses)),
        trouble, verdict, tiles.element, matrices, table)));

  const load = newest(async () => {
    stop();
    try {
      const found = await ask("preset", { kind: preset.value, leaves: leaves.value });
      Object.assign(state, { leaves: found.leaves, regions: found.regions, chosen: new Set(), edge: null, number: found.regions.length });
      update();
    } catch (error) { failed(error); }
  });

  /** Nothing of an older graph stays beside what is wrong with this one. */
  function failed(error) {
    problem(trouble, error);
    answer = null;
    stop();
    verdict.textContent = "";
    for (const place of [matrices, table, losses]) place.replaceChildren();
    for (const id of ["worst", "inputs", "loss", "loss-events"]) tiles.show(id, "–");
    drawGraph();
  }

  function joinChosen() {
    const children = [...state.chosen];
    if (!children.length) { problem(trouble, new Error("expected regions to join; got none; press some of them first")); return; }
    let name;
    do { name = `r${state.number++}`; } while (state.regions.some((one) => one.name === name));
    state.regions.push({ name, children });
    state.chosen = new Set();
    update();
  }

  function removeLast() {
    if (!state.regions.length) return;
    const { name } = state.regions.pop();
    state.chosen.delete(name);
    update();
  }

  function toggle() { timer ? stop() : start(); }
  function start() {
    play.textContent = "Stop";
    if (steps.value >= limits.most_steps) steps.set(0);
    timer = setInterval(() => {
      if (steps.value >= limits.most_steps) { stop(); return; }
      steps.set(steps.value + 1);
      update();
    }, 120);
  }
  function stop() { clearInterval(timer); timer = null; play.textContent = "Train, step by step"; }

  const update = newest(async () => {
    drawGraph();
    try {
      answer = await ask("ladder", {
        leaves: state.leaves, regions: state.regions, summary: summary.value, values: values.value, nodes: nodes.value, seed: state.seed,
        steps: steps.value, lr: 10 ** lr.value, linear: linear.value, message: message.value,
      });
      problem(trouble, null);
    } catch (error) { failed(error); return; }
    render();
  });

  function render() {
    drawGraph();
    const last = answer.losses.at(-1);
    tiles.show("worst", short(answer.worst[message.value], 2), message.value === "recursive" ? "of its size, recursion" : "of its size, edge by edge");
    tiles.show("inputs", answer.inputs.toLocaleString("en"));
    tiles.show("loss", short(last[0]));
    tiles.show("loss-events", short(last[1]));
    verdict.textContent = answer.exact
      ? `Exact: gradients from events are those of backpropagation, up to rounding.${summary.value === "full" ? " Every event tells all that its region holds." : ""}`
      : "Not exact here: events forget something of the inputs, and a condition of the theorem fails. Focus: given its own event, a child's contents do not depend on its parent's event. Broadness: the same the other way round. Fourth: a child's activation and its parent's gradient are uncorrelated given the parent's event.";
    edges();
    chart();
    say(`Largest gap ${short(answer.worst[message.value], 2)}. ${answer.exact ? "Exact." : "Not exact."}`);
  }

  function edges() {
    const key = (edge) => `${edge.parent} ${edge.child}`;
    const current = answer.edges.find((edge) => key(edge) === state.edge) ?? answer.edges.at(-1);
    state.edge = key(current);
    matrices.replaceChildren(
      heat("ΔW by backpropagation on every input", current.exact, current, 1),
      heat("ΔW from events alone", current.reformulated, current, 1),
      difference(current));
    table.replaceChildren(el("table", { class: "edges" },
      el("thead", {}, el("tr", {}, ["edge", "gap of ΔW", "focus", "broadness", "fourth"].map((words) => el("th", { scope: "col" }, words)))),
      el("tbody", {}, answer.edges.map((edge) => el("tr", { "aria-current": key(edge) === state.edge },
        el("th", { scope: "row" }, el("button", { type: "button", "data-edge": key(edge), onclick: () => { state.edge = key(edge); render(); table.querySelector(`[data-edge="${key(edge)}"]`).focus(); } }, `${edge.parent} ← ${edge.child}`)),
        el("td", {}, short(edge.gap, 2)), el("td", {}, short(edge.focus, 2)), el("td", {}, short(edge.broadness, 2)), el("td", {}, short(edge.fourth, 2)))))));
  }

  function difference(edge) {
    const gaps = edge.exact.map((row, at) => row.map((value, column) => value - edge.reformulated[at][column]));
    const peak = Math.max(1e-300, ...gaps.flat().map(Math.abs));
    const words = peak < 1e-12 ? "Their difference: rounding" : `Their difference, up to ${short(peak, 2)} of the largest entry`;
    return heat(words, gaps, edge, Math.max(peak, 1e-9));
  }

  function chart() {
    const points = (side) => answer.losses.map((pair, at) => [at, pair[side]]);
    const all = answer.losses.flat();
    losses.replaceChildren(
      plot({ title: "Loss on inputs and as events tell it", x: { label: "step", low: 0, high: Math.max(1, answer.losses.length - 1) }, y: { label: "loss", low: 0.9 * Math.max(1e-6, Math.min(...all)), high: 1.1 * Math.max(...all), log: true },
        curves: [{ points: points(0) }, { points: points(1), kind: "second" }], size: [400, 240] }),
      el("ul", { class: "legend" }, ["on inputs", "on events, from the same start"].map((words, at) => el("li", {}, svg("svg", { viewBox: "0 0 28 14", class: "plot" }, svg("path", { class: at ? "curve second" : "curve", d: "M0 7H28" })), words))));
  }

  function drawGraph() {
    const names = [...Array.from({ length: state.leaves }, (_, at) => `x${at + 1}`), ...state.regions.map((one) => one.name)];
    const children = Object.fromEntries(state.regions.map((one) => [one.name, one.children]));
    const level = {};
    for (const name of names) level[name] = children[name] ? 1 + Math.max(...children[name].map((child) => level[child] ?? 0)) : 0;
    const top = Math.max(...Object.values(level)), rows = Array.from({ length: top + 1 }, (_, at) => names.filter((name) => level[name] === at));
    const width = Math.max(480, 50 * Math.max(...rows.map((row) => row.length))), height = 60 + 64 * top, place = {};
    rows.forEach((row, at) => row.forEach((name, index) => { place[name] = [width * (index + 0.5) / row.length, height - 30 - 64 * at]; }));
    // a region stands over its children
    for (const row of rows.slice(1)) for (const name of row) {
      const xs = children[name].map((child) => place[child]?.[0] ?? 0);
      if (new Set(row.map((one) => mean(children[one].map((child) => place[child]?.[0] ?? 0)).toFixed(0))).size === row.length) place[name][0] = mean(xs);
    }
    graph.setAttribute("viewBox", `0 0 ${width} ${height}`);
    lines.replaceChildren(...state.regions.flatMap(({ name, children: below }) => below.filter((child) => place[child]).map((child) => svg("line", {
      class: `${name} ${child}` === state.edge ? "chosen" : "", x1: place[name][0], y1: place[name][1], x2: place[child][0], y2: place[child][1] }))));
    for (const shape of [...shapes.children]) if (!names.includes(shape.dataset.region)) shape.remove();
    for (const name of names) showRegion(name, place[name], answer?.events?.[name]);
    join.disabled = names.length >= limits.most_regions;
    join.title = join.disabled ? `At most ${limits.most_regions} regions, leaves included.` : "";
    remove.disabled = !state.regions.length;
  }

  /** In the shape that it has: one that is being pressed, or has the focus, must not be replaced by another. */
  function showRegion(name, [x, y], events) {
    let shape = shapes.querySelector(`[data-region="${name}"]`);
    if (!shape) {
      shape = svg("g", {
        role: "button", tabindex: 0, "data-region": name,
        onclick: () => press(name), onkeydown: (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); press(name); } },
      }, svg("rect", { x: -20, y: -16, width: 40, height: 32, rx: 6 }), svg("text", {}, name), svg("text", { class: "events", y: 11 }));
      shapes.append(shape);
    }
    shape.setAttribute("transform", `translate(${x} ${y})`);
    shape.setAttribute("aria-pressed", state.chosen.has(name));
    shape.setAttribute("aria-label", `Region ${name}${events ? `, ${events} events` : ""}`);
    const [label, count] = shape.querySelectorAll("text");
    label.setAttribute("y", events ? -1 : 4);
    count.textContent = events ?? "";
  }

  function press(name) {
    state.chosen.has(name) ? state.chosen.delete(name) : state.chosen.add(name);
    drawGraph();
  }

  onScheme(() => answer && render());
  load();
  return { hide: stop };
}

const mean = (values) => values.reduce((a, b) => a + b, 0) / values.length;

/** A matrix as colours: blue for positive, orange for negative, the page's own colour for nothing. */
function heat(words, rows, edge, peak) {
  const canvas = el("canvas", { role: "img", "aria-label": words });
  canvas.width = rows[0].length;
  canvas.height = rows.length;
  const page = rgb(colour("--page")), ends = [rgb(colour("--series-0")), rgb(colour("--series-1"))];
  const image = new ImageData(canvas.width, canvas.height);
  rows.forEach((row, y) => row.forEach((value, x) => {
    const share = Math.min(1, Math.abs(value) / peak), end = ends[value < 0 ? 1 : 0];
    for (let channel = 0; channel < 3; channel++) image.data[4 * (y * canvas.width + x) + channel] = page[channel] + share * (end[channel] - page[channel]);
    image.data[4 * (y * canvas.width + x) + 3] = 255;
  }));
  canvas.getContext("2d").putImageData(image, 0, 0);
  const cut = edge.shape[0] > rows.length || edge.shape[1] > rows[0].length ? `, the first ${rows.length} × ${rows[0].length} shown` : "";
  return el("figure", {}, el("h3", {}, words), canvas, el("figcaption", {}, `${edge.parent} ← ${edge.child}, ${edge.shape.join(" × ")}${cut}`));
}
