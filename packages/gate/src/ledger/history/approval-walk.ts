import {
  applyAct,
  attach,
  cancelledBy,
  denialOf,
  isOpen,
  noStops,
  listChangedRows,
  namesIt,
  isStopped,
  sessionToolName,
  stoppedApprovals,
  wholeScope,
  withStopAct,
  type Approval,
  type ApprovalAct,
  type Denial,
  type StopAct,
  type Stops,
} from "../../../../core/src/approvals/mod.ts";
import {
  actOf,
  readJudgement,
  denialEnd,
  endedBy,
  isLoss,
  openedBy,
  ownAmounts,
  readProgress,
  storedApproval,
} from "../../../../core/src/record/entry/approval-rows.ts";
import { missingParts } from "../../../../core/src/record/entry/evidence.ts";
import { leafHash, parseLeaf, type Leaf } from "../../../../core/src/record/entry/leaf.ts";
import type { Mistake, StoredRow, StoredApproval } from "../../../../core/src/record/entry/row.ts";
import { stopActIn } from "../../../../core/src/record/entry/stop-rows.ts";
import { readCall, readEffects } from "../../../../core/src/record/entry/verifier.ts";
import { canonical, type Canonical } from "../../../../core/src/wire/mod.ts";
import type { Tables } from "../store/tables.ts";
import { reportDamageAt } from "./findings.ts";
import { GrantWalk, unlawful } from "./grant-walk.ts";
import { approvalsAt, pagesOf, rowsAt, type TabledApproval } from "./table-reads.ts";

/** A row and the row that it is about; of a use, also the approval that this row must have used. */
interface ApprovalReference {
  readonly seq: number;
  readonly row: number;
  readonly approval?: number;
  readonly denial?: Denial;
}

interface TrackedApproval {
  readonly approval: Approval;
  readonly reservations: TabledApproval["reservations"];
}

const sliceApprovals = 64;

/**
 * Verifies approvals during a walk from the first row. Each act must be lawful for the rows before it, each use must
 * belong to one check, and the tables must have what the rows say. Memory grows only with the approvals that are open.
 */
export class ApprovalWalk {
  readonly #tables: Tables;
  readonly #digest: (text: string) => string;
  readonly #open = new Map<number, TrackedApproval>();
  /** The row of the check that used an approval, until the act that says so. */
  readonly #used = new Map<number, number>();
  #ended: Approval[] = [];
  /** The last check whose outcome was erased: it may have been a repeat of any call that waited then. */
  #erasedRepeat = 0;
  /** Rows about the approval of a row that opened none, as far as the walk knows. */
  #unmet: ApprovalReference[] = [];
  #stops: Stops = noStops;
  readonly #grants: GrantWalk;

  /** @param digest makes keyed digests */
  constructor(tables: Tables, digest: (text: string) => string) {
    this.#tables = tables;
    this.#digest = digest;
    this.#grants = new GrantWalk((rows) => this.#rowsAt(rows), digest);
  }

  /** Takes the next row, whose evidence is verified. */
  take(leaf: Leaf, row: StoredRow): Mistake | undefined {
    if (leaf.kind === "change") return this.#act(leaf, row);
    const stray = leaf.kind === "check" ? this.#checkStops(leaf, row) : undefined;
    if (stray !== undefined) return stray;
    if (leaf.kind === "check" && mayAsk(leaf)) {
      if (missingParts(row.evidence).includes("outcome")) this.#erasedRepeat = leaf.seq;
      this.#check(leaf, row);
    }
    return undefined;
  }

  #check({ at, seq }: Leaf, row: StoredRow): void {
    const { how, approval: about } = readJudgement(row.evidence) ?? {};
    const opened = how === "opened" && missingParts(row.evidence).length === 0 ? openedBy(row) : undefined;
    if (opened !== undefined) {
      const reserved = (readEffects(row.evidence) ?? []).filter((effect) => effect.held === true);
      this.#open.set(seq, { approval: opened, reservations: reserved.map((effect) => ({ ...effect, at })) });
    }
    if (about === undefined) return;
    const known = this.#open.get(about);
    if (how === "attached") {
      if (known === undefined) this.#unmet.push({ seq, row: about });
      else this.#open.set(about, { ...known, approval: attach(known.approval, seq, ownAmounts(row)) });
    }
    if (how === "used") this.#used.set(about, seq);
  }

  /** A call in the scope of a stop must be blocked, and only such a call may say that it was stopped. */
  #checkStops(leaf: Leaf, row: StoredRow): Mistake | undefined {
    const { answered, key, seq, verdict } = leaf;
    const { active } = this.#stops;
    // Only a stricter answer than the verdict needs a reason.
    if (active.length === 0 && (answered !== "BLOCK" || verdict === "BLOCK")) return undefined;
    const { as, how, stop: claimed } = readJudgement(row.evidence) ?? {};
    if (active.length === 0 && how !== "stopped") return undefined;
    const call = readCall(leaf, row.evidence);
    if (call === undefined) return undefined;
    const named = { key: key ?? "", session: call.session_id, tool: call.tool, alias: call.alias };
    const covering = active.filter(
      (stop) =>
        isStopped(stop.scope, named) || (as !== undefined && stop.row === claimed && namesIt(stop, as, named.key)),
    );
    const [stop] = covering;
    const isClaimed = how === "stopped";
    const isRight =
      stop === undefined
        ? !isClaimed
        : answered === "BLOCK" && (!isClaimed || covering.some(({ row: set }) => set === claimed));
    if (isRight) return undefined;
    const expected = stop === undefined ? "a call that no stop covers" : `BLOCK, because row ${stop.row} stopped it`;
    const found = isClaimed ? `${answered}, because row ${claimed} stopped it` : String(answered);
    return { seq, problem: "the answer does not follow from the stops before it", expected, found };
  }

  /** The row of an open approval that a stop ends or reopens without reason, or that it leaves out. */
  #strayOf(
    { also, approvals, scope }: Extract<StopAct, { readonly act: "stop.set" }>,
    { ends, reopens }: Pick<Extract<ApprovalAct, { readonly act: "stop.set" }>, "ends" | "reopens">,
  ): number | undefined {
    const open = [...this.#open.values()].map(({ approval }) => approval);
    const expected = stoppedApprovals(open, wholeScope(scope, also), approvals);
    const stray = open.find(
      (approval) =>
        ends.includes(approval.row) !== expected.ends.includes(approval) ||
        reopens.includes(approval.row) !== expected.reopens.includes(approval),
    );
    return stray?.row;
  }

  #act(leaf: Leaf, changed: StoredRow): Mistake | undefined {
    const { evidence } = changed;
    const { seq, at, key } = leaf;
    const act = actOf(leaf, evidence);
    const stray = this.#grants.take(leaf, changed, act);
    if (stray !== undefined) return stray;
    const stop = stopActIn(changed);
    if (stop !== undefined) this.#stops = withStopAct(this.#stops, stop);
    if (act?.act === "stop.set" && stop?.act.act === "stop.set") {
      const other = this.#strayOf(stop.act, act);
      if (other !== undefined) return unlawful(seq, "a stop of exactly the approvals in its scope", `row ${other}`);
    }
    if (act === undefined) {
      for (const [from, to] of endedBy(leaf, evidence))
        this.#endAll(from, to, isLoss(leaf, evidence) ? seq : undefined);
      const isUnknown = leaf.act?.startsWith("approval.") === true;
      return isUnknown ? unlawful(seq, "an act that this version knows", leaf.act ?? "") : undefined;
    }
    for (const row of listChangedRows(act)) {
      const known = this.#open.get(row);
      const after = known && applyAct(known.approval, act, { seq, at, by: key ?? "" });
      const place = after?.denial?.call?.place;
      if (after !== undefined && place !== undefined && place !== this.#digest(sessionToolName(after)))
        return unlawful(seq, "the key, session and tool of the denied call", place);
      if (known === undefined)
        this.#unmet.push({ seq, row, ...(act.act === "approval.deny" && { denial: denialOf(act, { seq, at }) }) });
      else if (after === undefined)
        return unlawful(seq, `${act.act} of an approval that permits it`, `row ${row} is ${known.approval.status}`);
      else if (isOpen(after)) this.#open.set(row, { ...known, approval: after });
      else {
        this.#open.delete(row);
        this.#ended.push(after);
      }
    }
    for (const { approval, row } of act.act === "approval.use" ? act.uses : []) {
      if (this.#used.get(approval) !== row) this.#unmet.push({ seq, row, approval });
      this.#used.delete(approval);
    }
    return undefined;
  }

  /** @param cancelledAt the row that cancelled them; undefined if it erased a part of their rows */
  #endAll(from: number, to: number, cancelledAt: number | undefined): void {
    for (const [row, { approval }] of this.#open) {
      if (row < from || row > to) continue;
      this.#open.delete(row);
      if (cancelledAt !== undefined) this.#ended.push(cancelledBy(approval, cancelledAt));
    }
  }

  /** Compares what ended since the last step. */
  async step(): Promise<Mistake | undefined> {
    const [ended, unmet] = [this.#ended, this.#unmet];
    this.#ended = [];
    this.#unmet = [];
    for (const { seq, row, approval, denial } of unmet) {
      const [found] = await this.#rowsAt([row]);
      const { how, approval: used } = readJudgement(found?.evidence ?? "") ?? {};
      const isUse = approval !== undefined && how === "used" && used === approval;
      const isErased = found !== undefined && missingParts(found.evidence).length > 0;
      if (!isUse && !isErased) return unlawful(seq, `an approval or a use in row ${row}`, "a row without it");
      if (denial?.call !== undefined) {
        const [kept] = await this.#approvalsAt([row]);
        const key = parseLeaf(found?.leaf ?? "")?.key ?? "";
        const [expected, told] = [denialText(denial, key), kept === undefined ? "no such approval" : keptDenial(kept)];
        if (told !== expected)
          return { seq, problem: "the tables of approvals differ from the rows", expected, found: told };
      }
    }
    const closed = ended.map((approval): TrackedApproval => ({ approval, reservations: [] }));
    return (await this.#grants.step()) ?? this.#compare(closed, undefined);
  }

  /**
   * Compares what is open at the end, and looks for approvals that no row opened.
   *
   * @param through the last row of the walk; changes by later rows are ignored
   */
  async end(through: number): Promise<Mistake | undefined> {
    const open = [...this.#open.values()];
    for (let from = 0; from < open.length; from += sliceApprovals) {
      const broken = await this.#compare(open.slice(from, from + sliceApprovals), through);
      if (broken !== undefined) return broken;
    }
    return reportDamageAt(through + 1, async () => (await this.#findStray(through)) ?? this.#findStrayAmount(through));
  }

  /** Looks for an approval that no row opened. */
  async #findStray(through: number): Promise<Mistake | undefined> {
    for await (const approvals of pagesOf(this.#tables, "approvals", { limit: sliceApprovals })) {
      const asking = new Map((await this.#rowsAt(approvals.map(({ seq }) => seq))).map((row) => [row.seq, row]));
      for (const { seq } of approvals) {
        const row = asking.get(seq);
        if (row !== undefined && (seq > through || openedBy(row) !== undefined)) continue;
        if (row !== undefined && (await this.#isOfErasedRow(row))) continue;
        const problem = "an approval is kept for a row that opened none";
        return { seq, problem, expected: "none", found: "one" };
      }
    }
    return undefined;
  }

  /** Looks for the lowest row that reserves amounts although it has no open approval. */
  async #findStrayAmount(through: number): Promise<Mistake | undefined> {
    let lowest = Infinity;
    for await (const reservations of pagesOf(this.#tables, "holds"))
      for (const { seq } of reservations) if (!this.#open.has(seq)) lowest = Math.min(lowest, seq);
    if (lowest > through) return undefined;
    return { seq: lowest, problem: "a reserved amount has no open approval", expected: "none", found: "one" };
  }

  async #rowsAt(rows: readonly number[]): Promise<readonly StoredRow[]> {
    return reportDamageAt(rows, () => rowsAt(this.#tables, rows));
  }

  async #approvalsAt(rows: readonly number[]): Promise<readonly TabledApproval[]> {
    return reportDamageAt(rows, () => approvalsAt(this.#tables, rows));
  }

  /** True if the row was erased, and its approval is gone meanwhile, or a denial that applies without its call. */
  async #isOfErasedRow(row: StoredRow): Promise<boolean> {
    if (missingParts(row.evidence).length === 0) return false;
    const [kept] = await this.#approvalsAt([row.seq]);
    if (kept === undefined) return true;
    const { denial } = readProgress(kept.record);
    if (denial?.call === undefined) return false;
    const [denying] = await this.#rowsAt([denial.row]);
    const leaf = denying && parseLeaf(denying.leaf);
    const act = leaf && actOf(leaf, denying.evidence);
    return act?.act === "approval.deny" && act.row === row.seq && act.hash === leafHash(row.leaf);
  }

  /** @param through the last row of the walk if the approvals are open; undefined if they have ended */
  async #compare(approvals: readonly TrackedApproval[], through: number | undefined): Promise<Mistake | undefined> {
    if (approvals.length === 0) return undefined;
    const rows = approvals.map(({ approval }) => approval.row);
    const tabled = new Map((await this.#approvalsAt(rows)).map((each) => [each.seq, each]));
    for (const { approval, reservations } of approvals) {
      const view = approval.row < this.#erasedRepeat ? withoutRepeats : asKept;
      const expected = formatApproval(view(storedApproval(approval, this.#digest)), reservations);
      const kept = tabled.get(approval.row);
      const { reservations: stored = [] } = kept ?? {};
      const current = through === undefined ? stored : recordedIn(stored, reservations);
      const found = kept === undefined ? "no such approval" : formatApproval(view(kept), current);
      if (found === expected || (await this.#isLater(approval.row, kept, through))) continue;
      const seq = approval.closed ?? approval.row;
      return { seq, problem: "the tables of approvals differ from the rows", expected, found };
    }
    return undefined;
  }

  /** True if a row after the walk changed the approval, or erased a part of its row. That row must be in the ledger. */
  async #isLater(row: number, kept: TabledApproval | undefined, through: number | undefined): Promise<boolean> {
    if (kept !== undefined) {
      const { changed = 0 } = readProgress(kept.record);
      if (through === undefined || !Number.isSafeInteger(changed) || changed <= through) return false;
      return (await this.#rowsAt([changed])).length > 0;
    }
    const [found] = await this.#rowsAt([row]);
    return found !== undefined && missingParts(found.evidence).length > 0;
  }
}

/** What the table keeps of the denial of an erased call, as far as the row of the denial says it. */
function denialText(denial: Denial, key: string): string {
  const record = { closed: denial.row, denial, status: "denied", successor: null };
  const columns = { attach: denial.call?.attach ?? null, ends: denialEnd(denial), key, status: "denied" };
  return canonical({ ...columns, record } as unknown as Canonical);
}

function keptDenial({ attach: digest, ends, key, record: text, status }: TabledApproval): string {
  const {
    asked: _asked,
    changed: _changed,
    own: _own,
    useBy: _useBy,
    votes: _votes,
    ...record
  } = readProgress(text, { record: text });
  return canonical({ attach: digest, ends, key, status, record } as unknown as Canonical);
}

/** Returns the amounts under the counters of the row. A counter that came into force later may have more. */
function recordedIn(
  reservations: TabledApproval["reservations"],
  recorded: TabledApproval["reservations"],
): TabledApproval["reservations"] {
  const counters = new Set(recorded.map(({ counter }) => counter));
  return reservations.filter(({ counter }) => counters.has(counter));
}

/** False if the leaf alone says that the call met no approval, or that its approval ends with an act. */
function mayAsk({ answered, mode, verdict }: Leaf): boolean {
  return answered === "ESCALATE" || (answered === "ALLOW" && verdict !== "ALLOW" && mode !== "observe");
}

function formatApproval(
  { seq, attach: digest, key, place, status, ends, record }: StoredApproval,
  reservations: TabledApproval["reservations"],
): string {
  const amounts = reservations
    .map(({ counter, key: of, at, amount }) => [counter, of, at, amount].join(" "))
    .toSorted();
  return JSON.stringify([seq, digest, key, place, status, ends, record, amounts]);
}

const asKept = (approval: StoredApproval): StoredApproval => approval;

/** Leaves out what the repeats of a call change, for a call of which a repeat may have been erased. */
function withoutRepeats(approval: StoredApproval): StoredApproval {
  const {
    asked: _asked,
    changed: _changed,
    own: _own,
    ...rest
  } = readProgress(approval.record, { record: approval.record });
  return { ...approval, record: JSON.stringify(rest) };
}
