// One plot: curves, points with error bars, linear or logarithmic axes. Not for what is plotted.
import { short, svg } from "./ui.js";

const LEFT = 58, RIGHT = 12, TOP = 10, BOTTOM = 44;

/** {x, y}: {label, low, high, log}; curves: [{points, kind}]; points: [[x, y, error]]; here: x of a rule. */
export function plot({ x, y, curves = [], points = [], here = null, title, size: [WIDTH, HEIGHT] = [640, 340] }) {
  const across = scale(x, LEFT, WIDTH - RIGHT), up = scale(y, HEIGHT - BOTTOM, TOP);
  const parts = [svg("title", {}, title)];
  for (const value of ticks(x)) {
    parts.push(svg("line", { class: "axis", x1: across(value), x2: across(value), y1: TOP, y2: HEIGHT - BOTTOM }));
    parts.push(svg("text", { x: across(value), y: HEIGHT - BOTTOM + 18 }, short(value, 2)));
  }
  for (const value of ticks(y)) {
    parts.push(svg("line", { class: "axis", x1: LEFT, x2: WIDTH - RIGHT, y1: up(value), y2: up(value) }));
    parts.push(svg("text", { x: LEFT - 8, y: up(value) + 4, class: "end" }, short(value, 2)));
  }
  parts.push(svg("text", { x: (LEFT + WIDTH - RIGHT) / 2, y: HEIGHT - 6 }, x.label));
  parts.push(svg("text", { transform: `translate(14 ${(TOP + HEIGHT - BOTTOM) / 2}) rotate(-90)` }, y.label));
  if (here !== null) parts.push(svg("line", { class: "here", x1: across(here), x2: across(here), y1: TOP, y2: HEIGHT - BOTTOM }));
  for (const { points: line, kind = "" } of curves) {
    const path = line.filter((point) => point[1] !== null).map((point) => `${across(point[0]).toFixed(1)} ${up(point[1]).toFixed(1)}`);
    if (path.length) parts.push(svg("path", { class: `curve ${kind}`, d: `M${path.join("L")}` }));
  }
  for (const [at, value, error] of points) {
    if (value === null) continue;
    if (error) parts.push(svg("path", { class: "bar", d: `M${across(at)} ${up(value - error)}V${up(value + error)}` }));
    parts.push(svg("circle", { class: "point", cx: across(at), cy: up(value), r: 4.5 }));
  }
  return svg("svg", { class: "plot", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img" }, parts);
}

function scale({ low, high, log }, from, to) {
  const of = log ? (value) => Math.log(Math.max(value, low / 10)) : (value) => value;
  const width = of(high) - of(low) || 1;
  const [least, most] = [Math.min(from, to), Math.max(from, to)];
  return (value) => Math.min(most, Math.max(least, from + (of(value) - of(low)) / width * (to - from)));
}

function ticks({ low, high, log }) {
  if (log) {
    const found = [];
    for (let power = Math.ceil(Math.log10(low) - 1e-9); 10 ** power <= high * 1.0001; power++) found.push(10 ** power);
    if (found.length >= 2) return found;
    return [low, Math.sqrt(low * high), high];
  }
  const rough = (high - low) / 5 || 1, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((one) => one >= rough);
  const found = [];
  for (let value = Math.ceil(low / step) * step; value <= high + step * 1e-6; value += step) found.push(Math.abs(value) < step / 1e6 ? 0 : value);
  return found;
}
