// A scale that shows small and large values alike where they lie far apart.
import { plain } from "./numbers.ts";

interface Stretched {
  type: "log" | "linear";
  zero: boolean;
  grid: true;
  ticks: number | number[];
  tickFormat: (value: number) => string;
}

// 1, 2, 5, 10, ... of the range; over many decades 1, 10, 100, ...
function roundSteps(least: number, most: number, ticks: number): number[] {
  const steps = [];
  const factors = Math.log10(most / least) * 3 > ticks + 2 ? [1] : [1, 2, 5];
  for (let decade = 10 ** Math.floor(Math.log10(least)); decade <= most; decade *= 10) {
    steps.push(...factors.map((factor) => factor * decade).filter((step) => step >= 0.999 * least && step <= 1.001 * most));
  }
  return steps;
}

export function stretched(values: number[], ticks = 6): Stretched {
  const least = Math.min(...values);
  const most = Math.max(...values);
  const far = values.length > 0 && least > 0 && most > 30 * least;
  return { type: far ? "log" : "linear", zero: !far, grid: true, ticks: far ? roundSteps(least, most, ticks) : ticks, tickFormat: plain };
}
