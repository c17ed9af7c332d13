"""Algorithms by name. Importing this package, its table and its checks needs no torch; :func:`get` does.

>>> from windage import algorithms
>>> algorithms.get("copc", clip=(0.9, 1.1)).critic
True
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windage.algorithms.checks import check
from windage.algorithms.table import ALGORITHMS, lookup, names

if TYPE_CHECKING:
    from windage.algorithms.algorithm import Algorithm

__all__ = ["ALGORITHMS", "check", "get", "lookup", "names"]


def get(name: str, **settings: Any) -> Algorithm:
    """Build the algorithm ``name`` with ``settings`` beside its defaults.

    Raises:
        ConfigError: unknown name or setting (with the nearest valid one), or a value that makes no sense.
    """
    entry = lookup(name)
    return entry.build(entry.parse(settings))
