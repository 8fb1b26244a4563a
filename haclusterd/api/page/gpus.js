// Accelerators, as gpu-health publishes them in node attributes; the section is there only where a node has some.

import { byId, el, show } from "./dom.js";

const DEVICE = /^gpu-(.+)-(state|why)$/;
const TONES = { ok: "good", degraded: "warn", drain: "warn", failed: "bad", unknown: "unknown" };

function devicesOf(attributes) {
  const found = new Map();
  for (const [name, value] of Object.entries(attributes)) {
    const match = DEVICE.exec(name);
    if (match) found.set(match[1], { ...found.get(match[1]), [match[2]]: value });
  }
  return [...found].sort(([one], [other]) => (one < other ? -1 : 1));
}

export function draw(nodes) {
  const known = nodes.filter((each) => Object.keys(each.reboot || {}).some((name) => name.startsWith("gpu-")));
  byId("gpus").hidden = known.length === 0;
  show(byId("gpu-list"), known.map((node) => {
    const values = node.reboot;
    const devices = devicesOf(values);
    return el("section", { class: "gpu-node" },
      el("h3", {}, node.name),
      el("p", { class: "detail" }, `driver ${values["gpu-driver"] || "unknown"}, ${values["gpu-usable"] ?? "?"} usable`,
        values["gpu-why"] && `: ${values["gpu-why"]}`),
      el("ul", { class: "gpus" }, devices.map(([bus, each]) =>
        el("li", { "data-tone": TONES[each.state] || "unknown" }, el("b", {}, bus), ` ${each.state || "unknown"}`,
          each.why && el("span", { class: "detail" }, ` ${each.why}`)))));
  }));
}
