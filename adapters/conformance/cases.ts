/** The table of cases. Each host must pass each case that it cannot be excused from, or the case is listed as open. */
import type { Call, HostCase } from "./case.ts";

/** Each amount that needs a person is used in one case: calls of one key with equal input share an approval. */
const pay = (amount: number | string): Call => ({ tool: "pay", input: `{"amount":${amount}}` });
const shell = (word: string, more: object = {}): Call => ({
  tool: "shell",
  input: JSON.stringify({ command: `echo 'shell ${word}' >> witness.txt`, description: "writes a line", ...more }),
});
const read: Call = { tool: "shell", input: JSON.stringify({ command: "cat secret.txt", description: "reads a file" }) };
const agent = (marker: string): Call => ({
  tool: "agent",
  input: JSON.stringify({
    description: "works",
    prompt: `[[${marker}]]`,
    subagent_type: "general-purpose",
    run_in_background: false,
  }),
});
/** A command that waits for its input. */
const open = (command: string, tty: boolean): Call => ({
  tool: "shell",
  input: JSON.stringify({ command, description: "waits", tty }),
});
const typed = (word: string): Call => ({ tool: "stdin", input: `echo 'shell ${word}' >> witness.txt\n` });
const end = "The work is done.";
const blocked = /blocked|denied|no verdict|hook error|haven't granted|refused|not executed|unavailable tool/i;
/** By the host without the hook, or by the gate. */
const refused = new RegExp(`${blocked.source}|too much`, "i");
const person = /a person decides/;

/** The calls that all cases of a lost gate or hook share: none may run. */
const lost = {
  turns: [[pay(5), shell("lost")], end],
  expect: { ran: [], receipts: [], saw: blocked, ended: "done" },
} as const;

const decisions: readonly HostCase[] = [
  {
    id: "A1",
    title: "ALLOW: the call runs once, with the arguments that the gate judged",
    turns: [[pay(5)], [shell("A1")], end],
    expect: { ran: ["pay 5", "shell A1"], receipts: ["pay ALLOW", "shell ALLOW"], ended: "done", hasOutcomes: true },
  },
  {
    id: "A2",
    title: "BLOCK: the call does not run, the model reads the reason, and the run goes on",
    turns: [[pay(900)], [shell("forbidden")], end],
    expect: { ran: [], receipts: ["pay BLOCK", "shell BLOCK"], saw: /900 is too much/, ended: "done" },
  },
  {
    id: "A3",
    title: "ESCALATE: the call does not run, and the model reads that a person decides",
    turns: [[pay(60)], end],
    expect: { ran: [], receipts: ["pay ESCALATE"], saw: person, ended: "done" },
  },
  {
    id: "A4",
    title: "four calls of one batch have four receipts of one session",
    turns: [[pay(5), pay(900), pay(65), pay(6)], end],
    expect: {
      ran: ["pay 5", "pay 6"],
      receipts: ["pay ALLOW", "pay ALLOW", "pay BLOCK", "pay ESCALATE"],
      ended: "done",
    },
  },
  {
    id: "A5",
    title: "a long streamed answer: nothing runs before its verdict",
    isStreamed: true,
    turns: [[pay(5), shell("x".repeat(2000)), pay(900)], end],
    expect: {
      ran: ["pay 5", `shell ${"x".repeat(2000)}`],
      receipts: ["pay ALLOW", "shell ALLOW", "pay BLOCK"],
      ended: "done",
    },
  },
  {
    id: "A5p",
    title: "A5 with the host's second protocol to the model",
    isStreamed: true,
    variant: "other-protocol",
    turns: [[pay(5), shell("A5p"), pay(900)], end],
    expect: {
      ran: ["pay 5", "shell A5p"],
      receipts: ["pay ALLOW", "shell ALLOW", "pay BLOCK"],
      ended: "done",
    },
  },
  {
    id: "A6",
    title: "an unknown tool, wrong arguments, cut JSON and a repeated member: nothing runs",
    turns: [
      [{ tool: "unknown", input: '{"amount":5}' }],
      [pay('"five"'), { tool: "pay", input: "{}" }],
      [{ tool: "pay", input: '{"amount":5' }],
      [{ tool: "pay", input: '{"amount":5,"amount":900}' }],
      end,
    ],
    expect: { ran: [], ended: "done" },
  },
  { id: "A7", title: "the hook is absent: the host itself denies", ...lost, hook: "absent" },
  { id: "A7m", title: "the hook's settings are misspelt: the host itself denies", ...lost, hook: "misspelt" },
  {
    id: "A7r",
    title: "the hook is absent: a command that only reads does not run either",
    turns: [[read], end],
    hook: "absent",
    project: "reads-secret",
    expect: { ran: [], receipts: [], ended: "done" },
  },
  {
    id: "A8",
    title: "the gate observes: a call runs only if the host alone would run it",
    turns: [[pay(5), shell("A8"), pay(900)], end],
    gate: "observe",
    expect: { ran: [], receipts: ["pay ALLOW", "shell ALLOW", "pay ALLOW"], ended: "done" },
    expectWithoutPermissions: {
      ran: ["pay 5", "shell A8", "pay 900"],
      receipts: ["pay ALLOW", "shell ALLOW", "pay ALLOW"],
      ended: "done",
    },
  },
];

const badGates: readonly HostCase[] = [
  { id: "B1", title: "nothing listens at the gate's address", ...lost, gate: "closed" },
  { id: "B2", title: "the gate does not answer", ...lost, gate: "hangs" },
  { id: "B3", title: "the gate answers 500", ...lost, gate: "status-500" },
  { id: "B4", title: "the gate answers 200 without a body", ...lost, gate: "empty" },
  { id: "B5", title: "the gate answers 200 with a page that is not JSON", ...lost, gate: "junk" },
  { id: "B6", title: "the gate's verdict is in lower case", ...lost, gate: "lower-case" },
  { id: "B6a", title: "the gate's answer belongs to another request", ...lost, gate: "another" },
  { id: "B7", title: "fail-open does not grant: nothing runs", ...lost, gate: "closed", variant: "fail-open" },
  {
    id: "B7a",
    title: "fail-open without grant mode: the host's own permissions let the call run",
    turns: [[pay(5)], end],
    gate: "closed",
    variant: "fail-open-without-grant",
    expect: { ran: ["pay 5"], receipts: [], ended: "done" },
  },
  { id: "B8", title: "the facts of the platform cannot be read", ...lost, variant: "facts-throw" },
];

const badHooks: readonly HostCase[] = [
  { id: "C1", title: "the hook crashes", ...lost, hook: "crashes" },
  { id: "C2", title: "the hook exits with 1", ...lost, hook: "exits-1" },
  { id: "C3", title: "the hook's command does not exist", ...lost, hook: "not-there" },
  { id: "C4", title: "the hook is killed", ...lost, hook: "killed" },
  { id: "C5", title: "the hook hangs past the host's deadline", ...lost, hook: "hangs" },
  { id: "C6", title: "the hook answers nothing", ...lost, hook: "says-nothing" },
  { id: "C7", title: "the hook answers a text", ...lost, hook: "says-text" },
  { id: "C8", title: "the hook answers JSON that is not a decision", ...lost, hook: "says-odd-json" },
];

const scopes: readonly HostCase[] = [
  {
    id: "D1",
    title: "the gate is asked about a sub-agent's calls, in the session of the run",
    turns: [[agent("D1-inner")], end],
    inner: { "D1-inner": [[pay(5), pay(900)], end] },
    expect: { ran: ["pay 5"], receipts: ["agent ALLOW", "pay ALLOW", "pay BLOCK"], ended: "done" },
  },
  {
    id: "D1h",
    title: "a sub-agent takes over the conversation: the gate is asked about the handover and the calls after it",
    turns: [[agent("D1h")], [pay(5), pay(900)], end],
    variant: "handoff",
    expect: { ran: ["pay 5"], receipts: ["agent ALLOW", "pay ALLOW", "pay BLOCK"], ended: "done" },
  },
  {
    id: "D2",
    title: "a tool of an MCP server has its documented name at the gate",
    turns: [
      [
        { tool: "mcp", input: '{"amount":7}' },
        { tool: "mcp", input: '{"amount":907}' },
      ],
      end,
    ],
    expect: { ran: ["pay 7"], receipts: ["mcp ALLOW", "mcp BLOCK"], saw: /907(\.0)? is too much/, ended: "done" },
  },
  {
    id: "D3",
    title: "a tool that the provider runs is refused",
    turns: [[{ tool: "web", input: '{"query":"news of today"}' }], end],
    variant: "provider-tool",
    expect: { ran: [] },
  },
  {
    id: "D4",
    title: "another hook rewrites the input after the gate judged it",
    turns: [[pay(5)], end],
    project: "rewrites",
    variant: "second-hook",
    expect: { ran: [] },
  },
  {
    id: "D4p",
    title: "the input changes after the framework asked whether the run parks, and before the call",
    turns: [[pay(5)], end],
    onEscalate: "park",
    variant: "second-hook",
    expect: { ran: [] },
  },
  {
    id: "D4m",
    title: "D4 with a set-up that protects the host from the project's files",
    turns: [[pay(5)], end],
    project: "rewrites",
    isProtected: true,
    expect: { ran: ["pay 5"], receipts: ["pay ALLOW"], ended: "done" },
  },
  {
    id: "D5",
    title: "a trusted project's file switches hooks off",
    turns: [[pay(900), shell("D5 forbidden")], end],
    project: "switches-hooks-off",
    expect: { ran: [], saw: refused, ended: "done" },
  },
  {
    id: "D5a",
    title: "a trusted project's file switches hooks off and allows every tool",
    turns: [[pay(900), shell("D5a forbidden")], end],
    project: "allows-all",
    expect: { ran: [], ended: "done" },
  },
  {
    id: "D5m",
    title: "D5a with a set-up that protects the host from the project's files",
    turns: [[pay(900), shell("D5m forbidden"), pay(5)], end],
    project: "allows-all",
    isProtected: true,
    expect: { ran: ["pay 5"], receipts: ["pay BLOCK", "shell BLOCK", "pay ALLOW"], ended: "done" },
  },
  {
    id: "D6",
    title: "the gate is asked about commands in the background",
    turns: [[shell("D6 forbidden", { run_in_background: true }), shell("D6", { run_in_background: true })], end],
    expect: { ran: ["shell D6"], receipts: ["shell BLOCK", "shell ALLOW"] },
  },
  {
    id: "D6s",
    title: "the gate is asked about text for a running command, or nothing can write to it",
    turns: [[open("cat", false), open("sh", true)], [typed("D6s")], end],
    expect: { ran: [] },
  },
];

const approvals: readonly HostCase[] = [
  {
    id: "E1",
    title: "a person approves a parked call: it runs once",
    turns: [[pay(75)], end],
    again: [],
    onEscalate: "park",
    person: "approves",
    expect: { ran: ["pay 75"], receipts: ["pay ESCALATE", "pay ESCALATE", "pay ALLOW"], ended: "done" },
  },
  {
    id: "E1n",
    title: "a parked run goes on before a person has decided: the call does not run",
    turns: [[pay(77)], end],
    again: [],
    onEscalate: "park",
    expect: { ran: [] },
  },
  {
    id: "E1d",
    title: "a person denies a parked call: it does not run, and the model reads the denial",
    turns: [[pay(78)], end],
    again: [],
    onEscalate: "park",
    person: "denies",
    expect: { ran: [], saw: /denied/, ended: "done" },
  },
  {
    id: "E1b",
    title: "one call of a batch is parked: after the approval each call has run once, and is counted once",
    turns: [[pay(5), pay(79), pay(6)], end],
    again: [],
    onEscalate: "park",
    person: "approves",
    expect: {
      ran: ["pay 5", "pay 6", "pay 79"],
      receipts: ["pay ALLOW", "pay ALLOW", "pay ESCALATE", "pay ESCALATE", "pay ALLOW"],
      ended: "done",
    },
  },
  {
    id: "E1w",
    title: "a person approves while the host waits: the call runs once",
    turns: [[pay(85)], end],
    onEscalate: "wait",
    person: "approves-while-held",
    expect: { ran: ["pay 85"], receipts: ["pay ESCALATE", "pay ALLOW"], ended: "done" },
  },
  {
    id: "E2",
    title: "a person approves, and the arguments change: the other call does not run",
    turns: [[pay(95)], end],
    again: [[pay(96)], [pay(95)], end],
    person: "approves",
    expect: {
      ran: ["pay 95"],
      receipts: ["pay ESCALATE", "pay ESCALATE", "pay ESCALATE", "pay ALLOW"],
      saw: person,
      ended: "done",
    },
  },
  {
    id: "E3",
    title: "a person approves one of two calls: only that one runs",
    turns: [[pay(105), pay(106)], end],
    again: [[pay(105), pay(106)], end],
    person: "approves",
    expect: { ran: ["pay (105|106)"], ended: "done" },
  },
  {
    id: "E4",
    title: "an approval has expired: the call does not run",
    turns: [[pay(450)], end],
    again: [[pay(450)], end],
    person: "approves-too-late",
    expect: { ran: [], ended: "done" },
  },
  {
    id: "E4b",
    title: "a rule has changed to BLOCK since the approval: the call does not run",
    turns: [[pay(75)], end],
    again: [[pay(75)], end],
    person: "approves-then-rule-blocks",
    expect: { ran: [], saw: /75 is too much/, ended: "done" },
  },
];

export const cases: readonly HostCase[] = [...decisions, ...badGates, ...badHooks, ...scopes, ...approvals];
