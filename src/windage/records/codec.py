"""Records to bytes and back: msgpack with numpy arrays as raw buffers. Used by the store and the process borders."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec
import numpy as np

from windage.errors import RecordError, explain

__all__ = ["decode", "encode"]

T = TypeVar("T")


class _Array(msgspec.Struct, array_like=True, frozen=True):
    dtype: str
    shape: tuple[int, ...]
    data: bytes


def _to_plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        contiguous = np.ascontiguousarray(value)
        return _Array(contiguous.dtype.str, contiguous.shape, contiguous.tobytes())
    if isinstance(value, np.generic):
        return value.item()
    raise NotImplementedError(type(value))


def _from_plain(kind: type, value: Any) -> Any:
    origin = getattr(kind, "__origin__", kind)
    if origin is np.ndarray:
        array = msgspec.convert(value, _Array)
        return np.frombuffer(array.data, dtype=np.dtype(array.dtype)).reshape(array.shape)
    raise NotImplementedError(kind)


_encoder = msgspec.msgpack.Encoder(enc_hook=_to_plain)


def encode(record: Any) -> bytes:
    """Serialise any record of this package (or a container of them)."""
    return _encoder.encode(record)


def decode(data: bytes, kind: type[T]) -> T:
    """Rebuild a record; its ``__post_init__`` checks run again.

    Raises:
        RecordError: the bytes are not a ``kind``, or the record breaks its invariants.
    """
    try:
        return msgspec.msgpack.decode(data, type=kind, dec_hook=_from_plain)
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise RecordError(explain(f"cannot decode {kind.__name__}", got=str(error))) from error
