/** Commands of which a person may grant others of the same form. */
export const formCommands = `contract: shell
platform: { type: object, required: [cwd], properties: { cwd: { type: string }, user: { type: string }, seat: { type: string } } }
approval: { unbound: [input.description] }
commands:
  forms:
    - { run: git push, words: [NAME ?, REF *], does: sends, reason: sends commits }
    - { run: add, words: PACKAGE *, does: [sends, runs], reason: downloads packages }
    - { run: post, options: [--title TEXT, --body TEXT, --base NAME], does: sends, reason: posts }
    - { run: connect, does: sends, reason: connects to another machine }
    - { run: restart, words: [NAME], does: runs, verdict: ESCALATE, reason: restarts a service }
    - { run: publish, options: [-m TEXT], words: reads FILE +, does: reads, verdict: ESCALATE, reason: shows files }
    - { run: rm, words: writes FILE +, does: destroys, reason: deletes }
let: { run: "commands(input.command, platform.cwd)" }
tools:
  bash:
    input:
      type: object
      additionalProperties: false
      required: [command]
      properties:
        command: { type: string, maxLength: 4096 }
        description: { type: string }
        limit: { type: number }
        background: { type: boolean }
        more: {}
        opts: { type: object, additionalProperties: true, properties: { fast: { type: boolean } } }
    requires: platform.present
    otherwise: ALLOW
rules:
  - rule: asks
    on: bash
    when: run.verdict == "ESCALATE"
    verdict: ESCALATE
    approval: { grants: { by: form, at_most: 14d, uses: 10000, free: [input.limit, input.opts.fast] } }
    reason: "{run.reason}{platform.?seat}"
  - { rule: night, on: bash, when: platform.?user.orValue("") == "night", verdict: ESCALATE, reason: nobody is there }
`;
