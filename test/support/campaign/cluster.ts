import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { migratePostgres } from "../../../packages/gate/src/ledger/store/postgres/postgres.ts";
import { startPostgres, type Afterwards, type PostgresServer, type Settings } from "../postgres-server.ts";
import { Line } from "./line.ts";

const role = "gate";
const password = "of-the-campaign";

/** A primary waits for any standby. A promoted one waits for its own. */
const settings: Settings = {
  synchronous_standby_names: "*",
  max_connections: 60,
  wal_keep_size: "1GB",
  wal_receiver_timeout: "3s",
  wal_sender_timeout: "3s",
  wal_retrieve_retry_interval: "200ms",
};

/**
 * The state of the old primary when it is replaced: killed, running but unreachable, or still reached by its sessions.
 */
export type Succession = "killed" | "unreachable" | "stale";

/**
 * A primary and a standby that each COMMIT waits for, all behind fault-injecting connections. Only this object decides
 * their roles.
 */
export class Cluster {
  #primary: PostgresServer;
  #standby: PostgresServer | undefined;
  readonly #replication: Line;
  readonly lines: Line[] = [];
  #standbys = 0;

  private constructor(primary: PostgresServer, replication: Line) {
    this.#primary = primary;
    this.#replication = replication;
  }

  /** @returns the reason if this machine cannot run it */
  static async start(t: Afterwards): Promise<Cluster | string> {
    const primary = await startPostgres(t, settings);
    if (typeof primary === "string") return primary;
    await primary.run(`SET synchronous_commit TO local; CREATE ROLE ${role} LOGIN PASSWORD '${password}'`);
    const cluster = new Cluster(primary, await Line.start(primary.port, false));
    t.after(() => cluster.#close());
    await cluster.addStandby();
    await migratePostgres({ url: primary.url(), servingRole: role });
    return cluster;
  }

  /** The present primary. */
  get primary(): PostgresServer {
    return this.#primary;
  }

  get replication(): Line {
    return this.#replication;
  }

  /** Makes a separate connection for one gate; returns the URL that uses it. */
  async addLine(): Promise<{ readonly line: Line; readonly url: string }> {
    const line = await Line.start(this.#primary.port, true);
    this.lines.push(line);
    return { line, url: this.#primary.url({ user: role, password, port: line.port }) };
  }

  /** Builds a standby from the primary, and waits until it has all of the primary's data. */
  async addStandby(): Promise<void> {
    this.#replication.lead(this.#primary.port);
    const { username, password: secret } = new URL(this.#primary.url());
    const from =
      `host=127.0.0.1 port=${this.#replication.port} user=${username} password=${secret} application_name=standby ` +
      "sslmode=disable gssencmode=disable connect_timeout=3";
    this.#standbys += 1;
    this.#standby = await this.#primary.startStandby(String(this.#standbys), { ...settings, primary_conninfo: from });
    await this.whenSafe();
  }

  /** Resolves when the primary has a standby that each COMMIT waits for. */
  async whenSafe(): Promise<void> {
    for (;;) {
      const found = await this.#primary
        .run("SELECT 1 FROM pg_stat_replication WHERE state = 'streaming' AND sync_state IN ('sync', 'quorum')")
        .catch(() => []);
      if (found.length > 0) return;
      await wait(50);
    }
  }

  async killPrimary(pauseMs: number): Promise<void> {
    await this.#primary.kill();
    await wait(pauseMs);
    await this.#primary.start();
  }

  /** Runs `pg_ctl restart -m immediate`, or `fast`. */
  async restartPrimary(how: "immediate" | "fast"): Promise<void> {
    if (how === "fast") await this.#primary.stop();
    else await quit(this.#primary);
    await this.#primary.start();
  }

  async killStandby(pauseMs: number): Promise<void> {
    const standby = this.#standby;
    await standby?.kill();
    await wait(pauseMs);
    await standby?.start();
  }

  /** Ends the gates' sessions as a superuser: all of them, or half. */
  async disturbSessions(how: "pg_terminate_backend" | "pg_cancel_backend", share: number): Promise<void> {
    await this.#primary.run(
      `SELECT ${how}(pid) FROM pg_stat_activity WHERE usename = '${role}' AND random() < ${share}`,
    );
  }

  /** Promotes the standby, which has every answered row. Gates are redirected to it, and it gets a standby. */
  async failOver(how: Succession, lingerMs: number): Promise<void> {
    const [old, successor] = [this.#primary, this.#standby];
    if (successor === undefined) throw new Error("the cluster has no standby to promote");
    const links = this.lines.flatMap((line) => line.links);
    if (how === "killed") await old.kill();
    if (how === "unreachable") for (const link of links) link.darken();
    await promote(successor);
    this.#primary = successor;
    this.#standby = undefined;
    for (const line of this.lines) line.lead(successor.port);
    if (how === "killed") for (const link of links) link.cut();
    const standby = this.addStandby();
    await wait(how === "killed" ? 0 : lingerMs);
    for (const link of links) link.cut();
    await old.kill();
    rmSync(old.folder, { recursive: true, force: true, maxRetries: 5 });
    await standby;
  }

  #close(): void {
    for (const line of [this.#replication, ...this.lines]) line.close();
  }
}

/** Promotes the standby; retries because it may be starting or catching up. */
async function promote(standby: PostgresServer): Promise<void> {
  for (;;) {
    try {
      const [found] = await standby.run("SELECT pg_is_in_recovery() AS waits");
      if (found?.["waits"] === false) return;
      await standby.promote();
    } catch {
      await wait(100);
    }
  }
}

/** Children end at once without cleanup, as with `pg_ctl -m immediate`. */
async function quit(server: PostgresServer): Promise<void> {
  const pid = Number(readFileSync(join(server.folder, "postmaster.pid"), "utf8").split("\n")[0]);
  process.kill(pid, "SIGQUIT");
  while (isAlive(pid)) await wait(20);
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
