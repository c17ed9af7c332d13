"""StopStrings: does the token just sampled complete one of the strings that end a completion?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

__all__ = ["StopStrings"]

_SLACK = 8  # tokens decoded beyond the stop string's bytes: a tokenizer may treat the first of a text differently


class _Ids(Protocol):
    @property
    def ids(self) -> list[int]: ...
    @property
    def prompt(self) -> int: ...


class StopStrings:
    """Looks at the text of the last few sampled tokens, and only when the newest could be the end of a stop string.

    Arguments:
        stops: the strings
        decode: ids to text, special tokens included
        text_of: text of each id alone, by id
    """

    def __init__(
        self, stops: Sequence[str], *, decode: Callable[[list[int]], str], text_of: Callable[[int], str]
    ) -> None:
        self._stops = tuple(stops)
        self._ends = frozenset(stop[-1] for stop in stops)
        self._reach = max(len(stop.encode()) for stop in stops) + _SLACK
        self._decode = decode
        self._text_of = text_of

    def completed(self, generation: _Ids) -> bool:
        """True when the last token completes a stop string; earlier ones would have ended it before."""
        ids = generation.ids
        newest = self._text_of(ids[-1])
        if "\ufffd" not in newest and self._ends.isdisjoint(newest):
            return False
        text = self._decode(ids[max(generation.prompt, len(ids) - self._reach) :])
        return any(stop in text for stop in self._stops)
