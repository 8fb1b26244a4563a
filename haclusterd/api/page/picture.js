// What runs where, and what ties it together: boxes for nodes, lines for constraints, and the same in sentences.

import { byId, el, show, svg } from "./dom.js";

const CHIP_PX = 26;
const HEAD_PX = 30;
const GAP_PX = 10;
const NARROWEST_PX = 112;
const MARGIN_PX = 20;
const INFINITE = 1_000_000;

export const score = (value) => (value >= INFINITE ? "always" : value <= -INFINITE ? "never" : String(value));

function role(name) {
  return name ? ` (${name})` : "";
}

function ofSets(sets) {
  return (sets || []).map((each) => each.resources.join(", ")).join(" / ");
}

const SENTENCES = {
  Location: (each) => {
    const what = each.resource || each.pattern || ofSets(each.sets);
    if (!each.node) return `${what}: by rules`;
    const value = each.score || 0;
    if (value <= -INFINITE) return `${what} never runs on ${each.node}`;
    return `${what} ${value < 0 ? "avoids" : "prefers"} ${each.node} (${score(value)})`;
  },
  Colocation: (each) => {
    if (!each.dependent) return `${ofSets(each.sets)}: ${each.score < 0 ? "apart" : "together"} (${score(each.score)})`;
    const pair = [`${each.dependent}${role(each.dependent_role)}`, `${each.primary}${role(each.primary_role)}`];
    return `${pair[0]} runs ${each.score < 0 ? "away from" : "with"} ${pair[1]} (${score(each.score)})`;
  },
  Ordering: (each) => {
    if (!each.first) return `${ofSets(each.sets)}: in this order`;
    const act = each.first_action || "start";
    return `${act} of ${each.first}, then ${each.then_action || act} of ${each.then}`
      + (each.kind && each.kind !== "Mandatory" ? ` (${each.kind})` : "");
  },
  TicketConstraint: (each) => `${each.resource || ofSets(each.sets)} needs ticket ${each.ticket}`,
};

function constraintsOf(configuration) {
  return Object.values(configuration.constraints || {}).map((wrapped) => {
    const [kind, each] = Object.entries(wrapped)[0];
    return { kind, each, sentence: SENTENCES[kind] ? SENTENCES[kind](each) : each.id };
  });
}

// One chip for each top-level resource at each node where something of it runs; "" is nowhere.
function placed(status) {
  const at = new Map(status.nodes.filter((each) => !each.is_witness).map((each) => [each.name, []]));
  const nowhere = [];
  const leaves = (each) => (each.instances ? [each] : each.members.flatMap(leaves));
  for (const resource of status.resources) {
    const instances = leaves(resource).flatMap((each) => each.instances);
    const where = [...new Set(instances.map((each) => each.node))];
    for (const node of where) {
      const isPromoted = instances.some((each) => each.node === node && each.role === "Promoted");
      at.get(node)?.push({ id: resource.id, isPromoted });
    }
    if (where.length === 0) nowhere.push({ id: resource.id, isPromoted: false });
  }
  return nowhere.length ? new Map([...at, ["", nowhere]]) : at;
}

function layout(columns, width) {
  const column = Math.max(NARROWEST_PX, (width - GAP_PX * (columns.size - 1)) / columns.size);
  const places = new Map();
  const boxes = [...columns].map(([node, chips], number) => {
    const x = number * (column + GAP_PX);
    const made = chips.map((chip, row) => {
      const place = { ...chip, x: x + MARGIN_PX, y: HEAD_PX + row * (CHIP_PX + 8), width: column - 2 * MARGIN_PX };
      const known = places.get(chip.id);
      if (!known || chip.isPromoted) places.set(chip.id, place);
      return place;
    });
    return { node, x, width: column, chips: made };
  });
  const rows = Math.max(1, ...boxes.map((each) => each.chips.length));
  return { boxes, places, width: columns.size * (column + GAP_PX) - GAP_PX, height: HEAD_PX + rows * (CHIP_PX + 8) + 6 };
}

function short(text, px) {
  const most = Math.max(3, Math.floor(px / 7.4));
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

// Lines begin and end at the sides of chips: inside a column they run in the margin at its right, and a preference for
// the column's own node in the margin at its left.
function curve(from, to, reach) {
  const [one, other] = [from, to].map((place) => place.y + CHIP_PX / 2);
  if (from.x === to.x) {
    const x = from.x + from.width;
    return `M${x},${one} C${x + reach},${one} ${x + reach},${other} ${x},${other}`;
  }
  const isRight = to.x > from.x;
  const [begin, end] = isRight ? [from.x + from.width, to.x] : [from.x, to.x + to.width];
  const half = (begin + end) / 2;
  return `M${begin},${one} C${half},${one} ${half},${other} ${end},${other}`;
}

function toNode(from, box) {
  const y = from.y + CHIP_PX / 2;
  const end = HEAD_PX - 12;
  if (box.x < from.x && from.x < box.x + box.width) return `M${from.x},${y} C${box.x + 2},${y} ${box.x + 2},${end} ${box.x + 9},${end}`;
  const begin = box.x > from.x ? from.x + from.width : from.x;
  const x = box.x > from.x ? box.x + 2 : box.x + box.width - 2;
  return `M${begin},${y} C${(begin + x) / 2},${y} ${(begin + x) / 2},${end} ${x},${end}`;
}

function line(constraint, drawing, containers) {
  const { kind, each } = constraint;
  const find = (id) => drawing.places.get(containers.get(id) || id);
  const [from, to] = kind === "Ordering" ? [find(each.first), find(each.then)]
    : kind === "Colocation" ? [find(each.dependent), find(each.primary)] : [find(each.resource), null];
  const box = kind === "Location" && drawing.boxes.find((one) => one.node === each.node);
  if (!from || !(to || box)) return null;
  const name = kind === "Ordering" ? "order" : kind === "Location" ? "location" : "together";
  const isAgainst = kind !== "Ordering" && (each.score || 0) < 0;
  return svg("path", {
    class: `tie ${name}${isAgainst ? " against" : ""}`, d: to ? curve(from, to, kind === "Ordering" ? 1.25 * MARGIN_PX : 0.6 * MARGIN_PX) : toNode(from, box),
    "marker-end": kind === "Ordering" ? "url(#arrow)" : null,
  }, svg("title", {}, constraint.sentence));
}

export function draw(status, configuration) {
  const canvas = byId("picture-canvas");
  if (canvas.clientWidth === 0) return;
  const drawing = layout(placed(status), canvas.clientWidth);
  const containers = new Map();
  const contain = (resource, top) => resource.members.forEach((each) => { containers.set(each.id, top); contain(each, top); });
  status.resources.forEach((each) => contain(each, each.id));
  const constraints = constraintsOf(configuration);
  const states = new Map(status.nodes.map((each) => [each.name, each.state]));
  show(canvas, svg("svg", { viewBox: `0 0 ${drawing.width} ${drawing.height}`, width: drawing.width, height: drawing.height, "aria-hidden": "true" },
    svg("defs", {}, svg("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" },
      svg("path", { d: "M0,0 L8,4 L0,8 Z", class: "arrow-head" }))),
    drawing.boxes.map((box) => [
      svg("rect", { class: `box ${box.node ? states.get(box.node) : "nowhere"}`, x: box.x, y: 1, width: box.width, height: drawing.height - 2, rx: 8 }),
      svg("text", { class: "box-name", x: box.x + 10, y: 20 }, short(box.node || "nowhere", box.width - 16))]),
    constraints.map((each) => line(each, drawing, containers)),
    drawing.boxes.flatMap((box) => box.chips).map((chip) => svg("g", {},
      svg("title", {}, chip.id),
      svg("rect", { class: `chip${chip.isPromoted ? " promoted" : ""}`, x: chip.x, y: chip.y, width: chip.width, height: CHIP_PX, rx: 5 }),
      svg("text", { class: "chip-name", x: chip.x + 8, y: chip.y + 17 }, short(`${chip.isPromoted ? "★ " : ""}${chip.id}`, chip.width - 12))))));
  show(byId("picture-list"), constraints.length
    ? constraints.map(({ kind, each, sentence }) => el("li", { class: kind.toLowerCase() }, sentence, el("span", { class: "detail" }, ` ${each.id}`)))
    : el("li", {}, "There are no constraints."));
}
