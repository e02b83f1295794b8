import type { Json } from "../../../../core/src/wire/mod.ts";

/** A tool as its source describes it. */
export interface SourceTool {
  readonly name: string;
  readonly description: string;
  /** JSON Schema of any dialect. */
  readonly input: Json;
  /** The document that references in `input` point into. */
  readonly root: Json;
  /** What a person should know about the tool, beside its schema. */
  readonly note?: string;
}
