import { spawnSync } from "node:child_process";
import { hash } from "node:crypto";
import { openLedger } from "../packages/gate/src/ledger/mod.ts";
import { paymentBody } from "./requests.ts";
import { parseCheckRequest } from "../packages/core/src/wire/mod.ts";

/** Does the same in another process, so that its garbage is not collected during a measurement. */
export function fillElsewhere(folder: string, rows: number): void {
  const { status } = spawnSync(process.execPath, [import.meta.filename, folder, String(rows)], { stdio: "inherit" });
  if (status !== 0) throw new Error(`filling the ledger ended with ${status}`);
}

/** Writes a ledger of this many rows, through the ledger's public API. */
export async function fillLedger(folder: string, rows: number): Promise<void> {
  const ledger = await openLedger({ folder, engine: "svc-gate/bench" });
  const text = "contract: bench\n";
  await ledger.keepContract(text);
  const from = Date.now() - rows;
  const contract = hash("sha256", text, "hex");
  for (let done = 0; done < rows;) {
    const batch = await ledger.begin();
    for (const end = Math.min(rows, done + 1000); done < end; done += 1) {
      const parsed = parseCheckRequest(paymentBody(done));
      if (!parsed.ok) throw new Error(parsed.problem.detail);
      const { toolName, sessionId, inputText, platformText } = parsed.value;
      batch.append(
        {
          at: from + done,
          keyName: "default",
          mode: "enforce",
          toolName,
          routed: true,
          sessionId,
          inputText,
          platformText,
          verdict: "ALLOW",
          answered: "ALLOW",
          reason: "Svc: the payee is registered, and 10 USD is within every limit",
          rule: "payments.$otherwise",
          contract,
          outcome: { counters: {}, errors: {}, fired: [] },
        },
        [],
      );
    }
    await batch.commit();
  }
  await ledger.close();
}

if (import.meta.main) await fillLedger(process.argv[2] ?? "", Number(process.argv[3]));
