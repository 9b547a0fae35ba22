// What the run's folder says, read with care: a field that is missing or of another type is absent.

export interface Distribution {
  box: number[]; // least, p25, p50, p75, greatest
  curve: [number, number][]; // value, share of the requests at or below it
}

export interface Dot {
  group: number;
  due_s: number;
  first_audible_ms: number | null;
  latency_ms: number | null;
  outcome: string;
}

export interface Run {
  name: string; // short, and unlike those of the other runs
  colour: string;
  run: unknown; // run.json
  groups: unknown[]; // of summary.json: levels or configurations
  summary: unknown;
  isSuite: boolean;
  cutOff: boolean;
  drawings: unknown;
}

export function at(value: unknown, ...path: (string | number)[]): unknown {
  for (const name of path) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, name)) return undefined;
    value = (value as Record<string | number, unknown>)[name];
  }
  return value;
}

export function number(value: unknown, ...path: (string | number)[]): number | null {
  const found = at(value, ...path);
  return typeof found === "number" && Number.isFinite(found) ? found : null;
}

export function text(value: unknown, ...path: (string | number)[]): string {
  const found = at(value, ...path);
  if (typeof found === "string") return found;
  if (typeof found === "number" || typeof found === "boolean") return String(found);
  if (Array.isArray(found)) return found.filter((each) => ["string", "number"].includes(typeof each)).join(", ");
  return "";
}

export function list(value: unknown, ...path: (string | number)[]): unknown[] {
  const found = at(value, ...path);
  return Array.isArray(found) ? found : [];
}

export function entries(value: unknown, ...path: (string | number)[]): [string, unknown][] {
  const found = at(value, ...path);
  return typeof found === "object" && found !== null && !Array.isArray(found) ? Object.entries(found) : [];
}

export function distribution(value: unknown): Distribution {
  return { box: list(value, "box") as number[], curve: list(value, "curve") as [number, number][] };
}

export function timeline(run: Run): Dot[] {
  return (list(run.drawings, "timeline") as [number, number, number | null, number | null, string][]).map(
    ([group, due_s, first_audible_ms, latency_ms, outcome]) => ({ group, due_s, first_audible_ms, latency_ms, outcome }),
  );
}

const kLongestName = 28;
const kColours = 6; // --series-1 and so on

export function shortened(name: string): string {
  return name.length > kLongestName ? `${name.slice(0, kLongestName - 1)}…` : name;
}

export function runsOf(data: unknown): Run[] {
  const taken = new Set<string>();
  return list(data, "runs").map((each, i) => {
    const stem = shortened(text(each, "name") || "run");
    let name = stem;
    for (let n = 2; taken.has(name); ++n) name = `${stem} (${n})`;
    taken.add(name);
    const isSuite = text(each, "run", "kind") === "suite";
    return {
      name,
      colour: `var(--series-${(i % kColours) + 1})`,
      run: at(each, "run"),
      summary: at(each, "summary"),
      groups: list(each, "summary", isSuite ? "configurations" : "levels"),
      isSuite,
      cutOff: at(each, "cut_off") === true,
      drawings: at(each, "drawings"),
    };
  });
}
