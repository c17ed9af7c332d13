"""Plot: one drawing of the report with what a reader needs beside it."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Plot"]


@dataclass(frozen=True, slots=True)
class Plot:
    """A title, the sentence that says what to see, and the drawing."""

    title: str
    sentence: str
    svg: str
