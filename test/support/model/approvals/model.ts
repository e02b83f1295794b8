/**
 * A second implementation of the approvals, written from spec/approvals.md alone. It keeps a list of events and counts
 * everything again from the list for every answer. It shares no code with the gate.
 */
import {
  attachText,
  bindingText,
  judge,
  needsOfSend,
  room,
  type Call,
  type Cause,
  type Need,
  type Terms,
  type Values,
  type Verdict,
} from "./contract.ts";

const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;

export type Mode = "enforce" | "assist";
export type Scope = "call" | "tool" | "rule";
export type How = "opened" | "attached" | "used" | "denied" | "capped" | "closed";
export type Status = "pending" | "approved" | "used" | "denied" | "expired" | "cancelled" | "superseded";

/** A person's key, as the keys say now. */
export interface Voter {
  readonly groups: readonly string[];
  /** Who made the key within a day. */
  readonly maker: string | undefined;
  readonly isActive: boolean;
}

/** What an approval was opened with. */
interface Opening {
  readonly causes: readonly Cause[];
  readonly needs: readonly Need[];
  readonly decideBy: number;
  readonly useWithinMs: number;
  /** A BLOCK that assist mode softened pins what any rule of the tool pins. */
  readonly pinsTag: boolean;
  readonly shown: { readonly tries: number; readonly price: number | undefined; readonly tag: string | undefined };
}

interface Check {
  readonly kind: "check";
  readonly n: number;
  readonly at: number;
  readonly call: Call;
  /** The contract's verdict, whatever was answered. */
  readonly verdict: Verdict;
  readonly answered: Verdict;
  readonly how: How | undefined;
  /** The approval that it used, attached to, or replaced. */
  readonly of: number | undefined;
  readonly opening: Opening | undefined;
}

type Event =
  | Check
  | {
      readonly kind: "vote";
      readonly at: number;
      readonly of: number;
      readonly person: string;
      readonly decision: "approve" | "deny";
      readonly until: number;
      readonly scope: Scope;
      readonly useBy: number | null;
    }
  | { readonly kind: "cancel"; readonly at: number; readonly of: number }
  | { readonly kind: "expire"; readonly at: number; readonly of: number }
  | { readonly kind: "erase"; readonly at: number; readonly of: number; readonly part: string };

/** What an approval is, as its events say. */
interface State {
  readonly check: Check;
  readonly opening: Opening;
  /** Null also after its call was erased. */
  session: string | null;
  status: Status;
  useBy: number | null;
  votes: string[];
  denial: { readonly at: number; readonly until: number; readonly scope: Scope; readonly person: string } | undefined;
  askings: Check[];
  successor: number | undefined;
}

/** The answer to a check, with approvals named by the number of the check that opened them. */
export interface Answered {
  readonly verdict: Verdict;
  readonly how: How | undefined;
  readonly mismatch: boolean;
  readonly of: number | undefined;
  /** Where several denials apply, the gate may name any of them. */
  readonly denials: readonly number[];
  readonly own: number | undefined;
  readonly values: Values | undefined;
  readonly approval: ApprovalMember | undefined;
}

export interface ApprovalMember {
  readonly id: number | null;
  readonly status: Status | "capped";
  readonly new: boolean;
  readonly decideBy: number | null;
  readonly useBy: number | null;
  readonly needs: number;
  readonly has: number;
  readonly next: "wait" | "check" | "retry" | "none";
}

/** A decision's answer: the code of a refusal, or the state. */
export type Decided =
  | { readonly code: string }
  | { readonly status: Status; readonly useBy: number | null; readonly has: number; readonly isRow: boolean };

export interface Asking {
  readonly at: number;
  readonly call: Call;
  /** The approval that the check names; "unknown" is one that never was. */
  readonly names: number | "unknown" | undefined;
}

/** Only a call that asks a person again, or would do so without a cap, counts as an asking. */
const isAsking = (how: How | undefined): boolean => how === "opened" || how === "capped";
const isOpen = (state: State | undefined): boolean => state?.status === "pending" || state?.status === "approved";

export class ApprovalsModel {
  readonly #events: Event[] = [];
  #checks = 0;
  mode: Mode = "enforce";
  terms: Terms;
  readonly voters: Map<string, Voter>;
  readonly #personOf: (key: string) => string;

  constructor(terms: Terms, voters: Map<string, Voter>, personOf: (key: string) => string) {
    this.terms = terms;
    this.voters = voters;
    this.#personOf = personOf;
  }

  /** Every approval, as all events up to now say. */
  states(): ReadonlyMap<number, State> {
    const states = new Map<number, State>();
    for (const event of this.#events) {
      if (event.kind === "check") this.#follow(states, event);
      else {
        const state = states.get(event.of);
        if (state === undefined) continue;
        if (event.kind === "cancel") state.status = "cancelled";
        else if (event.kind === "erase" && state.status !== "denied") states.delete(event.of);
        else if (event.kind === "erase") state.session = event.part === "call" ? null : state.session;
        else if (event.kind === "expire") state.status = "expired";
        else if (event.decision === "deny") {
          state.status = "denied";
          state.denial = event;
        } else {
          state.votes = [...state.votes.filter((person) => person !== event.person), event.person];
          state.status = event.useBy === null ? "pending" : "approved";
          state.useBy = event.useBy;
        }
      }
    }
    return states;
  }

  #follow(states: Map<number, State>, check: Check): void {
    const { n, opening, how, of } = check;
    const other = of === undefined ? undefined : states.get(of);
    if (how === "attached" && other !== undefined) other.askings.push(check);
    if (how === "used" && other !== undefined) other.status = "used";
    if (opening === undefined) return;
    if (other !== undefined) {
      other.status = "superseded";
      other.successor = n;
    }
    states.set(n, {
      check,
      opening,
      session: check.call.session,
      status: "pending",
      useBy: null,
      votes: [],
      denial: undefined,
      askings: [check],
      successor: undefined,
    });
  }

  /** The state of an approval at a time, whether or not a row says that its time is over. */
  statusAt(n: number, at: number): Status | undefined {
    const state = this.states().get(n);
    if (state === undefined) return undefined;
    return isDue(state, at) ? "expired" : state.status;
  }

  /** When an approval ends if nobody acts. */
  endOf(n: number): number | undefined {
    const state = this.states().get(n);
    return state && endOf(state);
  }

  #values({ call, at }: Asking, own: number | undefined): Values {
    const states = this.states();
    const values = { spent: 0, held: 0, parked: 0, freed: 0, tries: 0, asked: 0 };
    for (const event of this.#events) {
      if (event.kind !== "check") continue;
      const { call: past, at: then, verdict, answered, how, n } = event;
      const isSend = past.tool === "pay.send";
      const isReserved = how === "opened" && isOpen(states.get(n)) && n !== own;
      const isOfWallet = isSend && past.wallet === call.wallet;
      if (isOfWallet && then > at - day && (answered === "ALLOW" || isReserved)) values.spent += Number(past.amount);
      if (isOfWallet && then > at - day && isReserved) values.held += Number(past.amount);
      const isOfSession = call.session !== null && past.session === call.session && past.key === call.key;
      if (isSend && isOfSession && then > at - 20 * minute && isReserved) values.parked += 1;
      if (isSend && past.key === call.key && then > at - 2 * hour && answered === "ALLOW")
        values.freed += Number(past.amount);
      if (isOfWallet && then > at - 10 * minute) values.tries += 1;
      if (past.key === call.key && then > at - hour && verdict === "ESCALATE" && isAsking(how)) values.asked += 1;
    }
    return values;
  }

  ask(asking: Asking): Answered {
    const { call, at, names } = asking;
    for (const [n, state] of this.states()) if (isDue(state, at)) this.#events.push({ kind: "expire", at, of: n });
    const states = this.states();
    const own = [...states.values()].find(
      (state) => isOpen(state) && bindingText(state.check.call) === bindingText(call),
    );
    const given = typeof names === "number" ? states.get(names) : undefined;
    const named = given !== undefined && bindingText(given.check.call) === bindingText(call) ? given : undefined;
    const values = this.#values(asking, own?.check.n);
    const judged = judge(call, values, this.terms);
    const isSoftened = this.mode === "assist" && judged.verdict === "BLOCK" && !judged.isFinal;
    const verdict = isSoftened ? "ESCALATE" : judged.verdict;
    const causes = isSoftened ? [...judged.blocking, ...judged.escalating] : judged.escalating;
    const opening: Opening = {
      causes,
      needs: isSoftened ? needsOfSend : causes.map(({ need }) => need),
      decideBy: at + (isSoftened ? 30 * minute : Math.min(...causes.map(({ decideWithinMs }) => decideWithinMs))),
      useWithinMs: Math.min(...causes.map(({ useWithinMs }) => useWithinMs)),
      pinsTag: isSoftened || causes.some((cause) => cause.pinsTag),
      shown: {
        tries: values.tries,
        price: call.price === undefined ? undefined : Number(call.price),
        tag: call.tag,
      },
    };
    const reached = this.#reach({ verdict, asking, opening, same: own, named });
    const { n } = this.#record(asking, judged.verdict, reached);
    return {
      verdict: reached.answered,
      how: reached.how,
      mismatch: names !== undefined && named === undefined,
      of: reached.of,
      denials: reached.denials ?? [],
      own: call.tool === "pay.send" ? own?.check.n : undefined, // only those calls add to a counter that reserves
      values: call.tool === "pay.send" ? values : undefined,
      approval: this.#member(n, reached, call, at),
    };
  }

  #reach(found: Found): Reached {
    const { verdict, asking, opening, same, named } = found;
    const { call, at } = asking;
    const isReady = named?.status === "approved" && this.#isMet(named);
    if (verdict === "BLOCK") return { answered: "BLOCK" };
    if (verdict === "ALLOW")
      return isReady ? { answered: "ALLOW", how: "used", of: named.check.n } : { answered: "ALLOW" };
    const denials = this.#denials(call, opening.causes, at);
    if (denials.length > 0) return { answered: "BLOCK", how: "denied", of: denials[0], denials };
    if (isReady && isSame(named.opening.causes, opening.causes) && isNoRisk(named, opening, at))
      return { answered: "ALLOW", how: "used", of: named.check.n };
    const many = this.#manyDenials(call, opening.causes, at);
    if (many.length > 0) return { answered: "BLOCK", how: "denied", of: many[0], denials: many };
    if (named !== undefined && !isOpen(named))
      return { answered: "BLOCK", how: named.status === "denied" ? "denied" : "closed", of: named.check.n };
    if (same !== undefined) {
      const isUnusable = same.status === "approved" && this.#isMet(same) && !isNoRisk(same, opening, at);
      const how = isSame(same.opening.causes, opening.causes) && !isUnusable ? "attached" : "opened";
      return { answered: "ESCALATE", how, of: same.check.n, ...(how === "opened" && { opening }) };
    }
    if (this.#isFull(call)) return { answered: "ESCALATE", how: "capped" };
    return { answered: "ESCALATE", how: "opened", opening };
  }

  #record({ at, call }: Asking, verdict: Verdict, { answered, how, of, opening }: Reached): Check {
    this.#checks += 1;
    const check: Check = { kind: "check", n: this.#checks, at, call, verdict, answered, how, of, opening };
    this.#events.push(check);
    return check;
  }

  #member(n: number, { how, of, answered }: Reached, call: Call, at: number): ApprovalMember | undefined {
    if (how === undefined) return undefined;
    if (how === "capped")
      return { id: null, status: "capped", new: false, decideBy: null, useBy: null, needs: 0, has: 0, next: "retry" };
    const id = how === "opened" ? n : (of ?? 0);
    const state = this.states().get(id);
    if (state === undefined) throw new Error(`the model has no approval ${id}`);
    const { opening, status, useBy, check } = state;
    const isMine = bindingText(check.call) === bindingText(call);
    const next =
      answered !== "ESCALATE" ? "none" : status === "approved" && isMine && this.#isMet(state) ? "check" : "wait";
    const { needs } = opening;
    return {
      id,
      status: isDue(state, at) ? "expired" : status,
      new: how === "opened",
      decideBy: opening.decideBy,
      useBy,
      needs: neededBy(needs),
      has: this.#has(state),
      next,
    };
  }

  /** The approvals whose denials apply to this call. */
  #denials(call: Call, causes: readonly Cause[], at: number): readonly number[] {
    const denying = [...this.states().values()].filter(({ denial, opening, check }) => {
      if (denial === undefined || at >= denial.until || check.call.key !== call.key) return false;
      if (attachText(check.call) === attachText(call)) return true;
      if (denial.scope === "rule") return causes.some(({ rule }) => rule === ruleOf(opening));
      return denial.scope === "tool" && check.call.tool === call.tool && check.call.session === call.session;
    });
    return denying.map(({ check }) => check.n);
  }

  /** The approvals that were denied within an hour under a rule under which three were. */
  #manyDenials(call: Call, causes: readonly Cause[], at: number): readonly number[] {
    const lately = [...this.states().values()].filter(
      ({ denial, check }) => denial !== undefined && at < denial.at + hour && check.call.key === call.key,
    );
    return causes
      .map(({ rule }) => lately.filter(({ opening }) => ruleOf(opening) === rule))
      .filter((under) => under.length >= 3)
      .flatMap((under) => under.map(({ check }) => check.n));
  }

  #isFull(call: Call): boolean {
    const open = [...this.states().values()].filter(isOpen).map(({ check }) => check.call);
    const ofKey = open.filter(({ key }) => key === call.key);
    const ofSession = ofKey.filter(({ session }) => session === call.session); // calls without a session share one room
    const sessionMax = Math.min(room.session, Math.floor(room.key / 4));
    // A quarter of the key's room is kept for the first call of a session.
    const keyMax = ofSession.length === 0 ? room.key : Math.floor((room.key * 3) / 4);
    return open.length >= room.ledger || ofSession.length >= sessionMax || ofKey.length >= keyMax;
  }

  /** The people whose votes count now. If two votes are one voice, the vote that meets more needs counts. */
  #counted(state: State, extra: readonly string[]): readonly string[] {
    const asker = this.#personOf(state.check.call.key);
    const meets = (person: string): number => state.opening.needs.filter(({ by }) => this.#isIn(person, by)).length;
    const valid = [...state.votes, ...extra].filter((person) => {
      const voter = this.voters.get(person);
      return voter?.isActive === true && person !== asker && voter.maker !== asker;
    });
    const counted: string[] = [];
    const voicesOf = (person: string): readonly string[] => [person, this.voters.get(person)?.maker ?? person];
    for (const person of valid.toSorted((one, other) => meets(other) - meets(one))) {
      const taken = new Set(counted.flatMap(voicesOf));
      if (voicesOf(person).every((voice) => !taken.has(voice))) counted.push(person);
    }
    return counted;
  }

  #isMet(state: State, extra: readonly string[] = []): boolean {
    const counted = this.#counted(state, extra);
    return state.opening.needs.every(({ by, of }) => counted.filter((each) => this.#isIn(each, by)).length >= of);
  }

  /** As many votes as count, without those that are still missing from the group that misses most. */
  #has(state: State): number {
    const counted = this.#counted(state, []);
    const missing = state.opening.needs.map(({ by, of }) => of - counted.filter((each) => this.#isIn(each, by)).length);
    const needed = neededBy(state.opening.needs);
    return needed - Math.min(needed, Math.max(0, ...missing));
  }

  #isIn(person: string, group: string | null): boolean {
    return group === null || this.voters.get(person)?.groups.includes(group) === true;
  }

  #mayDecide(person: string, { opening }: State): boolean {
    return opening.needs.some(({ by }) => this.#isIn(person, by));
  }

  /** A person's decision about the approval that a check opened. */
  decide(
    person: string,
    of: number,
    {
      at,
      decision,
      scope,
      until,
    }: { readonly at: number; readonly decision: "approve" | "deny"; readonly scope: Scope; readonly until: number },
  ): Decided {
    const state = this.states().get(of);
    const voter = this.voters.get(person);
    if (state === undefined) return { code: "not-found" };
    if (voter?.isActive !== true) return { code: "not-an-approver" };
    if (!this.#mayDecide(person, state)) return { code: "not-an-approver" };
    const asker = this.#personOf(state.check.call.key);
    if (decision === "approve" && [person, voter.maker].includes(asker)) return { code: "self-approval" };
    const isApproved = state.votes.includes(person) && (isOpen(state) || state.status === "used");
    // A vote may complete the people only later, when its key is not its maker's voice any more.
    const isEnoughNow = state.status === "pending" && this.#isMet(state);
    const isAgain = decision === "approve" ? isApproved && !isEnoughNow : state.denial?.person === person;
    if (isAgain && !isDue(state, at)) return this.#decided(of, false);
    if (!isOpen(state) || isDue(state, at)) return { code: "approval-closed" };
    const isMet = decision === "approve" && this.#isMet(state, [person]);
    const useBy = isMet ? at + state.opening.useWithinMs : null;
    this.#events.push({ kind: "vote", at, of, person, decision, until, scope, useBy });
    return this.#decided(of, true);
  }

  #decided(of: number, isRow: boolean): Decided {
    const state = this.states().get(of);
    if (state === undefined) throw new Error(`the model has no approval ${of}`);
    return { status: state.status, useBy: state.useBy, has: this.#has(state), isRow };
  }

  /** @param by a person, or the key that asked with its session */
  cancel(of: number, at: number, by: { readonly person: string } | { readonly session: string | null }): Decided {
    const state = this.states().get(of);
    if (state === undefined) return { code: "not-found" };
    if ("person" in by) {
      if (this.voters.get(by.person)?.isActive !== true) return { code: "not-an-approver" };
      if (!this.#mayDecide(by.person, state)) return { code: "not-an-approver" };
    } else if (by.session !== state.session) return { code: "not-found" };
    if (state.status === "cancelled") return this.#decided(of, false);
    if (!isOpen(state) || isDue(state, at)) return { code: "approval-closed" };
    this.#events.push({ kind: "cancel", at, of });
    return this.#decided(of, true);
  }

  erase(of: number, at: number, part: string): void {
    this.#events.push({ kind: "erase", at, of, part });
  }
}

interface Found {
  readonly verdict: Verdict;
  readonly asking: Asking;
  readonly opening: Opening;
  readonly same: State | undefined;
  readonly named: State | undefined;
}

interface Reached {
  readonly answered: Verdict;
  readonly how?: How;
  readonly of?: number | undefined;
  readonly denials?: readonly number[];
  readonly opening?: Opening;
}

function neededBy(needs: readonly Need[]): number {
  return Math.max(...needs.map(({ of }) => of));
}

function endOf({ status, opening, useBy }: State): number {
  return status === "approved" ? (useBy ?? opening.decideBy) : opening.decideBy;
}

function isDue(state: State, at: number): boolean {
  return isOpen(state) && at >= endOf(state);
}

/** The rule that decided: the first of the causes. */
function ruleOf({ causes }: Opening): string {
  return causes[0]?.rule ?? "";
}

function isSame(shown: readonly Cause[], now: readonly Cause[]): boolean {
  const textOf = (causes: readonly Cause[]): string => JSON.stringify(causes.map(({ text }) => text).toSorted());
  return textOf(shown) === textOf(now);
}

function isNoRisk({ opening, askings, check }: State, { causes, pinsTag, shown }: Opening, at: number): boolean {
  const { shown: before } = opening;
  const own = askings.filter(({ at: on, call }) => call.wallet === check.call.wallet && on > at - 10 * minute).length;
  if (pinsTag && shown.tag !== before.tag) return false;
  return causes.every((cause) => {
    if (cause.readsTries && shown.tries - own > before.tries) return false;
    if (!cause.readsPrice) return true;
    if (shown.price === undefined || before.price === undefined) return shown.price === before.price;
    return Math.abs(shown.price - before.price) <= cause.drift;
  });
}
