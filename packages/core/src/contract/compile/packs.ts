import type { CommandTable, PackDocument } from "../commands/form.ts";
import { besideFile } from "../commands/pack-name.ts";
import { linkCommands, readCommands, readPack } from "../commands/table.ts";
import type { Report, SourceFile } from "../text/diagnostic.ts";
import type { ContractDocument } from "../text/document.ts";
import type { YamlScalar } from "../text/yaml.ts";
import type { OpenFile } from "./files.ts";

/** The packs that contracts name. Each is read once, and is a part of the text. */
export class Packs {
  readonly #open: OpenFile;
  readonly #files: SourceFile[];
  readonly #report: Report;
  readonly #documents = new Map<string, PackDocument | undefined>();

  constructor(open: OpenFile, files: SourceFile[], report: Report) {
    this.#open = open;
    this.#files = files;
    this.#report = report;
  }

  /** The table of commands of a contract; undefined if it has none. */
  tableOf({ file: { name }, name: contract, commands: node }: ContractDocument): CommandTable | undefined {
    const commands = node && readCommands(node, contract, this.#report);
    if (commands === undefined) return undefined;
    const packs = commands.from.flatMap((scalar) => this.#read(besideFile(name, scalar.text), scalar) ?? []);
    return linkCommands(commands, packs, this.#report);
  }

  #read(name: string, { span, text }: YamlScalar): PackDocument | undefined {
    if (this.#documents.has(name)) return this.#documents.get(name);
    const opened = this.#open(name);
    if (!opened.ok)
      this.#report.add(
        "no-file",
        span,
        `\`${text}\` cannot be read: ${opened.problem}`,
        "paths of packs are relative to the contract",
      );
    else this.#files.push({ ...opened.value, name });
    const document = opened.ok ? readPack({ ...opened.value, name }, this.#report) : undefined;
    this.#documents.set(name, document);
    return document;
  }
}
