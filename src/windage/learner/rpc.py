"""Frames between controller and learner: one request, any number of notes, one reply. No torch here."""

from __future__ import annotations

import msgspec

from windage import errors
from windage.errors import LearnerError, WindageError

__all__ = ["Reply", "Request", "rebuild", "refuse"]


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """Call ``method`` with the record encoded in ``body`` and one number (steps, version)."""

    method: str
    body: bytes = b""
    number: int = 0


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """``status``: ``ok`` (result in ``body``), ``error`` (``kind`` names its class), or ``note`` (more follows)."""

    status: str
    body: bytes = b""
    kind: str = ""
    text: str = ""


def refuse(error: WindageError) -> Reply:
    """The reply that carries an error of our tree to the controller."""
    return Reply(status="error", kind=type(error).__name__, text=str(error))


def rebuild(reply: Reply) -> WindageError:
    """The error in ``reply``, in its own class; a class this side does not know becomes a ``LearnerError``.

    >>> type(rebuild(Reply(status="error", kind="DataError", text="gone"))).__name__
    'DataError'
    """
    kind = getattr(errors, reply.kind, LearnerError)
    if not (isinstance(kind, type) and issubclass(kind, WindageError)):
        kind = LearnerError
    return kind(reply.text)
