// What the programs of the JavaScript frameworks share. argv: the folders of the adapters and of the clients.
import { execFile } from "node:child_process";
import { appendFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";

const [adapters, clients] = process.argv.slice(-2);
const { SvcGate } = await import(join(clients, "javascript", "svc-gate.mjs"));
const execute = promisify(execFile);

/** The module of an adapter, or a changed copy of it. */
export const adapter = (name) => import(join(adapters, name));

/** Runs each plan that comes on stdin. `run` returns how it ended: `done`, `parked` or `not-started`. */
export function serve(run) {
  createInterface({ input: process.stdin }).on("line", async (line) => {
    const plan = JSON.parse(line);
    const said = (ended, detail) =>
      process.stdout.write(`kit ${JSON.stringify({ run: plan.run, ended, detail: String(detail) })}\n`);
    try {
      said(...(await run(plan)));
    } catch (error) {
      said("lost", error?.stack ?? error);
    }
  });
}

/** The settings of the guard for a plan. */
export function settingsOf(plan) {
  const { variant, onEscalate = "refuse", hook = "ours" } = plan.case;
  const gate = new SvcGate(plan.gate, {
    apiKey: plan.key,
    sessionId: plan.session,
    timeoutMs: plan.secondsForHook * 500,
    retries: 0,
    failOpen: variant?.startsWith("fail-open") ?? false,
  });
  const facts = () => {
    throw new Error("no facts");
  };
  const check = variant === "instant-client" ? async () => allowed : failing[hook];
  return {
    gate: check === undefined ? gate : { ...gate, check },
    onEscalate,
    waitMs: 20_000,
    ...(variant === "facts-throw" && { facts }),
  };
}

/** What a client says that does not ask, for the benchmark. */
const allowed = {
  verdict: "ALLOW",
  reason: "Svc: fine",
  mode: "enforce",
  unreached: false,
  allowed: true,
  escalated: false,
  receipt: null,
  approval: null,
};

/** Clients of the gate that fail, for the cases C1 to C8. */
const failing = {
  crashes: () => {
    throw new Error("crashed");
  },
  "says-nothing": async () => undefined,
  "says-text": async () => "ALLOW",
  "says-odd-json": async () => ({ verdict: "ALLOW", allowed: "yes" }),
};

/** The tools' work. The witness has a line for each call. */
export function toolsOf({ payServer }) {
  const witness = payServer.at(-1);
  return {
    pay: (input) => {
      appendFileSync(witness, `pay ${input.amount} at ${Date.now()} with ${JSON.stringify(input)}\n`);
      return `paid ${input.amount}`;
    },
    shell: async ({ command }) => {
      const { stdout } = await execute("sh", ["-c", command], { cwd: join(witness, "..") });
      return stdout === "" ? "The command has run." : stdout;
    },
  };
}

/** How a run ended that has come to the model's last text. */
export const endOf = (text) => [text === "The work is done." ? "done" : "lost", text];
