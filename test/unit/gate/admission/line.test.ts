/**
 * Goal: a key with many reads delays only its own. Method: examples, and random arrivals and ends on a line, which a model
 * follows that looks at all who wait. Positive control: lines whose bounds are not kept, or whose order is that of arrival.
 */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { setImmediate } from "node:timers/promises";
import fc from "fast-check";
import type { KeyOwner } from "../../../../packages/gate/src/server/admission/shares.ts";
import {
  RequestQueue,
  type RequestQueueOptions,
  type Ticket,
} from "../../../../packages/gate/src/server/admission/line.ts";
import type { Refusal, Result } from "../../../../packages/core/src/wire/mod.ts";
import { control } from "../../../support/controls/control.ts";
import { randomRuns } from "../../../support/random-test.ts";

const never = new AbortController().signal;
const small: RequestQueueOptions = { ofKeyMax: 2, ofTenantMax: 3, max: 5 };

interface WaitingRead {
  readonly owner: KeyOwner;
  readonly gone: AbortController;
  /** Undefined while it waits. */
  result?: Result<Ticket, Refusal>;
}

/** Asks for a place. */
function ask(line: RequestQueue, owner: KeyOwner): WaitingRead {
  const read: WaitingRead = { owner, gone: new AbortController() };
  void line.enter(owner, read.gone.signal).then((result) => (read.result = result));
  return read;
}

/** What happens on a line: a key asks, or the read with this number among those that run or wait ends. */
type Step = { readonly asks: KeyOwner } | { readonly ends: number };

const owners = fc.record({
  tenant: fc.constantFrom(null, "acme", "beta"),
  id: fc.constantFrom("a", "b", "c"),
});
const steps = fc.array(fc.oneof(fc.record({ asks: owners }), fc.record({ ends: fc.nat(30) })), { maxLength: 60 });

/**
 * Who has a place, and who waits, by number of arrival. The place goes to the tenant with the fewest, then to the one whose
 * last place is longest ago; the same for its keys; then by arrival.
 */
class Model {
  readonly #options: RequestQueueOptions;
  readonly placed = new Map<number, KeyOwner>();
  readonly waiting = new Map<number, KeyOwner>();
  /** All who got a place, in order. */
  readonly #log: KeyOwner[] = [];

  constructor(options: RequestQueueOptions) {
    this.#options = options;
  }

  asks(number: number, owner: KeyOwner): void {
    this.waiting.set(number, owner);
    this.#fill();
  }

  ends(number: number): void {
    this.placed.delete(number);
    this.waiting.delete(number);
    this.#fill();
  }

  #count(like: (holder: KeyOwner) => boolean): number {
    return [...this.placed.values()].filter(like).length;
  }

  #fill(): void {
    const { ofKeyMax, ofTenantMax, max = Infinity } = this.#options;
    const served = [...this.waiting].map(([number, owner]) => {
      const ofTenant = this.#count(({ tenant }) => tenant === owner.tenant);
      const ofKey = this.#count(({ tenant, id }) => tenant === owner.tenant && id === owner.id);
      const tenantAt = this.#log.findLastIndex(({ tenant }) => tenant === owner.tenant);
      const keyAt = this.#log.findLastIndex(({ tenant, id }) => tenant === owner.tenant && id === owner.id);
      return { number, holder: owner, ofTenant, tenantAt, ofKey, keyAt };
    });
    const [next] = served
      .filter(({ ofTenant, ofKey }) => ofKey < ofKeyMax && ofTenant < ofTenantMax && this.placed.size < max)
      .toSorted(
        (a, b) =>
          a.ofTenant - b.ofTenant ||
          a.tenantAt - b.tenantAt ||
          a.ofKey - b.ofKey ||
          a.keyAt - b.keyAt ||
          a.number - b.number,
      );
    if (next === undefined) return;
    this.waiting.delete(next.number);
    this.placed.set(next.number, next.holder);
    this.#log.push(next.holder);
    this.#fill();
  }
}

/** Runs steps on a line and on the model. Returns true if the same reads have places after each. */
async function agrees(line: RequestQueue, options: RequestQueueOptions, all: readonly Step[]): Promise<boolean> {
  const model = new Model(options);
  const reads: WaitingRead[] = [];
  for (const step of all) {
    if ("asks" in step) model.asks(reads.push(ask(line, step.asks)) - 1, step.asks);
    else {
      const open = [...model.placed.keys(), ...model.waiting.keys()];
      const number = open[step.ends % Math.max(1, open.length)];
      const read = number === undefined ? undefined : reads[number];
      if (number === undefined || read === undefined) continue;
      if (model.placed.has(number) && read.result?.ok === true) line.leave(read.result.value);
      else read.gone.abort();
      model.ends(number);
    }
    await setImmediate();
    const placed = reads.flatMap(({ result, gone }, at) => (result?.ok === true && !gone.signal.aborted ? [at] : []));
    const ended = placed.filter((at) => !model.placed.has(at) && !model.waiting.has(at));
    const running = placed.filter((at) => !ended.includes(at));
    if (JSON.stringify(running) !== JSON.stringify([...model.placed.keys()].toSorted((a, b) => a - b))) return false;
  }
  return true;
}

suite("a line", () => {
  test("gives each place to the tenant and the key with the fewest, as a model does", async (t) => {
    await fc.assert(
      fc.asyncProperty(steps, (all) => agrees(new RequestQueue(small), small, all)),
      randomRuns(t, 300),
    );
  });

  control("positive control: a line with another bound than the model's is noticed", async (t) => {
    for (const wrong of [{ ofKeyMax: 3 }, { ofTenantMax: 4 }, { max: 6 }]) {
      const all = fc.asyncProperty(steps, (each) => agrees(new RequestQueue({ ...small, ...wrong }), small, each));
      assert.equal((await fc.check(all, randomRuns(t, 2000))).failed, true, JSON.stringify(wrong));
    }
  });

  test("a key that comes late has the next place, however many reads of other keys wait", async () => {
    const line = new RequestQueue({ ofKeyMax: 1, ofTenantMax: 2 });
    const many = ["a", "b"].flatMap((id) => Array.from({ length: 20 }, () => ask(line, { tenant: null, id })));
    await setImmediate();
    const late = ask(line, { tenant: null, id: "c" });
    const [first] = many;
    line.leave(first?.result?.ok === true ? first.result.value : assert.fail());
    await setImmediate();
    assert.equal(late.result?.ok, true);
  });

  test("a read that gave its place back goes on before later ones of its key", async () => {
    const line = new RequestQueue({ ofKeyMax: 1, ofTenantMax: 1 });
    const key = { tenant: null, id: "a" };
    const [first, second] = [ask(line, key), ask(line, key)];
    await setImmediate();
    const ticket = first.result?.ok === true ? first.result.value : assert.fail();
    line.leave(ticket);
    await setImmediate();
    assert.equal(second.result?.ok, true);
    let isBack = false;
    void line.again(ticket, never).then(() => (isBack = true));
    const third = ask(line, key);
    await setImmediate();
    assert.equal(isBack, false, "the second one has the place");
    line.leave(second.result.value);
    await setImmediate();
    assert.deepEqual([isBack, third.result], [true, undefined]);
  });

  test("at a stop, those who wait are refused, but a read that has started goes on", async () => {
    const line = new RequestQueue({ ofKeyMax: 1, ofTenantMax: 1 });
    const key = { tenant: null, id: "a" };
    const [first, second] = [ask(line, key), ask(line, key)];
    await setImmediate();
    const ticket = first.result?.ok === true ? first.result.value : assert.fail();
    line.leave(ticket);
    await setImmediate();
    const back = line.again(ticket, never);
    const third = ask(line, key);
    line.close();
    const fourth = ask(line, key);
    await setImmediate();
    for (const { result } of [third, fourth]) assert.equal(result?.ok === false && result.problem.code, "stopping");
    line.leave(second.result?.ok === true ? second.result.value : assert.fail());
    await back;
    assert.equal(line.waiting, 0);
  });
});
