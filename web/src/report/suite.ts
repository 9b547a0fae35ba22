// The report of suites on one machine.
import { figureOf } from "./figure.ts";
import type { Tile } from "./head.ts";
import { megabytes, milliseconds, plain } from "./numbers.ts";
import type { Run } from "./read.ts";
import { number, text } from "./read.ts";
import { capacity, memory, realTimeFactor, suiteLatency, warmUp } from "./suite_figures.ts";

// The best of the configurations, and its name.
function best(run: Run, what: string, value: (group: unknown) => number | null, better: (a: number, b: number) => boolean, shown: (value: number) => string): Tile[] {
  let found: { group: unknown; value: number } | null = null;
  for (const group of run.groups) {
    const mine = value(group);
    if (mine !== null && (found === null || better(mine, found.value))) found = { group, value: mine };
  }
  return found === null ? [] : [{ what: `${what}, ${text(found.group, "name")}`, value: shown(found.value) }];
}

export function suiteTiles(run: Run): Tile[] {
  const less = (a: number, b: number) => a < b;
  const more = (a: number, b: number) => a > b;
  return [
    ...best(run, "fastest: times real time", (group) => (number(group, "real_time_factor", "p50") ? 1 / number(group, "real_time_factor", "p50")! : null), more, (times) => `${plain(times)}×`),
    ...best(run, "first audio soonest, median", (group) => number(group, "first_audio_ms", "p50"), less, milliseconds),
    ...best(run, "least memory at peak", (group) => number(group, "memory", "peak_bytes"), less, megabytes),
    ...best(run, "most sound an hour", (group) => number(group, "sound_h_per_h"), more, (hours) => `${plain(hours)} h`),
  ];
}

export function suiteSections(runs: Run[]): HTMLElement[] {
  return [memory, realTimeFactor, suiteLatency, warmUp, capacity].map((of) => figureOf(of(runs)));
}
