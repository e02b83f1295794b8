/** The files that `svc-gate init` writes: short, with one rule for each verdict. */
export const starterMandate: string = `# yaml-language-server: $schema=.svc-gate/mandate.schema.json
# The contracts in force. Paths are relative to this file.
mandate: starter
contracts:
  - contracts/starter.yaml
`;

export const starterContract: string = `# yaml-language-server: $schema=../.svc-gate/contract.schema.json
# What an agent may do. A tool that is not listed here is refused.
# Compile it with \`svc-gate check\`; the language is in spec/contract.md.
contract: starter
summary: An agent may send mail to colleagues; mail to strangers waits for a person, every other tool is refused.

limits:
  own_domain: "@example.com"
  recipients: 5

tools:
  mail.send:
    input: # JSON Schema, the same as an MCP tool's inputSchema
      type: object
      additionalProperties: false
      required: [to, subject, body]
      properties:
        to: { type: array, items: { type: string }, minItems: 1, maxItems: 100 }
        subject: { type: string, maxLength: 200 }
        body: { type: string }
    requires: # without a session, a counter per session would count nothing
      - { when: session.present, reason: "the call names no session, so earlier calls are unknown" }
    otherwise: ALLOW # the verdict if no rule fires: ALLOW, ESCALATE or BLOCK

counters:
  mails: { of: [mail.send], per: session, within: 1h }

rules:
  - rule: strangers-wait
    on: [mail.send]
    when: input.to.exists(address, !address.endsWith(limits.own_domain))
    verdict: ESCALATE
    reason: a recipient is outside {limits.own_domain}

  - rule: not-to-everyone
    on: [mail.send]
    when: size(input.to) > limits.recipients
    verdict: BLOCK
    reason: "{size(input.to)} recipients are over the limit of {limits.recipients}"

  - rule: not-too-often
    on: [mail.send]
    when: counters.mails >= 20
    verdict: BLOCK
    reason: this session has asked to send {counters.mails} mails within the hour
`;
