// Plots whose rows lie on their side, named at the left, one strip for each run: boxes and bars. Their names have room
// on a telephone too.
import type { Markish, PlotOptions } from "@observablehq/plot";
import { barX, pointer, ruleX, ruleY, text as words, tickX, tip } from "@observablehq/plot";
import type { Figure } from "./figure.ts";
import { kNarrow } from "./figure.ts";
import { milliseconds } from "./numbers.ts";
import type { Run } from "./read.ts";
import { stretched } from "./stretched.ts";

export interface BoxRow {
  label: string;
  run: Run;
  strip: string; // among those of the label
  box: number[]; // least, p25, p50, p75, greatest; empty: nothing to draw
}

export interface BarRow {
  label: string;
  strip: string;
  value: number;
  colour: string;
  faint?: boolean;
  mark?: number; // a tick beside the bar's end
  says: string;
}

const unique = (names: string[]) => [...new Set(names)];

// The height of strips, and the margin that the longest name needs.
function frame(rows: { label: string; strip: string }[], width: number, strip_px: number): PlotOptions {
  const labels = unique(rows.map(({ label }) => label));
  const strips = unique(rows.map(({ strip }) => strip));
  const longest = Math.max(4, ...labels.map(({ length }) => length));
  return {
    height: 48 + labels.length * (strips.length * strip_px + 12),
    marginLeft: Math.min(longest * 6.6 + 14, width * 0.36),
    marginRight: 24,
    marginTop: 8,
    marginBottom: 42,
    fy: { domain: labels, label: null, axis: "left", padding: 0.16 },
    y: { domain: strips, axis: null, padding: 0.14 },
  };
}

export function boxes(rows: BoxRow[]): Figure["options"] {
  const whole = rows.filter(({ box }) => box.length === 5);
  const part = (at: number) => (row: BoxRow) => row.box[at]!;
  const on = { fy: "label", y: "strip" };
  const colour = (row: BoxRow) => row.run.colour;
  const says = ({ label, strip, box }: BoxRow) =>
    [strip ? `${label}, ${strip}` : label, ...["fastest", "p25", "median", "p75", "slowest"].map((name, i) => `${name}: ${milliseconds(box[i]!)}`)].join("\n");
  return (width) => ({
    ...frame(rows, width, 30),
    x: { ...stretched(whole.flatMap(({ box }) => box), width < kNarrow ? 2 : 8), label: "ms →" },
    marks: [
      ruleY(whole, { ...on, x1: part(0), x2: part(4), stroke: colour, strokeWidth: 1.5 }),
      tickX(whole, { ...on, x: part(0), stroke: colour, inset: 6 }),
      tickX(whole, { ...on, x: part(4), stroke: colour, inset: 6 }),
      barX(whole, { ...on, x1: part(1), x2: part(3), fill: "var(--surface)", stroke: colour, strokeWidth: 1.5, rx: 2 }),
      barX(whole, { ...on, x1: part(1), x2: part(3), fill: colour, fillOpacity: 0.22, rx: 2 }),
      tickX(whole, { ...on, x: part(2), stroke: colour, strokeWidth: 3 }),
      tip(whole, pointer({ ...on, x: part(2), title: says, stroke: "var(--line)" })),
    ],
  });
}

export function bars(rows: BarRow[], x: NonNullable<PlotOptions["x"]>, shown: (value: number) => string, more: Markish[] = []): Figure["options"] {
  const on = { fy: "label", y: "strip" };
  return (width) => {
    // The number stands inside a bar that is long enough, and after a short one.
    const most = Math.max(...rows.map(({ value, mark }) => Math.max(value, mark ?? 0)), Number.MIN_VALUE);
    const long = rows.filter(({ value }) => value > 0.3 * most);
    const short = rows.filter(({ value }) => value <= 0.3 * most);
    return {
      ...frame(rows, width, 22),
      x: { zero: true, nice: true, grid: true, ticks: width < kNarrow ? 4 : 8, ...x },
      marks: [
        barX(rows, { ...on, x: "value", fill: "colour", fillOpacity: (row: BarRow) => (row.faint ? 0.45 : 1), rx2: 2 }),
        tickX(rows.filter(({ mark }) => mark !== undefined), { ...on, x: "mark", stroke: "var(--ink)", strokeWidth: 1.5 }),
        words(long, { ...on, x: "value", text: (row: BarRow) => shown(row.value), textAnchor: "end", dx: -6, fill: (row: BarRow) => (row.faint ? "var(--ink)" : "var(--surface)"), fontSize: 11 }),
        words(short, { ...on, x: (row: BarRow) => Math.max(row.value, row.mark ?? 0), text: (row: BarRow) => shown(row.value), textAnchor: "start", dx: 6, fill: "var(--ink)", fontSize: 11 }),
        ruleX([0], { stroke: "var(--muted)" }),
        ...more,
        tip(rows, pointer({ ...on, x: "value", title: "says", stroke: "var(--line)" })),
      ],
    };
  };
}
