/** Payment checks that the contract allows, a few in each session, as a real platform sends them. */
export function paymentBody(sequence: number): string {
  return JSON.stringify({
    tool_name: "payment.send",
    tool_input: {
      amount: 10 + (sequence % 3),
      currency: "USD",
      merchant: "acme",
      payee_address: "0x7f3a9c20d1",
      resource: `report-${sequence % 97}`,
      offer_expires_epoch: 1_790_000_500,
    },
    session_id: sessionId(sequence >> 3),
    platform_state: {
      monthly_spend_usd: 20,
      approved_payees: ["0x7f3a9c20d1", "0x51be77aa02"],
      entitlements: [],
      historical_price_usd: 10,
      now_epoch: 1_790_000_000,
    },
  });
}

/**
 * Returns a session's id, in random order as platforms draw them. Ascending ids would all go to the end of the ledger's
 * index of sessions, which hides 1.7 times the cost of writing a row. Each number has its own id.
 */
export function sessionId(session: number): string {
  let bits = Math.imul(session ^ (session >>> 16), 0x85ebca6b);
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35);
  return `run-${((bits ^ (bits >>> 16)) >>> 0).toString(16).padStart(8, "0")}`;
}
