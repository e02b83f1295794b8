import type { PolicySet, Span, Value } from "../../../core/src/contract/mod.ts";
import { nameOfForm } from "../../../core/src/contract/function.ts";
import { children, type Core } from "../../../core/src/contract/ir.ts";
import type { Evaluation, EvaluationTrace } from "../../../records/src/mod.ts";

/** A condition, or a part of one, that tests should make true and false. */
export interface Target {
  /** `contract.rule` or `contract.$requires.N`. */
  readonly id: string;
  /** The tools that have the condition: each tool of a contract may have its own `$requires.1`. */
  readonly tools: Set<string>;
  /** The whole condition, or an operand in it. */
  readonly isWhole: boolean;
  readonly span: Span;
  trues: number;
  falses: number;
}

export interface ToolSeen {
  readonly tool: string;
  calls: number;
  /** For each contract that routes the tool: how often only `otherwise` applied. */
  readonly otherwise: Map<string, number>;
}

/** The coverage of a contract: each condition both ways, each tool, each `otherwise`. */
export class Coverage {
  readonly targets: readonly Target[];
  readonly tools: ReadonlyMap<string, ToolSeen>;
  /** How many calls fitted each form of the tables of commands, by its name. */
  readonly forms: ReadonlyMap<string, number>;
  readonly #forms: Map<string, number>;
  readonly #byCore = new Map<Core, Target>();

  constructor(policySet: PolicySet) {
    const targets = new Map<string, Target>();
    const add = (id: string, core: Core, isWhole: boolean, tool: string): void => {
      const key = isWhole ? `${id} ${formatSpan(core.span)}` : formatSpan(core.span);
      const { span } = core;
      const target = targets.getOrInsertComputed(key, () => {
        return { id, tools: new Set<string>(), isWhole, span, trues: 0, falses: 0 };
      });
      target.tools.add(tool);
      this.#byCore.set(core, target);
    };
    for (const { tool, routes } of policySet.tools.values()) {
      for (const { presence, requires, rules } of routes) {
        for (const { id, when } of [...presence, ...requires, ...rules]) {
          if (varies(when)) add(id, when, true, tool);
          for (const part of operandsOf(when)) add(id, part, false, tool);
        }
      }
    }
    const forms = [...policySet.tables.values()].flatMap((table) => table.forms.map(nameOfForm));
    this.#forms = new Map(forms.map((name) => [name, 0]));
    this.forms = this.#forms;
    this.targets = [...targets.values()].toSorted(compareSpans);
    this.tools = new Map(
      [...policySet.tools.values()].map(({ tool, routes }) => {
        return [tool, { tool, calls: 0, otherwise: new Map(routes.map(({ contract }) => [contract, 0])) }];
      }),
    );
  }

  /** Adds one decision, which the trace observed. */
  note({ prepared, decision }: Evaluation, trace: EvaluationTrace): void {
    for (const [core, { trues, falses, first: came }] of trace.all()) {
      if (core.op === "call" && core.entry.bindCommands !== undefined)
        for (const each of came) if ("value" in each) this.#noteForms(each.value);
      const target = this.#byCore.get(core);
      if (target === undefined) continue;
      target.trues += trues;
      target.falses += falses;
    }
    const tool = this.tools.get(prepared.request.toolName);
    if (tool === undefined) return;
    tool.calls += 1;
    if (prepared.early !== undefined || decision.rule.includes(".$requires.")) return;
    const spoke = new Set([...decision.fired, ...decision.errors.map(([rule]) => rule)]);
    for (const { contract, rules } of prepared.plan?.routes ?? []) {
      if (!rules.some(({ id }) => spoke.has(id))) tool.otherwise.set(contract, (tool.otherwise.get(contract) ?? 0) + 1);
    }
  }

  #noteForms(answer: Value): void {
    const names = answer instanceof Map ? (answer.get("forms") as readonly string[]) : [];
    for (const name of names) this.#forms.set(name, (this.#forms.get(name) ?? 0) + 1);
  }
}

/** The condition's name; for a requirement of only one tool, the tool's name is added. */
export function formatTargetName({ id, tools }: Target): string {
  const [tool] = tools;
  return id.includes(".$requires.") && tools.size === 1 ? `${id} (${tool})` : id;
}

/** The numbers of covered and of all outcomes: two for each condition, one for a tool and each `otherwise`. */
export function outcomes({ targets, tools }: Coverage): { readonly seen: number; readonly all: number } {
  const seen = [
    ...targets.flatMap(({ trues, falses }) => [trues, falses]),
    ...[...tools.values()].flatMap(({ calls, otherwise }) => [calls, ...otherwise.values()]),
  ];
  return { seen: seen.filter((times) => times > 0).length, all: seen.length };
}

/** The operands of a condition that are conditions themselves: of `&&`, `||`, `!`, `?:` and macros, and comparisons. */
function operandsOf(when: Core): readonly Core[] {
  return inside(behindNot(when), new Set());
}

/** `!x` is false if `x` is true: covering one covers the other. */
function behindNot(core: Core): Core {
  return core.op === "not" ? behindNot(core.of) : core;
}

type Slots = ReadonlySet<number>;

function inside(core: Core, fixed: Slots): readonly Core[] {
  if (core.op !== "fold") return children(core).flatMap((child) => operand(child, fixed));
  const within = varies(core.range, fixed) ? fixed : new Set([...fixed, core.slot]);
  const parts = [core.test, core.body].filter((part) => part !== undefined);
  return [...operand(core.range, fixed), ...parts.flatMap((part) => operand(part, within))];
}

function operand(core: Core, fixed: Slots): readonly Core[] {
  const bare = behindNot(core);
  const isCondition = bare.type.kind === "boolean" && bare.op !== "variable" && varies(bare, fixed);
  return isCondition ? [bare, ...inside(bare, fixed)] : inside(bare, fixed);
}

/** Could it have another value? A part that only consists of constants and limits could not. */
function varies(core: Core, fixed: Slots = new Set()): boolean {
  if (core.op === "root" || core.op === "counter") return true;
  if (core.op === "variable") return !fixed.has(core.slot);
  if (core.op !== "fold") return children(core).some((child) => varies(child, fixed));
  if (varies(core.range, fixed)) return true;
  const within = new Set([...fixed, core.slot]);
  return [core.test, core.body].some((part) => part !== undefined && varies(part, within));
}

function formatSpan({ file, from, to }: Span): string {
  return `${file.name}:${from}:${to}`;
}

function compareSpans(a: Target, b: Target): number {
  const files = a.span.file.name < b.span.file.name ? -1 : a.span.file.name > b.span.file.name ? 1 : 0;
  return files || a.span.from - b.span.from || b.span.to - a.span.to;
}
