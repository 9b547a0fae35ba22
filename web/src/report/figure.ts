// A figure: what it shows, the plot, its key, and the numbers as a table.
import type { PlotOptions } from "@observablehq/plot";
import { plot } from "@observablehq/plot";
import { make } from "../dom.ts";
import type { Table } from "./table.ts";
import { tableOf } from "./table.ts";

export interface KeyEntry {
  label: string;
  colour?: string;
  line?: "solid" | "dashed" | "dotted" | "thin";
  mark?: "block" | "faint" | "cross" | "dot";
}

export interface Figure {
  id: string;
  title: string;
  says: string;
  key?: KeyEntry[];
  options: (width: number) => PlotOptions; // for so many pixels
  table: Table;
}

export const kNarrow = 560; // pixels of a plot on a telephone
const kLeast = 200; // a page that is being laid out for paper is a pixel wide for a moment

const kFont = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif';

function keyOf(key: KeyEntry[]): HTMLElement {
  return make("ul", { className: "key" }, ...key.map(({ label, colour, line, mark }) => {
    const sign = make("span", { className: `sign ${line ? `line ${line}` : mark ?? "block"}` });
    sign.style.setProperty("--sign", colour ?? "var(--muted)");
    return make("li", {}, sign, label);
  }));
}

// The plot is drawn for the width it has, and again when that changes. On paper it is scaled.
export function figureOf({ id, title, says, key, options, table }: Figure): HTMLElement {
  const place = make("div", { className: "plot" });
  const figure = make("figure", { id }, make("h2", { textContent: title }), make("figcaption", { textContent: says }));
  if (key && key.length > 0) figure.append(keyOf(key));
  figure.append(place, tableOf(table));
  let drawn = 0;
  const draw = () => {
    const width = Math.floor(place.clientWidth);
    if (width < kLeast || width === drawn) return;
    drawn = width;
    const svg = plot({ style: { fontFamily: kFont, fontSize: "12px", background: "none" }, ...options(width), width });
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", `${title}. The table below has its numbers.`);
    place.replaceChildren(svg);
  };
  new ResizeObserver(draw).observe(place);
  return figure;
}
