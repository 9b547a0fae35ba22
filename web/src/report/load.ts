// The report of load on servers.
import { make } from "../dom.ts";
import { figureOf } from "./figure.ts";
import type { Tile } from "./head.ts";
import { doubtsOf } from "./head.ts";
import { firstAudio, latency, levelCells, levelColumns, throughput, underruns } from "./load_figures.ts";
import { levelsOf } from "./load_levels.ts";
import { milliseconds, percent, plain } from "./numbers.ts";
import type { Run } from "./read.ts";
import { entries, list, number, text } from "./read.ts";
import { audioCurve, latencyCurve, timelineFigure } from "./request_figures.ts";
import { tableOf } from "./table.ts";

function sum(values: (number | null)[]): number {
  return values.reduce<number>((total, value) => total + (value ?? 0), 0);
}

export function loadTiles(run: Run): Tile[] {
  const levels = levelsOf([run]).sort((a, b) => a.load - b.load);
  const [least, most] = [levels[0], levels.at(-1)];
  if (!least || !most) return [];
  const best = levels.reduce((one, other) => ((number(other.group, "sound_s_per_s") ?? 0) > (number(one.group, "sound_s_per_s") ?? 0) ? other : one));
  const first = (group: unknown, share: string) => {
    const value = number(group, "first_audible_ms", share);
    return value === null ? "–" : milliseconds(value);
  };
  const count = (name: string) => sum(levels.map(({ group }) => number(group, "requests", name)));
  const stayed = count("completed") + count("failed");
  const capacity = number(run.summary, "sweep", "capacity_per_s");
  return [
    { what: `first audible sound, median, ${least.name}`, value: first(least.group, "p50") },
    { what: `95 of 100 hear it within, ${most.name}`, value: first(most.group, "p95") },
    { what: `most sound a second, ${best.name}`, value: `${plain(number(best.group, "sound_s_per_s") ?? 0)} s` },
    ...(capacity === null ? [] : [{ what: "highest rate that keeps the objectives", value: `${capacity} /s` }]),
    { what: `failed of ${plain(stayed)}`, value: count("failed") === 0 ? "none" : `${plain(count("failed"))} (${percent(count("failed") / stayed)})` },
  ];
}

function failures(runs: Run[]): HTMLElement[] {
  const rows = levelsOf(runs).flatMap((level) =>
    entries(level.group, "failures").map(([kind, failure]) => [...levelCells(level, runs), kind, number(failure, "count"), text(failure, "first")]),
  );
  if (rows.length === 0) return [];
  const columns = [...levelColumns(runs), { name: "kind" }, { name: "requests" }, { name: "the first" }];
  return [make("section", { id: "failures" }, make("h2", { textContent: "Failures" }), tableOf({ columns, rows }))];
}

function doubts(runs: Run[]): HTMLElement[] {
  const rows = doubtsOf(runs).map(({ run, level, words }) => (runs.length > 1 ? [level, run.name, words] : [level, words]));
  if (rows.length === 0) return [];
  const columns = [...levelColumns(runs), { name: "the load program notes" }];
  return [make("section", { id: "doubts" }, make("h2", { textContent: "Doubts about these figures" }), tableOf({ columns, rows }))];
}

function promises(runs: Run[]): HTMLElement[] {
  const rows = runs.flatMap((run) =>
    list(run.summary, "promises").map((promise) => {
      const goal = number(promise, "at_least") ?? number(promise, "at_most");
      const kept = text(promise, "kept") === "true";
      return [...(runs.length > 1 ? [run.name] : []), text(promise, "what"), number(promise, "at_least") === null ? "at most" : "at least", goal, number(promise, "measured"), text(promise, "unit"), kept ? "kept" : "broken"];
    }),
  );
  if (rows.length === 0) return [];
  const columns = [...(runs.length > 1 ? [{ name: "run" }] : []), { name: "promise" }, { name: "" }, { name: "goal" }, { name: "measured" }, { name: "unit" }, { name: "" }];
  const table = tableOf({ columns, rows });
  for (const cell of table.querySelectorAll("td:last-child")) cell.className = cell.textContent ?? "";
  return [make("section", { id: "promises" }, make("h2", { textContent: "Promises" }), table)];
}

export function loadSections(runs: Run[]): HTMLElement[] {
  const figures = [firstAudio, underruns, latency, throughput, audioCurve, latencyCurve, timelineFigure];
  return [...promises(runs), ...figures.map((of) => figureOf(of(runs))), ...failures(runs), ...doubts(runs)];
}
