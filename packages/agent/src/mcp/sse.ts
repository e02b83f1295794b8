/** Server-sent events, as the Streamable HTTP transport uses them. */

export interface SseEvent {
  /** The lines of `data`, joined; empty for an event that only has an id or a retry time. */
  readonly data: string;
  readonly id: string | undefined;
  readonly event: string | undefined;
  readonly retry: string | undefined;
}

/** An event's size in UTF-16 units, as a line of the stdio transport. */
const eventMax = 16_777_216;

/** Collects events from pieces of a stream. */
export class SseReader {
  #line = "";
  #endsWithReturn = false;
  #fields = new Map<string, string>();
  #data: string[] = [];
  #length = 0;

  /**
   * Returns the events that the piece completes.
   *
   * @throws RangeError if an event is too long
   */
  read(piece: string): readonly SseEvent[] {
    // A piece may end in the middle of a line's end. Only the piece is searched: a line can have many.
    const text = this.#endsWithReturn && piece.startsWith("\n") ? piece.slice(1) : piece;
    if (piece !== "") this.#endsWithReturn = piece.endsWith("\r");
    const [first = "", ...others] = text.split(/\r\n|\n|\r/);
    const events: SseEvent[] = [];
    this.#line += first;
    for (const next of others) {
      this.#length += this.#line.length;
      const event = this.#line === "" ? this.#event() : this.#field(this.#line);
      if (event !== undefined) events.push(event);
      this.#line = next;
    }
    if (this.#length + this.#line.length > eventMax) throw new RangeError("an event is too long");
    return events;
  }

  #field(line: string): undefined {
    const [, name = "", value = ""] = /^([^:]*)(?:: ?(.*))?$/s.exec(line) ?? [];
    if (name === "data") this.#data.push(value);
    else if (name !== "") this.#fields.set(name, value);
  }

  #event(): SseEvent | undefined {
    const fields = this.#fields;
    const data = this.#data.join("\n");
    const isEmpty = fields.size === 0 && this.#data.length === 0;
    this.#fields = new Map();
    this.#data = [];
    this.#length = 0;
    return isEmpty ? undefined : { data, id: fields.get("id"), event: fields.get("event"), retry: fields.get("retry") };
  }
}

export function eventText({ data, id, event, retry }: Partial<SseEvent>): string {
  const line = (name: string, value: string | undefined): string => (value === undefined ? "" : `${name}: ${value}\n`);
  const lines = (data ?? "").split("\n").map((each) => `data: ${each}\n`);
  return `${line("event", event)}${line("id", id)}${line("retry", retry)}${lines.join("")}\n`;
}
