import { Readable } from "node:stream";
import type { FastifyReply } from "fastify";
import { leafKinds, type LeafKind, outcomeRows } from "../../../../core/src/record/entry/mod.ts";
import type { ReceiptQuery } from "../../ledger/mod.ts";
import { isMode, isVerdict, limits, utf8Bytes } from "../../../../core/src/wire/mod.ts";
import { sendJson } from "../request/body.ts";
import { anyText, badMoment, badNumber, readPeriod, readQuery, type Parameters } from "./query.ts";
import type { ReadCall } from "./route.ts";

/** `missing` means that no outcome of the call was reported. */
const outcomes: readonly string[] = [...outcomeRows.outcomeStatuses, "missing"];

const parameters: Parameters = {
  limit: (value, name) => badNumber(value, name, limits.receiptsLimitMax),
  before: (value, name) => badNumber(value, name, Number.MAX_SAFE_INTEGER),
  session_id: anyText,
  tool_name: anyText,
  verdict: badVerdict,
  answered: badVerdict,
  outcome: (value) =>
    outcomes.includes(value)
      ? undefined
      : `"outcome" must be ${outcomes.slice(0, -1).join(", ")} or ${outcomes.at(-1)}`,
  mode: (value) => (isMode(value) ? undefined : '"mode" must be observe, assist or enforce'),
  key: badName,
  act: badName,
  kind: (value) => (value === "all" || isKind(value) ? undefined : `"kind" must be ${leafKinds.join(", ")} or all`),
  since: badMoment,
  until: badMoment,
};

export function receipts({ gate, read: reading, request, reply }: ReadCall): FastifyReply {
  const query = queryIn(readQuery(request, parameters));
  const page = pageText(reading.through(gate.ledger.rows.receipts(query)), query.limit);
  return sendJson(reply, Readable.from(page, { objectMode: false }));
}

function queryIn(query: URLSearchParams): ReceiptQuery {
  const text = (name: string): string | undefined => query.get(name) ?? undefined;
  const [answered, mode] = [text("answered"), text("mode")];
  return {
    before: Number(query.get("before") ?? Number.MAX_SAFE_INTEGER),
    limit: Number(query.get("limit") ?? limits.receiptsLimitDefault),
    session: text("session_id"),
    tool: text("tool_name"),
    verdict: text("verdict"),
    outcome: text("outcome"),
    answered: answered !== undefined && isVerdict(answered) ? answered : undefined,
    mode: mode !== undefined && isMode(mode) ? mode : undefined,
    key: text("key"),
    act: text("act"),
    kind: parseKindFilter(text("kind"), text("act")),
    ...readPeriod(query),
  };
}

/** Returns the kind to list: only checks, unless the query has another kind. A query with `act` lists changes. */
function parseKindFilter(kind: string | undefined, act: string | undefined): LeafKind | undefined {
  if (kind === undefined) return act === undefined ? "check" : undefined;
  return isKind(kind) ? kind : undefined;
}

function isKind(value: string): value is LeafKind {
  return leafKinds.some((kind) => kind === value);
}

/**
 * Yields the page while it is read, so that a thousand large rows are never in memory together. The answer starts after
 * the first rows were read. So if the ledger cannot be read, the answer is a refusal, not a truncated page.
 */
async function* pageText(
  slices: AsyncIterable<readonly { readonly seq: number; readonly json: string }[]>,
  limit: number,
): AsyncGenerator<string> {
  let unsent = '{"receipts":[';
  let count = 0;
  let last = 0;
  for await (const slice of slices) {
    if (slice.length === 0) {
      yield ""; // Nothing matched here. If the client has gone, the search ends at this point.
      continue;
    }
    yield unsent + slice.map(({ json }) => json).join(",");
    unsent = ",";
    count += slice.length;
    last = slice.at(-1)?.seq ?? last;
  }
  yield `${count === 0 ? unsent : ""}],"next":${count === limit && last > 1 ? last : "null"}}`;
}

function badVerdict(value: string, name: string): string | undefined {
  return isVerdict(value) ? undefined : `"${name}" must be ALLOW, BLOCK or ESCALATE`;
}

const nameBytesMax = 256;

function badName(value: string, name: string): string | undefined {
  const isName = value !== "" && utf8Bytes(value) <= nameBytesMax && !/\p{C}/u.test(value);
  return isName ? undefined : `"${name}" must be a name from receipts, such as ${examples[name]}`;
}

const examples: Readonly<Record<string, string>> = { key: "default", act: "reload" };
