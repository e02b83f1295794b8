"""Plants defects in a Python program, as mutate.ts does in TypeScript. Reads one JSON document from stdin, and writes one to stdout."""
import ast, json, re, sys

HOLE = re.compile(r"\$(\$?)([a-z]\w*)")


def fail(change, problem):
    sys.exit(f"the mutation {json.dumps(change)} cannot be made: {problem}")


class Program:
    """A text with the nodes of its parse tree. Positions are in bytes, because Python counts columns so."""

    def __init__(self, text):
        self.data, self.tree = text.encode(), ast.parse(text)
        self.lines = [0]
        for line in self.data.splitlines(keepends=True):
            self.lines.append(self.lines[-1] + len(line))

    def span(self, first, last):
        start = self.lines[first.lineno - 1] + first.col_offset
        return start, self.lines[last.end_lineno - 1] + last.end_col_offset

    def source(self, first, last):
        start, end = self.span(first, last)
        return self.data[start:end].decode()

    def spliced(self, span, put):
        return (self.data[: span[0]] + put.encode() + self.data[span[1] :]).decode()

    def within(self, name):
        """Returns the functions and classes with a name, by all names around it: `Turn.commit`."""
        found = []

        def visit(node, names):
            for child in ast.iter_child_nodes(node):
                named = isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
                if named and ".".join([*names, child.name]) == name:
                    found.append(child)
                if isinstance(child, ast.Assign) and isinstance(child.targets[0], ast.Name) and child.targets[0].id == name:
                    found.append(child)
                visit(child, [*names, child.name] if named else names)

        visit(self.tree, [])
        return found

    def matches(self, node, pattern):
        """Returns the matches of a pattern: their spans, and the sources of its holes."""
        found = {}
        for each in ast.walk(node):
            for _, value in ast.iter_fields(each):
                children = value if isinstance(value, list) else [value]
                for at in range(len(children) - len(pattern) + 1):
                    window, holes = children[at : at + len(pattern)], {}
                    if all(hasattr(child, "lineno") and self.same(want, child, holes) for want, child in zip(pattern, window)):
                        found[self.span(window[0], window[-1])] = holes
        return sorted(found.items())

    def same(self, want, given, holes):
        if isinstance(want, ast.Name) and want.id.startswith("hole_") and isinstance(given, ast.expr):
            holes["$" + want.id[5:]] = self.source(given, given)
            return True
        if type(want) is not type(given):
            return False
        if isinstance(want, ast.AST):
            names = [name for name in want._fields if name not in ("ctx", "kind", "type_comment")]
            return all(self.same(getattr(want, name, None), getattr(given, name, None), holes) for name in names)
        if isinstance(want, list):
            if want and isinstance(want[-1], ast.Name) and want[-1].id.startswith("holes_") and len(given) >= len(want) - 1:
                rest = given[len(want) - 1 :]
                holes["$$" + want[-1].id[6:]] = self.source(rest[0], rest[-1]) if rest else ""
                want, given = want[:-1], given[: len(want) - 1]
            return len(want) == len(given) and all(self.same(*pair, holes) for pair in zip(want, given))
        return want == given


def pattern_of(text):
    body = ast.parse(HOLE.sub(lambda hole: ("holes_" if hole[1] else "hole_") + hole[2], text)).body
    return [body[0].value] if len(body) == 1 and isinstance(body[0], ast.Expr) else body


def is_expression(text):
    try:
        ast.parse(text, mode="eval")
        return True
    except SyntaxError:
        return False


def replaced(program, span, holes, pattern, put):
    known = {**holes, "$found": program.data[span[0] : span[1]].decode()}
    filled = HOLE.sub(lambda hole: known.get(hole[0], hole[0]), put)
    return program.spliced(span, f"({filled})" if isinstance(pattern[0], ast.expr) and is_expression(filled) else filled)


def mutated(text, change):
    program, name = Program(text), change["within"]
    places = program.within(name)
    if len(places) != 1:
        fail(change, f"{name} is there {len(places)} times, not once")
    if "text" in change:
        texts = [node for node in ast.walk(places[0]) if isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes))]
        wanted, found = change["text"].encode(), []
        for start, end in {program.span(node, node) for node in texts}:
            found += [(start + at.start(), start + at.end()) for at in re.finditer(re.escape(wanted), program.data[start:end])]
        if len(found) != 1:
            fail(change, f"{name} has {len(found)} such places, not one")
        return program.spliced(found[0], change["put"])
    pattern = pattern_of(change["find"])
    found = program.matches(places[0], pattern)
    if len(found) != 1:
        fail(change, f"{name} has {len(found)} such places, not one")
    return replaced(program, *found[0], pattern, change["put"])


def all_mutated(text, changes):
    for change in changes:
        before, text = text, mutated(text, change)
        if text == before:
            fail(change, "it changes nothing")
        try:
            ast.parse(text)
        except SyntaxError as error:
            fail(change, f"the program does not parse with it ({error})")
    return text


def swept(text, find, put):
    program, pattern = Program(text), pattern_of(find)
    found = program.matches(program.tree, pattern)
    return [
        {"found": program.data[span[0] : span[1]].decode(), "text": replaced(program, span, holes, pattern, put)}
        for span, holes in found
    ]


asked = json.load(sys.stdin)
answer = swept(asked["text"], **asked["sweep"]) if "sweep" in asked else all_mutated(asked["text"], asked["mutations"])
json.dump(answer, sys.stdout)
