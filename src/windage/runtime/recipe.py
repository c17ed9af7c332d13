"""Recipes: packaged or own YAML, ``extends`` one level, ``key.sub=value`` on the command line, and back again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from windage.errors import ConfigError, explain
from windage.runtime.config import RunConfig
from windage.runtime.config_errors import nearest, readable
from windage.runtime.recipe_yaml import dump_yaml, parse_yaml, read_yaml

__all__ = [
    "Recipe",
    "dump_config",
    "find_recipe",
    "list_recipes",
    "load_recipe",
    "load_resolved",
    "override",
    "parse_override",
    "validate",
]


@dataclass(frozen=True, slots=True)
class Recipe:
    """A packaged recipe as `windage recipes` lists it."""

    name: str
    description: str
    path: Path


def list_recipes() -> list[Recipe]:
    """Every packaged recipe, by name."""
    folder = Path(str(resources.files("windage.recipes")))
    return [
        Recipe(path.stem, str(read_yaml(path).get("description", "")), path) for path in sorted(folder.glob("*.yaml"))
    ]


def find_recipe(recipe: str) -> Path:
    """The file of a packaged recipe, or the path itself.

    Raises:
        ConfigError: neither.
    """
    known = {entry.name: entry.path for entry in list_recipes()}
    if recipe in known:
        return known[recipe]
    path = Path(recipe).expanduser()
    if path.suffix in {".yaml", ".yml"} or path.exists():
        if not path.is_file():
            raise ConfigError(explain("no such recipe file", got=recipe, expected="a YAML file"))
        return path
    raise ConfigError(
        explain(
            f"unknown recipe {recipe!r}",
            expected=f"a path to a YAML file, or one of {', '.join(known)}",
            do=nearest(recipe, list(known)),
        )
    )


def load_recipe(recipe: str, overrides: Sequence[str] = ()) -> RunConfig:
    """Load a packaged recipe by name, or a file by path, and apply ``key.sub=value`` overrides in order.

    Raises:
        ConfigError: unknown recipe, unreadable YAML, unknown or misspelt key, wrong type, impossible combination.
    """
    path = find_recipe(recipe)
    settings = _with_base(path)
    changed = [parse_override(text) for text in overrides]
    for keys, value in changed:
        _put(settings, keys, value)
    settings.setdefault("name", path.stem)
    commanded = frozenset(".".join(keys) for keys, _ in changed)
    return validate(settings, source=f"recipe {path.stem!r}", commanded=commanded)


def override(config: RunConfig, overrides: Sequence[str]) -> RunConfig:
    """Apply ``key.sub=value`` overrides to settings that are resolved already.

    Raises:
        ConfigError: unknown or misspelt key, wrong type, impossible combination.
    """
    settings = config.model_dump(mode="json")
    changed = [parse_override(text) for text in overrides]
    for keys, value in changed:
        _put(settings, keys, value)
    commanded = frozenset(".".join(keys) for keys, _ in changed)
    return validate(settings, source=f"recipe {config.name!r}", commanded=commanded)


def load_resolved(path: Path) -> RunConfig:
    """Load the ``config.yaml`` of a run folder: exactly the settings the run was started with.

    Raises:
        ConfigError: unreadable, or from a version of Windage with other settings.
    """
    return validate(read_yaml(path), source=str(path))


def dump_config(config: RunConfig) -> str:
    """The resolved settings as YAML; :func:`load_resolved` gives back an equal ``RunConfig``."""
    return dump_yaml(config.model_dump(mode="json"))


def validate(settings: dict[str, Any], *, source: str, commanded: frozenset[str] = frozenset()) -> RunConfig:
    """Check settings strictly (no text for a number) and freeze them.

    Raises:
        ConfigError: one readable line for each thing that is wrong.
    """
    try:
        return RunConfig.model_validate_json(_json(settings), strict=True)
    except ValidationError as error:
        raise ConfigError(readable(error, model=RunConfig, source=source, commanded=commanded)) from error


def parse_override(text: str) -> tuple[tuple[str, ...], Any]:
    """Split ``key.sub=value``; the value is YAML.

    >>> parse_override("learner.lr=1e-5")
    (('learner', 'lr'), 1e-05)
    >>> parse_override("algorithm.clip=[0.8, 1.2]")
    (('algorithm', 'clip'), [0.8, 1.2])

    Raises:
        ConfigError: no ``=``, or an empty key.
    """
    key, equals, value = text.partition("=")
    keys = tuple(key.strip().split("."))
    if not equals or not all(keys):
        raise ConfigError(
            explain(
                "cannot read an override", got=repr(text), expected="key=value or key.sub=value", do="e.g. steps=50"
            )
        )
    return keys, parse_yaml(value, source=f"the value of {key.strip()}")


def _with_base(path: Path) -> dict[str, Any]:
    """The file's settings over those of the recipe it extends (one level, so that a reader needs two files at most)."""
    settings = read_yaml(path)
    if "extends" not in settings:
        return settings
    base = str(settings.pop("extends"))
    beside = path.parent / base
    base_path = beside if beside.is_file() else find_recipe(base)
    base_settings = read_yaml(base_path)
    if "extends" in base_settings:
        raise ConfigError(
            explain(
                f"{path} extends {base!r}, which itself extends {base_settings['extends']!r}",
                expected="one level of extends",
                do=f"extend {base_settings['extends']!r} and copy the settings in between",
            )
        )
    return _merge(base_settings, settings)


def _merge(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """Mappings merge key by key; a block that changes its ``name`` (another mode, another method) replaces the old."""
    if "name" in over and "name" in base and over["name"] != base["name"] and "steps" not in base:
        return over
    merged = dict(base)
    for key, value in over.items():
        old = merged.get(key)
        merged[key] = _merge(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return merged


def _put(settings: dict[str, Any], keys: tuple[str, ...], value: Any) -> None:
    """Set one value; ``mode=sync`` is short for a fresh block ``mode: {name: sync}``, ``model=FOLDER`` for its path."""
    block = settings
    for key in keys[:-1]:
        inner = block.get(key)
        if inner is None:
            inner = block[key] = {}
        if not isinstance(inner, dict):
            raise ConfigError(
                explain(f"cannot set {'.'.join(keys)}", got=f"{key} is {inner!r}", expected=f"{key} to hold settings")
            )
        copy = dict(inner)
        block[key] = copy
        block = copy
    last = keys[-1]
    block[last] = _named(last, value) if len(keys) == 1 and isinstance(value, str) else value


def _named(section: str, value: str) -> str | dict[str, Any]:
    """A fresh block for sections that are chosen by name; the text itself for every other setting."""
    if section == "model" and value not in {"path", "qwen3_random"}:
        return {"name": "path", "path": value}
    return {"name": value} if section in {"mode", "model", "algorithm", "environment"} else value


def _json(settings: dict[str, Any]) -> str:
    import json

    return json.dumps(settings, default=str)
