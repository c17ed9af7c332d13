"""TextWriter: sampled ids to the text a reader may see, piece by piece."""

from __future__ import annotations

from collections.abc import Callable, Sequence

__all__ = ["TextWriter", "before_stop"]

_UNFINISHED = "\ufffd"


class TextWriter:
    """Feed ids one at a time; what is returned concatenates to the final text.

    A character is held back until it is complete, and text that may become a stop string until it is decided; a stop
    string and what follows it are never returned.
    """

    def __init__(self, decode: Callable[[list[int]], str], stops: Sequence[str] = ()) -> None:
        self._decode = decode
        self._stops = tuple(stops)
        self._ids: list[int] = []
        self._shown = 0  # ids[:shown] are in the text
        self._context = 0  # where decoding starts, so that a token is never the first of a text by accident
        self.text = ""
        self.written = 0  # characters returned so far
        self._stopped = False

    def push(self, token: int) -> str:
        """Text that has become certain with this token."""
        self._ids.append(token)
        self._extend(last=False)
        return self._release(last=False)

    def finish(self) -> str:
        """The rest."""
        self._extend(last=True)
        return self._release(last=True)

    def _extend(self, *, last: bool) -> None:
        before = self._decode(self._ids[self._context : self._shown])
        after = self._decode(self._ids[self._context :])
        if len(after) > len(before) and (last or not after.endswith(_UNFINISHED)):
            self.text += after[len(before) :]
            self._context, self._shown = self._shown, len(self._ids)

    def _release(self, *, last: bool) -> str:
        if self._stopped:
            return ""
        found = [place for stop in self._stops if (place := self.text.find(stop, max(0, self.written))) >= 0]
        if found:
            self._stopped = True
            end = min(found)
        else:
            end = len(self.text) - (0 if last else self._undecided())
        piece = self.text[self.written : end]
        self.written = max(self.written, end)
        return piece

    def _undecided(self) -> int:
        """Length of the longest end of the text that begins a stop string."""
        longest = 0
        for stop in self._stops:
            for length in range(min(len(stop) - 1, len(self.text)), longest, -1):
                if self.text.endswith(stop[:length]):
                    longest = length
                    break
        return longest


def before_stop(text: str, stops: Sequence[str]) -> str:
    """The text up to the first stop string.

    >>> before_stop("one two", ["two", "e t"])
    'on'
    """
    return text[: min((place for stop in stops if (place := text.find(stop)) >= 0), default=len(text))]
