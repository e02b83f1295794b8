import { join } from "node:path";
import type { Logger } from "pino";
import { dataFolder, type Ledger, type LedgerHistory } from "../../../ledger/mod.ts";
import { good } from "../../../wire/mod.ts";
import type { Acts } from "../act.ts";
import { firstKeyName, keptFirstKey, type FirstKey } from "./first-key.ts";

/**
 * What the ledger notes of the first key: where it comes from, and its digest under the ledger's own secret. Whoever has a
 * receipt or an export cannot guess a key that a person chose from it; whoever has the ledger's file has `keys.json` too.
 */
function noteOf(
  { keyDigest }: Pick<Ledger, "keyDigest">,
  { digest, source }: Pick<FirstKey, "digest" | "source">,
): string {
  return `${source} ${keyDigest(`first key ${digest}`)}`;
}

/**
 * Holds the first key of a start against the one of the start before. The first start of a ledger notes it without a row;
 * another key is a row and a warning, so that a swapped `keys.json` does not stay unseen.
 */
export async function recordFirstKey(
  { gate, ledger }: { readonly gate: Pick<Acts, "enact">; readonly ledger: Ledger },
  first: FirstKey,
  log: Logger,
): Promise<void> {
  const note = noteOf(ledger, first);
  const before = ledger.firstKey;
  if (ledger.isShared || before === note) return;
  const [, now = ""] = note.split(" ");
  const [from = "", digest] = before?.split(" ") ?? [];
  if (before !== undefined && digest !== now) {
    const { source } = first;
    const body = { before: { digest: digest ?? "", source: from }, now: { digest: now, source } };
    const reason = `Svc: the key ${firstKeyName} is another one since this start: ${source} names it`;
    const done = await gate.enact(() => Promise.resolve(good({ by: "start", act: "first-key.change", body, reason })));
    const where = done.ok ? `row ${done.value.seq} records it` : `no row records it yet: ${done.problem.detail}`;
    log.warn(
      `the key \`${firstKeyName}\` is another one than at the last start (from ${source}); ${where}. If nobody changed it on ` +
        "purpose, somebody else writes the data folder or the settings: make keys with `svc-gate keys create`, and revoke this one",
    );
    if (!done.ok) return;
  }
  await ledger.keepFirstKey(note);
}

/**
 * Is the first key that a data folder keeps another one than its gate has noted?
 *
 * @returns a sentence for the operator, or undefined
 */
export async function otherFirstKey(
  folder: string,
  ledger: Pick<LedgerHistory, "firstKey" | "keyDigest">,
): Promise<string | undefined> {
  const { firstKey } = ledger;
  if (firstKey?.startsWith("keys.json ") !== true) return undefined;
  const digest = await keptFirstKey(folder);
  if (digest !== undefined && noteOf(ledger, { digest, source: "keys.json" }) === firstKey) return undefined;
  const file = join(folder, dataFolder.files.keys);
  return digest === undefined
    ? `${file} is gone, so the next start makes another key \`${firstKeyName}\`: restore it`
    : `${file} holds another key \`${firstKeyName}\` than the gate has noted, and no row says so: restore it, and find out who changed it`;
}
