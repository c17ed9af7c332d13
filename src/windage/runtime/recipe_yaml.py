"""YAML as recipes use it: 1e-5 is a number, only true and false are booleans, and a key may stand only once."""

from __future__ import annotations

import re
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml

from windage.errors import ConfigError, explain

__all__ = ["dump_yaml", "parse_yaml", "read_yaml"]


class _Loader(yaml.SafeLoader):
    """SafeLoader with YAML 1.2's plain scalars; PyYAML's own read ``1e-5`` as text and ``on`` as true."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if key.value in seen:
                line = key.start_mark.line + 1
                raise yaml.constructor.ConstructorError(None, None, f"key {key.value!r} stands twice (line {line})")
            seen.add(key.value)
        return super().construct_mapping(node, deep)


_KEPT = {"tag:yaml.org,2002:null", "tag:yaml.org,2002:merge"}
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag in _KEPT]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver("tag:yaml.org,2002:int", re.compile(r"^[-+]?(?:0|[1-9][\d_]*)$"), list("-+0123456789"))
_Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"^(?:true|false)$"), list("tf"))
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?(?:(?:\d+\.\d*|\.\d+|\d+)[eE][-+]?\d+|\d+\.\d*|\.\d+|\.inf|\.nan)$"),
    list("-+0123456789."),
)


class _Dumper(yaml.SafeDumper):
    """SafeDumper that writes short lists on one line and quotes what :class:`_Loader` would read differently."""


def _represent_list(dumper: yaml.SafeDumper, items: list[Any]) -> yaml.Node:
    short = all(isinstance(item, int | float | str | bool) for item in items)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", items, flow_style=short)


def _represent_float(dumper: yaml.SafeDumper, value: float) -> yaml.Node:
    """The shortest text that reads back as the same number."""
    special = {"inf": ".inf", "-inf": "-.inf", "nan": ".nan"}
    return dumper.represent_scalar("tag:yaml.org,2002:float", special.get(repr(value), repr(value)))


_Dumper.add_representer(list, _represent_list)
_Dumper.add_representer(float, _represent_float)
_Dumper.yaml_implicit_resolvers = {
    first: list(resolvers) for first, resolvers in yaml.SafeDumper.yaml_implicit_resolvers.items()
}
for _first, _resolvers in _Loader.yaml_implicit_resolvers.items():
    _Dumper.yaml_implicit_resolvers.setdefault(_first, []).extend(_resolvers)


def parse_yaml(text: str, *, source: str) -> Any:
    """Parse YAML text; ``source`` names it in errors.

    >>> parse_yaml("{lr: 1e-5, on: yes, clip: [0.8, 1.2]}", source="example")
    {'lr': 1e-05, 'on': 'yes', 'clip': [0.8, 1.2]}

    Raises:
        ConfigError: it is not YAML, or a key stands twice.
    """
    try:
        return yaml.load(text, Loader=_Loader)  # noqa: S506 - derived from SafeLoader
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigError(explain(f"{source} is not valid YAML", got=" ".join(str(error).split()))) from error


def read_yaml(path: Path) -> dict[str, Any]:
    """Read a YAML file that holds one mapping.

    Raises:
        ConfigError: unreadable, not YAML, or not a mapping.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise ConfigError(explain(f"cannot read {path}", got=reason, expected="a YAML file")) from error
    data = parse_yaml(text, source=str(path))
    if not isinstance(data, dict) or not all(isinstance(key, str) for key in data):
        raise ConfigError(explain(f"{path} holds no settings", got=type(data).__name__, expected="`key: value` lines"))
    return data


def dump_yaml(data: Any) -> str:
    r"""YAML text that :func:`parse_yaml` reads back exactly.

    >>> dump_yaml({"lr": 1e-05, "clip": [0.8, 1.2]})
    'lr: 1e-05\nclip: [0.8, 1.2]\n'
    """
    return yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)
