import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { noteMutated } from "../controls/control.ts";
import type { Mutation, Sweep, Swept } from "./mutate.ts";

/** `mutatedFile` for a Python program, which Python's own parser reads; it supports `find`, `put` and `text`. */
export function mutatedPython(python: string, file: string, mutations: readonly Mutation[]): string {
  noteMutated(file);
  return ask(python, { text: readFileSync(file, "utf8"), mutations }) as string;
}

export function sweptPython(python: string, file: string, sweep: Sweep): readonly Swept[] {
  noteMutated(file);
  return ask(python, { text: readFileSync(file, "utf8"), sweep }) as readonly Swept[];
}

function ask(python: string, question: object): unknown {
  const input = JSON.stringify(question);
  const program = join(import.meta.dirname, "mutate.py");
  const { status, stdout, stderr } = spawnSync(python, [program], { input, encoding: "utf8", maxBuffer: 2 ** 27 });
  if (status !== 0) throw new Error(stderr.trim());
  return JSON.parse(stdout);
}
