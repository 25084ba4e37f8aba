"""The names that Python code reads and changes, and the check that it is in the subset."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from relay._function.syntax.errors import LIMIT, UNSUPPORTED, fail
from relay._function.syntax.source import Source

FUNCTIONS = (ast.FunctionDef, ast.Lambda)
_SCOPES = (*FUNCTIONS, ast.ListComp, ast.GeneratorExp)
_NO_CODE = {"ctx", "op", "ops"}
# Methods that change their object, and NumPy's functions that change their argument.
CHANGING_METHODS = {
    "append", "clear", "extend", "fill", "insert", "partition", "pop", "popitem", "put", "remove",
    "reverse", "setdefault", "sort", "update",
}  # fmt: skip
CHANGING_FUNCTIONS = {"copyto", "fill_diagonal", "place", "put", "put_along_axis", "putmask"}

# Nodes outside the subset, by class: the name of the construct, and what to write instead.
_REFUSED = {
    "AsyncFunctionDef": ("an async function", "compiled code has no event loop"),
    "AsyncFor": ("async for", "write a plain for"),
    "AsyncWith": ("async with", "do it outside the function"),
    "Await": ("await", "await outside, and pass the value"),
    "ClassDef": ("a class within a function", "define it outside the function"),
    "Delete": ("del", "leave it out: a value lives as long as it is read"),
    "DictComp": ("a comprehension of a dictionary", "write the dictionary out"),
    "Global": ("global", "return the new value instead"),
    "Import": ("import within a function", "import at the top of the file"),
    "ImportFrom": ("import within a function", "import at the top of the file"),
    "Interactive": ("a statement of the prompt", ""),
    "NamedExpr": (":=", "assign in a line of its own"),
    "Nonlocal": ("nonlocal", "return the new value instead"),
    "Set": ("a set", "use a list or a tuple"),
    "SetComp": ("a set", "use a list comprehension"),
    "TemplateStr": ("a t-string", "write an f-string"),
    "Try": ("try", "compiled code raises no exceptions; test the condition with if"),
    "TryStar": ("try", "compiled code raises no exceptions; test the condition with if"),
    "TypeAlias": ("a type alias", "define it outside the function"),
    "TypeVar": ("a type parameter", "leave type parameters of a nested function out"),
    "TypeVarTuple": ("a type parameter", "leave type parameters of a nested function out"),
    "ParamSpec": ("a type parameter", "leave type parameters of a nested function out"),
    "With": ("with", "do it outside the function"),
    "Yield": ("a generator", "append to a list and return it"),
    "YieldFrom": ("a generator", "append to a list and return it"),
}  # fmt: skip

# The deepest nesting of expressions and statements.
_MAX_DEPTH = 1500


def check(source: Source, definition: ast.AST) -> None:
    """UserError E0902 for the first construct outside the subset, E0909 for nesting too deep."""
    todo = [(definition, definition, 0)]
    while todo:
        node, place, depth = todo.pop()
        place = node if hasattr(node, "lineno") else place
        name = type(node).__name__
        if name in _REFUSED:
            what, instead = _REFUSED[name]
            fail(UNSUPPORTED, source, node, f"{what} is not part of relay.function", help=instead)
        if isinstance(node, (ast.While, ast.For)) and node.orelse:
            fail(
                UNSUPPORTED,
                source,
                node.orelse[0],
                "else of a loop is not part of relay.function",
                help="set a variable before break, and test it behind the loop",
            )
        if depth > _MAX_DEPTH:
            fail(
                LIMIT,
                source,
                place,
                f"the function is nested more than {_MAX_DEPTH} levels deep",
                help="name intermediate results, or use a loop",
            )
        children = list(ast.iter_child_nodes(node))
        if isinstance(node, FUNCTIONS) and node is not definition:
            children = [c for c in children if c not in getattr(node, "decorator_list", ())]
        elif node is definition:
            # Decorators and annotations are evaluated by Python.
            body = node.body if isinstance(node, ast.FunctionDef) else [node.body]
            children = [node.args, *body]
        elif isinstance(node, ast.arg):
            children = []
        todo.extend((child, place, depth + 1) for child in reversed(children))


def assigned(nodes: Sequence[ast.AST], in_place: bool = True, augmented: bool = True) -> list[str]:
    """The names that statements assign, and those that they change in place, in order.

    augmented: whether `x += 1`, which may do either, counts for x.
    """
    found: dict[str, None] = {}
    todo = list(reversed(nodes))
    while todo:
        node = todo.pop()
        kind = type(node)
        if kind is ast.Name:
            if type(node.ctx) is ast.Store:
                found[node.id] = None
            continue
        if kind is ast.FunctionDef:
            found[node.name] = None
        elif kind is ast.AugAssign and isinstance(node.target, ast.Name) and not augmented:
            todo.append(node.value)
            continue
        elif kind in (ast.Subscript, ast.Attribute) and type(node.ctx) is ast.Store:
            if in_place and (name := changed_name(node)) is not None:
                found[name] = None
        elif kind is ast.Call and isinstance(node.func, ast.Attribute):
            changed = [node.func.value] if node.func.attr in CHANGING_METHODS else []
            changed += node.args[:1] if node.func.attr in CHANGING_FUNCTIONS else []
            for target in changed if in_place else ():
                if (name := changed_name(target)) is not None:
                    found[name] = None
        elif kind in (ast.MatchAs, ast.MatchStar) and node.name is not None:
            found[node.name] = None
        if kind not in _SCOPES:
            todo.extend(reversed(_children(node)))
    return list(found)


def _children(node: ast.AST) -> list[ast.AST]:
    """The nodes below a node, in order, without contexts and operators."""
    out: list[ast.AST] = []
    for field in node._fields:
        if field in _NO_CODE:
            continue
        below = getattr(node, field, None)
        if isinstance(below, list):
            out += [each for each in below if isinstance(each, ast.AST)]
        elif isinstance(below, ast.AST):
            out.append(below)
    return out


def changes_safely(node: ast.Call, target: ast.AST, function: ast.AST) -> bool:
    """Whether a call that changes a variable is evaluated exactly once when its statement is reached, and the
    statement does not read the whole variable before it."""
    whole = [
        [child for child in ast.iter_child_nodes(statement) if isinstance(child, ast.expr)]
        for statement in ast.walk(function)
        if isinstance(statement, ast.stmt) and not isinstance(statement, ast.While)
    ]
    found = [parts for parts in whole if any(_holds(part, node) for part in parts)]
    if not found:
        # The reader has made the node, or it is the test of a loop.
        return not _holds(function, node)
    name, uses, harmless = changed_name(target), set(), set()
    for other in (inner for part in found[0] for inner in ast.walk(part)):
        if isinstance(other, _NOT_ONCE) and _holds(other, node):
            return False
        if isinstance(other, ast.Name) and other.id == name and _begin(other) < _begin(node):
            uses.add(other)
        elif isinstance(other, ast.Subscript):
            harmless.add(other.value)
        elif isinstance(other, ast.Call):
            is_len = isinstance(other.func, ast.Name) and other.func.id == "len"
            harmless |= set(other.args[:1]) if is_len else set()
            if isinstance(other.func, ast.Attribute) and other.func.attr in CHANGING_METHODS:
                harmless.add(other.func.value)
    return uses <= harmless


def _begin(node: ast.expr) -> tuple[int, int]:
    return node.lineno, node.col_offset


_NOT_ONCE = (ast.IfExp, ast.BoolOp, ast.Lambda, ast.ListComp, ast.GeneratorExp)


def _holds(whole: ast.AST, node: ast.AST) -> bool:
    return any(inner is node for inner in ast.walk(whole))


def changed_name(target: ast.AST) -> str | None:
    """Returns the variable that an assignment to a part of it changes."""
    while isinstance(target, (ast.Subscript, ast.Attribute)):
        target = target.value
    return target.id if isinstance(target, ast.Name) else None


def read(nodes: list[ast.AST]) -> set[str]:
    """Returns the names that code may read, those of nested functions included."""
    out = set()
    todo = list(nodes)
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Name):
            out.add(node.id)
        else:
            todo += _children(node)
    return out


def body_of(function: ast.FunctionDef | ast.Lambda) -> list[ast.stmt]:
    """Returns the statements of a function without its docstring; a lambda returns its expression."""
    if isinstance(function, ast.Lambda):
        made = ast.Return(function.body)
        return [ast.copy_location(made, function.body)]
    first = function.body[0]
    is_doc = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    if is_doc and isinstance(first.value.value, str):
        return function.body[1:]
    return function.body
