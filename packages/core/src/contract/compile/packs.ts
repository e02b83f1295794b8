import type { CommandTable, PackDocument } from "../commands/form.ts";
import { packName } from "../commands/pack-name.ts";
import { linkCommands, readCommands, readPack } from "../commands/table.ts";
import type { Report, SourceFile } from "../text/diagnostic.ts";
import type { ContractDocument } from "../text/document.ts";
import type { YamlNode, YamlScalar } from "../text/yaml.ts";
import type { OpenFile } from "./files.ts";

/** A contract with the limits of its packs, and its table of commands; undefined if it has none. */
export interface JoinedContract {
  readonly document: ContractDocument;
  readonly table: CommandTable | undefined;
}

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

  /** The contract with what its packs give it. */
  join(document: ContractDocument): JoinedContract {
    const { file, name, commands: node } = document;
    const commands = node && readCommands(node, name, this.#report);
    if (commands === undefined) return { document, table: undefined };
    const packs = commands.from.flatMap((scalar) => this.#read(packName(file.name, scalar.text), scalar) ?? []);
    const limits = new Map<string, YamlNode>();
    for (const [limit, value] of [...packs, document].flatMap((each) => [...each.limits])) {
      if (limits.has(limit))
        this.#report.add("limit", value.span, `a pack has the limit \`${limit}\` already`, "choose another name");
      limits.set(limit, value);
    }
    return { document: { ...document, limits }, table: linkCommands(commands, packs, this.#report) };
  }

  #read(name: string, { span, text }: YamlScalar): PackDocument | undefined {
    if (this.#documents.has(name)) return this.#documents.get(name);
    const opened = this.#open(name);
    if (!opened.ok)
      this.#report.add(
        "no-file",
        span,
        `\`${text}\` cannot be read: ${opened.problem}`,
        "write the name of a ready pack, such as `git`, or a path relative to the contract",
      );
    else this.#files.push({ ...opened.value, name });
    const document = opened.ok ? readPack({ ...opened.value, name }, this.#report) : undefined;
    this.#documents.set(name, document);
    return document;
  }
}
