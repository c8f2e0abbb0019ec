import assert from "node:assert/strict";
import { test } from "node:test";
import { deflateSync } from "node:zlib";

import { counts, undoDifferences, unpacked } from "../src/decode.js";

test("packed bytes come back", async () => {
  const bytes = Uint8Array.from({ length: 1000 }, (_, k) => (k * k) % 256);
  assert.deepEqual(await unpacked(deflateSync(bytes).toString("base64")), bytes);
});

test("counts of 16 bits are little-endian", () => {
  assert.deepEqual([...counts(Uint8Array.of(1, 0, 0, 1, 255, 255), 16)], [1, 256, 65535]);
  assert.deepEqual([...counts(Uint8Array.of(1, 2), 8)], [1, 2]);
});

test("differences add up plane by plane", () => {
  assert.deepEqual([...undoDifferences(Uint8Array.of(1, 2, 3, 0, 0, 5), 2)], [1, 2, 4, 2, 4, 7]);
});
