import Fastify from "fastify";

// The baseline: Fastify reads the same body with JSON.parse and answers a constant.
const server = Fastify();
server.removeAllContentTypeParsers();
server.addContentTypeParser("application/json", { parseAs: "buffer" }, (_request, body, done) =>
  done(null, JSON.parse(body.toString())),
);
const answer = JSON.stringify({
  verdict: "ALLOW",
  reason: "Svc: the payee is registered, and 10 USD is within every limit",
  mode: "enforce",
  receipt: { seq: 1, hash: "0".repeat(64), request: "0".repeat(64) },
});
server.post("/check", (_request, reply) =>
  reply.header("content-type", "application/json; charset=utf-8").send(answer),
);
console.log(await server.listen({ host: "127.0.0.1", port: 0 }));
