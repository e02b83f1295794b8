import { stripVTControlCharacters } from "node:util";
import { locationText } from "../../../gate/src/cli/source-location.ts";
import { printFailure } from "./print.ts";
import type { FileResult } from "./round.ts";
import type { CaseResult } from "./run.ts";

/** A report in JUnit's XML, as CI systems read it: a suite for each file, and a failure with the text for a person. */
export function junitText(files: readonly FileResult[]): string {
  const all = files.flatMap(({ results }) => results);
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<testsuites${counts(all)}>`,
    ...files.flatMap(suiteLines),
    "</testsuites>",
    "",
  ].join("\n");
}

function suiteLines({ file, results }: FileResult): readonly string[] {
  const { name } = file.source;
  const attributes = `${attribute("name", file.title)}${attribute("file", name)}`;
  return [
    `  <testsuite${attributes}${counts(results)}>`,
    ...results.map((result) => caseText(result, name)),
    "  </testsuite>",
  ];
}

function counts(results: readonly CaseResult[]): string {
  const failed = results.filter(({ failure }) => failure !== undefined).length;
  const ms = results.reduce((sum, result) => sum + result.ms, 0);
  return `${attribute("tests", results.length)}${attribute("failures", failed)}${attribute("errors", 0)}${seconds(ms)}`;
}

function caseText({ case: testCase, failure, ms }: CaseResult, file: string): string {
  const open = `    <testcase${attribute("name", testCase.name)}${attribute("classname", file)}${seconds(ms)}`;
  if (failure === undefined) return `${open}/>`;
  const { mismatches, step } = failure;
  const sentence = mismatches
    .map(({ what, expected, came }) => `${what}: expected ${expected}, came ${came}`)
    .join("; ");
  const message = `${locationText(step.expect?.span ?? step.span)}: ${sentence}`;
  const details = stripVTControlCharacters(printFailure(failure, testCase.steps).join("\n"));
  return `${open}>\n      <failure${attribute("message", message)}>${xml(details)}</failure>\n    </testcase>`;
}

function seconds(ms: number): string {
  return attribute("time", (ms / 1000).toFixed(6));
}

function attribute(name: string, value: string | number): string {
  return ` ${name}="${xml(String(value))}"`;
}

/** XML 1.0 cannot represent most control characters: they are left out. */
function xml(text: string): string {
  return text
    .replace(/[^\t\n\r\u0020-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/gu, "")
    .replace(/[&<>"]/g, (character) => `&#${character.codePointAt(0) ?? 0};`);
}
