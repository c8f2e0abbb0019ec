// Numbers from the texts they are packed into: base64 of deflated bytes.

/** Bytes of a packed text. */
export async function unpacked(text) {
  const deflated = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([deflated]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** Little-endian numbers of 8 or 16 bits. */
export function numbers(bytes, bits) {
  if (bits === 8) return bytes;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return Uint16Array.from({ length: bytes.length / 2 }, (_, k) => view.getUint16(2 * k, true));
}

/** Planes of `size` numbers each, of which all but the first were written as differences to the one before. */
export function undoDifferences(planes, size) {
  for (let k = size; k < planes.length; k++) planes[k] += planes[k - size];
  return planes;
}
