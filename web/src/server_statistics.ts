// What the page shows of GET /v1/stats. Whatever is missing there is left out here.

export interface ServerStatistics {
  state: string;
  model?: string;
  device?: string;
  precision?: string;
  weights?: string;
  running?: number;
  waiting?: number;
  completed?: number;
  sound_s?: number;
  firstAudio_s?: number; // mean
  realTimeFactor?: number; // mean
  cacheHitRate?: number; // 0 to 1
  kvPages?: number;
  kvPagesUsed?: number;
  resident_bytes?: number;
  deviceUsed_bytes?: number; // of a GPU
  uptime_s?: number;
}

function at(value: unknown, path: string): unknown {
  for (const name of path.split(".")) {
    if (typeof value !== "object" || value === null) return undefined;
    value = (value as Record<string, unknown>)[name];
  }
  return value;
}

function sum(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined ? b : a + (b ?? 0);
}

export function readStatistics(answer: unknown): ServerStatistics {
  const number = (path: string) => {
    const value = at(answer, path);
    return typeof value === "number" ? value : undefined;
  };
  const text = (path: string) => {
    const value = at(answer, path);
    return typeof value === "string" ? value : undefined;
  };
  const found = {
    state: text("state") ?? "unknown",
    model: text("model"),
    device: text("device"),
    precision: text("precision"),
    weights: text("weights"),
    running: number("queue.running"),
    waiting: sum(number("queue.preparing"), number("queue.waiting")),
    completed: number("requests.completed"),
    sound_s: number("audio_s"),
    firstAudio_s: number("first_audio_s.mean"),
    realTimeFactor: number("real_time_factor.mean"),
    cacheHitRate: number("kv.hit_rate"),
    kvPages: number("kv.pages"),
    kvPagesUsed: number("kv.pages_used"),
    resident_bytes: number("resident_bytes"),
    deviceUsed_bytes: number("device_memory.used_bytes"),
    uptime_s: number("uptime_s"),
  };
  return Object.fromEntries(Object.entries(found).filter(([, value]) => value !== undefined)) as unknown as ServerStatistics;
}
