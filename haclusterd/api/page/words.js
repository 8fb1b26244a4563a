// How times, spans and states are written.

const clock = new Intl.DateTimeFormat([], { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });
const day = new Intl.DateTimeFormat([], { year: "numeric", month: "short", day: "numeric" });

export const time = (ms) => clock.format(new Date(ms));

export function moment(ms, now = Date.now()) {
  const when = new Date(ms);
  const isToday = when.toDateString() === new Date(now).toDateString();
  return isToday ? time(ms) : `${day.format(when)}, ${time(ms)}`;
}

export function span(ms) {
  const s = Math.max(0, Math.round(ms / 1000));
  if (s < 90) return `${s} s`;
  if (s < 5400) return `${Math.round(s / 60)} min`;
  if (s < 129_600) return `${Math.round(s / 3600)} h`;
  return `${Math.round(s / 86_400)} days`;
}

// A span where tenths of a second count.
export const length = (ms) => (ms < 10_000 ? `${(ms / 1000).toFixed(1)} s` : span(ms));

// Millionths, which are never rounded up.
export const percent = (ppm) => `${Math.floor(ppm / 10_000)}.${String(ppm % 10_000).padStart(4, "0")} %`;

// A sign beside each word: colour alone says nothing to some eyes.
const SIGNS = { good: "●", busy: "◐", off: "○", bad: "▲", unknown: "?" };
const STATES = {
  started: "good", online: "good", proven: "good",
  starting: "busy", stopping: "busy", pending: "busy", joining: "busy", leaving: "busy",
  stopped: "off", left: "off", fenced: "off", untested: "off",
  failed: "bad", lost: "bad", blocked: "bad", failing: "bad",
};

// A node that counts as online, and of which nothing was heard for so long: what is known of it may not be so any more.
const SILENT_MS = 5000;
export const isSilent = (node) => node.state === "online" && node.heard_age_ms > SILENT_MS;

export const tone = (state) => STATES[state] || "unknown";
export const sign = (kind) => SIGNS[kind];

// What an event is about, for the colour of its mark and the lane that it stands in.
const KINDS = {
  failure: ["operation-failed", "fencing-failed", "node-lost", "outcome-unknown", "order-not-begun", "refused", "history-gap"],
  fence: ["fencing-ordered", "fencing-agent-succeeded", "node-fenced", "fence-agent-ended", "node-unfenced", "fencings-forgotten", "device-proven"],
  person: ["configuration-changed", "failures-forgotten", "api-token-changed", "ticket-changed", "leader-requested", "members-changed"],
  node: ["node-joined", "node-leaving", "node-left", "dc-elected", "cluster-formed", "node-retired", "feature-level-rose"],
};
const KIND_OF = new Map(Object.entries(KINDS).flatMap(([group, kinds]) => kinds.map((kind) => [kind, group])));
const MOVES = /^(start|stop|promote|demote|migrate_to|migrate_from) of /;

export function groupOf(event) {
  const group = KIND_OF.get(event.kind);
  if (group) return group;
  if (event.kind === "operation-succeeded" && MOVES.test(event.text)) return "move";
  return "other";
}

export const GROUPS = {
  failure: "failures", fence: "fencing", move: "starts, stops, moves", person: "changes by people", node: "nodes",
};
