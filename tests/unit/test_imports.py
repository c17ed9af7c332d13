"""The direction of imports (docs/architecture.md), and what the command line may not load when it starts."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import windage

SOURCE = Path(windage.__file__).parent
PURE = {"returns", "corrections", "objectives", "reduce", "diagnostics"}
"""What each package may import of windage, besides itself and ``errors``. ``*`` sees everything."""
ALLOWED: dict[str, set[str]] = {
    "errors": set(),
    "processes": set(),
    "records": set(),
    "compiled": set(),
    "segments": {"compiled"},
    "tokens": {"records", "segments"},
    "returns": {"segments", "corrections.ratio", "returns"},
    "corrections": {"segments"},
    "objectives": {"segments", "corrections.ratio"},
    "reduce": {"segments"},
    "diagnostics": {"segments", "corrections.ratio", "returns.credit"},
    "algorithms": {"segments", "tokens", *PURE},
    "engines": {"records", "processes", "compiled"},
    "environments": {"records", "processes"},
    "rollout": {"records", "engines.protocol", "environments.protocol"},
    "queue": {"records", "assembly.protocol", "assembly.batch"},
    "assembly": {"records"},
    "learner": {"records", "segments", "tokens", "algorithms", "reduce", "processes", "publish.folder"},
    "publish": {"records", "engines.protocol", "learner.protocol"},
    "recipes": set(),
    "runtime": {"*"},
    "report": {"*"},
    "cli": {"*"},
}
FILES = sorted(path for path in SOURCE.rglob("*.py"))


def owner(path: Path) -> str:
    first = path.relative_to(SOURCE).parts[0]
    return first.removesuffix(".py")


def imports(path: Path, *, nested: bool = True) -> Iterator[str]:
    """Names of the modules a file imports; ``nested=False`` leaves out imports that run later, inside functions."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = ast.walk(tree) if nested else _at_import(tree)
    for node in found:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{path}: relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _at_import(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
            continue
        yield child
        yield from _at_import(child)


def breaches(path: Path) -> list[str]:
    package = owner(path)
    allowed = ALLOWED[package] | {package, "errors"}
    inside = (name.removeprefix("windage.") for name in imports(path) if name.startswith("windage."))
    return [
        name for name in inside if "*" not in allowed and not any(f"{name}.".startswith(f"{good}.") for good in allowed)
    ]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_point_one_way(path):
    if path == SOURCE / "__init__.py":
        assert {name.partition(".")[0] for name in imports(path)} <= set(sys.stdlib_module_names)
        return
    assert owner(path) in ALLOWED, f"a new package {owner(path)!r}: say in this test what it may import"
    assert breaches(path) == []


def test_the_check_sees_a_breach(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "SOURCE", tmp_path)
    (tmp_path / "queue").mkdir()
    path = tmp_path / "queue" / "bad.py"
    path.write_text("def f():\n    from windage.learner.config import LearnerConfig\nfrom windage.records import Row\n")
    assert breaches(path) == ["learner.config.LearnerConfig"]


def _modules_after(code: str) -> set[str]:
    answer = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys\nprint('\\n'.join(sys.modules))"],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return set(answer.stdout.split())


@pytest.mark.process
def test_the_controller_loads_no_torch():
    """Settings, command line, queue, rollout and report: a controller is light, and dies without a driver."""
    light = [
        ".".join(("windage", *path.relative_to(SOURCE).with_suffix("").parts))
        for path in FILES
        if owner(path) in {"records", "queue", "assembly", "rollout", "environments", "cli", "report", "runtime"}
        and path.name != "__main__.py"
    ]
    settings = ["windage.engines.config", "windage.engines.protocol", "windage.learner.config", "windage.learner.setup"]
    loaded = _modules_after("\n".join(f"import {name.removesuffix('.__init__')}" for name in (*light, *settings)))
    assert not {"torch", "transformers", "numba", "peft"} & loaded


@pytest.mark.process
def test_help_loads_next_to_nothing():
    loaded = _modules_after("import windage.cli.main")
    assert not {"torch", "transformers", "numpy", "pydantic", "rich", "yaml", "anyio", "tensorboard"} & loaded


@pytest.mark.process
def test_help_is_there_at_once():
    """`windage --help` in under 0.3 s of CPU time; the best of five, because other work shares the cores."""
    seconds: list[float] = []
    for _ in range(5):
        before = _children_seconds()
        answer = subprocess.run(
            [sys.executable, "-m", "windage.cli.main", "--help"], capture_output=True, text=True, check=True, timeout=60
        )
        assert "train" in answer.stdout
        seconds.append(_children_seconds() - before)
    assert min(seconds) < 0.3, seconds


def _children_seconds() -> float:
    import resource

    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
