"""Windage: asynchronous post-training of language models, with off-policy correction of updates, credit and batches.

``import windage`` is light; the parts below are imported when they are first asked for.
"""

import importlib
import types

_HOMES = {"Segments": "windage.segments", "TokenBatch": "windage.tokens"}
_PACKAGES = ("algorithms", "corrections", "diagnostics", "objectives", "records", "reduce", "returns")


def __getattr__(name: str) -> types.ModuleType | type:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    if name in _PACKAGES:
        return importlib.import_module(f"windage.{name}")
    raise AttributeError(f"module 'windage' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted((*globals(), *_HOMES, *_PACKAGES))
