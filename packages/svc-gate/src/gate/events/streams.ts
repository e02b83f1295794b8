import { limits } from "../../wire/mod.ts";
import { Places } from "../admission/places.ts";

/** The open streams of a process. */
export function streamPlaces(): Places {
  return new Places({
    ofKeyMax: limits.streamsOfKeyMax,
    max: limits.streamsMax,
    refusal: (ofKey, all) => `${ofKey} streams of this key and ${all} in all are open: close one, or ask again soon`,
  });
}
