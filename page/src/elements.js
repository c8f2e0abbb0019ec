// Elements of the page. Texts of others only ever become text nodes.

const SVG = "http://www.w3.org/2000/svg";

export function element(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "class") node.setAttribute("class", value);
    else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined) node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child !== null));
  return node;
}

/** A figure in so many digits, as far as they are larger than `unit`. */
export function short(value, digits = 4, unit = 0) {
  if (!Number.isFinite(value)) return String(value);
  const size = Math.abs(value);
  if (size <= unit / 2) return "0";
  return size >= 1e5 || size < 1e-4 ? value.toExponential(digits - 2) : String(Number(value.toPrecision(digits)));
}

export function percent(share, digits = 1) {
  return `${(100 * share).toFixed(digits)} %`;
}

/** A p-value or a level. */
export function probability(value) {
  if (value === 0) return "0";
  return value < 0.001 ? value.toExponential(1) : String(Number(value.toPrecision(3)));
}
