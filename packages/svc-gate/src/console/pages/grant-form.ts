import { h, type JSX } from "preact";
import { useState } from "preact/hooks";
import type { ApprovalDetail, GrantOffer } from "../answers.ts";
import { ask } from "../gate.ts";
import { Text } from "../text.ts";
import { lengthText } from "../time.ts";

/** What the person has typed. */
export interface GrantFields {
  readonly minutes: string;
  readonly uses: string;
  readonly pins: ReadonlySet<string>;
  readonly amounts: Readonly<Record<string, string>>;
  readonly anySession: boolean;
}

interface GrantFormProps {
  readonly approval: ApprovalDetail;
  readonly offer: GrantOffer;
  readonly fields: GrantFields | undefined;
  readonly onChange: (fields: GrantFields | undefined) => void;
}

const minuteMs = 60_000;

/** A grant lets later calls like this one through. It is a second step, with its bounds and a preview. */
export function GrantForm({ approval, offer, fields, onChange }: GrantFormProps): JSX.Element {
  const [preview, setPreview] = useState("");
  if (fields === undefined)
    return h(
      "p",
      null,
      h(
        "button",
        { type: "button", class: "link", onClick: () => onChange(firstFields(offer)) },
        "Let later calls like this one through too …",
      ),
    );
  const change = (more: Partial<GrantFields>): void => {
    setPreview("");
    onChange({ ...fields, ...more });
  };
  const look = async (): Promise<void> => {
    const wanted = readGrantForm(fields);
    if (!wanted.startsWith("{")) return setPreview(wanted);
    const source = JSON.stringify({ approval: approval.id, hash: approval.hash, preview: true }).slice(0, -1);
    const answer = await ask<{ readonly covers: number; readonly of: number }>("/grants", {
      body: `${source},${wanted.slice(1)}`,
    });
    setPreview(
      answer.ok
        ? `It would have let ${answer.value.covers} of the last ${answer.value.of} calls through.`
        : answer.problem.detail,
    );
  };
  const input = (name: string, label: string, value: string, set: (text: string) => void, hint: string): JSX.Element =>
    h(
      "p",
      { class: "field" },
      h("label", { for: name }, label),
      h("input", {
        id: name,
        inputMode: "decimal",
        value,
        onInput: ({ currentTarget }: { currentTarget: HTMLInputElement }) => set(currentTarget.value),
      }),
      h("span", { class: "quiet" }, hint),
    );
  return h(
    "fieldset",
    { class: "grant" },
    h("legend", null, "Let later calls like this one through"),
    input(
      "grant-minutes",
      "For minutes",
      fields.minutes,
      (minutes) => change({ minutes }),
      `at most ${lengthText(offer.at_most_ms)}`,
    ),
    input("grant-uses", "Calls", fields.uses, (uses) => change({ uses }), `at most ${offer.uses}`),
    offer.sums.map((name) =>
      input(
        `grant-${name}`,
        `All calls together, ${name}`,
        fields.amounts[name] ?? "",
        (text) => change({ amounts: { ...fields.amounts, [name]: text } }),
        `and no single call more than ${approval.amounts[name] ?? "this one"}`,
      ),
    ),
    h(
      "p",
      { class: "quiet" },
      "Each call must have the same ",
      offer.pins.map((pin, at) => [at > 0 && ", ", h("code", { key: pin }, h(Text, { of: pin }))]),
      offer.pins.length === 0 && "tool and rules",
      ".",
    ),
    offer.free.length > 0 && h("p", null, "These members may differ. Choose those that must stay the same:"),
    offer.free.map((name) =>
      h(
        "p",
        { key: name, class: "check" },
        h(
          "label",
          null,
          h("input", {
            type: "checkbox",
            checked: fields.pins.has(name),
            onChange: () => change({ pins: toggled(fields.pins, name) }),
          }),
          " ",
          h(Text, { of: name }),
        ),
      ),
    ),
    h(
      "p",
      { class: "check" },
      h(
        "label",
        null,
        h("input", {
          type: "checkbox",
          checked: fields.anySession,
          onChange: () => change({ anySession: !fields.anySession }),
        }),
        " also in other sessions of this key",
      ),
    ),
    h("p", { role: "status" }, preview),
    h(
      "p",
      { class: "acts" },
      h("button", { type: "button", class: "small", onClick: () => void look() }, "Preview"),
      h("button", { type: "button", class: "small", onClick: () => onChange(undefined) }, "No grant"),
    ),
  );
}

function firstFields({ at_most_ms: most, free }: GrantOffer): GrantFields {
  return {
    minutes: String(Math.min(60, Math.floor(most / minuteMs))),
    uses: "",
    pins: new Set(free),
    amounts: {},
    anySession: false,
  };
}

function toggled(pins: ReadonlySet<string>, name: string): ReadonlySet<string> {
  const next = new Set(pins);
  if (!next.delete(name)) next.add(name);
  return next;
}

/** The JSON text of the grant's members, or a sentence about what is missing. */
export function readGrantForm({ minutes, uses, pins, amounts, anySession }: GrantFields): string {
  if (!/^[1-9][0-9]{0,5}$/.test(minutes)) return "Say for how many minutes the grant holds.";
  if (!/^[1-9][0-9]{0,5}$/.test(uses)) return "Say how many calls the grant lets through.";
  for (const [name, text] of Object.entries(amounts))
    if (!/^(?:0|[1-9][0-9]{0,14})(?:\.[0-9]{1,15})?$/.test(text))
      return `Say how much ${name} may be for all calls together.`;
  const numbers = Object.entries(amounts).map(([name, text]) => `${JSON.stringify(name)}:${text}`);
  const rest = JSON.stringify({
    until: Date.now() + Number(minutes) * minuteMs,
    uses: Number(uses),
    any_session: anySession,
    pins: [...pins],
  });
  return `${rest.slice(0, -1)},"amounts":{${numbers.join(",")}}}`;
}
