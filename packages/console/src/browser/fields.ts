import type { ComponentChildren, JSX } from "preact";
import { el } from "./elements.ts";

interface FieldProps {
  readonly id: string;
  readonly label: string;
  readonly value: string;
  readonly onText: (text: string) => void;
  /** A short sentence behind the field. */
  readonly hint?: string;
}

/** A line of text with its label. */
export function Field({ id, label, value, onText, hint }: FieldProps): JSX.Element {
  return el.p(
    { class: hint === undefined ? "field tall" : "field" },
    el.label({ for: id }, label),
    el.input({ id, value, autocomplete: "off", onInput: (event) => onText(event.currentTarget.value) }),
    hint !== undefined && el.span({ class: "quiet" }, hint),
  );
}

interface AreaProps extends FieldProps {
  readonly rows: number;
  /** True for JSON or YAML. */
  readonly isCode?: boolean;
  readonly bytesMax?: number;
}

/** Several lines of text with their label. */
export function Area({ id, label, value, onText, rows, isCode = false, bytesMax }: AreaProps): JSX.Element {
  return el.p(
    { class: "field tall" },
    el.label({ for: id }, label),
    el.textarea({
      id,
      rows,
      value,
      spellcheck: !isCode,
      ...(isCode && { class: "code" }),
      ...(bytesMax !== undefined && { maxLength: bytesMax }),
      onInput: (event) => onText(event.currentTarget.value),
    }),
  );
}

interface TickProps {
  readonly isOn: boolean;
  readonly onChange: () => void;
  readonly children?: ComponentChildren;
}

/** A box to tick with its label. */
export function Tick({ isOn, onChange, children }: TickProps): JSX.Element {
  return el.p({ class: "check" }, el.label(el.input({ type: "checkbox", checked: isOn, onChange }), " ", children));
}

interface ChoiceProps extends FieldProps {
  readonly choices: readonly (readonly [value: string, label: string])[];
}

/** One of several values, with its label. */
export function Choice({ id, label, value, onText, choices }: ChoiceProps): JSX.Element {
  return el.p(
    { class: "field tall" },
    el.label({ for: id }, label),
    el.select(
      { id, value, onChange: (event) => onText(event.currentTarget.value) },
      choices.map(([each, text]) => el.option({ key: each, value: each }, text)),
    ),
  );
}

interface ButtonProps {
  readonly onPress: () => unknown;
  readonly kind?: string;
  readonly isOff?: boolean;
  readonly children?: ComponentChildren;
}

/** A button that is never a form's default. */
export function Button({ onPress, kind = "", isOff = false, children }: ButtonProps): JSX.Element {
  return el.button({ type: "button", class: kind, disabled: isOff, onClick: () => void onPress() }, children);
}
