// Ports of the loopback address that a test gives to what it starts.
import { createServer } from "node:net";

export const listen = (port) => new Promise((resolve, reject) => {
  const server = createServer().on("error", reject).listen(port, "127.0.0.1", () => resolve(server));
});

// The first of `count` neighbouring ports that are free now, below those that the kernel gives to connections: tests
// that run beside this one would soon have one of those.
export async function freePorts(count) {
  for (;;) {
    const base = 10_000 + Math.floor(Math.random() * 22_000);
    const servers = [];
    try {
      while (servers.length < count) servers.push(await listen(base + servers.length));
    } catch (error) {
      if (error.code !== "EADDRINUSE") throw error;
    }
    for (const server of servers) await new Promise((closed) => server.close(closed));
    if (servers.length === count) return base;
  }
}
