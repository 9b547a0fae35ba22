// The figures of load on a server that stand over the load: first audio, underruns, latency, throughput.
import type { Markish, PlotOptions } from "@observablehq/plot";
import { dot, line, pointer, ruleX, ruleY, text as words, tip } from "@observablehq/plot";
import type { Figure } from "./figure.ts";
import { kNarrow } from "./figure.ts";
import { keyOfRuns } from "./key.ts";
import type { Level } from "./load_levels.ts";
import { compared, labelOf, levelsOf, loadsOf } from "./load_levels.ts";
import { milliseconds, percent, plain } from "./numbers.ts";
import type { Run } from "./read.ts";
import { at, distribution, number } from "./read.ts";
import { boxes } from "./rows.ts";
import { stretched } from "./stretched.ts";
import type { Cell, Column } from "./table.ts";

interface Point {
  level: Level;
  kind: string; // "p50"
  x: number;
  y: number;
  says: string;
}

type Style = "solid" | "dashed" | "dotted";
const kDashes: Record<Style, string> = { solid: "", dashed: "6 4", dotted: "1.5 4" };

// Columns that say which level a row is of.
export function levelColumns(runs: Run[]): Column[] {
  return runs.length > 1 ? [{ name: "load" }, { name: "run" }] : [{ name: "load" }];
}
export function levelCells({ run, name }: Level, runs: Run[]): Cell[] {
  return runs.length > 1 ? [name, run.name] : [name];
}

function loadLabel(levels: Level[]): string {
  const open = levels.filter((level) => level.open).length;
  return open === 0 ? "users at a time →" : open === levels.length ? "requests a second →" : "users, or requests a second →";
}

function lines(points: Point[], styles: Record<string, Style>): Markish[] {
  const colour = (p: Point) => p.level.run.colour;
  const marks: Markish[] = Object.entries(styles).flatMap(([kind, style]) => {
    const data = points.filter((p) => p.kind === kind);
    return [
      line(data, { x: "x", y: "y", z: (p: Point) => p.level.run.name, stroke: colour, strokeWidth: 2, strokeDasharray: kDashes[style] }),
      dot(data, { x: "x", y: "y", fill: colour, r: 3.5 }),
    ];
  });
  return [...marks, tip(points, pointer({ x: "x", y: "y", title: "says", stroke: "var(--line)" }))];
}

function overLoad(levels: Level[], points: Point[], styles: Record<string, Style>, y: NonNullable<PlotOptions["y"]>): Figure["options"] {
  return (width) => {
    const loads = loadsOf(levels);
    const every = Math.ceil(loads.length / (width < kNarrow ? 6 : 14));
    return {
      height: width < kNarrow ? 260 : 320,
      marginLeft: 50,
      marginBottom: 42,
      x: { type: "point", domain: loads, label: loadLabel(levels), ticks: loads.filter((_, i) => i % every === 0), tickFormat: plain },
      y,
      marks: [ruleY("type" in y && y.type === "log" ? [] : [0], { stroke: "var(--muted)" }), ...lines(points, styles)],
    };
  };
}

function pointsOf(levels: Level[], runs: Run[], kinds: string[], value: (level: Level, kind: string) => number | null, shown: (y: number) => string): Point[] {
  return levels.flatMap((level) =>
    kinds.flatMap((kind) => {
      const y = value(level, kind);
      return y === null ? [] : [{ level, kind, x: level.load, y, says: `${labelOf(level, runs)}\n${kind}: ${shown(y)}` }];
    }),
  );
}

const kShares: Record<string, Style> = { p50: "solid", p95: "dashed", p99: "dotted" };
const kPercentiles = ["mean", "p50", "p90", "p95", "p99", "max"];

export function firstAudio(runs: Run[]): Figure {
  const levels = levelsOf(runs);
  const points = pointsOf(levels, runs, Object.keys(kShares), (level, share) => number(level.group, "first_audible_ms", share), milliseconds);
  return {
    id: "first-audio",
    title: "First audible sound",
    says: "What a listener waits: from the moment a request was due to its first sample that is not silent.",
    key: [...keyOfRuns(runs), ...Object.entries(kShares).map(([label, style]) => ({ label, line: style }))],
    options: overLoad(levels, points, kShares, { ...stretched(points.map(({ y }) => y)), label: "↑ ms" }),
    table: {
      columns: [...levelColumns(runs), { name: "heard" }, ...kPercentiles.map((name) => ({ name, unit: "ms" }))],
      rows: compared(levels).map((level) => [
        ...levelCells(level, runs),
        number(level.group, "first_audible_ms", "count"),
        ...kPercentiles.map((share) => number(level.group, "first_audible_ms", share)),
      ]),
    },
  };
}

const kBuffers: Record<string, Style> = { "50 ms": "dotted", "100 ms": "solid", "200 ms": "dashed" };
const member = (buffer: string) => `buffer_${buffer.replace(" ", "")}`;

export function underruns(runs: Run[]): Figure {
  const levels = levelsOf(runs);
  const buffers = Object.keys(kBuffers);
  const share = (level: Level, buffer: string) => {
    const dry = number(level.group, "underruns", member(buffer), "requests");
    const completed = number(level.group, "requests", "completed");
    return dry === null || !completed ? null : dry / completed;
  };
  const points = pointsOf(levels, runs, buffers, share, (y) => `${percent(y)} of the requests`);
  const most = Math.max(0, ...points.map(({ y }) => y));
  return {
    id: "underruns",
    title: "Underruns",
    says: "Completed requests whose player ran dry, by how much sound it holds before it begins.",
    key: [...keyOfRuns(runs), ...Object.entries(kBuffers).map(([buffer, style]) => ({ label: `${buffer} of buffer`, line: style }))],
    options: overLoad(levels, points, kBuffers, { domain: [0, Math.max(5, 100 * most)], nice: true, percent: true, grid: true, ticks: 5, label: "↑ % of requests" }),
    table: {
      columns: [
        ...levelColumns(runs),
        { name: "completed" },
        ...buffers.map((buffer) => ({ name: `dry, ${buffer}` })),
        { name: "underruns, 100 ms" },
        { name: "silence, 100 ms", unit: "s" },
      ],
      rows: compared(levels).map((level) => [
        ...levelCells(level, runs),
        number(level.group, "requests", "completed"),
        ...buffers.map((buffer) => number(level.group, "underruns", member(buffer), "requests")),
        number(level.group, "underruns", "buffer_100ms", "count"),
        number(level.group, "underruns", "buffer_100ms", "dry_s"),
      ]),
    },
  };
}

export function latency(runs: Run[]): Figure {
  const levels = levelsOf(runs);
  const rows = levels.map((level) => ({ label: level.name, run: level.run, strip: runs.length > 1 ? level.run.name : "", box: distribution(at(level.drawing, "latency_ms")).box }));
  return {
    id: "latency",
    title: "Latency of whole answers",
    says: "From the moment a request was due to its last byte. A box holds the middle half of the requests, the line in it is the median, the whiskers reach the fastest and the slowest.",
    key: keyOfRuns(runs),
    options: boxes(rows),
    table: {
      columns: [...levelColumns(runs), { name: "completed" }, ...kPercentiles.map((name) => ({ name, unit: "ms" })), { name: "RTF p50" }, { name: "RTF p95" }],
      rows: compared(levels).map((level) => [
        ...levelCells(level, runs),
        number(level.group, "latency_ms", "count"),
        ...kPercentiles.map((share) => number(level.group, "latency_ms", share)),
        number(level.group, "real_time_factor", "p50"),
        number(level.group, "real_time_factor", "p95"),
      ]),
    },
  };
}

export function throughput(runs: Run[]): Figure {
  const levels = levelsOf(runs);
  const points = ["p50", "p95"].flatMap((kind) =>
    levels.flatMap((level): Point[] => {
      const x = number(level.group, "sound_s_per_s");
      const y = number(level.group, "latency_ms", kind);
      const says = `${labelOf(level, runs)}\n${plain(x ?? 0)} s of sound a second\nlatency ${kind}: ${milliseconds(y ?? 0)}`;
      return x === null || y === null ? [] : [{ level, kind, x, y, says }];
    }),
  );
  const named = runs.length > 1 ? [] : points.filter(({ kind }) => kind === "p50");
  return {
    id: "throughput",
    title: "Throughput against latency",
    says: "More load goes along the line. Where it turns upwards the server has no more to give: only the waiting grows.",
    key: [...keyOfRuns(runs), { label: "latency p50", line: "solid" }, { label: "p95", line: "dashed" }],
    options: (width) => ({
      height: width < kNarrow ? 280 : 340,
      marginLeft: 50,
      marginBottom: 42,
      x: { label: "seconds of sound a second →", zero: true, nice: true, grid: true, ticks: width < kNarrow ? 5 : 9 },
      y: { ...stretched(points.map(({ y }) => y)), label: "↑ latency, ms" },
      marks: [
        ruleX([0], { stroke: "var(--muted)" }),
        ...lines(points, { p50: "solid", p95: "dashed" }),
        words(named, { x: "x", y: "y", text: (p: Point) => plain(p.level.load), dy: 13, fill: "var(--muted)", fontSize: 11 }),
      ],
    }),
    table: {
      columns: [...levelColumns(runs), { name: "requests", unit: "/s" }, { name: "good requests", unit: "/s" }, { name: "good", unit: "of all", shown: percent }, { name: "sound", unit: "s/s" }, { name: "characters", unit: "/s" }, { name: "latency p50", unit: "ms" }, { name: "latency p95", unit: "ms" }],
      rows: compared(levels).map((level) => [
        ...levelCells(level, runs),
        number(level.group, "requests_per_s"),
        number(level.group, "goodput", "per_s"),
        number(level.group, "goodput", "share"),
        number(level.group, "sound_s_per_s"),
        number(level.group, "characters_per_s"),
        number(level.group, "latency_ms", "p50"),
        number(level.group, "latency_ms", "p95"),
      ]),
    },
  };
}
