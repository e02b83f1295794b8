import { hash } from "node:crypto";

/** A receipt of a call that was let through. */
interface HookedReceipt {
  readonly seq: number;
  readonly hash: string;
}

/** More calls at once than hosts run; the oldest are forgotten, and then have no outcome. */
const callsMax = 10_000;

/** The calls that were let through and have not run yet, as far as this process decided them. */
export class HookedCalls {
  readonly #receipts = new Map<string, HookedReceipt>();

  /** A model may use an id twice: then the last call counts. */
  add(call: string, receipt: HookedReceipt): void {
    const name = hashCallKey(call);
    this.#receipts.delete(name);
    this.#receipts.set(name, { seq: receipt.seq, hash: receipt.hash });
    const [oldest] = this.#receipts.keys();
    if (this.#receipts.size > callsMax && oldest !== undefined) this.#receipts.delete(oldest);
  }

  take(call: string): HookedReceipt | undefined {
    const name = hashCallKey(call);
    const receipt = this.#receipts.get(name);
    this.#receipts.delete(name);
    return receipt;
  }
}

/** The caller chooses the text of a call, up to the size of a body: only its digest stays in memory. */
function hashCallKey(call: string): string {
  return hash("sha256", call, "base64url");
}
