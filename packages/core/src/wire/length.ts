const units = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["m", 60_000],
  ["s", 1000],
] as const;

/** A length as a contract writes it, such as `90m`, in the largest unit that has no fraction. */
export function lengthText(ms: number): string {
  const [unit, size] = units.find(([, each]) => ms % each === 0) ?? ["ms", 1];
  return `${ms / size}${unit}`;
}
