"""Compiled CPU loops (numba), kept on disk after the first call."""

# numba ships no type stubs.
# pyright: reportUntypedFunctionDecorator=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit

__all__ = ["cached_jit"]


def cached_jit(function: Callable[..., None], **options: Any) -> Any:
    """Compile ``function`` at its first call; without the GIL; kept on disk where there is a folder to write to.

    A function that must give the same bits in the process that compiles it and in those that load it calls no other
    compiled function (``inline="always"`` helpers are fine) and does not use numba's threads.
    """
    try:
        return njit(cache=True, nogil=True, **options)(function)
    except RuntimeError:  # no folder that numba may write to: compiled once a process
        return njit(nogil=True, **options)(function)
