import { join } from "node:path";
import type { Logger } from "pino";
import { dataFolder, type Ledger, type LedgerHistory } from "../../ledger/mod.ts";
import { good } from "../../../../core/src/wire/mod.ts";
import type { AdminEvents } from "../policy/admin-event.ts";
import { firstKeyName, readFirstKeyDigest, type FirstKey } from "./first-key.ts";

/**
 * Returns the ledger's note about the first key: its source, and its digest under the ledger's own secret. So nobody
 * can guess a key that a person chose from a receipt or an export. Anyone with the ledger's file has `keys.json` too.
 */
function noteOf(
  { keyDigest }: Pick<Ledger, "keyDigest">,
  { digest, source }: Pick<FirstKey, "digest" | "source">,
): string {
  return `${source} ${keyDigest(`first key ${digest}`)}`;
}

/**
 * Compares the first key of this start with the one of the last start. The first start only notes the key. If the key
 * changes later, the gate appends a row and logs a warning, so that a swapped `keys.json` is noticed.
 */
export async function recordFirstKey(
  gate: AdminEvents & { readonly ledger: Pick<Ledger, "isShared" | "keyDigest" | "keyNotes" | "tables"> },
  first: FirstKey,
  log: Logger,
): Promise<void> {
  const { ledger } = gate;
  if (ledger.isShared) return;
  const note = noteOf(ledger, first);
  const { firstKey: before } = await ledger.tables.description();
  if (before === note) return;
  const [, now = ""] = note.split(" ");
  const [from = "", digest] = before?.split(" ") ?? [];
  if (before !== undefined && digest !== now) {
    const { source } = first;
    const body = { before: { digest: digest ?? "", source: from }, now: { digest: now, source } };
    const reason = `Svc: the key ${firstKeyName} changed at this start; the new key is from ${source}`;
    const done = await gate.appendAdminEvent(() =>
      Promise.resolve(good({ by: "start", act: "first-key.change", body, reason })),
    );
    const where = done.ok ? `row ${done.value.seq} records it` : `no row records it yet: ${done.problem.detail}`;
    log.warn(
      `the key \`${firstKeyName}\` changed since the last start (the new key is from ${source}); ${where}. If nobody changed it ` +
        "on purpose, somebody else can write the data folder or the settings: make keys with `svc-gate keys create`, and " +
        "revoke this one",
    );
    if (!done.ok) return;
  }
  await ledger.keyNotes.keepFirst(note);
}

/**
 * Checks if the first key in a data folder differs from the key that the gate has noted.
 *
 * @returns a sentence for the operator if it differs, or undefined
 */
export async function otherFirstKey(
  folder: string,
  ledger: Pick<LedgerHistory, "firstKey" | "keyDigest">,
): Promise<string | undefined> {
  const { firstKey } = ledger;
  if (firstKey?.startsWith("keys.json ") !== true) return undefined;
  const digest = await readFirstKeyDigest(folder);
  if (digest !== undefined && noteOf(ledger, { digest, source: "keys.json" }) === firstKey) return undefined;
  const file = join(folder, dataFolder.files.keys);
  return digest === undefined
    ? `${file} is gone, so the next start makes another key \`${firstKeyName}\`: restore it`
    : `${file} has a key \`${firstKeyName}\` that differs from the key that the gate noted, and no row records the change: ` +
        "restore the file, and find out who changed it";
}
