import {
  coveredAmounts,
  withUse,
  type Asking,
  type Grant,
  type Granted,
  type GrantUse,
  type SourceCall,
} from "../../approvals/mod.ts";
import { grantRows } from "../../ledger/entry/mod.ts";
import { Fault } from "../../ledger/errors.ts";
import type { AppendTransaction } from "../../ledger/mod.ts";
import type { CallToJudge } from "./call.ts";

/** A grant, and the call that it was made from. */
interface Known {
  readonly grant: Grant;
  readonly source: SourceCall;
}

/** The grants that the calls of one batch may meet, as its earlier calls leave them. */
export class BatchGrants {
  readonly #known: Map<number, Known>;
  readonly #uses: GrantUse[] = [];

  constructor(known: readonly Known[] = []) {
    this.#known = new Map(known.map((each) => [each.grant.row, each]));
  }

  /**
   * Finds the grants of the calls, and reads the rows of each again: the one that asked, and those that made the grant.
   *
   * @throws {Fault} if these rows do not say what the grant is
   */
  static async open(transaction: AppendTransaction, calls: readonly CallToJudge[]): Promise<BatchGrants> {
    const grants = transaction.grants.filter((grant) =>
      calls.some(({ keyName, request }) => keyName === grant.key && request.toolName === grant.tool),
    );
    if (grants.length === 0) return new BatchGrants();
    const numbers = grants.flatMap(({ source, row, votes }) => [source, row, ...votes.map((vote) => vote.row)]);
    const rows = await transaction.rowsAt([...new Set(numbers)]);
    const digest = (text: string): string => transaction.digest(text);
    const known = grants.flatMap((grant): readonly Known[] => {
      if (!grantRows.isMadeBy(grant, rows, digest))
        throw new Fault(`the grant of row ${grant.row} is not what its rows say: restore the ledger from a backup`);
      const row = rows.find(({ seq }) => seq === grant.source);
      const source = row && grantRows.sourceCall(row, digest);
      return source === undefined ? [] : [{ grant, source }];
    });
    return new BatchGrants(known);
  }

  get isEmpty(): boolean {
    return this.#known.size === 0;
  }

  /**
   * Finds a grant that covers a call: the oldest.
   *
   * @param personsFor returns the persons whose votes for a grant are enough; undefined if they are not
   */
  find(
    { call, keyName, request }: CallToJudge,
    { causes, grants }: Asking,
    at: number,
    personsFor: (grant: Grant) => readonly string[] | undefined,
  ): Granted | undefined {
    if (grants === undefined || this.isEmpty) return undefined;
    const asked = { at, key: keyName, tool: request.toolName, place: call.place, causes, ...call.compared };
    for (const { grant, source } of this.#known.values()) {
      const amounts = coveredAmounts(grant, asked, source);
      const by = amounts && personsFor(grant);
      if (amounts !== undefined && by !== undefined) return { grant, by, amounts };
    }
    return undefined;
  }

  /** Counts a use before the next call of the batch. */
  use({ grant, amounts }: Granted, row: number): void {
    const known = this.#known.get(grant.row);
    if (known !== undefined) this.#known.set(grant.row, { ...known, grant: withUse(known.grant, amounts) });
    this.#uses.push({ amounts, grant: grant.row, row });
  }

  /** The uses by the batch. */
  get uses(): readonly GrantUse[] {
    return this.#uses;
  }
}
