// The figures of a suite on one machine: memory, real-time factor, latency, warm-up, capacity, by configuration.
import { ruleX } from "@observablehq/plot";
import type { Figure } from "./figure.ts";
import { keyOfRuns } from "./key.ts";
import { megabytes, milliseconds, plain } from "./numbers.ts";
import type { Run } from "./read.ts";
import { at, distribution, entries, list, number, text } from "./read.ts";
import type { BarRow, BoxRow } from "./rows.ts";
import { bars, boxes } from "./rows.ts";
import type { Cell, Column } from "./table.ts";

interface Configuration {
  run: Run;
  group: unknown; // of summary.json
  drawing: unknown;
  name: string;
}

function configurationsOf(runs: Run[]): Configuration[] {
  const all = runs.flatMap((run) =>
    run.groups.map((group, i) => ({ run, group, drawing: list(run.drawings, "groups")[i], name: text(group, "name") || `configuration ${i + 1}` })),
  );
  // A configuration of one run beside the same of another.
  const names = [...new Set(all.map(({ name }) => name))];
  return all.sort((a, b) => names.indexOf(a.name) - names.indexOf(b.name));
}

function columns(runs: Run[], ...more: Column[]): Column[] {
  return [{ name: "configuration" }, ...(runs.length > 1 ? [{ name: "run" }] : []), ...more];
}
function cells({ run, name }: Configuration, runs: Run[]): Cell[] {
  return runs.length > 1 ? [name, run.name] : [name];
}
function saying({ run, name }: Configuration, runs: Run[]): string {
  return runs.length > 1 ? `${name}, ${run.name}` : name;
}

// One bar for each configuration, run and measure.
function barsOf(runs: Run[], measures: { strip: string; faint?: boolean; value: (group: unknown) => number | null; mark?: (group: unknown) => number | null; says: (group: unknown) => string }[]): BarRow[] {
  return configurationsOf(runs).flatMap((each) =>
    measures.flatMap(({ strip, faint, value, mark, says }): BarRow[] => {
      const length = value(each.group);
      if (length === null) return [];
      const ends = mark?.(each.group) ?? null;
      return [
        {
          label: each.name,
          strip: `${each.run.name} ${strip}`,
          value: length,
          colour: each.run.colour,
          faint: faint ?? false,
          ...(ends === null ? {} : { mark: ends }),
          says: `${saying(each, runs)}\n${says(each.group)}`,
        },
      ];
    }),
  );
}

export function memory(runs: Run[]): Figure {
  const rest = (group: unknown) => number(group, "memory", "rest_bytes");
  const peak = (group: unknown) => number(group, "memory", "peak_bytes");
  const rows = barsOf(runs, [
    { strip: "rest", value: rest, says: (group) => `at rest: ${megabytes(rest(group) ?? 0)}` },
    { strip: "peak", faint: true, value: peak, says: (group) => `at peak: ${megabytes(peak(group) ?? 0)}` },
  ]);
  const ofDevice = runs.some(({ groups }) => groups.some((group) => text(group, "memory", "of") === "device"));
  return {
    id: "memory",
    title: "Memory",
    says: `${ofDevice ? "Of the GPU" : "Of the process"}: loaded and ready, and the most while speaking. Measured anew for each configuration.`,
    key: [...keyOfRuns(runs), { label: "at rest", mark: "block" }, { label: "at peak", mark: "faint" }],
    options: bars(rows, { label: "MB →", transform: (bytes: number) => bytes / 1e6 }, megabytes),
    table: {
      columns: columns(runs, { name: "at rest", unit: "bytes" }, { name: "at peak", unit: "bytes" }, { name: "loading", unit: "s" }),
      rows: configurationsOf(runs).map((each) => [...cells(each, runs), rest(each.group), peak(each.group), number(each.group, "load_s")]),
    },
  };
}

const kPercentiles = ["p50", "p95", "p99"];

export function realTimeFactor(runs: Run[]): Figure {
  const factor = (share: string) => (group: unknown) => number(group, "real_time_factor", share);
  const rows = barsOf(runs, [
    { strip: "", value: factor("p50"), mark: factor("p95"), says: (group) => `p50: ${plain(factor("p50")(group) ?? 0)}\np95: ${plain(factor("p95")(group) ?? 0)}` },
  ]);
  const most = Math.max(0, ...rows.map(({ value, mark }) => Math.max(value, mark ?? 0)));
  return {
    id: "real-time-factor",
    title: "Real-time factor",
    says: "Seconds of work for a second of sound, one request at a time: less is faster, and below 1 a listener never waits. The bar is the median, the tick the 95th percentile.",
    key: keyOfRuns(runs),
    options: bars(rows, { label: "real-time factor →" }, plain, most > 0.7 ? [ruleX([1], { stroke: "var(--danger)", strokeDasharray: "4 3" })] : []),
    table: {
      columns: columns(runs, ...kPercentiles.map((share) => ({ name: `RTF ${share}` })), ...kPercentiles.map((share) => ({ name: `tokens/s ${share}` })), { name: "requests" }),
      rows: configurationsOf(runs).map((each) => [
        ...cells(each, runs),
        ...kPercentiles.map((share) => number(each.group, "real_time_factor", share)),
        ...kPercentiles.map((share) => number(each.group, "semantic_tokens_per_s", share)),
        number(each.group, "real_time_factor", "count"),
      ]),
    },
  };
}

export function suiteLatency(runs: Run[]): Figure {
  const all = configurationsOf(runs);
  const texts = [...new Set(all.flatMap(({ group }) => entries(group, "texts").map(([name]) => name)))];
  const rows = all.flatMap((each) =>
    texts.map((name): BoxRow => ({
      label: each.name,
      run: each.run,
      strip: runs.length > 1 ? `${name}, ${each.run.name}` : name,
      box: distribution(at(each.drawing, "texts", name, "latency_ms")).box,
    })),
  );
  return {
    id: "suite-latency",
    title: "Latency",
    says: `From the request to its last sample, for each text (${texts.join(", ")}, from above). A box holds the middle half of the requests, the line in it is the median, the whiskers reach the fastest and the slowest.`,
    key: keyOfRuns(runs),
    options: boxes(rows),
    table: {
      columns: columns(runs, { name: "text" }, { name: "characters" }, ...["p50", "p95", "p99", "max"].map((name) => ({ name, unit: "ms" })), { name: "first audio p50", unit: "ms" }, { name: "RTF p50" }),
      rows: all.flatMap((each) =>
        entries(each.group, "texts").map(([name, times]) => [
          ...cells(each, runs),
          name,
          number(times, "characters"),
          ...["p50", "p95", "p99", "max"].map((share) => number(times, "latency_ms", share)),
          number(times, "first_audio_ms", "p50"),
          number(times, "real_time_factor", "p50"),
        ]),
      ),
    },
  };
}

export function warmUp(runs: Run[]): Figure {
  const all = configurationsOf(runs);
  const took = ({ group }: Configuration) => list(group, "warm_up_ms").filter((ms) => typeof ms === "number");
  const most = Math.max(0, ...all.map((each) => took(each).length));
  const rows = all.flatMap((each) =>
    took(each).map((value, i): BarRow => ({
      label: each.name,
      strip: `${i} ${each.run.name}`,
      value,
      colour: each.run.colour,
      faint: i > 0,
      says: `${saying(each, runs)}\nrequest ${i + 1} after loading: ${milliseconds(value)}`,
    })),
  );
  return {
    id: "warm-up",
    title: "Warm-up",
    says: "The first requests after loading, in their order from above: what is longer than the last is the price of a cold start.",
    key: keyOfRuns(runs),
    options: bars(rows, { label: "ms →" }, milliseconds),
    table: {
      columns: columns(runs, ...Array.from({ length: most }, (_, i) => ({ name: `request ${i + 1}`, unit: "ms" }))),
      rows: all.map((each) => [...cells(each, runs), ...Array.from({ length: most }, (_, i) => took(each)[i] ?? null)]),
    },
  };
}

export function capacity(runs: Run[]): Figure {
  const hours = (group: unknown) => number(group, "sound_h_per_h");
  const rows = barsOf(runs, [{ strip: "", value: hours, says: (group) => `${plain(hours(group) ?? 0)} hours of sound an hour` }]);
  return {
    id: "capacity",
    title: "Capacity",
    says: "Hours of sound that one hour of requests makes, one after the other. Many at a time make more: shoal bench engine and shoal bench serve measure that.",
    key: keyOfRuns(runs),
    options: bars(rows, { label: "hours of sound an hour →" }, plain),
    table: {
      columns: columns(runs, { name: "sound", unit: "h/h" }, { name: "in a row", unit: "requests" }, { name: "took", unit: "s" }, { name: "requests", unit: "/s" }, { name: "sound made", unit: "s" }),
      rows: configurationsOf(runs).map((each) => [
        ...cells(each, runs),
        hours(each.group),
        ...["requests", "elapsed_s", "requests_per_s", "sound_s"].map((name) => number(each.group, "batch", name)),
      ]),
    },
  };
}
