import assert from "node:assert/strict";
import { test } from "node:test";
import { megabytes, milliseconds, percent, plain, seconds } from "../src/report/numbers.ts";
import { number, runsOf, text } from "../src/report/read.ts";
import { stretched } from "../src/report/stretched.ts";

test("runs have names of their own", () => {
  const long = "x".repeat(99);
  const names = runsOf({ runs: [{ name: "a" }, { name: "a" }, { name: long }, { name: long }, 7] }).map(({ name }) => name);
  assert.equal(new Set(names).size, 5);
  assert.ok(names.every(({ length }) => length <= 32));
});

test("fields of another type are absent", () => {
  const run = { machine: [], a: { b: "3", c: 3, d: Infinity } };
  assert.deepEqual([number(run, "a", "b"), number(run, "a", "c"), number(run, "a", "d"), number(run, "machine", "x"), number(null, "x")], [null, 3, null, null, null]);
  assert.deepEqual([text(run, "a"), text(run, "a", "c"), text(run, "constructor", "name")], ["", "3", ""]);
  assert.deepEqual(runsOf(null), []);
});

test("values that lie far apart get a scale with round steps", () => {
  assert.equal(stretched([1, 20]).type, "linear");
  assert.equal(stretched([0, 500]).type, "linear");
  assert.deepEqual([stretched([12, 900]).type, stretched([12, 900]).ticks], ["log", [20, 50, 100, 200, 500]]);
  assert.deepEqual(stretched([1, 1_000_000]).ticks, [1, 10, 100, 1000, 10_000, 100_000, 1_000_000]);
  assert.equal(stretched([]).type, "linear");
});

test("numbers have the digits that a reader can use", () => {
  assert.deepEqual([1234.5, 20.96, 4.004, 0.0124, 7].map(plain), ["1,235", "21.0", "4.00", "0.012", "7"]);
  assert.deepEqual([percent(0.0123), percent(1), milliseconds(20_000), megabytes(3.2e9), seconds(3725)], ["1.2 %", "100 %", "20 s", "3.20 GB", "1 h 2 min"]);
});
