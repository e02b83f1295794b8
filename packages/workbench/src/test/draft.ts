import type { YamlMap, YamlNode, YamlScalar } from "../../../core/src/contract/mod.ts";
import { jsonText, type Json, type JsonObject } from "../../../core/src/wire/mod.ts";
import { templateKeys } from "./document.ts";
import { sheetOf, type Sheet } from "./sheet.ts";

/** The members of a call in one part of the file, before the body of the check is written. */
export interface Draft {
  readonly tool: YamlScalar | undefined;
  readonly input: JsonObject;
  /** Null without facts, undefined if nothing is specified. */
  readonly platform: JsonObject | null | undefined;
  readonly key: string | undefined;
  /** Null if the call has no session. */
  readonly session: string | null | undefined;
}

/** Reads the members of calls, with the templates and fixtures of a file. */
export class Drafts {
  readonly #fixtures = new Map<string, JsonObject>();
  readonly #templates = new Map<string, Draft>();

  constructor(file: Sheet) {
    for (const [name, node] of file.entries("fixtures")) this.#fixtures.set(name, file.object(node, name));
    for (const [name, node] of file.entries("templates")) {
      const template = sheetOf(node, "a template", file.report)?.checkKeys(templateKeys);
      if (template !== undefined) this.#templates.set(name, this.own(template));
    }
  }

  /** The members of a call in a map. They override the template that it names, which overrides the surrounding case. */
  within(sheet: Sheet, around: Draft): Draft {
    const like = sheet.scalar("like");
    const template = like === undefined ? undefined : sheet.resolveName(like, "template", this.#templates);
    return over(template === undefined ? around : over(around, template), this.own(sheet));
  }

  /** The members of a call in a map alone. */
  own(sheet: Sheet): Draft {
    const platform = sheet.node("platform");
    const input = sheet.node("input");
    return {
      tool: sheet.scalar("tool"),
      input: input === undefined ? new Map() : sheet.object(input, "input"),
      platform: platform === undefined ? undefined : this.#platform(sheet, platform),
      key: sheet.text("key"),
      session: sheet.textOrNull("session"),
    };
  }

  /** A fixture's name, facts, `{ from: fixture, ... }`, or null. */
  #platform(sheet: Sheet, node: YamlNode): JsonObject | null {
    if (node.kind === "scalar")
      return node.value === null ? null : (sheet.resolveName(node, "fixture", this.#fixtures) ?? null);
    const from = node.kind === "map" ? node.entries.get("from")?.value : undefined;
    if (node.kind !== "map" || from?.kind !== "scalar") return sheet.object(node, "platform");
    const entries = new Map([...node.entries].filter(([name]) => name !== "from"));
    const changes: YamlMap = { ...node, entries };
    return merge(sheet.resolveName(from, "fixture", this.#fixtures) ?? new Map(), sheet.object(changes, "platform"));
  }

  /** The members of a call without those that it leaves out: `without: [platform.price]`. */
  readCall(sheet: Sheet, around: Draft): Draft {
    const draft = this.within(sheet, around);
    const input = new Map(draft.input);
    const platform = new Map(draft.platform ?? new Map());
    for (const { text, span } of sheet.texts("without")) {
      const [root = "", ...rest] = text.split(".");
      const members = root === "input" ? input : root === "platform" ? platform : undefined;
      if (members?.delete(rest.join(".")) === true) continue;
      const message = `the call has no \`${text}\` to leave out`;
      sheet.report.add("unknown-member", span, message, "`input.name` or `platform.name`");
    }
    return { ...draft, input, platform: draft.platform instanceof Map ? platform : null };
  }
}

function over(base: Draft, top: Draft): Draft {
  return {
    tool: top.tool ?? base.tool,
    input: merge(base.input, top.input),
    platform: top.platform === undefined ? base.platform : top.platform,
    key: top.key ?? base.key,
    session: top.session === undefined ? base.session : top.session,
  };
}

function merge(base: JsonObject, top: JsonObject): JsonObject {
  return new Map([...base, ...top]);
}

/** The body of the check. */
export function bodyText(tool: string, { input, platform = null, session = null }: Draft): string {
  const members: [string, Json][] = [
    ["tool_name", tool],
    ["tool_input", input],
  ];
  if (session !== null) members.push(["session_id", session]);
  if (platform !== null) members.push(["platform_state", platform]);
  return jsonText(new Map(members));
}
