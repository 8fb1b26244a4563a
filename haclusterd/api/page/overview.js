// The first screen: what is the matter, what to do next, what runs where.

import { byId, el, say, show } from "./dom.js";
import { isSilent, sign, span, time, tone } from "./words.js";

const GRAVITY = ["good", "warn", "bad"];

export function showHeadlines(status) {
  const [first, ...others] = status.headlines;
  const card = byId("headline");
  card.dataset.tone = GRAVITY[status.gravity] || "bad";
  say(byId("verdict"), first.verdict);
  say(byId("verdict-text"), first.text);
  byId("next-step").hidden = !first.remedy;
  say(byId("next-step-text"), first.remedy);
  const rows = others.map((each) =>
    el("li", { "data-tone": GRAVITY[each.gravity] }, el("span", {}, each.text),
      each.remedy && el("span", { class: "remedy" }, `→ ${each.remedy}`)));
  const warnings = status.warnings.map((each) => el("li", { "data-tone": "warn" }, String(each)));
  show(byId("more-headlines"), rows, warnings);
  document.title = `${first.verdict} · ${status.cluster} · haclusterd`;
  say(byId("cluster"), status.cluster);
}

export function showFacts(status) {
  const { connected, voters, missing } = status.quorum;
  const quorum = status.quorum.has ? `${connected} of ${voters} voters` : `NO QUORUM: missing ${missing.join(", ")}`;
  const facts = [
    ["Quorum", quorum],
    ["DC", status.dc || "none"],
    ["Configuration", `version ${status.configuration.version}, by ${status.configuration.author || "nobody"}`],
    ["In flight", status.transition ? `${status.transition.done} of ${status.transition.total} actions`
      : status.orders.length ? `${status.orders.length} actions` : "nothing"],
  ];
  if (status.maintenance) facts.unshift(["Maintenance", "the cluster leaves everything alone"]);
  show(byId("facts"), facts.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))));
}

// How old what is shown is; `heardAt` is this browser's clock.
export function showAge(status, heardAt, problem) {
  const quiet = Date.now() - heardAt;
  const staleMs = status ? status.stale_ms + (problem ? quiet : 0) : 0;
  const line = byId("age");
  line.dataset.tone = problem || staleMs > 1000 ? "bad" : "good";
  if (problem) say(line, `${problem.message}. ${status ? `Shown is what was so ${span(quiet)} ago.` : ""}`);
  else if (staleMs > 1000) say(line, `OLD: ${status.answered_by} has no quorum; what it knows is ${span(staleMs)} old.`);
  else if (status) say(line, `Current, from ${status.answered_by}, ${time(status.now)}`);
}

function nodeFlags(node) {
  const flags = [
    node.is_dc && "DC", node.is_witness && "witness", node.is_standby && "standby", node.is_maintenance && "maintenance",
    node.is_leaving && "leaving", node.is_being_fenced && "being fenced", node.unhealthy.length > 0 && "unhealthy",
    node.unverified > 0 && "unverified", isSilent(node) && `not heard for ${span(node.heard_age_ms)}`,
  ];
  return flags.filter(Boolean);
}

// A tone, or that it is not known: what is shown of a silent node is what was so when it was heard last.
const known = (node, kind) => (isSilent(node) && kind === "good" ? "unknown" : kind);

function nodeHead(node, open) {
  const state = known(node, tone(node.state));
  return el("th", { scope: "col" },
    el("button", { class: "node", "data-key": `node ${node.name}`, click: () => open.node(node.name) },
      el("span", { class: "name" }, node.name),
      el("span", { class: "state", "data-tone": state }, `${sign(state)} ${node.state}`),
      nodeFlags(node).map((each) => el("span", { class: "flag" }, each))));
}

// Resources with what is in them, depth first.
export function* flattened(resources, depth = 0) {
  for (const each of resources) {
    yield { resource: each, depth };
    yield* flattened(each.members, depth + 1);
  }
}

const MANY_ROWS = 20;

// Whether a resource, itself, is not as it is wanted.
function needsAttention(status, resource) {
  if (status.failures.some((each) => each.resource === resource.id)) return true;
  if (!resource.instances) return false;
  const isMissing = resource.instances.length === 0 && !resource.not_wanted;
  return isMissing || !resource.is_managed || resource.is_maintenance
    || resource.instances.some((each) => !["good", "busy"].includes(tone(each.state)));
}

// Those that are wanted, with what contains them and what is in them, depth first.
function chosen(resources, isWanted) {
  return resources.flatMap((each) => {
    if (isWanted(each)) return [each];
    const members = chosen(each.members, isWanted);
    return members.length ? [{ ...each, members }] : [];
  });
}

function choose(status, count) {
  const [which, name] = [byId("grid-which").value, byId("grid-name").value.trim().toLowerCase()];
  byId("grid-choice").hidden = count <= MANY_ROWS;
  if (count <= MANY_ROWS || (which === "" && name === "")) return status.resources;
  const isWrong = (each) => which === "" || needsAttention(status, each);
  return chosen(status.resources, (each) => each.id.toLowerCase().includes(name) && isWrong(each));
}

export function begin(draw) {
  byId("grid-which").addEventListener("change", draw);
  byId("grid-name").addEventListener("input", draw);
}

function cell(status, resource, node) {
  const order = status.orders.find((each) => each.node === node.name && each.resource === resource.id && !each.is_probe
    && each.interval_ms === 0);
  const found = resource.instances.find((each) => each.node === node.name);
  const failure = status.failures.find((each) => each.node === node.name && each.resource === resource.id);
  const parts = [];
  if (order) parts.push(el("span", { "data-tone": "busy" }, `${sign("busy")} ${order.action} …`));
  else if (found) {
    const kind = known(node, tone(found.state));
    const word = found.state === "started" ? (found.role === "Started" ? "runs" : found.role) : found.state;
    parts.push(el("span", { "data-tone": kind, class: found.role === "Promoted" ? "promoted" : null },
      `${sign(kind)} ${word}`));
    if (found.detail) parts.push(el("span", { class: "detail" }, found.detail));
  }
  if (failure) {
    const times = failure.count ? ` (${failure.count})` : "";
    parts.push(el("span", { "data-tone": "bad" }, `${sign("bad")} ${failure.operation || "it"} failed${times}`));
  }
  return el("td", {}, parts.length ? parts : el("span", { class: "nothing" }, "–"));
}

function rowNote(resource) {
  if (!resource.instances) return "";
  const notes = [];
  if (resource.is_maintenance) notes.push("maintenance");
  else if (!resource.is_managed) notes.push("not managed");
  if (resource.instances.length === 0) notes.push(`stopped${resource.not_wanted || resource.why_stopped
    ? `: ${resource.not_wanted || resource.why_stopped}` : ""}`);
  return notes.join(", ");
}

function row(status, { resource, depth }, open) {
  const note = rowNote(resource);
  const wanted = resource.instances && !resource.not_wanted;
  const head = el("th", { scope: "row", class: `depth-${Math.min(depth, 3)}` },
    el("button", { "data-key": `resource ${resource.id}`, click: () => open.resource(resource.id) },
      el("span", { class: "name" }, resource.id),
      el("span", { class: "kind" }, resource.agent || resource.kind)),
    note && el("span", { class: "note", "data-tone": resource.instances.length === 0 && wanted ? "bad" : "off" }, note));
  const cells = status.nodes.map((node) => (resource.instances ? cell(status, resource, node) : el("td")));
  return el("tr", { class: resource.instances ? null : "container" }, head, cells);
}

export function showGrid(status, open) {
  const head = el("thead", {}, el("tr", {}, el("td", {}, ""), status.nodes.map((node) => nodeHead(node, open))));
  const count = [...flattened(status.resources)].length;
  const rows = [...flattened(choose(status, count))].map((each) => row(status, each, open));
  const nothing = count ? "No resource is like that." : "No resource is configured.";
  const none = el("tr", {}, el("td", { colspan: status.nodes.length + 1 }, nothing));
  say(byId("grid-count"), `${rows.length} of ${count}`);
  show(byId("grid"), el("caption", { class: "unseen" }, "What runs on which node"), head,
    el("tbody", {}, rows.length ? rows : none));
}
