// Pictures from the PNG files in the page. A canvas would decode them too, but browsers that guard against fingerprints give
// back other pixels than were drawn on it.

import { bytesOf, inflated } from "./decode.js";

const CHANNELS = { 0: 1, 2: 3 }; // of grey pictures and of coloured ones, of 8 bits each: all that metfa writes

/** Pixels of a picture (red, green, blue, opaque), their brightness, and its size. */
export async function decoded(text) {
  const file = bytesOf(text);
  const view = new DataView(file.buffer);
  const packed = [];
  let header = null;
  for (let at = 8; at < file.length; ) {
    const [length, kind] = [view.getUint32(at), String.fromCharCode(...file.subarray(at + 4, at + 8))];
    const content = file.subarray(at + 8, at + 8 + length);
    if (kind === "IHDR") header = { width: view.getUint32(at + 8), height: view.getUint32(at + 12), depth: content[8], channels: CHANNELS[content[9]], interlaced: content[12] };
    if (kind === "IDAT") packed.push(content);
    at += length + 12;
  }
  if (header?.depth !== 8 || !header.channels || header.interlaced) throw new Error("its picture is of another kind");
  const { width, height, channels } = header;
  const rows = await inflated(packed);
  if (rows.length !== height * (width * channels + 1)) throw new Error("its picture is not whole");
  return shown(unfiltered(rows, height, width * channels, channels), width, height, channels);
}

/** Lines without their filters: each byte was written as what is missing to those on its left and above it. */
function unfiltered(rows, height, length, channels) {
  const found = new Uint8Array(height * length);
  for (let y = 0; y < height; y++) {
    const filter = rows[y * (length + 1)];
    if (filter > 4) throw new Error("its picture is not whole");
    for (let x = 0; x < length; x++) {
      const at = y * length + x;
      const left = x < channels ? 0 : found[at - channels];
      const above = y ? found[at - length] : 0;
      const corner = x < channels || !y ? 0 : found[at - length - channels];
      found[at] = rows[at + y + 1] + expected(filter, left, above, corner);
    }
  }
  return found;
}

function expected(filter, left, above, corner) {
  if (filter === 0) return 0;
  if (filter === 1) return left;
  if (filter === 2) return above;
  if (filter === 3) return (left + above) >> 1;
  const [toLeft, toAbove, toCorner] = [Math.abs(above - corner), Math.abs(left - corner), Math.abs(left + above - 2 * corner)];
  if (toLeft <= toAbove && toLeft <= toCorner) return left;
  return toAbove <= toCorner ? above : corner;
}

function shown(levels, width, height, channels) {
  const picture = new Uint8ClampedArray(4 * width * height).fill(255);
  const grey = new Uint8ClampedArray(width * height);
  for (let p = 0; p < grey.length; p++) {
    for (let c = 0; c < 3; c++) picture[4 * p + c] = levels[channels * p + (channels === 1 ? 0 : c)];
    grey[p] = 64 + 0.6 * (0.299 * picture[4 * p] + 0.587 * picture[4 * p + 1] + 0.114 * picture[4 * p + 2]);
  }
  return { picture, grey, width, height };
}
