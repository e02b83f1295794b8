/** A line of CSV (RFC 4180): commas, quotes if they are needed, CR and LF at its end. */
export function csvLine(cells: readonly string[]): string {
  return `${cells.map((cell) => quoteCell(escapeFormula(cell))).join(",")}\r\n`;
}

/**
 * Spreadsheets run a cell that starts with one of these as a formula, and an agent chooses texts here. An apostrophe
 * before it makes it text. Full-width forms count, because some programs fold them.
 */
const formula = /^[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/;

function escapeFormula(cell: string): string {
  return formula.test(cell) ? `'${cell}` : cell;
}

function quoteCell(cell: string): string {
  return /[",\r\n]|^\s|\s$/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell;
}
