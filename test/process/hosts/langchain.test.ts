/**
 * Goal: a run of LangGraph parks only if no call runs twice after it, and the adapter takes no answer that is for a tool.
 * Method: a program with graphs prints what parked and what ran. Positive control: adapters that forget a rule print more.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { test, type TestContext } from "node:test";
import { installed } from "../../../adapters/conformance/hosts.ts";
import { langchain } from "../../../adapters/conformance/drivers/langchain.ts";
import { pythonIn } from "../../../adapters/conformance/drivers/library.ts";
import { program } from "../../../adapters/conformance/drivers/worker.ts";
import { root, temporaryFolder } from "../../support/gate.ts";
import { mutatedFile, type Mutation } from "../../support/mutation/mutate.ts";
import { mutatedPython } from "../../support/mutation/python.ts";

/** Four payments, of which 60 needs a person, who approves it before the run goes on. */
const expected = {
  sent: { parked: ["pay"], ran: [5, 6, 7, 60] },
  together: { parked: [], ran: [5, 6, 7] },
  question: { parked: ["ask", "sure?"], heard: "heard yes" },
  subAgent: { parked: ["pay"], ran: [5, 60] },
  subAgentBesideOthers: { parked: [], ran: [5] },
};

type Found = typeof expected;

interface Language {
  readonly host: string;
  readonly file: string;
  readonly run: (adapters: string) => readonly [command: string, words: readonly string[]];
  /** Each forgotten rule, and the part of the result that shows it. */
  readonly faults: readonly (readonly [part: keyof Found, mutation: Mutation])[];
}

const python = pythonIn("libraries/langchain", "langgraph").path;

const languages: readonly Language[] = [
  {
    host: "LangGraph.js",
    file: "langchain.mjs",
    run: (adapters) => [
      process.execPath,
      [program("langchain-parking.mjs"), installed("libraries/javascript"), adapters],
    ],
    faults: [
      ["together", { within: "isAlone", first: "return true;" }],
      ["question", { within: "takeAnswers", first: "return;" }],
      ["subAgentBesideOthers", { within: "within", first: "return config;" }],
    ],
  },
  {
    host: "LangGraph, Python",
    file: "svc_gate_langchain.py",
    run: () => [python, ["-B", program("langchain_parking.py")]],
    faults: [
      [
        "together",
        {
          within: "_is_alone",
          find: 'len(path) > 1 and path[0] == "__pregel_push" and isinstance(path[1], int)',
          put: "True",
        },
      ],
      ["question", { within: "_take_answers", find: "[*pad.resume, pad.get_null_resume(False)]", put: "[]" }],
      ["subAgentBesideOthers", { within: "_can_park", find: "not _shared.get()", put: "True" }],
    ],
  },
];

for (const language of languages) {
  test(`${language.host}: a call parks only if its task has no other call, and each call runs once`, (t) => {
    const missing = langchain.find(({ name }) => name === language.host)?.missing();
    if (missing !== undefined) return t.skip(missing);
    assert.deepEqual(found(language, join(root, "adapters")), expected);
    for (const [part, mutation] of language.faults)
      assert.notDeepEqual(found(language, mutated(t, language.file, mutation))[part], expected[part], part);
    return undefined;
  });
}

function found({ run }: Language, adapters: string): Found {
  const [command, words] = run(adapters);
  const env = { ...process.env, PYTHONPATH: [adapters, join(root, "clients", "python")].join(delimiter) };
  const { stdout, stderr } = spawnSync(command, words, { encoding: "utf8", timeout: 60_000, env });
  assert.notEqual(stdout, "", stderr);
  return JSON.parse(stdout);
}

/** Returns a folder with the adapters, one of them broken. */
function mutated(t: TestContext, file: string, mutation: Mutation): string {
  const folder = join(temporaryFolder(t), "adapters");
  cpSync(join(root, "adapters"), folder, { recursive: true, filter: (path) => !path.endsWith("conformance") });
  const source = join(root, "adapters", file);
  const text = file.endsWith(".py") ? mutatedPython(python, source, [mutation]) : mutatedFile(source, [mutation]);
  writeFileSync(join(folder, file), text);
  return folder;
}
