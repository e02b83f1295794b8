import { spellValue } from "../../../../readers/src/ir.ts";
import { readJson } from "../../../../core/src/wire/mod.ts";
import { compareCall, directionOf, objectText, type SampleCall, type CallComparison } from "./call.ts";
import type { PolicySet } from "../../../../readers/src/contract.ts";

/** The call without everything that the difference does not need: the rest shows the difference. */
export function shrink(before: PolicySet, after: PolicySet, found: CallComparison): CallComparison {
  const direction = directionOf(found);
  let best = found;
  for (let goesOn = true; goesOn;) {
    goesOn = false;
    for (const call of simpler(best.call)) {
      const compared = compareCall(before, after, call);
      if (compared === undefined || directionOf(compared) !== direction) continue;
      best = compared;
      goesOn = true;
      break;
    }
  }
  return best;
}

/** The same call with one part less. */
function* simpler(call: SampleCall): Generator<SampleCall> {
  if (call.platform !== null) yield { ...call, platform: null };
  if (call.hasSession) yield { ...call, hasSession: false };
  for (const [name, value] of call.counters)
    if (value !== "0") yield { ...call, counters: new Map([...call.counters, [name, "0"]]) };
  for (const input of withoutOne(call.input)) yield { ...call, input };
  if (call.platform !== null) for (const platform of withoutOne(call.platform)) yield { ...call, platform };
}

function* withoutOne(text: string): Generator<string> {
  const document = readJson(text);
  if (!document.ok) return;
  const { members } = document.value;
  const texts = [...members].map(([name, value]) => [name, spellValue(value)] as const);
  for (const gone of members.keys()) yield objectText(texts.filter(([name]) => name !== gone));
}
