/**
 * Goal: every rule of the specification has an id, every id is cited by a test, and every cited id exists. Method: the
 * ids are compared with the specification's own text (if it is next to the repository), and with the tags of tests and
 * the `cites` arrays of the vectors. Each check must report a doctored list.
 */
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, sep } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { control } from "../support/controls/control.ts";

type Requirement = { readonly id: string; readonly section: string; readonly text: string };
type NotShown = { readonly section: string; readonly what: string; readonly recordedIn: string };
type Requirements = { readonly requirements: readonly Requirement[]; readonly notShown: readonly NotShown[] };
type SourceText = { readonly path: string; readonly text: string };

const root = fileURLToPath(new URL("../..", import.meta.url));
const specificationFile = join(root, "..", "shared", "spec", "action-gate-spec.md");
const list: Requirements = JSON.parse(readFileSync(join(root, "spec", "requirements.json"), "utf8"));

const prefixes =
  "service check verdict platform receipt contract mode health rules receipts verify payments client auth error limit version";
const idPattern = new RegExp(`^(?:${prefixes.replaceAll(" ", "|")})\\.[a-z0-9]+(?:-[a-z0-9]+)*$`);

/**
 * Returns the sections of the specification that need an id, in its order: `X.Y.N` for a numbered rule, `X.Y:cell` for
 * a table's row (`4:POST /check` if a row starts with a method), `X.Y` for prose. The text before section 1 is section
 * 0.
 */
function sectionsIn(markdown: string): string[] {
  const sections = new Set<string>();
  let section = "0";
  let cells: readonly string[] = [];
  for (const line of markdown.split("\n")) {
    const heading = /^#+ (?:(\d+(?:\.\d+)*)\.? )?/.exec(line);
    const rule = /^(\d+)\. /.exec(line);
    const row = /^\|(.*)\|\s*$/
      .exec(line)?.[1]
      ?.split("|")
      .map((cell) => cell.trim());
    const isFirstRow = cells.length === 0;
    cells = row ?? [];
    if (heading) section = heading[1] ?? section;
    else if (rule) sections.add(`${section}.${rule[1]}`);
    else if (row) {
      const isRule = row.every((cell) => /^:?-+:?$/.test(cell));
      if (!isFirstRow && !isRule) sections.add(`${section}:${rowName(row)}`);
    } else if (/\S/.test(line) && !/^[\w ]+:\s*$/.test(line)) sections.add(section);
  }
  return [...sections];
}

function rowName([first = "", second = ""]: readonly string[]): string {
  return /^(?:GET|POST|PUT|PATCH|DELETE)$/.test(first) ? `${first} ${second}` : first;
}

function sectionsWithoutId(sections: readonly string[], { requirements, notShown }: Requirements): string[] {
  const covered = new Set([...requirements, ...notShown].map(({ section }) => section));
  return sections.filter((section) => !covered.has(section));
}

function idsWithoutSection(sections: readonly string[], { requirements, notShown }: Requirements): string[] {
  const known = new Set(sections);
  const named = [...requirements, ...notShown.map(({ section, what }) => ({ id: what, section }))];
  return named.filter(({ section }) => !known.has(section)).map(({ id, section }) => `${id} names ${section}`);
}

function malformed({ requirements }: Requirements): string[] {
  const seen = new Set<string>();
  const faults: string[] = [];
  for (const { id, section, text } of requirements) {
    if (!idPattern.test(id)) faults.push(`${id} is not a lower-case kebab id under a known prefix`);
    if (seen.has(id)) faults.push(`${id} appears twice`);
    if (section === "" || text === "") faults.push(`${id} has no section or no text`);
    seen.add(id);
  }
  return faults;
}

/**
 * Returns the ids in the tags of tests that run: a `test.skip` or `test.todo` cites nothing. A title may precede the
 * tags.
 */
function citedInTags(text: string): string[] {
  const title = /(?:"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\.)*`|[\w.]+)/.source;
  const options = new RegExp(String.raw`\b(?:test|it|describe|suite)\(\s*${title},\s*\{\s*tags: \[([^\]]*)\]`, "g");
  return [...text.matchAll(options)].flatMap(([, tags = ""]) =>
    [...tags.matchAll(/"([a-z]+\.[a-z0-9.-]+)"/g)].map(([, id = ""]) => id),
  );
}

/** Returns the ids in `cites` arrays, at any depth of a file of vectors. */
function citedInVectors(value: unknown): string[] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([name, member]) =>
    name === "cites" && Array.isArray(member) ? member.map(String) : citedInVectors(member),
  );
}

function citations(files: readonly SourceText[]): Map<string, string> {
  const cited = new Map<string, string>();
  for (const { path, text } of files) {
    const ids = path.endsWith(".json") ? citedInVectors(JSON.parse(text)) : citedInTags(text);
    for (const id of ids) cited.set(id, path);
  }
  return cited;
}

function uncited({ requirements }: Requirements, cited: ReadonlyMap<string, string>): string[] {
  return requirements.map(({ id }) => id).filter((id) => !cited.has(id));
}

function unknownCitations({ requirements }: Requirements, cited: ReadonlyMap<string, string>): string[] {
  const known = new Set(requirements.map(({ id }) => id));
  return [...cited].filter(([id]) => !known.has(id)).map(([id, path]) => `${path} cites ${id}`);
}

/** This file is left out, because it has tags with planted mistakes. */
function testsAndVectors(): SourceText[] {
  const paths = ["test", "spec/vectors"].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: "utf8" }).map(
      (path) => `${folder}/${path.replaceAll(sep, "/")}`,
    ),
  );
  return paths
    .filter(
      (path) =>
        /^test\/.*\.test\.ts$|^spec\/vectors\/.*\.json$/.test(path) && path !== "test/repository/requirements.test.ts",
    )
    .map((path) => ({ path, text: readFileSync(join(root, path), "utf8") }));
}

test("every rule, row and paragraph of the specification has an id, and every id names one", (t) => {
  if (!existsSync(specificationFile)) {
    t.skip("the specification does not lie beside this repository (../shared/spec/action-gate-spec.md)");
    return;
  }
  const sections = sectionsIn(readFileSync(specificationFile, "utf8"));
  assert.ok(sections.length > 80, `only ${sections.length} places were found: the extraction no longer fits the text`);
  assert.deepEqual(sectionsWithoutId(sections, list), [], "places of the specification without an id");
  assert.deepEqual(idsWithoutSection(sections, list), [], "ids whose section the specification does not have");
});

test("every id is unique and well formed, and has a section and a text", () => {
  assert.deepEqual(malformed(list), []);
});

test("every id is cited by a tag of a test or by a vector", () => {
  const missing = uncited(list, citations(testsAndVectors()));
  assert.deepEqual(missing, [], `${missing.length} of ${list.requirements.length} ids are cited by no test`);
});

test("no test cites an id that does not exist", () => {
  assert.deepEqual(unknownCitations(list, citations(testsAndVectors())), []);
});

test("every item of `notShown` is recorded in a file that exists", () => {
  const lost = list.notShown.filter(({ recordedIn }) => !existsSync(join(root, recordedIn)));
  assert.deepEqual(lost, []);
});

const doctoredMarkdown = `# Title
An opening sentence.
## 1. What
1. A rule.
2. Another rule.
### 1.1 Fields
| Field | Type |
|---|---|
| colour | string |
Rules:
1. A rule of the fields.
## 2. Routes
| Method | Path |
|---|---|
| GET | /colour |
`;

function requirement(id: string, section: string): Requirement {
  return { id, section, text: "text" };
}

const doctoredList: Requirements = {
  requirements: [
    requirement("service.opening", "0"),
    requirement("service.one", "1.1"),
    requirement("service.two", "1.2"),
    requirement("check.colour", "1.1:colour"),
    requirement("check.rule", "1.1.1"),
    requirement("check.route", "2:GET /colour"),
  ],
  notShown: [],
};

function without(id: string): Requirements {
  return { ...doctoredList, requirements: doctoredList.requirements.filter((each) => each.id !== id) };
}

control("positive control: the extraction finds rules, rows and prose", () => {
  assert.deepEqual(sectionsIn(doctoredMarkdown), ["0", "1.1", "1.2", "1.1:colour", "1.1.1", "2:GET /colour"]);
});

control("positive control: a rule, a row or a paragraph that lost its id is reported", () => {
  const sections = sectionsIn(doctoredMarkdown);
  assert.deepEqual(sectionsWithoutId(sections, doctoredList), []);
  assert.deepEqual(sectionsWithoutId(sections, without("service.two")), ["1.2"]);
  assert.deepEqual(sectionsWithoutId(sections, without("check.colour")), ["1.1:colour"]);
  assert.deepEqual(sectionsWithoutId(sections, without("service.opening")), ["0"]);
});

control("positive control: an id whose section is gone is reported", () => {
  const sections = sectionsIn(doctoredMarkdown.replace("2. Another rule.\n", ""));
  assert.deepEqual(idsWithoutSection(sections, doctoredList), ["service.two names 1.2"]);
});

control("positive control: an id that appears twice, is misspelt or has an unknown prefix is reported", () => {
  const ids = ["check.colour", "check.colour", "check.Colour", "colour.check", "check", "check.colour-"];
  const faults = malformed({ requirements: ids.map((id) => requirement(id, "1")), notShown: [] });
  assert.equal(faults.length, 5, faults.join("\n"));
});

control("positive control: an id without a citation and a citation of an unknown id are reported", () => {
  const notRun = ["skip", "todo"][0];
  const text = `
    test("opens", { tags: ["service.opening"] }, () => {});
    it(
      "counts", { tags: ["service.one", "attack-7", "service.two"] }, () => {});
    describe(\`sees \${what}\`, { tags: ["check.colour", "check.made-up"] }, () => {});
    test.${notRun}("is not run", { tags: ["check.route"] }, () => {});
    const prose = 'tags: ["check.rule"]';`;
  const vectors = JSON.stringify({ cases: [{ cites: ["check.rule"], input: {} }] });
  const cited = citations([
    { path: "test/doctored.test.ts", text },
    { path: "spec/vectors/doctored.json", text: vectors },
  ]);
  assert.deepEqual(uncited(doctoredList, cited), ["check.route"]);
  assert.deepEqual(unknownCitations(doctoredList, cited), ["test/doctored.test.ts cites check.made-up"]);
});
