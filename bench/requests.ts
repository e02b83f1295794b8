/** Payment checks that the contract allows, each session asking a few times: what a platform really sends. */
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
    session_id: `run-${sequence >> 3}`,
    platform_state: {
      monthly_spend_usd: 20,
      approved_payees: ["0x7f3a9c20d1", "0x51be77aa02"],
      entitlements: [],
      historical_price_usd: 10,
      now_epoch: 1_790_000_000,
    },
  });
}
