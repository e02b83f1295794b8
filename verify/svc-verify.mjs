#!/usr/bin/env node
/**
 * Verifies, offline, an action gate's export: a folder, or one row's proof in a `.tlog-proof` file.
 *
 *     node svc-verify.mjs FOLDER --key VKEY          the whole ledger: every row, hash, signature and piece of evidence
 *     node svc-verify.mjs ROW.tlog-proof --key VKEY  one row, and that it is in the signed tree
 *
 * VKEY is the log's public key as you got it from its owner, not out of the folder. It may be repeated; so may
 * --witness VKEY, whose cosignatures are counted. --chain leaves out evidence and contracts. Only Node 18.14 is needed.
 * spec/export.md has the format and each code. Exit code 0: valid. 1: broken. 2: wrong arguments.
 */
import { isUtf8 } from "node:buffer";
import * as crypto from "node:crypto";
import { existsSync, readFileSync, realpathSync, statSync } from "node:fs";
import { join, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
/** Throws the first fault: a code of spec/export.md, the row (0: none), a sentence. */
function need(holds, code, row, text) {
  if (!holds) throw Object.assign(new Error(text), { problem: { code, row, text } });
}
const digest = crypto.hash ?? ((name, bytes, form) => crypto.createHash(name).update(bytes).digest(form));
/** Hashes are hex digits here. A text is hashed as its UTF-8. */
const sha256 = (data) => digest("sha256", data, "hex");
const textOf = (bytes) => (isUtf8(bytes) ? bytes.toString() : "");
const keyName = /^(?:[^\s+\x85]|\ufeff)+$/; // no space of Unicode, and no plus: C2SP signed-note
/** Reads base64 or base64url in its one spelling, else returns undefined: a lenient decoder would hide changed bits. */
function strictBase64(text, form = "base64") {
  const bytes = Buffer.from(text, form);
  return bytes.toString(form) === text ? bytes : undefined;
}
/** Reads NAME+ID+KEY, whose ID must match name and key. A log's key is of kind 1, a witness's of kind 4. */
function readVkey(text, kind) {
  const [, name, id, encoded] = /^([^+]+)\+([0-9a-f]{8})\+(.+)$/.exec(text) ?? ["", "", "", ""];
  const blob = strictBase64(encoded) ?? Buffer.alloc(0);
  const isNamed = keyName.test(name) && sha256(Buffer.concat([Buffer.from(`${name}\n`), blob])).startsWith(id);
  const isKey = isNamed && blob.length === 33 && blob[0] === kind;
  if (!isKey) throw new Error(`not a key NAME+ID+KEY of a ${kind === 1 ? "log" : "witness"}: ${text}`);
  const key = Buffer.concat([Buffer.from("302a300506032b6570032100", "hex"), blob.subarray(1)]); // as RFC 8410 has it
  return { name, id, kind, key: crypto.createPublicKey({ key, format: "der", type: "spki" }) };
}
/** The root hash of a checkpoint (C2SP tlog-checkpoint). Signatures by unknown keys are ignored. */
function readCheckpoint(bytes, keys, found) {
  const text = textOf(bytes);
  const note = text.slice(0, text.lastIndexOf("\n\n") + 1);
  const [origin, size, encoded] = note.split("\n");
  const isText = text.endsWith("\n") && Array.from(text).every((letter) => letter >= " " || letter === "\n");
  const lines = text.slice(note.length + 1, -1).split("\n");
  const isNote = isText && lines.length <= 64 && /^(?:[^\n]+\n){3,}$/.test(note);
  need(isNote, "checkpoint", 0, "the checkpoint is not a signed note of at most 64 signatures");
  const root = strictBase64(encoded)?.toString("hex");
  need(/^(?:0|[1-9][0-9]{0,14})$/.test(size) && root?.length === 64, "checkpoint", 0, "it states no size and root");
  Object.assign(found, { origin, size: Number(size), root });
  const signed = lines.map((line) => {
    const [, name, base64] = /^\u2014 ([^ ]+) ([^ ]+)$/.exec(line) ?? ["", "", ""];
    const blob = strictBase64(base64) ?? Buffer.alloc(0);
    need(keyName.test(name) && blob.length > 4, "checkpoint", 0, "a signature is not a line of dash, name and base64");
    return { name, blob, id: blob.toString("hex", 0, 4) };
  });
  for (const { name, blob, id } of signed) {
    for (const { kind, key } of keys.filter((each) => each.name === name && each.id === id)) {
      const time = blob.length < 12 ? 0 : blob.readBigUInt64BE(4); // of a cosignature: C2SP tlog-cosignature
      const signature = blob.subarray(kind === 4 ? 12 : 4);
      const message = Buffer.from(kind === 4 ? `cosignature/v1\ntime ${time}\n${note}` : note);
      const holds = signature.length === 64 && crypto.verify(null, message, key, signature);
      need(holds, kind === 4 ? "cosignature" : "signature", 0, `the signature by ${name}+${id} does not hold`);
      const by = kind === 4 ? found.cosigned_by : name === origin ? found.signed_by : [];
      if (!by.includes(`${name}+${id}`)) by.push(`${name}+${id}`);
    }
  }
  need(found.signed_by.length > 0, "unsigned", 0, "no given key that is named as the log has signed the checkpoint");
  return root;
}
const [number, hex, verdict] = ["(?:0|[1-9][0-9]{0,14})", "[0-9a-f]{64}", '(?:"ALLOW"|"BLOCK"|"ESCALATE"|null)'];
const string = String.raw`"[^"\\\x00-\x1f]*(?:\\(?:["\\bfnrt]|u00(?:0[0-7bef]|1[0-9a-f]))[^"\\\x00-\x1f]*)*"`;
/** A leaf of version 1 in canonical JSON (RFC 8785), to the last character: members, order, one spelling of a value. */
const layout = new RegExp(
  `^\\{(?:"act":(${string}),)?"answered":(${verdict}),"at":(${number}),(?:"check":(${number}),)?"contract":(${string}|null),` +
    `"engine":${string},"evidence":"(${hex})","key":(${string}|null),"kind":"(check|change|result)","log":(${string}),` +
    `"mode":("observe"|"assist"|"enforce"|null),"prev":"(${hex})","rule":(${string}|null),` +
    `"seq":(${number}),"tool":(${string}|null),"v":1,"verdict":(${verdict})\\}$`,
);
/** The leaf of a row (spec/receipt.md), by its members as they are written. */
function checkLeaf(bytes, row, origin) {
  const [text, act, answered, at, check, contract, evidence, key, kind, log, mode, prev, ...behind] =
    layout.exec(textOf(bytes)) ?? [];
  const [rule, seq, tool, reached] = behind;
  const isKind = (act !== undefined) === (kind === "change") && (check !== undefined) === (kind === "result");
  const isResult = kind === "result" && [answered, rule, reached].every((decided) => decided === "null");
  const isLeaf = text && isKind && (kind !== "result" || isResult);
  need(isLeaf, "leaf", row, "the leaf is not canonical JSON of version 1");
  need(Number(seq) === row, "seq", row, "the leaf is another row's");
  need(log === JSON.stringify(origin), "log", row, "the leaf is another log's");
  const isOpen = mode !== '"observe"' && answered === '"ALLOW"' && reached !== answered && reached !== "null";
  const isSofter = mode === '"enforce"' && answered === '"ESCALATE"' && reached === '"BLOCK"';
  const lenient = kind === "check" && (isOpen || isSofter);
  return { text, act, at: Number(at), caller: `${key}${tool}`, check, contract, evidence, kind, lenient, prev };
}
const use = `\\{"approval":(${number}),"needed":(?:true|false),"row":(${number})\\}`;
const granted = `\\{"amounts":\\{[^{}]*\\},"grant":(${number}),"row":(${number})\\}`;
const grantList = `"grants":\\[${granted}(?:,${granted})*\\]`;
const useList = `${use}(?:,${use})*`;
const uses = new RegExp(`^.{34}\\{(?:"uses":\\[${useList}\\]|${grantList},"uses":\\[(?:${useList})?\\])\\}\\]$`);
/** A row of act approval.use lists the checks that used an approval or a grant: their answers may be more lenient. */
function settleUses(lenient, line, row) {
  const text = textOf(strictBase64(line.split("~")[1], "base64url"));
  const pairs = uses.test(text) ? [granted, use].flatMap((each) => [...text.matchAll(new RegExp(each, "g"))]) : [];
  const areEarlier = pairs.every(([, approval, of]) => 0 < +approval && +approval < +of && +of < row);
  need(pairs.length > 0 && areEarlier, "use", row, "the row does not say properly which checks used an approval");
  for (const [, , of] of pairs) lenient.delete(Number(of));
}
const texts = `\\[(?:${string}(?:,${string})*)?\\]`;
const hint = new RegExp(`^\\{"format":"svc-gate-export/1","log":${string},"size":${number},"vkeys":${texts}\\}\\n$`);
/** The keys that log.json names; none if it is not written as an export writes it, or one of them is not a key. */
function hintedKeys(folder) {
  try {
    const text = textOf(read(folder, "log.json", 2 ** 16, "", 0));
    return hint.test(text) ? JSON.parse(text).vkeys.map((key) => readVkey(key, 1)) : [];
  } catch {
    return [];
  }
}
/** A part is base64url of `["SALT","NAME",VALUE]` (its name starts after 36 characters), or erased: `!` and a digest. */
const heads = ["Y2FsbCIs", "aW5wdXQiL[A-P]", "cGxhdGZvcm0iL[A-P]", "cmVhc29uIi[w-z]", "b3V0Y29tZSIs", "ZWZmZWN0cyIs"];
const places = heads.map((head) => new RegExp(`^(?:![\\w-]{43}|[\\w-]{36}${head}[\\w-]*)$`));
const six = ["call", "input", "platform", "reason", "outcome", "effects"];
/** After the six come sensitive members of input and platform, by their names: input.customer.email. */
const member = String.raw`(?:input|platform)(?:\.[A-Za-z_]\w*)+`;
const memberStart = new RegExp(String.raw`^\[".{22}","(${member})",`);
const erasedMember = new RegExp(`^![\\w-]{43}(${member})$`);
const erasable = new RegExp(`^(?:call|input|outcome|platform|reason|${member})$`);
const ascend = (names) => names.every((name, at) => at === 0 || names[at - 1] < name);
const isErased = (part) => part[0] === "!";
const digestOf = (part) => (isErased(part) ? part.slice(1, 44) : digest("sha256", part, "base64url"));
/** The name of the part at a position, erased or not; undefined if it is not a part, or another position's part. */
function nameOf(part, place) {
  if (place < six.length) return places[place].test(part) ? six[place] : undefined;
  return (erasedMember.exec(part) ?? memberStart.exec(strictBase64(part, "base64url")?.latin1Slice() ?? ""))?.[1];
}
/** Recomputes the leaf's digests from a line of evidence; returns the names of its erased parts. */
function checkEvidence(line, leaf, row) {
  const parts = line.split("~");
  const names = parts.map(nameOf);
  const begins = parts.map((part) => (isErased(part) ? "" : part.slice(0, 36))).join("");
  const areParts = parts.length >= six.length && names.every(Boolean) && ascend(names.slice(six.length));
  const areSalted = /^(?:\["[\w-]{22}",")*$/.test(Buffer.from(begins, "base64url").latin1Slice());
  need(areParts && areSalted, "evidence", row, "the evidence does not have its six parts in order, or is too long");
  // oxlint-disable-next-line unicorn/no-array-sort -- Node 18 has no toSorted
  const digests = parts.map((part, place) => digestOf(part) + (place < six.length ? "" : `${names[place]}~`)).sort();
  need(sha256(digests.join("")) === leaf.evidence, "digest", row, "the evidence is not what the leaf commits to");
  const erased = names.filter((_, place) => isErased(parts[place]));
  const isLawful = erased.every((name) => leaf.kind !== "change" && name !== "effects");
  need(isLawful, "erasure", row, "a part is missing that is never erased");
  return erased;
}
const known = Object.create(null);
/** The same texts become one, so that each is in memory once. */
const once = (text) => (known[text] ??= text);
/** An erasure row lists in its part `input` the erased parts of earlier rows: they are no longer missing. */
function settle(missing, line, row) {
  try {
    const text = strictBase64(line.split("~")[1], "base64url").toString().slice(34); // after `["SALT","input",`
    const { parts, rows } = JSON.parse(text.slice(0, -1));
    const names = parts.map(String).filter((name) => erasable.test(name));
    const isLeft = (part) => !names.includes(part) && !names.includes(part.split(".")[0]); // erases input's members too
    let before = 0;
    for (const [first, last, ...more] of rows) {
      need([first, last].every(Number.isSafeInteger) && before < first && first <= last && last < row && !more.length);
      for (let at = first; at <= last; at += 1) missing[at] &&= once(missing[at].split(",").filter(isLeft).join());
      before = last;
    }
    need(before > 0 && names.length > 0 && ascend(names) && `${JSON.stringify({ parts: names, rows })}]` === text);
  } catch {
    need(false, "erase-body", row, "the row does not say properly what it erased");
  }
}
/** Reads a regular file of at most this size in the folder; a link that leads out of the folder is refused. */
function read(folder, name, most, code, row) {
  const file = existsSync(join(folder, name)) ? realpathSync(join(folder, name)) : "";
  const found = file.startsWith(join(realpathSync(folder), sep)) && statSync(file);
  need(found && found.isFile() && found.size <= most, code, row, `${name} is not a file of at most ${most} bytes`);
  return readFileSync(file);
}
/** x001/x234/067 for number 1234067; an incomplete tile ends in `.p/WIDTH` (C2SP tlog-tiles). */
function tileName(index, width) {
  const digits = String(index).padStart(Math.ceil(String(index).length / 3) * 3, "0");
  return digits.replace(/...(?=.)/g, "x$&/") + (width === 256 ? "" : `.p/${width}`);
}
/** A leaf is hashed after a zero byte, two nodes after a one (RFC 6962, section 2.1). */
const leafHash = (text) => sha256(`\0${text}`);
const nodeHash = (left, right) => sha256(Buffer.from(`01${left}${right}`, "hex"));
/** RFC 6962's tree, leaf by leaf. Each node whose height is a multiple of 8 is in a tile, and is compared with it. */
class Tree {
  constructor(folder, size) {
    Object.assign(this, { folder, size, rows: 0, complete: [], tiles: [] });
  }
  add(hash) {
    let [node, height, index] = [hash, 0, this.rows++];
    this.compare(0, index, node);
    for (; index % 2 === 1; index = (index - 1) / 2, height += 1) {
      node = nodeHash(this.complete.pop(), node);
      if (height % 8 === 7) this.compare((height + 1) / 8, (index - 1) / 2, node);
    }
    this.complete.push(node);
  }
  compare(level, index, node) {
    const [row, at] = [index * 256 ** level + 1, (index % 256) * 32];
    if (at === 0) {
      const width = Math.min(256, Math.floor(this.size / 256 ** level) - index);
      this.tiles[level] = read(this.folder, `tile/${level}/${tileName(index / 256, width)}`, 2 ** 13, "file", row);
      need(this.tiles[level].length === 32 * width, "tile", row, `the tile does not have ${width} hashes`);
    }
    need(this.tiles[level].hexSlice(at, at + 32) === node, "tile", row, "the tile has another hash here");
  }
}
/** Each row's number, leaf and line of evidence. One bundle of 256 rows is in memory at a time. */
function* rowsOf(folder, size, chainOnly) {
  for (let first = 0; first < size; first += 256) {
    const width = Math.min(256, size - first);
    const name = tileName(first / 256, width);
    const bundle = read(folder, `tile/entries/${name}`, 256 * 65537, "file", first + 1);
    const lines = chainOnly ? Buffer.alloc(0) : read(folder, `evidence/${name}`, 2 ** 30, "file", first + 1);
    let [at, lineAt] = [0, 0];
    for (let row = first + 1; row <= first + width; row += 1) {
      const end = at + 2 <= bundle.length ? at + 2 + bundle.readUInt16BE(at) : Infinity;
      need(end <= bundle.length, "entry", row, "the bundle of leaves ends before the row does");
      const lineEnd = chainOnly ? -1 : lines.indexOf("\n", lineAt);
      need(chainOnly || lineEnd !== -1, "evidence", row, "the bundle of evidence ends before the row does");
      const line = lineEnd > lineAt + 2 ** 22 ? "" : lines.toString("latin1", lineAt, lineEnd);
      yield { row, bytes: bundle.subarray(at + 2, end), line };
      [at, lineAt] = [end, lineEnd + 1];
    }
    need(at === bundle.length, "entry", first + width, "the bundle of leaves has data after this row");
    need(lineAt === lines.length, "evidence", first + width, "the bundle of evidence has data after this row");
  }
}
function verifyFolder(folder, keys, chainOnly, found) {
  const root = readCheckpoint(read(folder, "checkpoint", 2 ** 16, "checkpoint", 0), keys, found);
  const [tree, contracts] = [new Tree(folder, found.size), new Set()];
  const missing = [""]; // for each row the names of erased parts that no later row has named yet
  const callers = [""]; // for each row that is a check its key and tool, else an empty text
  const lenient = new Set(); // checks that were answered more leniently than their verdict and that no later row names
  let [prev, before] = ["0".repeat(64), 0];
  for (const { row, bytes, line } of rowsOf(folder, found.size, chainOnly)) {
    const leaf = checkLeaf(bytes, row, found.origin);
    need(leaf.prev === prev, "prev", row, "the leaf does not follow the row before");
    need(leaf.at >= before, "time", row, "the time is earlier than in the row before");
    const holds = leaf.check === undefined || callers[leaf.check] === leaf.caller;
    need(holds, "result", row, "the row that it names is not an earlier check with its key and its tool");
    callers.push(leaf.kind === "check" ? once(leaf.caller) : "");
    [prev, before] = [leafHash(leaf.text), leaf.at];
    tree.add(prev);
    found.rows = row;
    if (chainOnly) continue;
    if (leaf.contract !== "null" && !contracts.has(leaf.contract)) {
      const [isNamed, name] = [/^"sha256:[0-9a-f]{64}"$/.test(leaf.contract), leaf.contract.slice(8, -1)];
      need(isNamed, "contract", row, "the leaf names its contract by no digest");
      const text = read(folder, `contracts/${name}.txt`, 2 ** 24, "contract", row);
      need(sha256(text) === name, "contract", row, "the contract's text is not what its name says");
      found.contracts = contracts.add(leaf.contract).size;
    }
    const erased = checkEvidence(line, leaf, row);
    missing.push(once(erased.join()));
    found.erased_parts += erased.length;
    if (leaf.act === '"erase"') settle(missing, line, row);
    if (leaf.lenient) lenient.add(row);
    if (leaf.act === '"approval.use"') settleUses(lenient, line, row);
  }
  const computed = tree.rows === 0 ? sha256("") : tree.complete.reduceRight((node, left) => nodeHash(left, node));
  need(computed === root, "root", 0, "the rows' root hash differs from the checkpoint's");
  const first = missing.findIndex((names) => names !== "");
  need(first === -1, "erasure", first, "a part is missing, and no later row says that it was erased");
  const [used] = lenient;
  need(!used, "use", used, "the answer is more lenient than the verdict, and no row names an approval");
}
/** The root of a tree of `size` leaves, from one leaf's hash and its siblings on the way up (RFC 6962, section 2.1.1). */
function climb(node, index, size, path) {
  if (size === 1 || path.length === 0) return size === 1 && path.length === 0 ? node : "0".repeat(64);
  const half = 2 ** (BigInt(size - 1).toString(2).length - 1);
  if (index < half) return nodeHash(climb(node, index, half, path.slice(0, -1)), path.at(-1));
  return nodeHash(path.at(-1), climb(node, index - half, size - half, path.slice(0, -1)));
}
/** One row: its leaf is in the line `extra`, its siblings are below it (C2SP tlog-proof). */
function verifyProof(bytes, keys, found) {
  const [head] = bytes.toString("latin1").split("\n\n", 1);
  const form = /^c2sp\.org\/tlog-proof@v1\nextra ([^\n]+)\nindex (0|[1-9][0-9]{0,14})((?:\n[^\n]+){0,63})$/;
  const [, extra = "-", index, siblings = ""] = form.exec(head) ?? [];
  const [leaf, ...path] = [extra, ...siblings.split("\n").slice(1)].map((text) => strictBase64(text));
  need(
    leaf && path.every((sibling) => sibling?.length === 32),
    "proof",
    0,
    "the file is not a proof with a leaf in it",
  );
  const [root, row] = [readCheckpoint(bytes.subarray(head.length + 2), keys, found), Number(index) + 1];
  const { text } = checkLeaf(leaf, row, found.origin);
  Object.assign(found, { row, leaf: JSON.parse(text) });
  const siblingHashes = path.map((sibling) => sibling.toString("hex"));
  const computed = climb(leafHash(text), row - 1, found.size, siblingHashes);
  need(row <= found.size && computed === root, "inclusion", row, "the row is not in the tree of the checkpoint");
}
/** The report on a folder or a proof: `ok`, or `problem`, the first fault. */
export function verify(target, keys = [], witnesses = [], chainOnly = false) {
  const isFolder = statSync(target).isDirectory();
  const found = { ok: false, problem: null, origin: null, size: null, root: null, key_given: keys.length > 0 };
  Object.assign(found, { signed_by: [], cosigned_by: [], witnesses: witnesses.length });
  if (isFolder) Object.assign(found, { evidence: !chainOnly, rows: 0, contracts: 0, erased_parts: 0 });
  const own = isFolder && keys.length === 0 ? hintedKeys(target) : keys.map((key) => readVkey(key, 1));
  const given = [...own, ...witnesses.map((key) => readVkey(key, 4))];
  try {
    if (isFolder) verifyFolder(target, given, chainOnly, found);
    else verifyProof(readFileSync(target), given, found);
    found.ok = true;
  } catch (error) {
    if (error.problem === undefined) throw error;
    found.problem = error.problem;
  }
  return found;
}
if (process.argv[1] !== undefined && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  try {
    const text = { type: "string", multiple: true };
    const options = { key: text, witness: text, chain: { type: "boolean" }, help: { type: "boolean" } };
    const { values, positionals } = parseArgs({ allowPositionals: true, options });
    if (positionals.length !== 1) throw new Error("FOLDER|ROW.tlog-proof --key VKEY [--witness VKEY] [--chain]");
    const found = verify(positionals[0], values.key, values.witness, values.chain);
    console.log(JSON.stringify(found, null, 2).replace(/[\x7f-\x9f\u2028-\u202e\u2066-\u2069]/g, "?"));
    if (!found.key_given) console.error("NO KEY WAS GIVEN: nothing here proves who signed; name the log's with --key");
    console.error(found.ok ? "it holds" : `BROKEN at row ${found.problem.row}: ${found.problem.text}`);
    process.exitCode = found.ok ? 0 : 1;
  } catch (error) {
    console.error(`svc-verify: ${error.message}`);
    process.exitCode = 2;
  }
}
