/** A counter's key for a person: `session "s1" of key "default"`, `calls equal to this one`, `"wallet-7"`, `the value "bob"`. */
export function keyText(key: string): string {
  return (JSON.parse(key) as readonly CounterKeyPart[]).map(partText).join(", ");
}

/** The key for programs, without the input of a key `per: call`. */
export function shownKey(key: string): string {
  const parts = JSON.parse(key) as readonly CounterKeyPart[];
  return JSON.stringify(parts.map((part) => (part[0] === "call" ? part.slice(0, 2) : part)));
}

type CounterKeyPart = readonly (string | readonly string[])[];

function partText([kind, first = "", second = ""]: CounterKeyPart): string {
  switch (kind) {
    case "session":
      return `session ${JSON.stringify(second)} of key ${JSON.stringify(first)}`;
    case "key":
      return `key ${JSON.stringify(first)}`;
    case "gate":
      return "the gate";
    case "call":
      return "calls equal to this one";
    case "value":
      return `the value ${typeof first === "string" ? first : partText(first)}`;
    case "text":
      return JSON.stringify(first);
    default:
      return String(first);
  }
}
