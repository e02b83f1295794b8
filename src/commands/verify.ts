import { inspectLedger, inspectSharedLedger } from "../ledger/mod.ts";
import { sharedPlace } from "./database.ts";
import type { Outcome } from "./outcome.ts";

export interface VerifyOptions {
  readonly json: boolean;
  readonly pin: string | undefined;
  readonly chain: boolean;
  readonly database: string | true | undefined;
}

/** `svc-gate verify`: walks the chain of a ledger in a folder or a database, from outside. */
export async function verifyCommand(folder: string, options: VerifyOptions): Promise<Outcome> {
  const { json, pin, chain, database } = options;
  const shared = sharedPlace(database);
  const { log, rows, head, broken, anchored } =
    shared === undefined
      ? await inspectLedger({ folder, pinFile: pin, chainAlone: chain })
      : await inspectSharedLedger(shared);
  if (json)
    return {
      exitCode: broken === undefined ? 0 : 1,
      text: JSON.stringify(
        broken === undefined
          ? { ok: true, rows, head, anchored: anchored ?? null }
          : { ok: false, rows, first_broken: broken },
      ),
      forPrograms: true,
    };
  if (broken !== undefined) {
    const { seq, problem, expected, found } = broken;
    return {
      exitCode: 1,
      text: `BROKEN at row ${seq} of ${rows}: ${problem}\n  expected  ${expected}\n  found     ${found}`,
    };
  }
  const anchor =
    anchored === undefined
      ? `nothing outside the ${shared === undefined ? "data folder" : "database"} anchors it (SVC_PIN)`
      : `anchored through row ${anchored.seq} by the ${anchored.by}`;
  return {
    exitCode: 0,
    text: [
      `ok: ${rows} rows, ${chain && shared === undefined ? "the chain alone" : "chain and evidence"} verified`,
      `  ledger  ${log}`,
      `  head    ${head.hash}`,
      `  ${anchor}`,
    ].join("\n"),
  };
}
