// A thread that asks /health at a steady rate and measures each answer; its event loop does nothing else.
import http from "node:http";
import { parentPort, workerData, Worker, isMainThread } from "node:worker_threads";

const percentile = (sorted, share) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? NaN;

// stop() gives {polls, failures, p50_ms, p99_ms, max_ms}.
export function pollHealth(port, per_second = 20) {
  const worker = new Worker(new URL(import.meta.url), { workerData: { port, per_second } });
  return {
    stop: () => new Promise((resolve, reject) => {
      worker.once("message", resolve);
      worker.once("error", reject);
      worker.postMessage("stop");
    }),
  };
}

function poll({ port, per_second }) {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 64 });
  const times = [];
  const failures = [];
  let open = 0;
  const ask = () => {
    const began = process.hrtime.bigint();
    ++open;
    const fail = (why) => failures.push(String(why));
    const request = http.get({ host: "127.0.0.1", port, path: "/health", agent, timeout: 10_000 }, (answer) => {
      answer.resume().on("end", () => {
        times.push(Number(process.hrtime.bigint() - began) / 1e6);
        if (answer.statusCode !== 200) fail(answer.statusCode);
      });
    });
    request.on("timeout", () => request.destroy(new Error("no answer in 10 s")));
    request.on("error", fail);
    request.on("close", () => --open);
  };
  const timer = setInterval(ask, 1000 / per_second);
  parentPort.once("message", () => {
    clearInterval(timer);
    const end = setInterval(() => {
      if (open > 0) return;
      clearInterval(end);
      agent.destroy();
      times.sort((a, b) => a - b);
      parentPort.postMessage({
        polls: times.length, failures: failures.length, first_failures: failures.slice(0, 3),
        p50_ms: percentile(times, 0.5), p99_ms: percentile(times, 0.99), max_ms: percentile(times, 1),
      });
    }, 10);
  });
}

if (!isMainThread && workerData?.per_second) poll(workerData);
