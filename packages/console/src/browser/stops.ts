import { useEffect } from "preact/hooks";
import type { StopsJson } from "../../../core/src/approvals/mod.ts";
import { missed } from "./live.ts";
import { useAnswer, useFollowed, type AnswerState } from "./parts.ts";

/** Keys that may not read the events of stops learn of them with this delay, and tenants of a stop of the root. */
const everyMs = 15_000;

/** The stops that are in force, as they are now. */
export function useStops(): AnswerState<StopsJson> {
  const stops = useAnswer<StopsJson>("/stop");
  const { again } = stops;
  useFollowed(["stop.", missed], again);
  useEffect(() => {
    const timer = setInterval(() => again(true), everyMs);
    return () => clearInterval(timer);
  }, [again]);
  return stops;
}
