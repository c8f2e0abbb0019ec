import assert from "node:assert/strict";
import { test } from "node:test";
import { deflateSync } from "node:zlib";

import { decoded } from "../src/png.js";

const [WIDTH, HEIGHT] = [7, 10];

function chunk(kind, content) {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(content.length);
  return Buffer.concat([length, Buffer.from(kind), content, Buffer.alloc(4)]); // nobody asks for the checksum
}

/** What the PNG specification calls the Paeth predictor, by sorting. */
function paeth(left, above, corner) {
  const estimate = left + above - corner;
  return [left, above, corner].map((one, k) => [Math.abs(estimate - one), k, one]).sort((a, b) => a[0] - b[0] || a[1] - b[1])[0][2];
}

/** A file whose lines have the filters 0 to 4 in turn, in two pieces, with a chunk that nobody knows. */
function fileOf(levels, channels, { depth = 8, colour = channels === 1 ? 0 : 2, interlaced = 0, first = 0 } = {}) {
  const length = WIDTH * channels;
  const rows = [];
  for (let y = 0; y < HEIGHT; y++) {
    rows.push(y ? y % 5 : first);
    for (let x = 0; x < length; x++) {
      const of = (dy, dx) => (y + dy < 0 || x + dx < 0 ? 0 : levels[(y + dy) * length + x + dx]);
      const [left, above, corner] = [of(0, -channels), of(-1, 0), of(-1, -channels)];
      rows.push((of(0, 0) - [0, left, above, Math.floor((left + above) / 2), paeth(left, above, corner)][y % 5]) & 255);
    }
  }
  const header = Buffer.alloc(13);
  header.writeUInt32BE(WIDTH, 0);
  header.writeUInt32BE(HEIGHT, 4);
  header.set([depth, colour, 0, 0, interlaced], 8);
  const packed = deflateSync(Buffer.from(rows));
  const parts = [packed.subarray(0, 9), packed.subarray(9)].map((part) => chunk("IDAT", part));
  const signature = Buffer.from([137, 80, 78, 71, 13, 10, 26, 10]);
  return Buffer.concat([signature, chunk("IHDR", header), chunk("tEXt", Buffer.from("a")), ...parts, chunk("IEND", Buffer.alloc(0))]).toString("base64");
}

const some = (channels) => Array.from({ length: WIDTH * HEIGHT * channels }, (_, k) => (k * k * 7919 + 31 * k) % 256);

for (const channels of [1, 3]) {
  test(`pictures of ${channels} channels come back from each filter`, async () => {
    const levels = some(channels);
    const { picture, grey, width, height } = await decoded(fileOf(levels, channels));
    assert.deepEqual([width, height], [WIDTH, HEIGHT]);
    const pixels = Array.from({ length: WIDTH * HEIGHT }, (_, p) => [0, 1, 2].map((c) => levels[channels * p + (channels === 1 ? 0 : c)]));
    assert.deepEqual([...picture], pixels.flatMap((pixel) => [...pixel, 255]));
    const [red, green, blue] = pixels[5];
    assert.equal(grey[5], Math.round(64 + 0.6 * (0.299 * red + 0.587 * green + 0.114 * blue)));
  });
}

test("other kinds of pictures are refused, not shown wrongly", async () => {
  for (const other of [{ depth: 16 }, { colour: 3 }, { interlaced: 1 }]) {
    await assert.rejects(decoded(fileOf(some(3), 3, other)), /of another kind/);
  }
  await assert.rejects(decoded(fileOf(some(1), 1, { colour: 2 })), /not whole/);
  await assert.rejects(decoded(fileOf(some(1), 1, { first: 5 })), /not whole/);
});
