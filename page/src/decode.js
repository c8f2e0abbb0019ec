// Numbers from the texts they are packed into: base64 of deflated bytes.

/** Bytes of a packed text. */
export function unpacked(text) {
  return inflated([bytesOf(text)]);
}

/** Bytes of a text in base64. */
export function bytesOf(text) {
  const letters = atob(text);
  const bytes = new Uint8Array(letters.length);
  for (let k = 0; k < letters.length; k++) bytes[k] = letters.charCodeAt(k);
  return bytes;
}

/** Bytes that were deflated, in these pieces. */
export async function inflated(pieces) {
  const stream = new Blob(pieces).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** Little-endian counts of 8, 16 or 32 bits. */
export function counts(bytes, bits) {
  if (bits === 8) return bytes;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (bits === 16) return Uint16Array.from({ length: bytes.length / 2 }, (_, k) => view.getUint16(2 * k, true));
  return Uint32Array.from({ length: bytes.length / 4 }, (_, k) => view.getUint32(4 * k, true));
}

/** Maps by their names, in single or double precision, or from planes of steps. */
export async function unpackedMaps(data) {
  const maps = {};
  if (data.kind === "steps") {
    const planes = await unpackedPlanes(data);
    data.maps.forEach((name, k) => (maps[name] = scoresAt(planes[k], data)));
  } else for (const [name, text] of Object.entries(data.maps)) maps[name] = scores(await unpacked(text), data);
  return maps;
}

/** Little-endian numbers of single or double precision. */
export function scores(bytes, { kind }) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (kind === "double") return Float64Array.from({ length: bytes.length / 8 }, (_, k) => view.getFloat64(8 * k, true));
  return Float32Array.from({ length: bytes.length / 4 }, (_, k) => view.getFloat32(4 * k, true));
}

/** Scores at steps from `low` to `high`. */
function scoresAt(steps, { low, high }) {
  const found = new Float32Array(steps.length);
  for (let k = 0; k < steps.length; k++) found[k] = low + (steps[k] / 255) * (high - low);
  return found;
}

/** Planes of whole numbers, see metfa.report._planes. */
export async function unpackedPlanes({ bits, columns, planes }) {
  const found = [];
  for (const text of planes) found.push(planeOf(await unpacked(text), bits, columns, found.at(-1)));
  return found;
}

/**
 * A plane from its bytes: of all numbers the low byte first, then the higher ones. Each number is folded (0, -1, 1, -2 are
 * 0, 1, 2, 3), and is what was not expected from the one to its left and the one above it, both less the plane before.
 */
export function planeOf(bytes, bits, columns, before = null) {
  const size = (8 * bytes.length) / bits;
  const plane = new (bits === 16 ? Int16Array : Int32Array)(size);
  let left = 0;
  for (let p = 0; p < size; p++) {
    let folded = 0;
    for (let from = p, shift = 0; shift < bits; from += size, shift += 8) folded |= bytes[from] << shift;
    left = ((folded >>> 1) ^ -(folded & 1)) + ((left + (p < columns ? left : plane[p - columns])) >> 1);
    plane[p] = left;
  }
  if (before) for (let p = 0; p < size; p++) plane[p] += before[p];
  return plane;
}

/** Planes of `size` numbers each, of which all but the first were written as differences to the one before. */
export function undoDifferences(planes, size) {
  for (let k = size; k < planes.length; k++) planes[k] += planes[k - size];
  return planes;
}
