// The key of figures that show several runs.
import type { KeyEntry } from "./figure.ts";
import type { Run } from "./read.ts";

export function keyOfRuns(runs: Run[]): KeyEntry[] {
  return runs.length > 1 ? runs.map(({ name, colour }) => ({ label: name, colour })) : [];
}
