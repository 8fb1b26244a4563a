// Makes elements. Every text becomes a text node: what comes from the cluster is never read as markup.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name, value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false || child === "") continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return element;
}

export function el(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

export function svg(name, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

export const byId = (id) => document.getElementById(id);

// Puts other children in place of the present ones; the focus stays on what has the same data-key.
export function show(container, ...children) {
  const held = container.contains(document.activeElement) ? document.activeElement.dataset?.key : undefined;
  container.replaceChildren();
  fill(container, {}, children);
  if (held !== undefined) {
    for (const each of container.querySelectorAll("[data-key]")) if (each.dataset.key === held) each.focus();
  }
}

// Sets a text only when it is another one, so that a screen reader says it once.
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}
