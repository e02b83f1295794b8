import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { isVerdict, type Verdict } from "../../packages/core/src/wire/mod.ts";
import type { Call } from "./calls.ts";
import { startDatabase, whyNoPostgres } from "./postgres.ts";
import { writePolicies, type Language, type Wanted } from "./policies.ts";
import { freePort } from "../../test/support/free-port.ts";
import { launch, type Server } from "./server.ts";
import { cerbosBinary, opaBinary, python, versions } from "./setup.ts";

/** A request in a peer's own format. */
export interface Request {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: unknown;
}

/** An engine with which the gate is compared, or the gate itself. */
export interface Peer {
  readonly id: string;
  readonly name: string;
  readonly ours: boolean;
  /** The sentence that says why the peer cannot be measured here, and how to change that. */
  readonly missing: () => string | undefined;
  readonly start: (folder: string, wanted: Wanted) => Promise<Server>;
  readonly request: (call: Call) => Request;
  /** Reads the verdict from an answer's text; undefined if it has none. */
  readonly verdict: (answer: string) => Verdict | undefined;
  /** A text that only the answer to an allowed call contains. */
  readonly allowed: string;
}

const root = fileURLToPath(new URL("../..", import.meta.url));
const key = "bench-key-bench-key-bench-key";
const setup = "npm run bench -- peers --setup";

function policies(language: Language, folder: string, wanted: Wanted): string {
  mkdirSync(folder, { recursive: true });
  return writePolicies(language, folder, wanted);
}

/** Counts the decisions: each engine except the gate writes one line for each. */
function lines(file: string): Promise<number> {
  return Promise.resolve(existsSync(file) ? readFileSync(file, "utf8").split("\n").length - 1 : 0);
}

function absent(file: string): string | undefined {
  return existsSync(file) ? undefined : `it is not installed: ${setup} installs it`;
}

const gate = {
  ours: true,
  request: (call: Call): Request => ({ path: "/check", headers: { authorization: `Bearer ${key}` }, body: call }),
  verdict: (answer: string) => textVerdict((JSON.parse(answer) as { readonly verdict?: unknown }).verdict),
  allowed: '"verdict":"ALLOW"',
} as const;

async function startGate(
  folder: string,
  wanted: Wanted,
  environment: Readonly<Record<string, string>> = {},
): Promise<Server> {
  const port = await freePort();
  return launch(
    {
      command: process.execPath,
      args: ["--max-semi-space-size=8", join(root, "bin", "svc-gate.mjs"), "serve"],
      environment: {
        SVC_MODE: "enforce",
        SVC_API_KEY: key,
        SVC_MANDATE: join(policies("svc-gate", folder, wanted), "mandate.yaml"),
        SVC_PORT: String(port),
        SVC_DATA_DIR: join(folder, "data"),
        SVC_LOG: "warn",
        ...environment,
      },
      folder,
      recorded: () => receipts(port),
    },
    port,
  );
}

/** Returns the number of rows that the gate's own walk finds valid in its ledger. */
async function receipts(port: number): Promise<number> {
  const answer = await fetch(`http://127.0.0.1:${port}/ledger/verify`, { headers: { authorization: `Bearer ${key}` } });
  const { ok, rows } = (await answer.json()) as { readonly ok: boolean; readonly rows: number };
  return ok ? rows : 0;
}

const sqlite: Peer = {
  ...gate,
  id: "svc-gate-sqlite",
  name: "svc-gate, SQLite",
  missing: () => undefined,
  start: (folder, wanted) => startGate(folder, wanted),
};

const postgres: Peer = {
  ...gate,
  id: "svc-gate-postgres",
  name: "svc-gate, PostgreSQL",
  missing: whyNoPostgres,
  start: async (folder, wanted) => {
    const database = await startDatabase();
    const server = await startGate(folder, wanted, { SVC_DATABASE_URL: database.url });
    return {
      ...server,
      roots: [...server.roots, ...database.roots],
      recorded: database.receipts,
      stop: async () => {
        await server.stop();
        await database.stop();
      },
    };
  },
};

const opa: Peer = {
  id: "opa",
  name: `OPA ${versions.opa}`,
  ours: false,
  missing: () => absent(opaBinary),
  start: async (folder, wanted) => {
    const port = await freePort();
    const files = policies("rego", folder, wanted);
    const config = join(folder, "opa.yaml");
    const path = join(folder, "decisions.log");
    const file = { path, max_size_mb: 100_000 };
    writeFileSync(config, JSON.stringify({ decision_logs: { plugin: "file_logger" }, plugins: { file_logger: file } }));
    const options = ["--log-level", "error", "--skip-version-check", "--addr", `127.0.0.1:${port}`];
    const args = ["run", "--server", ...options, "--config-file", config, join(files, "payments.rego")];
    return launch({ command: opaBinary, args, folder, recorded: () => lines(path) }, port);
  },
  request: (call) => ({ path: "/v1/data/payments/decision", headers: {}, body: { input: call } }),
  verdict: (answer) =>
    textVerdict((JSON.parse(answer) as { readonly result?: { readonly verdict?: unknown } }).result?.verdict),
  allowed: '"verdict":"ALLOW"',
};

interface CerbosAnswer {
  readonly results?: readonly {
    readonly actions?: { readonly run?: string };
    readonly outputs?: readonly { readonly val?: unknown }[];
  }[];
}

const cerbos: Peer = {
  id: "cerbos",
  name: `Cerbos ${versions.cerbos}`,
  ours: false,
  missing: () => absent(cerbosBinary),
  start: async (folder, wanted) => {
    const [port, grpc] = [await freePort(), await freePort()];
    const [config, path] = [join(folder, "cerbos.yaml"), join(folder, "decisions.log")];
    writeFileSync(
      config,
      JSON.stringify({
        server: { httpListenAddr: `127.0.0.1:${port}`, grpcListenAddr: `127.0.0.1:${grpc}` },
        storage: {
          driver: "disk",
          disk: { directory: policies("cerbos", folder, wanted), watchForChanges: false },
        },
        audit: {
          enabled: true,
          accessLogsEnabled: false,
          decisionLogsEnabled: true,
          backend: "file",
          file: { path },
        },
        telemetry: { disabled: true },
      }),
    );
    const args = ["server", "--log-level=error", `--config=${config}`];
    return launch({ command: cerbosBinary, args, folder, recorded: () => lines(path) }, port);
  },
  request: ({ tool_name: tool, tool_input: input, session_id: session, platform_state: platform }) => ({
    path: "/api/check/resources",
    headers: {},
    body: {
      principal: { id: session, roles: ["agent"] },
      resources: [
        {
          actions: ["run"],
          resource: { kind: tool, id: session, attr: { input, ...(platform === undefined ? {} : { platform }) } },
        },
      ],
    },
  }),
  verdict: (answer) => {
    const result = (JSON.parse(answer) as CerbosAnswer).results?.[0];
    if (result?.actions?.run === "EFFECT_ALLOW") return "ALLOW";
    if (result?.actions?.run !== "EFFECT_DENY") return undefined;
    const said = result.outputs?.map(({ val }) => val) ?? [];
    return said.length > 0 && said.every((word) => word === "ESCALATE") ? "ESCALATE" : "BLOCK";
  },
  allowed: '"run":"EFFECT_ALLOW"',
};

const cedar: Peer = {
  id: "cedar",
  name: `Cedar ${versions.cedar}`,
  ours: false,
  missing: () => undefined,
  start: async (folder, wanted) => {
    const port = await freePort();
    const file = join(policies("cedar", folder, wanted), "payments.cedar");
    const log = join(folder, "decisions.log");
    const args = [join(import.meta.dirname, "cedar.ts"), file, String(port), log];
    return launch({ command: process.execPath, args, folder, recorded: () => lines(log) }, port);
  },
  request: (call) => ({ path: "/check", headers: {}, body: call }),
  verdict: (answer) => textVerdict((JSON.parse(answer) as { readonly verdict?: unknown }).verdict),
  allowed: '"verdict":"ALLOW"',
};

const agtVerdicts: Readonly<Record<string, Verdict>> = { allow: "ALLOW", require_approval: "ESCALATE", deny: "BLOCK" };

const agt: Peer = {
  id: "agt",
  name: `Agent Governance Toolkit ${versions.agt}`,
  ours: false,
  missing: () => absent(python),
  start: async (folder, wanted) => {
    const port = await freePort();
    const [files, log] = [policies("agt", folder, wanted), join(folder, "decisions.log")];
    const args = [join(import.meta.dirname, "agt.py"), files, String(port), log];
    return launch({ command: python, args, folder, recorded: () => lines(log) }, port);
  },
  request: ({ tool_name: action, session_id: session, tool_input, platform_state }) => ({
    path: "/api/v1/policy/evaluate",
    headers: {},
    body: { agent_did: `did:${session}`, action, context: { tool_input, platform_state } },
  }),
  verdict: (answer) => agtVerdicts[(JSON.parse(answer) as { readonly decision?: string }).decision ?? ""],
  allowed: '"decision":"allow"',
};

function textVerdict(value: unknown): Verdict | undefined {
  return typeof value === "string" && isVerdict(value) ? value : undefined;
}

/** The peers, in the order of the tables. */
export const peers: readonly Peer[] = [sqlite, postgres, opa, cerbos, cedar, agt];
