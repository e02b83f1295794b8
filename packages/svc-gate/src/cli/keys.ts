import {
  createFault,
  createKey,
  listKeys,
  openIdleKeys,
  revokeKey,
  rotateKey,
  type ActedKey,
  type IdleKeys,
  type IdlePlace,
  type ShownKey,
} from "../gate/mod.ts";
import { visible, type Refusal, type Result } from "../wire/mod.ts";
import { findGate, refusalOf, type GateAnswer, type GateDoor, type GatePlace } from "./operator.ts";
import { BadInput, type Outcome } from "./outcome.ts";

export interface KeysOptions extends GatePlace {
  readonly tenant?: string | undefined;
  readonly json: boolean;
  /** The key alone. */
  readonly quiet?: boolean;
}

export interface CreateOptions extends KeysOptions {
  readonly owner?: string;
  readonly scopes?: string;
  readonly expires?: string;
  readonly tools?: string;
  readonly rate?: string;
}

export interface RotateOptions extends KeysOptions {
  readonly overlap?: string;
  readonly expires?: string;
}

/** `svc-gate keys create`: what is left out is what the gate takes by default. */
export async function createCommand(name: string, options: CreateOptions): Promise<Outcome> {
  const { owner, scopes, expires, tools, rate } = options;
  const body = {
    name,
    owner,
    scopes: scopes === undefined ? undefined : listOf(scopes),
    expires,
    tools: tools === undefined ? undefined : listOf(tools),
    rate: rate === undefined ? undefined : readRate(rate),
  };
  const made = await atDesk({ ...options, begins: body }, (desk) => desk.create(body));
  return shown(made, options, `made the key ${idOf(made)}, for ${made.scopes.join(", ")}${limitsOf(made)}`);
}

/** `svc-gate keys rotate` */
export async function rotateCommand(name: string, options: RotateOptions): Promise<Outcome> {
  const { overlap, expires } = options;
  const made = await atDesk(options, (desk) => desk.act("rotate", name, { overlap, expires }));
  const before = made.previous_until === null ? "is refused from now on" : `is good until ${made.previous_until}`;
  return shown(made, options, `rotated the key ${idOf(made)}; the one before ${before}`);
}

/** `svc-gate keys revoke` */
export async function revokeCommand(name: string, options: KeysOptions): Promise<Outcome> {
  const revoked = await atDesk(options, (desk) => desk.act("revoke", name, {}));
  return shown(revoked, options, `revoked the key ${idOf(revoked)}: the gate refuses it from now on`);
}

/** `svc-gate keys list` */
export async function listCommand(options: KeysOptions): Promise<Outcome> {
  const keys = await atDesk(options, (desk) => desk.list());
  return { exitCode: 0, text: options.json ? JSON.stringify({ keys }) : tableOf(keys) };
}

function shown({ key, ...rest }: ActedKey, { json, quiet }: KeysOptions, sentence: string): Outcome {
  if (json) return { exitCode: 0, text: JSON.stringify(key === undefined ? rest : { key, ...rest }) };
  if (quiet === true && key !== undefined) return { exitCode: 0, text: key };
  const row = `row ${rest.receipt.seq} of the ledger records it`;
  const lines = key === undefined ? [] : [`  key  ${key}`, "  it is shown this once: the gate keeps its digest alone"];
  return { exitCode: 0, text: [`${sentence} (${row})`, ...lines].join("\n") };
}

function limitsOf({ expires, tools, rate }: ShownKey): string {
  const parts = [
    tools === null ? "" : `on ${tools.join(", ")}`,
    rate === null ? "" : `at most ${rateText(rate)}`,
    expires === null ? "" : `until ${expires}`,
  ];
  return parts
    .filter(Boolean)
    .map(visible)
    .join(", ")
    .replace(/^(?=.)/, ", ");
}

/** As `--rate` takes it. */
function rateText({ per_second: perSecond, burst }: NonNullable<ShownKey["rate"]>): string {
  return `${perSecond}/s${burst === perSecond ? "" : `:${burst}`}`;
}

function idOf({ name, tenant }: ShownKey): string {
  return tenant === null ? name : `${tenant}/${name}`;
}

function tableOf(keys: readonly ShownKey[]): string {
  const rows = keys.map((key) => [
    idOf(key),
    key.previous_until === null ? key.state : `${key.state} until ${key.previous_until}`,
    key.scopes.join(","),
    key.tools?.join(",") ?? "all tools",
    key.rate === null ? "-" : rateText(key.rate),
    key.expires ?? "never",
    key.last_used ?? "-",
    key.owner ?? "-",
  ]);
  const table = [["key", "state", "scopes", "tools", "rate", "expires", "last used", "owner"], ...rows];
  const widths = table[0]?.map((_, column) => Math.max(...table.map((row) => visible(row[column] ?? "").length))) ?? [];
  return table
    .map((row) =>
      row
        .map((cell, column) => visible(cell).padEnd(widths[column] ?? 0))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}

function listOf(text: string): readonly string[] {
  return text.split(",").map((piece) => piece.trim());
}

/** `50/s`, or with a burst `50/s:200`; or as SVC_RATE writes it, `50/s burst 200`. */
function readRate(text: string): { readonly per_second: number; readonly burst?: number } {
  const [, perSecond, burst] = /^(\d{1,9})\/s(?:(?::| +burst +)(\d{1,9}))?$/.exec(text) ?? [];
  if (perSecond === undefined)
    throw new BadInput(`${visible(text)} is no rate: write 50/s, or 50/s:200 where 200 may come at once`);
  return { per_second: Number(perSecond), ...(burst === undefined ? {} : { burst: Number(burst) }) };
}

/** Where keys are looked after: at the gate that serves them, else in the ledger itself. */
interface Desk {
  list(): Promise<readonly ShownKey[]>;
  create(body: object): Promise<ActedKey>;
  act(what: "revoke" | "rotate", name: string, body: object): Promise<ActedKey>;
}

interface DeskOptions extends KeysOptions {
  /** What makes a key: the first one in a database comes before the first gate, so it begins the ledger. */
  readonly begins?: object;
}

async function atDesk<Value>(options: DeskOptions, work: (desk: Desk) => Promise<Value>): Promise<Value> {
  const { begins, dataDir, tenant } = options;
  const gate = await findGate(options);
  if (gate !== undefined) return work(deskOf(gate, tenant));
  const place = idlePlace(dataDir, process.env["SVC_DATABASE_URL"] || undefined);
  // Before a ledger is begun: one whose key is refused would keep a signing key for nothing.
  const fault = begins && createFault(bytesOf(begins));
  if (fault !== undefined) throw new BadInput(fault.detail);
  const idle = await openIdleKeys({ ...place, mayBegin: begins !== undefined });
  try {
    return await work(idleDesk(idle, tenant ?? null));
  } finally {
    await idle.close();
  }
}

/** The ledger that holds the keys, opened as the gate would open it. */
export function idlePlace(dataDir: string, databaseUrl: string | undefined): Omit<IdlePlace, "tenant"> {
  return {
    folder: dataDir,
    name: process.env["SVC_LEDGER_NAME"] || undefined,
    pinFile: process.env["SVC_PIN"] || undefined,
    signingKeyFile: process.env["SVC_SIGNING_KEY"] || undefined,
    databaseUrl,
  };
}

function deskOf(gate: GateDoor, tenant: string | undefined): Desk {
  const path = `${tenant === undefined ? "" : `/t/${encodeURIComponent(tenant)}`}/admin/keys`;
  return {
    list: async () => (answered(await gate.ask("GET", path)) as { keys: readonly ShownKey[] }).keys,
    create: async (body) => answered(await gate.ask("POST", path, body)) as ActedKey,
    act: async (what, name, body) =>
      answered(await gate.ask("POST", `${path}/${encodeURIComponent(name)}/${what}`, body)) as ActedKey,
  };
}

/** What the gate answers is what its own code makes: spec/openapi.json has it. */
function answered(answer: GateAnswer): unknown {
  if (answer.status !== 200 && answer.status !== 201) throw new BadInput(refusalOf(answer));
  return answer.body;
}

function idleDesk({ ring, asking }: IdleKeys, tenant: string | null): Desk {
  const by = asking(tenant);
  return {
    list: () => listKeys(ring, by),
    create: async (body) => done(await createKey(ring, by, bytesOf(body))),
    act: async (what, name, body) =>
      done(await (what === "rotate" ? rotateKey : revokeKey)(ring, by, name, bytesOf(body))),
  };
}

function bytesOf(body: object): Buffer {
  return Buffer.from(JSON.stringify(body));
}

function done(result: Result<ActedKey, Refusal>): ActedKey {
  if (!result.ok) throw new BadInput(result.problem.detail);
  return result.value;
}
