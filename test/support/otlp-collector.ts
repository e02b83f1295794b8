import { once } from "node:events";
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { TestContext } from "node:test";
import { BinaryReader } from "@bufbuild/protobuf/wire";

/** A received span; ids in hex, times in nanoseconds since the epoch. */
export interface ArrivedSpan {
  readonly resource: Attributes;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentId: string;
  readonly traceState: string;
  readonly name: string;
  /** 1 is internal, 2 is server. */
  readonly kind: number;
  readonly start: bigint;
  readonly end: bigint;
  readonly attributes: Attributes;
  /** 2 is an error. */
  readonly status: number;
}

export type Attributes = Readonly<Record<string, string | number | boolean | undefined>>;

export interface Collector {
  readonly url: string;
  readonly spans: readonly ArrivedSpan[];
  /** Resolves when a span with that name has arrived that `wanted` accepts. */
  arrived(wanted: (span: ArrivedSpan) => boolean): Promise<ArrivedSpan>;
}

/** Starts a collector of traces on this machine that understands only OTLP over HTTP as protobuf. */
export async function startCollector(t: TestContext): Promise<Collector> {
  const spans: ArrivedSpan[] = [];
  const waiting = new Set<() => void>();
  const server = createServer(async (request, response) => {
    const isTraces = request.url === "/v1/traces" && request.headers["content-type"] === "application/x-protobuf";
    const body = await bodyOf(request);
    if (isTraces) spans.push(...readTraces(body));
    response.writeHead(isTraces ? 200 : 400, { "content-type": "application/x-protobuf" }).end();
    for (const look of waiting) look();
  });
  await listen(server);
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    arrived: (wanted) =>
      new Promise((resolve) => {
        const look = (): void => {
          const found = spans.find(wanted);
          if (found === undefined) return;
          waiting.delete(look);
          resolve(found);
        };
        waiting.add(look);
        look();
      }),
  };
}

async function listen(server: Server): Promise<void> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
}

async function bodyOf(request: IncomingMessage): Promise<Uint8Array> {
  const pieces: Buffer[] = [];
  for await (const piece of request) pieces.push(piece as Buffer);
  return Buffer.concat(pieces);
}

type Field = Uint8Array | bigint | number;

/**
 * Returns the fields of one protobuf message by number. The numbers below are those of opentelemetry/proto/trace/v1 and
 * common/v1, which are frozen.
 */
function fieldsOf(message: Uint8Array): ReadonlyMap<number, readonly Field[]> {
  const reader = new BinaryReader(message);
  const fields = new Map<number, Field[]>();
  while (reader.pos < reader.len) {
    const [number, wire] = reader.tag();
    const readers: Readonly<Record<number, () => Field>> = {
      0: () => BigInt(reader.int64()),
      1: () => BigInt(reader.fixed64()),
      2: () => reader.bytes(),
      5: () => reader.fixed32(),
    };
    const field = readers[wire]?.();
    if (field === undefined) throw new Error(`wire type ${wire}`);
    fields.set(number, [...(fields.get(number) ?? []), field]);
  }
  return fields;
}

function messages(message: Uint8Array, number: number): readonly Uint8Array[] {
  return (fieldsOf(message).get(number) ?? []) as readonly Uint8Array[];
}

function readTraces(body: Uint8Array): readonly ArrivedSpan[] {
  return messages(body, 1).flatMap((resourceSpans) => {
    const resource = Object.assign({}, ...messages(resourceSpans, 1).map((each) => attributesOf(messages(each, 1))));
    return messages(resourceSpans, 2).flatMap((scope) => messages(scope, 2).map((span) => readSpan(span, resource)));
  });
}

function readSpan(message: Uint8Array, resource: Attributes): ArrivedSpan {
  const fields = fieldsOf(message);
  const bytes = (number: number): Uint8Array => (fields.get(number)?.[0] ?? new Uint8Array()) as Uint8Array;
  const hex = (number: number): string => Buffer.from(bytes(number)).toString("hex");
  const status = fieldsOf(bytes(15)).get(3)?.[0];
  return {
    resource,
    traceId: hex(1),
    spanId: hex(2),
    traceState: text(bytes(3)),
    parentId: hex(4),
    name: text(bytes(5)),
    kind: Number(fields.get(6)?.[0]),
    start: fields.get(7)?.[0] as bigint,
    end: fields.get(8)?.[0] as bigint,
    attributes: attributesOf((fields.get(9) ?? []) as readonly Uint8Array[]),
    status: Number(status ?? 0),
  };
}

function attributesOf(pairs: readonly Uint8Array[]): Attributes {
  return Object.fromEntries(
    pairs.map((pair) => {
      const fields = fieldsOf(pair);
      return [text(fields.get(1)?.[0] as Uint8Array), valueOf(fields.get(2)?.[0] as Uint8Array)];
    }),
  );
}

function valueOf(message: Uint8Array): string | number | boolean | undefined {
  for (const [number, [value]] of fieldsOf(message)) {
    if (number === 1) return text(value as Uint8Array);
    if (number === 2) return value === 1n;
    if (number === 3) return Number(value);
  }
  return undefined;
}

function text(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("utf8");
}
