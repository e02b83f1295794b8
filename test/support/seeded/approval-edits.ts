/** A part of a base that is replaced by another, and the finding that this must raise. */
export type Edit = readonly [base: string, expected: string, from: string | RegExp, to: string];

/** Defects of approvals. */
export const approvalEdits: readonly Edit[] = [
  [
    "orders",
    "unused-approval",
    "verdict: BLOCK, reason: stale",
    "verdict: BLOCK, final: true, approval: { of: 2 }, reason: stale",
  ],
  [
    "orders",
    "unused-approval",
    "verdict: ESCALATE, reason: dear",
    "verdict: ESCALATE, approval: { drift: 1 }, reason: dear",
  ],
  [
    "session-flow",
    "unused-approval",
    /^tools:/m,
    "tools:\n  page.read:\n    input: { type: object, additionalProperties: true }\n    approval: { of: 2 }\n    otherwise: ALLOW",
  ],
  [
    "orders",
    "open-subject",
    /spent_usd, stock, frozen\]([^]*)(frozen: \{ type: boolean \})([^]*)when: platform\.frozen/,
    'spent_usd, stock, frozen, account_id]$1account_id: { type: string }\n    $2$3when: platform.frozen && platform.account_id != "a-1"',
  ],
  [
    "orders",
    "open-subject",
    /spent_usd, stock, frozen\]([^]*)(frozen: \{ type: boolean \})([^]*)reason: dear/,
    'spent_usd, stock, frozen, buyer]$1buyer: { type: string }\n    $2$3reason: "dear for {platform.buyer}"',
  ],
  [
    "payments",
    "open-subject",
    /required: \[monthly_spend_usd([^]*)(now_epoch: \{ type: integer \})([^]*)when: platform\.monthly_spend_usd/,
    'required: [wallet, monthly_spend_usd$1wallet: { type: string }\n    $2$3when: platform.wallet == "" || platform.monthly_spend_usd',
  ],
];
