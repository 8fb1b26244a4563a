// What the one who signed in may do. A button says so before it is pressed; the daemon judges each request all the same.

import { Problem, ask, permissions } from "./api.js";
import { byId, el, say, show } from "./dom.js";

const RANK = { read: 0, operate: 1, administer: 2 };
const WORDS = { read: "look", operate: "operate", administer: "administer" };
const USUAL = [
  ["Start, stop and restart resources", "resource.stop"], ["Move resources", "resource.move"],
  ["Forget failures", "resource.cleanup"], ["Empty a node for maintenance", "node.standby"],
  ["Drain an accelerator", "gpu.drain"], ["Fence a node", "node.fence"],
  ["Edit the configuration", "configure.apply"], ["Make and revoke tokens", "api.token_add"],
];

let identity = null;
let needed = {};

export async function learn() {
  if (Object.keys(needed).length === 0) needed = await permissions();
  identity = await ask("/acl/whoami");
  draw();
}

export function forget() {
  identity = null;
}

// Why a verb is refused to everybody with this permission; empty: it may be asked, or it is not known yet.
export function refusal(verb) {
  if (identity === null || !(verb in needed) || RANK[needed[verb]] <= RANK[identity.permission]) return "";
  return `it needs the permission to ${needed[verb]}, and yours is to ${WORDS[identity.permission]}: ${identity.why}`;
}

async function judged(verb, object) {
  const found = await ask("/acl/can", { verb, object });
  return found.is_permitted ? "" : found.why;
}

function mark(button, reason) {
  button.dataset.denied = reason;
  if (reason) button.setAttribute("aria-disabled", "true");
  else button.removeAttribute("aria-disabled");
}

let groups = 0;

// Buttons with `data-verb`, and `data-object` that they are about; those that are not permitted say so, and why.
export function actions(name, ...children) {
  groups += 1;
  const reasons = el("p", { class: "denied", id: `denied-${groups}` });
  const group = el("div", { class: "actions", role: "group", "aria-label": `Actions for ${name}` }, children);
  const buttons = [...group.querySelectorAll("button[data-verb]")];
  const tell = () => {
    const by = new Map();
    for (const each of buttons) {
      const { denied } = each.dataset;
      if (denied) by.set(denied, [...(by.get(denied) || []), each.textContent]);
      if (denied) each.setAttribute("aria-describedby", reasons.id);
      else each.removeAttribute("aria-describedby");
    }
    show(reasons, [...by].map(([reason, labels]) => el("span", {}, el("b", {}, `Not permitted: ${labels.join(", ")}`), ` – ${reason}. `)));
  };
  for (const each of buttons) mark(each, refusal(each.dataset.verb));
  tell();
  if (identity !== null && identity.is_restricted) judgeEach(buttons.filter((each) => !each.dataset.denied), tell);
  return [group, reasons];
}

async function judgeEach(buttons, tell) {
  const known = new Map();
  try {
    for (const each of buttons) {
      const { verb, object } = each.dataset;
      const key = `${verb} ${object}`;
      if (!known.has(key)) known.set(key, await judged(verb, object));
      mark(each, known.get(key));
      tell();
    }
  } catch (problem) {
    if (!(problem instanceof Problem)) throw problem;
  }
}

function usual([label, verb]) {
  const reason = refusal(verb);
  return el("tr", {}, el("th", { scope: "row" }, label),
    el("td", { "data-tone": reason ? "off" : "good" }, reason ? "○ no" : identity.is_restricted ? "◐ as lists say" : "● yes"),
    el("td", {}, WORDS[needed[verb]]));
}

function draw() {
  const facts = [["You", identity.author], ["Roles", identity.role], ["Permission", WORDS[identity.permission]], ["Given by", identity.why]];
  show(byId("may-facts"), facts.map(([key, value]) => el("div", {}, el("dt", {}, key), el("dd", {}, value))));
  show(byId("may-table"),
    el("thead", {}, el("tr", {}, ["What", "May you?", "Needs the permission to"].map((each) => el("th", { scope: "col" }, each)))),
    el("tbody", {}, USUAL.filter(([, verb]) => verb in needed).map(usual)));
  if (byId("may-verb").length > 0) return;
  show(byId("may-verb"), Object.keys(needed).sort().map((each) => el("option", { value: each }, each)));
  byId("may-verb").value = "resource.stop";
}

async function question(event) {
  event.preventDefault();
  const [verb, object] = [byId("may-verb").value, byId("may-object").value.trim()];
  const answer = byId("may-answer");
  answer.dataset.tone = "off";
  say(answer, "Asking …");
  try {
    const found = await ask("/acl/can", { verb, object });
    answer.dataset.tone = found.is_permitted ? "good" : "bad";
    say(answer, `${found.is_permitted ? "● Yes" : "○ No"}: ${found.why}`);
  } catch (problem) {
    answer.dataset.tone = "bad";
    say(answer, `${problem.message}${problem.remedy ? ` → ${problem.remedy}` : ""}`);
  }
}

export function begin() {
  byId("may-form").addEventListener("submit", question);
}
