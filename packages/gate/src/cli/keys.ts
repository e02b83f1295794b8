import { createFault, filesReadableHere, type ChangedKey, type KeyRequest } from "../server/mod.ts";
import { visible, type KeyJson } from "../../../core/src/wire/mod.ts";
import { io } from "./io.ts";
import { adminPath, askGate, type OperatorOptions } from "./operator.ts";
import { BadInput, type Outcome } from "./outcome.ts";

export interface KeysOptions extends OperatorOptions {
  /** Prints only the key. */
  readonly quiet?: boolean;
}

export interface CreateOptions extends KeysOptions {
  readonly owner?: string;
  readonly scopes?: string;
  readonly kind?: string;
  readonly expires?: string;
  readonly tools?: string;
  readonly rate?: string;
  readonly person?: string;
  readonly groups?: string;
}

export interface UpdateOptions extends KeysOptions {
  readonly person?: string;
  readonly groups?: string;
}

export interface RotateOptions extends KeysOptions {
  readonly overlap?: string;
  readonly expires?: string;
}

/** `svc-gate keys create`: omitted options get the gate's defaults. */
export async function createCommand(name: string, options: CreateOptions): Promise<Outcome> {
  const { owner, scopes, kind, expires, tools, rate, person, groups } = options;
  const body = {
    name,
    owner,
    scopes: scopes === undefined ? undefined : splitAtCommas(scopes),
    kind,
    expires,
    tools: tools === undefined ? undefined : splitAtCommas(tools),
    rate: rate === undefined ? undefined : readRate(rate),
    person,
    groups: groups === undefined ? undefined : splitAtCommas(groups),
  };
  const made = await change(options, { act: "create", body });
  const sentence = `created the key ${idOf(made)}, for ${purposeOf(made)}${limitsOf(made)}`;
  return toOutcome(made, options, sentence, made.kind === null ? voteNote(made) : selfApprovalNote(options));
}

/** A key of an administrator may make keys that decide, and decides nothing itself. */
function voteNote({ scopes }: KeyJson): readonly string[] {
  if (!scopes.includes("admin") || !scopes.includes("approve")) return [];
  return ["  it makes keys that decide calls, and decides none itself, because it has the scope admin"];
}

/** A key of a host protects nothing from an agent that can read the files with which this command works. */
function selfApprovalNote({ dataDir, url }: KeysOptions): readonly string[] {
  if (url !== undefined) return [];
  const [first, ...others] = filesReadableHere({ dataDir, signingKey: io().env["SVC_SIGNING_KEY"] || undefined });
  if (first === undefined) return [];
  const files = [first, ...others].map(visible).join(", ");
  return [
    `  an agent that runs as this user can approve itself here: it can read ${files}`,
    "  run the agent as another user",
  ];
}

function purposeOf({ kind, scopes }: KeyJson): string {
  return kind === null ? scopes.join(", ") : `the ${kind} of an agent`;
}

/** `svc-gate keys rotate` */
export async function rotateCommand(name: string, options: RotateOptions): Promise<Outcome> {
  const { overlap, expires } = options;
  const made = await change(options, { act: "rotate", name, body: { overlap, expires } });
  const before = made.previous_until === null ? "is refused from now on" : `is valid until ${made.previous_until}`;
  return toOutcome(made, options, `rotated the key ${idOf(made)}; the previous one ${before}`);
}

/** `svc-gate keys update` */
export async function updateCommand(name: string, options: UpdateOptions): Promise<Outcome> {
  const { person, groups } = options;
  const body = { person, groups: groups === undefined ? undefined : splitAtCommas(groups) };
  const made = await change(options, { act: "update", name, body });
  const of = made.groups.length === 0 ? "" : `, of ${made.groups.join(", ")}`;
  return toOutcome(made, options, `${made.person ?? "nobody"}${of}, uses the key ${idOf(made)} from now on`);
}

/** `svc-gate persons add` */
export async function addPersonCommand(name: string, options: KeysOptions): Promise<Outcome> {
  await askGate({ ...options, tenant: undefined, mayCreate: true }, "POST", adminPath(undefined, "persons"), { name });
  const command = `svc-gate keys create NAME --scopes approve,receipts --person ${visible(name)}`;
  const sentence = `${visible(name)} is a person who may decide calls: make a key with \`${command}\``;
  return { exitCode: 0, text: options.json ? JSON.stringify({ name }) : sentence };
}

/** `svc-gate persons list` */
export async function listPeopleCommand(options: KeysOptions): Promise<Outcome> {
  const answer = await askGate({ ...options, tenant: undefined }, "GET", adminPath(undefined, "persons"));
  const people = answer["persons"] as readonly string[];
  if (options.json) return { exitCode: 0, text: JSON.stringify({ persons: people }) };
  if (people.length === 0) return { exitCode: 0, text: "no person may decide calls yet" };
  const keys = (await list({ ...options, tenant: undefined })).filter(
    ({ state }) => state !== "revoked" && state !== "expired",
  );
  const rows = people.map((person) => {
    const own = keys.filter((key) => key.person === person);
    const groups = new Set(own.flatMap((key) => key.groups));
    return [person, own.map(idOf).join(",") || "-", [...groups].join(",") || "-"];
  });
  return { exitCode: 0, text: tableText([["person", "keys", "groups"], ...rows]) };
}

/** `svc-gate keys revoke` */
export async function revokeCommand(name: string, options: KeysOptions): Promise<Outcome> {
  const revoked = await change(options, { act: "revoke", name, body: {} });
  return toOutcome(revoked, options, `revoked the key ${idOf(revoked)}: the gate refuses it from now on`);
}

/** `svc-gate keys list` */
export async function listCommand(options: KeysOptions): Promise<Outcome> {
  const keys = await list(options);
  return { exitCode: 0, text: options.json ? JSON.stringify({ keys }) : tableOf(keys) };
}

function toOutcome(
  { key, ...rest }: ChangedKey,
  { json, quiet }: KeysOptions,
  sentence: string,
  notes: readonly string[] = [],
): Outcome {
  if (json) return { exitCode: 0, text: JSON.stringify(key === undefined ? rest : { key, ...rest }) };
  if (quiet === true && key !== undefined) return { exitCode: 0, text: key };
  const row = `row ${rest.receipt.seq} of the ledger records it`;
  const lines = key === undefined ? [] : [`  key  ${key}`, "  it is shown only once: the gate only stores its digest"];
  return { exitCode: 0, text: [`${sentence} (${row})`, ...lines, ...notes].join("\n") };
}

function limitsOf({ expires, tools, rate }: KeyJson): string {
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
function rateText({ per_second: perSecond, burst }: NonNullable<KeyJson["rate"]>): string {
  return `${perSecond}/s${burst === perSecond ? "" : `:${burst}`}`;
}

function idOf({ name, tenant }: KeyJson): string {
  return tenant === null ? name : `${tenant}/${name}`;
}

const keyColumns: Readonly<Record<string, (key: KeyJson) => string>> = {
  key: idOf,
  state: ({ previous_until: until, state }) => (until === null ? state : `${state} until ${until}`),
  scopes: ({ scopes }) => scopes.join(","),
  kind: ({ kind }) => kind ?? "-",
  person: ({ person }) => person ?? "-",
  groups: ({ groups }) => groups.join(",") || "-",
  tools: ({ tools }) => tools?.join(",") ?? "all tools",
  rate: ({ rate }) => (rate === null ? "-" : rateText(rate)),
  expires: ({ expires }) => expires ?? "never",
  "last used": (key) => key.last_used ?? "-",
  owner: ({ owner }) => owner ?? "-",
};

function tableOf(keys: readonly KeyJson[]): string {
  const rows = keys.map((key) => Object.values(keyColumns).map((cellOf) => cellOf(key)));
  return tableText([Object.keys(keyColumns), ...rows]);
}

function tableText(table: readonly (readonly string[])[]): string {
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

function splitAtCommas(text: string): readonly string[] {
  return text.split(",").map((piece) => piece.trim());
}

/** `50/s`, or with a burst `50/s:200`; or as in SVC_RATE, `50/s burst 200`. */
function readRate(text: string): { readonly per_second: number; readonly burst?: number } {
  const [, perSecond, burst] = /^(\d{1,9})\/s(?:(?::| +burst +)(\d{1,9}))?$/.exec(text) ?? [];
  if (perSecond === undefined)
    throw new BadInput(`${visible(text)} is not a rate: write 50/s, or 50/s:200 if 200 may come at once`);
  return { per_second: Number(perSecond), ...(burst === undefined ? {} : { burst: Number(burst) }) };
}

async function change(options: KeysOptions, request: KeyRequest<object>): Promise<ChangedKey> {
  const mayCreate = request.act === "create";
  // Checked before a ledger is created: otherwise a refused key would leave a ledger with an unused signing key.
  const fault = mayCreate ? createFault(Buffer.from(JSON.stringify(request.body))) : undefined;
  if (fault !== undefined) throw new BadInput(fault.detail);
  const route = request.act === "create" ? "keys" : `keys/${encodeURIComponent(request.name)}/${request.act}`;
  const path = adminPath(options.tenant, route);
  return (await askGate({ ...options, mayCreate }, "POST", path, request.body)) as unknown as ChangedKey;
}

async function list(options: KeysOptions): Promise<readonly KeyJson[]> {
  return (await askGate(options, "GET", adminPath(options.tenant, "keys")))["keys"] as readonly KeyJson[];
}
