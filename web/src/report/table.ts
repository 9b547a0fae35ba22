// Tables of figures. A cell that shows a number of a file holds it, unrounded, in data-value.
import { make } from "../dom.ts";
import { plain } from "./numbers.ts";

export type Cell = string | number | null | undefined;

export interface Column {
  name: string;
  unit?: string;
  shown?: (value: number) => string;
}

export interface Table {
  columns: Column[];
  rows: Cell[][];
}

const kSentence = 40; // characters that need a column of some width

function cellOf(column: Column, value: Cell, heads: boolean): HTMLElement {
  if (typeof value !== "number") {
    const cell = make(heads ? "th" : "td", { textContent: value ?? "–" });
    if (heads) cell.setAttribute("scope", "row");
    if (value === null || value === undefined) cell.className = "number";
    else if (value.length > kSentence) cell.className = "words";
    return cell;
  }
  const cell = make(heads ? "th" : "td", { className: "number", textContent: (column.shown ?? plain)(value), title: String(value) });
  cell.dataset.value = String(value);
  return cell;
}

export function tableOf({ columns, rows }: Table): HTMLElement {
  const numeric = columns.map((_, i) => rows.some((row) => typeof row[i] === "number"));
  const head = columns.map(({ name, unit }, i) => {
    const cell = make("th", { textContent: name, className: numeric[i] ? "number" : "" });
    cell.setAttribute("scope", "col");
    if (unit) cell.append(" ", make("span", { className: "unit", textContent: unit }));
    return cell;
  });
  const body = rows.map((row) => make("tr", {}, ...row.map((value, i) => cellOf(columns[i]!, value, i === 0))));
  const table = make("table", {}, make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...body));
  const frame = make("div", { className: "table", tabIndex: 0 }, table); // wide ones scroll, with the keyboard too
  frame.setAttribute("role", "region");
  frame.setAttribute("aria-label", "Numbers");
  return frame;
}
