import type { ErasureResult, NotPresent, ErasurePreview } from "../server/mod.ts";
import { visible } from "../../../core/src/wire/mod.ts";
import { requireAccepted, adminPath, withGate, type GateDoor, type OperatorOptions } from "./operator.ts";
import { BadInput, type Outcome } from "./outcome.ts";
import { counted } from "./counted.ts";

export interface EraseOptions extends OperatorOptions {
  readonly part?: string | undefined;
  readonly reason?: string | undefined;
  /** Such as `input.customer.email=anna@example.com`: receipts that match all of these. */
  readonly where?: readonly string[];
  /** Erases the receipts that `--where` found. Otherwise they are only shown. */
  readonly yes?: boolean;
  readonly session?: string | undefined;
  readonly key?: string | undefined;
  readonly before?: string | undefined;
}

/** `svc-gate erase`: deletes parts of receipts. Their digests stay, and a row records who erased them, and why. */
export async function eraseCommand(receipts: readonly string[], options: EraseOptions): Promise<Outcome> {
  const { session, key, before, where = [], yes = false, part, reason, json } = options;
  const isByValue = where.length > 0;
  if (receipts.length === 0 && session === undefined && before === undefined && !isByValue)
    throw new BadInput(
      "name the receipts: by numbers, such as 7 or 7-9, or with --session, --before or --where input.customer.email=anna@example.com",
    );
  if (yes && !isByValue)
    throw new BadInput("--yes only goes with --where: without --where, receipts are erased immediately");
  const preview = isByValue && !yes;
  const missing = [
    part === undefined && !isByValue ? "what to erase with --part, such as --part input,platform" : "",
    reason === undefined && !preview ? "why with --reason, which stays in the ledger forever" : "",
  ].filter(Boolean);
  if (missing.length > 0) throw new BadInput(`say ${missing.join(", and ")}`);
  const rows = receipts.length === 0 ? undefined : receipts.map(readRange);
  const parts = parsePartOption(options);
  const selection = { rows, session_id: session, key, before, where: isByValue ? readWheres(where) : undefined };
  const body = { ...selection, parts, ...(preview ? { preview } : { reason }) };
  const erased = await withGate(options, (gate) => eraseAll(gate, adminPath(options.tenant, "erase"), body));
  // It is not an error if nothing is that old: this command runs each night.
  const isNobody = erased.matched === 0 && before === undefined;
  const exitCode = isNobody || erased.not_present.some((lack) => isOfNone(lack, erased)) ? 1 : 0;
  if (json) return { exitCode, text: JSON.stringify(erased), forPrograms: true };
  return { exitCode, text: [...erasedText(erased, receipts, options), ...asideText(erased)].join("\n") };
}

/** With `--where`, everything that was sent is erased by default. */
const partsByValue = "input,platform";

function parsePartOption({ part }: EraseOptions): readonly string[] {
  return (part ?? partsByValue).split(",").map((name) => name.trim());
}

/** The value may contain a `=`, the path of the member may not. */
function readWheres(texts: readonly string[]): Readonly<Record<string, string>> {
  const found = new Map<string, string>();
  for (const text of texts) {
    const at = text.indexOf("=");
    if (at < 1)
      throw new BadInput(
        `--where takes a member and its value, such as input.customer.email=anna@example.com, not ${visible(text)}`,
      );
    const member = text.slice(0, at);
    if (found.has(member)) throw new BadInput(`--where names ${visible(member)} twice`);
    found.set(member, text.slice(at + 1));
  }
  return Object.fromEntries(found);
}

type ErasureSummary = Omit<ErasureResult, "more">;
/** Its members come first in the output, in this order. */
const nothingErased: ErasureSummary = {
  matched: 0,
  not_present: [],
  rows: 0,
  parts: 0,
  acts: 0,
  receipts: [],
  remains: null,
};

/** Erases in several requests: a gate limits each one, so that its answer does not take long. */
async function eraseAll(gate: GateDoor, route: string, body: object): Promise<ErasureSummary> {
  let all = nothingErased;
  for (;;) {
    const { more, ...erased } = requireAccepted(await gate.ask("POST", route, body)) as unknown as ErasureResult;
    const rows = all.rows + erased.rows;
    all = {
      ...nothingErased,
      ...erased,
      // Receipts erased in an earlier request match again, unless the session that selected them was erased.
      matched: Math.max(rows, erased.matched),
      rows,
      parts: all.parts + erased.parts,
      acts: Math.max(all.acts, erased.acts),
      receipts: [...all.receipts, ...erased.receipts],
    };
    if (!more) return all;
  }
}

/** `7`, or `7-9`. */
function readRange(text: string): readonly [number, number] {
  const [, from, to = from] = /^([1-9][0-9]{0,14})(?:-([1-9][0-9]{0,14}))?$/.exec(text) ?? [];
  if (from === undefined) throw new BadInput(`${visible(text)} is not a receipt's number: write 7, or 7-9`);
  if (Number(from) > Number(to)) throw new BadInput(`${text}: the first row comes before the last, as in 7-9`);
  return [Number(from), Number(to)];
}

function erasedText(erased: ErasureSummary, named: readonly string[], options: EraseOptions): readonly string[] {
  const { matched, not_present: notPresent, rows, parts, receipts, preview } = erased;
  if (matched === 0) return noneText(named, options);
  if (preview !== undefined && rows > 0) return previewText(erased, preview);
  if (rows === 0 && notPresent.some((lack) => isOfNone(lack, erased))) return ["nothing was erased"];
  if (rows === 0) return [`already erased: ${parsePartOption(options).join(",")} of ${counted(matched, "receipt")}`];
  const seqs = receipts.map(({ seq }) => seq);
  const by =
    seqs.length === 1 ? `row ${seqs[0]} records it` : `${seqs.length} rows record it, ${seqs[0]} to ${seqs.at(-1)}`;
  return [`erased ${counted(parts, "part")} of ${counted(rows, "receipt")}; ${by}`];
}

function previewText({ parts, rows }: ErasureSummary, preview: ErasurePreview): readonly string[] {
  const counts = preview.parts.map(({ part, count }) => `${part} of ${count}`);
  return [
    `would erase ${counted(parts, "part")} of ${counted(rows, "receipt")} (${rangesText(preview.rows)}): ${counts.join(", ")}`,
    "  nothing was erased: check the receipts with `svc-gate explain --receipt`, then run this again with --yes and --reason",
  ];
}

function rangesText(ranges: readonly (readonly [from: number, to: number])[]): string {
  const shown = ranges.slice(0, 10).map(([from, to]) => (from === to ? `${from}` : `${from}-${to}`));
  return `${shown.join(" ")}${ranges.length > shown.length ? " ..." : ""}`;
}

/** A mistyped name must not look like a completed erasure. */
function noneText(named: readonly string[], { session, key, before, where = [] }: EraseOptions): readonly string[] {
  if (where.length > 0)
    return [
      `nothing was erased: no receipt has ${where.map(visible).join(" and ")}`,
      "  members and values must match exactly; a receipt whose input or facts were erased can only be found by its number",
    ];
  if (before !== undefined) return [`nothing was erased: no check is from before ${visible(before)}`];
  if (session === undefined) return [`nothing was erased: none of ${named.join(" ")} is a check`];
  const [ofKey, wider] =
    key === undefined ? ["", ""] : [` (key ${visible(key)})`, ", and without --key all keys match"];
  return [
    `nothing was erased: no receipt of session ${visible(session)}${ofKey} exists`,
    `  names are exact${wider}; a receipt whose call was erased can only be found by its number`,
  ];
}

/** None of the receipts ever had the part: its name was mistyped, or no contract lists it. */
function isOfNone({ count }: NotPresent, { matched }: ErasureSummary): boolean {
  return matched > 0 && count >= matched;
}

function notPresentText(lack: NotPresent, erased: ErasureSummary): string {
  const { part, count, rows } = lack;
  if (isOfNone(lack, erased))
    return `  ${part} is not a separate part of any of them: it must be a member that their contract lists under \`sensitive:\``;
  const which = `${counted(count, "receipt")} (${rangesText(rows)})`;
  return `  ${part} is not a separate part of ${which}: if it was sent, it is in their ${part.split(".")[0]}`;
}

function asideText(erased: ErasureSummary): readonly string[] {
  const { not_present: notPresent, acts, remains, unsearched = 0 } = erased;
  const unread = `${counted(unsearched, "receipt")} could not be searched, because the input was not stored whole`;
  return [
    ...(unsearched === 0 ? [] : [`  ${unread}; erase by session or number`]),
    ...notPresent.map((lack) => notPresentText(lack, erased)),
    ...(acts === 0 ? [] : [`  rows that record acts of people, ${acts} of those named, are never erased`]),
    ...(remains === null ? [] : [`  but ${remains}`]),
  ];
}
