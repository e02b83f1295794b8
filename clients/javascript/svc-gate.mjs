/**
 * The svc-gate client for JavaScript (Node 18 and later): asks the gate whether an agent's tool call may run.
 *
 *     const gate = new SvcGate("https://gate.example/t/acme", { apiKey, sessionId: runId });
 *     const verdict = await gate.check("payment.send", { amount: 10 }, snapshot);
 *     if (verdict.allowed) ...        // run the tool
 *     else if (verdict.escalated) ... // park the call, or wait for a person with gate.settle(...)
 *     else ...                        // refuse the call, show verdict.reason
 *
 * Put the call where tool calls are executed, not among the agent's tools. One file, nothing but the built-in `fetch`.
 * The client has no rules: it carries the question and the answer, and refuses without an answer. Any number of
 * calls may run at the same time. Proxy variables in the environment are ignored, even if NODE_USE_ENV_PROXY makes
 * other calls of `fetch` use them: the key goes only to the configured address.
 *
 * spec/client.md defines a client's behaviour, case by case. Types and promises of each function: svc-gate.d.mts.
 */
import { createHash, randomBytes, randomUUID } from "node:crypto";

const requestMax = 262144; // bytes: the gate's own limit; past it the agent could choose an error instead of a verdict
const verdictMax = 1048576; // bytes of an answer to a check
const answerMax = 67108864; // bytes of another answer: a thousand receipts with their snapshots
const depthMax = 64; // levels of an input, as at the gate
const answerDepthMax = 128; // levels of an answer: receipts contain inputs
const timeoutMsMax = 2147483000; // the range of a timer
const waitSecondsMax = 30; // of one wait for a person: many proxies end a request after 60 seconds
/** An approval's status, if it ends the wait for a person, and the words for it. */
const ends = new Map([
  ["denied", "a person denied this call"],
  ["expired", "the approval of this call has expired"],
  ["cancelled", "the approval of this call was cancelled"],
  ["used", "the approval of this call was already used"],
  ["superseded", "the approval of this call was replaced by another"],
  ["unknown", "the gate does not know the approval"],
]);
const notThis = "a person decided, but not for this call, and ";
const optionNames = ["apiKey", "sessionId", "timeoutMs", "retries", "failOpen", "idempotent"];

export class SvcGateError extends Error {
  constructor(message, status = null, code = null, detail = null) {
    super(message);
    this.name = "SvcGateError";
    this.status = status;
    this.code = code;
    this.detail = detail;
  }
}

export class SvcGate {
  #base;
  #origin;
  #key;
  #timeoutMs;
  #retries;
  #failOpen;
  #idempotent;

  constructor(url, options = {}) {
    const unknown = Object.keys(options).find((name) => !optionNames.includes(name));
    if (unknown !== undefined) {
      throw new TypeError(`unknown option ${quoted(unknown)}: the options are ${optionNames.join(", ")}`);
    }
    const { apiKey, sessionId, timeoutMs = 10_000, retries = 1, failOpen = false, idempotent = false } = options;
    const address = parsedAddress(url);
    if (apiKey != null && !(typeof apiKey === "string" && /^[\x21-\x7e]+$/.test(apiKey))) {
      throw new TypeError("apiKey must be one or more visible ASCII characters, without spaces or line breaks");
    }
    if (sessionId != null && !isSession(sessionId)) {
      throw new TypeError("sessionId must be a text of 1 to 256 bytes in UTF-8 without NUL");
    }
    if (typeof timeoutMs !== "number" || !(timeoutMs > 0 && timeoutMs <= timeoutMsMax)) {
      throw new RangeError(`timeoutMs must be a number of milliseconds over 0, at most ${timeoutMsMax}`);
    }
    if (!Number.isInteger(retries) || retries < 0 || retries > 100) {
      throw new RangeError("retries must be a whole number from 0 to 100");
    }
    for (const [name, value] of Object.entries({ failOpen, idempotent })) {
      if (typeof value !== "boolean") throw new TypeError(`${name} must be true or false`);
    }
    this.#base = address.origin + address.pathname.replace(/\/+$/, "");
    this.#origin = address.origin;
    this.#key = apiKey ?? null;
    this.#timeoutMs = timeoutMs;
    this.#retries = retries;
    this.#failOpen = failOpen;
    this.#idempotent = idempotent;
    Object.defineProperty(this, "sessionId", { value: sessionId ?? randomUUID(), enumerable: true });
    for (const name of ["check", "settle", "outcome"]) {
      Object.defineProperty(this, name, { value: this[name].bind(this) }); // also safe as a function without its object
    }
  }

  async check(toolName, toolInput, platformState, approval) {
    return this.#checked({ toolName, toolInput, platformState, approval, idempotent: this.#idempotent });
  }

  async settle(verdict, toolName, toolInput, facts, options) {
    try {
      const { timeoutMs = 900_000, signal } = options ?? {};
      if (typeof timeoutMs !== "number") throw new TypeError("timeoutMs must be a number of milliseconds");
      const end = performance.now() + timeoutMs;
      let pauseMs = 1000;
      let latest = verdict;
      let but = "";
      while (latest.escalated) {
        latest = await this.#decided(latest, { end, signal, but });
        if (!latest.escalated) break;
        const platformState = typeof facts === "function" ? await facts() : facts;
        const { id: approval } = latest.approval;
        const call = { toolName, toolInput, platformState, approval };
        latest = await this.#checked({ ...call, idempotent: true, signal });
        but = latest.approval?.id === approval ? "" : notThis;
        if (signal?.aborted) return ended(latest, stopped);
        if (!latest.escalated) break;
        await pause(Math.min(pauseMs, end - performance.now()), signal);
        pauseMs = Math.min(2 * pauseMs, waitSecondsMax * 1000); // each check adds a row to the ledger
      }
      return latest;
    } catch (error) {
      return this.#unreached(Trouble.is(error) ? error.what : "the client itself failed", false);
    }
  }

  /** Waits for a decision. Returns the verdict with its approved approval, or a BLOCK. */
  async #decided(verdict, { end, signal, but }) {
    const id = verdict.approval?.id;
    if (typeof id !== "string" || !/^[0-9A-Za-z_-]{1,100}$/.test(id)) {
      return ended(verdict, `${but}no approval is open for this call`);
    }
    let latest = verdict;
    let late = null;
    for (let left = end - performance.now(); left > 0; left = end - performance.now()) {
      const wait = Math.ceil(Math.min(waitSecondsMax, left / 1000));
      let pauseMs = 1000;
      late = null;
      try {
        const asked = { limit: verdictMax, whole: false, waitMs: wait * 1000, signal };
        const found = approvalIn(await this.#ask("GET", `/approvals/${id}?wait=${wait}`, asked), id);
        latest = Object.freeze({ ...verdict, approval: found });
        if (ends.has(found.status)) return ended(latest, endOf(found));
        if (found.status === "approved" && found.next !== "wait") return latest;
        if (found.status === "pending") pauseMs = 200;
      } catch (error) {
        if (!(Trouble.is(error) && error.retried)) throw error;
        late = error;
      }
      await pause(Math.min(pauseMs, end - performance.now()), signal);
      if (signal?.aborted) return ended(latest, stopped);
    }
    return late === null ? ended(latest, `${but}nobody decided this call in time`) : this.#unreached(late.what, false);
  }

  async #checked({ toolName, toolInput, platformState, approval, idempotent, signal }) {
    try {
      const callId = idempotent ? randomBytes(16).toString("hex") : undefined;
      const body = requestBody(toolName, toolInput, this.sessionId, { platformState, approval, callId });
      const answer = await this.#ask("POST", "/check", { body, limit: verdictMax, whole: false, signal });
      return verdictIn(answer, createHash("sha256").update(body).digest("hex"));
    } catch (error) {
      if (!Trouble.is(error)) return this.#unreached("the client itself failed", false);
      return this.#unreached(error.what, error.failsOpen && this.#failOpen);
    }
  }

  async outcome(verdict, status, { amount, ref } = {}) {
    let what;
    try {
      const { receipt } = verdict;
      if (receipt == null) throw new Trouble("the verdict has no receipt");
      const { seq, hash } = receipt;
      const body = jsonBody({ receipt: { seq, hash }, status, amount: amount ?? undefined, ref: ref ?? undefined });
      const answer = await this.#ask("POST", "/outcomes", { body, limit: verdictMax, whole: true });
      if (answer.status === 200) return null;
      const { detail } = problemIn(answer, this.#key);
      what = `$GATE answered ${answer.status}${detail === null ? "" : ": " + detail}`;
    } catch (error) {
      what = Trouble.is(error) ? error.what : "the client itself failed";
    }
    return `Svc: ${this.#named(what)}; the outcome was not recorded.`;
  }

  async health() {
    return this.#object("/health");
  }

  async rules() {
    return textOf(await this.#result("/rules"));
  }

  async receipts({ limit, before, sessionId, toolName, verdict, kind } = {}) {
    const asked = Object.entries({ limit, before, session_id: sessionId, tool_name: toolName, verdict, kind });
    const query = new URLSearchParams(asked.filter(([, value]) => value != null)).toString();
    return this.#object("/receipts" + (query && "?" + query));
  }

  async verify() {
    return this.#object("/ledger/verify");
  }

  #unreached(what, allow) {
    const said = this.#named(what);
    return allow
      ? verdictOf("ALLOW", `Svc: ${said}; fail-open is set, so the action runs unjudged.`, null)
      : verdictOf("BLOCK", `Svc: ${said}; without a verdict the action is blocked.`, null);
  }

  #named(what) {
    return what.replaceAll("$GATE", () => `the gate at ${this.#origin}`);
  }

  async #object(path) {
    const answer = await this.#result(path);
    try {
      return objectIn(answer);
    } catch (error) {
      throw this.#error(error, answer.status);
    }
  }

  async #result(path) {
    let answer;
    try {
      answer = await this.#ask("GET", path, { limit: answerMax, whole: true });
      if (answer.status === 200) textOf(answer);
    } catch (error) {
      throw this.#error(error, answer?.status ?? null);
    }
    if (answer.status === 200) return answer;
    const { code, detail } = problemIn(answer, this.#key);
    const said = `the gate at ${this.#origin} answered ${answer.status}${detail === null ? "" : ": " + detail}`;
    throw new SvcGateError(said, answer.status, code, detail);
  }

  #error(error, status) {
    return new SvcGateError(Trouble.is(error) ? this.#named(error.what) : "the client itself failed", status);
  }

  /** With `waitMs`, the gate may take that much longer, and the caller makes the retries. */
  async #ask(method, path, { body, limit, whole, waitMs = 0, signal }) {
    const headers = { "accept-encoding": "identity", "user-agent": "svc-gate-javascript/1.0.0" };
    if (this.#key !== null && path !== "/health") headers.authorization = "Bearer " + this.#key;
    if (body !== undefined) headers["content-type"] = "application/json";
    const request = { method, headers, body, redirect: "manual", dispatcher: direct() };
    for (let attempt = 0; ; attempt += 1) {
      try {
        const answer = await this.#attempt(this.#base + path, request, { limit, whole, waitMs, signal });
        return { ...answer, isFirst: attempt === 0 };
      } catch (error) {
        if (!(Trouble.is(error) && error.retried) || attempt === this.#retries) throw error;
        if (waitMs > 0 || signal?.aborted) throw error;
      }
      await pause(50 + Math.random() * 100, signal);
    }
  }

  /** Makes one attempt; afterwards its connection is reusable or closed. */
  async #attempt(url, request, { limit, whole, waitMs, signal }) {
    const stop = new AbortController();
    const end = () => stop.abort();
    const timeoutMs = Math.min(this.#timeoutMs + waitMs, timeoutMsMax);
    let late = false;
    const timer = setTimeout(() => {
      late = true;
      stop.abort();
    }, timeoutMs);
    signal?.addEventListener("abort", end);
    const cut = cutBy(stop.signal);
    try {
      await eventsSeen();
      if (signal?.aborted) stop.abort();
      const response = await Promise.race([fetch(url, { ...request, signal: stop.signal }), cut]);
      if (response.status !== 200 && !whole) return { status: response.status };
      const body = Promise.race([bodyOf(response, limit), cut]);
      if (response.status === 200) return { status: 200, ...(await body) };
      return { status: response.status, ...(await body.catch(() => ({ unreadable: "it broke" }))) };
    } catch (error) {
      throw late ? transport(`$GATE did not answer within ${Math.round(timeoutMs)} ms`) : transportOf(error);
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", end);
      stop.abort(); // a whole answer is not affected; otherwise nobody may use the connection again
    }
  }
}

/** Why the gate gave no verdict: a clause for the reason, with $GATE instead of the gate's address. */
class Trouble extends Error {
  /** Reads nothing of the error: a value thrown by a hostile input may throw again when it is read. */
  static is(error) {
    return Trouble.#made.has(error);
  }

  static #made = new WeakSet();

  constructor(what, { failsOpen = true, retried = false } = {}) {
    super(what);
    this.what = what;
    this.failsOpen = failsOpen;
    this.retried = retried;
    Trouble.#made.add(this);
  }
}

const stopped = "the wait for a person was stopped";
const transport = (what) => new Trouble(what, { retried: true });
const unreadable = (why) => new Trouble(`$GATE sent an answer that cannot be read: ${why}`);

/** Node's errors of `fetch` contain their cause, or in Node 18 the cause of the cause. */
function transportOf(error) {
  const code = String(error?.cause?.code ?? error?.cause?.errors?.[0]?.code ?? "");
  const why = [
    [/^ECONNREFUSED$/, "refused"],
    [/^(?:ENOTFOUND|EAI_)/, "unknown name"],
    [/^(?:ENETUNREACH|EHOSTUNREACH|EADDRNOTAVAIL|EACCES|EPERM)$/, "no route"],
    [/^(?:EPROTO$|ERR_SSL|ERR_TLS|CERT_|DEPTH_|SELF_|UNABLE_)/, "TLS failed"],
  ].find(([codes]) => codes.test(code));
  return transport(
    why ? `$GATE could not be reached (${why[1]})` : "the connection to $GATE broke before a whole answer arrived",
  );
}

/** Resolves after that time and never before, or at once if the signal is aborted. */
function pause(ms, signal) {
  const due = performance.now() + ms;
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", end);
      resolve();
    };
    const turn = () => {
      const left = due - performance.now(); // a timer may be some milliseconds early
      if (left > 0) timer = setTimeout(turn, Math.ceil(left));
      else end();
    };
    let timer = setTimeout(turn, Math.max(0, ms));
    signal?.addEventListener("abort", end);
    if (signal?.aborted) end();
  });
}

/** Only rejects, and when the signal is aborted: the first Nodes with `fetch` leave the reader of an aborted body waiting. */
function cutBy(signal) {
  const cut = new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  cut.catch(() => {}); // it may come after the answer
  return cut;
}

/** After one whole turn of the event loop, the client knows whether the gate has closed a connection meanwhile. */
async function eventsSeen() {
  for (let turn = 0; turn < 2; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

let withoutProxy;

/** NODE_USE_ENV_PROXY gives `fetch` a dispatcher that obeys proxy variables; this one ignores them. */
function direct() {
  const dispatcher = [2, 1].map((n) => globalThis[Symbol.for(`undici.globalDispatcher.${n}`)]).find(Boolean);
  if (dispatcher?.constructor.name !== "EnvHttpProxyAgent") return undefined;
  withoutProxy ??= new dispatcher.constructor({ noProxy: "*" });
  return withoutProxy;
}

async function bodyOf(response, limit) {
  if ((response.headers.get("content-encoding") ?? "identity") !== "identity") return { unreadable: "it is encoded" };
  const chunks = [];
  let length = 0;
  const reader = response.body?.getReader();
  for (let read = await reader?.read(); read?.done === false; read = await reader.read()) {
    const { value } = read;
    length += value.byteLength;
    if (length > limit) return { unreadable: `it is over ${limit} bytes` };
    chunks.push(value);
  }
  return { body: Buffer.concat(chunks) };
}

function textOf(answer) {
  if (answer.unreadable !== undefined) throw unreadable(answer.unreadable);
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(answer.body);
  } catch {
    throw unreadable("it is not UTF-8");
  }
}

function objectIn(answer) {
  const text = textOf(answer);
  let found;
  try {
    found = JSON.parse(text);
  } catch {
    throw unreadable("it is not JSON");
  }
  refuseAmbiguous(text);
  if (!isObject(found)) throw unreadable("it is not an object");
  return found;
}

/** If a name is repeated, two readers may see two different members; `JSON.parse` silently takes the last. */
function refuseAmbiguous(json) {
  const open = [];
  for (const [token, colon] of json.matchAll(/"(?:[^"\\]+|\\.)*"(\s*:)?|[{}[\]]/gs)) {
    if (token === "{" || token === "[") {
      open.push(new Set());
      if (open.length > answerDepthMax) throw unreadable(`it is nested over ${answerDepthMax} deep`);
    } else if (token === "}" || token === "]") {
      open.pop();
    } else if (colon !== undefined) {
      const name = JSON.parse(token.slice(0, -colon.length));
      if (open.at(-1).has(name)) throw unreadable("it repeats a member");
      open.at(-1).add(name);
    }
  }
}

/** The refusal's code and detail, without the key. */
function problemIn(answer, key) {
  let found;
  try {
    found = objectIn(answer);
  } catch {
    return { code: null, detail: null };
  }
  const [code, detail] = [found.code, found.detail].map((text) =>
    typeof text === "string" ? (key === null ? text : text.replaceAll(key, "[key]")).slice(0, 1000) : null,
  );
  return { code, detail };
}

function verdictIn(answer, requestDigest) {
  if (answer.status !== 200) throw refusal(answer.status);
  const { verdict, reason, mode, receipt = null, approval = null, repeated } = objectIn(answer);
  if (!["ALLOW", "BLOCK", "ESCALATE"].includes(verdict)) {
    throw unreadable("its verdict is not ALLOW, BLOCK or ESCALATE");
  }
  if (typeof reason !== "string" || reason === "" || !isUnicode(reason)) throw unreadable("it has no reason");
  if (!["observe", "assist", "enforce"].includes(mode)) {
    throw unreadable("its mode is not observe, assist or enforce");
  }
  for (const [name, part] of Object.entries({ receipt, approval })) {
    if (part !== null && !isObject(part)) throw unreadable(`its ${name} is not an object`);
  }
  if (receipt !== null && Object.hasOwn(receipt, "request") && receipt.request !== requestDigest) {
    throw new Trouble("$GATE answered another request than the one sent");
  }
  if (answer.isFirst && repeated === true) {
    throw new Trouble("$GATE repeated an answer that this check did not ask for");
  }
  return verdictOf(verdict, reason, mode, { unreached: false, receipt, approval });
}

/** Makes a verdict, without a gate's answer unless it is given. */
function verdictOf(verdict, reason, mode, { unreached = true, receipt = null, approval = null } = {}) {
  const allowed = verdict === "ALLOW";
  const escalated = verdict === "ESCALATE";
  return Object.freeze({ verdict, reason, mode, unreached, allowed, escalated, receipt, approval });
}

/** Returns the BLOCK that ends the wait for a person. */
function ended({ mode, unreached, receipt, approval }, what) {
  return verdictOf("BLOCK", `Svc: ${what}; the action is blocked.`, mode, { unreached, receipt, approval });
}

/** A person's comment says why the call was denied. */
function endOf({ status, comment }) {
  const words = ends.get(status);
  return typeof comment === "string" && comment !== "" ? `${words}: ${comment}` : words;
}

function approvalIn(answer, id) {
  if (answer.status === 404) return { id, status: "unknown" };
  if (answer.status !== 200) {
    const trouble = refusal(answer.status);
    // The gate may be starting, or have too many waiting requests.
    throw answer.status === 429 || answer.status >= 500 ? transport(trouble.what) : trouble;
  }
  const found = objectIn(answer);
  if (found.id !== id || !(["pending", "approved"].includes(found.status) || ends.has(found.status))) {
    throw unreadable("it is not this approval, or its status is not known");
  }
  return found;
}

function refusal(status) {
  if (status === 401 || status === 403) return new Trouble(`$GATE refused the key (${status})`);
  if ([400, 409, 413, 415, 422, 429].includes(status)) {
    return new Trouble(`$GATE refused the request (${status})`, { failsOpen: false });
  }
  if (status >= 300 && status < 400) {
    return new Trouble(`$GATE answered with a redirect (${status}), which is never followed`);
  }
  return new Trouble(`$GATE answered ${status} instead of a verdict`);
}

function requestBody(toolName, toolInput, sessionId, { platformState, approval, callId }) {
  if (typeof toolName !== "string") throw notPlain(["tool_name"], "is not a text");
  if (!isObject(toolInput)) throw notPlain(["tool_input"], "is not an object");
  if (platformState != null && !isObject(platformState)) throw notPlain(["platform_state"], "is not an object");
  return jsonBody({
    tool_name: toolName,
    tool_input: toolInput,
    session_id: sessionId,
    platform_state: platformState ?? undefined,
    approval: approval == null ? undefined : { id: approval },
    call_id: callId,
  });
}

/** The bytes of an object with these members; a member that is undefined is left out. */
function jsonBody(members) {
  const text = new JsonText();
  let separator = "{";
  for (const [name, value] of Object.entries(members)) {
    if (value === undefined) continue;
    text.member(separator, name, value, []);
    separator = ",";
  }
  text.put("}");
  const body = new TextEncoder().encode(text.parts.join(""));
  if (body.byteLength > requestMax) throw tooLong();
  return body;
}

/** Writes plain data as JSON; stops at data that is not plain, too deep or too long. Reads each member once. */
class JsonText {
  parts = [];
  #length = 0;

  put(part) {
    this.#length += part.length;
    if (this.#length > requestMax) throw tooLong(); // a list that occurs many times is short in memory and long on the wire
    this.parts.push(part);
  }

  member(separator, name, value, path) {
    this.put(`${separator}${JSON.stringify(name)}:`);
    this.#write(value, [...path, name]);
  }

  /** A value that throws when it is read is not plain data. */
  #write(value, path) {
    try {
      this.#writeAny(value, path);
    } catch (error) {
      throw Trouble.is(error) ? error : notPlain(path, "cannot be read");
    }
  }

  #writeAny(value, path) {
    if (typeof value === "string") {
      if (!isUnicode(value)) throw notPlain(path, "has an unpaired surrogate");
      this.put(JSON.stringify(value));
    } else if (typeof value === "number") {
      this.put(decimal(value, path));
    } else if (typeof value === "boolean" || value === null) {
      this.put(String(value));
    } else if (typeof value === "object") {
      if (path.length > depthMax) {
        throw notPlain(path.slice(0, 2), `is nested over ${depthMax} deep, or contains itself`);
      }
      if (Array.isArray(value)) this.#writeArray(value, path);
      else this.#writeObject(value, path);
    } else {
      throw notPlain(path, `is not plain JSON data (${typeof value})`);
    }
  }

  #writeArray(array, path) {
    const items = membersOf(array, path).filter(([name]) => name !== "length");
    const length = array.length;
    this.put("[");
    for (let index = 0; index < length; index += 1) {
      if (items[index]?.[0] !== String(index)) throw notPlain([...path, index], "is missing");
      if (index > 0) this.put(",");
      this.#write(items[index][1], [...path, index]);
    }
    if (items.length > length) throw notPlain(path, "is a list with members of its own");
    this.put("]");
  }

  #writeObject(object, path) {
    if (!hasPlainPrototype(object)) throw notPlain(path, `is not plain JSON data (${nameOfClass(object)})`);
    let separator = "{";
    for (const [name, value] of membersOf(object, path)) {
      if (value === undefined) continue;
      this.member(separator, name, value, path);
      separator = ",";
    }
    this.put(separator === "{" ? "{}" : "}");
  }
}

/** Returns the own members, as data: a getter could give another value the second time. */
function membersOf(object, path) {
  return Reflect.ownKeys(object).map((name) => {
    const member = Reflect.getOwnPropertyDescriptor(object, name);
    if (typeof name !== "string" || !isUnicode(name)) throw notPlain(path, "has a name that is not a text");
    if (member === undefined || !("value" in member)) throw notPlain([...path, name], "is computed, not data");
    if (!member.enumerable && !(name === "length" && Array.isArray(object))) {
      throw notPlain([...path, name], "is hidden");
    }
    return [name, member.value];
  });
}

/** A prototype of another realm counts, as in test runners; one that adds members to its objects does not. */
function hasPlainPrototype(object) {
  const prototype = Object.getPrototypeOf(object);
  if (prototype === null) return true;
  if (Object.getPrototypeOf(prototype) !== null || !Object.hasOwn(prototype, "isPrototypeOf")) return false;
  return Object.keys(prototype).length === 0;
}

function nameOfClass(object) {
  const name = object.constructor?.name;
  return typeof name === "string" ? quoted(name).slice(1, -1) : "object";
}

function decimal(number, path) {
  if (!Number.isFinite(number)) throw notPlain(path, "is not a finite number");
  if (Math.abs(number) >= 2 ** 53) {
    throw notPlain(path, "is too large to be exact; send it as text");
  }
  return Object.is(number, -0) ? "-0" : String(number);
}

function notPlain([first, ...rest], why) {
  const place = rest.reduce(
    (path, part) =>
      path +
      (/^[A-Za-z_][A-Za-z0-9_]{0,63}$/.test(part) ? `.${part}` : `[${Number.isInteger(part) ? part : quoted(part)}]`),
    first,
  );
  const shown = place.length <= 200 ? place : `${place.slice(0, 200)}...`;
  return new Trouble(`the call was not sent, because ${shown} ${why}`, { failsOpen: false });
}

function tooLong() {
  return new Trouble(`the call was not sent, because it is over ${requestMax} bytes`, { failsOpen: false });
}

/** In ASCII alone: an agent may have written it, and a person reads it. */
function quoted(text) {
  const json = JSON.stringify(text.length <= 64 ? text : `${text.slice(0, 64)}...`);
  return json.replace(/[^\x20-\x7e]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isUnicode(text) {
  return !/\p{Surrogate}/u.test(text);
}

function isSession(value) {
  const isText = typeof value === "string" && isUnicode(value) && !value.includes("\0");
  return isText && value !== "" && new TextEncoder().encode(value).byteLength <= 256;
}

/** No error shows the address: it may contain secrets. */
function parsedAddress(url) {
  if (typeof url !== "string" || !/^[\x21-\x7e]+$/.test(url) || /["<>\\^`{|}]/.test(url)) {
    throw new TypeError("url must be a text of ASCII characters that URLs have");
  }
  if (!/^https?:\/\/[^/?#]/i.test(url)) throw new TypeError("url must start with http:// or https:// and a host");
  if (/[?#]/.test(url) || /^[^/]*\/\/[^/]*@/.test(url)) {
    throw new TypeError("url must not have a user, a query or a fragment: the key is an option of its own");
  }
  try {
    const address = new URL(url);
    if (address.port !== "0") return address;
  } catch {
    // Reported below: the error's own words would show the address.
  }
  throw new TypeError("url must have a host, and a port from 1 to 65535 if any");
}
