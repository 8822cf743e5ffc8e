// The Shadow tab: an input that can be picked or painted, what a layer sees of it, and what the net draws from that.
import { ask, newest } from "./api.js";
import { colour, decoded, draw, el, numbers, onScheme, percent, problem, rgb, say, short, slider, svg, tick } from "./ui.js";

export function shadowTab(panel, about) {
  const { net, shadow: limits } = about;
  const image = net.shape.length === 3;
  const state = { index: 0, painted: new Map(), seed: 0, compared: "", asked: limits.small };
  let answer = null;

  const layer = slider({
    id: "layer", label: "Layer to draw from", min: 0, max: net.layers.length - 1,
    value: net.layers.findIndex((one) => one.name === net.default_layer),
    show: (at) => `${net.layers[at].name} (${net.layers[at].shape.join("×")})`, change: () => update(),
  });
  const keep = slider({ id: "keep", label: "Keep rate ρ", min: 0.05, max: 1, step: 0.05, value: 0.75, show: percent, change: () => update(),
    hint: "The share of entries kept at each generated layer. At 100 % all shadows are the same." });
  const smooth = slider({ id: "smooth", label: "Smoothing, 3×3 means", min: 0, max: limits.most_smooth, value: 0, show: (n) => `${n}×`, change: () => update() });
  const refine = slider({ id: "refine", label: "Refinement steps", min: 0, max: limits.most_refine, value: 0, change: () => update(),
    hint: "Gradient steps on ‖h(x̃) − h‖², from the shadow." });
  const match = tick({ id: "match", label: "Give the shadow the norm of the input", checked: true, change: () => update() });

  const drawing = painter(net, state, () => update());
  const gallery = el("div", { class: "gallery", role: "group", "aria-label": "Test inputs to pick from" },
    net.gallery.map((one, index) => {
      const canvas = el("canvas", { "aria-hidden": "true" });
      draw(canvas, one.picture);
      return el("button", {
        type: "button", class: image ? "" : "flat", "aria-pressed": index === 0, "aria-label": `Test input ${index + 1}, label ${net.classes[one.label]}`,
        title: net.classes[one.label], onclick: () => pick(index),
      }, canvas);
    }));
  const tiles = numbers([
    ["recovery", "Recovery error of h, ‖ĥ − h‖²/‖h‖²"], ["cosine", "Cosine of x and x̃"],
    ["same", "Shadows with the label of x"], ["time", "Time for this picture"],
  ]);
  const strip = el("ul", { class: "strip", id: "shadows", "aria-label": "The input and its shadows" });
  const before = el("canvas", { class: "units", "aria-label": "Units of the layer for the input" });
  const after = el("canvas", { class: "units", "aria-label": "Units of the layer for its first shadow" });
  const units = el("figcaption", {});
  const cloud = el("div", {});
  const chances = el("div", {});
  const trouble = el("div", {});
  const ways = el("div", { id: "ways" }), waysTrouble = el("div", {}), waysState = el("p", { class: "note", id: "ways-state" });

  panel.append(
    el("p", {}, "A net run backwards with transposed weights draws inputs that it would see in the same way: its shadow. ",
      image ? "Pick an input or paint on it, choose the layer, and see what is left." : "Pick an input, choose the layer, and see what is left."),
    el("div", { class: "bench" },
      el("div", { class: "controls" },
        drawing.element, gallery, layer.element, keep.element, image ? smooth.element : null, refine.element, match.element,
        el("div", { class: "row" }, el("button", { type: "button", id: "again", onclick: () => { state.seed += 1; update(); } }, "Draw other samples"))),
      el("div", {}, trouble, tiles.element, strip,
        el("div", { class: "two" },
          el("div", {},
            el("figure", {}, el("h3", {}, "The hidden layer before and after"), before, after, units),
            el("figure", {}, el("h3", {}, "Each unit: before across, after up"), cloud,
              el("figcaption", {}, "On the line: given back exactly. On the horizontal axis: lost. On the vertical axis: made up."))),
          el("figure", {}, el("h3", {}, "Label probabilities"), chances)))),
    el("h2", { class: "apart" }, "What each layer still sees, side by side"),
    el("p", {}, "The same input from every layer, with nothing dropped. Shadow: transposed weights, what the weights generate. Fitted: linear maps fitted on training inputs, what h contains among inputs like those; refined: that, and some gradient steps. Nets with shuffled or untrained weights can give good fitted images, too: only the difference speaks of training."),
    ...limits.small ? [] : [el("p", {}, el("button", { type: "button", class: "plain", id: "ask-ways", onclick: (event) => { event.target.parentElement.remove(); state.asked = true; compare(); } }, "Fit the ways down: minutes for a net of this size"))],
    waysTrouble, waysState, ways);

  function pick(index) {
    state.index = index;
    state.painted = new Map();
    [...gallery.children].forEach((button, at) => button.setAttribute("aria-pressed", at === index));
    drawing.load(net.gallery[index].picture);
    update();
  }

  const update = newest(async () => {
    const began = performance.now();
    const painted = [...state.painted];
    const input = painted.length ? { places: painted.map(([place]) => place), values: painted.map(([, value]) => value) } : {};
    const slow = setTimeout(() => tiles.show("time", "working…"), 300);
    try {
      answer = await ask("shadow", {
        index: state.index, ...input, layer: net.layers[layer.value].name, keep: keep.value, smooth: smooth.value, refine: refine.value,
        match_norm: match.value, seed: state.seed,
      });
      problem(trouble, null);
    } catch (error) {
      problem(trouble, error);
      for (const id of ["recovery", "cosine", "same", "time"]) tiles.show(id, "–");
      return;
    } finally {
      clearTimeout(slow);
    }
    render();
    const asked = refine.value, fewer = answer.refined < asked ? `${answer.refined} of ${asked} steps: this net takes too long for more` : "";
    tiles.show("time", `${Math.round(performance.now() - began)} ms`, fewer);
    const shown = JSON.stringify(input) + state.index;
    if (shown !== state.compared) { state.compared = shown; if (state.asked) compare(); }
  });

  /** Layer by layer, from the lowest up; begins anew when another input is chosen. */
  const compare = newest(async () => {
    const mine = state.compared, chosen = spread(net.layers, limits.most_layers);
    for (const [at, one] of chosen.entries()) {
      if (mine !== state.compared) return;
      waysState.textContent = `Layer ${at + 1} of ${chosen.length}…`;
      const painted = [...state.painted];
      const input = painted.length ? { places: painted.map(([place]) => place), values: painted.map(([, value]) => value) } : {};
      try {
        const found = await ask("ways", { index: state.index, ...input, layer: one.name });
        if (mine !== state.compared) return;
        showWays(at, found);
        if (at === chosen.length - 1) {
          waysState.textContent = [`Refined: ${found.steps} gradient steps. ✗: the net calls it something else than the input.`, ...found.missing].join(" ");
        }
        problem(waysTrouble, null);
      } catch (error) {
        problem(waysTrouble, error);
        waysState.textContent = "";
        return;
      }
    }
  });

  function showWays(at, found) {
    const row = el("section", { class: "layer" },
      el("div", { class: "top" }, el("h3", {}, found.layer)),
      el("ul", { class: "strip" }, way({ title: "input", words: "The input", picture: found.input, label: found.label, cosine: null }, found.label),
        found.ways.map((one) => way(one, found.label))));
    if (ways.children[at]) ways.children[at].replaceWith(row); else ways.append(row);
  }

  function way(one, given) {
    const canvas = el("canvas", { role: "img" });
    draw(canvas, one.picture);
    const called = one.label === null ? "" : `${one.label === given ? "" : "✗ "}${net.classes[one.label] ?? one.label}`;
    const near = one.cosine === null ? "" : `cosine ${short(one.cosine, 2)}`;
    const numbers = [called, near].filter(Boolean).join(", ");
    canvas.setAttribute("aria-label", `${one.words}${numbers ? `: ${numbers}` : ""}`);
    return el("li", {}, canvas, el("span", {}, one.title), el("small", {}, numbers));
  }

  function render() {
    const { recovery, cosine, hidden } = answer;
    const spread = (number) => (number.error === null ? "" : `± ${short(number.error, 2)}`);
    tiles.show("recovery", recovery.value === null ? "–" : short(recovery.value), recovery.value === null ? "h is all zero" : spread(recovery));
    tiles.show("cosine", short(cosine.value), cosine.value === null ? "one of them is all black" : spread(cosine));
    tiles.show("same", percent(answer.same_label), `of ${answer.samples}`);
    pictures();
    strips(hidden);
    cloud.replaceChildren(scatter(hidden));
    chances.replaceChildren(table(answer, net.classes));
    say(`Recovery error ${short(recovery.value)}, ${percent(answer.same_label)} of shadows keep the label.`);
  }

  function pictures() {
    const all = [["x", answer.input], ...answer.shadows.map((one, at) => [`x̃${answer.shadows.length > 1 ? ` ${at + 1}` : ""}`, one])];
    while (strip.children.length > all.length) strip.lastChild.remove();
    all.forEach(([words, picture], at) => {
      if (!strip.children[at]) strip.append(el("li", {}, el("canvas", { role: "img" }), el("span", {})));
      const [canvas, caption] = strip.children[at].children;
      draw(canvas, picture);
      canvas.setAttribute("aria-label", at ? `Shadow ${at}` : "The input");
      caption.textContent = words;
    });
  }

  function strips(hidden) {
    const peak = Math.max(1e-12, ...hidden.before.map(Math.abs), ...hidden.after.map(Math.abs));
    const negative = Math.min(...hidden.before, ...hidden.after) < 0;
    for (const [canvas, values] of [[before, hidden.before], [after, hidden.after]]) bars(canvas, values, peak, negative);
    units.textContent = `${hidden.active} of ${hidden.units} units are active` +
      (hidden.shown < hidden.units ? `; ${hidden.shown} are shown` : "") + ". Above for x, below for its first shadow.";
  }

  onScheme(() => answer && render());
  pick(0);
  return { show() { if (answer) render(); } };
}

/** The input as a picture to paint on, with a pointer or with arrow keys and the space bar. */
function painter(net, state, change) {
  const canvas = el("canvas", { class: "drawing", id: "drawing" });
  if (!net.paintable) return { element: el("p", { class: "note" }, "These inputs are no images with pixels from 0 to 1, or too large to paint on: pick one."), load() {} };
  const [channels, height, width] = net.shape;
  canvas.style.aspectRatio = `${width} / ${height}`;
  canvas.tabIndex = 0;
  canvas.setAttribute("role", "application");
  canvas.setAttribute("aria-label", "The input. Paint with the pointer, or move with the arrow keys and paint with the space bar, erase with x.");
  let pixels = new Float32Array(channels * height * width), cursor = [Math.floor(height / 2), Math.floor(width / 2)], brush = 1, showCursor = false;
  const radius = Math.max(0.75, width / 16);
  const erase = tick({ id: "erase", label: "Erase", change: (on) => { brush = on ? 0 : 1; } });

  function render() {
    canvas.width = width;
    canvas.height = height;
    const image = new ImageData(width, height);
    for (let place = 0; place < width * height; place++) {
      for (let channel = 0; channel < 3; channel++) {
        const from = channels === 3 ? channel : 0;
        image.data[4 * place + channel] = 255 * Math.min(1, pixels[from * width * height + place]);
      }
      image.data[4 * place + 3] = 255;
    }
    if (showCursor) {
      const place = 4 * (cursor[0] * width + cursor[1]);
      image.data.set(rgb(colour("--series-1")), place);
    }
    canvas.getContext("2d").putImageData(image, 0, 0);
  }

  function paint(row, column, value) {
    for (let y = 0; y < height; y++) for (let x = 0; x < width; x++) {
      const distance = Math.hypot(y + 0.5 - row, x + 0.5 - column);
      const strength = Math.min(1, Math.max(0, radius + 0.5 - distance));
      if (!strength) continue;
      for (let channel = 0; channel < channels; channel++) {
        const place = (channel * height + y) * width + x;
        put(place, value ? Math.max(pixels[place], strength) : Math.min(pixels[place], 1 - strength));
      }
    }
    finish();
  }

  /** Only what is painted is sent: all else stays exactly what it was, which eight bits of a picture are not. */
  function put(place, value) {
    if (pixels[place] === value) return;
    pixels[place] = value;
    state.painted.set(place, Math.round(value * 1000) / 1000);
  }

  function finish() {
    render();
    change();
  }

  let down = false;
  function at(event) {
    const box = canvas.getBoundingClientRect();
    paint((event.clientY - box.top) / box.height * height, (event.clientX - box.left) / box.width * width, brush);
  }
  canvas.addEventListener("pointerdown", (event) => { down = true; canvas.setPointerCapture(event.pointerId); showCursor = false; at(event); });
  canvas.addEventListener("pointermove", (event) => { if (down) at(event); });
  for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, () => { down = false; });
  canvas.addEventListener("keydown", (event) => {
    const move = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (move) {
      cursor = [(cursor[0] + move[0] + height) % height, (cursor[1] + move[1] + width) % width];
      showCursor = true;
      render();
    } else if (event.key === " " || event.key === "x") {
      paint(cursor[0] + 0.5, cursor[1] + 0.5, event.key === " " ? 1 : 0);
    } else return;
    event.preventDefault();
  });
  canvas.addEventListener("blur", () => { showCursor = false; render(); });

  const clear = el("button", { type: "button", id: "clear", onclick: () => { pixels.fill(0); pixels.forEach((_, place) => state.painted.set(place, 0)); finish(); } }, "Clear");
  return {
    element: el("div", {}, canvas, el("div", { class: "row" }, clear, erase.element)),
    load(picture) {
      const bytes = decoded(picture);
      for (let place = 0; place < width * height; place++) for (let channel = 0; channel < channels; channel++) {
        const from = picture.channels === 3 ? 3 * place + channel : place;
        pixels[channel * width * height + place] = bytes[from] / 255;
      }
      render();
    },
  };
}

/** At most so many, evenly chosen, first and last among them. */
function spread(all, most) {
  if (all.length <= most) return all;
  return Array.from({ length: most }, (_, place) => all[Math.round(place * (all.length - 1) / (most - 1))]);
}

/** A row of thin bars, one a unit. */
function bars(canvas, values, peak, negative) {
  const height = 44, width = Math.max(values.length, 200);
  canvas.width = width;
  canvas.height = height;
  const context = canvas.getContext("2d");
  context.fillStyle = colour("--tint");
  context.fillRect(0, 0, width, height);
  const floor = negative ? height / 2 : height, room = floor;
  values.forEach((value, at) => {
    const left = Math.floor(at * width / values.length), right = Math.max(left + 1, Math.floor((at + 1) * width / values.length));
    const tall = Math.abs(value) / peak * room;
    context.fillStyle = colour(value < 0 ? "--series-1" : "--series-0");
    context.fillRect(left, value < 0 ? floor : floor - tall, right - left, tall);
  });
}

function scatter(hidden) {
  const peak = Math.max(1e-12, ...hidden.before, ...hidden.after), least = Math.min(0, ...hidden.before, ...hidden.after);
  const across = (value) => 10 + (value - least) / (peak - least) * 300, up = (value) => 190 - (value - least) / (peak - least) * 180;
  return svg("svg", { class: "plot small", viewBox: "0 0 320 200", role: "img" },
    svg("title", {}, "Units of the layer, before across and after up"),
    svg("path", { class: "axis", d: `M${across(0)} 10V190M10 ${up(0)}H310` }),
    svg("path", { class: "here", d: `M${across(least)} ${up(least)}L${across(peak)} ${up(peak)}` }),
    hidden.before.map((value, at) => [value, hidden.after[at]]).filter(([one, two]) => one || two)
      .map(([one, two]) => svg("circle", { class: "dot", cx: across(one).toFixed(1), cy: up(two).toFixed(1), r: 2.5 })));
}

function table(answer, classes) {
  const { input, shadow } = answer.probabilities;
  const order = input.map((_, at) => at);
  if (order.length > 10) order.sort((a, b) => Math.max(input[b], shadow[b]) - Math.max(input[a], shadow[a]));
  const bar = (value) => { const one = el("i", {}); one.style.width = `${100 * value}%`; return one; };
  return el("table", { class: "chances" },
    el("thead", {}, el("tr", {}, el("td", {}), el("td", { class: "bars" }, el("span", { class: "swatch" }), " x  ", el("span", { class: "swatch second" }), " x̃"), el("td", {}, "x"), el("td", {}, "x̃"))),
    el("tbody", {}, order.slice(0, 10).map((at) => el("tr", {},
      el("th", { scope: "row", title: classes[at] }, classes[at] ?? String(at)), el("td", { class: "bars" }, bar(input[at]), bar(shadow[at])),
      el("td", {}, percent(input[at])), el("td", {}, percent(shadow[at]))))));
}
