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
  #rest = "";
  #fields = new Map<string, string>();
  #data: string[] = [];
  #length = 0;

  /**
   * Returns the events that the piece completes.
   *
   * @throws RangeError if an event is too long
   */
  read(piece: string): readonly SseEvent[] {
    const text = this.#rest + piece;
    // A final carriage return may be half of a line's end.
    const lines = text.split(/\r\n|\n|\r(?!$)/);
    this.#rest = lines.pop() ?? "";
    const events: SseEvent[] = [];
    for (const line of lines) {
      this.#length += line.length;
      const event = line === "" ? this.#event() : this.#field(line);
      if (event !== undefined) events.push(event);
    }
    if (this.#length + this.#rest.length > eventMax) throw new RangeError("an event is too long");
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
