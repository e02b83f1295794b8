import type { IncomingHttpHeaders } from "node:http";
import type { Context, Span, Tracer } from "@opentelemetry/api";
import type { Resource } from "@opentelemetry/resources";
import type { BatchSpanProcessorOptions, Sampler, SpanExporter } from "@opentelemetry/sdk-trace";
import { bad, good, refusals, type Refusal, type Result } from "../../../../core/src/wire/mod.ts";
import { version } from "../version.ts";
import { stages, type AnsweredCheck, type CheckTimings } from "./observer.ts";

/** The data of a request before it is decided. */
export interface TracedRequest {
  readonly path: string;
  readonly scheme: string;
  readonly tenant: string | null;
  readonly headers: IncomingHttpHeaders;
}

/** One check as a span, with a child for each stage. */
export interface Trace {
  /** 32 hex digits; the caller's id if the request has a `traceparent`. */
  readonly id: string;
  endWithAnswer(check: AnsweredCheck, timings: CheckTimings): void;
  endWithRefusal(refusal: Refusal): void;
}

/** Sends spans. It never delays a check: spans that the collector does not accept in time are dropped. */
export interface Traces {
  start(request: TracedRequest, timings: CheckTimings): Trace;
  /** Sends the remaining spans, within a bounded time. */
  stop(): Promise<void>;
}

type Environment = Readonly<Record<string, string | undefined>>;

const stopPatienceMs = 2000;

/** Returns true if a collector is set and traces are not disabled. This is read before OpenTelemetry is loaded. */
export function areTracesConfigured(environment: Environment): boolean {
  const off = environment["OTEL_SDK_DISABLED"]?.toLowerCase() === "true";
  return !off && environment["OTEL_TRACES_EXPORTER"] !== "none" && endpointOf(environment) !== undefined;
}

function endpointOf(environment: Environment): string | undefined {
  return environment["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"] || environment["OTEL_EXPORTER_OTLP_ENDPOINT"] || undefined;
}

/**
 * Loads OpenTelemetry and starts to send spans over OTLP, as its standard variables say. The exporter reads its own
 * variables from the process.
 *
 * @param warn called once if the collector accepts nothing
 * @returns a sentence for the operator if a variable is wrong, or the packages are not installed
 */
export async function openTraces(
  environment: Environment,
  warn: (sentence: string) => void,
): Promise<Result<Traces, string>> {
  const endpoint = endpointOf(environment) ?? "";
  if (!/^https?:$/.test(URL.parse(endpoint)?.protocol ?? "")) {
    return bad(`the OTLP endpoint is "${endpoint}"; it must be a URL such as http://127.0.0.1:4318`);
  }
  const protocol = environment["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"] ?? environment["OTEL_EXPORTER_OTLP_PROTOCOL"];
  if ((protocol ?? "http/protobuf") !== "http/protobuf") {
    return bad(`OTEL_EXPORTER_OTLP_PROTOCOL is "${protocol}"; this gate only sends http/protobuf`);
  }
  const sdk = await load();
  if (sdk === undefined) {
    return bad(
      "an OTLP endpoint is set, but the packages of OpenTelemetry are missing: install svc-gate with optional packages",
    );
  }
  const sampler = samplerOf(environment, sdk);
  if (!sampler.ok) return sampler;
  const exporter = warnOnce(new sdk.otlp.OTLPTraceExporter(), warn);
  const provider = new sdk.trace.TracerProvider({
    resource: resourceOf(sdk),
    sampler: sampler.value,
    spanProcessors: [new sdk.trace.BatchSpanProcessor({ exporter, ...queueOf(environment) })],
  });
  const tracer = provider.getTracer("svc-gate", version);
  const propagator = new sdk.core.W3CTraceContextPropagator();
  const { defaultTextMapGetter, ROOT_CONTEXT } = sdk.api;
  return good({
    start: (request, timings) => {
      const caller = propagator.extract(ROOT_CONTEXT, request.headers, defaultTextMapGetter);
      return new CheckSpan(sdk, tracer, caller, { ...request, startedAt: timings.startedAt });
    },
    stop: async () => {
      const patience = new Promise<void>((resolve) => setTimeout(resolve, stopPatienceMs).unref());
      await Promise.race([provider.shutdown().catch(() => undefined), patience]);
    },
  });
}

type Sdk = NonNullable<Awaited<ReturnType<typeof load>>>;

/** Loads the packages; undefined if they are not installed. */
async function load() {
  try {
    const [api, core, resources, trace, otlp] = await Promise.all([
      import("@opentelemetry/api"),
      import("@opentelemetry/core"),
      import("@opentelemetry/resources"),
      import("@opentelemetry/sdk-trace"),
      import("@opentelemetry/exporter-trace-otlp-proto"),
    ]);
    return { api, core, resources, trace, otlp };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ERR_MODULE_NOT_FOUND") return undefined;
    throw error;
  }
}

/** Returns the resource without the command line of the process, which may have a key. */
function resourceOf({ resources }: Sdk): Resource {
  const { defaultResource, detectResources, envDetector, resourceFromAttributes, serviceInstanceIdDetector } =
    resources;
  return defaultResource()
    .merge(resourceFromAttributes({ "service.name": "svc-gate", "service.version": version }))
    .merge(detectResources({ detectors: [serviceInstanceIdDetector, envDetector] }));
}

/** Reads OTEL_TRACES_SAMPLER and its argument as OpenTelemetry's specification defines them. */
function samplerOf(environment: Environment, { trace }: Sdk): Result<Sampler, string> {
  const name = environment["OTEL_TRACES_SAMPLER"] || "parentbased_always_on";
  const written = environment["OTEL_TRACES_SAMPLER_ARG"] || "1";
  const ratio = Number(written);
  if (name.endsWith("traceidratio") && !(ratio >= 0 && ratio <= 1)) {
    return bad(`OTEL_TRACES_SAMPLER_ARG is "${written}"; it must be a number from 0 to 1`);
  }
  const samplers = new Map<string, () => Sampler>([
    ["always_on", () => new trace.AlwaysOnSampler()],
    ["always_off", () => new trace.AlwaysOffSampler()],
    ["traceidratio", () => new trace.TraceIdRatioBasedSampler(ratio)],
  ]);
  const root = samplers.get(name.replace(/^parentbased_/, ""))?.();
  if (root === undefined) {
    const names = [...samplers.keys()].flatMap((each) => [each, `parentbased_${each}`]);
    return bad(`OTEL_TRACES_SAMPLER is "${name}"; it must be one of ${names.join(", ")}`);
  }
  return good(name.startsWith("parentbased_") ? new trace.ParentBasedSampler({ root }) : root);
}

/** Reads the limits of the queue, because this version of the SDK leaves that to its caller. */
function queueOf(environment: Environment): Partial<BatchSpanProcessorOptions> {
  const given = {
    scheduledDelayMillis: environment["OTEL_BSP_SCHEDULE_DELAY"],
    exportTimeoutMillis: environment["OTEL_BSP_EXPORT_TIMEOUT"],
    maxQueueSize: environment["OTEL_BSP_MAX_QUEUE_SIZE"],
    maxExportBatchSize: environment["OTEL_BSP_MAX_EXPORT_BATCH_SIZE"],
  };
  const numbers = Object.entries(given).filter(([, text]) => /^[1-9][0-9]{0,8}$/.test(text ?? ""));
  return Object.fromEntries(numbers.map(([name, text]) => [name, Number(text)]));
}

/**
 * Wraps the exporter so that its first failure is logged. Spans that were not sent are lost, and the gate continues.
 */
function warnOnce(exporter: SpanExporter, warn: (sentence: string) => void): SpanExporter {
  let warned = false;
  return {
    export: (spans, done) =>
      exporter.export(spans, (result) => {
        if (result.error !== undefined && !warned) {
          warned = true;
          warn(
            `the trace collector does not accept spans (${result.error.message}); they are dropped, and this warning is logged only once`,
          );
        }
        done(result);
      }),
    shutdown: () => exporter.shutdown(),
  };
}

type StartedRequest = Pick<TracedRequest, "path" | "scheme" | "tenant"> & Pick<CheckTimings, "startedAt">;

/** The server's span of one POST /check. Its stages become children when it ends, from the times of its timings. */
class CheckSpan implements Trace {
  readonly #sdk: Sdk;
  readonly #tracer: Tracer;
  readonly #caller: Context;
  readonly #span: Span;
  /** The difference from the monotonic clock to milliseconds since the epoch. */
  readonly #epoch: number;

  /** @param startedAt when the request came, by the monotonic clock */
  constructor(sdk: Sdk, tracer: Tracer, caller: Context, { path, scheme, tenant, startedAt }: StartedRequest) {
    this.#sdk = sdk;
    this.#tracer = tracer;
    this.#caller = caller;
    this.#epoch = Date.now() - performance.now();
    const options = {
      kind: sdk.api.SpanKind.SERVER,
      startTime: this.#epoch + startedAt,
      attributes: {
        "http.request.method": "POST",
        "http.route": tenant === null ? "/check" : "/t/{tenant}/check",
        "url.path": path,
        "url.scheme": scheme,
        ...(tenant === null ? {} : { "svc_gate.tenant": tenant }),
      },
    };
    this.#span = tracer.startSpan("POST /check", options, caller);
  }

  get id(): string {
    return this.#span.spanContext().traceId;
  }

  endWithAnswer(
    { verdict, answered, mode, toolName, sessionId, rule, seq }: AnsweredCheck,
    timings: CheckTimings,
  ): void {
    if (!this.#span.isRecording()) return;
    this.#span.setAttributes({
      "http.response.status_code": 200,
      "gen_ai.tool.name": toolName,
      ...(sessionId === null ? {} : { "gen_ai.conversation.id": sessionId }),
      "svc_gate.verdict": verdict,
      "svc_gate.answered": answered,
      "svc_gate.mode": mode,
      "svc_gate.rule": rule,
      "svc_gate.seq": seq,
    });
    const within = this.#sdk.api.trace.setSpan(this.#caller, this.#span);
    let from = timings.startedAt;
    for (const stage of stages) {
      const to = timings[stage];
      const child = this.#tracer.startSpan(stage, { startTime: this.#epoch + from }, within);
      child.end(this.#epoch + to);
      from = to;
    }
    this.#span.end(this.#epoch + from);
  }

  endWithRefusal({ code }: Refusal): void {
    const { status } = refusals[code];
    this.#span.setAttributes({ "http.response.status_code": status, "error.type": code });
    if (status >= 500) this.#span.setStatus({ code: this.#sdk.api.SpanStatusCode.ERROR });
    this.#span.end();
  }
}
