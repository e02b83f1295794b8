import { inspectLedger } from "../ledger/mod.ts";
import type { Outcome } from "./outcome.ts";

/** `svc-gate verify`: walks the chain of a ledger in a folder, from outside. */
export async function verifyCommand(
  folder: string,
  { json, pin, chain }: { readonly json: boolean; readonly pin: string | undefined; readonly chain: boolean },
): Promise<Outcome> {
  const { log, rows, head, broken, anchored } = await inspectLedger({ folder, pinFile: pin, chainAlone: chain });
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
      ? "nothing outside the data folder anchors it (SVC_PIN)"
      : `anchored through row ${anchored.seq} by the ${anchored.by}`;
  return {
    exitCode: 0,
    text: [
      `ok: ${rows} rows, ${chain ? "the chain alone" : "chain and evidence"} verified`,
      `  ledger  ${log}`,
      `  head    ${head.hash}`,
      `  ${anchor}`,
    ].join("\n"),
  };
}
