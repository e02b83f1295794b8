/** All cases: valid exports, and exports that are invalid in one way each. */
import { checkpoints, good } from "./checkpoints.ts";
import { evidenceCases } from "./evidence.ts";
import { folders } from "./folders.ts";
import type { ExportCase } from "./ground.ts";
import { leaves } from "./leaves.ts";
import { memberCases } from "./members.ts";
import { resultCases } from "./results.ts";
import { useCases } from "./uses.ts";

export const exportCases: readonly ExportCase[] = [
  ...good,
  ...checkpoints,
  ...leaves,
  ...folders,
  ...evidenceCases,
  ...memberCases,
  ...resultCases,
  ...useCases,
];
