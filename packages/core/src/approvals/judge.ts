import { addDecimals } from "../wire/mod.ts";
import { readApprovalId } from "./binding.ts";
import {
  statusAt,
  type Approval,
  type ApprovalRequest,
  type Denial,
  type FormDigests,
  type OwnAmount,
  type CauseValues,
  type ApprovalStatus,
} from "./approval.ts";
import { distance, isAbove } from "./decimals.ts";
import type { Grant } from "./grant.ts";
import type { Quorum } from "./quorum.ts";

/** What became of an ESCALATE, or of an approval that a call named. */
export const hows = ["opened", "attached", "used", "grant", "denied", "capped", "closed", "stopped"] as const;
export type How = (typeof hows)[number];

/** What became of a call, as its row records it. */
export interface RecordedJudgement {
  readonly how?: How | undefined;
  /** True if the call named an approval that is unknown, or bound to another call. */
  readonly mismatch?: true;
  /** The row whose approval the call used or attached to, which blocked it, or which its own approval replaces. */
  readonly approval?: number;
  /** The row of the call's own open approval: what that reserves did not count against the call. */
  readonly own?: number;
  /** The row that set the stop which blocked the call. */
  readonly stop?: number;
  /** The tool or the session that the stop names, if the call has another name. */
  readonly as?: string;
  /** The row of the grant that let the call through, and the rules that it lifted. */
  readonly grant?: number;
  readonly causes?: ApprovalRequest["causes"];
  /** The forms of its command line, if it has any. */
  readonly forms?: FormDigests;
}

/** A call that the contract has judged, and that a person may have to decide. */
export interface CheckedCall {
  readonly at: number;
  readonly key: string;
  readonly session: string | null;
  readonly tool: string;
  readonly rule: string;
  /** The answer that the contract and the mode give. */
  readonly answered: "ALLOW" | "BLOCK" | "ESCALATE";
  /** The approval that the call names. */
  readonly named: string | undefined;
  /** Returns the digest of exactly this call, in its session or in any. */
  readonly binding: (sessions: ApprovalRequest["sessions"]) => string;
  readonly attach: string;
  /** Returns the digest of its `sessionToolName`. */
  readonly sessionTool: () => string;
  /** Returns the digest of its subject. */
  readonly subject: () => string | undefined;
  /** What an approval would be asked for now; undefined unless the answer is ESCALATE. */
  readonly asking: ApprovalRequest | undefined;
  /** Finds a grant that covers the call. */
  readonly grantFor?: (asking: ApprovalRequest) => CoveringGrant | undefined;
}

/** The approvals that a call may meet. */
export interface KnownApprovals {
  readonly at: (row: number) => Approval | undefined;
  /** Those of calls with this digest that are open now. There is at most one for each session. */
  readonly openWith: (attach: string) => readonly Approval[];
  /** Those of a key that a person denied. */
  readonly findDenied: (key: string) => readonly Approval[];
  /** How many are open in a session, with its key and in the ledger. */
  readonly openCounts: (key: string, session: string | null) => OpenLimits;
  /** Counts an approval's votes with the keys and groups of now. */
  readonly quorum: (approval: Approval) => Quorum;
}

export interface OpenLimits {
  readonly key: number;
  readonly session: number;
  readonly ledger: number;
}

/** A part in which a call differs from the call of an approval; `id` if there is no such approval. */
export type Misfit = "id" | "input" | "key" | "session" | "spelling" | "subject" | "tool";

/** How a call is answered, and why. */
export type Judgement = (
  | { readonly how: undefined }
  | { readonly how: "opened"; readonly supersedes: Approval | undefined }
  | { readonly how: "attached"; readonly approval: Approval }
  | { readonly how: "used"; readonly approval: Approval; readonly needed: boolean; readonly by: readonly string[] }
  | ({ readonly how: "grant"; readonly supersedes: Approval | undefined } & CoveringGrant)
  | {
      readonly how: "denied";
      readonly approval: Approval;
      /** The number of denials under a rule within an hour that blocks further calls, if that is why; else 0. */
      readonly denials: number;
    }
  | { readonly how: "closed"; readonly approval: Approval; readonly status: ApprovalStatus }
  | { readonly how: "capped"; readonly waiting: number }
) & {
  /** The parts in which the call differs from the approval that it names. */
  readonly misfits: readonly Misfit[];
};

export interface CoveringGrant {
  readonly grant: Grant;
  /** The people whose votes for it count. */
  readonly by: readonly string[];
  /** What the call adds to the grant's amounts. */
  readonly amounts: Readonly<Record<string, string>>;
}

const hourMs = 3_600_000;
const denialsMax = 3;

/**
 * Judges what an approval does for a call, after the contract has judged the call. Only an explicit act of a person, or an
 * approval that is closed, makes an answer stricter than the contract. Only an approval makes it more lenient.
 */
export function judgeCall(ask: CheckedCall, known: KnownApprovals, limits: OpenLimits): Judgement {
  const { at, answered } = ask;
  const found = ask.named === undefined ? undefined : approvalNamed(ask.named, known);
  const misfits = ask.named === undefined ? [] : found === undefined ? (["id"] as const) : misfitsOf(ask, found);
  const named = misfits.length === 0 ? found : undefined;
  const quorum = named !== undefined && statusAt(named, at) === "approved" ? known.quorum(named) : undefined;
  const used = named !== undefined && quorum?.isMet === true && { approval: named, by: quorum.people };
  if (used !== false && answered === "ALLOW") return { how: "used", misfits, ...used, needed: false };
  if (answered !== "ESCALATE" || ask.asking === undefined) return { how: undefined, misfits };
  const denial = denialFor(ask, ask.asking, known);
  const isDenied = denial !== undefined && denial.denials === 0;
  // A person's yes to this call counts more than the number of denials, but not more than a denial that applies to it.
  if (used !== false && !isDenied && isWithin(ask.asking, used.approval.asking))
    return { how: "used", misfits, ...used, needed: true };
  if (denial !== undefined) return { how: "denied", misfits, ...denial };
  if (named !== undefined) {
    const status = statusAt(named, at);
    if (status === "denied") return { how: "denied", misfits, approval: named, denials: 0 };
    if (status !== "pending" && status !== "approved") return { how: "closed", misfits, approval: named, status };
  }
  const open = known.openWith(ask.attach);
  const same = open.find(({ asking }) => asking.binding === ask.binding(asking.sessions));
  const granted = ask.grantFor?.(ask.asking);
  if (granted !== undefined) return { how: "grant", misfits, supersedes: same, ...granted };
  if (same !== undefined && isSameCause(ask.asking, same.asking)) {
    // The call does not wait for a yes that it cannot use any more.
    const isMoved = statusAt(same, at) === "approved" && !isWithin(ask.asking, same.asking) && known.quorum(same).isMet;
    if (!isMoved) return { how: "attached", misfits, approval: same };
  }
  const waiting = waitingIfFull(known.openCounts(ask.key, ask.session), limits);
  if (waiting !== undefined && same === undefined) return { how: "capped", misfits, waiting };
  return { how: "opened", misfits, supersedes: same };
}

function approvalNamed(text: string, known: KnownApprovals): Approval | undefined {
  const id = readApprovalId(text);
  const found = id === undefined ? undefined : known.at(id.row);
  return found?.hash.startsWith(id?.digits ?? "-") === true ? found : undefined;
}

function misfitsOf(ask: CheckedCall, approval: Approval): readonly Misfit[] {
  const { asking, key } = approval;
  const isSame = asking.binding === ask.binding(asking.sessions) && key === ask.key;
  return isSame ? [] : differences({ ...ask, asking: { attach: ask.attach, subject: ask.subject() } }, approval);
}

/** What says in which parts two calls differ. */
interface BindingParts extends Pick<CheckedCall, "key" | "session" | "tool"> {
  readonly asking: Pick<ApprovalRequest, "attach" | "sessions"> & { readonly subject?: string | undefined };
}

/** The parts in which a call differs from that of an approval which has another binding. */
export function differences(call: BindingParts, of: BindingParts): readonly Misfit[] {
  // The other parts of another key's call are not told.
  if (call.key !== of.key) return ["key"];
  const found: Misfit[] = [];
  if (call.tool !== of.tool) found.push("tool");
  if (found.length === 0 && call.asking.attach !== of.asking.attach) found.push("input");
  if (call.session !== of.session && of.asking.sessions !== "any") found.push("session");
  if (call.asking.subject !== of.asking.subject) found.push("subject");
  return found.length === 0 ? ["spelling"] : found;
}

/** Do the same rules ask now, with the same meaning, and may still the same people approve it? */
function isSameCause(now: ApprovalRequest, shown: ApprovalRequest): boolean {
  const names = Object.keys(now.causes);
  return (
    names.length > 0 &&
    (shown.self !== true || now.self === true) &&
    names.length === Object.keys(shown.causes).length &&
    names.every((name) => now.causes[name] === shown.causes[name])
  );
}

/** Is the call still the one that the person was shown, with the same causes and at most the same risk? */
function isWithin(now: ApprovalRequest, shown: ApprovalRequest): boolean {
  return isSameCause(now, shown) && arePinned(now, shown) && isNoRisk(now.shown, shown.shown);
}

function arePinned(now: ApprovalRequest, shown: ApprovalRequest): boolean {
  const names = [...new Set([...Object.keys(now.pins), ...Object.keys(shown.pins)])];
  return names.every((name) => name in now.pins && name in shown.pins && now.pins[name] === shown.pins[name]);
}

/** No counter is higher than shown, no number has moved further than the contract lets it, and other facts are the same. */
function isNoRisk(now: CauseValues, shown: CauseValues): boolean {
  const counters = Object.entries(now.counters).every(([id, value]) => {
    const before = shown.counters[id];
    return before !== undefined && !isAbove(value, before);
  });
  const facts = Object.entries(now.facts).every(([path, [text, drift]]) => {
    const before = shown.facts[path]?.[0];
    if (before === undefined || before === null || text === null || drift === null) return before === text;
    if (before === "null" || text === "null") return before === text; // a number or null: null has no distance
    return !isAbove(distance(text, before), drift);
  });
  return counters && facts;
}

/**
 * A denial that applies to the call: of the same call, of its tool in its session, or of one of its rules for its key. After
 * a few denials under one rule, the last of them applies to further calls.
 */
function denialFor(
  { at, key, session, tool, attach, sessionTool }: CheckedCall,
  { causes }: ApprovalRequest,
  known: KnownApprovals,
): { readonly approval: Approval; readonly denials: number } | undefined {
  // By their ends, so that every store names the same denial.
  const denied = known.findDenied(key).toSorted((a, b) => endOf(a) - endOf(b) || (a.closed ?? 0) - (b.closed ?? 0));
  const found = denied.find(({ asking, denial, ...of }) => {
    if (denial === null || at >= denial.until) return false;
    if (asking.attach === attach) return true;
    if (denial.scope === "tool")
      return denial.call === undefined
        ? of.tool === tool && of.session === session
        : denial.call.place === sessionTool();
    return denial.scope === "rule" && Object.hasOwn(causes, of.rule);
  });
  if (found !== undefined) return { approval: found, denials: 0 };
  const recent = denied.filter(({ denial }) => at < (denial?.at ?? 0) + hourMs);
  for (const rule of Object.keys(causes)) {
    const under = recent.filter((each) => each.rule === rule);
    const last = under.at(-1);
    if (last !== undefined && under.length >= denialsMax) return { approval: last, denials: denialsMax };
  }
  return undefined;
}

/** Until when a denial matters to other calls. */
function endOf({ denial }: Approval): number {
  return denial === null ? 0 : Math.max(denial.until, denial.at + hourMs);
}

/** What says whether a denial can matter to other calls of its key. */
export interface DenialSummary extends Pick<Denial, "at" | "scope"> {
  /** The rule that decided the denied call. */
  readonly rule: string;
  /** Milliseconds since the epoch: until then the denial matters. */
  readonly ends: number;
}

/**
 * Returns the denials of a key that can matter to a call which was not denied itself: those of a tool or a rule, and the
 * last ones under each rule within an hour. A key may have thousands of others.
 *
 * @param denials by their end
 */
export function denialsThatMatter<Each extends DenialSummary>(denials: readonly Each[], at: number): readonly Each[] {
  const found: Each[] = [];
  const counts = new Map<string, number>();
  for (const each of denials.toReversed()) {
    const count = counts.get(each.rule) ?? 0;
    const isLast = at < each.at + hourMs && count < denialsMax;
    if (at < each.ends && (each.scope !== "call" || isLast)) found.push(each);
    if (isLast) counts.set(each.rule, count + 1);
  }
  return found.toReversed();
}

/**
 * Returns how many calls wait if no more may; undefined if there is room. A session gets at most a quarter of its key's
 * room, and the first card of a session finds a reserve of a quarter.
 *
 * @param open the approvals that are open in the call's session, with its key and in its ledger
 */
export function waitingIfFull(open: OpenLimits, limits: OpenLimits): number | undefined {
  const sessionMax = Math.max(1, Math.min(limits.session, Math.floor(limits.key / 4)));
  if (open.ledger >= limits.ledger) return open.ledger;
  if (open.session >= sessionMax) return open.session;
  const keyMax = open.session === 0 ? limits.key : Math.max(1, Math.floor((limits.key * 3) / 4));
  return open.key >= keyMax ? open.key : undefined;
}

/** The value of a counter without the amounts that the approval's own calls added in its window. */
export function withoutOwn(
  value: string,
  own: readonly OwnAmount[],
  { counter, key, after }: { readonly counter: string; readonly key: string; readonly after: number },
): string {
  return own.reduce(
    (left, each) =>
      each.counter === counter && each.key === key && each.at > after ? addDecimals(left, `-${each.amount}`) : left,
    value,
  );
}
