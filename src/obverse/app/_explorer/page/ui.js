// Small building blocks: elements, sliders, numbers, pictures. Text from the server only ever becomes text.

/** An element with attributes and children; `on…` are listeners. */
export function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  return filled(element, attributes, children);
}

export function svg(tag, attributes = {}, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name.startsWith("aria-") && typeof value === "boolean") element.setAttribute(name, String(value));
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

/** A labelled slider; `show` turns its value into words, `change` hears of every movement. */
export function slider({ id, label, min, max, step = 1, value, show = String, change, hint }) {
  const output = el("output", { for: id });
  const input = el("input", { type: "range", id, min, max, step, value, oninput: () => { tell(); change(Number(input.value)); } });
  function tell() {
    const words = show(Number(input.value));
    output.textContent = words;
    input.setAttribute("aria-valuetext", words);
  }
  tell();
  return {
    element: el("div", { class: "control", title: hint }, el("label", { for: id }, label), output, input),
    get value() { return Number(input.value); },
    set(next, limits = {}) {
      for (const name of ["min", "max"]) if (name in limits) input.setAttribute(name, limits[name]);
      input.value = next;
      tell();
    },
  };
}

export function choice({ id, label, options, value, change }) {
  const select = el("select", { id, onchange: () => change(select.value) },
    options.map(([name, words]) => el("option", { value: name, selected: name === value }, words)));
  return { element: el("div", { class: "control" }, el("label", { for: id }, label), select),
    get value() { return select.value; }, set(next) { select.value = next; } };
}

export function tick({ id, label, checked = false, change }) {
  const input = el("input", { type: "checkbox", id, checked, onchange: () => change(input.checked) });
  return { element: el("label", { class: "tick", for: id }, input, el("span", {}, label)), get value() { return input.checked; } };
}

/** Tiles of numbers, by id: show(id, text, small). */
export function numbers(entries) {
  const places = {};
  const element = el("dl", { class: "numbers" }, entries.map(([id, label]) => {
    places[id] = el("dd", { id });
    return el("div", {}, el("dt", {}, label), places[id]);
  }));
  return { element, show(id, text, more = "") { places[id].replaceChildren(text, more ? " " : "", more ? el("small", {}, more) : ""); } };
}

/** Three digits, as a person would write them. */
export function short(value, digits = 3) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  const rounded = Number(value.toPrecision(digits));
  if (Math.abs(rounded) >= 1000 && size < 1e7) return rounded.toLocaleString("en").replace("-", "−");
  if (size >= 1e7 || size < 0.001) {
    return value.toExponential(digits - 1).replace("e+", "e").replace("-", "−").replace("e-", "e−");
  }
  return rounded.toString().replace("-", "−");
}

/** Whole from 10 to 90, with a digit more near either end, where a whole number would say all or none. */
export const percent = (value) => `${(100 * value).toFixed(value === 0 || value === 1 || (value >= 0.0995 && value <= 0.9005) ? 0 : 1)}\u00a0%`;

/** Draws a picture of the server ({width, height, channels, bytes}) on a canvas of its size. */
export function draw(canvas, picture) {
  const { width, height, channels } = picture;
  const bytes = decoded(picture);
  canvas.width = width;
  canvas.height = height;
  const image = new ImageData(width, height);
  for (let place = 0; place < width * height; place++) {
    for (let channel = 0; channel < 3; channel++) {
      image.data[4 * place + channel] = bytes[channels === 3 ? 3 * place + channel : place];
    }
    image.data[4 * place + 3] = 255;
  }
  canvas.getContext("2d").putImageData(image, 0, 0);
}

/** The levels of a picture, from 0 to 255, pixel by pixel. */
export function decoded(picture) {
  return Uint8Array.from(atob(picture.bytes), (letter) => letter.charCodeAt(0));
}

export function colour(name) { return getComputedStyle(document.documentElement).getPropertyValue(name).trim(); }

export function rgb(hex) { return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16)); }

/** Calls back when the page turns dark or light: what canvases hold has to be drawn again. */
export function onScheme(redraw) { matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw); }

let timer = 0;
/** Says a sentence to a screen reader once things have come to rest. */
export function say(sentence) {
  clearTimeout(timer);
  timer = setTimeout(() => { document.getElementById("said").textContent = sentence; }, 900);
}

export function problem(place, error) {
  place.replaceChildren(error ? el("p", { class: "problem", role: "alert" }, error.message) : "");
}
