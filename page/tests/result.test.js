import assert from "node:assert/strict";
import { test } from "node:test";

import { Result } from "../src/result.js";

function resultOf(maps, rounding) {
  const size = maps.vanilla.length;
  return Object.assign(new Result(), { maps, rounding, size, testedSize: size, noun: "feature" });
}

const MAPS = {
  lower: Float64Array.of(1, 1, 1, 1),
  upper: Float64Array.of(2, 2, 2, 2),
  vanilla: Float64Array.of(1 - 1e-5, 2 + 1e-5, 1 - 1e-3, 2 + 1e-3),
};

test("a score without noise is outside its interval where it is so by more than rounding", () => {
  const found = (result) => [0, 1, 2, 3].map((feature) => result.outside(feature));
  assert.deepEqual(found(resultOf(MAPS, 1e-4)), [false, false, true, true]);
  assert.deepEqual(found(resultOf(MAPS, 0)), [true, true, true, true]);
  assert.match(resultOf(MAPS, 1e-4).contradicted, /^without noise 2 of 4 scores/);
});

test("nothing is outside where there are no intervals", () => {
  const result = resultOf({ vanilla: MAPS.vanilla }, 1e-4);
  assert.equal(result.outside(3), false);
  assert.equal(result.contradicted, "");
});
