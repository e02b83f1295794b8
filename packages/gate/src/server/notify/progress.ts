/** The retries of Standard Webhooks 1.0: the time after each failed attempt, in milliseconds. Together three days. */
const seconds = 1000;
const minutes = 60 * seconds;
const hours = 60 * minutes;
const retries = [
  5 * seconds,
  5 * minutes,
  0.5 * hours,
  2 * hours,
  5 * hours,
  10 * hours,
  14 * hours,
  20 * hours,
  24 * hours,
];

/** Events that wait for another attempt. If there are so many, the endpoint gets no new event before one of them ends. */
export const waitingMax = 1000;
/** Dead letters that are kept for `svc-gate notify list`. */
const deadMax = 100;

/** An event that an endpoint has not taken yet. */
export interface WaitingEvent {
  readonly id: string;
  /** The row whose event it is, or which a reminder is about. */
  readonly row: number;
  /** The row that asked, if the event is about an approval. Its events keep their order. */
  readonly about: number | null;
  readonly tries: number;
  /** Milliseconds since the epoch. */
  readonly due: number;
}

/** An event that an endpoint has not taken within three days. */
export interface Dead {
  readonly id: string;
  readonly row: number;
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly why: string;
}

/** How far an endpoint has got: every event up to `row` was taken, waits, or is dead. */
export interface DeliveryProgress {
  readonly row: number;
  readonly waiting: readonly WaitingEvent[];
  readonly dead: readonly Dead[];
  /** The number of all dead letters. */
  readonly died: number;
  /** The rows of open approvals whose reminder was taken, waits, or is dead. */
  readonly reminded: readonly number[];
}

export function startAt(row: number): DeliveryProgress {
  return { row, waiting: [], dead: [], died: 0, reminded: [] };
}

/** The events that do not come after another one about the same approval. */
function* foremost({ waiting }: DeliveryProgress): Generator<WaitingEvent> {
  const behind = new Set<number>();
  for (const each of waiting) {
    if (each.about === null || !behind.has(each.about)) yield each;
    if (each.about !== null) behind.add(each.about);
  }
}

/** The event to try next: the first that is due and does not come after another one about the same approval. */
export function dueNow(progress: DeliveryProgress, now: number): WaitingEvent | undefined {
  return foremost(progress).find(({ due }) => due <= now);
}

/** Returns when the next event is due, in milliseconds since the epoch; Infinity if none waits. */
export function nextDue(progress: DeliveryProgress): number {
  return foremost(progress).reduce((next, { due }) => Math.min(next, due), Infinity);
}

export function queue(progress: DeliveryProgress, event: Pick<WaitingEvent, "about" | "id" | "row">): DeliveryProgress {
  return { ...progress, waiting: [...progress.waiting, { ...event, tries: 0, due: 0 }] };
}

export function removeEvent(progress: DeliveryProgress, id: string): DeliveryProgress {
  return { ...progress, waiting: progress.waiting.filter((each) => each.id !== id) };
}

/**
 * Notes a failed attempt of a waiting event.
 *
 * @returns the progress, in which the event waits again or is dead
 */
export function recordFailure(progress: DeliveryProgress, id: string, now: number, why: string): DeliveryProgress {
  const event = progress.waiting.find((each) => each.id === id);
  if (event === undefined) return progress;
  const delay = retries[event.tries];
  if (delay === undefined) {
    const dead = [...progress.dead, { id, row: event.row, at: now, why }].slice(-deadMax);
    return { ...removeEvent(progress, id), dead, died: progress.died + 1 };
  }
  const again = { ...event, tries: event.tries + 1, due: now + delay };
  return { ...progress, waiting: progress.waiting.map((each) => (each.id === id ? again : each)) };
}

/** Sends all events from a row on again. Their ids stay the same. */
export function replayedFrom({ waiting, dead, reminded, ...rest }: DeliveryProgress, row: number): DeliveryProgress {
  return {
    ...rest,
    row: Math.min(rest.row, row - 1),
    waiting: waiting.filter((each) => each.row < row),
    dead: dead.filter((each) => each.row < row),
    reminded: reminded.filter((each) => each < row),
  };
}

/** Reads a note; undefined if it is empty or damaged. */
export function readProgress(note: string): DeliveryProgress | undefined {
  try {
    const read = JSON.parse(note) as DeliveryProgress;
    const isProgress =
      Number.isSafeInteger(read.row) && [read.waiting, read.dead, read.reminded].every((each) => Array.isArray(each));
    return isProgress ? read : undefined;
  } catch {
    return undefined;
  }
}
