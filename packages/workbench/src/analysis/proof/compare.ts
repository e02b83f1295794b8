import type { PolicySet } from "../../../../readers/src/contract.ts";
import type { ToolPlan } from "../../../../readers/src/ir.ts";
import { assistNotes, compareApprovals, type ApprovalChange } from "./approvals.ts";
import { compareCall, directionOf, type CallComparison, type ChangeDirection } from "./call.ts";
import { Guesser } from "./guess.ts";
import { compareHostFacts, type HostFactsChange } from "./host-facts.ts";
import { compareNumbers, withOnlyDoubles, type NumbersChange } from "./numbers.ts";
import { questionOf, type SolverQuestion } from "./question.ts";
import { sameFinality, samePlans } from "./same.ts";
import { shrink } from "./shrink.ts";
import type { Solver } from "./solver.ts";
import { describeUndecided } from "./untranslated.ts";

export type ComparisonResult = "equivalent" | "weaker" | "stricter" | "changed" | "unknown";

export interface ToolDifference {
  readonly tool: string;
  readonly answer: ComparisonResult;
  /** For each direction an example call, which the engine decided on both sides. */
  readonly shown: ReadonlyMap<ChangeDirection, CallComparison>;
  /** What an approval of its calls needs that differs. */
  readonly approvals: readonly ApprovalChange[];
  /** Which numbers its input may have, if that differs. */
  readonly numbers: NumbersChange | undefined;
  /** Which facts the key of an agent's host may state, if that differs. */
  readonly hostFacts: HostFactsChange | undefined;
  /** Further information: why the result is unknown, and what was left out. */
  readonly notes: readonly string[];
  /** Calls that differ in an exact translation, but not in the engine. */
  readonly defects: readonly CallComparison[];
}

export interface CompareOptions {
  readonly solver: Solver | undefined;
  /** The time for each tool. */
  readonly timeMs: number;
  /** Calls that are tried before the solver starts. */
  readonly guesses?: number;
  readonly seed?: number;
}

interface Pair {
  readonly before: PolicySet;
  readonly after: PolicySet;
}

/** Compares every tool of either contract, by name, except a name that the other contract has as an alias. */
export async function compareContracts(
  before: PolicySet,
  after: PolicySet,
  options: CompareOptions,
): Promise<readonly ToolDifference[]> {
  const isAlias = (name: string): boolean => before.aliases.has(name) || after.aliases.has(name);
  const all = [...new Set([...before.tools.keys(), ...after.tools.keys()])].toSorted();
  const tools = all.filter((name) => !isAlias(name));
  return Array.fromAsync(tools, (tool) => compareTool({ before, after }, tool, options));
}

async function compareTool(pair: Pair, tool: string, options: CompareOptions): Promise<ToolDifference> {
  const [a, b] = [planOf(pair.before, tool), planOf(pair.after, tool)];
  const notes = [
    ...(sameFinality(a, b) ? [] : ["other rules are final: in assist mode, different BLOCKs may be softened"]),
    ...assistNotes(a, b),
    ...sensitiveNotes(pair, tool),
  ];
  const approvals = compareApprovals({ policySet: pair.before, plan: a }, { policySet: pair.after, plan: b });
  const numbers = compareNumbers(a, b);
  // The change of numbers has its own direction. So the search only covers calls that it does not affect.
  const plans = numbers === undefined ? ([a, b] as const) : ([withOnlyDoubles(a), withOnlyDoubles(b)] as const);
  const same: VerdictDifference = { tool, answer: "equivalent", shown: new Map(), notes: [], defects: [] };
  const found = samePlans(a, b) ? same : await searchDifference(pair, plans, options);
  const hostFacts = compareHostFacts(a, b);
  const others = [numbers, hostFacts].filter((change) => change !== undefined);
  const answer = together(found.answer, [...approvals, ...others]);
  return { ...found, answer, approvals, numbers, hostFacts, notes: [...found.notes, ...notes] };
}

type VerdictDifference = Omit<ToolDifference, "approvals" | "hostFacts" | "numbers">;

async function searchDifference(
  pair: Pair,
  plans: readonly [ToolPlan, ToolPlan],
  options: CompareOptions,
): Promise<VerdictDifference> {
  const search = new DifferenceSearch(pair, plans, options);
  search.guess();
  await search.prove();
  search.guessOn();
  return search.difference();
}

/** The answer for verdicts, approvals, numbers and the facts of hosts together. */
function together(verdicts: ComparisonResult, changes: readonly Pick<ApprovalChange, "direction">[]): ComparisonResult {
  if (verdicts === "unknown") return verdicts;
  const found = new Set<ComparisonResult>([verdicts, ...changes.map(({ direction }) => direction)]);
  found.delete("equivalent");
  const [only] = found;
  return found.size > 1 ? "changed" : (only ?? "equivalent");
}

/** The members that receipts store as separate parts: no verdict depends on them. */
function sensitiveNotes({ before, after }: Pair, tool: string): readonly string[] {
  const had = before.sensitive.ofTool.get(tool) ?? [];
  const has = after.sensitive.ofTool.get(tool) ?? [];
  const more = has.filter((name) => !had.includes(name)).join(", ");
  const gone = had.filter((name) => !has.includes(name)).join(", ");
  const changes = [...(more === "" ? [] : [`with ${more}`]), ...(gone === "" ? [] : [`without ${gone}`])];
  return changes.length === 0 ? [] : [`receipts alone: \`sensitive\` ${changes.join(", ")}`];
}

/** A tool that no contract routes has a plan without routes: it blocks every call. */
function planOf(policySet: PolicySet, tool: string): ToolPlan {
  return policySet.tools.get(tool) ?? { ...noPlan, tool };
}

const noPlan: Omit<ToolPlan, "tool"> = {
  routes: [],
  observing: [],
  writers: [],
  readers: new Map(),
  worstCost: 0,
  canEscalate: false,
  unbound: [],
  subject: [],
};

/** How many values of a function without a translation are tried one by one, before all of them together. */
const roundsMax = 6;

/** How often a question is asked, each time with another seed, until an answer settles it. */
const seedsMax = 3;

const directions: readonly ChangeDirection[] = ["weaker", "stricter"];

/** Searches for calls that are decided differently, and for the proof that there are none. */
class DifferenceSearch {
  readonly #pair: Pair;
  readonly #plans: readonly [ToolPlan, ToolPlan];
  readonly #options: CompareOptions;
  readonly #guesser: Guesser;
  #until: number;
  readonly #shown = new Map<ChangeDirection, CallComparison>();
  readonly #excluded = new Set<ChangeDirection>();
  readonly #notes = new Set<string>();
  readonly #defects: CallComparison[] = [];
  readonly #freeFunctions = new Set<string>();
  /** The solver found a call that the engine decides alike on both sides, because the solver chose a value freely. */
  #isUnconfirmed = false;

  constructor(pair: Pair, plans: readonly [ToolPlan, ToolPlan], options: CompareOptions) {
    this.#pair = pair;
    this.#plans = plans;
    this.#options = options;
    this.#guesser = new Guesser(plans, options.seed ?? 1);
    this.#until = performance.now() + options.timeMs;
  }

  /** Tries calls made from the values that the conditions compare with: fast, and often sufficient. */
  guess(): void {
    this.#try(this.#options.guesses ?? 2000);
  }

  /** Tries more calls, if the solver does not know. */
  guessOn(): void {
    if (this.#open().length > 0) this.#try(15 * (this.#options.guesses ?? 2000));
  }

  #try(count: number): void {
    for (let left = count; left > 0; left -= 1) {
      if (left % 64 === 0 && (performance.now() > this.#until || this.#shown.size === 2)) return;
      const compared = compareCall(this.#pair.before, this.#pair.after, this.#guesser.next());
      if (compared !== undefined) this.#show(compared);
    }
  }

  #show(compared: CallComparison): ChangeDirection | undefined {
    const direction = directionOf(compared);
    if (direction === undefined) return undefined;
    const known = this.#shown.get(direction);
    if (known === undefined || size(compared) < size(known)) this.#shown.set(direction, compared);
    return direction;
  }

  /**
   * Asks the solver about the directions without an example. Short lists come first, to find a call; then lists of any
   * length, for the proof.
   */
  async prove(): Promise<void> {
    const { solver } = this.#options;
    if (solver === undefined) {
      if (this.#shown.size < 2) this.#notes.add("z3-solver is not installed, so nothing is proven");
      return;
    }
    const from = performance.now();
    await solver.ready();
    this.#until += performance.now() - from;
    const words = questionOf(...this.#plans, "words");
    for (const name of words.redefined)
      this.#notes.add(`counter ${name} changed; verdicts were compared as if it had the same value in both`);
    for (const direction of this.#open()) await this.#exclude(solver, words, direction);
    if (this.#open().length === 0) return;
    const few = questionOf(...this.#plans, "few");
    for (const name of few.freeFunctions) this.#freeFunctions.add(name);
    for (const direction of this.#open()) await this.#askTried(solver, few, direction);
    for (const direction of this.#open()) await this.#ask(solver, few, direction, !few.leavesOut);
    if (!few.leavesOut || this.#open().length === 0) return;
    const any = questionOf(...this.#plans, "any");
    for (const direction of this.#open()) await this.#ask(solver, any, direction, true);
  }

  #open(): readonly ChangeDirection[] {
    return directions.filter((direction) => !this.#shown.has(direction) && !this.#excluded.has(direction));
  }

  /** A difference that is excluded with unknown parts is excluded. Otherwise the next question has more detail. */
  async #exclude(solver: Solver, question: SolverQuestion, direction: ChangeDirection): Promise<void> {
    if (question.redefined.length > 0) return;
    const answer = await solver.ask(question.text(direction), [], this.#options.timeMs / 8);
    if (answer.kind === "no") this.#excluded.add(direction);
  }

  /**
   * A value that the solver chooses is rarely the real one, so this asks for a call with values that the engine
   * computed.
   */
  async #askTried(solver: Solver, question: SolverQuestion, direction: ChangeDirection): Promise<void> {
    if (question.freeFunctions.size === 0) return;
    for (const round of [...Array(roundsMax).keys(), undefined]) {
      const left = this.#until - performance.now();
      if (left <= 0) return;
      const answer = await solver.ask(question.text(direction, { round }), question.constants, left / roundsMax);
      if (answer.kind !== "yes") continue;
      const compared = compareCall(this.#pair.before, this.#pair.after, question.call(answer.model).call);
      if (compared !== undefined && this.#show(compared) === direction) return;
    }
  }

  /**
   * Asks until an answer settles the direction. A second answer often helps: the solver may give up early, or choose
   * values that no call can have.
   *
   * @param isWhole the question includes every call: if no model fulfils it, no call does
   */
  async #ask(solver: Solver, question: SolverQuestion, direction: ChangeDirection, isWhole: boolean): Promise<void> {
    for (let seed = 0; seed < seedsMax; seed += 1) {
      const left = (this.#until - performance.now()) * 0.6;
      if (left <= 0) {
        this.#notes.add(`not decided: the time limit was reached (--time)`);
        return;
      }
      const text = `(set-option :smt.random_seed ${seed})\n${question.text(direction)}`;
      const answer = await solver.ask(text, question.constants, left);
      if (answer.kind === "no") {
        if (isWhole && question.redefined.length === 0) this.#excluded.add(direction);
        return;
      }
      const isLast = seed === seedsMax - 1;
      if (answer.kind === "yes" && this.#confirm(question, direction, answer.model, isLast)) return;
      if (answer.kind === "unknown" && isLast)
        this.#notes.add("not decided: the solver found no answer in time (--time)");
    }
  }

  /** Does the engine's decision settle the question? A call with the solver's exact values that contradicts it does. */
  #confirm(question: SolverQuestion, direction: ChangeDirection, model: string, isLast: boolean): boolean {
    const { call, isFaithful } = question.call(model);
    const compared = compareCall(this.#pair.before, this.#pair.after, call);
    if (compared !== undefined && this.#show(compared) === direction) return true;
    const isDefect = question.isExact && isFaithful && compared !== undefined;
    if (isDefect) this.#defects.push(compared);
    this.#isUnconfirmed ||= isDefect || isLast;
    return isDefect;
  }

  difference(): VerdictDifference {
    const answer = this.#answer();
    const { before, after } = this.#pair;
    return {
      tool: this.#plans[0].tool,
      answer,
      shown: new Map([...this.#shown].map(([direction, found]) => [direction, shrink(before, after, found)])),
      notes: [...this.#notes, ...this.#explainUnknown()].filter(
        (note) => answer === "unknown" || note.startsWith("counter "),
      ),
      defects: this.#defects,
    };
  }

  #explainUnknown(): readonly string[] {
    if (this.#options.solver === undefined || this.#defects.length > 0) return [];
    const named = describeUndecided(this.#plans, this.#freeFunctions);
    if (named.length > 0 || !this.#isUnconfirmed) return named;
    return ["not decided: the solver cannot model a part of the conditions"];
  }

  #answer(): ComparisonResult {
    if (this.#defects.length > 0) return "unknown";
    const settled = directions.every((direction) => this.#shown.has(direction) || this.#excluded.has(direction));
    if (!settled) return "unknown";
    if (this.#shown.size === 2) return "changed";
    const [only] = this.#shown.keys();
    return only ?? "equivalent";
  }
}

function size({ call }: CallComparison): number {
  return call.input.length + (call.platform?.length ?? 0) + (call.hasSession ? 1 : 0);
}
