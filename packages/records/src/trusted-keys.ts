import { parseVerifierKey, type VerifierKey } from "../../core/src/record/tree/mod.ts";
import { BadInput } from "../../gate/src/cli/mod.ts";

/** The trusted signers, as verifier keys. */
export interface TrustedKeys {
  /** The ledger's keys. */
  readonly key: readonly string[];
  /** Witnesses' keys, whose cosignatures are looked for. */
  readonly witness: readonly string[];
}

/** @throws {BadInput} if a text is not a verifier key, or is a key of the other kind */
export function readKeys(written: readonly string[], of: "log" | "witness"): readonly VerifierKey[] {
  return written.map((text) => {
    const key = parseVerifierKey(text);
    if (!key.ok) throw new BadInput(key.problem);
    if ((key.value.type === 1) === (of === "log")) return key.value;
    throw new BadInput(
      `${text} is the key of a ${of === "log" ? "witness" : "log"}: --key is for logs, --witness for witnesses`,
    );
  });
}
