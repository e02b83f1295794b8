import { createHash } from "node:crypto";
import { parseCheckRequest } from "../../../packages/core/src/wire/mod.ts";
import { bodyOf, expected, noteAnswer, pause, type Answer, type Serving } from "./clients.ts";
import type { Outside } from "./outside.ts";
import { disclosuresOf, leafOf, part, type Leaf, type Row } from "./rows.ts";

/** A call with a `call_id`, as its client knows it. */
export interface IdentifiedCall {
  readonly body: string;
  readonly keyName: string;
  /** The unique text in its input. */
  readonly name: string;
  /** The answer, without the member `repeated`; undefined if none has come. */
  answer: string | undefined;
}

/** Acts as clients that send a check with a `call_id`, and send it again, sometimes twice at the same time. */
export async function askAgain(serving: Serving, outside: Outside, { life, repeats }: Repeats): Promise<void> {
  const { machine } = serving;
  const { process, chance } = machine;
  try {
    for (let number = 1; number <= repeats && process.isAlive; number += 1) {
      await pause(machine, chance.whole(0, 300));
      const isNew = outside.identified.length === 0 || chance.often(0.5);
      if (isNew) outside.identified.push(identified(serving, outside, `${life}/again/${number}`));
      const call = chance.pick(outside.identified.slice(isNew ? -1 : -6));
      const once = (): Promise<void> => askOne(serving, outside, call);
      await Promise.all(chance.often(0.3) ? [once(), once()] : [once()]);
    }
  } catch (error) {
    expected(machine, outside, `a repeat failed: ${String(error)}`);
  }
}

export interface Repeats {
  /** The number of the process's life. */
  readonly life: number;
  readonly repeats: number;
}

/** A new call: of one of the tools, or the use of an approval. */
function identified({ machine: { chance } }: Serving, outside: Outside, name: string): IdentifiedCall {
  const parked = [...outside.parked].slice(-3);
  const [id, using] = parked.length > 0 && chance.often(0.3) ? chance.pick(parked) : [undefined, undefined];
  const body = using?.body ?? bodyOf(name, `r${chance.whole(0, 2)}`, chance.whole(1, 40), chance.pick(["pay", "buy"]));
  const call_id = Array.from({ length: 32 }, () => chance.whole(0, 15).toString(16)).join("");
  const approval = id === undefined ? {} : { approval: { id } };
  return {
    body: JSON.stringify({ ...(JSON.parse(body) as object), ...approval, call_id }),
    keyName: using?.keyName ?? chance.pick(["even", "odd"]),
    name: id === undefined ? name : "",
    answer: undefined,
  };
}

interface Read {
  readonly isRepeat: boolean;
  /** The answer without the member `repeated`. */
  readonly text: string;
  readonly answer: Answer;
}

/** Asks once. @returns the code of a refusal, or the answer; undefined if the process has ended */
async function askFor(
  { gate, machine: { process } }: Serving,
  { body, keyName }: IdentifiedCall,
): Promise<Read | string | undefined> {
  const request = parseCheckRequest(body);
  if (!request.ok) throw new Error(request.problem.detail);
  const digest = createHash("sha256").update(body).digest("hex");
  const answered = await gate.check(request.value, { keyName, bytes: body.length, digest });
  if (!process.isAlive) return undefined;
  if (!answered.ok) return answered.problem.code;
  const { repeated, ...answer } = JSON.parse(answered.value) as Answer & { readonly repeated?: true };
  return { isRepeat: repeated === true, text: JSON.stringify(answer), answer };
}

async function askOne(serving: Serving, outside: Outside, call: IdentifiedCall): Promise<void> {
  const read = await askFor(serving, call);
  if (read === undefined || typeof read === "string") return;
  const { isRepeat, text, answer } = read;
  const known = call.answer;
  call.answer = text;
  if (isRepeat) outside.repeated += 1;
  if (known !== undefined && known !== text)
    outside.wrong(`${call.body} was answered with ${known}, and then with ${text}`);
  else if (known !== undefined && !isRepeat) outside.wrong(`${call.body} was decided again, and has the same answer`);
  const { receipt, approval } = answer;
  const { call_id: _id, ...body } = JSON.parse(call.body) as { readonly call_id: string };
  const request = { body: JSON.stringify(body), keyName: call.keyName };
  noteAnswer(serving.machine, outside, { receipt, approval: isRepeat ? undefined : approval }, request);
}

/** Acts after which a recorded ALLOW is still valid. */
const harmless = /^(?:approval\.(?:approve|deny|expire|supersede|use)|keys\.create|persons\.add)$/;

/**
 * Asks each call again after a crash. One that was answered gets its answer, unless something has ended it; any other has
 * exactly one row afterwards.
 *
 * @param rowsNow reads all rows
 */
export async function repeatProblem(
  serving: Serving,
  { identified: calls }: Pick<Outside, "identified">,
  rowsNow: () => Promise<readonly Row[]>,
): Promise<string | undefined> {
  if (calls.length === 0) return undefined;
  const before = await rowsNow();
  for (const call of calls) {
    const read = await askFor(serving, call);
    const problem = call.answer === undefined ? unlessDecided(call, read) : unlessRepeated(call, read, before);
    if (problem !== undefined) return problem;
  }
  const after = await rowsNow();
  const counts = countsOf(after);
  const twice = calls.find(({ name }) => (counts.get(name) ?? 0) > 1);
  return twice && `${counts.get(twice.name)} rows are of the repeats of ${twice.body}`;
}

/** The number of rows of each call, without the checks that name the call's approval. */
function countsOf(rows: readonly Row[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const row of rows) {
    const { call: name } = (part(row, "input") ?? {}) as { readonly call?: string };
    const named: { readonly approval?: string } | undefined = part(row, "call") ?? undefined;
    if (name !== undefined && named !== undefined && named.approval === undefined)
      counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return counts;
}

/** A call without an answer may have a row: then its recorded answer may have ended. */
function unlessDecided({ body }: IdentifiedCall, read: Read | string | undefined): string | undefined {
  if (read === "call-id-used" || (read !== undefined && typeof read !== "string")) return undefined;
  return `${body} was not answered, and is now refused: ${read}`;
}

function unlessRepeated(
  { body, answer: known = "" }: IdentifiedCall,
  read: Read | string | undefined,
  rows: readonly Row[],
): string | undefined {
  const { receipt, verdict, approval } = JSON.parse(known) as Answer;
  const row = rows[receipt.seq - 1];
  if (row === undefined) return `LOST: ${body} was answered by row ${receipt.seq}`;
  const isErased = !disclosuresOf(row).has("reason");
  const end = verdict === "ALLOW" ? rows.slice(receipt.seq).find((each) => isEnd(leafOf(each))) : undefined;
  if (read === "call-id-used")
    // The time to use an approval may be over by the gate's clock.
    return isErased || end !== undefined || approval?.status === "used"
      ? undefined
      : `${body} was answered with ${known}, and its repeat is refused`;
  if (read === undefined || typeof read === "string") return `the repeat of ${body} is refused: ${read}`;
  if (isErased || end !== undefined) return `${body} was answered by row ${receipt.seq}, and its answer did not end`;
  const isSame = read.isRepeat && read.text === known;
  return isSame ? undefined : `${body} was answered with ${known}, and after the crash with ${read.text}`;
}

function isEnd({ act, kind }: Leaf): boolean {
  return kind === "change" && !harmless.test(act ?? "");
}
