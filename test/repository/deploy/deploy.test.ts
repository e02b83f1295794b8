/**
 * Goal: the files that start a gate (the image, compose.yaml, the chart, the unit) agree with the gate and with each
 * other. Method: no container engine and no cluster is needed. The files are compared with the settings, the files that
 * they name and each other's ports. If helm, kubernetes-validate or systemd-analyze are installed, they judge too. The
 * chart's two outputs are kept in deploy/kubernetes, for users without Helm: UPDATE_GOLDEN=1 rewrites them.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, globSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { parse, parseAllDocuments } from "yaml";
import { settings } from "../../../packages/gate/src/server/start/config.ts";
import { readSigningKeys } from "../../../packages/gate/src/ledger/signing/mod.ts";
import { control } from "../../support/controls/control.ts";
import { finish, root, temporaryFolder } from "../../support/gate.ts";

const read = (path: string): string => readFileSync(join(root, path), "utf8");
const chart = join(root, "deploy", "helm", "svc-gate");
const outcomes = {
  sqlite: [],
  postgres: valued(
    "database.existingSecret=svc-gate-database",
    "database.owner.existingSecret=svc-gate-owner",
    "apiKey.existingSecret=svc-gate-key",
    "signingKey.existingSecret=svc-gate-signing",
  ),
} as const;

function valued(...values: readonly string[]): readonly string[] {
  return values.flatMap((value) => ["--set", value]);
}

/** Returns the variables that a text sets or names but that are not settings. */
function unknownVariables(text: string): readonly string[] {
  const known = new Set(settings.map(({ variable }) => variable));
  return [...new Set(text.match(/\bSVC_[A-Z][A-Z_]*\b/g))].filter((name) => !known.has(name));
}

test("every SVC_ variable in a shipped file is a setting of the gate", () => {
  const files = globSync("{Dockerfile,compose.yaml,deploy/**/*.*,ops/**/*.*,docs/guides/deploy.md}", { cwd: root });
  assert.ok(files.length >= 15, files.join(" "));
  for (const file of files) assert.deepEqual(unknownVariables(read(file)), [], file);
  assert.deepEqual(unknownVariables("SVC_MODE=observe SVC_MODUS=1 SVC_CLUSTER_IP"), ["SVC_MODUS", "SVC_CLUSTER_IP"]);
});

/** Returns the lines that set a softer mode than a reload may have put in force. */
function softModes(text: string): readonly string[] {
  return text.match(/^.*\bSVC_MODE\b.*\b(?:observe|assist)\b.*$/gm) ?? [];
}

test(
  "no shipped file sets a mode, so a restart does not undo `reload --mode enforce`",
  { tags: ["first-use-4"] },
  () => {
    const files = globSync("{Dockerfile,compose.yaml,package.json,bin/*,deploy/**/*.*,ops/**/*.*}", { cwd: root });
    assert.ok(files.length >= 15, files.join(" "));
    for (const file of files) assert.deepEqual(softModes(read(file)), [], file);
    const { mode, settings: more } = parse(readFileSync(join(chart, "values.yaml"), "utf8"));
    assert.deepEqual([mode, more], ["", {}], "the chart's SVC_MODE comes from these");
    for (const { environment } of Object.values<ComposeService>(parse(read("compose.yaml")).services))
      assert.equal(environment?.["SVC_MODE"] ?? null, null, "only what the user sets is passed on");
    const wrong = [
      "ENV NODE_ENV=production SVC_MODE=observe",
      "      SVC_MODE: ${SVC_MODE:-observe}",
      '            - { name: SVC_MODE, value: "assist" }',
      "Environment=SVC_MODE=observe",
    ];
    assert.deepEqual(softModes(wrong.join("\n")), wrong, "positive control");
    assert.deepEqual(softModes("SVC_MODE=enforce\nSVC_MODE: # a new gate observes"), []);
  },
);

interface Compose {
  readonly services: Readonly<Record<string, ComposeService>>;
  readonly volumes: Readonly<Record<string, unknown>>;
  readonly configs: Readonly<Record<string, { readonly content: string }>>;
}

interface ComposeService {
  readonly image: string;
  readonly command?: readonly string[];
  readonly environment?: Readonly<Record<string, string | number | null>>;
  readonly volumes: readonly string[];
  readonly ports?: readonly string[];
  readonly read_only?: boolean;
  readonly cap_drop?: readonly string[];
  readonly security_opt?: readonly string[];
}

suite("compose.yaml", () => {
  const { services, volumes, configs }: Compose = parse(read("compose.yaml"));
  const { gate, migrate } = services;
  assert.ok(gate !== undefined && migrate !== undefined);
  const { version } = JSON.parse(read("packages/svc-gate/package.json"));

  test("each image has a version, each port is on loopback, and each mounted file exists", () => {
    assert.deepEqual(Object.keys(services), ["gate", "migrate", "postgres", "prometheus", "grafana"]);
    for (const [name, service] of Object.entries(services)) {
      assert.match(service.image, /:v?\d+\.\d+(?:\.\d+)?$/, name);
      for (const port of service.ports ?? []) assert.match(port, /^127\.0\.0\.1:(\d+):\1$/);
      for (const [source = "", target = "", mode] of service.volumes.map((each) => each.split(":"))) {
        assert.ok(target.startsWith("/"), target);
        if (!source.startsWith(".")) assert.ok(Object.hasOwn(volumes, source), source);
        else assert.ok(existsSync(join(root, source)) && mode === "ro", source);
      }
    }
  });

  test("the gate has no privileges, and its port, database and metrics match the other services", () => {
    for (const { image, read_only: isReadOnly, cap_drop: dropped, security_opt: security } of [gate, migrate]) {
      assert.equal(image, `svc-gate:${version}`);
      assert.deepEqual([isReadOnly, dropped, security], [true, ["ALL"], ["no-new-privileges:true"]]);
    }
    const port = settings.find(({ variable }) => variable === "SVC_PORT")?.fallback;
    assert.deepEqual(gate.ports, [`127.0.0.1:${port}:${port}`]);
    assert.match(String(gate.environment?.["SVC_DATABASE_URL"]), /@postgres:5432\/svc_gate$/);
    const [target] = parse(read("ops/prometheus/prometheus.yml")).scrape_configs[0].static_configs[0].targets;
    assert.equal(target, `gate:${gate.environment?.["SVC_OPS_PORT"]}`);
    const [source] = parse(read("ops/grafana/provisioning/datasources/prometheus.yaml")).datasources;
    assert.match(services["prometheus"]?.ports?.[0] ?? "", new RegExp(`:${new URL(source.url).port}$`));
    assert.equal(new URL(source.url).hostname, "prometheus");
    const [provider] = parse(read("ops/grafana/provisioning/dashboards/svc-gate.yaml")).providers;
    assert.ok(services["grafana"]?.volumes.some((each) => each.includes(`:${provider.options.path}/`)));
  });

  test("the gate connects to PostgreSQL with a role of its own, not as the owner", () => {
    const url = ({ environment }: ComposeService): URL =>
      new URL(String(environment?.["SVC_DATABASE_URL"]).replace(/\$\{[^}]*\}/, "password"));
    const serving = url(gate).username;
    assert.notEqual(url(migrate).username, serving);
    assert.equal(url(migrate).username, services["postgres"]?.environment?.["POSTGRES_USER"]);
    assert.deepEqual(migrate.command?.slice(3, 5), ["--role", serving]);
    assert.match(configs["roles"]?.content ?? "", new RegExp(`^CREATE ROLE ${serving} LOGIN `));
  });
});

const helm = process.env["HELM"] ?? "helm";

/** Renders the chart with values; undefined without Helm. */
function render(...values: readonly string[]): { readonly status: number | null; readonly text: string } | undefined {
  const args = ["template", "svc-gate", chart, "--kube-version", "1.33.0", ...values];
  const { status, stdout, stderr, error } = spawnSync(helm, args, { encoding: "utf8" });
  return error === undefined ? { status, text: status === 0 ? stdout : stderr } : undefined;
}

/** Returns Kubernetes objects by kind; the first one if a kind appears twice. */
function byKind(text: string): Readonly<Record<string, any>> {
  const documents = parseAllDocuments(text).map((document) => {
    assert.deepEqual(document.errors, []);
    return document.toJS();
  });
  return Object.fromEntries(documents.toReversed().map((each) => [each.kind, each]));
}

/** Returns the rights that a pod has and should not have, one sentence each. */
function rightsFaults(pod: any): readonly string[] {
  const own = pod.spec.containers[0].securityContext;
  return sentencesOf([
    [pod.spec.securityContext.runAsNonRoot === true, "may be root"],
    [pod.spec.securityContext.seccompProfile?.type === "RuntimeDefault", "has all system calls"],
    [pod.spec.automountServiceAccountToken === false, "has a token of the cluster"],
    [pod.spec.enableServiceLinks === false, "is given variables that start with SVC_"],
    [own.readOnlyRootFilesystem === true, "may write to its image"],
    [own.allowPrivilegeEscalation === false, "may gain rights"],
    [own.capabilities?.drop?.includes("ALL") === true, "has capabilities"],
    [pod.spec.containers[0].resources.limits.memory !== undefined, "has no bound on memory"],
  ]);
}

function sentencesOf(checks: readonly (readonly [isSo: boolean, sentence: string])[]): readonly string[] {
  return checks.filter(([isSo]) => !isSo).map(([, sentence]) => sentence);
}

/** Returns the faults of a gate's pod. */
function podFaults(pod: any): readonly string[] {
  const [container] = pod.spec.containers;
  const { env, ports, volumeMounts } = container;
  const value = (name: string): unknown => env.find((each: any) => each.name === name)?.value;
  const port = (name: string): unknown => ports.find((each: any) => each.name === name)?.containerPort;
  const faults = sentencesOf([
    [String(port("http")) === value("SVC_PORT"), "listens elsewhere"],
    [String(port("ops")) === value("SVC_OPS_PORT"), "is watched elsewhere"],
    [container.livenessProbe.httpGet.path === "/health", "is not asked whether it lives"],
    [container.readinessProbe.httpGet.path === "/ready", "is not asked whether it is ready"],
    [volumeMounts.some(({ mountPath }: any) => mountPath === value("SVC_DATA_DIR")), "has no place for data"],
    [pod.spec.topologySpreadConstraints.length > 0, "may stand on one node with all others"],
  ]);
  return [...rightsFaults(pod), ...faults];
}

suite("the Kubernetes manifests", () => {
  for (const [name, values] of Object.entries(outcomes)) {
    const file = join("deploy", "kubernetes", `${name}.yaml`);
    test(`${file} is the output of the Helm chart`, (t) => {
      const rendered = render(...values);
      if (rendered === undefined) return t.skip("helm is not installed");
      assert.equal(rendered.status, 0, rendered.text);
      if (process.env["UPDATE_GOLDEN"] === "1") writeFileSync(join(root, file), rendered.text);
      assert.equal(read(file), rendered.text);
      return undefined;
    });
  }

  test("each pod has no extra rights, is probed at its ports and mounts existing volumes", () => {
    for (const [name, kind] of [
      ["sqlite", "StatefulSet"],
      ["postgres", "Deployment"],
    ] as const) {
      const objects = byKind(read(`deploy/kubernetes/${name}.yaml`));
      const { spec } = objects[kind];
      assert.deepEqual(podFaults(spec.template), [], name);
      if (objects["Job"] !== undefined) assert.deepEqual(rightsFaults(objects["Job"].spec.template), []);
      const claimed: string[] = (spec.volumeClaimTemplates ?? []).map((each: any) => each.metadata.name);
      const volumes: string[] = [...spec.template.spec.volumes.map((each: any) => each.name), ...claimed];
      const mounted: string[] = spec.template.spec.containers[0].volumeMounts.map((each: any) => each.name);
      assert.deepEqual(mounted.toSorted(), volumes.toSorted());
      const labels = Object.entries(spec.template.metadata.labels);
      for (const selector of [
        spec.selector.matchLabels,
        objects["Service"].spec.selector,
        objects["NetworkPolicy"].spec.podSelector.matchLabels,
      ])
        for (const pair of Object.entries(selector))
          assert.ok(
            labels.some((label) => String(label) === String(pair)),
            String(pair),
          );
      assert.equal(objects["PodDisruptionBudget"] !== undefined, name === "postgres");
      assert.deepEqual(objects["NetworkPolicy"].spec.policyTypes, ["Ingress", "Egress"]);
    }
  });

  control("positive control: a pod with extra rights or a wrong port is noticed", () => {
    const pod = byKind(read("deploy/kubernetes/postgres.yaml"))["Deployment"].spec.template;
    pod.spec.securityContext.runAsNonRoot = false;
    pod.spec.containers[0].securityContext.capabilities = {};
    pod.spec.containers[0].ports[1].containerPort = 1;
    assert.deepEqual(podFaults(pod), ["may be root", "has capabilities", "is watched elsewhere"]);
  });

  test("the contracts of postgres.yaml compile, and the database URL and keys come from Secrets", async (t) => {
    const secrets = ["SVC_DATABASE_URL", "SVC_API_KEY", "SVC_SIGNING_KEY"];
    const { ConfigMap, Deployment } = byKind(read("deploy/kubernetes/postgres.yaml"));
    const folder = join(temporaryFolder(t), "contracts");
    mkdirSync(folder);
    for (const [name, text] of Object.entries<string>(ConfigMap.data)) writeFileSync(join(folder, name), text);
    const { code, stdout, stderr } = await finish(t, ["check", join(folder, "mandate.yaml")]);
    assert.equal(code, 0, stdout + stderr);
    for (const { name, valueFrom } of Deployment.spec.template.spec.containers[0].env)
      assert.equal(valueFrom?.secretKeyRef !== undefined, secrets.includes(name), name);
  });

  test("the chart has the package's version, renders every value and requires both keys for replicas", (t) => {
    const { version } = JSON.parse(read("packages/svc-gate/package.json"));
    const { version: own, appVersion } = parse(readFileSync(join(chart, "Chart.yaml"), "utf8"));
    assert.deepEqual([own, appVersion], [version, version]);
    const all = [
      "tls.existingSecret=tls",
      "contracts.configMap=mine",
      "contracts.tenants=true",
      "settings.SVC_BASE_PATH=/gate",
    ];
    const more = ["serviceMonitor.enabled=true", "networkPolicy.egress[0].ports[0].port=4318", "nodeSelector.disk=ssd"];
    const rendered = render(...outcomes.postgres, ...valued(...all, ...more));
    if (rendered === undefined) return t.skip("helm is not installed");
    assert.equal(rendered.status, 0, rendered.text);
    const { Deployment, ServiceMonitor, ConfigMap } = byKind(rendered.text);
    assert.deepEqual(podFaults(Deployment.spec.template), []);
    assert.deepEqual([ServiceMonitor.spec.endpoints[0].port, ConfigMap], ["ops", undefined]);
    assert.equal(spawnSync(helm, ["lint", "--strict", chart]).status, 0);
    const shared = ["database.existingSecret=d"];
    assert.match(render(...valued(...shared))?.text ?? "", /apiKey\.existingSecret: /);
    shared.push("apiKey.existingSecret=k");
    assert.match(render(...valued(...shared))?.text ?? "", /signingKey\.existingSecret: /);
    shared.push("signingKey.existingSecret=s");
    assert.equal(render(...valued(...shared))?.status, 0);
    return undefined;
  });

  test("the schemas of Kubernetes accept the manifests", (t) => {
    const program = process.env["KUBERNETES_VALIDATE"] ?? "kubernetes-validate";
    const files = Object.keys(outcomes).map((name) => join(root, "deploy", "kubernetes", `${name}.yaml`));
    const judged = spawnSync(program, ["--strict", "-k", "1.33", ...files], { encoding: "utf8" });
    if (judged.error !== undefined) return t.skip("kubernetes-validate is not installed");
    assert.equal(judged.status, 0, judged.stdout + judged.stderr);
    const doctored = join(temporaryFolder(t), "doctored.yaml");
    writeFileSync(doctored, read("deploy/kubernetes/postgres.yaml").replace("readOnlyRootFilesystem", "readOnlyRoot"));
    assert.notEqual(spawnSync(program, ["--strict", "-k", "1.33", doctored]).status, 0);
    return undefined;
  });
});

test("the gate accepts the signing key that the documented openssl command makes, as file or variable", async (t) => {
  if (spawnSync("openssl", ["version"]).error !== undefined) return t.skip("openssl is not installed");
  for (const page of ["docs/guides/deploy.md", "docs/guides/postgresql.md"]) {
    const [command = ""] = /^\(umask 077; openssl .*?\)/m.exec(read(page)) ?? [];
    const folder = temporaryFolder(t);
    const made = spawnSync("sh", ["-c", command], { cwd: folder, encoding: "utf8" });
    assert.equal(made.status, 0, command + made.stderr);
    const file = join(folder, "signing.key");
    for (const source of [file, readFileSync(file, "utf8")]) assert.ok(await readSigningKeys(source), page);
    chmodSync(file, 0o640);
    await assert.rejects(readSigningKeys(file), /\bmode 640\b/, "positive control: what a volume would be");
  }
  return undefined;
});

suite("the systemd unit", () => {
  const file = "deploy/systemd/svc-gate.service";
  const unit = read(file);

  test("the unit reloads by SIGHUP, restarts after a fault and runs the program of the package", () => {
    for (const line of [
      "ExecReload=/bin/kill -HUP $MAINPID",
      "Restart=on-failure",
      "DynamicUser=yes",
      "ProtectSystem=strict",
    ])
      assert.ok(unit.includes(`\n${line}\n`), line);
    const [, command = ""] = /^ExecStart=(.*)$/m.exec(unit) ?? [];
    assert.match(command, / \/opt\/svc-gate\/node_modules\/svc-gate\/bin\/svc-gate\.mjs serve$/);
    assert.ok(existsSync(join(root, "packages", "svc-gate", "bin", "svc-gate.mjs")));
  });

  test("systemd-analyze finds no error in the unit and a low exposure", (t) => {
    if (spawnSync("systemd-analyze", ["--version"]).error !== undefined) return t.skip("systemd is not installed");
    const copy = join(temporaryFolder(t), "svc-gate.service");
    const verify = (text: string): string => {
      writeFileSync(copy, text);
      return spawnSync("systemd-analyze", ["verify", "--man=no", copy], { encoding: "utf8" }).stderr;
    };
    const installed = unit.replace("/opt/svc-gate/node_modules/.bin/node", process.execPath);
    assert.equal(verify(installed), "");
    assert.match(verify(installed.replace("ProtectProc=", "ProtectProcs=")), /ProtectProcs/);
    const exposed = ["security", "--offline=yes", "--no-pager", "--threshold=20", join(root, file)];
    const judged = spawnSync("systemd-analyze", exposed, { encoding: "utf8" });
    assert.equal(judged.status, 0, judged.stdout.slice(-200));
    return undefined;
  });
});
