import sqlite3InitModule from "@sqlite.org/sqlite-wasm";

/** Functions of SQLite's C interface: pointers and numbers are numbers, 64-bit integers are bigints. */
type Native = Readonly<Record<Name, (...args: readonly (number | bigint)[]) => number>> & {
  readonly sqlite3_column_int64: (statement: number, column: number) => bigint;
};

type Name =
  | "sqlite3_bind_blob"
  | "sqlite3_bind_double"
  | "sqlite3_bind_int64"
  | "sqlite3_bind_null"
  | "sqlite3_bind_text"
  | "sqlite3_clear_bindings"
  | "sqlite3_close_v2"
  | "sqlite3_column_blob"
  | "sqlite3_column_bytes"
  | "sqlite3_column_count"
  | "sqlite3_column_double"
  | "sqlite3_column_name"
  | "sqlite3_column_text"
  | "sqlite3_column_type"
  | "sqlite3_errmsg"
  | "sqlite3_errstr"
  | "sqlite3_exec"
  | "sqlite3_extended_errcode"
  | "sqlite3_extended_result_codes"
  | "sqlite3_finalize"
  | "sqlite3_free"
  | "sqlite3_get_autocommit"
  | "sqlite3_malloc"
  | "sqlite3_open_v2"
  | "sqlite3_prepare_v2"
  | "sqlite3_randomness"
  | "sqlite3_reset"
  | "sqlite3_step"
  | "sqlite3_vfs_register"
  | "sqlite3_wal_autocheckpoint";

/** `i` is an integer or a pointer, `j` 64 bits, `v` nothing; the first letter is the result. */
type Signature = `${"i" | "v"}${string}`;

/** SQLite as its authors compile it for WebAssembly, in this process. */
export interface Engine {
  readonly native: Native;
  readonly version: string;
  /** All memory; it may move at each allocation. */
  memory(): Uint8Array;
  view(): DataView;
  text(pointer: number): string;
  /** A text that is never freed, such as the name of a file system. */
  keepText(text: string): number;
  /** A function that SQLite can call. */
  readonly install: (signature: Signature, run: (...args: never[]) => number | void) => number;
}

async function start(): Promise<Engine> {
  const { wasm, version } = await sqlite3InitModule();
  let view = new DataView(wasm.heap8u().buffer);
  return {
    native: wasm.exports as Native,
    version: version.libVersion,
    memory: () => wasm.heap8u(),
    view: () => {
      const { buffer } = wasm.heap8u();
      if (view.buffer !== buffer) view = new DataView(buffer);
      return view;
    },
    text: (pointer) => wasm.cstrToJs(pointer) ?? "",
    keepText: (text) => wasm.allocCString(text, false),
    install: (signature, run) => wasm.installFunction(signature, run),
  };
}

export const engine: Engine = await start();
