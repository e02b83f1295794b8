import { parse } from "yaml";
import { approvalEdits, type Edit } from "./approval-edits.ts";
import { bases, published } from "./bases.ts";

/** A defect put into a clean contract, and the finding that it must raise. */
export interface Seed {
  readonly name: string;
  readonly text: string;
  /** One of these codes. */
  readonly expected: readonly string[];
}

/**
 * Returns the seeds: every rule of every contract, broken in the same ways, and the parts of each base that have one
 * meaning, one by one.
 */
export function seeds(): readonly Seed[] {
  const perRule = [
    ...Object.entries(bases).map(([base, text]) => ({ base, text, rules: rulesIn(text) })),
    ...Object.entries(published)
      .filter(([base]) => !base.startsWith("hosts/") || base === "hosts/claude-code")
      .map(([base, text]) => ({ base, text, rules: rulesIn(text).slice(0, publishedMax) })),
  ].flatMap(({ base, text, rules }) => rules.flatMap((rule) => ruleSeeds(base, text, rule)));
  return [...perRule, ...[...edits, ...approvalEdits].map(editSeed), ...additions.map(additionSeed)];
}

/**
 * The number of rules to break in one published contract; the published contracts have many rules. Those of the other agent
 * hosts have the same first rules as Claude Code's.
 */
const publishedMax = 4;

interface WrittenRule {
  readonly rule: string;
  readonly on: string | readonly string[];
  /** Names for parts of its condition. */
  readonly let?: Readonly<Record<string, string>>;
  readonly when: string;
  readonly verdict: "ALLOW" | "ESCALATE" | "BLOCK";
}

function rulesIn(text: string): readonly WrittenRule[] {
  const { rules } = parse(text) as { readonly rules: readonly WrittenRule[] };
  return rules;
}

/** The list of rules ends each contract. */
function withRule(text: string, rule: WrittenRule): string {
  return `${text}  - ${JSON.stringify({ ...rule, reason: "seeded" })}\n`;
}

/** The parts of a rule that say when it applies, as a rule of another name. */
function partsOf({ on, let: named, when, verdict }: WrittenRule): WrittenRule {
  return { rule: "seeded-here", on, ...(named === undefined ? {} : { let: named }), when, verdict };
}

function ruleSeeds(base: string, text: string, rule: WrittenRule): readonly Seed[] {
  const added = (kind: string, change: Partial<WrittenRule>, ...expected: readonly string[]): Seed => ({
    name: `${base}: ${rule.rule}: ${kind}`,
    text: withRule(text, { ...partsOf(rule), ...change }),
    expected,
  });
  const when = `(${rule.when})`;
  const stricter = rule.verdict === "ALLOW" ? "ESCALATE" : "BLOCK";
  return [
    added("the same again", {}, "shadowed"),
    added("never true", { when: `${when} && !${when}` }, "never-fires"),
    added("always true", { when: `${when} || !${when}` }, "always-fires"),
    added("one side twice", { when: `${when} || ${when}` }, "dead-part", "shadowed"),
    added("narrower and later", { when: `${when} && tool != "nothing" && ${when}` }, "shadowed"),
    ...(rule.verdict === "BLOCK"
      ? [
          added("asked of a person as well", { verdict: "ESCALATE" }, "contradiction"),
          added(
            "asked of a person, narrower",
            { verdict: "ESCALATE", when: `${when} && now > timestamp(1000)` },
            "escalate-under-block",
            "contradiction", // if the rule already asks for a later moment
          ),
        ]
      : [added("stricter as well", { verdict: stricter }, "contradiction")]),
  ];
}

function editSeed([base, expected, from, to]: Edit): Seed {
  const text = bases[base] ?? "";
  const changed = text.replace(from, to);
  if (changed === text) throw new Error(`${base} has no ${String(from)}`);
  return {
    name: `${base}: ${String(from)} becomes ${to === "" ? "nothing" : to}`,
    text: changed,
    expected: [expected],
  };
}

/** Seeds that replace one part of a base by another. */
const edits: readonly Edit[] = [
  // A limit replaced by its value.
  ["payments", "unused-limit", "input.amount > limits.per_payment_usd", "input.amount > 50"],
  ["payments", "unused-limit", " * limits.price_variance", " * 1.25"],
  ["session-flow", "unused-limit", "counters.posts >= limits.requests_per_minute", "counters.posts >= 20"],
  ["shell", "unused-limit", "counters.refused >= limits.refusals_per_hour", "counters.refused >= 5"],
  ["orders", "unused-limit", "> limits.unit_usd", "> 100"],
  ["files", "unused-limit", "limits.workspace)", '"/work")'],
  ["mail", "unused-limit", "limits: {", "limits: { attachments: 3,"],
  [
    "payments",
    "unused-fact",
    "    now_epoch: { type: integer }",
    "    now_epoch: { type: integer }\n    frozen: { type: boolean }",
  ],
  ["orders", "unused-fact", "when: platform.frozen", 'when: input.region == "us" && input.pieces > 999'],
  [
    "orders",
    "unused-fact",
    "    frozen: { type: boolean }",
    "    frozen: { type: boolean }\n    owner: { type: string }",
  ],
  ["session-flow", "unused-fact", "  properties:\n", "  properties:\n    region: { type: string }\n"],
  [
    "session-flow",
    "unused-counter",
    "counters.posts >= limits.requests_per_minute",
    "input.path.size() > limits.requests_per_minute",
  ],
  [
    "shell",
    "unused-counter",
    "counters.refused >= limits.refusals_per_hour",
    "input.argv.size() > limits.refusals_per_hour",
  ],
  ["files", "unused-counter", "counters.writes >= limits", "input.bytes >= limits"],
  ["orders", "unused-counter", "counters:\n", "counters:\n  cancelled: { of: order.cancel, per: key, within: 1h }\n"],
  // The choice of the key.
  ["orders", "agent-controlled-key", "per: key", "per: input.sku"],
  ["orders", "agent-controlled-key", "per: key", "per: [key, input.sku]"],
  ["orders", "agent-controlled-key", "per: key", "per: [session, input.region]"],
  ["session-flow", "agent-controlled-key", /(refunded:[^}]*)per: key/, "$1per: input.customer_id"],
  ["session-flow", "agent-controlled-key", /(posts:[^}]*)per: key/, "$1per: input.host"],
  ["files", "agent-controlled-key", "per: key", "per: input.path"],
  ["mail", "agent-controlled-key", "sent: { of: [mail.send], per: key", "sent: { of: [mail.send], per: input.subject"],
  [
    "shell",
    "agent-controlled-key",
    /required: \[argv\]\n( *)properties:\n([^]*?refused:[^}]*)per: key/,
    "required: [argv, folder]\n$1properties:\n        folder: { type: string }\n$2per: input.folder",
  ],
  ["session-flow", "session-budget", /(refunded:[^}]*)per: key/, "$1per: session"],
  ["session-flow", "session-budget", /(posts:[^}]*)per: key, within: 1m/, "$1per: session, within: 24h"],
  ["session-flow", "session-budget", /(posts:[^}]*)per: key, within: 1m/, "$1per: session"],
  ["orders", "session-budget", "per: key", "per: [session, key]"],
  [
    "mail",
    "session-budget",
    "burst: { of: [mail.send], per: session, within: 1m }",
    "burst: { of: [mail.forward_all, mail.send], per: session, within: 7d }",
  ],
  ["shell", "session-not-required", "when: session.present", 'when: tool != ""'],
  ["mail", "session-not-required", "when: session.present", 'when: tool != ""'],
  ["session-flow", "session-not-required", "when: session.present", 'when: tool != ""'],
  ["files", "session-not-required", "per: key, counting: possible", "per: session, counting: attempts"],
  ["orders", "session-not-required", "per: key", "per: session"],
  // The counted events.
  ["session-flow", "attempt-as-proof", /, counting: released|counting: released, /, ""],
  ["session-flow", "attempt-as-proof", "counting: released", "counting: attempts"],
  ["session-flow", "attempt-as-proof", "counting: released", "counting: blocked"],
  ["session-flow", "attempt-as-proof", "counting: released", "counting: escalated"],
  ["session-flow", "approved-uncounted", /(refunded:[^}]*)counting: possible/, "$1counting: released"],
  ["orders", "approved-uncounted", "counting: possible", "counting: released"],
  ["files", "approved-uncounted", "counting: possible", "counting: released"],
  ["mail", "approved-uncounted", "sent: { of: [mail.send], ", "sent: { of: [mail.send], counting: released, "],
  // Values that may be absent, negative or unbounded.
  ["session-flow", "platform-not-required", /"!\(platform.present && has[^"]*"/, 'input.customer_id == ""'],
  [
    "session-flow",
    "absent-fact-skips",
    /"!\(platform.present && has[^"]*"/,
    '"!platform.present && counters.verified == 0"',
  ],
  [
    "orders",
    "absent-fact-skips",
    /spent_usd, stock, frozen\]([^]*)when: platform\.frozen/,
    "spent_usd, stock]$1when: has(platform.frozen) && platform.frozen",
  ],
  [
    "orders",
    "absent-fact-skips",
    /spent_usd, stock, frozen\]([^]*)when: platform\.frozen/,
    "spent_usd, stock]$1when: platform.?frozen.orValue(false)",
  ],
  [
    "orders",
    "absent-fact-skips",
    /, stock, frozen\]([^]*)when: "[^]*?pieces\)"/,
    ", frozen]$1when: has(platform.stock) && !(input.sku in platform.stock)",
  ],
  [
    "payments",
    "absent-fact-skips",
    /\[monthly_spend_usd, ([^]*)when: platform\.monthly_spend_usd/,
    "[$1when: has(platform.monthly_spend_usd) && platform.monthly_spend_usd",
  ],
  ["payments", "may-be-negative", "amount: { type: number, exclusiveMinimum: 0 }", "amount: { type: number }"],
  [
    "payments",
    "may-be-negative",
    "amount: { type: number, exclusiveMinimum: 0 }",
    "amount: { type: number, minimum: -10 }",
  ],
  [
    "payments",
    "may-be-negative",
    "amount: { type: number, exclusiveMinimum: 0 }",
    "amount: { type: number, maximum: 100 }",
  ],
  [
    "payments",
    "unbounded-list",
    "approved_payees: { type: array, items: { type: string }, maxItems: 10000 }",
    "approved_payees: { type: array, items: { type: string } }",
  ],
  [
    "payments",
    "unbounded-list",
    "entitlements: { type: array, items: { type: string }, maxItems: 10000 }",
    "entitlements: { type: array, items: { type: string } }",
  ],
  ["session-flow", "unbounded-list", "{ type: string }, maxItems: 1000 }", "{ type: string } }"],
  ["shell", "unbounded-list", "minItems: 1, maxItems: 64, ", "minItems: 1, "],
  ["mail", "unbounded-list", "to: { type: array, minItems: 1, maxItems: 100, ", "to: { type: array, minItems: 1, "],
  ["shell", "may-fail", "minItems: 1, maxItems: 64, ", "maxItems: 64, "],
  [
    "shell",
    "may-fail",
    "when: input.argv[0] in limits.unasked",
    'when: input.argv[0] in limits.unasked && input.argv[1] != "x"',
  ],
  ["orders", "may-fail", "pieces: { type: integer, minimum: 1, ", "pieces: { type: integer, minimum: 0, "],
  ["orders", "may-fail", "pieces: { type: integer, minimum: 1, ", "pieces: { type: integer, "],
  ["orders", "may-fail", "input.sku in platform.stock && platform.stock", "platform.stock"],
  ["orders", "may-fail", "input.usd / input.pieces", "input.usd % (input.pieces - 7)"],
  [
    "orders",
    "may-fail",
    "input.sku in platform.stock && platform.stock",
    "input.region in platform.stock && platform.stock",
  ],
  // Tools.
  ["payments", "open-input", "additionalProperties: false", "additionalProperties: true"],
  ["shell", "open-input", "additionalProperties: false", "additionalProperties: true"],
  ["mail", "open-input", "additionalProperties: false", "additionalProperties: true"],
  [
    "files",
    "no-rule",
    "tools:\n",
    "tools:\n  file.remove: { input: { type: object, additionalProperties: false }, otherwise: ALLOW }\n",
  ],
  [
    "payments",
    "no-rule",
    "tools:\n",
    "tools:\n  wallet.close: { input: { type: object, additionalProperties: false }, otherwise: ALLOW }\n",
  ],
  [
    "shell",
    "no-rule",
    "tools:\n",
    "tools:\n  shell.kill: { input: { type: object, additionalProperties: false }, otherwise: ALLOW }\n",
  ],
  ["files", "only-allow", /otherwise: BLOCK/, "otherwise: ALLOW"],
  [
    "mail",
    "only-allow",
    /(forward_all:[^]*)otherwise: ESCALATE([^]*)domain, [^]*(- \{ rule: no-forwarding[^]*)BLOCK/,
    '$1otherwise: ALLOW$2domain, address.endsWith(domain)))"\n    verdict: ESCALATE\n    reason: outside\n  $3ALLOW',
  ],
  [
    "mail",
    "look-alike-names",
    "mail.forward_all:",
    "mail.Send:\n    input: { type: object, additionalProperties: false }\n    otherwise: ESCALATE\n  mail.forward_all:",
  ],
  [
    "mail",
    "look-alike-names",
    "tools:\n",
    "tools:\n  mail.forward-all: { input: { type: object, additionalProperties: false }, otherwise: ESCALATE }\n",
  ],
  [
    "payments",
    "look-alike-names",
    "tools:\n",
    "tools:\n  p\u0430yment.send: { input: { type: object, additionalProperties: false }, otherwise: ESCALATE }\n",
  ],
  [
    "orders",
    "look-alike-names",
    "tools:\n",
    "tools:\n  order.plaec: { input: { type: object, additionalProperties: false }, otherwise: ESCALATE }\n",
  ],
  [
    "files",
    "look-alike-names",
    "tools:\n",
    "tools:\n  fi1e.read: { input: { type: object, additionalProperties: false }, otherwise: BLOCK }\n",
  ],
  ["orders", "look-alike-names", "limits: { unit_usd: 100,", "limits: { unit_usd: 100, unitusd: 5,"],
  [
    "payments",
    "look-alike-names",
    "    now_epoch: { type: integer }",
    "    now_epoch: { type: integer }\n    nowEpoch: { type: integer }",
  ],
  // Comments.
  ["payments", "stale-suppression", "rules:\n", "rules:\n  # svc-gate: allow never-fires because it is new\n"],
  ["orders", "stale-suppression", "rules:\n", "rules:\n  # svc-gate: allow never-firs because it is new\n"],
  ["files", "stale-suppression", "  file.read:\n", "  # svc-gate: allow no-rule because it reads\n  file.read:\n"],
  ["mail", "suppression-without-reason", "rules:\n", "rules:\n  # svc-gate: allow dead-part\n"],
];

/** Adds a rule. */
const additions: readonly (readonly [
  base: string,
  on: string,
  verdict: WrittenRule["verdict"],
  when: string,
  ...expected: string[],
])[] = [
  // Values that the schema refuses.
  ["payments", "payment.send", "BLOCK", "input.amount <= 0", "never-fires"],
  ["payments", "payment.send", "BLOCK", 'input.currency == "EUR"', "never-fires"],
  ["payments", "payment.send", "BLOCK", 'input.currency != "USD"', "never-fires"],
  ["payments", "payment.send", "BLOCK", "platform.monthly_spend_usd < 0", "never-fires"],
  ["payments", "payment.send", "BLOCK", "!platform.present", "never-fires"],
  ["payments", "payment.send", "BLOCK", "platform.approved_payees.size() > 10000", "never-fires"],
  ["payments", "payment.send", "BLOCK", "input.amount + platform.monthly_spend_usd <= 0", "never-fires"],
  ["payments", "payment.send", "BLOCK", "input.amount > 90 && input.amount * 2 < 100", "never-fires"],
  [
    "payments",
    "payment.send",
    "BLOCK",
    'input.payee_address.startsWith("acct-") && input.payee_address.startsWith("iban-")',
    "never-fires",
  ],
  ["payments", "payment.send", "BLOCK", 'input.payee_address == "a" && input.payee_address == "b"', "never-fires"],
  ["session-flow", "account.change", "BLOCK", 'input.field == "name"', "never-fires"],
  ["session-flow", "account.change", "BLOCK", '!(input.field in ["email", "phone", "address"])', "never-fires"],
  ["session-flow", "http.post", "BLOCK", "counters.posts < 0", "never-fires"],
  ["session-flow", "http.post", "BLOCK", "!session.present", "never-fires"],
  ["session-flow", "http.post", "BLOCK", "counters.posts > 3 && counters.posts < 4", "never-fires"],
  ["shell", "shell.exec", "BLOCK", "input.argv.size() == 0", "never-fires"],
  ["shell", "shell.exec", "BLOCK", "input.argv.size() > 64", "never-fires"],
  ["shell", "shell.exec", "BLOCK", "input.argv.exists(word, word.size() > 4096)", "never-fires"],
  ["shell", "shell.exec", "BLOCK", 'input.argv[0] == "rm" && input.argv[0] == "ls"', "never-fires"],
  ["mail", "mail.send", "BLOCK", 'input.subject == ""', "never-fires"],
  ["mail", "mail.send", "BLOCK", "input.body.size() > 20000", "never-fires"],
  ["mail", "mail.send", "BLOCK", 'has(input.priority) && input.priority == "urgent"', "never-fires"],
  ["mail", "mail.send", "BLOCK", "input.to.size() < 1", "never-fires"],
  ["mail", "mail.send", "BLOCK", "!has(input.cc) && has(input.cc)", "never-fires"],
  ["files", "file.write", "BLOCK", "input.bytes < 0", "never-fires"],
  ["files", "file.write", "BLOCK", "input.bytes > 5 && input.bytes < 6", "never-fires"],
  ["files", "file.write", "BLOCK", 'input.mode == "create" && input.mode == "append"', "never-fires"],
  ["files", "file.write", "BLOCK", 'input.mode.startsWith("x")', "never-fires"],
  ["orders", "order.place", "BLOCK", "input.pieces > 1000", "never-fires"],
  ["orders", "order.place", "BLOCK", "input.pieces == 2.5", "never-fires"],
  ["orders", "order.place", "BLOCK", 'input.region == "EU"', "never-fires"],
  ["orders", "order.place", "BLOCK", "input.usd * 3 > 300000", "never-fires"],
  ["orders", "order.place", "BLOCK", "platform.frozen && !platform.frozen", "never-fires"],
  ["orders", "order.place", "BLOCK", 'input.region == "eu" ? input.pieces < 1 : input.pieces > 1000', "never-fires"],
  ["orders", "order.place", "BLOCK", 'input.?note.orValue("").size() > 500', "never-fires"],
  ["orders", "order.place", "BLOCK", "counters.today < 0 || input.usd <= 0", "never-fires"],
  ["orders", "order.place", "BLOCK", "input.usd % 10 >= 10", "never-fires"],
  // Conditions that are always true.
  ["orders", "order.place", "ESCALATE", "input.pieces >= 1", "always-fires"],
  ["orders", "order.place", "ESCALATE", "input.usd > 0", "always-fires"],
  ["payments", "payment.send", "ESCALATE", 'input.currency == "USD"', "always-fires"],
  ["payments", "payment.send", "ESCALATE", "platform.present", "always-fires"],
  ["shell", "shell.exec", "ESCALATE", "true", "always-fires"],
  ["shell", "shell.exec", "BLOCK", "input.argv.size() > 0", "always-fires"],
  ["session-flow", "http.post", "BLOCK", "counters.posts >= 0", "always-fires"],
  ["mail", "mail.send", "ESCALATE", "session.present", "always-fires"],
  ["files", "file.write", "ESCALATE", 'input.mode in ["create", "append", "replace"]', "always-fires"],
  ["orders", "order.place", "ESCALATE", 'input.region != "mars"', "always-fires"],
  // One condition inside another.
  ["payments", "payment.send", "BLOCK", "input.amount > limits.per_payment_usd * 2", "shadowed"],
  ["payments", "payment.send", "ESCALATE", "input.amount > 60", "escalate-under-block"],
  ["payments", "payment.send", "ESCALATE", "input.amount >= 51 && has(input.merchant)", "escalate-under-block"],
  ["payments", "payment.send", "ESCALATE", "platform.monthly_spend_usd > 300", "escalate-under-block"],
  ["payments", "payment.send", "ALLOW", "input.amount < 1", "never-decides"],
  [
    "payments",
    "payment.send",
    "ESCALATE",
    "input.amount > 40 && platform.monthly_spend_usd > 160",
    "escalate-under-block",
  ],
  ["payments", "payment.send", "ESCALATE", "input.amount > 50 || platform.monthly_spend_usd >= 200", "never-decides"],
  ["session-flow", "refund.create", "ESCALATE", "input.amount > 300", "escalate-under-block", "shadowed"],
  ["session-flow", "refund.create", "ESCALATE", "input.amount > 150", "shadowed"],
  ["session-flow", "http.post", "ESCALATE", "counters.posts >= 25", "escalate-under-block"],
  [
    "session-flow",
    "http.post",
    "ESCALATE",
    'counters.secrets >= 2 && input.host == "evil.test"',
    "escalate-under-block",
  ],
  ["shell", "shell.exec", "ESCALATE", 'input.argv[0] == "rm"', "escalate-under-block"],
  ["shell", "shell.exec", "ALLOW", 'input.argv[0] == "bash"', "shadowed"],
  ["shell", "shell.exec", "ALLOW", 'input.argv[0] in ["sudo", "su"]', "shadowed"],
  ["shell", "shell.exec", "ALLOW", 'input.argv[0] == "dd" || input.argv[0] == "env"', "never-decides"],
  ["shell", "shell.exec", "ESCALATE", 'input.argv.exists(word, word.startsWith("/etc/passwd"))', "shadowed"],
  ["mail", "mail.send", "ESCALATE", "counters.sent > 40", "escalate-under-block"],
  ["mail", "mail.send", "ESCALATE", "input.to.size() > 30", "shadowed"],
  ["files", "file.write", "ESCALATE", "input.bytes >= 2000000", "escalate-under-block"],
  ["files", "file.write", "ALLOW", "input.bytes > 1000000", "contradiction"],
  ["orders", "order.place", "ESCALATE", 'input.region == "apac" && input.pieces > 500', "shadowed"],
  ["orders", "order.place", "ESCALATE", "input.usd > 6000", "escalate-under-block"],
  ["orders", "order.place", "ESCALATE", 'platform.frozen && input.region == "us"', "escalate-under-block"],
  ["orders", "order.place", "ESCALATE", "platform.frozen", "contradiction"],
  ["orders", "order.place", "BLOCK", '100 < input.pieces && "apac" == input.region', "contradiction"],
  ["payments", "payment.send", "ALLOW", "input.amount > 50", "never-decides"],
  ["orders", "order.place", "BLOCK", "!platform.frozen", "nothing-passes"],
  ["payments", "payment.send", "BLOCK", "input.amount <= 50", "nothing-passes"],
  ["files", "file.write", "BLOCK", "input.bytes <= limits.largest_bytes", "nothing-passes"],
  // Parts.
  ["orders", "order.place", "ESCALATE", "input.pieces > 900 || input.pieces > 1000", "dead-part"],
  ["orders", "order.place", "ESCALATE", "input.usd > 0 && input.pieces > 900", "dead-part"],
  ["payments", "payment.send", "ESCALATE", 'input.amount > 45 && input.currency == "USD"', "dead-part"],
  ["mail", "mail.send", "ESCALATE", 'input.body.contains("password") || input.subject.size() > 200', "dead-part"],
  // Texts.
  ["session-flow", "http.post", "BLOCK", '!input.host.endsWith("example.com")', "domain-suffix"],
  ["session-flow", "http.post", "ESCALATE", 'input.host.lowerAscii().endsWith("partner.test")', "domain-suffix"],
  ["mail", "mail.forward_all", "BLOCK", '!input.to.endsWith("example.com")', "domain-suffix", "shadowed"],
  [
    "session-flow",
    "http.post",
    "ESCALATE",
    '["a.example.com", "b.example.org"].exists(own, input.host.endsWith(own))',
    "domain-suffix",
  ],
  ["files", "file.read", "BLOCK", '!input.path.startsWith("/work")', "path-prefix"],
  ["files", "file.read", "BLOCK", 'input.path.startsWith("/etc/")', "path-prefix"],
  ["session-flow", "http.post", "ESCALATE", 'input.path.startsWith("/admin")', "path-prefix"],
  ["files", "file.write", "ALLOW", 'input.path.startsWith("~/work")', "path-prefix"],
  ["session-flow", "http.post", "BLOCK", 'input.host.contains("evil")', "substring-test"],
  ["session-flow", "http.post", "BLOCK", '!input.host.contains("example.com")', "substring-test"],
  // Without facts.
  [
    "session-flow",
    "http.post",
    "BLOCK",
    "platform.present && platform.?verified_customers.orValue([]).size() > 900",
    "platform-not-required",
  ],
  [
    "session-flow",
    "secret.read",
    "ESCALATE",
    'platform.present && platform.?verified_customers.orValue([]) == ["me"]',
    "platform-not-required",
  ],
  [
    "session-flow",
    "http.post",
    "BLOCK",
    "platform.present && has(platform.verified_customers) && platform.verified_customers.size() == 0",
    "platform-not-required",
  ],
  // Operations.
  ["orders", "order.place", "ESCALATE", "input.usd / (input.pieces - 1) > 3", "may-fail"],
  ["orders", "order.place", "ESCALATE", "input.usd / platform.spent_usd > 3", "may-fail"],
  ["mail", "mail.send", "ESCALATE", 'input.to[1] == "a"', "may-fail"],
  ["mail", "mail.send", "ESCALATE", 'has(input.cc) && input.cc[0] == "a"', "may-fail"],
  ["mail", "mail.send", "ESCALATE", 'input.to[input.subject.size()] == "a"', "may-fail"],
  ["shell", "shell.exec", "ESCALATE", 'input.argv[input.argv.size()] == "-v"', "may-fail"],
  ["payments", "payment.send", "ESCALATE", "input.amount / platform.monthly_spend_usd > 0.5", "may-fail"],
  ["shell", "shell.exec", "ESCALATE", "counters.commands / counters.refused > 2", "may-fail"],
];

function additionSeed([base, on, verdict, when, ...expected]: (typeof additions)[number]): Seed {
  const text = withRule(bases[base] ?? "", { rule: "seeded-here", on, when, verdict });
  return { name: `${base}: ${verdict} when ${when}`, text, expected };
}
