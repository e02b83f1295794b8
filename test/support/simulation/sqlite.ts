/**
 * Replaces `node:sqlite`, as far as the ledger uses it, with SQLite's WebAssembly and the simulated disk. Values are
 * converted, and errors have members, as in the original.
 */
import { engine } from "./engine.ts";
import { machine, type Process } from "./machine.ts";
import { registerDisk } from "./vfs.ts";

export * from "node:sqlite";

const { native } = engine;
registerDisk();

type Value = null | number | bigint | string | Uint8Array;

const row = 100;
const done = 101;
const openFlags = { readOnly: 0x1, readWrite: 0x2 | 0x4 } as const;
const transient = -1;

export class DatabaseSync {
  readonly #database: number;
  readonly #process: Process;
  readonly #statements = new Set<StatementSync>();
  #isOpen = true;

  constructor(path: string, options: { readonly readOnly?: boolean; readonly timeout?: number } = {}) {
    this.#process = machine().process;
    const out = native.sqlite3_malloc(4);
    const name = engine.keepText(path);
    const flags = options.readOnly === true ? openFlags.readOnly : openFlags.readWrite;
    const code = native.sqlite3_open_v2(name, out, flags, 0);
    this.#database = engine.view().getUint32(out, true);
    native.sqlite3_free(out);
    native.sqlite3_free(name);
    openedBy.set(this.#process, (openedBy.get(this.#process) ?? new Set()).add(this));
    if (code !== 0) {
      const error = this.failure();
      this.close();
      throw error;
    }
    native.sqlite3_extended_result_codes(this.#database, 1);
    this.exec("PRAGMA foreign_keys = ON");
  }

  get isTransaction(): boolean {
    return native.sqlite3_get_autocommit(this.#database) === 0;
  }

  exec(sql: string): void {
    this.#requireOpen();
    const text = engine.keepText(sql);
    const code = native.sqlite3_exec(this.#database, text, 0, 0, 0);
    native.sqlite3_free(text);
    if (code !== 0) throw this.failure();
  }

  prepare(sql: string, { returnArrays = false }: { readonly returnArrays?: boolean } = {}): StatementSync {
    this.#requireOpen();
    const text = engine.keepText(sql);
    const out = native.sqlite3_malloc(4);
    const code = native.sqlite3_prepare_v2(this.#database, text, -1, out, 0);
    const pointer = engine.view().getUint32(out, true);
    native.sqlite3_free(out);
    native.sqlite3_free(text);
    if (code !== 0) throw this.failure();
    const statement = new StatementSync(this, pointer, returnArrays);
    this.#statements.add(statement);
    return statement;
  }

  close(): void {
    this.#requireOpen();
    this.#isOpen = false;
    for (const statement of this.#statements) statement.finalize();
    openedBy.get(this.#process)?.delete(this);
    native.sqlite3_close_v2(this.#database);
  }

  [Symbol.dispose](): void {
    if (this.#isOpen) this.close();
  }

  failure(): Error {
    const code = native.sqlite3_extended_errcode(this.#database);
    const message = engine.text(native.sqlite3_errmsg(this.#database));
    const errstr = engine.text(native.sqlite3_errstr(code));
    return Object.assign(new Error(message), { code: "ERR_SQLITE_ERROR", errcode: code, errstr });
  }

  #requireOpen(): void {
    if (!this.#isOpen) throw Object.assign(new Error("database is not open"), { code: "ERR_INVALID_STATE" });
  }
}

class StatementSync {
  readonly #owner: DatabaseSync;
  readonly #statement: number;
  #isFinal = false;
  readonly #asArrays: boolean;

  constructor(owner: DatabaseSync, statement: number, asArrays: boolean) {
    this.#owner = owner;
    this.#statement = statement;
    this.#asArrays = asArrays;
  }

  run(...values: readonly Value[]): void {
    for (const each of this.iterate(...values)) void each;
  }

  get(...values: readonly Value[]): unknown {
    for (const each of this.iterate(...values)) return each;
    return undefined;
  }

  all(...values: readonly Value[]): readonly unknown[] {
    return [...this.iterate(...values)];
  }

  *iterate(...values: readonly Value[]): Generator {
    if (this.#isFinal) throw Object.assign(new Error("statement has been finalized"), { code: "ERR_INVALID_STATE" });
    native.sqlite3_reset(this.#statement);
    native.sqlite3_clear_bindings(this.#statement);
    for (const [at, value] of values.entries()) this.#bind(at + 1, value);
    try {
      for (;;) {
        const code = native.sqlite3_step(this.#statement);
        if (code === done) return;
        if (code !== row) throw this.#owner.failure();
        yield this.#row();
      }
    } finally {
      if (!this.#isFinal) native.sqlite3_reset(this.#statement);
    }
  }

  finalize(): void {
    this.#isFinal = true;
    native.sqlite3_finalize(this.#statement);
  }

  #bind(at: number, value: Value): void {
    const code = this.#bound(at, value);
    if (code !== 0) throw this.#owner.failure();
  }

  #bound(at: number, value: Value): number {
    if (value === null) return native.sqlite3_bind_null(this.#statement, at);
    if (typeof value === "number") return native.sqlite3_bind_double(this.#statement, at, value);
    if (typeof value === "bigint") return native.sqlite3_bind_int64(this.#statement, at, value);
    const bytes = typeof value === "string" ? Buffer.from(value) : value;
    const pointer = native.sqlite3_malloc(bytes.length + 1);
    engine.memory().set(bytes, pointer);
    const bind = typeof value === "string" ? native.sqlite3_bind_text : native.sqlite3_bind_blob;
    const code = bind(this.#statement, at, pointer, bytes.length, transient);
    native.sqlite3_free(pointer);
    return code;
  }

  #row(): unknown {
    const count = native.sqlite3_column_count(this.#statement);
    const values = Array.from({ length: count }, (_, at) => this.#column(at));
    if (this.#asArrays) return values;
    const made = Object.create(null) as Record<string, Value>;
    for (const [at, value] of values.entries())
      made[engine.text(native.sqlite3_column_name(this.#statement, at))] = value;
    return made;
  }

  #column(at: number): Value {
    const statement = this.#statement;
    switch (native.sqlite3_column_type(statement, at)) {
      case 1: {
        const value = native.sqlite3_column_int64(statement, at);
        if (!Number.isSafeInteger(Number(value)))
          throw Object.assign(new RangeError(`the value is too large: ${value}`), { code: "ERR_OUT_OF_RANGE" });
        return Number(value);
      }
      case 2:
        return native.sqlite3_column_double(statement, at);
      case 3:
        return Buffer.from(this.#bytes(native.sqlite3_column_text(statement, at), at)).toString();
      case 4:
        return this.#bytes(native.sqlite3_column_blob(statement, at), at).slice();
      default:
        return null;
    }
  }

  #bytes(pointer: number, at: number): Uint8Array {
    return engine.memory().subarray(pointer, pointer + native.sqlite3_column_bytes(this.#statement, at));
  }
}

const openedBy = new WeakMap<Process, Set<DatabaseSync>>();

/**
 * Closes the open connections of a process: in order if it lives, as at a normal exit, otherwise without any effect on
 * the disk.
 */
export function closeAll(process: Process): void {
  for (const database of openedBy.get(process) ?? []) database.close();
}
