import { type JsonObject } from "../wire/mod.ts";
/** A call, as an approval is bound to it. */
export interface BoundCall {
  /** The ledger's name. */
  readonly log: string;
  readonly key: string;
  readonly session: string | null;
  readonly tool: string;
  readonly input: JsonObject;
  /** The members of the input that do not count, such as `input.note`. */
  readonly unbound: readonly string[];
  /** The facts that the call is bound to, with their JSON texts; null if a fact is absent. */
  readonly subject: Readonly<Record<string, string | null>>;
}
/**
 * The text of which a binding is the keyed digest. Members are sorted by code units. Numbers have the characters that
 * were sent, because a tool receives characters.
 */
export declare function bindingText({ log, key, session, tool, input, unbound, subject }: BoundCall): string;
/**
 * The text of which the coarser digest is made: calls with one such digest share an approval, and a denial. It has
 * numbers by their value, and no session.
 */
export declare function attachText({ log, key, tool, input, unbound }: Omit<BoundCall, "session" | "subject">): string;
/** Returns the JSON texts of facts such as `platform.wallet_id`; null for absent ones. */
export declare function factTexts(
  names: readonly string[],
  platformText: string | null,
): Readonly<Record<string, string | null>>;
/** An approval's id: `apr_`, the row that asked, and the first 32 digits of its hash. */
export declare function approvalId(row: number, hash: string): string;
/** Returns the row in an approval's id, and the digits of its hash; undefined if the text is no id. */
export declare function readApprovalId(id: string):
  | {
      readonly row: number;
      readonly digits: string;
    }
  | undefined;
