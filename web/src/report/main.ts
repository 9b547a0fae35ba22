// Draws the runs that the page holds.
import { byId, make } from "../dom.ts";
import { factsOf, notesOf, tilesOf, titleOf } from "./head.ts";
import { loadSections, loadTiles } from "./load.ts";
import { runsOf } from "./read.ts";
import { suiteSections, suiteTiles } from "./suite.ts";

const runs = runsOf(JSON.parse(byId("data").textContent ?? "null"));
const measured = runs.filter(({ groups }) => groups.length > 0);
const title = titleOf(runs);
byId("title").textContent = title;
document.title = `${title} – Shoal bench`;

const suites = measured.filter(({ isSuite }) => isSuite);
const loads = measured.filter(({ isSuite }) => !isSuite);
const sections = [...(suites.length > 0 ? suiteSections(suites) : []), ...(loads.length > 0 ? loadSections(loads) : [])];
const contents = make("nav", { className: "contents" }, ...sections.map(({ id, firstElementChild }) => make("a", { href: `#${id}`, textContent: firstElementChild?.textContent ?? "" })));
contents.setAttribute("aria-label", "Figures");

const report = byId("report");
report.append(...notesOf(runs));
for (const run of measured) {
  if (runs.length > 1) {
    const sign = make("span", { className: "sign" });
    sign.style.setProperty("--sign", run.colour);
    report.append(make("p", { className: "run-name" }, sign, run.name));
  }
  report.append(tilesOf(run.isSuite ? suiteTiles(run) : loadTiles(run)));
}
report.append(contents, factsOf(runs), ...sections);
