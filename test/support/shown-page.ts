import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "./gate.ts";

/** A page of docs/ with fenced blocks after markers, `<!-- PREFIX: NAME -->`, that show real output. */
export class ShownPage {
  readonly #file: string;
  readonly #prefix: string;
  #text: string;

  constructor(name: string, prefix: string) {
    this.#file = join(root, "docs", name);
    this.#prefix = prefix;
    this.#text = readFileSync(this.#file, "utf8");
  }

  get text(): string {
    return this.#text;
  }

  block(name: string): string {
    const { from, to } = this.#locate(name);
    return this.#text.slice(from, to);
  }

  /** Compares a block with the real output, or writes it if UPDATE_GOLDEN is 1. */
  assertShown(name: string, text: string): void {
    if (process.env["UPDATE_GOLDEN"] === "1") {
      const { from, to } = this.#locate(name);
      this.#text = `${this.#text.slice(0, from)}${text}\n${this.#text.slice(to)}`;
      writeFileSync(this.#file, this.#text);
    }
    assert.equal(`${text}\n`, this.block(name));
  }

  #locate(name: string): { readonly from: number; readonly to: number } {
    const marker = `<!-- ${this.#prefix}: ${name} -->\n`;
    const at = this.#text.indexOf(marker);
    assert.notEqual(at, -1, `no block \`${name}\``);
    const from = this.#text.indexOf("\n", at + marker.length) + 1;
    return { from, to: this.#text.indexOf("```", from) };
  }
}
