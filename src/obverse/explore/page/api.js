// Questions to the server, and what happens when it is gone. Every address is relative: it begins with the token.
const base = location.pathname;
const token = base.split("/")[1];
const watchers = new Set();
let lost = false;

export class Problem extends Error {}

export function onConnection(watcher) { watchers.add(watcher); }

/** One question; a Problem says what to put right, a lost connection is told to the watchers and waited for. */
export async function ask(name, body = {}) {
  for (;;) {
    let response;
    try {
      response = await fetch(base + name, {
        method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
      });
    } catch {
      await recovered();
      continue;
    }
    if (!response.ok) throw new Problem((await response.text()).trim());
    const answer = await response.json();
    if (answer.error) throw new Problem(answer.error);
    return answer;
  }
}

let waiting = null;
function recovered() {
  waiting ??= wait().finally(() => { waiting = null; });
  return waiting;
}

async function wait() {
  set(true);
  for (;;) {
    await new Promise((done) => setTimeout(done, 700));
    if (await same()) break;
  }
  set(false);
}

function set(value) {
  if (lost === value) return;
  lost = value;
  for (const watcher of watchers) watcher(lost);
}

/** Whether our server answers: it proves that it knows the token, which is not sent to whoever has the port now. */
async function same() {
  const nonce = [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  try {
    const response = await fetch(`/alive/${nonce}`);
    if (!response.ok) return false;
    const { proof } = await response.json();
    const bytes = new TextEncoder();
    const key = await crypto.subtle.importKey("raw", bytes.encode(token), { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
    const signed = new Uint8Array(await crypto.subtle.sign("HMAC", key, bytes.encode(nonce)));
    return proof === [...signed].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  } catch {
    return false;
  }
}

/** Asks now and then while nothing else is asked, so that a lost server is noticed. */
export function keepWatch(every = 3000) {
  setInterval(async () => {
    if (!lost && !document.hidden && !(await same())) recovered();
  }, every);
}

/** Runs `work` with the newest state only: while one runs, later calls become one more run. */
export function newest(work) {
  let running = false, again = false;
  return async function run() {
    if (running) { again = true; return; }
    running = true;
    try {
      do { again = false; await work(); } while (again);
    } finally { running = false; }
  };
}
