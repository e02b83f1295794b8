import { setTimeout as sleep } from "node:timers/promises";
import { createInterface } from "node:readline/promises";
import type { Readable } from "node:stream";
import type { ApprovalDetailJson, ApprovalJson, GrantOfferJson } from "../../../../core/src/approvals/mod.ts";
import { lengthText, readJson, visible } from "../../../../core/src/wire/mod.ts";
import { io } from "../io.ts";
import {
  requireAccepted,
  withGateFor,
  refusalOf,
  tenantPath,
  type GateDoor,
  type OperatorOptions,
} from "../operator.ts";
import { BadInput, type Outcome } from "../outcome.ts";
import { card } from "./command.ts";

/** How often the list of waiting calls is read. */
const pollMs = 1000;
/** Keys that come sooner than this after a question do not count: they were meant for something else. */
const deafMs = 400;
/** A grant by a key press is this long at most, and for so many calls. */
const grantMs = 8 * 3_600_000;
const grantUses = 50;

type KeyInput = Readable & { readonly isTTY?: boolean; setRawMode?(on: boolean): unknown };

/** `svc-gate approvals watch`: shows each call that waits, one after the other, and decides it with one key. */
export function watchCommand(options: OperatorOptions): Promise<Outcome> {
  const stdin: KeyInput = io().stdin;
  if (stdin.isTTY !== true)
    throw new BadInput("`approvals watch` needs a terminal: use `approvals list` and `approvals approve` without one");
  if (options.json) throw new BadInput("`approvals watch` is for people: a program reads GET /events");
  return withKeys(stdin, (keys) =>
    withGateFor(
      options,
      async (gate) => {
        await new Watch(gate, tenantPath(options.tenant), keys).run();
        return { exitCode: 0, text: "ended; what still waits goes on waiting" };
      },
      () => keys.secret("your key, which is not shown > "),
    ),
  );
}

async function withKeys<T>(stdin: KeyInput, work: (keys: Keys) => Promise<T>): Promise<T> {
  const keys = new Keys(stdin);
  try {
    return await work(keys);
  } finally {
    keys.close();
  }
}

/** Single key presses. */
class Keys {
  readonly #stdin: KeyInput;
  #take: ((typed: string) => void) | undefined;
  /** What was typed while nobody listened, such as during a question to the gate. */
  #missed = "";
  #deafUntil = 0;
  readonly #onData = (data: Buffer | string): void => {
    if (this.#take === undefined) this.#missed = String(data);
    else this.#take(String(data));
  };

  constructor(stdin: KeyInput) {
    this.#stdin = stdin;
    this.#listen();
  }

  #listen(): void {
    this.#stdin.setRawMode?.(true);
    this.#stdin.on("data", this.#onData);
    this.#stdin.resume();
  }

  close(): void {
    this.#stdin.off("data", this.#onData);
    this.#stdin.setRawMode?.(false);
    this.#stdin.pause();
  }

  /**
   * The first of some keys that is pressed; undefined if none is within a time. Ctrl-C and Ctrl-D are `q`.
   *
   * @param isNew has the question just appeared?
   */
  async press(
    among: string,
    { ms, isNew }: { readonly ms: number; readonly isNew: boolean },
  ): Promise<string | undefined> {
    const { promise, resolve } = Promise.withResolvers<string>();
    if (isNew) this.#deafen();
    const take = (typed: string): void => {
      const key = typed.toLowerCase();
      if (isEnd(typed)) resolve("q");
      // A key that is held down repeats.
      else if (performance.now() < this.#deafUntil) this.#deafen();
      else if (key.length === 1 && among.includes(key)) resolve(key);
    };
    this.#take = take;
    if (this.#missed !== "") take(this.#missed);
    this.#missed = "";
    const end = new AbortController();
    const late = sleep(ms, undefined, { signal: end.signal }).catch(() => undefined);
    const key = await Promise.race([promise, late]);
    end.abort();
    this.#take = undefined;
    return key;
  }

  #deafen(): void {
    this.#missed = "";
    this.#deafUntil = performance.now() + deafMs;
  }

  /** A line that the terminal does not show. Empty after Ctrl-C. */
  async secret(question: string): Promise<string> {
    io().stdout.write(question);
    const { promise, resolve } = Promise.withResolvers<string>();
    let line = "";
    this.#take = (typed) => {
      line = /^[\b\u007f]$/.test(typed) ? line.slice(0, -1) : line + typed;
      if (isEnd(typed)) resolve("");
      else if (/[\r\n]/.test(typed)) resolve(line.trim());
    };
    const secret = await promise;
    this.#take = undefined;
    say("");
    return secret;
  }

  /** A line of words, with the terminal's own editing. */
  async line(question: string): Promise<string> {
    this.close();
    const lines = createInterface({ input: this.#stdin, output: io().stdout, terminal: true });
    try {
      return (await lines.question(question)).trim();
    } finally {
      lines.close();
      this.#listen();
    }
  }
}

/** Ctrl-C or Ctrl-D. */
function isEnd(typed: string): boolean {
  return typed === "\u0003" || typed === "\u0004";
}

class Watch {
  readonly #gate: GateDoor;
  readonly #root: string;
  readonly #keys: Keys;
  /** Calls that the person left for later, or may not decide. */
  readonly #left = new Set<string>();

  constructor(gate: GateDoor, root: string, keys: Keys) {
    this.#gate = gate;
    this.#root = root;
    this.#keys = keys;
  }

  async run(): Promise<void> {
    let isQuiet = false;
    for (;;) {
      const next = await this.#oldest();
      if (next === undefined) {
        if (!isQuiet) say("nothing waits for you; [q] ends this");
        isQuiet = true;
        if ((await this.#keys.press("q", { ms: pollMs, isNew: false })) === "q") return;
      } else {
        isQuiet = false;
        if ((await this.#decide(next.id)) === "end") return;
      }
    }
  }

  /** The call that has waited longest. */
  async #oldest(): Promise<Pick<ApprovalJson, "id"> | undefined> {
    const answer = await this.#gate.ask("GET", `${this.#root}/approvals?state=pending&mine=1&limit=100`);
    const found = requireAccepted(answer)["approvals"] as readonly Pick<ApprovalJson, "id">[];
    return found.findLast(({ id }) => !this.#left.has(id));
  }

  async #decide(id: string): Promise<"end" | "next"> {
    const answer = await this.#gate.ask("GET", this.#path(id));
    const read = readJson(answer.text ?? "");
    if (answer.status !== 200 || !read.ok) return this.#leave(id, refusalOf(answer));
    const { hash, only_deny: onlyDeny, grants_allowed: offer } = answer.body as unknown as ApprovalDetailJson;
    const allowed = onlyDeny === undefined && offer;
    const keys = [
      ...(onlyDeny === undefined ? ["[y] let it run once"] : []),
      "[n] refuse it",
      ...(allowed === false ? [] : ["[g] also later calls like it"]),
      "[s] later",
      "[q] end",
    ];
    const why = onlyDeny === undefined ? [] : [visible(onlyDeny)];
    say(["", ...card(read.value.members), "", ...why, `\u0007${keys.join("   ")}`].join("\n"));
    const among = keys.map(([, key = ""]) => key).join("");
    for (let isNew = true; ; isNew = false) {
      const key = await this.#keys.press(among, { ms: 2 * pollMs, isNew });
      if (key === "q") return "end";
      if (key === "y") return this.#send(id, "approve", { hash });
      if (key === "s") return this.#leave(id, "left for later");
      if (key === "n") {
        const comment = await this.#keys.line("why? The agent reads it (nothing: back) > ");
        if (comment !== "") return this.#send(id, "deny", { hash, comment });
      }
      if (key === "g" && allowed !== false) {
        const grant = await this.#grant(allowed);
        if (grant !== undefined) return this.#send(id, "approve", { hash, grant });
      }
      if (key === "n" || key === "g") say(keys.join("   "));
      const status = await this.#statusOf(id);
      if (status === "pending") continue;
      say(`${id} is ${status}`);
      return "next";
    }
  }

  async #statusOf(id: string): Promise<string> {
    const { status, body } = await this.#gate.ask("GET", this.#path(id));
    return status === 200 ? (body["status"] as string) : "gone";
  }

  /** What the person chooses to let through too; undefined if nothing. */
  async #grant({ at_most_ms: ms, uses, sums, form }: GrantOfferJson): Promise<object | undefined> {
    const bounds = { until: Date.now() + Math.min(ms, grantMs), uses: Math.min(uses, grantUses) };
    if (sums.length > 0) {
      say(`a grant of amounts needs more than a key: use \`svc-gate grants create\``);
      return undefined;
    }
    const widths = form?.widths ?? [{ name: undefined, shown: "calls with the same members as the rules read" }];
    const shown = widths.map((width, at) => `  [${at + 1}] ${visible(width.shown)}`);
    say(
      [
        `for ${lengthText(Math.min(ms, grantMs))} and ${bounds.uses} calls of this session at most:`,
        ...shown,
        "  [s] back",
      ].join("\n"),
    );
    const digits = widths.map((_, at) => String(at + 1)).join("");
    const key = await this.#keys.press(`${digits}s`, { ms: 3_600_000, isNew: true });
    const width = widths[Number(key) - 1];
    return width && { ...bounds, ...(width.name !== undefined && { width: width.name }) };
  }

  async #send(id: string, decision: "approve" | "deny", body: object): Promise<"next"> {
    const answer = await this.#gate.ask("POST", `${this.#path(id)}/${decision}`, body);
    if (answer.status !== 200) return this.#leave(id, refusalOf(answer));
    const { status, has, needs } = answer.body;
    if (status === "pending") this.#left.add(id);
    say(status === "pending" ? `${id}: ${String(has)} of ${String(needs)} people` : `${id} is ${String(status)}`);
    return "next";
  }

  #leave(id: string, why: string): "next" {
    this.#left.add(id);
    say(`${id}: ${visible(why)}`);
    return "next";
  }

  #path(id: string): string {
    return `${this.#root}/approvals/${encodeURIComponent(id)}`;
  }
}

function say(text: string): void {
  io().stdout.write(`${text}\n`);
}
