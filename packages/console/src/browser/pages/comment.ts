import { h, type JSX } from "preact";
import { Area } from "../fields.ts";
import type { Problem } from "../gate.ts";

interface CommentProps {
  readonly id: string;
  readonly value: string;
  readonly onText: (text: string) => void;
}

const bytesMax = 1000;
const label = "Comment (needed to deny). The agent reads it. It stays forever, so do not name a person.";

/** The comment of a decision. */
export function Comment({ id, value, onText }: CommentProps): JSX.Element {
  return h(Area, { id, label, rows: 2, value, onText, bytesMax });
}

/** People who deny several calls should know what follows (spec/approvals.md). */
export const denialsText =
  "After three denials under one rule within an hour, the gate blocks further calls of that key under the rule.";

export const noReason: Problem = { status: 0, code: "", detail: "Say why you deny it: the agent reads your words." };
