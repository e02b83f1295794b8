import type { Command, CompoundList, SyntaxNode, Word } from "unbash";
import { joinPath, unknownFolder } from "../path/folder.ts";
import { patternOf, readWord } from "./words.ts";

/** The folders in which a command may run, as patterns. */
export type Folders = readonly string[];

/** Lists the nodes directly below a node. */
type ForEachChild = (node: SyntaxNode, callback: (child: SyntaxNode) => void) => void;

/** The folders after a node: if it succeeds, and if it fails. */
interface Outcome {
  readonly success: Folders;
  readonly failure: Folders;
}

/** More folders than these count as an unknown one. */
const foldersMax = 8;

/** Commands that change the folder, or run code that may. */
const movers = new Set(["cd", "chdir", "pushd", "popd", "builtin", "command", "eval"]);

/**
 * The folders in which each command and each redirection of a script may run. After `cd a &&` this is `a`; after `cd a;`,
 * `cd a ||` and a newline it is both; a subshell, a part of a pipe, a background command and a substitution keep their own.
 */
export function foldersOfScript(
  script: SyntaxNode,
  start: Folders,
  forEachChild: ForEachChild,
): ReadonlyMap<SyntaxNode, Folders> {
  const functions = functionsIn(script, forEachChild);
  const isMover = (name: string | undefined): boolean =>
    name !== undefined && (movers.has(name) || functions.has(name));
  const moving = nodesThatMove(script, isMover, forEachChild);
  return new FolderStates({ forEachChild, functions, moving }).statesOf(script, start);
}

function functionsIn(script: SyntaxNode, forEachChild: ForEachChild): ReadonlySet<string> {
  const names = new Set<string>();
  const visit = (node: SyntaxNode): void => {
    if (node.type === "Function") names.add(node.name.value);
    forEachChild(node, visit);
  };
  visit(script);
  return names;
}

/** Every node with a command below it that may change the folder. */
function nodesThatMove(
  script: SyntaxNode,
  isMover: (name: string | undefined) => boolean,
  forEachChild: ForEachChild,
): ReadonlySet<SyntaxNode> {
  const moving = new Set<SyntaxNode>();
  const visit = (node: SyntaxNode): boolean => {
    let moves = node.type === "Command" && isMover(node.name?.value);
    forEachChild(node, (child) => void (moves = visit(child) || moves));
    if (moves) moving.add(node);
    return moves;
  };
  visit(script);
  return moving;
}

interface ScriptFacts {
  readonly forEachChild: ForEachChild;
  readonly functions: ReadonlySet<string>;
  readonly moving: ReadonlySet<SyntaxNode>;
}

class FolderStates {
  readonly #facts: ScriptFacts;
  readonly #states = new Map<SyntaxNode, Folders>();

  constructor(facts: ScriptFacts) {
    this.#facts = facts;
  }

  statesOf(script: SyntaxNode, start: Folders): ReadonlyMap<SyntaxNode, Folders> {
    this.#visit(script, start);
    return this.#states;
  }

  #visit(node: SyntaxNode, from: Folders): Outcome {
    switch (node.type) {
      case "Command":
        // Nothing runs after `exit`; if something does, nobody knows where.
        this.#states.set(node, from.length === 0 ? [unknownFolder] : from);
        this.#visitBelow(node, from);
        return this.#afterCommand(node, from);
      case "Redirect":
        this.#states.set(node, from.length === 0 ? [unknownFolder] : from);
        return this.#visitBelow(node, from);
      case "Script":
      case "CompoundList":
      case "BraceGroup":
        return this.#visitSequence(node, from);
      case "Statement": {
        const after = this.#visitSequence(node, from);
        return node.background === true ? same(from) : after;
      }
      case "AndOr":
        return this.#visitAndOr(node, from);
      case "Pipeline": {
        const after = node.commands.map((command) => this.#visit(command, from));
        const [only] = after;
        if (only === undefined || after.length > 1) return same(from);
        const isNegated = node.prefixes.filter(({ type }) => type === "Negation").length % 2 === 1;
        return isNegated ? { success: only.failure, failure: only.success } : only;
      }
      case "If": {
        const ends: Folders[] = [];
        let state = this.#visit(node.clause, from);
        ends.push(this.#ends(node.then, state.success));
        for (const elif of node.elif) {
          state = this.#visit(elif.clause, state.failure);
          ends.push(this.#ends(elif.then, state.success));
        }
        ends.push(node.else === undefined ? state.failure : this.#ends(node.else, state.failure));
        return same(ends.reduce(either));
      }
      case "While":
      case "For":
      case "Select":
      case "ArithmeticFor":
      case "Case": {
        const inside = this.#facts.moving.has(node) ? either(from, [unknownFolder]) : from;
        this.#visitBelow(node, inside);
        return same(inside);
      }
      case "Function":
        this.#visitBelow(node, either(from, [unknownFolder]));
        return same(from);
      case "Redirected": {
        for (const redirect of node.redirects) this.#visit(redirect, from);
        return this.#visit(node.command, from);
      }
      default:
        // A subshell, a substitution, a word.
        this.#visitBelow(node, from);
        return same(from);
    }
  }

  #ends(list: CompoundList, from: Folders): Folders {
    const { success, failure } = this.#visit(list, from);
    return either(success, failure);
  }

  #visitAndOr(node: Extract<SyntaxNode, { type: "AndOr" }>, from: Folders): Outcome {
    let state = this.#visit(node.commands[0] ?? node, from);
    for (const [at, operator] of node.operators.entries()) {
      const command = node.commands[at + 1];
      if (command === undefined) break;
      const next = this.#visit(command, operator === "&&" ? state.success : state.failure);
      state =
        operator === "&&"
          ? { success: next.success, failure: either(state.failure, next.failure) }
          : { success: either(state.success, next.success), failure: next.failure };
    }
    return state;
  }

  #visitBelow(node: SyntaxNode, from: Folders): Outcome {
    this.#facts.forEachChild(node, (child) => void this.#visit(child, from));
    return same(from);
  }

  /** Each part starts where the one before it ended, whether that succeeded or not. */
  #visitSequence(node: SyntaxNode, from: Folders): Outcome {
    let state = same(from);
    this.#facts.forEachChild(node, (child) => {
      state = this.#visit(child, either(state.success, state.failure));
    });
    return state;
  }

  #afterCommand(node: Command, from: Folders): Outcome {
    const name = node.name?.value;
    if (name === "cd" || name === "chdir" || name === "pushd") {
      const words = node.args.flatMap((arg) => (arg.type === "Word" ? [arg] : []));
      return { success: moveFolders(words, from), failure: from };
    }
    // A redirection that fails lets the shell go on.
    if (name === "exit" && node.redirects.length === 0 && !this.#facts.functions.has(name)) return same([]);
    if (name !== undefined && (movers.has(name) || this.#facts.functions.has(name)))
      return same(either(from, [unknownFolder]));
    return same(from);
  }
}

/** The folders after `cd` with these words; `cd` alone goes to the home folder. */
function moveFolders(words: readonly Word[], from: Folders): Folders {
  const folders = words.map((word) => readWord(word)).filter(({ text }) => !/^-[LPe@]+$|^--$/.test(text));
  const [folder] = folders;
  if (folder === undefined) return ["~"];
  const value = patternOf(folder);
  if (folders.length > 1 || folder.glob || value === undefined || value === "-") return [unknownFolder];
  return limitFolders(from.map((each) => joinPath(each, value)));
}

function same(folders: Folders): Outcome {
  return { success: folders, failure: folders };
}

function either(left: Folders, right: Folders): Folders {
  return left === right ? left : limitFolders([...left, ...right]);
}

function limitFolders(folders: readonly string[]): Folders {
  const distinct = [...new Set(folders)];
  return distinct.length > foldersMax ? [unknownFolder] : distinct;
}
