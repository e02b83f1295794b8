import http from "node:http";

// Pages of receipts at once, in their own process: argv: the address of a page, how many, key. Prints the milliseconds of all.
const [url = "", count = "1", key = ""] = process.argv.slice(2);
const agent = new http.Agent({ keepAlive: true, maxSockets: 1000 });

const page = (): Promise<void> =>
  new Promise((resolve, reject) => {
    const request = http.get(url, { agent, headers: { authorization: `Bearer ${key}` } }, (response) => {
      if (response.statusCode !== 200) reject(new Error(`a page was answered with ${response.statusCode}`));
      response.resume();
      response.once("end", resolve);
      response.once("error", reject);
    });
    request.once("error", reject);
  });

const since = performance.now();
await Promise.all(Array.from({ length: Number(count) }, page));
console.log(performance.now() - since);
agent.destroy();
