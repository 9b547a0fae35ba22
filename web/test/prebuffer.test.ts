import assert from "node:assert/strict";
import { test } from "node:test";
import { expectedSound_s, Prebuffer } from "../src/prebuffer.ts";

interface Piece {
  time_s: number;
  length_s: number;
}

// What a listener hears: when it begins, and the silences after that, in seconds.
function heard(pieces: Piece[], expected_s?: number): { begin_s: number; gaps_s: number } {
  const prebuffer = new Prebuffer(expected_s);
  let begin_s = Infinity;
  for (const { time_s, length_s } of pieces) {
    if (begin_s <= time_s) break;
    prebuffer.arrived(time_s, length_s);
    begin_s = time_s + prebuffer.hold_s;
  }
  begin_s = Math.min(begin_s, pieces.at(-1)!.time_s); // then the answer ends
  let [end_s, gaps_s] = [begin_s, 0];
  for (const { time_s, length_s } of pieces) {
    gaps_s += Math.max(0, time_s - end_s);
    end_s = Math.max(end_s, time_s) + length_s;
  }
  return { begin_s, gaps_s };
}

// Pieces of these lengths, each made in `rate` seconds of work for a second of sound.
function made(lengths_s: number[], rate: number, first_s = 0.2, uneven = () => 1): Piece[] {
  let time_s = first_s;
  return lengths_s.map((length_s, at) => {
    time_s += at === 0 ? 0 : rate * length_s * uneven();
    return { time_s, length_s };
  });
}

const frame_s = 2048 / 44_100;
const kFrames: Record<string, number[]> = {
  "one frame at a time": Array(200).fill(frame_s),
  "sixteen frames at a time": Array(20).fill(16 * frame_s),
  "sixteen frames after the first": [frame_s, ...Array(20).fill(16 * frame_s)],
  "growing": [1, 1, 2, 2, 4, 4, 8, 8, 16, 16, 16, 16].map((frames) => frames * frame_s),
};

for (const [name, lengths_s] of Object.entries(kFrames)) {
  test(`no gap at a real-time factor of 0.7, ${name}`, () => {
    let state = 7;
    const random = () => (state = (state * 16807) % 2147483647) / 2147483647;
    for (let round = 0; round < 100; ++round) {
      const { begin_s, gaps_s } = heard(made(lengths_s, 0.7, 0.2, () => 0.8 + 0.4 * random()));
      assert.equal(gaps_s, 0, `round ${round}`);
      assert.ok(begin_s < 1.5, `begins after ${begin_s} s`);
    }
  });
}

test("no gap at a real-time factor of 0.7 where whole chunks of text are spoken", () => {
  for (const lengths_s of [[3.4, 13.2], [2, 7, 3], [3.9, 4.5, 6, 5]]) {
    const expected_s = 1.2 * lengths_s.reduce((a, b) => a + b);
    const { begin_s, gaps_s } = heard(made(lengths_s, 0.7, 0.7 * lengths_s[0]!), expected_s);
    assert.equal(gaps_s, 0, String(lengths_s));
    assert.ok(begin_s < 12, `begins after ${begin_s} s`);
  }
});

test("a fast server is heard almost at once", () => {
  for (const lengths_s of Object.values(kFrames)) {
    const pieces = made(lengths_s, 0.05, 0.08);
    assert.ok(heard(pieces).begin_s < 0.15);
  }
  assert.equal(heard(made([3.4, 13.2], 0.05, 0.15), 20).begin_s, 0.15);
});

test("nobody waits for more sound than there will be, nor longer than ten seconds", () => {
  const short = new Prebuffer(expectedSound_s("Hello there."));
  short.arrived(3, 1.1);
  assert.equal(short.hold_s, 0);
  const slow = new Prebuffer();
  slow.arrived(60, 3);
  assert.equal(slow.hold_s, 10);
  slow.arrived(66, 1);
  assert.equal(slow.hold_s, 4);
});

test("the sound of a text is not taken for shorter than slow speech", () => {
  assert.ok(expectedSound_s("The tide comes in, and the boats lift one by one.") > 3.4);
  assert.ok(expectedSound_s("潮水涨上来，船一只一只浮起来。") > 3);
  assert.equal(expectedSound_s(""), 0);
});
