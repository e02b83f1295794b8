import assert from "node:assert/strict";

/** A week of a customer support whose agents ask the gate, and of two people who decide. */
export interface StoryGate {
  /** Sends a request with the key of an agent, of a person or of the operator, and returns the answer. */
  readonly send: (who: string, path: string, body?: object) => Promise<any>;
  /** Sets the time, in milliseconds since the epoch. */
  readonly setTime: (at: number) => void;
}

export const agents = ["support-bot", "billing-bot", "night-batch"] as const;

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
const customers = ["lena", "omar", "ines", "tom", "mia", "noor", "paul", "yuki", "sara", "ivan"];
const notes = ["the parcel never arrived", "wrong size", "charged twice", "the box was damaged", "cancelled in time"];
const subjects = ["Your refund", "Your order", "We are sorry", "A question about your order"];

/** Numbers between 0 and 1 that are the same in each run (mulberry32). */
function numbersFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

interface Waiting {
  readonly at: number;
  readonly work: () => Promise<void>;
}

/** Fills the ledger with a week that ends at `end`, and leaves some calls that wait for a person. */
export async function tellStory(
  gate: StoryGate,
  { end, calls }: { readonly end: number; readonly calls: number },
): Promise<void> {
  const random = numbersFrom(18);
  const pick = <Item>(items: readonly Item[]): Item => items[Math.floor(random() * items.length)] as Item;
  const start = end - 5 * dayMs;
  const moments = Array.from({ length: calls }, () => start + workingTime(random) * (end - hourMs - start)).toSorted(
    (a, b) => a - b,
  );
  const waiting: Waiting[] = [];
  for (const [order, at] of moments.entries()) {
    await catchUp(gate, waiting, at);
    gate.setTime(at);
    const agent = pick(["support-bot", "support-bot", "support-bot", "billing-bot", "night-batch"]);
    const call = someCall({ order, random, pick });
    const answer = await gate.send(agent, "/check", call);
    if (answer.verdict === "ALLOW") later(gate, waiting, { at, agent, answer, random });
    if (answer.approval?.status === "pending") decided(gate, waiting, { at, agent, answer, call, random });
  }
  await catchUp(gate, waiting, end - hourMs);
  await leaveWaiting(gate, end);
  gate.setTime(end);
}

/** A moment of the week between 0 and 1: most calls come by day. */
function workingTime(random: () => number): number {
  const hour = random() < 0.85 ? 8 + 10 * ((random() + random()) / 2) : 24 * random();
  const day = Math.floor(random() * 5);
  return Math.min(0.999, (day + hour / 24) / 5);
}

interface Picking {
  readonly order: number;
  readonly random: () => number;
  readonly pick: <Item>(items: readonly Item[]) => Item;
}

function someCall({ order, random, pick }: Picking): any {
  const customer = pick(customers);
  const session_id = `ticket-${4000 + Math.floor(order / 3)}`;
  const facts = { customer, paid_usd: Math.round(40 + random() * 700), country: pick(["DE", "FR", "US", "JP"]) };
  const kind = random();
  if (kind < 0.45) {
    const subject = pick(subjects);
    const tool_input = { to: `${customer}@mail.example`, subject, body: `Dear ${customer}, ${pick(notes)} ...` };
    return { tool_name: "mail.send", tool_input, session_id, platform_state: facts };
  }
  if (kind < 0.97) {
    const usd = Math.round(100 * (random() < 0.85 ? 3 + random() * 46 : 50 + random() * 600)) / 100;
    const tool_input = { order: `B-${1000 + (order % 700)}`, usd, note: pick(notes) };
    return { tool_name: "refund", tool_input, session_id, platform_state: facts };
  }
  if (kind < 0.985)
    return {
      tool_name: "account.close",
      tool_input: { customer, reason: "asked by mail" },
      session_id,
      platform_state: facts,
    };
  return { tool_name: "invoice.delete", tool_input: { order: `B-${order}` }, session_id, platform_state: facts };
}

interface Happened {
  readonly at: number;
  readonly agent: string;
  readonly answer: any;
  readonly random: () => number;
}

/** The tool runs, and the agent reports it; not always. */
function later(gate: StoryGate, waiting: Waiting[], { at, agent, answer, random }: Happened): void {
  const luck = random();
  if (luck > 0.93) return;
  const status = luck < 0.88 ? "done" : luck < 0.91 ? "failed" : "unknown";
  const receipt = { seq: answer.receipt.seq, hash: answer.receipt.hash };
  waiting.push({ at: at + 2000, work: () => gate.send(agent, "/outcomes", { receipt, status }) });
}

/** A person decides after some minutes, and the agent asks again. Some calls nobody decides in time. */
function decided(
  gate: StoryGate,
  waiting: Waiting[],
  { at, agent, answer, call, random }: Happened & { readonly call: any },
): void {
  const { id } = answer.approval;
  const [who, other] = random() < 0.6 && call.tool_name === "refund" ? ["anna", "bob"] : ["bob", "anna"];
  const after = at + Math.round((1 + 25 * random() ** 2) * 60_000);
  const luck = random();
  if (luck > 0.93) return;
  waiting.push({
    at: after,
    work: async () => {
      const { hash, needs, status } = await gate.send(who, `/approvals/${id}`);
      if (status !== "pending") return;
      if (luck > 0.78) {
        await gate.send(who, `/approvals/${id}/deny`, { hash, comment: "the customer was paid back already" });
        return;
      }
      await gate.send(who, `/approvals/${id}/approve`, { hash, comment: "" });
      if (needs > 1) await gate.send(other, `/approvals/${id}/approve`, { hash, comment: "" });
      waiting.push({
        at: after + 20_000,
        work: async () => {
          const again = await gate.send(agent, "/check", { ...call, approval: { id } });
          if (again.verdict === "ALLOW") later(gate, waiting, { at: after + 20_000, agent, answer: again, random });
        },
      });
    },
  });
}

async function catchUp(gate: StoryGate, waiting: Waiting[], until: number): Promise<void> {
  for (;;) {
    waiting.sort((one, other) => one.at - other.at);
    const next = waiting[0];
    if (next === undefined || next.at > until) return;
    waiting.shift();
    gate.setTime(next.at);
    await next.work();
  }
}

/** The calls that the pictures show: each waits for another reason. */
async function leaveWaiting(gate: StoryGate, end: number): Promise<void> {
  const minute = 60_000;
  const ask = async (ago: number, agent: string, call: object): Promise<any> => {
    gate.setTime(end - ago * minute);
    const answer = await gate.send(agent, "/check", call);
    assert.notEqual(answer.verdict, "BLOCK", answer.reason);
    return answer;
  };
  const refund = (customer: string, order: string, usd: number, note: string): any => ({
    tool_name: "refund",
    tool_input: { order, usd, note },
    session_id: `ticket-${order.slice(2)}`,
    platform_state: { customer, paid_usd: 900, country: "DE" },
  });
  const payout = { iban: "DE02 1203 0000 0000 2020 51", usd: 2400, reason: "settlement of case 88" };
  const facts = { customer: "omar", paid_usd: 2400 };
  const two = await ask(59, "billing-bot", {
    tool_name: "payout",
    tool_input: payout,
    session_id: "case-88",
    platform_state: facts,
  });
  gate.setTime(end - 57 * minute);
  const seen = await gate.send("bob", `/approvals/${two.approval.id}`);
  await gate.send("bob", `/approvals/${two.approval.id}/approve`, {
    hash: seen.hash,
    comment: "agreed with the customer",
  });
  const granted = await ask(55, "support-bot", refund("sara", "A-5480", 70, "part of a recall"));
  const { hash } = await gate.send("anna", `/approvals/${granted.approval.id}`);
  const grant = { approval: granted.approval.id, hash, uses: 12, amounts: { "input.usd": 600 } };
  const made = await gate.send("anna", "/grants", { ...grant, until: end + 3 * hourMs, pins: [] });
  assert.equal(made.status, "active", JSON.stringify(made));
  for (const usd of [64, 51.5, 69]) await ask(50, "support-bot", refund("sara", "A-5480", usd, "part of a recall"));
  const close = { customer: "ivan", reason: "asked by mail" };
  await ask(41, "support-bot", {
    tool_name: "account.close",
    tool_input: close,
    session_id: "ticket-5472",
    platform_state: { customer: "ivan", paid_usd: 20 },
  });
  await ask(33, "support-bot", refund("ines", "A-5471", 640, "refund to\u200B another card \u202Eand"));
  await ask(21, "support-bot", refund("lena", "A-5474", 120.5, "the parcel never arrived"));
  for (const ago of [12, 9, 5]) await ask(ago, "support-bot", refund("tom", "A-5477", 89.9, "the box was damaged"));
  await ask(3, "night-batch", refund("mia", "A-5479", 61, "wrong size"));
}
