/**
 * Random histories of calls, decisions, outcomes and reloads, run through a gate and counted again from a plain list. The
 * list knows nothing of rows, totals or tables.
 */
import { compileMandate, type PolicySet } from "../../../../packages/readers/src/contract.ts";
import { Clock } from "../../../../packages/gate/src/server/policy/clock.ts";
import { openGate, type Gate } from "../../../../packages/gate/src/server/service/gate.ts";
import { openLedger } from "../../../../packages/gate/src/ledger/mod.ts";
import { good, parseCheckRequest } from "../../../../packages/core/src/wire/mod.ts";
import { settled } from "../../outcomes.ts";
import { decidedAgain } from "../again.ts";
import { Chance } from "../chance.ts";

const minute = 60_000;
const day = 24 * 60 * minute;

/** Three contracts. Each gives some counters another definition, so that a reload folds them again. */
const policySets: readonly PolicySet[] = [
  "within: 24h",
  "within: 24h, when: true",
  "within: 24h, when: input.amount >= 0",
].map((window) => {
  const text = settled.replace("> 1500", "> 1000000000").replaceAll("within: 24h", window);
  const compiled = compileMandate({ name: "mandate.yaml", text: "mandate: test\ncontracts: [pay.yaml]\n" }, (name) =>
    good({ name, text }),
  );
  if (!compiled.ok) throw new Error(JSON.stringify(compiled.problem));
  return compiled.value;
});

type Status = "done" | "failed" | "unknown";

interface Event {
  readonly at: number;
  readonly amount: number;
}

interface Said {
  readonly status: Status;
  readonly lowers: boolean;
  readonly amount: number | undefined;
}

/** A call as the list knows it. */
interface Call {
  readonly seq: number;
  readonly hash: string;
  readonly amount: number;
  readonly at: number;
  /** Undefined unless it was let through. */
  spent: Event | undefined;
  released: boolean;
  /** Only from the bookkeeping's `done`. */
  paid: Event | undefined;
  /** Also from the agent's own `done`. */
  finished: boolean;
  readonly said: Said[];
  /** Of a call that waits: until when. */
  waits: number | undefined;
  approved: boolean;
}

/** A wrong list, as a positive control: the rule that it does not know. */
export type Ignored = "asker raises only" | "claims" | "corrections" | "failed" | "hold" | "left out" | "own time";

/** Runs one history. @returns the first difference */
export async function runOutcomes(folder: string, seed: number, ignored?: Ignored): Promise<string | undefined> {
  const chance = new Chance(seed);
  let now = 1_790_000_000_000;
  const ledger = await openLedger({ folder, engine: "svc-gate/test" });
  const opened = await openGate({
    ledger,
    clock: new Clock({ wall: () => now, monotonic: () => now }),
    policySet: policySets[0] as PolicySet,
    mode: "enforce",
    deciders: {
      voter: (key) => ({ person: key, groups: [], makers: [] }),
      asker: (key) => ({ person: key, makers: [] }),
      refresh: () => Promise.resolve(),
    },
    onDefect: ({ defect }) => {
      throw defect;
    },
  });
  if (!opened.ok) throw new Error(opened.problem.detail);
  const { gate } = opened.value;
  const calls: Call[] = [];
  const history: string[] = [];
  try {
    for (let step = 0; step < 40; step += 1) {
      const taken = await take();
      history.push(taken);
      const problem = await compare(gate, calls, now, ignored);
      if (problem !== undefined) return `${problem} after ${history.join(", ")}`;
    }
    const check = await ledger.verify();
    if (check.broken !== undefined) return `verify: ${JSON.stringify(check.broken)} after ${history.join(", ")}`;
  } finally {
    await gate.drain();
    await ledger.close();
  }
  return again(folder, history);

  async function take(): Promise<string> {
    now += chance.pick([0, 1, minute, 5 * minute, 40 * minute, 3 * 60 * minute, 9 * 60 * minute]);
    const isReported = chance.often(0.4);
    switch (isReported ? "outcome" : chance.pick(["pay", "pay", "pay", "large", "decide", "use", "reload"])) {
      case "pay":
        return pay(1 + chance.whole(0, 899));
      case "large":
        return pay(1001 + calls.length);
      case "decide":
        return decide();
      case "use":
        return use();
      case "reload": {
        const index = chance.whole(0, policySets.length - 1);
        await gate.policies.reload({ policySet: policySets[index] as PolicySet, mode: undefined }, "test");
        return `reload ${index}`;
      }
      default:
        return outcome();
    }
  }

  async function pay(amount: number, id?: string): Promise<string> {
    const { verdict, receipt } = await ask(gate, "pay.send", { amount, to: "a" }, id);
    const released = verdict === "ALLOW";
    const spent = released ? { at: now, amount } : undefined;
    const waits = verdict === "ESCALATE" ? now + 60 * minute : undefined;
    const { seq, hash } = receipt;
    calls.push({
      seq,
      hash,
      amount,
      at: now,
      spent,
      released,
      paid: undefined,
      finished: false,
      said: [],
      waits,
      approved: false,
    });
    return `${verdict} ${amount}`;
  }

  function waiting(): Call | undefined {
    const open = calls.filter(({ waits }) => waits !== undefined && now < waits);
    return open.length === 0 ? undefined : chance.pick(open);
  }

  async function decide(): Promise<string> {
    const call = waiting();
    if (call === undefined || call.approved) return "nothing to decide";
    const decision = chance.pick(["approve", "deny"] as const);
    const sent = { id: idOf(call), hash: call.hash, decision, comment: "x" };
    const decided = await gate.approvals.decide("anna", [sent]);
    if (!decided.ok) throw new Error(decided.problem.detail);
    call.approved = decision === "approve";
    call.waits = decision === "approve" ? now + 10 * minute : undefined;
    return `${decision} ${call.amount}`;
  }

  async function use(): Promise<string> {
    const call = calls.find(({ approved, waits }) => approved && waits !== undefined && now < waits);
    if (call === undefined) return "nothing to use";
    call.waits = undefined;
    return pay(call.amount, idOf(call));
  }

  async function outcome(): Promise<string> {
    if (calls.length === 0) return "no call";
    const call = chance.pick(chance.often(0.8) ? calls.slice(-2) : calls);
    const status = chance.pick(["done", "done", "done", "failed", "unknown"] as const);
    const lowers = chance.often(call.said.at(-1)?.lowers === false ? 0.8 : 0.4);
    const amount = status === "done" && chance.often(0.5) ? chance.whole(0, 3 * call.amount) : undefined;
    const { seq, hash } = call;
    const report = { seq, hash, status, amount: amount === undefined ? undefined : String(amount) };
    const reporter = { name: lowers ? "books" : "agent", mayLower: lowers };
    const reported = await gate.outcomes.report(reporter, report);
    const said = `${lowers ? "books" : "agent"} ${status} ${amount ?? ""} of ${call.amount}`;
    const expected = settle(call, { status, lowers, amount }, now, ignored);
    if (reported.ok !== expected) throw new Error(`${said}: ${JSON.stringify(reported)} after ${history.join(", ")}`);
    return said;
  }
}

/** Applies an outcome to the list. @returns whether it is taken */
function settle(call: Call, next: Said, now: number, ignored: Ignored | undefined): boolean {
  if (!call.released) return false;
  const last = call.said.at(-1);
  const claim = call.said.findLast(({ lowers }) => !lowers);
  if ((last !== undefined && repeats(last, next)) || (claim !== undefined && !next.lowers && repeats(claim, next)))
    return true;
  const isFinal = last !== undefined && (last.status !== "unknown" || next.status === "unknown");
  if (isFinal && !next.lowers) return false;
  if (now > call.at + day) return false;
  call.said.push(next);
  count(call, now, ignored);
  return true;
}

function repeats(earlier: Said, { status, lowers, amount }: Said): boolean {
  if (earlier.status !== status || (lowers && !earlier.lowers && status !== "unknown")) return false;
  return amount === earlier.amount || (amount === undefined && !lowers);
}

/** Counts a call again from all that was said of it. */
function count(call: Call, now: number, ignored: Ignored | undefined): void {
  const told = ignored === "corrections" ? call.said.find(isTold) : call.said.findLast(isTold);
  const claims = call.said.filter(({ lowers, status }) => !lowers && status === "done");
  const isTrue = told === undefined || told.status === "unknown" ? undefined : told.status === "done";
  const claimed = claims.map(({ amount }) => amount ?? call.amount);
  const last = claimed.at(-1) ?? call.amount;
  const raised = ignored === "asker raises only" ? last : Math.max(call.amount, ...claimed);
  const leftOut = ignored === "left out" ? raised : call.amount;
  const gone = ignored === "failed" ? call.amount : 0;
  const spent = isTrue === undefined ? raised : isTrue ? (told?.amount ?? leftOut) : gone;
  if (spent !== (call.spent?.amount ?? 0))
    call.spent = spent === 0 ? undefined : { at: ignored === "own time" ? call.at : now, amount: spent };
  const isPaid = isTrue === true || (ignored === "claims" && isTrue === undefined && claims.length > 0);
  if (isPaid !== (call.paid !== undefined)) call.paid = isPaid ? { at: now, amount: call.amount } : undefined;
  call.finished = isTrue ?? claims.length > 0;
}

function isTold({ lowers }: Said): boolean {
  return lowers;
}

async function compare(
  gate: Gate,
  calls: readonly Call[],
  now: number,
  ignored: Ignored | undefined,
): Promise<string | undefined> {
  const { reason } = await ask(gate, "pay.look", {});
  const inDay = (events: readonly (Event | undefined)[]): number =>
    events.reduce((sum, event) => (event !== undefined && event.at > now - day ? sum + event.amount : sum), 0);
  const reserved = calls.map(({ waits, at, amount }) => {
    return waits !== undefined && now < waits && ignored !== "hold" ? { at, amount } : undefined;
  });
  const gross = calls.map(({ released, at, amount }) => (released ? { at, amount } : undefined));
  const values = [
    inDay([...calls.map(({ spent }) => spent), ...reserved]),
    inDay(gross),
    inDay(calls.map(({ paid }) => paid)),
    calls.filter(({ finished }) => finished).length,
  ];
  const expected = `Svc: ${values.join(" ")}`;
  return reason === expected ? undefined : `${reason} is not ${expected}`;
}

async function ask(gate: Gate, tool: string, input: object, id?: string): Promise<any> {
  const body = {
    tool_name: tool,
    tool_input: input,
    session_id: "s",
    platform_state: { wallet: "w" },
    ...(id !== undefined && { approval: { id } }),
  };
  const request = parseCheckRequest(JSON.stringify(body));
  if (!request.ok) throw new Error(request.problem.detail);
  const answer = await gate.check(request.value, { keyName: "agent", bytes: 100, digest: "0".repeat(64) });
  if (!answer.ok) throw new Error(answer.problem.detail);
  return JSON.parse(answer.value);
}

function idOf({ seq, hash }: Call): string {
  return `apr_${seq}_${hash.slice(0, 32)}`;
}

/** Decides the history again from its rows. */
async function again(folder: string, steps: readonly string[]): Promise<string | undefined> {
  const problem = await decidedAgain(folder, (seq, why) => `replay skipped row ${seq}: ${why}`);
  return problem === undefined ? undefined : `${problem} after ${steps.join(", ")}`;
}
