import {
  bad,
  good,
  isLoopback,
  isMode,
  modes,
  nearest,
  type Mode,
  type Result,
} from "../../../../core/src/wire/mod.ts";
import { parseSinks } from "../anchoring/sinks.ts";
import { parseRate, type Rate } from "../settings/rate.ts";
import { parseBytes } from "../core/refused-inputs.ts";
import { consoleProblem, noConsole } from "./console-settings.ts";

/** Risks that an operator may accept, for one start. */
export const acceptable = ["missing-pin", "signing-key", "anchors", "clock", "change", "weaker-mode"] as const;
export type Acceptable = (typeof acceptable)[number];

export const logLevels = ["fatal", "error", "warn", "info", "debug", "trace", "silent"] as const;

/** A setting from the environment or a flag. */
interface GivenSetting {
  readonly variable: string;
  /** The value as it was set; undefined if it was not set. */
  readonly value: string | undefined;
  /** The default if the setting is unset or empty. */
  readonly text: string;
  readonly isFlag: boolean;
}

interface SettingEntry<Value> {
  /** The kind of value, for help texts. */
  readonly kind: string;
  readonly doc: string;
  /** Absent if the setting has none. */
  readonly fallback?: string;
  readonly read: SettingReader<Value>;
}

/** @returns the value, or a sentence that names the mistake */
type SettingReader<Value> = (given: GivenSetting) => Result<Value, string>;

interface SettingValues
  extends
    Readonly<Record<"basePath" | "dataDir" | "host" | "log" | "opsHost", string>>,
    Readonly<Record<"anchorEvery" | "connections" | "databasePool" | "port" | "queueMs", number>>,
    Readonly<Record<"refusedInputMax" | "refusedInputPerDay", number>>,
    Readonly<Record<"opsPort" | "retentionDays" | "tenantsOpen", number | undefined>>,
    Readonly<Record<OptionalText, string | undefined>> {
  readonly mode: Mode | undefined;
  readonly rate: Rate | undefined;
  readonly console: "on" | "off" | undefined;
  readonly accept: readonly Acceptable[];
}

type OptionalText =
  | "apiKey"
  | "consoleSecret"
  | "databaseUrl"
  | "ledgerName"
  | "mandate"
  | "notify"
  | "oidc"
  | "pin"
  | "publicUrl"
  | "reloadTests"
  | "seen"
  | "signingKey"
  | "sinks"
  | "tenants"
  | "tlsCert"
  | "tlsKey"
  | "witnessPolicy";

export interface Config extends SettingValues {
  /** The variable or the flag that sets the mode. */
  readonly modeSetting: string;
}

/**
 * Every setting, once: the flags of `svc-gate serve` are derived from it. The variable of `queueMs` is
 * SVC_QUEUE_MS, and its flag is --queue-ms.
 */
const entries: { readonly [Name in keyof SettingValues]: SettingEntry<SettingValues[Name]> } = {
  mode: {
    kind: "mode",
    read: readMode,
    doc: "observe, assist or enforce; by default the ledger's last mode, and observe for a new ledger",
  },
  apiKey: { kind: "key", read: readApiKey, doc: "the first key; by default the first start creates one" },
  host: { kind: "address", fallback: "127.0.0.1", read: plain, doc: "the address to listen on" },
  port: { kind: "number", fallback: "8787", read: readPort, doc: "the port to listen on; 0 takes any free port" },
  basePath: { kind: "path", read: readBasePath, doc: "a prefix of every route, such as /t/acme" },
  tlsCert: { kind: "file", read: optional, doc: "the certificate for TLS, in PEM" },
  tlsKey: { kind: "file", read: optional, doc: "the private key of the certificate, in PEM" },
  mandate: {
    kind: "file",
    fallback: "mandate.yaml",
    read: ({ value, text }) => good(value === undefined ? undefined : text),
    doc: "the mandate, which names the contracts",
  },
  tenants: {
    kind: "file",
    read: optional,
    doc: "the file that names tenants and their mandates; the gate serves them under /t/{tenant}",
  },
  tenantsOpen: {
    kind: "number",
    read: ifGiven(countFrom(1)),
    doc: "the most tenants open at once; by default 64, or 1000 with a database",
  },
  rate: {
    kind: "rate",
    read: ifGiven(readRate),
    doc: "the rate limit of each key that does not have its own, such as `200/s` or `200/s burst 400`",
  },
  connections: {
    kind: "number",
    fallback: "5000",
    read: countFrom(1),
    doc: "the most connections at once; beyond it, the gate closes those without a valid key, or of a key with more than its share",
  },
  queueMs: {
    kind: "number",
    fallback: "1000",
    read: countFrom(1),
    doc: "a check is refused only if it would wait longer than this, in milliseconds, or if the memory for waiting calls is full",
  },
  refusedInputMax: {
    kind: "size",
    fallback: "16 KiB",
    read: readBytes,
    doc: "the largest input that is stored whole if the call is refused before any rule is evaluated",
  },
  refusedInputPerDay: {
    kind: "size",
    fallback: "64 MiB",
    read: readBytes,
    doc: "the total size of such inputs that is stored whole for each key in 24 hours",
  },
  reloadTests: { kind: "path", read: optional, doc: "test files that must pass before a reload takes effect" },
  databaseUrl: {
    kind: "url",
    read: optional,
    doc: "a PostgreSQL for the ledgers instead of the data folder; several gates may share it",
  },
  databasePool: { kind: "number", fallback: "10", read: countFrom(2), doc: "the most connections to the database" },
  dataDir: { kind: "folder", fallback: "./data", read: plain, doc: "the folder of the ledger" },
  ledgerName: { kind: "name", read: optional, doc: "the name of a new ledger; by default a random one" },
  pin: {
    kind: "file",
    read: optional,
    doc: "the file of the head pin, best on another volume; by default in the data folder",
  },
  signingKey: {
    kind: "file",
    read: readSigningKey,
    doc: "the private key (Ed25519, PEM) that signs heads: a file, or its text; by default signing.key in the data folder",
  },
  witnessPolicy: {
    kind: "file",
    read: optional,
    doc: "a C2SP tlog-policy file: the witnesses that cosign heads, and how many must",
  },
  sinks: {
    kind: "list",
    read: readSinks,
    doc: "files that receive signed heads, separated by commas, such as `file:/path`",
  },
  seen: {
    kind: "file",
    read: optional,
    doc: "signed checkpoints that somebody outside has collected; the gate refuses to start if its ledger lacks one of them",
  },
  anchorEvery: {
    kind: "number",
    fallback: "100",
    read: countFrom(1),
    doc: "how many heads pass before witnesses and sinks receive one; at most one per second, at least one in ten",
  },
  console: {
    kind: "switch",
    read: ifGiven(oneOf(["on", "off"])),
    doc: "on or off: the console, a page for people who decide; by default on if the gate listens on a loopback address",
  },
  consoleSecret: {
    kind: "secret",
    read: readConsoleSecret,
    doc: "a random text that seals the console's sessions, the same on all replicas; by default a file in the data folder",
  },
  oidc: {
    kind: "file",
    read: optional,
    doc: "the file that names a provider of OpenID Connect for sign-ins to the console; only its owner may read it",
  },
  notify: {
    kind: "file",
    read: optional,
    doc: "the file that names the endpoints of webhooks and their secrets; only its owner may read it",
  },
  publicUrl: {
    kind: "url",
    read: ifGiven(readPublicUrl),
    doc: "the address under which others reach this gate, for links in messages and for AuthZEN; by default messages have no link",
  },
  retentionDays: {
    kind: "number",
    read: ifGiven(countFrom(1)),
    doc: "the age at which the evidence of a check is erased, its receipt stays; by default evidence is kept",
  },
  opsPort: {
    kind: "number",
    read: ifGiven(readPort),
    doc: "the port of a second listener, which serves /metrics, /ready and /health without a key",
  },
  opsHost: { kind: "address", fallback: "127.0.0.1", read: plain, doc: "the address of the second listener" },
  log: {
    kind: "level",
    fallback: "info",
    read: oneOf(logLevels),
    doc: `the least severe log level: ${logLevels.join(", ")}`,
  },
  accept: {
    kind: "what",
    read: readAccepted,
    doc: `risks to accept at this start, separated by commas: ${acceptable.join(", ")}`,
  },
};

/** One setting: its variable, its flag on `svc-gate serve`, and its purpose. */
export interface Setting extends Omit<SettingEntry<unknown>, "read"> {
  readonly variable: string;
  readonly fallback: string;
  readonly flag: string;
}

export const settings: readonly Setting[] = Object.entries<SettingEntry<unknown>>(entries).map(([name, entry]) => ({
  fallback: "",
  ...entry,
  variable: variableOf(name),
  flag: flagOf(name),
}));

function variableOf(name: string): string {
  return `SVC_${flagOf(name).toUpperCase().replaceAll("-", "_")}`;
}

function flagOf(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

export interface ConfigWithWarnings {
  readonly config: Config;
  /** Sentences about settings that look wrong but are allowed. */
  readonly warnings: readonly string[];
}

type Texts = Readonly<Record<string, string | undefined>>;

/**
 * Reads the settings. A flag wins over its variable, and both win over the default.
 *
 * @param flags by name, without dashes
 * @returns the settings, or every problem at once, a sentence each
 */
export function readConfig(environment: Texts, flags: Texts): Result<ConfigWithWarnings, readonly string[]> {
  const problems: string[] = [];
  const readEntry = (name: string, entry: SettingEntry<unknown>): unknown => {
    const variable = variableOf(name);
    const flag = flags[flagOf(name)];
    const value = flag ?? environment[variable];
    const result = entry.read({ variable, value, text: value || (entry.fallback ?? ""), isFlag: flag !== undefined });
    if (result.ok) return result.value;
    problems.push(result.problem);
    return undefined;
  };
  const values = Object.fromEntries(
    Object.entries<SettingEntry<unknown>>(entries).map(([name, entry]) => [name, readEntry(name, entry)]),
  );
  const modeSetting = flags["mode"] === undefined ? "SVC_MODE" : "--mode";
  const config = { ...values, modeSetting } as Config;
  if ((config.tlsCert === undefined) !== (config.tlsKey === undefined))
    problems.push("only one of SVC_TLS_CERT and SVC_TLS_KEY is set: set both or neither");
  const wrongConsole = consoleProblem(config);
  if (problems.length === 0 && wrongConsole !== undefined) problems.push(wrongConsole);
  if (problems.length === 0 && config.oidc !== undefined && noConsole(config) !== undefined)
    problems.push("SVC_OIDC is set, but the gate does not serve the console: set SVC_CONSOLE to on");
  if (problems.length > 0) return bad(problems);
  return good({ config, warnings: [...unknownVariables(environment), ...risks(config)] });
}

function plain({ text }: GivenSetting): Result<string, string> {
  return good(text);
}

function optional({ text }: GivenSetting): Result<string | undefined, string> {
  return good(text || undefined);
}

/** Undefined if the setting is unset or empty. */
function ifGiven<Value>(read: SettingReader<Value>): SettingReader<Value | undefined> {
  return (given) => (given.text === "" ? good(undefined) : read(given));
}

/** Reads the mode. An empty mode is an error: somebody wanted to set it, and the gate must not silently observe. */
function readMode({ variable, value }: GivenSetting): Result<Mode | undefined, string> {
  if (value === undefined || isMode(value)) return good(value);
  return bad(`${variable} is "${value}"; it must be ${modes.join(", ")}${suggestName(value, modes)}`);
}

function readApiKey({ variable, value }: GivenSetting): Result<string | undefined, string> {
  if (value === "") return bad(`${variable} is empty: set a key, or remove the variable so that the gate makes a key`);
  if (value !== undefined && /[^\x21-\x7e]/.test(value))
    return bad(`${variable} has a space or a character that is not allowed in a header: use visible ASCII characters`);
  return good(value);
}

function readSigningKey({ variable, text, isFlag }: GivenSetting): Result<string | undefined, string> {
  if (isFlag && text.includes("\n"))
    return bad(
      `${variable} has the key itself as an argument, which every process can see: set the variable, or name a file`,
    );
  return good(text || undefined);
}

function readConsoleSecret({ variable, text, isFlag }: GivenSetting): Result<string | undefined, string> {
  if (isFlag) return bad(`${variable} is an argument, which every process can see: set the variable`);
  if (text === "" || text.length >= 32) return good(text || undefined);
  return bad(
    `${variable} has fewer than 32 characters, so it can be guessed: set it to random text, such as 64 hex digits`,
  );
}

function readSinks({ variable, text }: GivenSetting): Result<string | undefined, string> {
  const sinks = parseSinks(text);
  return sinks.ok ? good(text || undefined) : bad(`${variable}: ${sinks.problem}`);
}

function readAccepted({ variable, text }: GivenSetting): Result<readonly Acceptable[], string> {
  const names = text.split(",").filter(Boolean);
  const accepted: Acceptable[] = [];
  for (const name of names) {
    const found = findOne(variable, name.trim(), acceptable);
    if (!found.ok) return found;
    accepted.push(found.value);
  }
  return good(accepted);
}

function oneOf<Name extends string>(names: readonly Name[]): SettingReader<Name> {
  return ({ variable, text }) => findOne(variable, text, names);
}

function findOne<Name extends string>(variable: string, value: string, names: readonly Name[]): Result<Name, string> {
  const found = names.find((name) => name === value);
  if (found !== undefined) return good(found);
  return bad(`${variable} is "${value}"; it must be one of ${names.join(", ")}${suggestName(value, names)}`);
}

function suggestName(value: string, names: readonly string[]): string {
  const near = nearest(value, names);
  return near === undefined ? "" : ` (did you mean ${near}?)`;
}

function readPort({ variable, text }: GivenSetting): Result<number, string> {
  const port = /^[0-9]{1,5}$/.test(text) ? Number(text) : 65_536;
  if (port <= 65_535) return good(port);
  return bad(`${variable} is "${text}"; it must be a number from 0 to 65535`);
}

function countFrom(min: number): SettingReader<number> {
  return ({ variable, text }) => {
    if (/^[1-9][0-9]{0,3}$/.test(text) && Number(text) >= min) return good(Number(text));
    return bad(`${variable} is "${text}"; it must be a number from ${min} to 9999`);
  };
}

function readRate({ variable, text }: GivenSetting): Result<Rate, string> {
  const rate = parseRate(text);
  return rate.ok ? rate : bad(`${variable}: ${rate.problem}`);
}

function readBytes({ variable, text }: GivenSetting): Result<number, string> {
  const bytes = parseBytes(text);
  return bytes.ok ? bytes : bad(`${variable}: ${bytes.problem}`);
}

/** Returns the address without a slash at its end. */
function readPublicUrl({ variable, text }: GivenSetting): Result<string, string> {
  const url = URL.parse(text);
  const isPlain = url !== null && url.username + url.password + url.search + url.hash === "";
  if (isPlain && (url.protocol === "https:" || url.protocol === "http:")) return good(url.href.replace(/\/+$/, ""));
  return bad(`${variable} is "${text}"; it must be an address such as https://gate.example`);
}

function readBasePath({ variable, text }: GivenSetting): Result<string, string> {
  const path = text.replace(/\/+$/, "");
  if (path === "" || /^(?:\/[A-Za-z0-9._~-]+)+$/.test(path)) return good(path);
  return bad(`${variable} is "${text}"; it must be a path such as /t/acme`);
}

function unknownVariables(environment: Texts): readonly string[] {
  const known = settings.map(({ variable }) => variable);
  return Object.keys(environment)
    .filter((name) => name.startsWith("SVC_") && !known.includes(name))
    .map((name) => `${name} is set, but there is no such setting${suggestName(name, known)}`);
}

function risks({ apiKey, host, tlsCert }: Config): readonly string[] {
  const found: string[] = [];
  if (apiKey !== undefined && apiKey.length < 16)
    found.push("SVC_API_KEY has fewer than 16 characters, so it can be guessed: set a longer key");
  if (!isLoopback(host) && tlsCert === undefined)
    found.push(
      `the gate listens on ${host} without TLS, so others on the network can read keys: ` +
        "set SVC_TLS_CERT and SVC_TLS_KEY, or use a TLS proxy",
    );
  return found;
}
