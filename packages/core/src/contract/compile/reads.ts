import { children, walk, type Core } from "../core/core.ts";
import type { Type } from "../value/type.ts";
import { memberBelow } from "../../wire/mod.ts";

/** A member that an expression reads as a value, such as `platform.price`. */
export interface ReadMember {
  readonly path: string;
  readonly type: Type;
  /** True if only the presence of the member is read. */
  readonly isPresence: boolean;
}

/**
 * The members of `input` and `platform` that expressions read as values. An expression that reads a whole object, or
 * looks up a member by a computed name, reads the object.
 */
export function readMembers(cores: readonly Core[]): readonly ReadMember[] {
  const found: ReadMember[] = [];
  const visit = (core: Core): void => {
    const presence = findPresencePath(core);
    const path = presence ?? memberPath(core);
    if (path !== undefined) {
      found.push({ path, type: core.type, isPresence: presence !== undefined });
      return;
    }
    for (const child of children(core)) visit(child);
  };
  for (const core of cores) visit(core);
  return found;
}

/** The path of a member of which an expression reads only the presence; undefined for any other expression. */
export function findPresencePath(core: Core): string | undefined {
  if (core.op === "root" && core.root === "platform.present") return "platform";
  if (core.op === "root" && core.root === "session.present") return "session";
  if (core.op === "has") return memberPath(core);
  const [of] = core.op === "call" && core.entry.name === "hasValue" ? core.args : [];
  return of && memberPath(of);
}

/** The path of a member with a fixed name; undefined for any other expression. */
export function memberPath(core: Core): string | undefined {
  if (core.op === "root") return core.root === "input" || core.root === "platform" ? core.root : undefined;
  if (core.op === "member" || core.op === "has") return below(memberPath(core.of), core.name);
  if (core.op !== "select" || core.at.op !== "constant" || typeof core.at.value !== "string") return undefined;
  return below(memberPath(core.of), core.at.value);
}

function below(path: string | undefined, name: string): string | undefined {
  return path === undefined ? undefined : memberBelow(path, name);
}

/** The counters that expressions read, by full name, sorted. */
export function readCounters(cores: readonly Core[]): readonly string[] {
  const names = cores.flatMap((core) => [...walk(core)].flatMap((node) => (node.op === "counter" ? [node.name] : [])));
  return [...new Set(names)].toSorted();
}

export function isNumber(type: Type): boolean {
  return type.kind === "number" || ((type.kind === "optional" || type.kind === "nullable") && isNumber(type.of));
}
