"""Which mutants a source file has: small changes of its code, each of which a test should notice.

A mutant replaces one span of the source text. Left out by rule, because no test should notice the change: log calls,
f-strings (texts for people), docstrings, `__repr__` and `__str__`, assertions, what only type checkers read, and the
options of class declarations (`frozen`, `slots`, `gc`). The metadata of `Annotated` is code here: the bounds of fields.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
_TEXT_METHODS = ("__repr__", "__str__")
_LOGGERS = ("log", "_log", "logger", "logging")
_CACHES = ("cache", "lru_cache")
_SHOWN = 160
_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of one file: the bytes from `start` to `end` are replaced."""

    path: str
    line: int
    reach: tuple[int, int]
    """The first and the last line of the statement's own part: tests that run one of them may notice the change."""
    function: str
    """The name of the function or class around it, with those around that; empty at the top of the module."""
    outermost: str
    """The name of the outermost function around it, which is compiled as one; empty outside functions."""
    operator: str
    before: str
    after: str
    start: int
    end: int

    @property
    def change(self) -> str:
        """The change as one line."""
        return f"{_one_line(self.before)} -> {_one_line(self.after)}"

    def __str__(self) -> str:
        """Return place and change, for people."""
        change = self.change if len(self.change) <= _SHOWN else f"{self.change[: _SHOWN - 3]}..."
        return f"{self.path}:{self.line} [{self.operator}] {self.function or 'module'}: {change}"

    def applied_to(self, source: bytes) -> bytes:
        """Return the source text with the change."""
        return source[: self.start] + self.after.encode() + source[self.end :]


def mutants_of(path: str, source: bytes) -> list[Mutant]:
    """List the mutants of a file in the order of its text."""
    finder = _Finder(path, source)
    finder.visit(ast.parse(source))
    return sorted(finder.found, key=lambda one: (one.start, one.end, one.operator, one.after))


def mutants_below(root: Path, folders: list[str], left_out: tuple[str, ...]) -> Iterator[Mutant]:
    """Yield the mutants of all files of these folders, or of these files."""
    for folder in folders:
        place = root / folder
        for file in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            path = file.relative_to(root).as_posix()
            if not path.startswith(left_out):
                yield from mutants_of(path, file.read_bytes())


class _Finder(ast.NodeVisitor):
    def __init__(self, path: str, source: bytes) -> None:
        self.found: list[Mutant] = []
        self._path = path
        self._source = source
        self._line_starts = [0]
        for line in source.splitlines(keepends=True):
            self._line_starts.append(self._line_starts[-1] + len(line))
        self._names: list[str] = []
        self._outermost = ""
        self._lines = (1, 1)

    # What is around a mutant

    def visit(self, node: ast.AST) -> None:
        if isinstance(node, ast.stmt):
            before, self._lines = self._lines, own_lines(node)
            super().visit(node)
            self._lines = before
        else:
            super().visit(node)

    def _visit_function(self, node: _Function) -> None:
        for decorator in node.decorator_list:
            if not _is_name(decorator.func if isinstance(decorator, ast.Call) else decorator, _CACHES):
                self.visit(decorator)
        for default in (*node.args.defaults, *(one for one in node.args.kw_defaults if one is not None)):
            self.visit(default)
        if node.name in _TEXT_METHODS or any(_is_name(one, ("overload",)) for one in node.decorator_list):
            return
        self._names.append(node.name)
        outermost, self._outermost = self._outermost, self._outermost or ".".join(self._names)
        for statement in node.body:
            self.visit(statement)
        self._outermost = outermost
        self._names.pop()

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._visit_function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._visit_function(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._names.append(node.name)
        for statement in node.body:
            self.visit(statement)
        self._names.pop()

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if _is_name(node.annotation, ("TypeAlias",)):
            return
        for part in ast.walk(node.annotation):
            if isinstance(part, ast.Subscript) and _is_name(part.value, ("Annotated",)):
                for metadata in part.slice.elts[1:] if isinstance(part.slice, ast.Tuple) else ():
                    self.visit(metadata)
        if node.value is not None:
            self.visit(node.value)
            self._remove_assignment(node, [node.target])

    def visit_Assert(self, node: ast.Assert) -> None:
        """Leave assertions out: they state what cannot happen."""

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Leave texts out."""

    def visit_Call(self, node: ast.Call) -> None:
        if _is_log(node) or _is_name(node.func, ("cast", "TypeVar", "NewType")):
            return
        self.generic_visit(node)

    # The changes

    def visit_Compare(self, node: ast.Compare) -> None:
        for position, operator in enumerate(node.ops):
            swapped = [*node.ops[:position], _COMPARISONS[type(operator)](), *node.ops[position + 1 :]]
            self._replace(node, "comparison", _text(ast.Compare(node.left, swapped, node.comparators)))
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        self._replace(node, "and-or", _text(ast.BoolOp(other, node.values)))
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not):
            self._replace(node, "negation", _text(node.operand))
        if isinstance(node.op, ast.USub) and not isinstance(node.operand, ast.Constant):
            self._replace(node, "arithmetic", _text(node.operand))
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        other = _ARITHMETIC.get(type(node.op))
        if other is not None and not _is_type_union(node):
            self._replace(node, "arithmetic", _text(ast.BinOp(node.left, other(), node.right)))
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, bool):
            self._replace(node, "constant", str(not node.value))
        elif isinstance(node.value, int):
            self._replace(node, "boundary", f"({node.value + 1})")
            if node.value:
                self._replace(node, "boundary", f"({node.value - 1})")

    def visit_If(self, node: ast.If) -> None:
        if _is_name(node.test, ("TYPE_CHECKING",)):
            return
        leaves = isinstance(node.body[-1], ast.Return | ast.Continue | ast.Break | ast.Raise)
        if leaves and not node.orelse and self._text_of(node).startswith("if"):
            self._replace(node, "removed guard", "pass")
        self._negate(node.test)
        self.generic_visit(node)

    def visit_While(self, node: ast.While) -> None:
        if not isinstance(node.test, ast.Constant):
            self._negate(node.test)
            self.generic_visit(node)
        else:
            for statement in (*node.body, *node.orelse):
                self.visit(statement)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._negate(node.test)
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        for condition in node.ifs:
            self._negate(condition)
        self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        called = node.value.value if isinstance(node.value, ast.Await) else node.value
        if isinstance(called, ast.Constant) or _is_log(called):
            return
        if isinstance(called, ast.Call):
            self._replace(node, "removed call", "pass")
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        self._remove_assignment(node, node.targets)
        self.visit(node.value)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self._replace(node, "removed statement", "pass")
        other = _ARITHMETIC.get(type(node.op))
        if other is not None:
            self._replace(node, "arithmetic", ast.unparse(ast.AugAssign(node.target, other(), node.value)))
        self.visit(node.value)

    def visit_Delete(self, node: ast.Delete) -> None:
        self._replace(node, "removed statement", "pass")

    def visit_Continue(self, node: ast.Continue) -> None:
        self._replace(node, "removed continue", "pass")

    def visit_Break(self, node: ast.Break) -> None:
        self._replace(node, "removed break", "pass")

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is None:
            return
        if not (isinstance(node.value, ast.Constant) and isinstance(node.value.value, bool | None)):
            self._replace(node, "return value", "return None")
        self.visit(node.value)

    def visit_Raise(self, node: ast.Raise) -> None:
        self._replace(node, "removed statement", "pass")

    def _negate(self, condition: ast.expr) -> None:
        # The other operators negate these in the same way.
        if isinstance(condition, ast.Compare) and len(condition.ops) == 1:
            if not isinstance(condition.ops[0], ast.Lt | ast.LtE | ast.Gt | ast.GtE):
                return
        elif isinstance(condition, ast.UnaryOp) and isinstance(condition.op, ast.Not):
            return
        self._replace(condition, "negation", f"(not ({self._text_of(condition)}))")

    def _remove_assignment(self, node: ast.stmt, targets: list[ast.expr]) -> None:
        # Without an assignment to a name the next line fails: any test notices that.
        if self._outermost and all(isinstance(target, ast.Attribute | ast.Subscript) for target in targets):
            self._replace(node, "removed statement", "pass")

    def _replace(self, node: ast.expr | ast.stmt, operator: str, after: str) -> None:
        start, end = self._span(node)
        self.found.append(
            Mutant(
                path=self._path,
                line=node.lineno,
                reach=self._lines,
                function=".".join(self._names),
                outermost=self._outermost,
                operator=operator,
                before=self._source[start:end].decode(),
                after=after,
                start=start,
                end=end,
            )
        )

    def _text_of(self, node: ast.expr | ast.stmt) -> str:
        start, end = self._span(node)
        return self._source[start:end].decode()

    def _span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        if node.end_lineno is None or node.end_col_offset is None:
            raise ValueError(ast.dump(node))
        start = self._line_starts[node.lineno - 1] + node.col_offset
        return start, self._line_starts[node.end_lineno - 1] + node.end_col_offset


def own_lines(statement: ast.stmt) -> tuple[int, int]:
    """Return the first and the last line of a statement without the statements inside it."""
    body = getattr(statement, "body", None) or getattr(statement, "cases", None)
    last = statement.end_lineno or statement.lineno
    if body:
        first_inner = body[0].pattern.lineno if isinstance(body[0], ast.match_case) else body[0].lineno
        last = max(statement.lineno, first_inner - 1)
    return statement.lineno, last


def _text(node: ast.expr) -> str:
    return f"({ast.unparse(node)})"


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _is_name(node: ast.AST, names: tuple[str, ...]) -> bool:
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else None
    return name in names


def _is_log(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    return _is_name(node.func.value, _LOGGERS)


def _is_type_union(node: ast.BinOp) -> bool:
    """Return whether `A | B` joins classes, as in `isinstance(x, int | str)`."""
    if not isinstance(node.op, ast.BitOr):
        return False
    right = node.right
    if isinstance(right, ast.Constant):
        return right.value is None
    return isinstance(right, ast.Name) and (right.id.lstrip("_")[:1].isupper() or right.id in ("int", "str", "bool"))
