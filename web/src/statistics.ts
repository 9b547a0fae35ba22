// Live figures of the server and two small charts of the last minutes.
import uPlot from "uplot";
import { type Connection, sentence } from "./connection.ts";
import { byId, make } from "./dom.ts";
import { ServerError } from "./errors.ts";
import { bytes, count, duration, milliseconds } from "./format.ts";
import { readStatistics, type ServerStatistics } from "./server_statistics.ts";

const kPoll_ms = 2000;
const kKept = 150; // points: five minutes
const kShortest_s = 60; // of the axis of time

export class StatisticsView {
  private readonly times: number[] = [];
  private readonly running: number[] = [];
  private readonly waiting: number[] = [];
  private readonly sound: (number | null)[] = []; // seconds of sound made in a second
  private last: { time: number; sound_s: number } | null = null;
  private readonly loadChart = new Chart(byId("load-chart"), ["--accent", "--second"]);
  private readonly soundChart = new Chart(byId("sound-chart"), ["--accent"]);
  private timer = 0;
  private model = ""; // empty: the first

  constructor(
    private readonly connection: Connection,
    private readonly onReady: () => void, // each time the server becomes so
    private readonly onAnswer: () => void, // each time it answers
  ) {
    document.addEventListener("visibilitychange", () => this.poll());
    this.poll();
  }

  // Now, and from then on as long as the page is seen and the server answers to its key.
  poll(): void {
    clearTimeout(this.timer);
    if (!document.hidden) void this.reach();
  }

  // Whether the server answers, to the key that there is.
  async reach(): Promise<boolean> {
    const status = await this.ask();
    clearTimeout(this.timer);
    if (status !== 401) this.timer = window.setTimeout(() => this.poll(), kPoll_ms);
    if (status === 200) this.onAnswer();
    return status === 200;
  }

  // Figures of another model: its charts begin anew.
  follow(model: string): void {
    if (model === this.model) return;
    this.model = model;
    this.last = null;
    for (const series of [this.times, this.running, this.waiting, this.sound]) series.length = 0;
    this.poll();
  }

  // Returns the status; 0 for no answer, -1 for one that cannot be read.
  private async ask(): Promise<number> {
    try {
      const { model } = this;
      const query = model ? `?model=${encodeURIComponent(model)}` : "";
      const answer = await this.connection.json(`/v1/stats${query}`);
      if (model === this.model) this.show(readStatistics(answer));
      return 200;
    } catch (error) {
      const status = error instanceof ServerError ? error.status : -1;
      if (status === 401) this.setState("locked", this.connection.key ? "does not know the API key" : "needs an API key");
      else this.setState(status === 0 ? "away" : "trouble", status === 0 ? "no answer" : "in trouble");
      byId("server-note").textContent = sentence(error instanceof Error ? error.message : String(error));
      return status;
    }
  }

  private show(now: ServerStatistics): void {
    const weights = now.weights && now.weights !== now.precision && `${now.weights} weights`;
    this.setState(now.state, [now.state, now.model, now.device, now.precision, weights].filter(Boolean).join(" · "));
    byId("server-note").textContent = "";
    byId("server").classList.remove("silent");
    const dash = (value: number | undefined, write: (value: number) => string) => (value === undefined ? "–" : write(value));
    const figures: [string, string][] = [
      ["Speaking", dash(now.running, count)],
      ["Waiting", dash(now.waiting, count)],
      ["First audio, mean", dash(now.firstAudio_s, (s) => milliseconds(1000 * s))],
      ["Real-time factor, mean", dash(now.realTimeFactor, (f) => f.toFixed(3))],
      ["Requests completed", dash(now.completed, count)],
      ["Sound made", dash(now.sound_s, duration)],
      ...(now.kvPages ? this.cacheFigures(now, now.kvPages) : []),
      ["Memory", dash(now.resident_bytes, bytes)],
      ...(now.deviceUsed_bytes ? [["GPU memory", bytes(now.deviceUsed_bytes)] as [string, string]] : []),
      ["Up", dash(now.uptime_s, duration)],
    ];
    byId("server-figures").replaceChildren(
      ...figures.map(([name, value]) => make("div", {}, make("dt", { textContent: name }), make("dd", { textContent: value }))),
    );
    this.remember(now);
  }

  // Of models that have such caches.
  private cacheFigures(now: ServerStatistics, pages: number): [string, string][] {
    const percent = (share: number | undefined) => (share === undefined ? "–" : `${Math.round(100 * share)} %`);
    return [
      ["Voice cache hits", percent(now.cacheHitRate)],
      ["KV pages in use", percent((now.kvPagesUsed ?? 0) / pages)],
    ];
  }

  private setState(state: string, words: string): void {
    const shown = byId("server-state");
    const becameReady = state === "ready" && shown.dataset.state !== "ready";
    shown.dataset.state = state;
    const text = byId("server-state-text");
    if (text.textContent !== words) text.textContent = words;
    if (becameReady) this.onReady();
  }

  private remember(now: ServerStatistics): void {
    const time = Date.now() / 1000;
    const { last } = this;
    // After a reload of the model the count begins anew.
    const grown = last && now.sound_s !== undefined && now.sound_s >= last.sound_s;
    this.times.push(time);
    this.running.push(now.running ?? 0);
    this.waiting.push(now.waiting ?? 0);
    this.sound.push(grown ? (now.sound_s! - last.sound_s) / (time - last.time) : null);
    if (now.sound_s !== undefined) this.last = { time, sound_s: now.sound_s };
    for (const series of [this.times, this.running, this.waiting, this.sound]) {
      if (series.length > kKept) series.shift();
    }
    this.loadChart.show([this.times, this.running, this.waiting]);
    this.soundChart.show([this.times, this.sound]);
  }
}


const kSteps = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000];

// Lines over time in the colours of the page.
class Chart {
  private plot: uPlot | null = null;
  private data: uPlot.AlignedData = [[]];

  constructor(
    private readonly box: HTMLElement,
    private readonly colours: string[], // names of custom properties, one for each line
  ) {
    new ResizeObserver(() => this.plot?.setSize({ width: box.clientWidth, height: box.clientHeight })).observe(box);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
  }

  show(data: uPlot.AlignedData): void {
    this.data = data;
    if (this.plot) this.plot.setData(data);
    else this.draw();
  }

  // Of time: from the first point, to the last.
  private window(): [number, number] {
    const times = this.data[0];
    const last = times.at(-1) ?? 0;
    return [Math.min(times[0] ?? 0, last - kShortest_s), last];
  }

  private draw(): void {
    this.plot?.destroy();
    const style = getComputedStyle(this.box);
    const colour = (name: string) => style.getPropertyValue(name).trim();
    const axis = {
      stroke: colour("--muted"),
      font: "11px system-ui, sans-serif",
      grid: { stroke: colour("--line"), width: 1 },
      ticks: { show: false },
    };
    this.plot = new uPlot(
      {
        width: this.box.clientWidth,
        height: this.box.clientHeight,
        legend: { show: false },
        cursor: { show: false },
        padding: [8, 14, 0, 0],
        scales: {
          x: { range: () => this.window() },
          y: { range: (_, __, high) => [0, Math.max(1, high * 1.15)] },
        },
        axes: [
          {
            ...axis,
            grid: { show: false },
            size: 26,
            splits: () => marks(...this.window()),
            values: (_, at) => at.map((time) => ago(this.window()[1] - time)),
          },
          { ...axis, size: 34, space: 28, incrs: kSteps },
        ],
        series: [
          {},
          ...this.colours.map((name) => ({
            stroke: colour(name),
            width: 1.75,
            points: { show: false },
            ...(name === "--accent" ? { fill: colour("--wash") } : {}),
          })),
        ],
      },
      this.data,
      this.box,
    );
  }
}

// Every minute back from now, or every 15 seconds when there are few.
function marks(low: number, high: number): number[] {
  const step = high - low < 120 ? 15 : 60;
  const count = Math.floor((0.95 * (high - low)) / step); // none in the corner
  return Array.from({ length: count + 1 }, (_, i) => high - step * (count - i));
}

function ago(seconds: number): string {
  if (seconds < 1) return "now";
  return seconds < 59 ? `${Math.round(seconds)} s ago` : `${Math.round(seconds / 60)} min ago`;
}
