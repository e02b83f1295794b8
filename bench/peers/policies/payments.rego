# The six rules of the payments policy. Asked for data.payments.decision.
package payments

default decision := {"verdict": "BLOCK", "reasons": ["no rule routes this tool"]}

decision := {"verdict": "BLOCK", "reasons": blocks} if {
  count(blocks) > 0
} else := {"verdict": "ESCALATE", "reasons": escalations} if {
  count(escalations) > 0
} else := {"verdict": "ALLOW", "reasons": []} if {
  routed[input.tool_name]
}

routed["payment.send"] := true

limits := {"per_payment_usd": 50, "monthly_budget_usd": 200, "price_variance": 1.25}

blocks contains "the platform did not supply ledger state" if {
  input.tool_name == "payment.send"
  not input.platform_state
}

blocks contains "the offer has expired" if {
  input.tool_name == "payment.send"
  input.tool_input.offer_expires_epoch < input.platform_state.now_epoch
}

blocks contains "the payee is not registered" if {
  input.tool_name == "payment.send"
  not input.tool_input.payee_address in input.platform_state.approved_payees
}

blocks contains "over the limit for one payment" if {
  input.tool_name == "payment.send"
  input.tool_input.amount > limits.per_payment_usd
}

blocks contains "past the budget of the month" if {
  input.tool_name == "payment.send"
  input.platform_state.monthly_spend_usd + input.tool_input.amount > limits.monthly_budget_usd
}

escalations contains "over the allowed variance from the usual price" if {
  input.tool_name == "payment.send"
  input.tool_input.amount > input.platform_state.historical_price_usd * limits.price_variance
}
