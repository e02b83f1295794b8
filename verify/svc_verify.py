#!/usr/bin/env python3
"""Verifies, offline, an action gate's export: a folder, or one row's proof in a `.tlog-proof` file.

    python3 svc_verify.py FOLDER --key VKEY          the whole ledger: every row, hash, signature and piece of evidence
    python3 svc_verify.py ROW.tlog-proof --key VKEY  one row, and that it is in the signed tree

VKEY is the log's public key as you got it from its owner, not out of the folder, whose writer could put any key there.
Only Python 3.9 is needed. spec/export.md has the format and each code. Exit code 0: valid. 1: broken. 2: not judged.
"""
import argparse, base64, hashlib, json, os, pathlib, re, sys

class Broken(Exception):
    """The first fault: a code of spec/export.md, the row (0: none), a sentence."""
def need(holds, code, row, text):
    if not holds:
        raise Broken(code, row, text)

def sha256(data):
    return hashlib.sha256(data).digest()

def strict_base64(text, is_url=False):
    """Base64 (for parts base64url, unpadded) in its one spelling, else None: a lenient decoder would hide changed bits."""
    try:
        data = base64.b64decode(text + "==", b"-_" if is_url else b"+/")
    except ValueError:
        return None
    spelled = base64.b64encode(data, b"-_").decode().rstrip("=") if is_url else base64.b64encode(data).decode()
    return data if spelled == text else None

# Ed25519 of RFC 8032, section 5.1, written to be read, not to be fast.
P, ORDER = 2**255 - 19, 2**252 + 27742317777372353535851937790883648493
D, ROOT = -121665 * pow(121666, -1, P) % P, pow(2, (P - 1) // 4, P)

def decompress(data):
    """A point (X, Y, Z, T) from its 32 bytes; None if they are not the one encoding of a point."""
    sign, y = data[31] >> 7, int.from_bytes(data, "little") & (2**255 - 1)
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    x = x if x * x % P == square else x * ROOT % P
    is_point = y < P and x * x % P == square and not (x == 0 and sign)
    x = x if x & 1 == sign else P - x
    return (x, y, 1, x * y % P) if is_point else None
def added(p, q):
    a, b = (p[1] - p[0]) * (q[1] - q[0]) % P, (p[1] + p[0]) * (q[1] + q[0]) % P
    c, d = 2 * p[3] * q[3] * D % P, 2 * p[2] * q[2] % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % P, g * h % P, f * g % P, e * h % P
def times(number, point):
    half = times(number >> 1, added(point, point)) if number else (0, 1, 1, 0)
    return added(half, point) if number & 1 else half

BASE = decompress((4 * pow(5, -1, P) % P).to_bytes(32, "little"))
def is_signed(key, message, signature):
    a, r, s = decompress(key), decompress(signature[:32].ljust(32)), int.from_bytes(signature[32:], "little")
    if len(signature) != 64 or a is None or r is None or s >= ORDER:
        return False
    h = int.from_bytes(hashlib.sha512(signature[:32] + key + message).digest(), "little") % ORDER
    left, right = times(s, BASE), added(r, times(h, a))
    return all((left[i] * right[2] - right[i] * left[2]) % P == 0 for i in (0, 1))

KEY_NAME = re.compile("(?:[^\\s+]|[\x1c-\x1f])+")  # no space of Unicode, and no plus: C2SP signed-note
def read_vkey(text, kind):
    """Reads NAME+ID+KEY, whose ID must match name and key. A log's key is of kind 1, a witness's of kind 4."""
    name, key_id, encoded = (text.split("+", 2) + ["", ""])[:3]
    blob = strict_base64(encoded) or b""
    if not KEY_NAME.fullmatch(name) or len(blob) != 33 or blob[0] != kind or key_id != sha256(name.encode() + b"\n" + blob)[:4].hex():
        raise ValueError(f"not a key NAME+ID+KEY of a {'log' if kind == 1 else 'witness'}: {text}")
    return name, key_id, blob[1:], kind

def read_checkpoint(data, keys, found):
    """The root hash of a checkpoint (C2SP tlog-checkpoint). Signatures by unknown keys are ignored."""
    text = data.decode("utf-8", "replace")
    body, _, signatures = text.rpartition("\n\n")
    is_text = text.encode() == data and text.endswith("\n") and not re.search("[\x00-\x09\x0b-\x1f]", text)
    is_note = is_text and re.fullmatch("[^\n]+(?:\n[^\n]+){2,}", body) and signatures.count("\n") <= 64
    need(is_note, "checkpoint", 0, "the checkpoint is not a signed note of at most 64 signatures")
    origin, size, root = body.split("\n")[:3]
    note, root = (body + "\n").encode(), strict_base64(root) or b""
    need(re.fullmatch("0|[1-9][0-9]{0,14}", size) and len(root) == 32, "checkpoint", 0, "it states no size and root")
    found.update(origin=origin, size=int(size), root=root.hex())
    signed = [(line.split(" "), strict_base64(line.split(" ")[-1]) or b"") for line in signatures[:-1].split("\n")]
    are_lines = all(len(words) == 3 and words[0] == "\u2014" and KEY_NAME.fullmatch(words[1]) and len(blob) > 4 for words, blob in signed)
    need(are_lines, "checkpoint", 0, "a signature is not a line of dash, name and base64")
    for words, blob in signed:
        name, key_id = signer = words[1], blob[:4].hex()
        for public, kind in [key[2:] for key in keys if key[:2] == signer]:  # a witness also signs a time: tlog-cosignature
            message = b"cosignature/v1\ntime %d\n" % int.from_bytes(blob[4:12], "big") + note if kind == 4 else note
            holds = is_signed(public, message, blob[12 if kind == 4 else 4 :])
            need(holds, "cosignature" if kind == 4 else "signature", 0, f"the signature by {name}+{key_id} does not hold")
            by = found["cosigned_by"] if kind == 4 else found["signed_by"] if name == origin else []
            by += [] if f"{name}+{key_id}" in by else [f"{name}+{key_id}"]
    need(found["signed_by"], "unsigned", 0, "no given key that is named as the log has signed the checkpoint")
    return root

SHAPES = {"number": "(?:0|[1-9][0-9]{0,14})", "hash": "[0-9a-f]{64}", "verdict": '(?:"ALLOW"|"BLOCK"|"ESCALATE"|null)'}
SHAPES["text"] = r'"[^"\\\x00-\x1f]*(?:\\(?:["\\bfnrt]|u00(?:0[0-7bef]|1[0-9a-f]))[^"\\\x00-\x1f]*)*"'
# A leaf of version 1 in canonical JSON (RFC 8785), to the last character: members, order, and one spelling of each value.
LEAF = re.compile(
    r'\{(?:"act":(?P<act>%(text)s),)?"answered":(?P<answered>%(verdict)s),"at":(?P<at>%(number)s),(?:"check":(?P<check>%(number)s),)?'
    r'"contract":(?P<contract>%(text)s|null),"engine":%(text)s,"evidence":"(?P<evidence>%(hash)s)","key":(?P<key>%(text)s|null),'
    r'"kind":"(?P<kind>check|change|result)","log":(?P<log>%(text)s),"mode":(?P<mode>"observe"|"assist"|"enforce"|null),'
    r'"prev":"(?P<prev>%(hash)s)","rule":(?P<rule>%(text)s|null),"seq":(?P<seq>%(number)s),"tool":(?P<tool>%(text)s|null),'
    r'"v":1,"verdict":(?P<verdict>%(verdict)s)\}' % SHAPES
)
HINT = re.compile(r'\{"format":"svc-gate-export/1","log":%(text)s,"size":%(number)s,"vkeys":\[(?:%(text)s(?:,%(text)s)*)?\]\}\n' % SHAPES)
def check_leaf(data, row, origin):
    """The leaf of a row, by its members."""
    leaf = LEAF.fullmatch(data.decode("utf-8", "replace"))
    is_leaf = leaf and leaf[0].encode() == data and (leaf["act"] is not None) == (leaf["kind"] == "change")
    is_leaf = is_leaf and (leaf["check"] is not None) == (leaf["kind"] == "result")
    is_decided = is_leaf and {leaf["answered"], leaf["rule"], leaf["verdict"]} != {"null"}
    need(is_leaf and not (leaf["kind"] == "result" and is_decided), "leaf", row, "the leaf is not canonical JSON of version 1")
    need(int(leaf["seq"]) == row, "seq", row, "the leaf is another row's")
    need(leaf["log"] == json.dumps(origin, ensure_ascii=False), "log", row, "the leaf is another log's")
    return leaf

# A part is base64url of `["SALT","NAME",VALUE]`: the name starts after 27 bytes, which are 36 characters. Six have fixed positions.
SIX = {"call": b"Y2FsbCIs", "input": b"aW5wdXQiL[A-P]", "platform": b"cGxhdGZvcm0iL[A-P]"}
SIX.update(reason=b"cmVhc29uIi[w-z]", outcome=b"b3V0Y29tZSIs", effects=b"ZWZmZWN0cyIs")
PLACES = [(name, re.compile(b"![A-Za-z0-9_-]{43}|[A-Za-z0-9_-]{36}" + head + b"[A-Za-z0-9_-]*")) for name, head in SIX.items()]
# After them come sensitive members of input and platform, by their names: input.customer.email. Erased, a part is its digest.
MEMBER = r"(?:input|platform)(?:\.[A-Za-z_][A-Za-z0-9_]*)+"
SALTS, MEMBER_START = re.compile(rb'(?:\["[A-Za-z0-9_-]{22}",")*'), re.compile(rb'\[".{22}","(%s)",' % MEMBER.encode())
ERASED_MEMBER = re.compile(b"![A-Za-z0-9_-]{43}(%s)" % MEMBER.encode())
ERASABLE = re.compile("call|input|outcome|platform|reason|" + MEMBER)
def name_of(part, place):
    """The name of the part at a position, erased or not; None if it is not a part, or another position's part."""
    if place < len(PLACES):
        name, form = PLACES[place]
        return name if form.fullmatch(part) else None
    named = ERASED_MEMBER.fullmatch(part) or MEMBER_START.match(strict_base64(part.decode("latin-1"), True) or b"")
    return named and named[1].decode()

def check_evidence(line, leaf, row):
    """Recomputes the leaf's digests from a line of evidence; returns the names of its erased parts, joined by blanks."""
    parts = line.split(b"~")
    names = [name_of(part, place) for place, part in enumerate(parts)]
    are_parts = len(line) <= 2**22 and len(parts) >= 6 and None not in names and names[6:] == sorted(set(names[6:]))
    need(are_parts, "evidence", row, "the evidence does not have its six parts in order, or is too long")
    heads = base64.urlsafe_b64decode(b"".join([part[:36] for part in parts if part[:1] != b"!"]))
    need(SALTS.fullmatch(heads), "evidence", row, "a part has no salt of 22 characters")
    digests = [part[1:44] if part[:1] == b"!" else base64.urlsafe_b64encode(sha256(part))[:43] for part in parts]
    digests[6:] = [digest + name.encode() + b"~" for digest, name in zip(digests[6:], names[6:])]
    need(sha256(b"".join(sorted(digests))).hex() == leaf["evidence"], "digest", row, "the evidence is not what the leaf commits to")
    erased = [name for name, part in zip(names, parts) if part[:1] == b"!"]
    need(not erased or leaf["kind"] != "change" and "effects" not in erased, "erasure", row, "a part is missing that is never erased")
    return sys.intern(" ".join(erased))

def settle(missing, line, row):
    """An erasure row lists in its part `input` the erased parts of earlier rows: they are no longer missing."""
    try:
        text = strict_base64(line.split(b"~")[1].decode(), True)[34:].decode()  # after `["SALT","input",`
        body, before = json.loads(text[:-1]), 0
        names = sorted({name for name in body["parts"] if ERASABLE.fullmatch(name)})  # if `input` goes, its members go too
        for first, last in body["rows"]:
            need(type(first) is int and type(last) is int and before < first <= last < row, "", 0, "")
            rows, before = missing[first : last + 1], last
            left = {lacks: [name for name in lacks.split() if {name, name.split(".")[0]}.isdisjoint(names)] for lacks in set(rows)}
            missing[first : last + 1] = [sys.intern(" ".join(left[lacks])) for lacks in rows]
        need(before and names and text == json.dumps({"parts": names, "rows": body["rows"]}, separators=(",", ":")) + "]", "", 0, "")
    except (Broken, ValueError, KeyError, TypeError, IndexError, RecursionError):
        raise Broken("erase-body", row, "the row does not say properly what it erased") from None

def is_lenient(leaf):
    """In observe mode every answer is ALLOW, and in assist mode a BLOCK may become an ESCALATE."""
    answered, mode, verdict = leaf["answered"], leaf["mode"], leaf["verdict"]
    is_open = mode != '"observe"' and answered == '"ALLOW"' and verdict not in (answered, "null")
    return leaf["kind"] == "check" and (is_open or (mode, answered, verdict) == ('"enforce"', '"ESCALATE"', '"BLOCK"'))

USE = r'\{"approval":(%(number)s),"needed":(?:true|false),"row":(%(number)s)\}' % SHAPES
GRANTED = r'\{"amounts":\{[^{}]*\},"grant":(%(number)s),"row":(%(number)s)\}' % SHAPES
USED = r'"uses":\[U(?:,U)*\]|"grants":\[G(?:,G)*\],"uses":\[(?:U(?:,U)*)?\]'.replace("U", USE).replace("G", GRANTED)
USES = re.compile(r'.{34}\{(?:%s)\}\]' % USED)
def settle_uses(lenient, line, row):
    """A row of act approval.use lists the checks that used an approval or a grant: their answers may be more lenient."""
    text = (strict_base64(line.split(b"~")[1].decode("latin-1"), True) or b"").decode("utf-8", "replace")
    found = re.findall(GRANTED, text) + re.findall(USE, text) if USES.fullmatch(text) else []
    pairs = [(int(by), int(of)) for by, of in found]
    are_earlier = pairs and all(0 < by < of < row for by, of in pairs)
    need(are_earlier, "use", row, "the row does not say properly which checks used an approval")
    for _, of in pairs:
        lenient.pop(of, None)

def read(folder, name, most, code, row):
    """Reads a regular file of at most this size in the folder; a link that leads out of the folder is refused."""
    file, inside = os.path.realpath(os.path.join(folder, name)), os.path.join(os.path.realpath(folder), "")
    is_there = file.startswith(inside) and os.path.isfile(file)
    need(is_there and os.path.getsize(file) <= most, code, row, f"{name} is missing, or is not a regular file of at most {most} bytes")
    return pathlib.Path(file).read_bytes()

def tile_name(index, width):
    """x001/x234/067 for number 1234067; an incomplete tile ends in `.p/WIDTH` (C2SP tlog-tiles)."""
    digits = str(index).zfill((len(str(index)) + 2) // 3 * 3)
    return re.sub("...(?=.)", r"x\g<0>/", digits) + ("" if width == 256 else f".p/{width}")

class Tree:
    """RFC 6962's tree, leaf by leaf. Each node whose height is a multiple of 8 is in a tile, and is compared with it."""
    def __init__(self, folder, size):
        self.folder, self.size, self.rows, self.last, self.complete, self.tiles = folder, size, 0, bytes(32), [], {}

    def add(self, leaf):
        node, height, index = sha256(b"\0" + leaf), 0, self.rows
        self.last, self.rows = node, self.rows + 1
        self.compare(0, index, node)
        while index & 1:
            node, height, index = sha256(b"\1" + self.complete.pop() + node), height + 1, index >> 1
            if height % 8 == 0:
                self.compare(height // 8, index, node)
        self.complete.append(node)

    def compare(self, level, index, node):
        row = (index << 8 * level) + 1
        if index % 256 == 0:
            width = min(256, (self.size >> 8 * level) - index)
            self.tiles[level] = read(self.folder, f"tile/{level}/{tile_name(index // 256, width)}", 2**13, "file", row)
            need(len(self.tiles[level]) == 32 * width, "tile", row, f"the tile does not have {width} hashes")
        need(self.tiles[level][index % 256 * 32 :][:32] == node, "tile", row, "the tile has another hash here")

def rows_of(folder, size, chain_only):
    """Each row's number, leaf and line of evidence. One bundle of 256 rows is in memory at a time."""
    for first in range(0, size, 256):
        width = min(256, size - first)
        name, at = tile_name(first // 256, width), 0
        bundle = read(folder, f"tile/entries/{name}", 256 * 65537, "file", first + 1)
        lines = None if chain_only else read(folder, f"evidence/{name}", 2**30, "file", first + 1).split(b"\n", width)
        for row in range(first + 1, first + width + 1):
            end = at + 2 + int.from_bytes(bundle[at : at + 2], "big")
            need(at + 2 <= len(bundle) and end <= len(bundle), "entry", row, "the bundle of leaves ends before the row does")
            need(chain_only or row - first < len(lines), "evidence", row, "the bundle of evidence ends before the row's line does")
            yield row, bundle[at + 2 : end], lines and lines[row - first - 1]
            at = end
        need(at == len(bundle), "entry", row, "the bundle of leaves has data after this row")
        need(chain_only or lines[width:] == [b""], "evidence", row, "the bundle of evidence has data after this row")

def verify_folder(folder, keys, chain_only, found):
    root = read_checkpoint(read(folder, "checkpoint", 2**16, "checkpoint", 0), keys, found)
    tree, before, contracts = Tree(folder, found["size"]), 0, {"null"}
    missing = [""]  # for each row the names of erased parts that no later row has named yet; each text is kept once
    callers = [""]  # for each row that is a check its key and tool, else an empty text; each text is kept once
    lenient = {}  # checks that were answered more leniently than their verdict and that no later row names
    for row, data, line in rows_of(folder, found["size"], chain_only):
        leaf = check_leaf(data, row, found["origin"])
        need(leaf["prev"] == tree.last.hex(), "prev", row, "the leaf does not follow the row before")
        need(int(leaf["at"]) >= before, "time", row, "the time is earlier than in the row before")
        caller = sys.intern(leaf["key"] + leaf["tool"])
        is_named = leaf["check"] is None or int(leaf["check"]) < row and callers[int(leaf["check"])] == caller
        need(is_named, "result", row, "the row that it names is not an earlier check with its key and its tool")
        callers.append(caller if leaf["kind"] == "check" else "")
        tree.add(data)
        before, found["rows"] = int(leaf["at"]), row
        if chain_only:
            continue
        if leaf["contract"] not in contracts:
            name = leaf["contract"][8:-1]
            need(re.fullmatch('"sha256:[0-9a-f]{64}"', leaf["contract"]), "contract", row, "the leaf names its contract by no digest")
            text = read(folder, f"contracts/{name}.txt", 2**24, "contract", row)
            need(sha256(text).hex() == name, "contract", row, "the contract's text is not what its name says")
            contracts.add(leaf["contract"])
            found["contracts"] = len(contracts) - 1
        missing.append(check_evidence(line, leaf, row))
        found["erased_parts"] += len(missing[row].split())
        if leaf["act"] == '"erase"':
            settle(missing, line, row)
        if is_lenient(leaf):
            lenient[row] = True
        if leaf["act"] == '"approval.use"':
            settle_uses(lenient, line, row)
    node = tree.complete.pop() if tree.complete else sha256(b"")
    for left in reversed(tree.complete):
        node = sha256(b"\1" + left + node)
    need(node == root, "root", 0, "the rows' root hash differs from the checkpoint's")
    first = next((row for row, lacks in enumerate(missing) if lacks), 0)
    need(not first, "erasure", first, "a part is missing, and no later row says that it was erased")
    need(not lenient, "use", next(iter(lenient), 0), "the answer is more lenient than the verdict, and no row names an approval")

def climb(node, index, size, path):
    """The root of a tree of `size` leaves, from one leaf's hash and its siblings on the way up (RFC 6962, section 2.1.1)."""
    if size == 1 or not path:
        return node if size == 1 and not path else b""
    half = 1 << (size - 1).bit_length() - 1  # the largest power of two below it
    if index < half:
        return sha256(b"\1" + climb(node, index, half, path[:-1]) + path[-1])
    return sha256(b"\1" + path[-1] + climb(node, index - half, size - half, path[:-1]))

def verify_proof(data, keys, found):
    """One row: its leaf is in the line `extra`, its siblings are below it (C2SP tlog-proof)."""
    head, _, checkpoint = data.partition(b"\n\n")
    form = re.fullmatch(rb"c2sp\.org/tlog-proof@v1\nextra ([^\n]+)\nindex (0|[1-9][0-9]{0,14})((?:\n[^\n]+){0,63})", head)
    leaf, *path = [strict_base64(text.decode("latin-1")) for text in [form[1], *form[3].split(b"\n")[1:]]] if form else [None]
    need(leaf is not None and all(len(sibling or "") == 32 for sibling in path), "proof", 0, "the file is not a proof with a leaf in it")
    root, row = read_checkpoint(checkpoint, keys, found), int(form[2]) + 1
    found.update(row=row, leaf=json.loads(check_leaf(leaf, row, found["origin"])[0]))
    computed = climb(sha256(b"\0" + leaf), row - 1, found["size"], path)
    need(row <= found["size"] and computed == root, "inclusion", row, "the row is not in the tree of the checkpoint")

def hinted_keys(folder):
    """The keys that log.json names; none if it is not written as an export writes it, or one of them is not a key."""
    try:
        text = read(folder, "log.json", 2**16, "", 0).decode()
        return [read_vkey(key, 1) for key in json.loads(text)["vkeys"]] if HINT.fullmatch(text) else []
    except (Broken, ValueError):
        return []

def verify(target, keys=(), witnesses=(), chain_only=False):
    """The report on a folder or a proof: `ok`, or `problem`, the first fault."""
    found = {"ok": False, "problem": None, "origin": None, "size": None, "root": None, "key_given": bool(keys)}
    found.update(signed_by=[], cosigned_by=[], witnesses=len(witnesses))
    is_folder = pathlib.Path(target).is_dir()
    found.update({"evidence": not chain_only, "rows": 0, "contracts": 0, "erased_parts": 0} if is_folder else {})
    try:
        given = hinted_keys(target) if is_folder and not keys else [read_vkey(key, 1) for key in keys]
        given += [read_vkey(key, 4) for key in witnesses]
        verify_folder(target, given, chain_only, found) if is_folder else verify_proof(pathlib.Path(target).read_bytes(), given, found)
        found["ok"] = True
    except Broken as broken:
        found["problem"] = dict(zip(("code", "row", "text"), broken.args))
    return found

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", help="an export folder, or a file *.tlog-proof")
    parser.add_argument("--key", action="append", default=[], help="the log's public key; may be repeated, as after a rotation")
    parser.add_argument("--witness", action="append", default=[], help="a witness's public key; may be repeated")
    parser.add_argument("--chain", action="store_true", help="leave out the evidence and the contracts")
    asked = parser.parse_args()
    try:
        report = verify(asked.target, asked.key, asked.witness, asked.chain)
    except Exception as error:  # such as too little memory: not a judgment, and never a stack trace
        parser.error(ascii(str(error) or type(error).__name__))
    print(json.dumps(report, indent=2))
    if not asked.key:
        print("NO KEY WAS GIVEN: nothing here proves who signed; name the log's with --key", file=sys.stderr)
    print("it holds" if report["ok"] else "BROKEN at row {row}: {text}".format(**report["problem"]), file=sys.stderr)
    sys.exit(0 if report["ok"] else 1)
