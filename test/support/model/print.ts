import type { Contract, Counter, Expression, Json, Reason, Requirement, Scenario, Schema, Window } from "./language.ts";

/** YAML before it becomes text. A value that cannot look like an expression is JSON; so are names of tools. */
type Yaml = null | boolean | string | { readonly num: string } | readonly Yaml[] | YamlMap;
type YamlMap = { readonly map: readonly (readonly [string, Yaml])[] };

export function printContract(contract: Contract): string {
  return block({
    map: [
      ["contract", contract.name],
      ...some("limits", named(contract.limits.map((limit) => [limit.name, limitYaml(limit)]))),
      ...(contract.platform === undefined ? [] : [["platform", schemaYaml(contract.platform)] as const]),
      ...some("requires", contract.requires.map(requirementYaml)),
      ...some("let", named(contract.lets.map(([name, expression]) => [name, printExpression(expression)]))),
      ["tools", named(contract.tools.map((tool) => [tool.name, toolYaml(tool)]))],
      ...some("counters", named(contract.counters.map((counter) => [counter.name, counterYaml(counter)]))),
      ...some(
        "rules",
        contract.rules.map((rule) => ({
          map: [
            ["rule", rule.name],
            ["on", rule.on],
            ...some("let", named(rule.lets.map(([name, expression]) => [name, printExpression(expression)]))),
            ["when", printExpression(rule.when)],
            ...(rule.observed === true ? [["mode", "observe"] as const] : []),
            ["verdict", rule.verdict],
            ...(rule.final ? [["final", true] as const] : []),
            ["reason", reasonText(rule.reason)],
          ],
        })),
      ),
    ],
  });
}

/** Writes the file of a contract, as the mandate names it. */
export function fileOf({ name }: Contract): string {
  return `${name}.yaml`;
}

export function printMandate({ contracts, settings }: Scenario): string {
  const set = contracts.map(({ name }): [string, Yaml] => [
    name,
    named(settings.filter(({ contract }) => contract === name).map(({ limit, value }) => [limit, jsonYaml(value)])),
  ]);
  const limits = set.filter(([name]) => settings.some(({ contract }) => contract === name));
  return block({
    map: [["mandate", "model"], ["contracts", contracts.map(fileOf)], ...some("limits", named(limits))],
  });
}

function some(key: string, value: readonly Yaml[] | YamlMap): readonly (readonly [string, Yaml])[] {
  const isEmpty = isList(value) ? value.length === 0 : value.map.length === 0;
  return isEmpty ? [] : [[key, value]];
}

function named(entries: readonly (readonly [string, Yaml])[]): YamlMap {
  return { map: entries };
}

function limitYaml({ value, min, max }: Contract["limits"][number]): Yaml {
  if (min === undefined && max === undefined) return jsonYaml(value);
  return {
    map: [
      ["default", jsonYaml(value)],
      ...(min === undefined ? [] : [["min", { num: min }] as const]),
      ...(max === undefined ? [] : [["max", { num: max }] as const]),
    ],
  };
}

function toolYaml({ input, requires, otherwise }: Contract["tools"][number]): Yaml {
  return {
    map: [
      ["input", schemaYaml(input)],
      ...some("requires", requires.map(requirementYaml)),
      ...(otherwise === undefined ? [] : [["otherwise", otherwise] as const]),
    ],
  };
}

function requirementYaml({ when, reason }: Requirement): Yaml {
  if (reason === undefined) return printExpression(when);
  return {
    map: [
      ["when", printExpression(when)],
      ["reason", reasonText(reason)],
    ],
  };
}

function counterYaml({ of, when, per, sum, remembers, counting, within, since, settlesWithin }: Counter): Yaml {
  const apart = per.map((each) => (typeof each === "string" ? each : printExpression(each)));
  const [only] = apart;
  return {
    map: [
      ["of", of],
      ...(when === undefined ? [] : [["when", printExpression(when)] as const]),
      ["per", apart.length === 1 && only !== undefined ? only : apart],
      ...(sum === undefined ? [] : [["sum", printExpression(sum)] as const]),
      ...(remembers === undefined ? [] : [["remembers", printExpression(remembers)] as const]),
      ...(counting === undefined ? [] : [["counting", counting] as const]),
      ...windowYaml(within),
      ...(since === undefined ? [] : [["since", printExpression(since)] as const]),
      ...(settlesWithin === undefined ? [] : [["settles_within", settlesWithin] as const]),
    ],
  };
}

function windowYaml(within: Window | undefined): readonly (readonly [string, Yaml])[] {
  if (within === undefined) return [];
  if ("rolling" in within) return [["within", within.rolling]];
  return [
    ["within", within.unit],
    ...(within.timezone === undefined ? [] : [["timezone", within.timezone] as const]),
    ...(within.weekStarts === undefined ? [] : [["week_starts", within.weekStarts] as const]),
  ];
}

function schemaYaml(schema: Schema): Yaml {
  const entries: (readonly [string, Yaml])[] = [];
  const [type] = schema.types;
  if (schema.types.length === 1 && type !== undefined) entries.push(["type", type]);
  if (schema.types.length > 1) entries.push(["type", schema.types]);
  for (const bound of ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"] as const) {
    const text = schema[bound];
    if (text !== undefined) entries.push([bound, { num: text }]);
  }
  for (const length of ["minLength", "maxLength", "minItems", "maxItems"] as const) {
    const count = schema[length];
    if (count !== undefined) entries.push([length, { num: String(count) }]);
  }
  if (schema.uniqueItems !== undefined) entries.push(["uniqueItems", schema.uniqueItems]);
  if (schema.oneOf !== undefined) entries.push(["enum", schema.oneOf.map(jsonYaml)]);
  if (schema.constant !== undefined) entries.push(["const", jsonYaml(schema.constant)]);
  if (schema.items !== undefined) entries.push(["items", schemaYaml(schema.items)]);
  if (schema.additional !== undefined)
    entries.push([
      "additionalProperties",
      typeof schema.additional === "boolean" ? schema.additional : schemaYaml(schema.additional),
    ]);
  if (schema.required !== undefined) entries.push(["required", schema.required]);
  if (schema.properties !== undefined)
    entries.push(["properties", named(schema.properties.map(([name, each]) => [name, schemaYaml(each)]))]);
  return { map: entries };
}

function jsonYaml(json: Json): Yaml {
  if (json === null || typeof json !== "object") return json;
  if (isList<Json>(json)) return json.map(jsonYaml);
  if ("num" in json) return json;
  return { map: json.obj.map(([name, value]) => [name, jsonYaml(value)] as const) };
}

/** Writes a list of items as in its source: JSON in JSON, YAML in YAML. */
function isList<Item>(value: Item | readonly Item[]): value is readonly Item[] {
  return Array.isArray(value);
}

/** Writes block style, with every text in double quotes. */
function block(yaml: YamlMap): string {
  return `${lines(yaml).join("\n")}\n`;
}

function lines(yaml: Yaml): string[] {
  if (yaml === null || typeof yaml !== "object") return [JSON.stringify(yaml)];
  if (isList<Yaml>(yaml)) return yaml.length === 0 ? ["[]"] : yaml.flatMap((item) => under("-", item));
  if ("num" in yaml) return [yaml.num];
  return yaml.map.length === 0 ? ["{}"] : yaml.map.flatMap(([key, value]) => under(`${JSON.stringify(key)}:`, value));
}

function under(head: string, value: Yaml): string[] {
  const below = lines(value);
  const isScalar =
    value === null ||
    typeof value !== "object" ||
    "num" in value ||
    (isList(value) && value.length === 0) ||
    (!isList(value) && value.map.length === 0);
  return isScalar ? [`${head} ${below[0] ?? ""}`] : [head, ...below.map((line) => `  ${line}`)];
}

export function printJson(json: Json): string {
  if (json === null || typeof json !== "object") return JSON.stringify(json);
  if (isList<Json>(json)) return `[${json.map(printJson).join(", ")}]`;
  if ("num" in json) return json.num;
  return `{${json.obj.map(([name, value]) => `${JSON.stringify(name)}: ${printJson(value)}`).join(", ")}}`;
}

function reasonText(reason: Reason): string {
  return reason.map((part) => (typeof part === "string" ? part : `{${printExpression(part)}}`)).join("");
}

const strength: Readonly<Record<string, number>> = {
  "||": 2,
  "&&": 3,
  "==": 4,
  "!=": 4,
  "<": 4,
  "<=": 4,
  ">": 4,
  ">=": 4,
  in: 4,
  "+": 5,
  "-": 5,
  "*": 6,
  "/": 6,
  "%": 6,
};

/** Writes only the parentheses that the grammar needs, and one pair around a comparison inside another. */
export function printExpression(expression: Expression): string {
  return written(expression).text;
}

/** A text and its precedence: 1 a choice, 2 to 6 an operator, 7 a sign, 8 a member or a literal. */
interface Written {
  readonly text: string;
  readonly strength: number;
}

function atLeast(expression: Expression, least: number): string {
  const { text, strength: own } = written(expression);
  return own >= least ? text : `(${text})`;
}

function tight(text: string): Written {
  return { text, strength: 8 };
}

function written(expression: Expression): Written {
  switch (expression.kind) {
    case "number":
      return { text: expression.text, strength: expression.text.startsWith("-") ? 7 : 8 };
    case "text":
      return tight(JSON.stringify(expression.value));
    case "boolean":
      return tight(String(expression.value));
    case "null":
      return tight("null");
    case "list":
      return tight(`[${expression.items.map(printExpression).join(", ")}]`);
    case "map":
      return tight(
        `{${expression.entries.map(([key, value]) => `${JSON.stringify(key)}: ${printExpression(value)}`).join(", ")}}`,
      );
    case "root":
    case "name":
      return tight(expression.name);
    case "limit":
      return tight(`limits.${expression.name}`);
    case "counter":
      return tight(`counters.${expression.name}`);
    case "asked":
      return { text: `${atLeast(expression.value, 5)} in counters.${expression.counter}`, strength: 4 };
    case "member":
      return tight(`${atLeast(expression.of, 8)}.${expression.name}`);
    case "default":
      return tight(
        `${atLeast(expression.of, 8)}${expression.path.map((name) => `.?${name}`).join("")}` +
          `.orValue(${printExpression(expression.otherwise)})`,
      );
    case "has":
      return tight(`has(${atLeast(expression.of, 8)}.${expression.name})`);
    case "index":
      return tight(`${atLeast(expression.of, 8)}[${printExpression(expression.at)}]`);
    case "not":
      return { text: `!${atLeast(expression.of, 8)}`, strength: 7 };
    case "minus":
      return { text: `-${atLeast(expression.of, 8)}`, strength: 7 };
    case "binary":
      return writtenBinary(expression);
    case "choice":
      return {
        text: `${atLeast(expression.condition, 2)} ? ${atLeast(expression.yes, 2)} : ${atLeast(expression.no, 1)}`,
        strength: 1,
      };
    case "fold":
      return tight(
        `${atLeast(expression.over, 8)}.${expression.macro}(${expression.variable}, ${printExpression(expression.body)})`,
      );
    case "call":
      return tight(writtenCall(expression));
    default:
      return tight(`${expression.kind}(${JSON.stringify(expression.text)})`);
  }
}

function writtenBinary({ operator, left, right }: Extract<Expression, { kind: "binary" }>): Written {
  const own = strength[operator] ?? 0;
  const first = own === 4 ? 5 : own;
  return { text: `${atLeast(left, first)} ${operator} ${atLeast(right, own + 1)}`, strength: own };
}

function writtenCall({ name, of, argument }: Extract<Expression, { kind: "call" }>): string {
  if (name === "size") return `size(${printExpression(of)})`;
  return `${atLeast(of, 8)}.${name}(${argument === undefined ? "" : printExpression(argument)})`;
}
