// The levels of load in all runs.
import type { Run } from "./read.ts";
import { list, number, text } from "./read.ts";

export interface Level {
  run: Run;
  group: unknown; // of summary.json
  drawing: unknown; // of its requests
  index: number; // in the run
  load: number; // users, or requests a second
  open: boolean; // loop
  name: string; // "16 users"
}

export function levelsOf(runs: Run[]): Level[] {
  return runs.flatMap((run) =>
    run.groups.map((group, index) => {
      const open = text(group, "loop") === "open";
      const load = number(group, open ? "rate_per_s" : "concurrency") ?? 0;
      const name = open ? `${load} requests/s` : `${load} ${load === 1 ? "user" : "users"}`;
      return { run, group, drawing: list(run.drawings, "groups")[index], index, load, open, name };
    }),
  );
}

// Row by row as they are compared: runs of a load below each other.
export function compared(levels: Level[]): Level[] {
  return [...levels].sort((a, b) => a.load - b.load);
}

// Loads from the lowest to the highest, each once.
export function loadsOf(levels: Level[]): number[] {
  return [...new Set(levels.map(({ load }) => load))].sort((a, b) => a - b);
}

export function labelOf(level: Level, runs: Run[]): string {
  return runs.length > 1 ? `${level.run.name}, ${level.name}` : level.name;
}
