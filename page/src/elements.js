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

/** A share in percent; what is not 0 or 1 is never written as 0% or 100%, but with more digits. */
export function percent(share, digits = 1) {
  const shown = rounded(share, digits);
  const least = 100 * Math.min(Math.abs(share), Math.abs(1 - share));
  if (least === 0 || !(Number(shown) === 0 || Number(shown) === 100)) return `${shown}%`;
  const needed = -Math.floor(Math.log10(least));
  return needed > 17 ? `${(100 * share).toExponential(0)}%` : `${rounded(share, needed)}%`;
}

/** 100 times a share, rounded half to even in decimal numbers, as `metfa` rounds in Python. */
function rounded(share, digits) {
  if (!Number.isFinite(share)) return String(share);
  const [mantissa, exponent] = Math.abs(share).toExponential().split("e");
  const [whole, behind = ""] = mantissa.split(".");
  const power = Number(exponent) - behind.length + 2 + digits;
  let units = BigInt(whole + behind) * 10n ** BigInt(Math.max(0, power));
  if (power < 0) {
    const step = 10n ** BigInt(-power);
    const rest = 2n * (units % step);
    units /= step;
    if (rest > step || (rest === step && units % 2n === 1n)) units += 1n;
  }
  const text = String(units).padStart(digits + 1, "0");
  const sign = share < 0 ? "-" : "";
  return sign + (digits ? `${text.slice(0, -digits)}.${text.slice(-digits)}` : text);
}

/** A level that somebody chose, in percent with all its digits. */
export function level(share) {
  return `${Number((100 * share).toPrecision(6))}%`;
}

/** What is missing to 1 beside such a level, in percent. */
export function rest(share) {
  return `${Number((100 - Number((100 * share).toPrecision(6))).toPrecision(14))}%`;
}

/** A p-value or a level. */
export function probability(value) {
  if (value === 0) return "0";
  return value < 0.001 ? value.toExponential(1) : String(Number(value.toPrecision(3)));
}
