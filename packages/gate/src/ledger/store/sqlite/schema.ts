import { tableSpecs, type TableName } from "../tables.ts";

/** Rows that share a part of the index of sessions, as a power of two. */
export const blockBits = 12;

/**
 * The index of sessions starts with a block of rows. Sessions have random ids, so a new row would else change a random
 * page of the whole index. With blocks it changes one of the last few pages.
 */
const indexes: Readonly<Partial<Record<TableName, readonly string[]>>> = {
  receipts: [
    `receipts_by_session ON receipts (seq >> ${blockBits}, session) WHERE session IS NOT NULL`,
    "receipts_by_tool ON receipts (tool, seq)",
    "receipts_refused ON receipts (verdict, seq) WHERE verdict <> 'ALLOW'",
  ],
  approvals: [
    "approvals_by_attach ON approvals (attach) WHERE ends IS NOT NULL",
    "approvals_by_key ON approvals (key, status, ends) WHERE ends IS NOT NULL",
    "approvals_by_end ON approvals (ends) WHERE ends IS NOT NULL",
  ],
  holds: ["holds_by_row ON holds (seq)"],
  repeats: ["repeats_by_time ON repeats (at)"],
};

const types = { digest: "BLOB", number: "INTEGER", text: "TEXT" } as const;

/** A line of at most this length is not broken. The text of a table is a part of the file, so it never changes. */
const lineMax = { whole: 140, broken: 132 };

/** The statements that make the tables and indexes of a new file. SQLite keeps their texts in the file. */
export const schema: readonly string[] = [
  "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;",
  ...(Object.keys(tableSpecs) as TableName[]).flatMap((table) => [
    tableText(table),
    ...(indexes[table] ?? []).map((index) => `CREATE INDEX ${index};`),
  ]),
  "CREATE TABLE deliveries (endpoint TEXT PRIMARY KEY, note TEXT NOT NULL) STRICT, WITHOUT ROWID;",
];

function tableText(table: TableName): string {
  const { columns, key } = tableSpecs[table];
  const [first] = key.length === 1 ? key : [];
  const parts = Object.entries(columns).map(([name, kind]) => {
    const type = types[kind.replace("?", "") as keyof typeof types];
    if (name === first) return `${name} ${type} PRIMARY KEY`;
    const unique = table === "counters" && name === "digest" ? " UNIQUE" : "";
    return `${name} ${type}${kind.endsWith("?") ? "" : " NOT NULL"}${unique}`;
  });
  if (first === undefined) parts.push(`PRIMARY KEY (${key.join(", ")})`);
  const isByRowId = first !== undefined && Object.values(columns)[0] === "number";
  const end = `) STRICT${isByRowId ? "" : ", WITHOUT ROWID"};`;
  const line = `CREATE TABLE ${table} (${parts.join(", ")}${end}`;
  return line.length <= lineMax.whole ? line : `CREATE TABLE ${table} (\n${breakLines(parts).join("\n")}\n${end}`;
}

function breakLines(parts: readonly string[]): readonly string[] {
  const lines: string[] = [];
  for (const [index, part] of parts.entries()) {
    const text = index === parts.length - 1 ? part : `${part},`;
    const line = `${lines.at(-1)} ${text}`;
    if (lines.length > 0 && line.length <= lineMax.broken) lines[lines.length - 1] = line;
    else lines.push(`  ${text}`);
  }
  return lines;
}
