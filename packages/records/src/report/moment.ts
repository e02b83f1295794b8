/** A time in UTC, in whole seconds. */
export function momentText(at: number): string {
  return new Date(at).toISOString().replace(/\.[0-9]+Z$/, "Z");
}
