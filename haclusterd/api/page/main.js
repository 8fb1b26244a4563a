// The page as a whole: who signed in, what is asked for when, and where it is shown.

import * as api from "./api.js";
import * as availability from "./availability.js";
import * as details from "./details.js";
import { byId, say } from "./dom.js";
import * as gpus from "./gpus.js";
import * as may from "./may.js";
import * as overview from "./overview.js";
import * as past from "./past.js";
import * as picture from "./picture.js";
import { nodeActions, resourceActions } from "./plan.js";
import * as timeline from "./timeline.js";

const POLL_MS = 10_000;
const POLL_ALONE_MS = 3000;
const SOON_MS = 250;
const SIX_HOURS_MS = 6 * 3_600_000;

const state = {
  role: "", status: null, configuration: null, heardAt: 0, problem: null, stream: null, isLive: false, timer: 0,
  isAsking: false, isWanted: false,
};

const open = {
  resource(id) {
    const all = [];
    const walk = (each, top) => { all.push({ resource: each, top }); each.members.forEach((one) => walk(one, top)); };
    state.status.resources.forEach((each) => walk(each, each));
    const found = all.find((each) => each.resource.id === id);
    if (found) details.openResource(id, resourceActions(state.status, found));
  },
  node(name) {
    const node = state.status.nodes.find((each) => each.name === name);
    if (node) details.openNode(state.status, name, nodeActions(node));
  },
};

function render() {
  const { status } = state;
  overview.showHeadlines(status);
  overview.showFacts(status);
  overview.showGrid(status, open);
  timeline.setNodes(status.nodes.map((each) => each.name));
  past.setNames(status, [...overview.flattened(status.resources)].map((each) => each.resource.id));
  if (state.configuration) picture.draw(status, state.configuration.configuration);
}

async function refresh() {
  if (state.isAsking) { state.isWanted = true; return; }
  state.isAsking = true;
  try {
    state.status = await api.ask("/status");
    if (state.configuration === null || state.configuration.version !== state.status.configuration.version) {
      state.configuration = await api.ask("/configure/show", { structured: true });
    }
    state.heardAt = Date.now();
    state.problem = null;
    render();
  } catch (problem) {
    if (problem.status === 401) return signedOut("The session has ended. Sign in again.");
    if (!(problem instanceof api.Problem)) throw problem;
    state.problem = problem;
  } finally {
    state.isAsking = false;
    if (state.isWanted) { state.isWanted = false; soon(); }
  }
  overview.showAge(state.status, state.heardAt, state.problem);
  return undefined;
}

let soonTimer = 0;
function soon() {
  if (soonTimer === 0) soonTimer = setTimeout(() => { soonTimer = 0; refresh(); }, SOON_MS);
}

async function refreshGpus() {
  try {
    await gpus.refresh();
  } catch (problem) {
    if (problem.status !== 401) throw problem;
    signedOut("The session has ended. Sign in again.");
  }
}

async function learnRights() {
  try {
    await may.learn();
  } catch (problem) {
    if (!(problem instanceof api.Problem)) throw problem;
    setTimeout(() => { if (state.role !== "") learnRights(); }, POLL_MS);
  }
}

function live(isLive) {
  state.isLive = isLive;
  say(byId("live"), isLive ? "live" : "asked every few seconds");
  byId("live").dataset.tone = isLive ? "good" : "warn";
}

function follow() {
  if (state.stream) state.stream.close();
  state.stream = api.follow({
    opened: () => { live(true); soon(); },
    lost: () => { live(false); if (state.stream.readyState === EventSource.CLOSED) state.stream = null; soon(); },
    state: (news) => { if (news.stale_ms > 1000 || news.problem) soon(); else state.heardAt = Date.now(); },
    happened(event) {
      soon();
      if (event === null) return;
      timeline.add(event);
      if (event.kind === "attribute-changed" || event.kind.startsWith("device")) refreshGpus();
      if (event.kind === "availability-changed") availability.soon();
      if (event.kind === "configuration-changed") learnRights();
    },
  });
}

let lastPoll = 0;
function tick() {
  if (document.hidden || state.role === "") return;
  if (!state.stream) follow();
  const isDue = Date.now() - lastPoll > (state.isLive ? POLL_MS : POLL_ALONE_MS);
  if (isDue) { lastPoll = Date.now(); refresh(); } else overview.showAge(state.status, state.heardAt, state.problem);
}

function signedIn(session) {
  state.role = session.role;
  byId("who").textContent = session.author;
  byId("who").title = session.author;
  byId("sign-in").hidden = true;
  byId("signed-in").hidden = false;
  byId("sign-out").hidden = false;
  document.body.classList.add("signed-in");
  refresh().then(() => timeline.load(SIX_HOURS_MS)).catch(() => undefined);
  refreshGpus();
  learnRights();
  availability.load();
  follow();
  clearInterval(state.timer);
  state.timer = setInterval(tick, 1000);
}

function signedOut(text) {
  clearInterval(state.timer);
  if (state.stream) state.stream.close();
  may.forget();
  Object.assign(state, { role: "", status: null, configuration: null, stream: null, isLive: false });
  for (const each of document.querySelectorAll("dialog[open]")) each.close();
  byId("signed-in").hidden = true;
  byId("sign-out").hidden = true;
  byId("who").textContent = "";
  document.title = "haclusterd";
  document.body.classList.remove("signed-in");
  byId("sign-in").hidden = false;
  byId("sign-in-problem").textContent = text;
  byId("token").focus();
}

async function signIn(event) {
  event.preventDefault();
  const field = byId("token");
  const line = byId("sign-in-problem");
  line.textContent = "";
  try {
    const session = await api.signIn(field.value.trim());
    field.value = "";
    signedIn(session);
  } catch (problem) {
    line.textContent = problem.status === 401
      ? "This token is not valid: it may have expired, or been revoked. Make one with: crm api token add NAME --role viewer"
      : `${problem.message}${problem.remedy ? ` → ${problem.remedy}` : ""}`;
    field.focus();
  }
}

async function signOut() {
  try {
    await api.signOut();
    signedOut("Signed out.");
  } catch (problem) {
    signedOut(problem.status === 401 ? "Signed out." : `This page forgot the session, but could not end it: ${problem.message}`);
  }
}

function begin() {
  byId("sign-in-form").addEventListener("submit", signIn);
  byId("sign-out").addEventListener("click", signOut);
  details.begin();
  overview.begin(() => { if (state.status) overview.showGrid(state.status, open); });
  timeline.begin();
  past.begin();
  availability.begin();
  may.begin();
  for (const each of document.querySelectorAll("dialog")) {
    each.querySelector(".close").addEventListener("click", () => each.close());
  }
  byId("plan").addEventListener("close", soon);
  document.addEventListener("visibilitychange", () => {
    if (document.hidden && state.stream) { state.stream.close(); state.stream = null; } else tick();
  });
  window.addEventListener("resize", () => { if (state.status) render(); });
  api.session().catch(() => api.signIn()).then(signedIn, (problem) => signedOut(problem.status === 401 ? "" : problem.message));
}

begin();
