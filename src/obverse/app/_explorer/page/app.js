// The tabs: which one is shown, by click, by arrow keys and by the address. The tabs themselves are modules.
import { ask, keepWatch, onConnection } from "./api.js";
import { el } from "./ui.js";
import { shadowTab } from "./shadow.js";
import { benchTab } from "./bench.js";
import { auditTab } from "./audit.js";
import { birthdayTab } from "./birthday.js";
import { ladderTab } from "./ladder.js";

const makers = { shadow: shadowTab, bench: benchTab, audit: auditTab, birthday: birthdayTab, ladder: ladderTab };
const names = Object.keys(makers);
const made = {};
let about = null, shown = null;

function show(name, focus = false) {
  if (!about) return;
  if (shown && made[shown]?.hide) made[shown].hide();
  for (const one of names) {
    const tab = document.getElementById(`tab-${one}`), own = one === name;
    tab.setAttribute("aria-selected", own);
    tab.tabIndex = own ? 0 : -1;
    document.getElementById(`panel-${one}`).hidden = !own;
    if (own && focus) tab.focus();
    if (own) tab.scrollIntoView({ inline: "nearest", block: "nearest" });
  }
  shown = name;
  const panel = document.getElementById(`panel-${name}`);
  made[name] ??= makers[name](panel, about);
  made[name].show?.();
  if (location.hash.slice(1) !== name) history.replaceState(null, "", `#${name}`);
  document.title = `${document.getElementById(`tab-${name}`).textContent} — obverse explore`;
}

const fromAddress = () => (names.includes(location.hash.slice(1)) ? location.hash.slice(1) : "shadow");

document.getElementById("tabs").addEventListener("click", (event) => {
  const tab = event.target.closest("[role=tab]");
  if (tab) show(tab.id.slice(4));
});
document.getElementById("tabs").addEventListener("keydown", (event) => {
  const at = names.indexOf(shown);
  const next = { ArrowRight: (at + 1) % names.length, ArrowLeft: (at + names.length - 1) % names.length, Home: 0, End: names.length - 1 }[event.key];
  if (next === undefined) return;
  event.preventDefault();
  show(names[next], true);
});
addEventListener("hashchange", () => { if (names.includes(location.hash.slice(1))) show(fromAddress()); });
document.querySelector(".skip").addEventListener("click", (event) => { // without a new address, which names the tab
  event.preventDefault();
  document.getElementById("main").focus();
});

const banner = document.getElementById("lost");
onConnection((lost) => {
  banner.hidden = !lost;
  banner.replaceChildren(...(lost
    ? [el("strong", {}, "The server does not answer. "), "It was stopped, or it is busy starting. Start ",
      el("code", {}, "obverse explore"), " again: this page goes on by itself as soon as it is back."]
    : []));
  if (!lost) reloadIfChanged();
});

/** A server that came back may have another net: then everything on the page is about the old one. */
async function reloadIfChanged() {
  const now = await ask("about");
  const of = (one) => JSON.stringify([one.version, one.net]);
  if (about && of(now) !== of(about)) location.reload();
}

try {
  about = await ask("about");
  const shape = about.net.shape.join("×");
  document.getElementById("subject").textContent =
    `${about.net.name}: ${about.net.layers.length} layer${about.net.layers.length === 1 ? "" : "s"}, inputs ${shape}, ${about.net.data}`;
  show(fromAddress());
  keepWatch();
} catch (error) {
  banner.hidden = false;
  banner.replaceChildren(el("strong", {}, "The page could not be set up. "), error.message);
}
