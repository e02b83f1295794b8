/**
 * Goal: compose.yaml starts with the commands of its header, and the key that `migrate` wrote opens the gate. Method:
 * no container engine is needed, because the test interprets the file. Its services run in the order of `depends_on`,
 * with the image's and their own variables and their commands, on the test's own server; a volume is a folder. The
 * header's `exec` lines then run in the same way. Control: before the migration the gate is refused, without
 * `--first-key` it has no key, and its role can change no receipt.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { after, suite, test, type TestContext } from "node:test";
import pg from "pg";
import { parse } from "yaml";
import { control } from "../support/controls/control.ts";
import { check, finish, root, runCommand, spawnGate, temporaryFolder, type Spawned } from "../support/gate.ts";
import { startPostgres, type PostgresServer } from "../support/postgres-server.ts";
import { sentencesOf } from "../support/sentences.ts";

const says = sentencesOf(import.meta.filename);

/** Returns the line that contains `part`. */
const lineWith = (text: string, part: string): string => text.split("\n").find((line) => line.includes(part)) ?? "";

interface Compose {
  readonly services: Readonly<Record<string, Service>>;
  readonly configs: Readonly<Record<string, { readonly content: string }>>;
}

interface Service {
  readonly command?: readonly string[];
  readonly environment?: Readonly<Record<string, string | number | null>>;
  readonly volumes: readonly string[];
  readonly depends_on?: Readonly<Record<string, unknown>> | readonly string[];
}

const text = readFileSync(join(root, "compose.yaml"), "utf8");
const { services, configs }: Compose = parse(text);
const dockerfile = readFileSync(join(root, "Dockerfile"), "utf8");

/** The commands of the header. */
const header = Array.from(text.matchAll(/^# {3}(\S.*)$/gm), ([, line = ""]) => line.replace(/ {2,}#.*$/, ""));

type Variables = Readonly<Record<string, string>>;

/** Runs the first line of the header in a shell, in a new folder. */
function passwords(t: TestContext): Variables {
  const folder = temporaryFolder(t);
  const made = spawnSync("sh", ["-c", header[0] ?? ""], { cwd: folder, encoding: "utf8" });
  if (made.error !== undefined || /openssl: .*not found/.test(made.stderr))
    return { OWNER_PASSWORD: "of-the-owner", GATE_PASSWORD: "of-the-gate" };
  assert.equal(made.status, 0, made.stderr);
  const lines = readFileSync(join(folder, ".env"), "utf8").trimEnd().split("\n");
  return Object.fromEntries(lines.map((line) => line.split("=", 2) as [string, string]));
}

/** Fills in `${NAME:?what to do}`, as compose does, and supports no other form. */
function filledIn(value: unknown, set: Variables): string {
  return String(value).replaceAll(/\$\{([A-Z_]+)(?::\?[^}]*)?\}/g, (_, name: string) => set[name] ?? assert.fail(name));
}

/** The containers of one project, whose named volumes are folders. */
class Project {
  readonly #set: Variables;
  readonly #server: PostgresServer;
  readonly #volumes: string;

  constructor(t: TestContext, server: PostgresServer, set: Variables) {
    this.#set = set;
    this.#server = server;
    this.#volumes = temporaryFolder(t);
  }

  /** Returns the path on this machine for a path in a service's container. */
  pathIn(service: Service, path: string): string {
    for (const [source = "", target = ""] of service.volumes.map((each) => each.split(":"))) {
      if (path !== target && !path.startsWith(`${target}/`)) continue;
      const folder = source.startsWith(".") ? join(root, source) : join(this.#volumes, source);
      if (!source.startsWith(".")) mkdirSync(folder, { recursive: true, mode: 0o700 });
      return join(folder, path.slice(target.length));
    }
    return path;
  }

  /**
   * Returns the image's variables, then the service's own; one without a value is passed on only if the user set it.
   */
  env(service: Service): Variables {
    const ofImage = (/^ENV (.*)$/m.exec(dockerfile)?.[1] ?? "").split(" ").map((each) => each.split("=", 2));
    const own = Object.entries(service.environment ?? {}).map(([name, value]) => [name, value ?? this.#set[name]]);
    const all = [...ofImage, ...own].filter(([, value]) => value !== undefined);
    const here = { SVC_HOST: "127.0.0.1", SVC_PORT: "0", SVC_OPS_HOST: "127.0.0.1", SVC_OPS_PORT: "0" };
    const mapped = all.map(([name, value]) => [name, this.pathIn(service, filledIn(value, this.#set))]);
    const env: Record<string, string> = { ...Object.fromEntries(mapped), ...here };
    const url = env["SVC_DATABASE_URL"]?.replace("@postgres:5432/", `@127.0.0.1:${this.#server.port}/`);
    return url === undefined ? env : { ...env, SVC_DATABASE_URL: url };
  }

  /** Returns the words after `node bin/svc-gate.mjs`, with the paths of this machine. */
  words(service: Service, command: readonly string[]): readonly string[] {
    const at = command.indexOf("bin/svc-gate.mjs");
    assert.ok(command[0] === "node" && at > 0, command.join(" "));
    return command.slice(at + 1).map((word) => this.pathIn(service, word));
  }

  async query(service: Service, statement: string): Promise<readonly unknown[]> {
    const client = new pg.Client({ connectionString: this.env(service)["SVC_DATABASE_URL"] });
    await client.connect();
    try {
      return (await client.query(statement)).rows;
    } finally {
      await client.end();
    }
  }
}

/** Returns the services that run svc-gate, each after those that it waits for. */
function inOrder(name = "gate"): readonly string[] {
  const before = Object.keys(services[name]?.depends_on ?? {});
  return [...new Set([...before.flatMap(inOrder), name])];
}

function serviceOf(name: string): Service {
  return services[name] ?? assert.fail(`compose.yaml has no service ${name}`);
}

async function newProject(t: TestContext, server: PostgresServer, more: Variables = {}): Promise<Project> {
  const set = { ...passwords(t), ...more };
  const { environment = {} } = serviceOf("postgres");
  const owner = String(environment["POSTGRES_USER"]);
  // Databases and roles belong to the server, so drop those of an earlier case.
  await server.run(`DROP DATABASE IF EXISTS ${String(environment["POSTGRES_DB"])}`);
  for (const role of ["svc_gate", owner]) await server.run(`DROP ROLE IF EXISTS ${role}`);
  const ownerPassword = filledIn(environment["POSTGRES_PASSWORD"], set);
  await server.run(`CREATE ROLE ${owner} LOGIN SUPERUSER PASSWORD '${ownerPassword}'`);
  await server.run(`CREATE DATABASE ${String(environment["POSTGRES_DB"])} OWNER ${owner}`);
  await server.run(filledIn(configs["roles"]?.content, set));
  return new Project(t, server, set);
}

const startCommand: readonly string[] = JSON.parse(/^CMD (.*)$/m.exec(dockerfile)?.[1] ?? "");

/** Acts as `up`: runs each service that must complete first to its end, then starts the gate. */
async function up(t: TestContext, project: Project): Promise<Spawned> {
  for (const name of inOrder().filter((each) => each !== "gate" && each !== "postgres")) {
    const service = serviceOf(name);
    const run = await finish(t, project.words(service, service.command ?? []), { env: project.env(service) });
    assert.equal(run.code, 0, run.stderr);
    assert.doesNotMatch(run.stdout + run.stderr, /svcg_/, "a log would keep the key");
  }
  const gate = serviceOf("gate");
  const [, ...words] = project.words(gate, startCommand);
  return spawnGate(t, words, { env: project.env(gate) });
}

/** Acts as `docker compose exec SERVICE COMMAND...` with the header's line that contains `part`. */
async function exec(t: TestContext, project: Project, part: string): Promise<string> {
  const line = header.find((each) => each.includes(part)) ?? assert.fail(`the header has no ${part}`);
  const [, name = "", rest = ""] = /^docker compose exec (\S+) (.*)$/.exec(line) ?? assert.fail(line);
  const service = serviceOf(name);
  const words = rest.split(" ");
  if (words[0] === "cat") return readFileSync(project.pathIn(service, words[1] ?? ""), "utf8");
  const run = await finish(t, project.words(service, words), { env: project.env(service) });
  assert.equal(run.code, 0, run.stderr);
  return run.stdout;
}

async function statusWith(gate: Spawned, key: string): Promise<number> {
  const request = { tool_name: "note.add", tool_input: {} };
  return (await check(gate, request, { authorization: `Bearer ${key}` })).status;
}

async function end(gate: Spawned): Promise<void> {
  gate.kill("SIGTERM");
  assert.equal(await gate.exit, 0, gate.stderr());
}

const there = await startPostgres({ after });

if (typeof there === "string") test("compose.yaml on PostgreSQL", { skip: there }, () => undefined);
else suite("compose.yaml on PostgreSQL", { tags: ["first-use-3"] }, () => cases(there));

function cases(server: PostgresServer): void {
  test("compose.yaml starts as its header says, and a restart keeps the key and the mode", async (t) => {
    assert.deepEqual(inOrder(), ["postgres", "migrate", "gate"]);
    assert.match(header[1] ?? "", /^docker compose up -d --build --wait$/);
    const project = await newProject(t, server);
    const gate = await up(t, project);
    const key = (await exec(t, project, "cat ")).trim();
    const file = project.pathIn(serviceOf("gate"), "/data/first-key");
    if (process.platform !== "win32") assert.equal(statSync(file).mode & 0o777, 0o600);
    assert.equal(await statusWith(gate, key), 200);
    assert.equal(await statusWith(gate, "another"), 401);
    const [, ops] = /(http:\/\/127\.0\.0\.1:\d+)\/metrics/.exec(gate.stdout()) ?? [];
    for (const path of ["/ready", "/health", "/metrics"])
      assert.equal((await fetch(`${ops}${path}`)).status, 200, path);
    assert.match(gate.stdout(), /mode +observe/);
    await exec(t, project, "reload --mode enforce");
    await end(gate);

    const again = await up(t, project);
    assert.equal(readFileSync(file, "utf8").trim(), key);
    assert.equal(await statusWith(again, key), 200);
    assert.match(again.stdout(), /mode +enforce/);
    await end(again);

    const count = "SELECT count(*)::int AS receipts FROM svc_gate.receipts";
    const { gate: serving, migrate } = services;
    assert.ok(serving !== undefined && migrate !== undefined);
    assert.deepEqual(await project.query(migrate, count), [{ receipts: 4 }], "the key, two checks and the reload");
    assert.deepEqual(await project.query(serving, count), [{ receipts: 0 }], "of no ledger but the one that it names");
    for (const change of ["UPDATE svc_gate.receipts SET leaf = ''", "DELETE FROM svc_gate.receipts"])
      await assert.rejects(project.query(serving, change), /permission denied/);
  });

  test("if SVC_API_KEY is set, it opens the gate and no other key is made", async (t) => {
    const project = await newProject(t, server, { SVC_API_KEY: "chosen-by-the-operator" });
    const gate = await up(t, project);
    assert.equal(await statusWith(gate, "chosen-by-the-operator"), 200);
    assert.ok(!existsSync(project.pathIn(serviceOf("gate"), "/data/first-key")));
    await end(gate);
  });

  control("positive control: a gate without the migration or without a first key does not start", async (t) => {
    const project = await newProject(t, server);
    const [gate, migrate] = [serviceOf("gate"), serviceOf("migrate")];
    const refusal = async (): Promise<string> => {
      const run = runCommand(t, project.words(gate, startCommand), { env: project.env(gate) });
      assert.notEqual(await run.exit, 0);
      return run.stderr();
    };
    assert.match(await refusal(), /\bsvc-gate migrate --role\b/);
    const words = project.words(migrate, migrate.command ?? []);
    const withoutKey = words.slice(0, words.indexOf("--first-key"));
    assert.equal((await finish(t, withoutKey, { env: project.env(migrate) })).code, 0);
    says("no-key", lineWith(await refusal(), "API key"));
  });
}
