// Questions to the server, and what happens when it is gone. Every address is relative: it begins with the token.
let base = location.pathname, secret = null;
const watchers = new Set();
let lost = false;

export class Problem extends Error {}

export function onConnection(watcher) { watchers.add(watcher); }

/** One question; a Problem says what to correct, a lost connection is told to the watchers and waited for. */
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
    if (response.status === 403 && secret) { // another start at the same port: it has another token
      await recovered();
      continue;
    }
    if (!response.ok) throw new Problem((await response.text()).trim());
    const answer = await response.json();
    if (name === "about") secret = answer.secret;
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
    const token = await found();
    if (!token) continue;
    base = `/${token}/`;
    history.replaceState(null, "", base + location.hash);
    break;
  }
  set(false);
}

function set(value) {
  if (lost === value) return;
  lost = value;
  for (const watcher of watchers) watcher(lost);
}

/** The token of our server if it answers: it proves that it knows the secret, which is never sent. */
async function found() {
  const nonce = hex(crypto.getRandomValues(new Uint8Array(16)));
  try {
    const response = await fetch(`/alive/${nonce}`);
    if (!response.ok) return null;
    const { salt, proof } = await response.json();
    if (proof !== hex(await mac(`proof ${nonce} ${location.port || 80} ${salt}`))) return null;
    return hex(await mac(`token ${salt}`));
  } catch {
    return null;
  }
}

async function mac(text) {
  const key = await crypto.subtle.importKey("raw", bytes(secret), { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  return new Uint8Array(await crypto.subtle.sign("HMAC", key, new TextEncoder().encode(text)));
}

const hex = (values) => Array.from(values, (byte) => byte.toString(16).padStart(2, "0")).join("");
const bytes = (text) => Uint8Array.from(text.match(/../g), (pair) => parseInt(pair, 16));

/** Asks now and then while nothing else is asked, so that a lost server is noticed. */
export function keepWatch(every = 3000) {
  setInterval(async () => {
    if (lost || document.hidden) return;
    const token = await found();
    if (!token || base !== `/${token}/`) recovered();
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
