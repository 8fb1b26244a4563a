// How long services were up, and why not: from the log, so every node says the same.

import { Problem, ask } from "./api.js";
import { byId, el, say, show, svg } from "./dom.js";
import { length, moment, percent, sign, span } from "./words.js";

const OUTAGES_SHOWN = 30;
const WIDTH = 120;
const TONES = { up: "good", down: "bad", unknown: "unknown" };
const PARTS = [["up", "up_ms"], ["planned", "planned_ms"], ["unplanned", "unplanned_ms"], ["unknown", "unknown_ms"]];

const nameOf = (each) => (each.judged_by ? `${each.resource} (group)` : `${each.resource} ${each.role}`.trim());

// The parts of the time as one line; the columns beside it say the same.
function bar(service) {
  const whole = PARTS.reduce((sum, [, name]) => sum + service[name], 0) || 1;
  let left = 0;
  return svg("svg", { class: "shares", viewBox: `0 0 ${WIDTH} 8`, width: WIDTH, height: 8, "aria-hidden": "true" },
    PARTS.map(([kind, name]) => {
      const width = service[name] === 0 ? 0 : Math.max(1, (WIDTH * service[name]) / whole);
      const part = svg("rect", { class: `share-${kind}`, x: left, y: 0, width, height: 8 });
      left += width;
      return part;
    }));
}

function row(service, now) {
  const kind = TONES[service.state] || "unknown";
  return el("tr", {},
    el("th", { scope: "row" }, nameOf(service), bar(service)),
    el("td", { "data-tone": kind }, `${sign(kind)} ${service.state} ${span(now - service.since)}`, service.cause && `: ${service.cause}`),
    el("td", {}, service.up_ppm === null ? "–" : percent(service.up_ppm)),
    el("td", {}, length(service.planned_ms)), el("td", {}, length(service.unplanned_ms)),
    el("td", {}, length(service.unknown_ms)),
    el("td", {}, `${service.planned} + ${service.unplanned}`),
    el("td", {}, service.unplanned ? length(service.longest_ms) : "–"));
}

const COLUMNS = ["Service", "Now", "Up", "Planned", "Unplanned", "Not known", "Outages: planned + unplanned", "Longest unplanned"];

function table(found) {
  return [el("thead", {}, el("tr", {}, COLUMNS.map((each) => el("th", { scope: "col" }, each)))),
    el("tbody", {}, found.services.map((each) => row(each, found.now)))];
}

function outagesOf(services) {
  const all = services.filter((each) => !each.judged_by)
    .flatMap((each) => each.outages.map((outage) => ({ ...outage, name: nameOf(each) })));
  return all.sort((one, other) => other.since - one.since);
}

function outageRow(outage) {
  const tone = outage.is_planned ? "warn" : "bad";
  return el("li", {}, el("time", { datetime: new Date(outage.since).toISOString() }, moment(outage.since)), " ",
    el("b", {}, outage.name), ` down for ${length(outage.ms)}${outage.until === null ? " so far" : ""}: `,
    el("span", { "data-tone": tone }, `${outage.cause} (${outage.is_planned ? "planned" : "unplanned"})`));
}

// How long it took until a service was up again that nobody had wanted to be down.
function failovers(outages) {
  const times = outages.filter((each) => !each.is_planned && each.until !== null).map((each) => each.ms)
    .sort((one, other) => one - other);
  if (times.length === 0) return "No unplanned outage has ended in this time.";
  return `Until they were up again after ${times.length} unplanned ${times.length === 1 ? "outage" : "outages"}: median ${length(times[Math.floor((times.length - 1) / 2)])}, longest ${length(times.at(-1))}.`;
}

export async function load() {
  const note = byId("availability-note");
  try {
    const found = await ask("/availability", { since: byId("availability-since").value });
    const outages = outagesOf(found.services);
    show(byId("availability-table"), found.services.length ? table(found) : []);
    say(note, [found.services.length ? failovers(outages) : "Nothing is known yet: no resource was ever up.",
      ...found.reports.map((each) => each.message)].join(" "));
    show(byId("availability-outages"), outages.slice(0, OUTAGES_SHOWN).map(outageRow));
  } catch (problem) {
    if (!(problem instanceof Problem)) throw problem;
    if (problem.status !== 401) say(note, `${problem.message}${problem.remedy ? ` → ${problem.remedy}` : ""}`);
  }
}

const SOON_MS = 1500;
let timer = 0;
export function soon() {
  if (timer === 0) timer = setTimeout(() => { timer = 0; load(); }, SOON_MS);
}

export function begin() {
  byId("availability-since").addEventListener("change", load);
}
