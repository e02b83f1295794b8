import autocannon from "autocannon";
import { paymentBody } from "./requests.ts";

// The load, in its own process: autocannon against one address. argv: url, connections, seconds, key.
const [url = "", connections = "64", seconds = "4", key = ""] = process.argv.slice(2);
const started = Number(process.hrtime.bigint() % 1_000_000_007n);
let sent = 0;
const result = await autocannon({
  url,
  connections: Number(connections),
  duration: Number(seconds),
  headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
  requests: [
    {
      method: "POST",
      path: `${new URL(url).pathname.replace(/\/$/, "")}/check`,
      // Each session makes eight calls and never returns, so that the index of sessions grows as in production.
      setupRequest: (request) => ({ ...request, body: paymentBody(started + sent++) }),
    },
  ],
});
const { latency, requests: answered, non2xx, errors } = result;
console.log(
  JSON.stringify({
    perSecond: answered.average,
    total: answered.total,
    p50: latency.p50,
    p99: latency.p99,
    mean: latency.average,
    failed: non2xx + errors,
  }),
);
