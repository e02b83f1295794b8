/**
 * Goal: the contracts files, git and email close the same paths for secrets. All take the names of the
 * ready pack `places`. Method: each path of one list goes through every tool that reads, writes, moves,
 * commits or attaches a file. Control: sample files and ordinary names pass.
 */
import assert from "node:assert/strict";
import { before, suite, test } from "node:test";
import { loadFunctions, type PolicySet } from "../../../packages/readers/src/contract.ts";
import { compile, judge, readReady } from "../../support/contract-kit.ts";

const secrets = `
  .env .env.local .ENV.Prod .envrc prod.env deploy/db.env .dev.vars .dev.vars.staging .env/prod .envs/.local/.db .env.d/x
  .netrc _netrc .npmrc .pypirc .pgpass pgpass.conf .my.cnf .mylogin.cnf .git-credentials .htpasswd .dockercfg .vault-token
  .s3cfg .boto .databrickscfg .sentryclirc .msmtprc .fetchmailrc .ftpconfig .terraformrc terraform.rc .rclone.conf
  rclone.conf .vault_pass .vault_pass.txt .vault-pass .ansible_vault_pass kubeconfig kubeconfig.yml kubeconfig.yaml
  kubeconfig.json prod.kubeconfig id_rsa id_dsa id_ecdsa id_ed25519 ssh_host_rsa_key
  application_default_credentials.json client_secret.json client_secret_1.json service-account.json
  service-account-prod.json service_account.json app-firebase-adminsdk-x.json a.pem a.key a.p12 a.pfx a.pkcs12 a.p8 a.pk8
  a.ppk a.jks a.keystore a.keytab a.agekey a.kdb a.kdbx a.ovpn terraform.tfstate terraform.tfstate.backup .bash_history
  .zsh_history .psql_history .mysql_history .python_history .node_repl_history .irb_history .ssh .ssh/config .aws/config
  .azure/x .oci/config .aliyun/config.json .kube/config .docker/config.json .gnupg/x .password-store/x.gpg .gem/credentials
  .chef/x .subversion/auth/x .terraform/terraform.tfstate .config/gcloud/x .config/gh/hosts.yml .config/op/config .config/rclone/x
  .config/sops/age/x .config/doctl/config.yaml .cargo/credentials .cargo/credentials.toml .m2/settings.xml
  .m2/settings-security.xml .gradle/gradle.properties .bundle/config .composer/auth.json .streamlit/secrets.toml
  .huggingface/token .vscode/sftp.json`
  .trim()
  .split(/\s+/);

const ordinary = `
  .env.example .env.sample .env.template .env.dist .dev.vars.example example.env deploy/sample.env src/environment.ts
  src/kubeconfig.go src/keys.ts src/x.key.ts src/history.ts .terraform.lock.hcl src/.config/app.json docs/ssh/index.md
  src/client_secret.ts src/service-account.ts src/settings.ts credentials.md`
  .trim()
  .split(/\s+/);

/** Ways to access a file: the contract, the tool, its input for a path, and the verdict on an ordinary file. */
const ways = [
  ["files", "read_text_file", (path: string) => ({ path: `/srv/app/${path}` }), "ALLOW"],
  ["files", "write_file", (path: string) => ({ path: `/srv/app/${path}`, content: "x" }), "ALLOW"],
  ["files", "search_files", (path: string) => ({ path: `/srv/app/${path}`, pattern: "x" }), "ALLOW"],
  ["files", "move_file", (path: string) => ({ source: `/srv/app/${path}`, destination: "/srv/app/x" }), "ESCALATE"],
  ["files", "move_file", (path: string) => ({ source: "/srv/app/x", destination: `/srv/app/${path}` }), "ESCALATE"],
  ["git", "git_add", (path: string) => ({ repo_path: "/srv/app", files: [path] }), "ALLOW"],
  ["git", "git_add", (path: string) => ({ repo_path: "/srv/app", files: [`a/B/${path}`] }), "ALLOW"],
  ["email", "send_email", (path: string) => mailWith(path), "ALLOW"],
  ["email", "send_email", (path: string) => mailWith(`/home/ann/${path}`), "ALLOW"],
] as const;

function mailWith(path: string): object {
  return { to: ["ann@example.com"], subject: "s", body: "b", attachments: [path] };
}

const rules: ReadonlySet<string> = new Set([
  "files.secrets-stay-closed",
  "files.moves-leave-them-closed",
  "git.no-secrets-in-history",
  "email.no-secrets-attached",
]);

suite("paths of secrets", () => {
  const contracts = new Map<string, PolicySet>();

  before(async () => {
    for (const name of ["files", "git", "email"]) {
      const compiled = compile(readReady(name));
      await loadFunctions(compiled);
      contracts.set(name, compiled);
    }
  });

  const decide = (name: string, tool: string, input: object): ReturnType<typeof judge> => {
    const contract = contracts.get(name);
    assert.ok(contract !== undefined, name);
    return judge(contract, { tool, input, session: "s" });
  };

  for (const [name, tool, inputFor, verdict] of ways) {
    const shown = JSON.stringify(inputFor("PATH"));
    test(`a final rule blocks ${tool} on every secret: ${shown}`, () => {
      const open = secrets.filter((path) => {
        const { verdict: came, final, fired } = decide(name, tool, inputFor(path));
        return came !== "BLOCK" || !final || !fired.some((rule) => rules.has(rule));
      });
      assert.deepEqual(open, []);
    });

    test(`the verdict for ${tool} on an ordinary file is ${verdict}: ${shown}`, () => {
      const odd = ordinary.filter((path) => decide(name, tool, inputFor(path)).verdict !== verdict);
      assert.deepEqual(odd, []);
    });
  }
});
