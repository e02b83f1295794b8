/** Runs a history through a gate in this process, and compares every answer with the model's. */
import { isDeepStrictEqual } from "node:util";
import { compileMandate, type PolicySet } from "../../../../packages/readers/src/contract.ts";
import { Clock } from "../../../../packages/gate/src/server/policy/clock.ts";
import { openGate, type Gate } from "../../../../packages/gate/src/server/service/gate.ts";
import { openLedger, type Ledger } from "../../../../packages/gate/src/ledger/mod.ts";
import { good, parseCheckRequest } from "../../../../packages/core/src/wire/mod.ts";
import { part } from "../../simulation/rows.ts";
import { contractText, mandateText, terms, type Call, type Terms } from "./contract.ts";
import { ApprovalsModel, type Answered, type Decided, type Mode, type Voter } from "./model.ts";
import { agents, people, type Ask, type Step } from "./steps.ts";

const policySets = new Map<Terms, PolicySet>();

function policySetOf(of: Terms): PolicySet {
  const known = policySets.get(of);
  if (known !== undefined) return known;
  const compiled = compileMandate({ name: "mandate.yaml", text: mandateText }, (name) =>
    good({ name, text: contractText(of) }),
  );
  if (!compiled.ok) throw new Error(JSON.stringify(compiled.problem.map(({ message }) => message)));
  policySets.set(of, compiled.value);
  return compiled.value;
}

function termsOf(index: number): Terms {
  const found = terms[index];
  if (found === undefined) throw new Error(`there are no terms ${index}`);
  return found;
}

const startMs = 1_790_000_000_000;
const day = 86_400_000;

/** How often each thing happened, so that a campaign can say that it met everything. */
export type Met = Map<string, number>;

/** A gate and a model that take the same steps. */
class Pair {
  readonly #folder: string;
  readonly #met: Met;
  readonly #model: ApprovalsModel;
  readonly #voters = new Map<string, Voter>();
  #ledger: Ledger | undefined;
  #gate: Gate | undefined;
  #now = startMs;
  #terms = 0;
  #mode: Mode = "enforce";
  /** The model's checks by the gate's rows, and the rows and hashes by the model's checks. */
  readonly #checks = new Map<number, number>();
  readonly #rows = new Map<number, { readonly seq: number; readonly hash: string }>();
  readonly #calls = new Map<unknown, Call>();
  /** The checks that opened an approval. */
  readonly #opened: number[] = [];

  constructor(folder: string, met: Met) {
    this.#folder = folder;
    this.#met = met;
    for (const [person, groups, maker] of people) this.#voters.set(person, { groups, maker, isActive: true });
    this.#model = new ApprovalsModel(termsOf(0), this.#voters, (key) => agents[key] ?? key);
  }

  async open(): Promise<void> {
    this.#ledger = await openLedger({ folder: this.#folder, engine: "svc-gate/test" });
    const opened = await openGate({
      ledger: this.#ledger,
      clock: new Clock({ wall: () => this.#now, monotonic: () => this.#now }),
      policySet: policySetOf(termsOf(this.#terms)),
      mode: this.#mode,
      deciders: {
        voter: (key) => {
          const voter = this.#voters.get(key);
          return voter?.isActive === true
            ? { person: key, groups: voter.groups, makers: voter.maker === undefined ? [] : [voter.maker] }
            : undefined;
        },
        asker: (key) => ({ person: agents[key] ?? key, makers: [] }),
        refresh: () => Promise.resolve(),
      },
      onDefect: ({ defect }) => {
        throw defect;
      },
    });
    if (!opened.ok) throw new Error(opened.problem.detail);
    this.#gate = opened.value.gate;
  }

  async close(): Promise<void> {
    await this.#gate?.drain();
    await this.#ledger?.close();
  }

  get gate(): Gate {
    if (this.#gate === undefined) throw new Error("the gate is not open");
    return this.#gate;
  }

  /** @returns the first difference */
  async take(step: Step): Promise<string | undefined> {
    const taken = await Promise.race([this.#take(step), this.gate.failed]);
    return taken ?? (await this.#statesProblem());
  }

  #take(step: Step): Promise<string | undefined> {
    switch (step.do) {
      case "ask":
        return this.#ask(step.asks);
      case "decide":
        return this.#decide(step);
      case "cancel":
        return this.#cancel(step);
      case "erase":
        return this.#erase(step);
      case "restart":
        return this.close().then(() => this.open().then(() => undefined));
      case "reload":
        return this.#reload(step);
      case "wait":
        this.#now += step.ms;
        break;
      case "wait-for": {
        const of = this.#chosen(step.of);
        const end = of === undefined ? undefined : this.#model.endOf(of);
        this.#now = Math.max(this.#now, (end ?? 0) + step.ms);
        break;
      }
      case "key": {
        const { person, groups, isActive, maker } = step;
        this.#voters.set(person, { groups, isActive, maker });
        break;
      }
    }
    return Promise.resolve(undefined);
  }

  /** @param back counted from the newest */
  #chosen(back: number): number | undefined {
    return this.#opened.at(-1 - (back % Math.max(1, this.#opened.length)));
  }

  #idOf(n: number): string {
    const { seq, hash } = this.#rows.get(n) ?? { seq: 0, hash: "" };
    return `apr_${seq}_${hash.slice(0, 32)}`;
  }

  async #ask(asks: readonly Ask[]): Promise<string | undefined> {
    const named = asks.map(({ names }) => (typeof names === "number" ? this.#chosen(names) : (names ?? undefined)));
    const calls = asks.map(({ call, change }, index) => {
      const of = change === undefined ? undefined : this.#calls.get(named[index]);
      return of === undefined ? call : { ...of, ...change };
    });
    const at = this.#now;
    const answers = await Promise.all(
      calls.map(async (call, index) => {
        const name = named[index];
        const id = name === "unknown" ? `apr_1_${"0".repeat(32)}` : name === undefined ? undefined : this.#idOf(name);
        const request = parseCheckRequest(bodyOf(call, id));
        if (!request.ok) throw new Error(request.problem.detail);
        return this.gate.check(request.value, { keyName: call.key, bytes: 100, digest: "0".repeat(64) });
      }),
    );
    for (const [index, answer] of answers.entries()) {
      const call = calls[index] as Call;
      if (!answer.ok) return `the gate refused a check: ${answer.problem.detail}`;
      const expected = this.#model.ask({ at, call, names: named[index] });
      this.#calls.set(this.#rows.size + 1, call);
      const problem = await this.#compare(JSON.parse(answer.value) as Answer, expected);
      if (problem !== undefined) return problem;
    }
    return undefined;
  }

  async #compare(answer: Answer, expected: Answered): Promise<string | undefined> {
    const { seq, hash } = answer.receipt;
    const n = this.#rows.size + 1;
    this.#rows.set(n, { seq, hash });
    this.#checks.set(seq, n);
    const outcome = await this.#outcomeOf(seq);
    const { asked, counters = {} } = outcome;
    const { approval } = answer;
    const idSeq = approval?.id == null ? null : Number(approval.id.split("_")[1]);
    const real: Shown = {
      verdict: answer.verdict,
      how: asked?.how,
      mismatch: asked?.mismatch === true,
      of: asked?.approval === undefined ? undefined : this.#checks.get(asked.approval),
      own: asked?.own === undefined ? undefined : this.#checks.get(asked.own),
      values:
        counters["pay.spent"] === undefined
          ? undefined
          : {
              spent: Number(counters["pay.spent"]),
              held: Number(counters["pay.spent.held"]),
              parked: Number(counters["pay.parked.held"]),
              freed: Number(counters["pay.freed"]),
              tries: Number(counters["pay.tries"]),
              asked: Number(counters["pay.asked"]),
            },
      approval: approval && {
        id: idSeq === null ? null : this.#checks.get(idSeq),
        status: approval.status,
        new: approval.new,
        decideBy: approval.decide_by,
        useBy: approval.use_by,
        needs: approval.needs,
        has: approval.has,
        next: approval.next,
      },
    };
    if (expected.how === "opened") this.#opened.push(n);
    this.#count(`${expected.verdict} ${expected.how ?? "plain"}`);
    const { denials, ...wanted } = expected;
    const isAnyOf = real.of !== undefined && denials.includes(real.of);
    if (isDeepStrictEqual(isAnyOf ? withoutName(real) : real, isAnyOf ? withoutName(wanted) : wanted)) return undefined;
    return `check ${n} (row ${seq}): the gate says ${JSON.stringify(real)} (${answer.reason}), and the model ${JSON.stringify(expected)}`;
  }

  async #outcomeOf(seq: number): Promise<Outcome> {
    for await (const slice of this.#ledger?.rows.scan(seq) ?? []) {
      for (const row of slice) if (row.seq === seq) return part(row, "outcome") as Outcome;
    }
    throw new Error(`there is no row ${seq}`);
  }

  async #decide(step: Extract<Step, { readonly do: "decide" }>): Promise<string | undefined> {
    const of = this.#chosen(step.of);
    if (of === undefined) return undefined;
    const { person, decision, scope, forMs } = step;
    const at = this.#now;
    const decided = await this.gate.approvals.decide(person, [
      {
        id: this.#idOf(of),
        hash: this.#rows.get(of)?.hash ?? "",
        decision,
        comment: "because",
        ...(decision === "deny" && { scope, until: forMs === null ? undefined : at + forMs }),
      },
    ]);
    const until = at + (forMs ?? day);
    const expected = this.#model.decide(person, of, { at, decision, scope, until });
    const real = decided.ok ? shown(decided.value[0]) : { code: decided.problem.code };
    return this.#compareDecided(`${decision} of ${of} by ${person}`, real, expected);
  }

  async #cancel(step: Extract<Step, { readonly do: "cancel" }>): Promise<string | undefined> {
    const of = this.#chosen(step.of);
    const found = of === undefined ? undefined : await this.gate.approvals.find(this.#idOf(of));
    if (of === undefined || found === undefined) return undefined;
    const { person, session } = step;
    const cancelled = await this.gate.approvals.cancel(person ?? found.key, this.#idOf(of), person === null, session);
    const expected = this.#model.cancel(of, this.#now, person === null ? { session } : { person });
    const real = cancelled.ok ? shown(cancelled.value) : { code: cancelled.problem.code };
    return this.#compareDecided(`cancel of ${of} by ${person ?? "its key"}`, real, expected);
  }

  #compareDecided(what: string, real: Decided, expected: Decided): string | undefined {
    this.#count(`${what.split(" ")[0]} ${"code" in expected ? expected.code : expected.status}`);
    if (isDeepStrictEqual(real, expected)) return undefined;
    return `${what}: the gate says ${JSON.stringify(real)}, and the model ${JSON.stringify(expected)}`;
  }

  async #erase(step: Extract<Step, { readonly do: "erase" }>): Promise<string | undefined> {
    const checks = [...this.#checks.values()];
    const of = step.at === undefined ? this.#chosen(step.of) : checks[Math.floor(step.at * checks.length)];
    const seq = of === undefined ? undefined : this.#rows.get(of)?.seq;
    if (of === undefined || seq === undefined) return undefined;
    const target = { rows: [[seq, seq]] as const };
    const erased = await this.gate.eraser.erase({ target, parts: [step.part], reason: "a person asked" }, "ada");
    if (!erased.ok) return `the gate refused to erase: ${erased.problem.detail}`;
    this.#model.erase(of, this.#now, step.part);
    this.#count("erase");
    return undefined;
  }

  async #reload({ terms: index, mode }: Extract<Step, { readonly do: "reload" }>): Promise<string | undefined> {
    const reloaded = await this.gate.policies.reload({ policySet: policySetOf(termsOf(index)), mode }, "ada");
    if (!reloaded.ok) return `the gate refused a reload: ${reloaded.problem.detail}`;
    this.#terms = index;
    this.#mode = mode;
    this.#model.terms = termsOf(index);
    this.#model.mode = mode;
    this.#count(`reload ${mode}`);
    return undefined;
  }

  /** Compares the state of every approval. */
  async #statesProblem(): Promise<string | undefined> {
    for (const n of this.#opened) {
      const found = await this.gate.approvals.find(this.#idOf(n));
      const end = found?.status === "approved" ? found.useBy : (found?.asking.decide_by ?? null);
      const isOpen = found?.status === "approved" || found?.status === "pending";
      const real = isOpen && end !== null && this.#now >= end ? "expired" : found?.status;
      const expected = this.#model.statusAt(n, this.#now);
      if (real !== expected) return `approval ${n} is ${real} in the gate, and ${expected} in the model`;
    }
    return undefined;
  }

  #count(what: string): void {
    this.#met.set(what, (this.#met.get(what) ?? 0) + 1);
  }
}

interface Answer {
  readonly verdict: string;
  readonly reason: string;
  readonly receipt: { readonly seq: number; readonly hash: string };
  readonly approval?: {
    readonly id: string | null;
    readonly status: string;
    readonly new: boolean;
    readonly decide_by: number | null;
    readonly use_by: number | null;
    readonly needs: number;
    readonly has: number;
    readonly next: string;
  };
}

/** An answer of the gate in the model's words. */
type Shown = Omit<Answered, "approval" | "denials" | "how" | "verdict"> & {
  readonly verdict: string;
  readonly how: string | undefined;
  readonly approval: object | undefined;
};

interface Outcome {
  readonly asked?: {
    readonly how: string;
    readonly mismatch?: true;
    readonly approval?: number;
    readonly own?: number;
  };
  readonly counters?: Readonly<Record<string, string>>;
}

type GateDecided = Extract<Awaited<ReturnType<Gate["approvals"]["cancel"]>>, { readonly ok: true }>["value"];

function shown(decided: GateDecided | undefined): Decided {
  if (decided === undefined) return { code: "nothing" };
  const { approval, quorum, receipt } = decided;
  return { status: approval.status, useBy: approval.useBy, has: quorum.has, isRow: receipt !== undefined };
}

/** Says of the approval of a denied call only what every denial says, because the gate may name any that applies. */
function withoutName({ of: _of, approval, ...said }: Shown): object {
  const unnamed = Object.entries(approval ?? {}).filter(([name]) => ["status", "new", "next"].includes(name));
  return { ...said, approval: Object.fromEntries(unnamed) };
}

function bodyOf(call: Call, id: string | undefined): string {
  const { tool, amount, to, note, wallet, price, tag, session, isTurned } = call;
  const members = [
    `"amount":${amount}`,
    `"to":${JSON.stringify(to)}`,
    ...(note === undefined ? [] : [`"note":${JSON.stringify(note)}`]),
  ];
  const facts = [
    `"wallet":${JSON.stringify(wallet)}`,
    ...(price === undefined ? [] : [`"price":${price}`]),
    ...(tag === undefined ? [] : [`"tag":${JSON.stringify(tag)}`]),
  ];
  const parts = [
    `"tool_name":"${tool}"`,
    `"tool_input":{${(isTurned === true ? members.toReversed() : members).join(",")}}`,
    `"platform_state":{${facts.join(",")}}`,
    ...(session === null ? [] : [`"session_id":"${session}"`]),
    ...(id === undefined ? [] : [`"approval":{"id":"${id}"}`]),
  ];
  return `{${parts.join(",")}}`;
}

/** Runs a history on a new ledger. @returns the first difference between gate and model */
export async function run(folder: string, steps: readonly Step[], met: Met = new Map()): Promise<string | undefined> {
  const pair = new Pair(folder, met);
  await pair.open();
  try {
    for (const [index, step] of steps.entries()) {
      const problem = await pair.take(step);
      if (problem !== undefined) return `step ${index + 1}, ${JSON.stringify(step)}: ${problem}`;
    }
    return undefined;
  } catch (error) {
    return `the gate failed: ${error instanceof Error ? (error.stack ?? error.message) : JSON.stringify(error)}`;
  } finally {
    // A gate that failed never ends its batches.
    await Promise.race([pair.close(), pair.gate.failed]).catch(() => undefined);
  }
}
