// The figures of load that show single requests: how their times are spread, and when they came.
import { dot, line, pointer, ruleY, text as words, tip } from "@observablehq/plot";
import type { Figure } from "./figure.ts";
import { kNarrow } from "./figure.ts";
import { levelCells, levelColumns } from "./load_figures.ts";
import type { Level } from "./load_levels.ts";
import { compared, labelOf, levelsOf } from "./load_levels.ts";
import { milliseconds, percent, plain } from "./numbers.ts";
import type { Run } from "./read.ts";
import { at, distribution, number, timeline } from "./read.ts";
import { stretched } from "./stretched.ts";

// Loads from faint to strong; one scale for all runs.
function shade(index: number, count: number): string {
  const strength = count < 2 ? 100 : Math.round(25 + (75 * index) / (count - 1));
  return `color-mix(in oklab, var(--accent) ${strength}%, var(--bar))`;
}

// Strips of runs above one another, named where there are several.
function strips(runs: Run[], width: number, height: number) {
  const many = runs.length > 1;
  return {
    options: {
      height: many ? 70 + runs.length * height * 0.75 : height + 50,
      marginLeft: 50,
      marginTop: 32,
      marginBottom: 42,
      ...(many ? { fy: { domain: runs.map(({ name }) => name), axis: null, padding: 0.14 } } : {}),
    },
    names: many ? [words(runs, { fy: "name", text: "name", frameAnchor: "top-left" as const, dx: 6, dy: -12, fill: "var(--ink)", fontWeight: 600 })] : [],
    fy: many ? { fy: (d: { run: string }) => d.run } : {},
    narrow: width < kNarrow,
  };
}

interface Step {
  run: string;
  level: Level;
  x: number;
  share: number;
  says: string;
}

function curveFigure(runs: Run[], id: string, title: string, says: string, name: "latency_ms" | "first_audible_ms"): Figure {
  const levels = levelsOf(runs);
  const most = Math.max(...runs.map(({ groups }) => groups.length));
  const steps = levels.flatMap((level) =>
    distribution(at(level.drawing, name)).curve.map(([x, share]): Step => ({
      run: level.run.name,
      level,
      x,
      share,
      says: `${labelOf(level, runs)}\n${percent(share)} within ${milliseconds(x)}`,
    })),
  );
  const key = runs.find(({ groups }) => groups.length === most)!;
  return {
    id,
    title,
    says,
    key: levels.filter(({ run }) => run === key).map((level) => ({ label: level.name, colour: shade(level.index, most) })),
    options: (width) => {
      const { options, names, fy, narrow } = strips(runs, width, 300);
      return {
        ...options,
        x: { ...stretched(steps.map(({ x }) => x), narrow ? 4 : 8), label: "ms →" },
        y: { domain: [0, 100], percent: true, label: "↑ % of requests", ticks: 5, grid: true },
        marks: [
          ruleY([0], { stroke: "var(--muted)" }),
          ...levels.map((level) =>
            line(steps.filter((step) => step.level === level), { ...fy, x: "x", y: "share", curve: "step-after", stroke: shade(level.index, most), strokeWidth: 2 }),
          ),
          tip(steps, pointer({ ...fy, x: "x", y: "share", title: "says", stroke: "var(--line)" })),
          ...names,
        ],
      };
    },
    table: {
      columns: [...levelColumns(runs), ...["p50", "p90", "p95", "p99", "max"].map((share) => ({ name: share === "max" ? "100 %" : `${share.slice(1)} % within`, unit: "ms" }))],
      rows: compared(levels).map((level) => [...levelCells(level, runs), ...["p50", "p90", "p95", "p99", "max"].map((share) => number(level.group, name, share))]),
    },
  };
}

export const audioCurve = (runs: Run[]) =>
  curveFigure(runs, "first-audio-curve", "Share of listeners who hear something", "Each step is a request: so many of them heard their first sound within so many milliseconds.", "first_audible_ms");
export const latencyCurve = (runs: Run[]) =>
  curveFigure(runs, "latency-curve", "Share of answers that are whole", "The same for the last byte.", "latency_ms");

const kCounts = ["begun", "completed", "slow", "left", "failed", "interrupted", "silent"];

export function timelineFigure(runs: Run[]): Figure {
  const levels = levelsOf(runs);
  const most = Math.max(...runs.map(({ groups }) => groups.length));
  const dots = runs.flatMap((run) => timeline(run).map((each) => ({ ...each, run: run.name, y: each.first_audible_ms ?? each.latency_ms })));
  const heard = dots.filter((each) => each.outcome === "completed" && each.y !== null);
  const others = dots.filter((each) => each.outcome !== "completed");
  const scale = stretched(heard.map(({ y }) => y!));
  const foot = scale.type === "log" ? Math.min(...heard.map(({ y }) => y!)) : 0;
  const all = runs.reduce((sum, run) => sum + (number(run.drawings, "requests") ?? 0), 0);
  const nameOf = (run: string, group: number) => levels.find((level) => level.run.name === run && level.index === group)?.name ?? "a level that did not end";
  const say = (each: (typeof dots)[number]) =>
    `${runs.length > 1 ? `${each.run}, ` : ""}${nameOf(each.run, each.group)}\ndue after ${plain(each.due_s)} s\n` +
    (each.outcome === "completed" ? `heard after ${milliseconds(each.y!)}` : each.outcome);
  return {
    id: "timeline",
    title: "The run in time",
    says: `Every ${dots.length < all ? `${Math.ceil(all / dots.length)}th ` : ""}request where it was due, as high as its first audible sound was late.`,
    key: [{ label: "heard", colour: "var(--accent)", mark: "dot" }, ...(others.length > 0 ? [{ label: "left, failed, slow or interrupted", colour: "var(--second)", mark: "cross" as const }] : [])],
    options: (width) => {
      const { options, names, fy, narrow } = strips(runs, width, 260);
      return {
        ...options,
        x: { label: "seconds since the first level began →", nice: true, ticks: narrow ? 5 : 9, zero: true, grid: true },
        y: { ...scale, label: "↑ first audible sound, ms" },
        marks: [
          ruleY(scale.type === "log" ? [] : [0], { stroke: "var(--muted)" }),
          dot(heard, { ...fy, x: "due_s", y: "y", fill: (each) => shade(each.group, most), fillOpacity: 0.8, r: 2.5 }),
          dot(others, { ...fy, x: "due_s", y: () => foot, symbol: "times", stroke: "var(--second)", strokeWidth: 1.5, r: 3.5 }),
          tip([...heard, ...others], pointer({ ...fy, x: "due_s", y: (each) => (each.outcome === "completed" ? each.y : foot), title: say, stroke: "var(--line)" })),
          ...names,
        ],
      };
    },
    table: {
      columns: [...levelColumns(runs), { name: "took", unit: "s" }, ...kCounts.map((name) => ({ name })), { name: "most open" }, { name: "client late, p99", unit: "ms" }, { name: "client CPU", unit: "of a core", shown: percent }],
      rows: compared(levels).map((level) => [
        ...levelCells(level, runs),
        number(level.group, "elapsed_s"),
        ...kCounts.map((name) => number(level.group, "requests", name)),
        number(level.group, "client", "most_open"),
        number(level.group, "client", "loop_lag_ms", "p99"),
        number(level.group, "client", "cpu_share"),
      ]),
    },
  };
}
