// Every change is planned first: what it edits, what stops, and then somebody says yes.

import { Problem, ask, change } from "./api.js";
import { byId, el, show } from "./dom.js";
import { actions } from "./may.js";
import { span } from "./words.js";

const dialog = () => byId("plan");
const OPERATION_EVERY_MS = 700;
const RESTART = "This is the plan of the first half, the stop. As soon as it has stopped, it is started again.";

function identifier() {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

function reportsOf(reports) {
  return reports.filter((each) => each.code !== "DRY_RUN").map((each) =>
    el("p", { "data-tone": each.severity === "error" ? "bad" : each.severity === "warning" ? "warn" : "good" },
      each.message, each.remedy && ` → ${each.remedy}`));
}

function within(each) {
  const most = `within ${span(each.at_most_ms)} at most`;
  return each.expected_ms === null ? most : `${most} (${span(each.expected_ms)} by what was measured last)`;
}

function interruptions(rows) {
  if (!rows) return el("p", { "data-tone": "bad" }, "It is not known what would be interrupted.");
  if (rows.length === 0) return el("p", { "data-tone": "good" }, "Nothing that runs is interrupted.");
  return [
    el("p", { "data-tone": "warn" }, `${rows.length === 1 ? "One interruption" : `${rows.length} interruptions`}:`),
    el("ul", {}, rows.map((each) => el("li", {}, el("b", {}, each.resource),
      each.role ? ` (${each.role}) on ${each.node}: ` : ` on ${each.node}: `,
      each.to === null ? "stops, and is started nowhere"
        : `${each.to === each.node ? "restarts there" : `goes to ${each.to}`}, ${within(each)}`))),
  ];
}

function previewed(preview, note) {
  const edits = (preview.change && preview.change.edits) || [];
  const shown = (preview.actions || []).filter((each) => !each.is_probe);
  return [
    edits.length > 0 && [el("h3", {}, "Edits of the configuration"),
      el("ul", { class: "edits" }, edits.map((each) => el("li", {}, el("code", {}, each))))],
    el("h3", {}, "What stops, and for how long"), interruptions(preview.interruptions),
    note && el("p", {}, note),
    shown.length > 0 && el("details", {}, el("summary", {}, `What the cluster then does: ${shown.length} actions`),
      el("ol", {}, shown.map((each) => el("li", {}, each.text, el("span", { class: "detail" }, ` ${each.reason}`))))),
  ].filter(Boolean);
}

// `act`: { title, path, body, note, confirm }; `confirm` is a word to be typed for what is dangerous.
export async function propose(act, { force = false } = {}) {
  byId("plan-title").textContent = act.title;
  const body = byId("plan-body");
  show(body, el("p", {}, "Planning …"));
  if (!dialog().open) dialog().showModal();
  try {
    const { data, headers } = await change(act.path, act.body, { dry_run: true, ...(force && { force: true }) });
    showPlan(act, data, headers.get("Haclusterd-Version"), force);
  } catch (problem) {
    showRefusal(act, problem, force);
  }
}

function showRefusal(act, problem, force) {
  const mayForce = problem.code === "UNSAFE" && !force;
  show(byId("plan-body"), el("p", { role: "alert", "data-tone": "bad" }, problem.message),
    problem.remedy && el("p", {}, `→ ${problem.remedy}`), reportsOf(problem.reports.slice(1)),
    mayForce && el("p", {}, el("button", { type: "button", class: "danger", click: () => propose(act, { force: true }) },
      "Plan it all the same")));
}

function showPlan(act, data, version, force) {
  const interrupted = !data.interruptions || data.interruptions.length > 0;
  const word = act.confirm || (force ? "yes" : "");
  const reason = el("input", { id: "plan-reason", maxlength: 1000, autocomplete: "off", placeholder: "for the history" });
  const typed = word && el("input", { id: "plan-word", autocomplete: "off", autocapitalize: "none", spellcheck: "false" });
  const go = el("button", { type: "submit", class: word || interrupted ? "danger" : "primary", disabled: Boolean(word) },
    interrupted ? "Do it, with the interruption" : "Do it");
  if (typed) typed.addEventListener("input", () => { go.disabled = typed.value !== word; });
  const form = el("form", { submit: (event) => { event.preventDefault(); carryOut(act, version, force, reason.value); } },
    el("label", { for: "plan-reason" }, "Reason"), reason,
    typed && [el("label", { for: "plan-word" }, `This is dangerous. Type ${word} to confirm`), typed],
    el("p", { class: "buttons" }, go));
  show(byId("plan-body"), reportsOf(data.reports), previewed(data, act.note), form);
  (typed || reason).focus();
}

async function carryOut(act, version, force, reason) {
  const line = el("p", { role: "status" }, "Begun …");
  show(byId("plan-body"), line);
  const query = { ...(reason && { reason }), ...(force && { force: true }) };
  const headers = { Prefer: "respond-async", "Idempotency-Key": identifier() };
  if (version !== null) headers["If-Match"] = `"${version}"`;
  try {
    const begun = await change(act.path, act.body, query, headers);
    const ended = await end(begun.data, line);
    if (ended.status >= 400) throw new Problem(ended.status, ended.result);
    show(byId("plan-body"), el("p", { role: "status", "data-tone": "good" }, "Done."), reportsOf(ended.result.reports || []),
      closing());
    if (act.done) act.done();
  } catch (problem) {
    const isOld = problem.status === 412 || problem.code === "CONFLICT";
    show(byId("plan-body"), el("p", { role: "alert", "data-tone": "bad" }, problem.message),
      isOld && el("p", {}, "Somebody changed the configuration after this was planned. Nothing was done."),
      problem.remedy && el("p", {}, `→ ${problem.remedy}`),
      isOld && el("button", { type: "button", class: "primary", click: () => propose(act, { force }) }, "Plan it again"));
  }
}

async function end(operation, line) {
  let found = operation;
  while (found.state === "running") {
    line.textContent = `${found.waits_for || "Under way"} … ${span(found.elapsed_ms)}`;
    await new Promise((resolve) => { setTimeout(resolve, OPERATION_EVERY_MS); });
    found = await ask(`/operations/${encodeURIComponent(operation.id)}`);
  }
  return found;
}

function closing() {
  return el("p", { class: "buttons" }, el("button", { type: "button", click: () => dialog().close() }, "Close"));
}

const verbOf = (act) => act.path.slice(1).replaceAll("/", ".");
const objectOf = (act) => [Object.values(act.body)[0]].flat()[0];

// What is not permitted stays where the keyboard finds it, says why, and does nothing.
function pressed(begin) {
  return (event) => { if (!event.currentTarget.dataset.denied) begin(); };
}

function button(label, act, isDangerous = false) {
  return el("button", { type: "button", class: isDangerous ? "danger" : null, "data-verb": verbOf(act),
    "data-object": objectOf(act), click: pressed(() => propose(act)) }, label);
}

// `make`: the act, for the name that was chosen.
function select(label, names, make) {
  const list = el("select", { "aria-label": label }, names.map((name) => el("option", { value: name }, name)));
  const act = make(names[0]);
  return el("span", { class: "choice" }, list, el("button", { type: "button", "data-verb": verbOf(act),
    "data-object": objectOf(act), click: pressed(() => propose(make(list.value))) }, label));
}

// What can be done with a resource; `top`: what contains it, or itself.
export function resourceActions(status, found) {
  const { resource, top } = found;
  const name = resource.id;
  const nodes = status.nodes.filter((each) => each.state === "online" && !each.is_witness).map((each) => each.name);
  const act = (title, path, body, confirm) => ({ title, path, body, confirm });
  const leaves = (each) => (each.instances ? [each] : each.members.flatMap(leaves));
  const isStopped = leaves(resource).every((each) => each.not_wanted);
  const isManaged = leaves(resource).every((each) => each.is_managed);
  const isMoved = status.moves.some((each) => [name, top.id].includes(each.resource));
  const movable = top.kind === "clone" ? null : top.id;
  return actions(name,
    isStopped ? button("Start", act(`Start ${name}`, "/resource/start", { resources: [name] }))
      : [button("Stop", act(`Stop ${name}`, "/resource/stop", { resources: [name] }, name), true),
        button("Restart", { ...act(`Restart ${name}`, "/resource/restart", { resource: name }), note: RESTART })],
    movable && select("Move there", nodes, (node) =>
      act(`Move ${movable} to ${node}`, "/resource/move", { resource: movable, node })),
    isMoved && button("Clear moves and bans", act(`Clear ${top.id}`, "/resource/clear", { resource: top.id })),
    button("Clean up failures", act(`Forget failures of ${name}`, "/resource/cleanup", { resource: name })),
    isManaged ? button("Unmanage", act(`Unmanage ${name}`, "/resource/manage", { resources: [name], unmanage: true }))
      : button("Manage", act(`Manage ${name}`, "/resource/manage", { resources: [name] })));
}

export function nodeActions(node) {
  const name = node.name;
  return actions(name,
    !node.is_witness && (node.is_standby
      ? button("End standby", { title: `Let ${name} run resources again`, path: "/node/online", body: { node: name } })
      : button("Standby", { title: `Move everything away from ${name}`, path: "/node/standby", body: { node: name } })),
    node.is_maintenance
      ? button("End maintenance", { title: `End the maintenance of ${name}`, path: "/node/maintenance", body: { node: name, ready: true } })
      : button("Maintenance", { title: `Leave ${name} alone`, path: "/node/maintenance", body: { node: name } }),
    !node.is_local &&
      button("Fence", { title: `Fence ${name}: power-cycle it`, path: "/node/fence", body: { node: name }, confirm: name }, true));
}

// What can be done with an accelerator.
export function deviceActions(device) {
  const name = `${device.node}:${device.bus || device.id}`;
  const body = { device: device.id };
  return actions(name,
    !device.is_accepted && button("Accept", { title: `Let resources use ${name}`, path: "/gpu/accept", body }),
    device.drained_by ? button("Clear", { title: `Let resources use ${name} again`, path: "/gpu/clear", body })
      : button("Drain", { title: `Start nothing new on ${name}, and let what uses it leave`, path: "/gpu/drain", body }, true),
    device.remedies.some((each) => each.includes("gpu forget")) && button("Forget", { title: `Forget ${name}`, path: "/gpu/forget", body }));
}
