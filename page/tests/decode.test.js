import assert from "node:assert/strict";
import { test } from "node:test";
import { deflateSync } from "node:zlib";

import { counts, undoDifferences, unpacked, unpackedMaps, unpackedPlanes } from "../src/decode.js";

test("packed bytes come back", async () => {
  const bytes = Uint8Array.from({ length: 1000 }, (_, k) => (k * k) % 256);
  assert.deepEqual(await unpacked(deflateSync(bytes).toString("base64")), bytes);
});

test("counts of 16 bits are little-endian", () => {
  assert.deepEqual([...counts(Uint8Array.of(1, 0, 0, 1, 255, 255), 16)], [1, 256, 65535]);
  assert.deepEqual([...counts(Uint8Array.of(1, 2), 8)], [1, 2]);
});

/** A plane as metfa.report._planes writes it, number by number. */
function bytesOf(plane, before, bits, columns) {
  const apart = plane.map((number, p) => number - (before?.[p] ?? 0));
  const folded = apart.map((number, p) => {
    const left = p ? apart[p - 1] : 0;
    const rest = number - Math.floor((left + (p < columns ? left : apart[p - columns])) / 2);
    return rest < 0 ? -2 * rest - 1 : 2 * rest;
  });
  const byte = (k) => folded.map((number) => Math.floor(number / 256 ** k) % 256);
  return Uint8Array.from(Array.from({ length: bits / 8 }, (_, k) => byte(k)).flat());
}

for (const [bits, most] of [[16, 2 ** 14], [32, 2 ** 29]]) {
  test(`planes of ${bits} bits come back`, async () => {
    const [first, second] = [1, 7].map((seed) => Array.from({ length: 15 }, (_, p) => (p < 3 ? 0 : p === 8 ? most - 1 : (p * p * 7919 * seed) % most)));
    const texts = [bytesOf(first, null, bits, 5), bytesOf(second, first, bits, 5)].map((bytes) => deflateSync(bytes).toString("base64"));
    const planes = await unpackedPlanes({ bits, columns: 5, planes: texts });
    assert.deepEqual(planes.map((plane) => [...plane]), [first, second]);
  });
}

test("maps in steps are those of their planes", async () => {
  const texts = [[0, 255], [255, 0]].map((steps, k, all) => deflateSync(bytesOf(steps, all[k - 1], 16, 2)).toString("base64"));
  const maps = await unpackedMaps({ kind: "steps", low: -1, high: 3, bits: 16, columns: 2, planes: texts, maps: ["mean", "upper"] });
  assert.deepEqual(maps, { mean: Float32Array.of(-1, 3), upper: Float32Array.of(3, -1) });
});

test("differences add up plane by plane", () => {
  assert.deepEqual([...undoDifferences(Uint8Array.of(1, 2, 3, 0, 0, 5), 2)], [1, 2, 4, 2, 4, 7]);
});
