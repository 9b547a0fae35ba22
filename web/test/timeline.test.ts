import assert from "node:assert/strict";
import { test } from "node:test";
import { Timeline } from "../src/timeline.ts";

test("pieces that come in time follow each other without a gap", () => {
  const timeline = new Timeline(800);
  assert.equal(timeline.place(1000, 0, 500), 1800);
  assert.equal(timeline.place(1200, 500, 300), 2300);
  assert.equal(timeline.place(2599, 800, 100), 2600);
  assert.equal(timeline.gaps, 0);
  assert.equal(timeline.end(), 2700);
});

test("a late piece begins a lead after now, and is counted", () => {
  const timeline = new Timeline(800);
  timeline.place(0, 0, 100); // 800 to 900
  assert.equal(timeline.place(901, 100, 50), 1701);
  assert.equal(timeline.gaps, 1);
  assert.equal(timeline.positionAt(1300), 100); // waiting
  assert.equal(timeline.positionAt(1711), 110);
});

test("who runs dry often waits longer each time, up to a limit", () => {
  const timeline = new Timeline(10, 50);
  const leads = [];
  for (let i = 0; i < 5; ++i) leads.push(timeline.place(1000 * i, i, 1) - 1000 * i);
  assert.deepEqual(leads, [10, 20, 40, 50, 50]);
});

test("the position follows the clock and stops at the end", () => {
  const timeline = new Timeline(10);
  assert.equal(timeline.positionAt(5), 0);
  assert.equal(timeline.end(), -Infinity);
  timeline.place(0, 0, 100);
  assert.deepEqual([0, 10, 11, 60, 110, 500].map((t) => timeline.positionAt(t)), [0, 0, 1, 50, 100, 100]);
});

test("after a jump everything counts from there", () => {
  const timeline = new Timeline(10);
  timeline.place(0, 0, 1000);
  timeline.clear();
  assert.equal(timeline.place(300, 700, 300), 310);
  assert.equal(timeline.positionAt(300), 700);
  assert.equal(timeline.positionAt(410), 800);
  assert.equal(timeline.gaps, 0);
});

test("whatever the arrivals: no overlap, no sample lost, time never runs back", () => {
  let state = 12345;
  const random = (n: number) => (state = (state * 1103515245 + 12345) % 2147483648) % n;
  for (let round = 0; round < 50; ++round) {
    const timeline = new Timeline(random(50));
    let now = 0;
    let position = 0;
    let end = 0;
    for (let i = 0; i < 40; ++i) {
      now += random(120);
      const length = 1 + random(100);
      const time = timeline.place(now, position, length);
      assert.ok(time >= end && time >= now);
      assert.equal(timeline.positionAt(time + length), position + length);
      end = time + length;
      position += length;
    }
  }
});
