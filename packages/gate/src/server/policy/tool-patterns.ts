/**
 * Returns a function that checks if a tool's name matches one of the patterns. A `*` matches any characters, any other
 * character matches itself. Each pattern is walked once from left to right, so no pattern is slow.
 */
export function toolMatcher(patterns: readonly string[] | null): (name: string) => boolean {
  if (patterns === null) return () => true;
  const exact = new Set(patterns.filter((pattern) => !pattern.includes("*")));
  const open = patterns.filter((pattern) => pattern.includes("*")).map((pattern) => pattern.split("*"));
  return (name) => exact.has(name) || open.some((pieces) => fits(name, pieces));
}

function fits(name: string, pieces: readonly string[]): boolean {
  const first = pieces[0] ?? "";
  const last = pieces.at(-1) ?? "";
  const end = name.length - last.length;
  if (end < first.length || !name.startsWith(first) || !name.endsWith(last)) return false;
  let at = first.length;
  for (const piece of pieces.slice(1, -1)) {
    const found = name.indexOf(piece, at);
    if (found === -1 || found + piece.length > end) return false;
    at = found + piece.length;
  }
  return true;
}
