// The birthday room: batches of draws, who collides with whom, and what the test concludes beside the truth.
import { ask, newest } from "./api.js";
import { choice, el, numbers, percent, problem, say, short, slider, svg } from "./ui.js";

export function birthdayTab(panel, about) {
  const limits = about.birthday;
  let open = false, run = null, settings = "", seed = 0;
  const log = (id, label, value, most) => slider({ id, label, min: 1, max: Math.log10(most), step: 0.01, value: Math.log10(value), show: (at) => whole(at).toLocaleString("en"), change: moved });
  const support = log("support", "N, different pictures there are", 1000, limits.most_support);
  const size = slider({ id: "size", label: "M, pictures in a batch", min: 2, max: 400, value: 40, change: moved });
  const batches = slider({ id: "batches", label: "Batches", min: 5, max: 400, step: 5, value: 100, change: moved });
  const law = choice({ id: "birthday-law", label: "How often each comes up", options: [["uniform", "all equally often"], ["a favourite", "one favourite: every tenth picture"], ["zipf", "the i-th in proportion to 1/i (Zipf)"]], value: "uniform", change: moved });

  const tiles = numbers([
    ["chance", "Batches with a collision"], ["bound", "N_eff is at most (95 %)"], ["effective", "True N_eff = 1/Σp²"], ["counted", "N_eff by counting pairs"],
  ]);
  const room = svg("svg", { class: "room", id: "room", viewBox: "-105 -105 210 210", role: "img" });
  const history = el("ul", { class: "history", id: "history", "aria-hidden": "true" });
  const beside = el("div", {}), trouble = el("div", {}), state = el("p", { class: "note", id: "birthday-state" });

  panel.append(
    el("p", {}, "A generator that has learned N pictures repeats itself after about √N. So the batches that hold a collision tell how many pictures it makes. Here the truth is known: see whether the bound keeps its promise, and that it speaks of the effective support, not of N."),
    el("div", { class: "bench" },
      el("div", { class: "controls" }, support.element, size.element, batches.element, law.element,
        el("div", { class: "row" }, el("button", { type: "button", id: "redraw", onclick: () => { seed = (seed + 1) % 1000; moved(); } }, "Draw other batches"))),
      el("div", {}, trouble, tiles.element,
        el("div", { class: "two" },
          el("figure", {}, el("h3", {}, "The latest batch"), room, state),
          el("figure", {}, el("h3", {}, "What is concluded, beside the truth"), beside, el("h3", {}, "Batches so far"), history,
            el("figcaption", {}, "Filled circles: batches with a collision. Squares: without."))))));

  const body = () => ({ support: whole(support.value), size: size.value, law: law.value, seed, confidence: 0.95 });
  function moved() { work(); }

  const work = newest(async () => {
    while (open) {
      const asked = body(), now = JSON.stringify(asked);
      if (now !== settings) { settings = now; run = { done: 0, collisions: 0, pairs: 0, chains: 0 }; history.replaceChildren(); }
      const left = batches.value - run.done;
      if (left < 0) { settings = ""; continue; }
      if (left === 0 && run.told) break;
      const count = Math.min(left, limits.at_once, run.done < 10 ? 1 : Math.max(1, Math.round(batches.value / 40)));
      let found;
      try {
        found = await ask("birthday", { ...asked, first: run.done, count, collisions: run.collisions, pairs: run.pairs, chains: run.chains });
        problem(trouble, null);
      } catch (error) { problem(trouble, error); break; }
      if (JSON.stringify(body()) !== now) continue;
      run = { ...found, latest: found.batches.at(-1) };
      for (const batch of found.batches) history.append(el("li", { class: batch.pairs ? "hit" : "" }));
      render();
      await new Promise((done) => setTimeout(done, 40)); // to be seen
    }
  });

  function render() {
    const { told, truth } = run;
    tiles.show("chance", percent(told.chance), truth.collision === null ? `of ${run.done}; the truth takes too long to compute` : `of ${run.done}; truth ${percent(truth.collision)}`);
    tiles.show("bound", told.bound === null ? "no bound" : short(told.bound), told.bound === null ? "no collision seen yet" : told.bound >= truth.effective ? "holds" : "fails: 1 in 20 may");
    tiles.show("effective", short(truth.effective), `N = ${truth.support.toLocaleString("en")}`);
    tiles.show("counted", told.counted ? short(told.counted[0]) : "–", told.counted ? `${short(told.counted[1])} to ${short(told.counted[2])}` : "");
    people(room, size.value, run.latest);
    beside.replaceChildren(axis(told, truth));
    const most = Math.max(0, ...(run.latest?.groups ?? []).map((group) => group.who.length));
    state.textContent = run.latest ? (run.latest.pairs
      ? `Batch ${run.done}: ${run.latest.pairs} colliding pair${run.latest.pairs > 1 ? "s" : ""}, at most ${most} equal pictures.`
      : `Batch ${run.done}: ${size.value} different pictures.`) : "";
    say(`${run.done} batches, ${percent(told.chance)} with a collision; ${told.bound === null ? "no bound yet" : `at most ${short(told.bound)} pictures`}, in truth ${short(truth.effective)}.`);
  }

  return { show() { open = true; work(); }, hide() { open = false; } };
}

const whole = (value) => { const number = 10 ** value; return number < 100 ? Math.round(number) : Number(number.toPrecision(2)); };

function people(room, count, batch) {
  const same = new Set(batch ? batch.groups.flatMap((group) => group.who) : []);
  const place = (at) => [98 * Math.sin(2 * Math.PI * at / count), -98 * Math.cos(2 * Math.PI * at / count)];
  const dots = Array.from({ length: count }, (_, at) => {
    const [x, y] = place(at);
    return svg("circle", { class: same.has(at) ? "who same" : "who", cx: x.toFixed(2), cy: y.toFixed(2), r: same.has(at) ? 3.2 : Math.max(0.8, Math.min(3, 250 / count)) });
  });
  const ties = (batch ? batch.groups : []).flatMap((group) => group.who.slice(1).map((who, at) => {
    const [x1, y1] = place(group.who[at]), [x2, y2] = place(who);
    return svg("path", { class: "tie", d: `M${x1.toFixed(1)} ${y1.toFixed(1)}Q0 0 ${x2.toFixed(1)} ${y2.toFixed(1)}` });
  }));
  room.replaceChildren(svg("title", {}, `${count} pictures in a circle; lines join those that are equal: ${batch ? batch.pairs : 0} pairs`), ...ties, ...dots);
}

/** A logarithmic axis with the truth, the bound, the popular estimate and the interval by pairs. */
function axis(told, truth) {
  const values = [truth.effective, truth.support, told.bound, told.popular, ...(told.counted ?? [])].filter((value) => value);
  const low = Math.log10(Math.min(...values)) - 0.3, high = Math.log10(Math.max(...values)) + 0.3;
  const across = (value) => 10 + (Math.log10(value) - low) / (high - low) * 400;
  const parts = [svg("title", {}, `True effective support ${short(truth.effective)}, bound ${short(told.bound)}`)];
  const marks = high - low < 1.6 ? [1, 2, 5] : [1];
  for (let power = Math.floor(low); power <= high; power++) for (const mark of marks) {
    const value = mark * 10 ** power;
    if (Math.log10(value) < low + 0.02 || Math.log10(value) > high - 0.02) continue;
    parts.push(svg("path", { class: "axis", d: `M${across(value)} 6V130` }), svg("text", { x: across(value), y: 146 }, short(value)));
  }
  const row = (y, words, ...marks) => parts.push(svg("text", { x: 10, y: y - 9, class: "start" }, words), ...marks);
  parts.push(svg("path", { class: "here", d: `M${across(truth.effective)} 6V130` }));
  if (told.bound) row(34, "at most this (one-sided)", svg("path", { class: "bar", d: `M10 34H${across(told.bound)}M${across(told.bound)} 29V39` }));
  if (told.counted) row(70, "by counting pairs", svg("path", { class: "bar", d: `M${across(told.counted[1])} 70H${across(told.counted[2])}` }), svg("circle", { class: "point", cx: across(told.counted[0]), cy: 70, r: 4.5 }));
  if (told.popular) row(106, "popular estimate, no bound", svg("circle", { class: "point", cx: across(told.popular), cy: 106, r: 4.5 }));
  parts.push(svg("text", { x: across(truth.effective) + 5, y: 126, class: "start" }, "truth"));
  return svg("svg", { class: "plot", viewBox: "0 0 420 152", role: "img" }, parts);
}
