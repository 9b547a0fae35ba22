// What fleet_faults.mjs tells: figures of each phase, and which promises do not hold.
import { sanitized } from "./harness.mjs";

const kinds = ["right", "broken", "unanswered", "refused", "wrong", "mixed_up", "malformed"];

// By the nearest rank.
const quantile = (sorted, share) => sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? 0;
function quantiles(values) {
  const sorted = [...values].sort((a, b) => a - b);
  return { count: sorted.length, p50: Math.round(quantile(sorted, 0.5)), p95: Math.round(quantile(sorted, 0.95)), max: Math.round(sorted.at(-1) ?? 0) };
}

export function summary(load, seconds) {
  const counts = Object.fromEntries(kinds.map((kind) => [kind, 0]));
  for (const { what } of load.outcomes) ++counts[what];
  return {
    seconds: Math.round(seconds),
    counts,
    strays: load.strays,
    latency_ms: quantiles(load.outcomes.filter(({ what }) => what === "right").map((outcome) => outcome.ended_ms - outcome.began_ms)),
    examples: load.outcomes.filter(({ what }) => what !== "right" && what !== "broken").slice(0, 10),
    breaks: load.outcomes.filter(({ what }) => what === "broken").map(({ began_ms, ended_ms }) => [began_ms, ended_ms]),
  };
}

// Medians of the first and the last quarter of a run, but for its beginning, when clients come.
function growth(samples, of) {
  const steady = samples.slice(Math.max(5, Math.floor(samples.length / 10))).map(of);
  const median = (values) => quantile([...values].sort((a, b) => a - b), 0.5);
  const quarter = Math.max(1, Math.floor(steady.length / 4));
  return { first: median(steady.slice(0, quarter)), last: median(steady.slice(-quarter)), most: Math.max(...steady) };
}

// harms: [{worker, signal, began_ms, recovered_ms}]; samples: of each second {supervisor, balancer}.
export function digest(harms, samples) {
  return {
    harms,
    recovery_ms: Object.fromEntries(["SIGKILL", "SIGSTOP"].map((signal) => [signal, quantiles(harms.filter((harm) => harm.signal === signal).map((harm) => harm.recovered_ms))])),
    footprint: Object.fromEntries(["supervisor", "balancer"].map((who) => [who, {
      resident_kb: growth(samples, (sample) => sample[who].resident_kb), descriptors: growth(samples, (sample) => sample[who].descriptors),
    }])),
  };
}

// An answer may break only while a worker is being harmed.
const unexplained = ({ breaks, harms }) => breaks.filter(([began_ms, ended_ms]) =>
  !harms.some((harm) => harm.began_ms <= ended_ms && harm.began_ms + harm.recovered_ms >= began_ms));

// at_rest: descriptors of each process without load, before the faults and after.
const leaks = (at_rest, who) => at_rest.after[who] > at_rest.before[who] + 8;
export const leaksNone = (at_rest) => !Object.keys(at_rest.before).some((who) => leaks(at_rest, who));

export function brokenPromises({ plan, phases, at_rest }) {
  const broken = [];
  const hold = (is, promise) => is || broken.push(promise);
  for (const [name, { counts, strays }] of Object.entries(phases)) {
    for (const kind of ["wrong", "mixed_up", "malformed"]) hold(counts[kind] === 0, `${name}: ${counts[kind]} answers ${kind}`);
    hold(strays === 0, `${name}: ${strays} bytes that nobody had asked for`);
    hold(counts.right >= plan.clients || name === "supervisor killed", `${name}: only ${counts.right} answers right`);
    const mayFail = name === "supervisor killed" ? ["unanswered", "broken", "refused"] : name === "faults" ? ["broken"] : [];
    for (const kind of ["unanswered", "refused", "broken"]) hold(mayFail.includes(kind) || counts[kind] === 0, `${name}: ${counts[kind]} requests ${kind}`);
  }
  const { faults } = phases;
  hold(unexplained(faults).length === 0, `faults: ${unexplained(faults).length} answers broken while no worker was harmed`);
  for (const [signal, { max }] of Object.entries(faults.recovery_ms)) hold(max <= plan.within_s * 1000, `${signal}: ready again after ${max} ms, not within ${plan.within_s} s`);
  for (const [who, { resident_kb }] of Object.entries(faults.footprint))
    // A sanitizer keeps memory that was freed.
    hold(sanitized || resident_kb.last <= resident_kb.first * 1.05 + 1024, `${who}: memory grew from ${resident_kb.first} to ${resident_kb.last} kB`);
  for (const who of Object.keys(at_rest.before)) hold(!leaks(at_rest, who), `${who}: ${at_rest.after[who]} descriptors without load, ${at_rest.before[who]} before`);
  for (const name of ["rolling restart", "rolling reload"]) hold(phases[name].rolling.outcome === "done", `${name}: ${phases[name].rolling.outcome}`);
  hold(phases["supervisor killed"].ended_ms <= plan.within_s * 1000, `supervisor killed: its processes ended after ${phases["supervisor killed"].ended_ms} ms`);
  return broken;
}

export function table({ plan, phases }) {
  const lines = [`${plan.workers} workers, ${plan.clients} clients`, "", `| | s | ${kinds.join(" | ")} | p50, p95, longest answer (ms) |`, `| --- |${" --- |".repeat(kinds.length + 2)}`];
  for (const [name, { seconds, counts, latency_ms: took }] of Object.entries(phases))
    lines.push(`| ${name} | ${seconds} | ${kinds.map((kind) => counts[kind]).join(" | ")} | ${took.p50}, ${took.p95}, ${took.max} |`);
  lines.push("", "| signal | times | ready again after: p50 | p95 | longest (ms) |", "| --- | --- | --- | --- | --- |");
  for (const [signal, took] of Object.entries(phases.faults.recovery_ms)) lines.push(`| ${signal} | ${took.count} | ${took.p50} | ${took.p95} | ${took.max} |`);
  lines.push("", "| | memory (kB): first quarter | last quarter | most | descriptors: first quarter | last quarter | most |", "| --- |" + " --- |".repeat(6));
  for (const [who, { resident_kb: memory, descriptors }] of Object.entries(phases.faults.footprint))
    lines.push(`| ${who} | ${memory.first} | ${memory.last} | ${memory.most} | ${descriptors.first} | ${descriptors.last} | ${descriptors.most} |`);
  lines.push("", `supervisor killed: its processes had ended after ${Math.round(phases["supervisor killed"].ended_ms)} ms`);
  return lines.join("\n");
}
