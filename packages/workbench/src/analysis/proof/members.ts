import type { Core } from "../../../../readers/src/ir.ts";
import { evaluateIndex } from "./lists.ts";
import type { SymEvaluation } from "./sym.ts";
import { and, not, or } from "./term.ts";
import type { Bindings, Translator } from "./translator.ts";
import { constantSym, opaqueValue, symAt } from "./values.ts";
import type { SymbolicCall } from "./world.ts";

type MemberCore = Core & { readonly op: "member" | "has" };
type SelectCore = Core & { readonly op: "select" };
type IndexCore = Core & { readonly op: "index" };

/** The value of `input`, `platform`, `tool`, `now` and of the presence of facts and of a session. */
export function rootSym(world: SymbolicCall, root: (Core & { op: "root" })["root"]): SymEvaluation {
  const fails = "false";
  switch (root) {
    case "input":
      return { value: symAt(world.input, { kind: "any" }), fails };
    case "platform":
      return { value: symAt(world.platform, { kind: "any" }), fails: not(world.hasPlatform) };
    case "tool":
      return { value: constantSym(world, world.tool), fails };
    case "now":
      return { value: { kind: "number", term: `(/ (to_real ${world.now}) 1000.0)` }, fails };
    case "platform.present":
      return { value: { kind: "boolean", term: world.hasPlatform }, fails };
    case "session.present":
      return { value: { kind: "boolean", term: world.hasSession }, fails };
    default:
      return root satisfies never;
  }
}

/** `value.name` and `has(value.name)`. */
export function memberSym(translator: Translator, core: MemberCore, bound: Bindings, key: string): SymEvaluation {
  const { value: owner, fails } = translator.evaluate(core.of, bound);
  if (owner.kind === "map" && core.op === "member") {
    const value = owner.entries.get(core.name);
    if (value !== undefined) return { value, fails };
  }
  if (owner.kind !== "tagged" || owner.symbol === undefined) return translator.opaque(core, key, fails);
  const { present, symbol } = owner.symbol.member(core.name);
  if (core.op === "has") return { value: { kind: "boolean", term: present }, fails };
  return { value: symAt(symbol, core.type), fails: or(fails, not(present)) };
}

/** `value.?name` and `value[?at]`. */
export function selectSym(translator: Translator, core: SelectCore, bound: Bindings, key: string): SymEvaluation {
  const of = translator.evaluate(core.of, bound);
  const at = translator.evaluate(core.at, bound);
  const fails = or(of.fails, at.fails);
  const type = core.type.kind === "optional" ? core.type.of : core.type;
  const [owner, present] = of.value.kind === "optional" ? [of.value.value, of.value.present] : [of.value, "true"];
  if (owner.kind === "list") {
    const found = evaluateIndex(translator, owner, { at: at.value, key, type });
    const isThere = and(present, not(found.fails));
    return { value: { kind: "optional", present: isThere, value: found.value }, fails };
  }
  const name = core.at.op === "constant" && typeof core.at.value === "string" ? core.at.value : undefined;
  if (owner.kind === "tagged" && owner.symbol !== undefined && name !== undefined) {
    const member = owner.symbol.member(name);
    const value = symAt(member.symbol, type);
    return { value: { kind: "optional", present: and(present, member.present), value }, fails };
  }
  const unknown = translator.world.unknown(`${key} present`);
  return { value: { kind: "optional", present: unknown, value: opaqueValue(translator.world, key, type) }, fails };
}

export function indexSym(translator: Translator, core: IndexCore, bound: Bindings, key: string): SymEvaluation {
  const of = translator.evaluate(core.of, bound);
  const at = translator.evaluate(core.at, bound);
  const fails = or(of.fails, at.fails);
  const { world } = translator;
  if (of.value.kind !== "list") return translator.opaque(core, key, or(fails, world.unknown(`${key} fails`)));
  const found = evaluateIndex(translator, of.value, { at: at.value, key, type: core.type });
  return { value: found.value, fails: or(fails, found.fails) };
}
