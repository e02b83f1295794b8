import { bad, good, isMode, modes, nearest, type Mode, type Result } from "../../wire/mod.ts";
import { parseSinks } from "../anchoring.ts";
import type { Rate } from "../admin/keys/record.ts";
import { isLoopback } from "./loopback.ts";
import { parseRate } from "../admission/rate.ts";
import { parseBytes } from "../core/refused-inputs.ts";

/** What a gate is started with. Units are in the names; paths are as they were given. */
export interface Config {
  /** Undefined: the ledger's last mode, else observe. */
  readonly mode: Mode | undefined;
  /** What sets the mode: its variable or its flag. */
  readonly modeSetting: string;
  readonly apiKey: string | undefined;
  readonly host: string;
  readonly port: number;
  readonly basePath: string;
  readonly tlsCert: string | undefined;
  readonly tlsKey: string | undefined;
  readonly mandate: string | undefined;
  /** The file of tenants. */
  readonly tenants: string | undefined;
  /** Tenants that may be open at once; undefined leaves it to what an open one costs. */
  readonly tenantsOpen: number | undefined;
  /** How often each key may ask that has no rate of its own. */
  readonly rate: Rate | undefined;
  /** Connections at once at most. */
  readonly connections: number;
  /** Bytes: a longer input of a call that is refused before any rule is evaluated is cut. */
  readonly refusedInputMax: number;
  /** Bytes of such inputs that are kept whole for each key in 24 hours. */
  readonly refusedInputPerDay: number;
  /** Tests that must pass before a reload takes effect. */
  readonly reloadTests: string | undefined;
  /** A PostgreSQL that holds the ledgers, shared with other gates. */
  readonly databaseUrl: string | undefined;
  /** Connections to it at most. */
  readonly databasePool: number;
  readonly dataDir: string;
  readonly ledgerName: string | undefined;
  readonly pin: string | undefined;
  /** The private key that signs heads. */
  readonly signingKey: string | undefined;
  /** The file of the policy that names witnesses. */
  readonly witnessPolicy: string | undefined;
  /** Files that are given heads to keep, with commas between. */
  readonly sinks: string | undefined;
  /** A file of checkpoints that somebody outside has collected. */
  readonly seen: string | undefined;
  /** After so many heads those who anchor the ledger are told. */
  readonly anchorEvery: number;
  /** Evidence of checks that are older is erased; undefined keeps it. */
  readonly retentionDays: number | undefined;
  readonly log: string;
  readonly opsHost: string;
  /** Undefined: there is no second listener. */
  readonly opsPort: number | undefined;
  readonly accept: readonly Acceptable[];
}

/** What an operator may take responsibility for, at one start. */
export const acceptable = ["missing-pin", "signing-key", "anchors", "clock", "change", "weaker-mode"] as const;
export type Acceptable = (typeof acceptable)[number];

export const logLevels = ["fatal", "error", "warn", "info", "debug", "trace", "silent"] as const;

/** One setting: its variable, its flag on `svc-gate serve`, and what it says. */
export interface Setting {
  readonly variable: string;
  readonly flag: string;
  readonly value: string;
  readonly fallback: string;
  readonly doc: string;
}

export const settings: readonly Setting[] = [
  {
    variable: "SVC_MODE",
    flag: "mode",
    value: "mode",
    fallback: "",
    doc: "observe, assist or enforce; by default the ledger's last mode, and observe for a new ledger",
  },
  {
    variable: "SVC_API_KEY",
    flag: "api-key",
    value: "key",
    fallback: "",
    doc: "the first key; without it one is made at the first start",
  },
  { variable: "SVC_HOST", flag: "host", value: "address", fallback: "127.0.0.1", doc: "where to listen" },
  {
    variable: "SVC_PORT",
    flag: "port",
    value: "number",
    fallback: "8787",
    doc: "where to listen; 0 for any free port",
  },
  {
    variable: "SVC_BASE_PATH",
    flag: "base-path",
    value: "path",
    fallback: "",
    doc: "a prefix of every route, such as /t/acme",
  },
  { variable: "SVC_TLS_CERT", flag: "tls-cert", value: "file", fallback: "", doc: "serve TLS: the certificate, PEM" },
  { variable: "SVC_TLS_KEY", flag: "tls-key", value: "file", fallback: "", doc: "serve TLS: its private key, PEM" },
  {
    variable: "SVC_MANDATE",
    flag: "mandate",
    value: "file",
    fallback: "mandate.yaml",
    doc: "names the contracts in force",
  },
  {
    variable: "SVC_TENANTS",
    flag: "tenants",
    value: "file",
    fallback: "",
    doc: "names tenants, each with its mandate: they are served under /t/{tenant}",
  },
  {
    variable: "SVC_TENANTS_OPEN",
    flag: "tenants-open",
    value: "number",
    fallback: "",
    doc: "tenants open at once at most; by default 64, or 1000 with a database",
  },
  {
    variable: "SVC_RATE",
    flag: "rate",
    value: "rate",
    fallback: "",
    doc: "how often each key may ask, such as `200/s` or `200/s burst 400`, unless it has a rate of its own",
  },
  {
    variable: "SVC_CONNECTIONS",
    flag: "connections",
    value: "number",
    fallback: "4096",
    doc: "most connections at once; if there are more, those that have not shown a good key are closed",
  },
  {
    variable: "SVC_REFUSED_INPUT_MAX",
    flag: "refused-input-max",
    value: "size",
    fallback: "16 KiB",
    doc: "size up to which the input of a call that is refused before any rule is evaluated is kept whole",
  },
  {
    variable: "SVC_REFUSED_INPUT_PER_DAY",
    flag: "refused-input-per-day",
    value: "size",
    fallback: "64 MiB",
    doc: "total size of such inputs that is kept whole for each key in 24 hours",
  },
  {
    variable: "SVC_RELOAD_TESTS",
    flag: "reload-tests",
    value: "path",
    fallback: "",
    doc: "test files that must pass before a reload takes effect",
  },
  {
    variable: "SVC_DATABASE_URL",
    flag: "database-url",
    value: "url",
    fallback: "",
    doc: "a PostgreSQL for the ledgers, in place of the data folder: gates may share it",
  },
  {
    variable: "SVC_DATABASE_POOL",
    flag: "database-pool",
    value: "number",
    fallback: "10",
    doc: "connections to the database at most",
  },
  { variable: "SVC_DATA_DIR", flag: "data-dir", value: "folder", fallback: "./data", doc: "the ledger" },
  {
    variable: "SVC_LEDGER_NAME",
    flag: "ledger-name",
    value: "name",
    fallback: "",
    doc: "the name of a new ledger; a random one by default",
  },
  {
    variable: "SVC_PIN",
    flag: "pin",
    value: "file",
    fallback: "",
    doc: "the head pin, best on another volume; in the data folder by default",
  },
  {
    variable: "SVC_SIGNING_KEY",
    flag: "signing-key",
    value: "file",
    fallback: "",
    doc: "the private key that signs the ledger's heads (Ed25519, PEM), or its text; by default signing.key in the data folder, made there",
  },
  {
    variable: "SVC_WITNESS_POLICY",
    flag: "witness-policy",
    value: "file",
    fallback: "",
    doc: "witnesses that cosign heads, and how many are enough: a policy of C2SP tlog-policy",
  },
  {
    variable: "SVC_SINKS",
    flag: "sinks",
    value: "list",
    fallback: "",
    doc: "files that are given heads to keep, with commas between, such as `file:/path`",
  },
  {
    variable: "SVC_SEEN",
    flag: "seen",
    value: "file",
    fallback: "",
    doc: "signed checkpoints that somebody outside has collected: the start is refused if the ledger lacks one",
  },
  {
    variable: "SVC_ANCHOR_EVERY",
    flag: "anchor-every",
    value: "number",
    fallback: "100",
    doc: "witnesses and sinks are told after so many heads, at most once a second and at the latest after ten",
  },
  {
    variable: "SVC_RETENTION_DAYS",
    flag: "retention-days",
    value: "number",
    fallback: "",
    doc: "evidence of checks that are older is erased, and the receipts stay; by default it is kept",
  },
  {
    variable: "SVC_OPS_PORT",
    flag: "ops-port",
    value: "number",
    fallback: "",
    doc: "a second listener: /metrics, /ready and /health without a key",
  },
  { variable: "SVC_OPS_HOST", flag: "ops-host", value: "address", fallback: "127.0.0.1", doc: "where it listens" },
  { variable: "SVC_LOG", flag: "log", value: "level", fallback: "info", doc: logLevels.join(", ") },
  {
    variable: "SVC_ACCEPT",
    flag: "accept",
    value: "what",
    fallback: "",
    doc: `take responsibility at this start for: ${acceptable.join(", ")}`,
  },
];

export interface Configured {
  readonly config: Config;
  /** Sentences about what is set and looks wrong, but can be served. */
  readonly warnings: readonly string[];
}

/**
 * Reads the settings: a flag before its variable before the default.
 *
 * @param flags by name, without dashes
 * @returns every problem at once, a sentence each
 */
export function readConfig(
  environment: Readonly<Record<string, string | undefined>>,
  flags: Readonly<Record<string, string | undefined>>,
): Result<Configured, readonly string[]> {
  const problems: string[] = [];
  const given = (variable: string): string | undefined => {
    const flag = settings.find((setting) => setting.variable === variable)?.flag ?? "";
    return flags[flag] ?? environment[variable];
  };
  const text = (variable: string): string => {
    const value = given(variable);
    return value === undefined || value === ""
      ? (settings.find((setting) => setting.variable === variable)?.fallback ?? "")
      : value;
  };
  const optional = (variable: string): string | undefined => text(variable) || undefined;
  const config: Config = {
    mode: readMode(given("SVC_MODE"), problems),
    modeSetting: flags["mode"] === undefined ? "SVC_MODE" : "--mode",
    apiKey: given("SVC_API_KEY"),
    host: text("SVC_HOST"),
    port: readPort("SVC_PORT", text("SVC_PORT"), problems),
    basePath: readBasePath(text("SVC_BASE_PATH"), problems),
    tlsCert: optional("SVC_TLS_CERT"),
    tlsKey: optional("SVC_TLS_KEY"),
    mandate: given("SVC_MANDATE") === undefined ? undefined : text("SVC_MANDATE"),
    tenants: optional("SVC_TENANTS"),
    tenantsOpen: given("SVC_TENANTS_OPEN")
      ? readCount("SVC_TENANTS_OPEN", text("SVC_TENANTS_OPEN"), problems)
      : undefined,
    rate: text("SVC_RATE") === "" ? undefined : readRate("SVC_RATE", text("SVC_RATE"), problems),
    connections: readCount("SVC_CONNECTIONS", text("SVC_CONNECTIONS"), problems),
    refusedInputMax: readBytes("SVC_REFUSED_INPUT_MAX", text("SVC_REFUSED_INPUT_MAX"), problems),
    refusedInputPerDay: readBytes("SVC_REFUSED_INPUT_PER_DAY", text("SVC_REFUSED_INPUT_PER_DAY"), problems),
    reloadTests: optional("SVC_RELOAD_TESTS"),
    databaseUrl: optional("SVC_DATABASE_URL"),
    databasePool: readCount("SVC_DATABASE_POOL", text("SVC_DATABASE_POOL"), problems, 2),
    dataDir: text("SVC_DATA_DIR"),
    ledgerName: optional("SVC_LEDGER_NAME"),
    pin: optional("SVC_PIN"),
    signingKey: optional("SVC_SIGNING_KEY"),
    witnessPolicy: optional("SVC_WITNESS_POLICY"),
    sinks: optional("SVC_SINKS"),
    seen: optional("SVC_SEEN"),
    anchorEvery: readCount("SVC_ANCHOR_EVERY", text("SVC_ANCHOR_EVERY"), problems),
    retentionDays: given("SVC_RETENTION_DAYS")
      ? readCount("SVC_RETENTION_DAYS", text("SVC_RETENTION_DAYS"), problems)
      : undefined,
    opsHost: text("SVC_OPS_HOST"),
    opsPort: text("SVC_OPS_PORT") === "" ? undefined : readPort("SVC_OPS_PORT", text("SVC_OPS_PORT"), problems),
    log: readOne("SVC_LOG", text("SVC_LOG"), logLevels, problems),
    accept: text("SVC_ACCEPT")
      .split(",")
      .filter(Boolean)
      .map((what) => readOne("SVC_ACCEPT", what.trim(), acceptable, problems)),
  };
  if (flags["signing-key"]?.includes("\n") === true)
    problems.push(
      "SVC_SIGNING_KEY holds the key itself: among arguments every process sees it; set the variable, or name a file",
    );
  problems.push(...problemsOf(config));
  return problems.length > 0
    ? bad(problems)
    : good({ config, warnings: [...unknownVariables(environment), ...risks(config)] });
}

/** What is wrong with settings that can be read, each as a sentence. */
function problemsOf(config: Config): readonly string[] {
  const problems: string[] = [];
  if (config.apiKey === "") problems.push("SVC_API_KEY is empty: set a key, or remove the variable and one is made");
  if (config.apiKey !== undefined && /[^\x21-\x7e]/.test(config.apiKey))
    problems.push("SVC_API_KEY has a space or a character that a header cannot carry");
  const sinks = parseSinks(config.sinks ?? "");
  if (!sinks.ok) problems.push(`SVC_SINKS: ${sinks.problem}`);
  if ((config.tlsCert === undefined) !== (config.tlsKey === undefined))
    problems.push("SVC_TLS_CERT and SVC_TLS_KEY go together: set both or neither");
  return problems;
}

function readMode(value: string | undefined, problems: string[]): Mode | undefined {
  if (value === undefined || isMode(value)) return value;
  // An empty one too: where a mode was meant to be set and was not, observing in silence would enforce nothing.
  problems.push(`SVC_MODE is "${value}"; it must be ${modes.join(", ")}${meant(value, modes)}`);
  return undefined;
}

function readOne<Name extends string>(
  variable: string,
  value: string,
  names: readonly Name[],
  problems: string[],
): Name {
  const found = names.find((name) => name === value);
  if (found === undefined)
    problems.push(`${variable} is "${value}"; it must be one of ${names.join(", ")}${meant(value, names)}`);
  return found ?? (names[0] as Name);
}

function meant(value: string, names: readonly string[]): string {
  const near = nearest(value, names);
  return near === undefined ? "" : ` (did you mean ${near}?)`;
}

function readPort(variable: string, value: string, problems: string[]): number {
  const port = /^[0-9]{1,5}$/.test(value) ? Number(value) : 65_536;
  if (port > 65_535) problems.push(`${variable} is "${value}"; it must be a number from 0 to 65535`);
  return port;
}

function readCount(variable: string, value: string, problems: string[], min = 1): number {
  if (/^[1-9][0-9]{0,3}$/.test(value) && Number(value) >= min) return Number(value);
  problems.push(`${variable} is "${value}"; it must be a number from ${min} to 9999`);
  return min;
}

function readRate(variable: string, value: string, problems: string[]): Rate | undefined {
  const rate = parseRate(value);
  if (rate.ok) return rate.value;
  problems.push(`${variable}: ${rate.problem}`);
  return undefined;
}

function readBytes(variable: string, value: string, problems: string[]): number {
  const bytes = parseBytes(value);
  if (bytes.ok) return bytes.value;
  problems.push(`${variable}: ${bytes.problem}`);
  return 0;
}

function readBasePath(value: string, problems: string[]): string {
  const path = value.replace(/\/+$/, "");
  if (path !== "" && !/^(?:\/[A-Za-z0-9._~-]+)+$/.test(path))
    problems.push(`SVC_BASE_PATH is "${value}"; it must be a path such as /t/acme`);
  return path;
}

function unknownVariables(environment: Readonly<Record<string, string | undefined>>): readonly string[] {
  const known = settings.map(({ variable }) => variable);
  return Object.keys(environment)
    .filter((name) => name.startsWith("SVC_") && !known.includes(name))
    .map((name) => `${name} is set, and no setting is called so${meant(name, known)}`);
}

function risks({ apiKey, host, tlsCert }: Config): readonly string[] {
  const found: string[] = [];
  if (apiKey !== undefined && apiKey.length < 16) found.push("SVC_API_KEY is under 16 characters: it can be guessed");
  if (!isLoopback(host) && tlsCert === undefined)
    found.push(
      `listening on ${host} without TLS: keys can be read on the way; set SVC_TLS_CERT and SVC_TLS_KEY, or end TLS before the gate`,
    );
  return found;
}
