// What is behind one resource or one node: why it is there, with scores; and what can be done.

import { ask } from "./api.js";
import { byId, el, show } from "./dom.js";
import { isSilent, length, moment, sign, tone } from "./words.js";

const dialog = () => byId("details");

let openedBy = "";

// The grid may have been drawn again meanwhile: the focus goes to what stands now where it was.
export function begin() {
  dialog().addEventListener("close", () => {
    for (const each of document.querySelectorAll("[data-key]")) if (each.dataset.key === openedBy) each.focus();
  });
}

function opened(title, key) {
  openedBy = key;
  byId("details-title").textContent = title;
  show(byId("details-body"), el("p", {}, "Asking …"));
  if (!dialog().open) dialog().showModal();
}

export function openText(title, key, ...children) {
  opened(title, key);
  show(byId("details-body"), children);
}

function problemText(problem) {
  return el("p", { role: "alert", "data-tone": "bad" }, problem.message, problem.remedy && ` → ${problem.remedy}`);
}

function addends(rows) {
  return el("ul", { class: "addends" },
    rows.map((each) => el("li", {}, el("b", {}, each.score), ` ${each.source}`)));
}

function scoreRow(node) {
  const place = node.is_now && node.is_next ? "here, stays" : node.is_now ? "here now" : node.is_next ? "comes here" : "";
  const parts = node.addends.filter((each) => each.score !== node.score || each.source !== node.objection);
  return el("tr", { class: node.is_next ? "chosen" : null },
    el("th", { scope: "row" }, node.node, place && el("span", { class: "flag" }, place)),
    el("td", { class: "score" }, node.score),
    el("td", {}, node.objection && el("p", {}, `not possible: ${node.objection}`),
      parts.length > 0 && addends(parts),
      node.to_win.length > 0 && el("details", {}, el("summary", {}, "what would bring it here"),
        el("ul", {}, node.to_win.map((each) => el("li", {}, each))))));
}

function explained(found, title) {
  const promotion = found.promotion;
  return el("section", { class: "why" },
    found.resource !== title && el("h3", {}, found.resource),
    el("p", { class: "verdict" }, found.verdict, found.not_wanted && ` (${found.not_wanted})`),
    found.instances.filter((each) => each.detail).map((each) => el("p", {}, `${each.node}: ${each.detail}`)),
    promotion && el("p", {}, `promotion score ${promotion.score}`,
      promotion.to_be_promoted.map((each) => ` · ${each}`)),
    el("div", { class: "scroll" }, el("table", { class: "scores", "aria-label": `Scores of ${found.resource}` },
      el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Node"), el("th", { scope: "col" }, "Score"),
        el("th", { scope: "col" }, "It is the sum of"))),
      el("tbody", {}, found.nodes.map(scoreRow)))),
    found.actions.length > 0 && [el("h4", {}, "What the cluster does now"),
      el("ul", {}, found.actions.map((each) => el("li", {}, each)))],
    found.advice.length > 0 && [el("h4", {}, "What would change it"),
      el("ul", {}, found.advice.map((each) => el("li", {}, el("code", {}, each))))]);
}

export async function openResource(id, actions) {
  opened(id, `resource ${id}`);
  try {
    const why = await ask("/resource/why", { resource: id });
    show(byId("details-body"), why.reports.map((each) => el("p", { "data-tone": "warn" }, each.message)),
      actions, el("h3", { class: "unseen" }, "Why it runs where it runs"), why.resources.map((each) => explained(each, id)));
  } catch (problem) {
    show(byId("details-body"), problemText(problem));
  }
}

export async function openNode(status, name, actions) {
  opened(name, `node ${name}`);
  const node = status.nodes.find((each) => each.name === name);
  const facts = [
    ["State", `${sign(tone(node.state))} ${node.state} since ${moment(node.since)}`],
    node.detail && ["Because", node.detail],
    ["Vote", node.is_witness ? "witness" : node.is_voter ? "voter" : "no vote"],
    node.heard_age_ms !== null && ["Heard", `${length(node.heard_age_ms)} ago`],
    node.state === "online" && !isSilent(node) && ["Daemon", node.brain],
    node.held_join && ["Join held", node.held_join],
    ...node.unhealthy.map((each) => ["Unhealthy", typeof each === "string" ? each : Object.values(each).join(" ")]),
    ...status.fencing.devices.filter((each) => each.target === name).map((each) =>
      ["Fence device", `${each.device}: ${each.state}${each.at ? ` at ${moment(each.at)}` : ""} ${each.detail}`]),
  ].filter(Boolean);
  const list = el("dl", { class: "facts" }, facts.map(([key, value]) => el("div", {}, el("dt", {}, key), el("dd", {}, value))));
  show(byId("details-body"), actions, list);
  const title = { online: "If it died now", lost: "Once it is fenced" }[node.state];
  if (title === undefined) return;
  try {
    const plan = await ask("/fencing/plan", { node: name });
    byId("details-body").append(el("h3", {}, title), ...[deathPlan(plan)].flat());
  } catch (problem) {
    byId("details-body").append(problemText(problem));
  }
}

function deathPlan(plan) {
  if (!plan.has_quorum) return el("p", { "data-tone": "bad" }, "No quorum would be left: nothing could be recovered.");
  const actions = plan.actions.map((each) => el("li", {}, each));
  const warnings = plan.warnings.map((each) => el("p", { "data-tone": "warn" }, String(each)));
  return [warnings, actions.length ? el("ol", {}, actions) : el("p", {}, "Nothing would have to be recovered.")].flat();
}
