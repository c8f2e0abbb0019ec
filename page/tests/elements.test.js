import assert from "node:assert/strict";
import { test } from "node:test";

import { level, percent, rest } from "../src/elements.js";

test("only 0 and 1 are written as 0% and 100%", () => {
  for (const digits of [0, 1, 2]) {
    for (const share of [0, 1, 1e-9, 1 / 50176, 0.0004, 0.005, 0.3, 0.5, 0.978515625, 0.9996, 0.99999, 1 - 1e-9, 1e-30]) {
      const shown = percent(share, digits);
      const number = Number(shown.slice(0, -1));
      assert.equal(number === 0, share === 0, shown);
      assert.equal(number === 100, share === 1, shown);
      const unit = share === 1e-30 ? 1e-28 : 10 ** -(shown.slice(0, -1).split(".")[1] ?? "").length;
      assert.ok(Math.abs(number - 100 * share) <= (unit / 2) * (1 + 1e-9), shown);
    }
  }
});

test("a level has all the digits that were chosen", () => {
  assert.deepEqual([0.05, 0.025, 0.005, 1e-6, 0.07].map(level), ["5%", "2.5%", "0.5%", "0.0001%", "7%"]);
  assert.deepEqual([0.05, 0.1, 1e-6, 1e-9, 0.07].map(rest), ["95%", "90%", "99.9999%", "99.9999999%", "93%"]);
});

test("halves are rounded to even, as in Python", () => {
  const shares = [0.5625, 0.6875, 0.0625, 0.4375, 0.00285, 0.125, 0.0005, 2 / 3, 0];
  assert.deepEqual(
    shares.map((share) => percent(share)),
    ["56.2%", "68.8%", "6.2%", "43.8%", "0.3%", "12.5%", "0.05%", "66.7%", "0.0%"],
  );
  assert.deepEqual([0.125, 0.135, 0.5].map((share) => percent(share, 0)), ["12%", "14%", "50%"]);
});
