// Accelerators: what a node is to have and what it sees, who holds each, how it is, and what can be done about it.

import { Problem, ask } from "./api.js";
import * as details from "./details.js";
import { byId, el, show } from "./dom.js";
import { deviceActions } from "./plan.js";
import { moment, sign } from "./words.js";

const ATTRIBUTE = /^gpu-(.+)-(state|why)$/;
const TONES = { ok: "good", degraded: "warn", drain: "warn", failed: "bad", unknown: "unknown" };
const tone = (state) => TONES[state] || "unknown";

let known = { nodes: [], devices: [] };

const placeOf = (device) => `${device.node}:${device.bus || device.id}`;
const holders = (device) => device.claims.map((each) => `${each.resource}${each.is_over ? " (leaving)" : ""}`);

function deviceRow(device) {
  const counts = tone(device.state);
  return el("tr", {},
    el("th", { scope: "row" }, el("button", { type: "button", "data-key": `device ${device.id}`, click: () => openDevice(device.id) },
      el("span", { class: "name" }, device.bus || device.id), el("span", { class: "kind" }, device.profile || device.model))),
    el("td", { "data-tone": counts }, `${sign(counts)} ${device.state}`,
      !device.is_accepted && el("span", { class: "flag" }, "not accepted"), device.drained_by && el("span", { class: "flag" }, "drained")),
    el("td", { "data-tone": tone(device.seen) }, device.seen),
    el("td", {}, holders(device).join(", ") || "–",
      device.strangers.length > 0 && el("span", { class: "note", "data-tone": "warn" }, `also: ${device.strangers.join(", ")}`)),
    el("td", {}, device.reasons[0] || "", device.reasons.length > 1 && ` and ${device.reasons.length - 1} more`));
}

function nodePart(node, devices) {
  return el("section", { class: "gpu-node" },
    el("h3", {}, node.node),
    el("p", { class: "detail" }, `${node.usable} of ${node.total} can be used, driver ${node.driver || "unknown"}, seen ${moment(node.reported_at)}`),
    node.trouble && el("p", { "data-tone": "bad" }, node.trouble),
    el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": `Accelerators of ${node.node}` },
      el("table", { class: "devices" }, el("caption", { class: "unseen" }, `Accelerators of ${node.node}`),
        el("thead", {}, el("tr", {}, ["Device", "Counts as", "Seen as", "Held by", "Why"].map((each) => el("th", { scope: "col" }, each)))),
        el("tbody", {}, devices.filter((each) => each.node === node.node).map(deviceRow)))));
}

// As gpu-health publishes them in node attributes, for nodes whose devices are not watched.
function attributePart(node) {
  const values = node.reboot;
  const found = new Map();
  for (const [name, value] of Object.entries(values)) {
    const match = ATTRIBUTE.exec(name);
    if (match) found.set(match[1], { ...found.get(match[1]), [match[2]]: value });
  }
  return el("section", { class: "gpu-node" },
    el("h3", {}, node.name),
    el("p", { class: "detail" }, `driver ${values["gpu-driver"] || "unknown"}, ${values["gpu-usable"] ?? "?"} usable`,
      values["gpu-why"] && `: ${values["gpu-why"]}`),
    el("ul", { class: "gpus" }, [...found].sort(([one], [other]) => (one < other ? -1 : 1)).map(([bus, each]) =>
      el("li", { "data-tone": tone(each.state) }, el("b", {}, bus), ` ${each.state || "unknown"}`,
        each.why && el("span", { class: "detail" }, ` ${each.why}`)))));
}

function draw(attributes) {
  const watched = new Set(known.nodes.map((each) => each.node));
  const others = attributes.filter((each) => !watched.has(each.name) && Object.keys(each.reboot || {}).some((name) => name.startsWith("gpu-")));
  const withDevices = known.nodes.filter((each) => each.total > 0 || each.trouble || known.devices.some((one) => one.node === each.node));
  byId("gpus").hidden = withDevices.length + others.length === 0;
  show(byId("gpu-list"), withDevices.map((each) => nodePart(each, known.devices)), others.map(attributePart));
}

function openDevice(id) {
  const device = known.devices.find((each) => each.id === id);
  if (!device) return;
  const facts = [
    ["Id", device.id], ["Model", device.model], ["Memory", `${device.memory_mib} MiB`],
    device.profile && ["Partition", device.profile], ["NUMA node", device.numa < 0 ? "not known" : device.numa],
    ["Counts as", `${sign(tone(device.state))} ${device.state} since ${moment(device.since)}`], ["Seen as", device.seen],
    ["Accepted", device.is_accepted ? "yes" : "no: it came after the others, and nothing uses it until somebody accepts it"],
    ["Held by", holders(device).join(", ") || "nobody"],
    device.strangers.length > 0 && ["Used by strangers", device.strangers.join(", ")],
    device.drained_by && ["Drained by", `${device.drained_by}${device.drain_reason ? `: ${device.drain_reason}` : ""}`],
  ].filter(Boolean);
  details.openText(placeOf(device), `device ${id}`, deviceActions(device),
    el("dl", { class: "facts" }, facts.map(([key, value]) => el("div", {}, el("dt", {}, key), el("dd", {}, value)))),
    device.reasons.length > 0 && [el("h3", {}, "Why it is not in order"), el("ul", {}, device.reasons.map((each) => el("li", {}, each)))],
    device.remedies.length > 0 && [el("h3", {}, "What can be done"), el("ul", {}, device.remedies.map((each) => el("li", {}, el("code", {}, each))))]);
}

// Raises api.Problem where the session has ended.
export async function refresh() {
  try {
    const [found, attributes] = await Promise.all([ask("/gpu/list"), ask("/node/attributes", { all: true })]);
    known = found;
    draw(attributes.nodes);
  } catch (problem) {
    if (!(problem instanceof Problem) || problem.status === 401) throw problem;
  }
}
