import { pause, askOnce, bodyOf, expected, type Serving } from "./clients.ts";
import { inBase64 } from "./erasure.ts";
import type { Outside } from "./outside.ts";
import { folder } from "./plan.ts";
import { disclosuresOf, leafOf, type Row } from "./rows.ts";
import type { Sources } from "./sources.ts";

/** Acts as an operator: erases receipts, and rotates the signing key. */
export async function operate(
  serving: Serving,
  outside: Outside,
  { life, errands, keys }: { readonly life: number; readonly errands: number; readonly keys: Keys },
): Promise<void> {
  const { machine } = serving;
  const { process, chance } = machine;
  for (let errand = 1; errand <= errands; errand += 1) {
    await pause(machine, chance.whole(0, 900));
    await chance.way<() => Promise<void>>([
      [2, () => () => forgetRows(serving, outside)],
      [2, () => () => forgetPerson(serving, outside, nameOf(life, errand))],
      [2, () => () => changeSigner(serving, outside, keys)],
    ])();
    if (!process.isAlive) return;
  }
}

type Erase = Parameters<Serving["gate"]["eraser"]["erase"]>[0];

async function forgetRows(serving: Serving, outside: Outside): Promise<void> {
  const { chance } = serving.machine;
  const known = [...outside.told.keys()];
  if (known.length === 0) return;
  const to = chance.pick(known);
  const from = Math.max(1, to - chance.whole(0, 4));
  const parts = chance.pick<Erase["parts"]>([["platform"], ["input"], ["reason", "outcome"], ["call", "input"]]);
  const isMeant = ({ seq }: Row): boolean => seq >= from && seq <= to;
  await forget(serving, outside, { target: { rows: [[from, to]] }, parts, isMeant });
}

/**
 * Returns a session with a unique name. The unique part is in the middle, because base64 does not show a text's ends.
 */
function nameOf(life: number, errand: number): string {
  return `somebody ${String(life).padStart(2, "0")} ${errand} somebody`;
}

/** Makes a few calls in a session, and erases them all. */
async function forgetPerson(serving: Serving, outside: Outside, session: string): Promise<void> {
  const { machine } = serving;
  const { process, chance } = machine;
  for (let call = chance.whole(1, 3); call > 0 && process.isAlive; call -= 1) {
    const name = `${session} ${call}`;
    await askOnce(serving, outside, { body: bodyOf(name, session, 1), name });
  }
  const target = { session, key: undefined };
  const isMeant = (row: Row): boolean => row.session === session;
  const isCleared = await forget(serving, outside, { target, parts: ["call", "input", "platform"], isMeant });
  if (!isCleared) return;
  for (const [file, content] of process.disk.contents())
    if (content.includes(session)) outside.wrong(`the session ${session} was erased, and is in ${file}`);
}

interface Forgetting extends Pick<Erase, "parts" | "target"> {
  readonly isMeant: (row: Row) => boolean;
}

/** @returns whether the gate said that no file contains them any more */
async function forget(
  { gate, ledger, machine }: Serving,
  outside: Outside,
  { target, parts, isMeant }: Forgetting,
): Promise<boolean> {
  const { process } = machine;
  try {
    const rows: Row[] = [];
    for await (const slice of ledger.rows.scan(1)) rows.push(...slice.filter(isMeant));
    const checks = rows.filter((row) => leafOf(row).kind === "check");
    for (const row of checks) note(row, outside);
    const done = await gate.eraser.erase({ target, parts, reason: "request 4711" }, "ada");
    if (!process.isAlive || !done.ok) return false;
    const { receipts, remains } = done.value;
    for (const receipt of receipts) outside.answered(receipt, machine.now);
    outside.forgot(checks.flatMap(({ seq }) => parts.map((part) => `${seq} ${part}`)));
    if (receipts.length === 0 || remains !== null) return false;
    outside.clear();
    return true;
  } catch (error) {
    expected(machine, outside, `receipts cannot be erased: ${String(error)}`);
    return false;
  }
}

/** Records the texts of a session in a row. */
function note(row: Row, { texts }: Outside): void {
  const { seq, session } = row;
  if (session?.startsWith("somebody") !== true) return;
  const there = disclosuresOf(row);
  for (const name of ["call", "input"]) {
    const text = there.get(name);
    if (text !== undefined) texts.set(`${seq} ${name}`, [inBase64(session, text)]);
  }
  texts.set(`${seq} call`, [session, ...(texts.get(`${seq} call`) ?? [])]);
}

/** The steps of `svc-gate keygen`. */
export type Keys = Pick<Sources, "makeSigningKey" | "readSigningKeys" | "Signer" | "writeSigningKeys">;

/** Acts as `keygen --rotate`; and as `--retire`, once the gate has recorded the new key. */
async function changeSigner({ ledger, machine }: Serving, outside: Outside, keys: Keys): Promise<void> {
  const file = `${folder}/signing.key`;
  try {
    const there = await keys.readSigningKeys(file);
    if (there === undefined) return outside.wrong(`the signing key of a gate that serves is gone`);
    const { current, before } = there;
    const { current: name } = new keys.Signer(ledger.name, there);
    if (before === undefined) await keys.writeSigningKeys(file, { current: keys.makeSigningKey(), before: current });
    else if (ledger.verifiers[0]?.text === name) await keys.writeSigningKeys(file, { current, before: undefined });
  } catch (error) {
    expected(machine, outside, `the signing key cannot be changed: ${String(error)}`);
  }
}
