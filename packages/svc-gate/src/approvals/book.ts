import { isOpen, statusAt, type Approval } from "./approval.ts";

/** How many approvals are open. */
export interface OpenCounts {
  readonly ledger: number;
  readonly byKey: ReadonlyMap<string, number>;
  /** By the digest of `sessionName`. */
  readonly bySession: ReadonlyMap<string, number>;
}

export const nothingOpen: OpenCounts = { ledger: 0, byKey: new Map(), bySession: new Map() };

/** A name for a session, which is unique over the keys. It begins with its domain, since only its digest is kept. */
export function sessionName(key: string, session: string | null): string {
  return `svc-gate/session/1\n${JSON.stringify([key, session])}`;
}

/** A name for a tool in a session of a key. */
export function placeName({ key, session, tool }: Pick<Approval, "key" | "session" | "tool">): string {
  return `svc-gate/denied/1\n${JSON.stringify([key, session, tool])}`;
}

/** The approvals that a batch of calls may meet, as its earlier calls leave them. */
export class ApprovalBook {
  readonly #approvals = new Map<number, Approval>();
  readonly #changed = new Set<number>();
  readonly #digest: (text: string) => string;
  #counts: OpenCounts;

  /** @param digest makes the digests by which `counts` names sessions */
  constructor(digest: (text: string) => string, found: readonly Approval[] = [], counts: OpenCounts = nothingOpen) {
    this.#digest = digest;
    for (const approval of found) this.#approvals.set(approval.row, approval);
    this.#counts = counts;
  }

  get isEmpty(): boolean {
    return this.#approvals.size === 0;
  }

  get counts(): OpenCounts {
    return this.#counts;
  }

  /** The number of open approvals of a session. */
  ofSession(key: string, session: string | null): number {
    return this.#counts.bySession.get(this.#digest(sessionName(key, session))) ?? 0;
  }

  at(row: number): Approval | undefined {
    return this.#approvals.get(row);
  }

  /** The approval of calls with this digest that is open at a moment. There is at most one for each session. */
  open(digest: string, at: number): readonly Approval[] {
    return [...this.#approvals.values()].filter(
      (approval) => approval.asking.attach === digest && isOpen({ status: statusAt(approval, at) }),
    );
  }

  /** The approvals of a key that a person denied. */
  denied(key: string): readonly Approval[] {
    return [...this.#approvals.values()].filter((approval) => approval.key === key && approval.status === "denied");
  }

  put(approval: Approval): void {
    const before = this.#approvals.get(approval.row);
    this.#approvals.set(approval.row, approval);
    this.#changed.add(approval.row);
    const step = Number(isOpen(approval)) - Number(before !== undefined && isOpen(before));
    if (step !== 0) this.#count(approval, step);
  }

  #count({ key, session }: Approval, step: number): void {
    const { ledger, byKey, bySession } = this.#counts;
    const name = this.#digest(sessionName(key, session));
    this.#counts = {
      ledger: ledger + step,
      byKey: new Map(byKey).set(key, (byKey.get(key) ?? 0) + step),
      bySession: new Map(bySession).set(name, (bySession.get(name) ?? 0) + step),
    };
  }

  /** The approvals that the batch changed. */
  get changed(): readonly Approval[] {
    return [...this.#changed].map((row) => this.#approvals.get(row) as Approval);
  }
}
