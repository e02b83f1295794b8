import { eraseIdle, type Erased, type Lacking } from "../gate/mod.ts";
import { visible } from "../wire/mod.ts";
import { ledgerPlace } from "./ledger-place.ts";
import { findGate, refusalOf, type GatePlace } from "./operator.ts";
import { BadInput, type Outcome } from "./outcome.ts";

export interface EraseOptions extends GatePlace {
  readonly part: string;
  readonly reason: string;
  readonly session?: string | undefined;
  readonly key?: string | undefined;
  readonly before?: string | undefined;
  readonly tenant?: string | undefined;
  readonly json: boolean;
}

/** `svc-gate erase`: parts of receipts go, their digests stay, and a row says who had it done, and why. */
export async function eraseCommand(receipts: readonly string[], options: EraseOptions): Promise<Outcome> {
  const { session, key, before, part, reason, json } = options;
  if (receipts.length === 0 && session === undefined && before === undefined)
    throw new BadInput("say which receipts: their numbers, such as 7 or 7-9, or --session, or --before");
  const rows = receipts.length === 0 ? undefined : receipts.map(readRange);
  const parts = part.split(",").map((name) => name.trim());
  const body = { rows, session_id: session, key, before, parts, reason };
  const erased = await eraseAll(await eraserFor(options), body);
  // That nothing is so old is no mistake: this runs each night.
  const isNobody = erased.matched === 0 && before === undefined;
  const exitCode = isNobody || erased.lacking.some((lack) => isOfNone(lack, erased)) ? 1 : 0;
  if (json) return { exitCode, text: JSON.stringify(erased), forPrograms: true };
  return { exitCode, text: [...erasedText(erased, receipts, options), ...asideText(erased)].join("\n") };
}

type Shown = Omit<Erased, "more">;
type Erase = (body: object) => Promise<Erased>;

/** A gate erases so much at once that its answer is not long in coming. */
async function eraseAll(erase: Erase, body: object): Promise<Shown> {
  let all: Shown = { matched: 0, lacking: [], rows: 0, parts: 0, acts: 0, receipts: [], remains: null };
  for (;;) {
    const { more, ...erased } = await erase(body);
    const rows = all.rows + erased.rows;
    all = {
      // What went before matches again, unless it lost the session by which it was named.
      matched: Math.max(rows, erased.matched),
      lacking: erased.lacking,
      rows,
      parts: all.parts + erased.parts,
      acts: Math.max(all.acts, erased.acts),
      receipts: [...all.receipts, ...erased.receipts],
      remains: erased.remains,
    };
    if (!more) return all;
  }
}

/** The gate that serves the ledger, else the ledger itself. */
async function eraserFor(options: EraseOptions): Promise<Erase> {
  const { dataDir, tenant } = options;
  const gate = await findGate(options);
  if (gate === undefined) return (body) => eraseHere(dataDir, tenant, body);
  const path = `${tenant === undefined ? "" : `/t/${encodeURIComponent(tenant)}`}/admin/erase`;
  return async (body) => {
    const answer = await gate.ask("POST", path, body);
    if (answer.status !== 200) throw new BadInput(refusalOf(answer));
    return answer.body as unknown as Erased;
  };
}

async function eraseHere(dataDir: string, tenant: string | undefined, body: object): Promise<Erased> {
  const place = ledgerPlace(dataDir, tenant ?? null, process.env["SVC_PIN"] || undefined);
  const erased = await eraseIdle(place, Buffer.from(JSON.stringify(body)));
  if (!erased.ok) throw new BadInput(erased.problem.detail);
  return erased.value;
}

/** `7`, or `7-9`. */
function readRange(text: string): readonly [number, number] {
  const [, from, to = from] = /^([1-9][0-9]{0,14})(?:-([1-9][0-9]{0,14}))?$/.exec(text) ?? [];
  if (from === undefined) throw new BadInput(`${visible(text)} is no receipt's number, such as 7, or 7-9`);
  if (Number(from) > Number(to)) throw new BadInput(`${text}: the first row comes before the last, as in 7-9`);
  return [Number(from), Number(to)];
}

function erasedText(erased: Shown, named: readonly string[], options: EraseOptions): readonly string[] {
  const { matched, lacking, rows, parts, receipts } = erased;
  if (matched === 0) return noneText(named, options);
  if (rows === 0 && lacking.some((lack) => isOfNone(lack, erased))) return ["nothing was erased"];
  if (rows === 0) return [`already erased: ${options.part} of ${receiptsText(matched)}`];
  const seqs = receipts.map(({ seq }) => seq);
  const by = seqs.length === 1 ? `row ${seqs[0]} says so` : `${seqs.length} rows say so, ${seqs[0]} to ${seqs.at(-1)}`;
  return [`erased ${parts} parts of ${receiptsText(rows)}; ${by}`];
}

/** A name that was mistyped must not look like an erasure that is done. */
function noneText(named: readonly string[], { session, key, before }: EraseOptions): readonly string[] {
  if (before !== undefined) return [`nothing was erased: no check from before ${visible(before)} is there`];
  if (session === undefined) return [`nothing was erased: there is no check among ${named.join(" ")}`];
  const [ofKey, wider] =
    key === undefined ? ["", ""] : [` (key ${visible(key)})`, ", and without --key any key's is meant"];
  return [
    `nothing was erased: no receipt of session ${visible(session)}${ofKey} is there`,
    `  names are exact${wider}; a receipt whose call was erased is found by its number alone`,
  ];
}

/** A part that none of the receipts ever had: its name was mistyped, or no contract lists it. */
function isOfNone({ count }: Lacking, { matched }: Shown): boolean {
  return matched > 0 && count >= matched;
}

function lackingText(lack: Lacking, erased: Shown): string {
  const { part, count, rows } = lack;
  if (isOfNone(lack, erased))
    return `  ${part} is no part of its own of any of them: it must be what their contract lists under \`sensitive:\``;
  const which = rows.slice(0, 10).map(([from, to]) => (from === to ? `${from}` : `${from}-${to}`));
  const shown = `${which.join(" ")}${rows.length > which.length ? " ..." : ""}`;
  return `  ${part} is no part of its own of ${receiptsText(count)} (${shown}): if it was sent, it stands in their ${part.split(".")[0]}`;
}

function asideText(erased: Shown): readonly string[] {
  const { lacking, acts, remains } = erased;
  return [
    ...lacking.map((lack) => lackingText(lack, erased)),
    ...(acts === 0 ? [] : [`  rows that record acts of people, ${acts} of those named, are never erased`]),
    ...(remains === null ? [] : [`  but ${remains}`]),
  ];
}

function receiptsText(count: number): string {
  return `${count} receipt${count === 1 ? "" : "s"}`;
}
