"""Call a pure function with exactly the keyword arguments it asks for."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from windage.errors import ConfigError, explain

__all__ = ["ask"]

T = TypeVar("T")


def ask(function: Callable[..., T], available: Mapping[str, Any]) -> T:
    """``function(**{name: available[name]})`` for each parameter of ``function`` that is available.

    Raises:
        ConfigError: a parameter without default is missing or None.
    """
    parameters = inspect.signature(function).parameters
    lacking = [
        name
        for name, one in parameters.items()
        if one.default is inspect.Parameter.empty and available.get(name) is None
    ]
    if lacking:
        called = getattr(function, "func", function)
        raise ConfigError(
            explain(
                f"{getattr(called, '__name__', called)} needs data that this run does not have",
                got="none",
                expected=", ".join(lacking),
                do="an algorithm with a critic needs values; see its page",
            )
        )
    return function(**{name: available[name] for name in parameters if available.get(name) is not None})
