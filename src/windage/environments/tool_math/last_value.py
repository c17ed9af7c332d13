"""A program's last expression, printed inside the sandbox, so that no object made by a model enters the controller."""

from __future__ import annotations

import ast

__all__ = ["printing_last_value"]


def printing_last_value(code: str) -> str:
    r"""``code`` whose trailing expression is printed unless it is None; its own value is then None.

    >>> printing_last_value("x = 2\nx + 1")
    'x = 2\n_ = (x + 1\n)\nif _ is not None: print(_)\nNone\n'
    """
    try:
        body = ast.parse(code).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return code  # the sandbox says what is wrong
    last = body[-1] if body else None
    if not isinstance(last, ast.Expr) or _is_print(last.value):
        return f"{code}\nNone\n"
    lines = code.encode().splitlines(keepends=True)
    first, end = last.lineno - 1, (last.end_lineno or last.lineno) - 1
    head = b"".join(lines[:first]) + lines[first][: last.col_offset]
    tail = b"".join(lines[first : end + 1])[last.col_offset :]
    cut = len(lines[end]) - (last.end_col_offset or 0)
    expression = tail[: len(tail) - cut]
    return f"{head.decode()}_ = ({expression.decode()}\n)\nif _ is not None: print(_)\nNone\n"


def _is_print(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
