import { h, type JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { ApprovalDetailJson, GrantOfferJson } from "../../../../core/src/approvals/mod.ts";
import { lengthText, visible, widthWords } from "../../../../core/src/wire/mod.ts";
import { el } from "../elements.ts";
import { Button, Field, Tick } from "../fields.ts";
import { ask, gateNow } from "../gate.ts";
import { toggleName } from "../parts.ts";
import { Text } from "../text.ts";
import { GrantBounds } from "./grant-bounds.ts";

/** What the person has typed. */
export interface GrantFields {
  readonly minutes: string;
  readonly uses: string;
  readonly pins: ReadonlySet<string>;
  /** Members that later calls may have too, with commas between them. */
  readonly free: string;
  readonly amounts: Readonly<Record<string, string>>;
  readonly anySession: boolean;
  /** How far the command line may differ. */
  readonly width: string;
}

interface GrantFormProps {
  readonly approval: ApprovalDetailJson;
  readonly offer: GrantOfferJson;
  readonly fields: GrantFields | undefined;
  readonly onChange: (fields: GrantFields | undefined) => void;
}

const minuteMs = 60_000;

/** A grant lets later calls like this one through. It is a second step, with its bounds and a preview. */
export function GrantForm({ approval, offer, fields, onChange }: GrantFormProps): JSX.Element {
  const [preview, setPreview] = useState("");
  if (fields === undefined)
    return el.p(
      h(
        Button,
        { kind: "link", onPress: () => onChange(firstFields(offer)) },
        "Let later calls like this one through too …",
      ),
    );
  const change = (more: Partial<GrantFields>): void => {
    setPreview("");
    onChange({ ...fields, ...more });
  };
  return el.fieldset(
    { class: "grant" },
    el.legend("Let later calls like this one through"),
    offer.form !== undefined && h(Widths, { approval, offer, fields, change }),
    h(Bounds, { approval, offer, fields, change }),
    h(Pins, { offer, fields, change }),
    el.p({ role: "status" }, preview),
    el.p(
      { class: "acts" },
      h(Button, { kind: "small", onPress: async () => setPreview(await previewText(approval, fields)) }, "Preview"),
      h(Button, { kind: "small", onPress: () => onChange(undefined) }, "No grant"),
    ),
  );
}

interface FieldsProps {
  readonly offer: GrantOfferJson;
  readonly fields: GrantFields;
  readonly change: (more: Partial<GrantFields>) => void;
}

/** How far the command line of later calls may differ: the narrowest width first, each with what it would have let through. */
function Widths({ approval, offer, fields, change }: FieldsProps & Pick<GrantFormProps, "approval">): JSX.Element {
  const [covered, setCovered] = useState<Readonly<Record<string, string>>>({});
  const widths = offer.form?.widths ?? [];
  useEffect(() => {
    const preview = async (): Promise<void> => {
      for (const { name } of widths) {
        const text = await previewText(approval, { ...fields, uses: String(offer.uses), width: name });
        setCovered((known) => ({ ...known, [name]: text }));
      }
    };
    void preview();
  }, [approval.hash, fields.anySession, [...fields.pins].join()]);
  return el.div(
    { role: "radiogroup", "aria-labelledby": "grant-widths" },
    el.p(
      { id: "grant-widths" },
      "How far may the command line of later calls differ? Words in capitals stand for any other of their kind.",
    ),
    widths.map(({ name, shown }) =>
      el.div(
        { key: name },
        el.p(
          { class: "check" },
          el.label(
            el.input({
              type: "radio",
              name: "grant-width",
              checked: fields.width === name,
              onChange: () => change({ width: name }),
            }),
            ` ${widthWords[name] ?? name}: `,
            el.code(h(Text, { of: shown })),
          ),
        ),
        el.p({ class: "quiet" }, covered[name] ?? ""),
      ),
    ),
  );
}

function Bounds({
  approval,
  offer,
  fields,
  change,
}: FieldsProps & { readonly approval: ApprovalDetailJson }): JSX.Element {
  const { amounts } = fields;
  return el.div(
    h(Field, {
      id: "grant-minutes",
      label: "For minutes",
      value: fields.minutes,
      onText: (minutes) => change({ minutes }),
      hint: `at most ${lengthText(offer.at_most_ms)}`,
    }),
    h(Field, {
      id: "grant-uses",
      label: "Calls",
      value: fields.uses,
      onText: (uses) => change({ uses }),
      hint: `at most ${offer.uses}`,
    }),
    offer.sums.map((name) =>
      h(Field, {
        key: name,
        id: `grant-${name}`,
        label: `All calls together, ${name}`,
        value: amounts[name] ?? "",
        onText: (text) => change({ amounts: { ...amounts, [name]: text } }),
        hint: `and no single call more than ${approval.amounts[name] ?? "this one"}`,
      }),
    ),
  );
}

function Pins({ offer, fields, change }: FieldsProps): JSX.Element {
  const { pins, free, anySession } = fields;
  return el.div(
    h(GrantBounds, { of: offer }),
    offer.free.length > 0 && el.p("Choose what else must stay the same:"),
    offer.free.map((name) =>
      h(
        Tick,
        { key: name, isOn: pins.has(name), onChange: () => change({ pins: toggleName(pins, name) }) },
        h(Text, { of: name }),
      ),
    ),
    h(Field, {
      id: "grant-free",
      label: "Members that this call lacks and later calls may have",
      value: free,
      onText: (text) => change({ free: text }),
      hint: "such as input.memo; by default none",
    }),
    h(
      Tick,
      { isOn: anySession, onChange: () => change({ anySession: !anySession }) },
      "also in other sessions of this key",
    ),
  );
}

/** A contract lists what a grant by form leaves free. Otherwise all that nothing binds is free, so it begins bound. */
function firstFields({ at_most_ms: most, form, free }: GrantOfferJson): GrantFields {
  const minutes = String(Math.min(60, Math.floor(most / minuteMs)));
  return {
    minutes,
    uses: "",
    pins: new Set(form === undefined ? free : []),
    free: "",
    amounts: {},
    anySession: false,
    width: "same",
  };
}

/** What a grant lets through, for the person who is about to give it. */
export function grantText({ uses, minutes, anySession, width }: GrantFields, offer: GrantOfferJson): string {
  const shown = offer.form?.widths.find(({ name }) => name === width)?.shown;
  const calls = `${uses || "…"} later ${uses === "1" ? "call" : "calls"}`;
  const like = shown === undefined ? `${calls} like it` : `${calls} of the form ${visible(shown)}`;
  return ` You also let ${like} through for ${minutes || "…"} minutes, in ${anySession ? "every session of the key" : "this session"}.`;
}

async function previewText({ id, hash }: ApprovalDetailJson, fields: GrantFields): Promise<string> {
  const wanted = readGrantForm(fields);
  if (!wanted.startsWith("{")) return wanted;
  const source = JSON.stringify({ approval: id, hash, preview: true }).slice(0, -1);
  const answer = await ask<{ readonly covers: number; readonly of: number }>("/grants", {
    body: `${source},${wanted.slice(1)}`,
  });
  return answer.ok
    ? `It would have let ${answer.value.covers} of the last ${answer.value.of} calls through.`
    : answer.problem.detail;
}

/** The JSON text of the grant's members, or a sentence about what is missing. */
export function readGrantForm({ minutes, uses, pins, free, amounts, anySession, width }: GrantFields): string {
  if (!/^[1-9][0-9]{0,5}$/.test(minutes)) return "Say for how many minutes the grant is valid.";
  if (!/^[1-9][0-9]{0,5}$/.test(uses)) return "Say how many calls the grant lets through.";
  for (const [name, text] of Object.entries(amounts))
    if (!/^(?:0|[1-9][0-9]{0,14})(?:\.[0-9]{1,15})?$/.test(text))
      return `Say how much ${name} may be for all calls together.`;
  const numbers = Object.entries(amounts).map(([name, text]) => `${JSON.stringify(name)}:${text}`);
  const until = gateNow() + Number(minutes) * minuteMs;
  const freed = (free.match(/(?:"(?:[^"\\]|\\.)*"|[^,"])+/g) ?? []).map((name) => name.trim());
  const rest = JSON.stringify({
    until,
    uses: Number(uses),
    any_session: anySession,
    width,
    pins: [...pins],
    free: freed.filter((name) => name !== ""),
  });
  return `${rest.slice(0, -1)},"amounts":{${numbers.join(",")}}}`;
}
