/**
 * Goal: every command of docs/guides/deploy.md works as written. Method: one table has a step for each, in the page's
 * order. A shell runs most of them, with folders of the test instead of /opt, /etc and /srv, and with a small package
 * of the same name and command, so that npm needs no registry. For a command that needs Docker, Kubernetes or systemd,
 * the test compares its options with the file that it uses, and produces its effect without it. If kubectl or helm is
 * installed, it judges too. A command without a step, or a step without a command, is a failure.
 */
import assert from "node:assert/strict";
import {
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { suite, test, type TestContext } from "node:test";
import { parse, parseAllDocuments } from "yaml";
import { freePort } from "../../support/free-port.ts";
import { readSigningKeys } from "../../../packages/gate/src/ledger/signing/mod.ts";
import { control } from "../../support/controls/control.ts";
import { root, temporaryFolder } from "../../support/gate.ts";
import { commandsOf, hasProgram, Shell, strangers, type Step, type Steps } from "../../support/page-commands.ts";

const read = (path: string): string => readFileSync(join(root, path), "utf8");
const page = read("docs/guides/deploy.md");
const { version } = JSON.parse(read("packages/svc-gate/package.json"));
const { scripts } = JSON.parse(read("package.json"));
const dockerfile = read("Dockerfile");
const unit = read("deploy/systemd/svc-gate.service");
const instruction = (name: string): string => new RegExp(`^${name} (.*)$`, "m").exec(dockerfile)?.[1] ?? "";

/** A machine in a folder, with its own /opt. */
interface Machine {
  readonly folder: string;
  readonly shell: Shell;
  readonly port: string;
  readonly in: (path: string) => string;
}

/** Writes a package with this one's name, version and command, but without dependencies. */
function writeStandIn(folder: string): void {
  mkdirSync(join(folder, "deploy"), { recursive: true });
  cpSync(join(root, "deploy", "systemd"), join(folder, "deploy", "systemd"), { recursive: true });
  const entry = JSON.stringify(new URL("../../../bin/svc-gate.mjs", import.meta.url).href);
  writeFileSync(join(folder, "svc-gate.mjs"), `#!/usr/bin/env node\nawait import(${entry});\n`, { mode: 0o755 });
  const manifest = {
    name: "svc-gate",
    version,
    type: "module",
    bin: { "svc-gate": "svc-gate.mjs" },
    scripts: { pack: "npm pack" },
  };
  writeFileSync(join(folder, "package.json"), JSON.stringify(manifest));
}

/** Writes a folder that npm treats as a project's root, with a file of its own in node_modules. */
function writeProject(folder: string): string {
  mkdirSync(join(folder, "node_modules"), { recursive: true });
  writeFileSync(join(folder, "package.json"), '{ "name": "of-somebody-else", "version": "1.0.0" }');
  symlinkSync(root, join(folder, "node_modules", "svc-gate"), "junction");
  return folder;
}

function contentOf(folder: string): readonly string[] {
  const modules = readdirSync(join(folder, "node_modules"), { withFileTypes: true });
  return [textIn(join(folder, "package.json")), ...modules.map((each) => `${each.name} ${each.isSymbolicLink()}`)];
}

const textIn = (file: string): string => readFileSync(file, "utf8");

async function newMachine(t: TestContext): Promise<Machine> {
  const folder = temporaryFolder(t);
  const port = String(await freePort());
  for (const each of ["opt", "etc/systemd/system", "srv", "var/lib", "var/cache", "home"])
    mkdirSync(join(folder, each), { recursive: true });
  const folders = ["/opt/", "/etc/", "/srv/", "/var/lib/", "/var/cache/"].map(
    (each) => [each, join(folder, each, "/")] as const,
  );
  const shell = new Shell(t, join(folder, "home"), folders, { SVC_PORT: port, SVC_LOG: "warn" });
  return { folder, shell, port, in: (path) => join(folder, path) };
}

async function healthOf({ port }: Machine): Promise<any> {
  return (await fetch(`http://127.0.0.1:${port}/health`)).json();
}

/**
 * Starts the gate as the unit does, with its variables, the settings' values, and its command on this machine's Node.
 */
async function startUnit(machine: Machine): Promise<void> {
  const [, variables = ""] = /^Environment=(.*)$/m.exec(unit) ?? [];
  const [, command = ""] = /^ExecStart=(.*)$/m.exec(unit) ?? [];
  const set = Object.fromEntries(
    machine.shell
      .here(variables.replaceAll("%S", "/var/lib").replaceAll("%C", "/var/cache"))
      .split(" ")
      .map((each) => each.split("=", 2) as [string, string]),
  );
  const installed = "/opt/svc-gate/node_modules/.bin/node";
  assert.ok(command.startsWith(`${installed} `));
  const entry = command.replace(installed, process.execPath).replace("/bin/svc-gate.mjs", "/svc-gate.mjs");
  await machine.shell.serve(`exec ${entry}`, set);
}

/**
 * Starts the gate as the image does, with a folder for its volume; test/repository/deploy/dockerfile.test.ts runs it
 * without rights.
 */
async function startImage(machine: Machine, command: string): Promise<void> {
  const set = Object.fromEntries(
    instruction("ENV")
      .split(" ")
      .map((each) => each.split("=", 2) as [string, string]),
  );
  const [, volume = "", inside = ""] = / -v (\S+):(\S+)/.exec(command) ?? [];
  assert.equal(set["SVC_DATA_DIR"], inside);
  const words: readonly string[] = JSON.parse(instruction("CMD"));
  const env = { ...set, SVC_HOST: "127.0.0.1", SVC_PORT: machine.port, SVC_DATA_DIR: machine.in(volume) };
  machine.shell.cwd = root;
  await machine.shell.serve(`exec ${words.join(" ")}`, env);
}

/** Returns the command of `docker exec gate`, with the path of the volume on this machine. */
function inContainer(machine: Machine, command: string): string {
  const words = command.replace(/^docker exec gate /, "").replaceAll("/data", machine.in("svc-gate"));
  return machine.shell.run(words, 0, { SVC_DATA_DIR: machine.in("svc-gate") });
}

/** Returns the keys with which a Secret is made, and the variables that the manifests take from it. */
function secretOf(command: string): { readonly name: string; readonly key: string } {
  const [, name = "", key = ""] =
    /^kubectl create secret generic (\S+) --from-(?:literal|file)=([^=]+)=/.exec(command) ?? [];
  return { name, key };
}

function secretsTaken(): readonly string[] {
  const pods = parseAllDocuments(read("deploy/kubernetes/postgres.yaml")).map(
    (each) => each.toJS().spec?.template?.spec,
  );
  const env = pods.flatMap((pod) => pod?.containers ?? []).flatMap((container) => container.env ?? []);
  const taken = env.map(({ valueFrom }) => valueFrom?.secretKeyRef).filter((each) => each !== undefined);
  return taken.map(({ name, key }) => `${name} ${key}`);
}

const makesSecret: Step = (shell, command) => {
  const { name, key } = secretOf(command);
  assert.ok(secretsTaken().includes(`${name} ${key}`), `no pod takes ${name} ${key}`);
  if (!hasProgram("kubectl") || !hasProgram("openssl")) return;
  const made = parse(shell.run(`${command} --dry-run=client --output=yaml 2>&1`));
  assert.deepEqual([made.metadata.name, Object.keys(made.data)], [name, [key]]);
};

/** @param file the test that runs the command; `what` is the test's name for it */
const runBy =
  (file: string, what: string): Step =>
  () =>
    assert.ok(read(file).includes(what), `${file} does not run ${what}`);

/** Returns the table with the step for each command of the page. */
function stepsOn(machine: Machine): Steps {
  const { folder } = machine;
  return {
    "npm run pack": (shell, command) => {
      // test/repository/pack.test.ts installs the real package with all its dependencies.
      const standIn = join(folder, "clone");
      writeStandIn(standIn);
      shell.run(`cd ${standIn} && ${command}`);
      cpSync(join(standIn, `svc-gate-${version}.tgz`), join(folder, "srv", `svc-gate-${version}.tgz`));
    },
    "mkdir gate && cd gate": (shell, command) => {
      writeProject(shell.cwd);
      shell.run(command);
      shell.cwd = join(shell.cwd, "gate");
    },
    [`npm install --prefix . --ignore-scripts --loglevel=error /srv/svc-gate-${version}.tgz`]: (shell, command) => {
      const before = contentOf(dirname(shell.cwd));
      shell.run(command);
      assert.ok(existsSync(join(shell.cwd, "node_modules", "svc-gate", "package.json")));
      assert.deepEqual(contentOf(dirname(shell.cwd)), before, "the folder above is as it was");
    },
    "npx svc-gate init && npx svc-gate serve": async (shell, command) => {
      await shell.serve(command);
      assert.ok(existsSync(join(shell.cwd, "mandate.yaml")) && existsSync(join(shell.cwd, "data", "first-key")));
    },
    "pip install ./clients/python": runBy("test/process/clients/python-package.test.ts", '"clients", "python"'),
    [`npm install --prefix /opt/svc-gate --ignore-scripts --loglevel=error /srv/svc-gate-${version}.tgz`]: (
      shell,
      command,
    ) => {
      shell.run(command);
      assert.ok(existsSync(machine.in("opt/svc-gate/node_modules/svc-gate")));
    },
    "/opt/svc-gate/node_modules/.bin/svc-gate init /etc/svc-gate": (shell, command) => void shell.run(command),
    "install -m 0600 /dev/null /etc/svc-gate/settings": (shell, command) => {
      shell.run(command);
      assert.equal(statSync(machine.in("etc/svc-gate/settings")).mode & 0o777, 0o600);
      assert.match(unit, /^EnvironmentFile=-\/etc\/svc-gate\/settings$/m);
    },
    "cp /opt/svc-gate/node_modules/svc-gate/deploy/systemd/svc-gate.service /etc/systemd/system/": (shell, command) => {
      shell.run(command);
      assert.equal(textIn(machine.in("etc/systemd/system/svc-gate.service")), unit);
    },
    "systemctl enable --now svc-gate": () => startUnit(machine),
    "systemctl reload svc-gate": async (shell) => {
      const [, command = ""] = /^ExecReload=\/bin\/(kill -HUP \$MAINPID)$/m.exec(unit) ?? [];
      const { pid } = JSON.parse(textIn(machine.in("var/lib/svc-gate/operator.json")));
      shell.run(command, 0, { MAINPID: String(pid) });
      assert.equal((await healthOf(machine)).mode, "observe");
    },
    "/opt/svc-gate/node_modules/.bin/svc-gate reload --data-dir /var/lib/svc-gate --mode enforce": async (
      shell,
      command,
    ) => {
      shell.run(command);
      assert.equal((await healthOf(machine)).mode, "enforce");
      await startUnit(machine);
      assert.equal((await healthOf(machine)).mode, "enforce", "a restart keeps it");
    },
    [`docker build -t svc-gate:${version} .`]: runBy(
      "test/repository/deploy/dockerfile.test.ts",
      "the installed modules are enough",
    ),
    [commandsOf(page).find((command) => command.startsWith("docker run ")) ?? ""]: async (_, command) => {
      const options = ["--read-only", "--cap-drop ALL", "--security-opt no-new-privileges", "--name gate"];
      for (const each of options) assert.ok(command.includes(` ${each} `), each);
      const port = instruction("EXPOSE");
      assert.match(
        command,
        new RegExp(` -p 127\\.0\\.0\\.1:${port}:${port} .* svc-gate:${version.replaceAll(".", "\\.")}$`),
      );
      assert.equal(/ -v \S+:(\S+)/.exec(command)?.[1], instruction("VOLUME"));
      await startImage(machine, command);
    },
    "docker exec gate cat /data/first-key": async (_, command) => {
      const key = inContainer(machine, command).trim();
      const headers = { authorization: `Bearer ${key}` };
      assert.equal((await fetch(`http://127.0.0.1:${machine.port}/rules`, { headers })).status, 200);
    },
    "docker exec gate node bin/svc-gate.mjs reload --mode enforce": async (shell, command) => {
      assert.equal((await healthOf(machine)).mode, "observe");
      inContainer(machine, command);
      assert.equal((await healthOf(machine)).mode, "enforce");
      await shell.stop();
      shell.cwd = join(folder, "home", "gate");
    },
    "svc-gate migrate": runBy("test/postgres/deploy.test.ts", "migrate.command"),
    "kubectl create secret generic svc-gate-database --from-literal=url='postgresql://svc_gate:...@db/svc_gate?sslmode=verify-full'":
      makesSecret,
    "kubectl create secret generic svc-gate-owner --from-literal=url='postgresql://owner:...@db/svc_gate?sslmode=verify-full'":
      makesSecret,
    'kubectl create secret generic svc-gate-key --from-literal=api-key="$(openssl rand -hex 32)"': makesSecret,
    "(umask 077; openssl genpkey -algorithm ed25519 -out signing.key)": async (shell, command) => {
      if (!hasProgram("openssl")) return;
      shell.run(command);
      assert.ok(await readSigningKeys(join(shell.cwd, "signing.key")));
    },
    "kubectl create secret generic svc-gate-signing --from-file=signing-key=signing.key": makesSecret,
    [commandsOf(page).find((command) => command.startsWith("helm install ")) ?? ""]: (shell, command) => {
      const values = parse(read("deploy/helm/svc-gate/values.yaml"));
      const made = commandsOf(page).map(secretOf);
      for (const [, path = "", value] of command.matchAll(/ --set ([^=]+)=(\S+)/g)) {
        const found: unknown = path.split(".").reduce((at, name) => at?.[name], values);
        assert.equal(typeof found, "string", `the chart has no value ${path}`);
        if (path.endsWith(".existingSecret"))
          assert.ok(
            made.some(({ name }) => name === value),
            path,
          );
      }
      if (!hasProgram("helm")) return;
      shell.cwd = root;
      shell.run(command.replace("helm install", "helm template").replace(/ --values \S+/, ""));
    },
    "kubectl rollout restart": () => assert.match(read("deploy/kubernetes/postgres.yaml"), /^kind: Deployment$/m),
    "svc-gate backup DIR": (shell, command) => {
      const entry = "/opt/svc-gate/node_modules/.bin/svc-gate";
      shell.run(`${command.replace("svc-gate", entry).replace("DIR", "/srv/copy")} --data-dir /var/lib/svc-gate`);
      assert.ok(readdirSync(machine.in("srv/copy")).length > 0);
    },
    "npm run sbom": runBy("test/repository/sbom.test.ts", "sbom"),
    "npm run schemathesis": () => assert.ok(existsSync(join(root, scripts["schemathesis"].replace(/^node /, "")))),
  };
}

const noShell = process.platform === "win32" ? "its commands are for a POSIX shell" : false;

suite("the commands of docs/guides/deploy.md", { tags: ["first-use-9"] }, () => {
  test("every command of docs/guides/deploy.md works, one after another", { skip: noShell }, async (t) => {
    const machine = await newMachine(t);
    const steps = stepsOn(machine);
    assert.deepEqual(strangers(page, steps), []);
    const doctored = page.replace("npm run pack ", "npm run pick ");
    assert.deepEqual(strangers(doctored, steps), ["npm run pick", "npm run pack"], "positive control");
    for (const command of commandsOf(page)) await steps[command]?.(machine.shell, command);
    await machine.shell.stop();
  });

  control("positive control: without `--prefix .` npm installs into the folder above", { skip: noShell }, async (t) => {
    const { folder, shell } = await newMachine(t);
    writeStandIn(join(folder, "clone"));
    shell.run(`cd ${join(folder, "clone")} && npm pack --pack-destination ${join(folder, "srv")}`);
    const above = writeProject(shell.cwd);
    mkdirSync(join(above, "gate"));
    shell.cwd = join(above, "gate");
    const before = contentOf(above);
    const install = commandsOf(page).find((command) => command.startsWith("npm install --prefix . ")) ?? "";
    shell.run(install.replace("--prefix . ", ""));
    assert.notDeepEqual(contentOf(above), before);
    assert.ok(!existsSync(join(shell.cwd, "node_modules")));
  });
});
