// Numbers from the texts they are packed into: base64 of deflated bytes.

/** Bytes of a packed text. */
export async function unpacked(text) {
  const letters = atob(text);
  const deflated = new Uint8Array(letters.length);
  for (let k = 0; k < letters.length; k++) deflated[k] = letters.charCodeAt(k);
  const stream = new Blob([deflated]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** Little-endian counts of 8, 16 or 32 bits. */
export function counts(bytes, bits) {
  if (bits === 8) return bytes;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (bits === 16) return Uint16Array.from({ length: bytes.length / 2 }, (_, k) => view.getUint16(2 * k, true));
  return Uint32Array.from({ length: bytes.length / 4 }, (_, k) => view.getUint32(4 * k, true));
}

/** Little-endian numbers of single or double precision, or steps from `low` to `high`. */
export function scores(bytes, { kind, low, high }) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (kind === "double") return Float64Array.from({ length: bytes.length / 8 }, (_, k) => view.getFloat64(8 * k, true));
  if (kind === "single") return Float32Array.from({ length: bytes.length / 4 }, (_, k) => view.getFloat32(4 * k, true));
  const found = new Float32Array(bytes.length);
  for (let k = 0; k < bytes.length; k++) found[k] = low + (bytes[k] / 255) * (high - low);
  return found;
}

/** Planes of `size` numbers each, of which all but the first were written as differences to the one before. */
export function undoDifferences(planes, size) {
  for (let k = size; k < planes.length; k++) planes[k] += planes[k - size];
  return planes;
}
