// The last hours: one lane for each node and one for the cluster; one can zoom with buttons, wheel, drag and keys.

import { ask } from "./api.js";
import { byId, el, show, svg } from "./dom.js";
import { GROUPS, groupOf, moment, time } from "./words.js";

const LIMIT = 3000;
const LISTED_MAX = 60;
const MERGE_PX = 9;
const LANE_PX = 34;
const MARGIN = { left: 74, right: 12, top: 8, bottom: 24 };
const STEPS_MS = [1, 5, 15, 30, 60, 300, 900, 1800, 3600, 10_800, 21_600, 43_200, 86_400, 172_800, 604_800].map((s) => s * 1000);
const SHORTEST_MS = 5000;
const RANK = ["failure", "fence", "person", "node", "move"];
const SHAPES = {
  failure: "M0,-7 L7,6 L-7,6 Z", fence: "M-5,-5 L5,-5 L5,5 L-5,5 Z", person: "M0,-7 L7,0 L0,7 L-7,0 Z",
  node: "M-6,0 A6,6 0 1,0 6,0 A6,6 0 1,0 -6,0 Z", move: "M-4,0 A4,4 0 1,0 4,0 A4,4 0 1,0 -4,0 Z",
};

let events = [];
let loadedFrom = Infinity;
let leftOut = 0;
let view = null;
let nodes = [];
let followsNow = true;

const shown = (event) => groupOf(event) !== "other";

export async function load(spanMs) {
  const from = Date.now() - spanMs;
  if (from < loadedFrom) {
    const found = await ask("/history/events", { since: `${Math.ceil(spanMs / 1000)}s`, limit: LIMIT });
    events = found.events.filter(shown);
    leftOut = found.left_out;
    loadedFrom = from;
    byId("timeline-note").textContent = found.reports.map((each) => each.message).join(" ");
  }
  view = { from, until: Date.now() };
  followsNow = true;
  draw();
}

export function add(event) {
  if (!shown(event) || events.some((each) => each.index === event.index && each.text === event.text)) return;
  events.push(event);
  if (view && followsNow) view = { from: view.from + (Date.now() - view.until), until: Date.now() };
  draw();
}

export function setNodes(names) {
  if (names.join("\n") === nodes.join("\n")) return;
  nodes = names;
  draw();
}

function lanes() {
  return [...nodes, ""];
}

function laneOf(event) {
  return nodes.includes(event.node) ? event.node : "";
}

function ticks(width) {
  const length = view.until - view.from;
  const step = STEPS_MS.find((each) => (length / each) * 70 < width) || STEPS_MS.at(-1);
  const offset = new Date().getTimezoneOffset() * 60_000;
  const first = Math.ceil((view.from - offset) / step) * step + offset;
  const found = [];
  for (let at = first; at < view.until; at += step) found.push(at);
  return found;
}

// Marks that would lie over each other are one mark, of the gravest kind, that says how many.
function marks(scale) {
  const made = new Map();
  for (const event of events) {
    if (event.at < view.from || event.at > view.until) continue;
    const key = `${laneOf(event)}\n${Math.floor(scale(event.at) / MERGE_PX)}`;
    if (!made.has(key)) made.set(key, []);
    made.get(key).push(event);
  }
  return [...made.values()];
}

function mark(group, scale, rows, select) {
  const kinds = group.map(groupOf);
  const kind = RANK.find((each) => kinds.includes(each));
  const first = group.find((each) => groupOf(each) === kind);
  const y = MARGIN.top + LANE_PX * (rows.indexOf(laneOf(first)) + 0.5);
  return svg("g", { class: `mark ${kind}`, transform: `translate(${scale(first.at)},${y})`, click: () => select(group) },
    svg("title", {}, group.length > 1 ? `${group.length} events: ${first.text}` : first.text),
    svg("path", { d: SHAPES[kind] }),
    group.length > 1 && svg("text", { x: 0, y: -9, "text-anchor": "middle" }, group.length));
}

export function draw() {
  const canvas = byId("timeline-canvas");
  if (!view || canvas.clientWidth === 0) return;
  const width = canvas.clientWidth;
  const rows = lanes();
  const bottom = MARGIN.top + LANE_PX * rows.length;
  const scale = (at) => MARGIN.left + ((at - view.from) / (view.until - view.from)) * (width - MARGIN.left - MARGIN.right);
  const inside = svg("svg", { viewBox: `0 0 ${width} ${bottom + MARGIN.bottom}`, width, height: bottom + MARGIN.bottom, "aria-hidden": "true" },
    rows.map((name, number) => {
      const y = MARGIN.top + LANE_PX * (number + 0.5);
      return [svg("line", { class: "lane", x1: MARGIN.left, x2: width - MARGIN.right, y1: y, y2: y }),
        svg("text", { class: "lane-name", x: 4, y: y + 4 }, name || "cluster")];
    }),
    ticks(width).map((at) => [
      svg("line", { class: "tick", x1: scale(at), x2: scale(at), y1: MARGIN.top, y2: bottom }),
      svg("text", { class: "tick-name", x: scale(at), y: bottom + 16, "text-anchor": "middle" }, label(at))]),
    marks(scale).map((group) => mark(group, scale, rows, list)));
  show(canvas, inside);
  byId("timeline-range").textContent = `${moment(view.from)} to ${moment(view.until)}`;
  list(events.filter((each) => each.at >= view.from && each.at <= view.until));
}

function label(at) {
  const text = time(at);
  return view.until - view.from > 600_000 ? text.slice(0, 5) : text;
}

function list(found) {
  const newest = found.slice(-LISTED_MAX).reverse();
  const more = found.length - newest.length + (view.from <= loadedFrom ? leftOut : 0);
  show(byId("timeline-list"), newest.length ? newest.map(eventRow) : el("li", {}, "Nothing happened."),
    more > 0 && el("li", { class: "detail" }, `${more} older ones are not listed; zoom in, or search below.`));
}

export function eventRow(event) {
  const group = groupOf(event);
  const who = event.author && `by ${event.author}`;
  return el("li", { class: `event ${group}` }, el("time", { datetime: new Date(event.at).toISOString() }, moment(event.at)),
    el("span", { class: "dot" }, svg("svg", { viewBox: "-8 -8 16 16", class: `mark ${group}`, "aria-hidden": "true" },
      svg("path", { d: SHAPES[group] || SHAPES.move }))),
    el("span", {}, el("span", { class: "unseen" }, `${GROUPS[group] || event.kind}: `), event.text,
      who && !event.text.includes(who) && el("span", { class: "detail" }, ` ${who}`),
      event.reason && !event.text.includes(event.reason) && el("span", { class: "detail" }, ` because: ${event.reason}`)));
}

function zoom(factor, centre = 0.5) {
  if (!view) return;
  const length = Math.max(SHORTEST_MS, (view.until - view.from) * factor);
  const at = view.from + (view.until - view.from) * centre;
  move(at - length * centre, at + length * (1 - centre));
}

function move(from, until) {
  const now = Date.now();
  const over = Math.max(0, until - now);
  view = { from: from - over, until: until - over };
  followsNow = over > 0 || now - view.until < 1000;
  if (view.from < loadedFrom) {
    const wanted = view;
    load(now - view.from).then(() => { view = wanted; draw(); }, () => draw());
  } else draw();
}

const KEYS = {
  ArrowLeft: () => pan(-0.2), ArrowRight: () => pan(0.2), "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2),
};

function pan(part) {
  const by = (view.until - view.from) * part;
  move(view.from + by, view.until + by);
}

export function begin() {
  const canvas = byId("timeline-canvas");
  byId("zoom-in").addEventListener("click", () => zoom(0.5));
  byId("zoom-out").addEventListener("click", () => zoom(2));
  for (const each of document.querySelectorAll("[data-hours]")) {
    each.addEventListener("click", () => load(Number(each.dataset.hours) * 3_600_000));
  }
  canvas.addEventListener("keydown", (event) => {
    if (!view || !KEYS[event.key]) return;
    event.preventDefault();
    KEYS[event.key]();
  });
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && Math.abs(event.deltaY) < Math.abs(event.deltaX)) return pan(event.deltaX / 500);
    if (!event.ctrlKey && !event.shiftKey) return undefined;
    event.preventDefault();
    const box = canvas.getBoundingClientRect();
    return zoom(event.deltaY > 0 ? 1.25 : 0.8, (event.clientX - box.left) / box.width);
  }, { passive: false });
  let grip = null;
  canvas.addEventListener("pointerdown", (event) => { grip = { x: event.clientX, ...view }; });
  canvas.addEventListener("pointermove", (event) => {
    if (!grip || event.buttons === 0 || Math.abs(event.clientX - grip.x) < 4) return;
    const by = ((grip.x - event.clientX) / canvas.clientWidth) * (grip.until - grip.from);
    move(grip.from + by, grip.until + by);
  });
  window.addEventListener("pointerup", () => { grip = null; });
  new ResizeObserver(draw).observe(canvas);
}
