// The search in the history.

import { ask } from "./api.js";
import { byId, el, show } from "./dom.js";
import { eventRow } from "./timeline.js";

const LIMIT = 1000;

function matches(event, text) {
  return [event.text, event.author, event.reason, event.kind].some((each) => each.toLowerCase().includes(text));
}

export function setNames(status, resources) {
  const options = (names) => names.map((name) => el("option", { value: name }, name));
  show(byId("past-resources"), options(resources));
  const nodes = byId("past-node");
  const held = nodes.value;
  show(nodes, el("option", { value: "" }, "any node"), options(status.nodes.map((each) => each.name)));
  nodes.value = held;
}

async function search() {
  const field = (name) => byId(`past-${name}`).value.trim();
  const query = { since: field("since"), node: field("node"), resource: field("resource"), limit: LIMIT };
  const note = byId("past-note");
  note.textContent = "Asking …";
  try {
    const found = await ask("/history/events", query);
    const text = field("text").toLowerCase();
    const events = found.events.filter((each) => matches(each, text)).reverse();
    note.textContent = `${events.length} ${events.length === 1 ? "event" : "events"}${found.left_out ? `; ${found.left_out} older ones were not searched: choose a resource, a node or a shorter time` : ""}. `
      + found.reports.map((each) => each.message).join(" ");
    show(byId("past-list"), events.map(eventRow));
  } catch (problem) {
    note.textContent = `${problem.message}${problem.remedy ? ` → ${problem.remedy}` : ""}`;
    show(byId("past-list"));
  }
}

export function begin() {
  byId("past-form").addEventListener("submit", (event) => { event.preventDefault(); search(); });
}
