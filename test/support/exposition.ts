/**
 * A strict reader of the Prometheus text format: it accepts what a scrape accepts, and reports what `promtool check
 * metrics` would report.
 */

export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

export interface Family {
  readonly name: string;
  readonly type: string;
  readonly help: string;
  readonly samples: readonly Sample[];
}

interface Draft extends Family {
  readonly samples: Sample[];
}

const sampleForm = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$/;
const labelForm = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"(,|$)/gy;

/** @throws at the first invalid or unannounced line */
export function readExposition(text: string): ReadonlyMap<string, Family> {
  const families = new Map<string, Draft>();
  let current: Draft | undefined;
  let help: { readonly name: string; readonly text: string } | undefined;
  for (const line of text.split("\n").filter((each) => each !== "")) {
    const [, kind, name = "", rest = ""] = /^# (HELP|TYPE) (\S+) (.+)$/.exec(line) ?? [];
    if (kind === "HELP") {
      help = { name, text: rest };
    } else if (kind === "TYPE") {
      if (help?.name !== name) throw new Error(`${name} has no help`);
      if (families.has(name)) throw new Error(`${name} is announced twice`);
      current = { name, type: rest, help: help.text, samples: [] };
      families.set(name, current);
    } else {
      const sample = readSample(line);
      if (current === undefined || !namesOf(current).includes(sample.name))
        throw new Error(`nothing announced: ${line}`);
      current.samples.push(sample);
    }
  }
  return families;
}

function readSample(line: string): Sample {
  const [, name, written = "", number] = sampleForm.exec(line) ?? [];
  if (name === undefined || number === undefined) throw new Error(`not a sample: ${line}`);
  const labels: Record<string, string> = {};
  let length = 0;
  for (const [all, label = "", value = ""] of written.matchAll(labelForm)) {
    if (label in labels) throw new Error(`the label ${label} appears twice: ${line}`);
    labels[label] = value.replaceAll("\\n", "\n").replaceAll(/\\([\\"])/g, "$1");
    length += all.length;
  }
  if (length !== written.length) throw new Error(`not labels: ${line}`);
  const value = number === "+Inf" ? Infinity : Number(number);
  if (Number.isNaN(value) && !/^nan$/i.test(number)) throw new Error(`not a number: ${line}`);
  return { name, labels, value };
}

function namesOf({ name, type }: Family): readonly string[] {
  return type === "histogram" ? ["_bucket", "_sum", "_count"].map((ending) => name + ending) : [name];
}

/** Returns the faults of the families' names, series and histograms, one sentence each. */
export function lintExposition(families: ReadonlyMap<string, Family>): readonly string[] {
  return [...families.values()].flatMap((family) => [
    ...namingFaults(family),
    ...twiceIn(family),
    ...(family.type === "histogram" ? histogramFaults(family) : []),
  ]);
}

function* namingFaults({ name, type }: Family): Generator<string> {
  if ((type === "counter") !== name.endsWith("_total")) yield `${name} is a ${type}`;
  if (/_(?:ms|millis|milliseconds|micros|kb|kib|minutes)(?:_|$)/.test(name)) yield `${name} is not in a base unit`;
}

function* twiceIn({ samples }: Family): Generator<string> {
  const seen = new Set<string>();
  for (const { name, labels } of samples) {
    const series = name + labelsText(labels);
    if (seen.has(series)) yield `${series} appears twice`;
    seen.add(series);
  }
}

/** Identifies a series independently of the order of its labels. */
function labelsText(labels: Sample["labels"]): string {
  return JSON.stringify(Object.entries(labels).toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

/** Checks that buckets grow, that the last contains all, and that each series has its sum. */
function* histogramFaults({ name, samples }: Family): Generator<string> {
  const groups = Map.groupBy(samples, ({ labels }) => labelsText({ ...labels, le: "" }));
  for (const [labels, group] of groups) {
    const buckets = group.filter((sample) => sample.name === `${name}_bucket`);
    const count = group.find((sample) => sample.name === `${name}_count`)?.value;
    if (!group.some((sample) => sample.name === `${name}_sum`)) yield `${name}${labels} has no sum`;
    if (buckets.at(-1)?.labels["le"] !== "+Inf" || buckets.at(-1)?.value !== count)
      yield `${name}${labels}: +Inf is not all`;
    for (const [index, bucket] of buckets.entries()) {
      const before = buckets[index - 1];
      if (before !== undefined && before.value > bucket.value)
        yield `${name}${labels} shrinks at ${bucket.labels["le"]}`;
    }
  }
}
