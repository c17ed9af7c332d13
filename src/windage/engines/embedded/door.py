"""The door: a request that cannot be served is refused here, before it can hurt the ones that run."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from windage.engines.embedded.model import ServedModel
from windage.engines.protocol import GenerateRequest
from windage.errors import EngineError, explain

__all__ = ["as_ids", "check_ids", "check_request", "check_score"]


def check_request(request: GenerateRequest, model: ServedModel, *, cache: int) -> None:
    """Refuse what the model or a cache of ``cache`` tokens cannot hold.

    Raises:
        EngineError: with the reason.
    """
    name, sampling = f"request {request.request_id!r}", request.sampling
    check_ids(request.prompt_ids, f"{name}: prompt", limit=model.limit)
    need, room = len(request.prompt_ids) + sampling.max_tokens, min(model.context, cache)
    if need > room:
        raise EngineError(
            explain(
                f"{name} does not fit",
                got=f"{len(request.prompt_ids)} prompt + {sampling.max_tokens} new tokens",
                expected=f"<= {model.context} (context) and <= {cache} (cache)",
            )
        )
    if sampling.stop and model.tokenizer is None:
        raise EngineError(
            explain(f"{name}: stop strings need a tokenizer", got=f"none in {model.folder}", do="use stop_token_ids")
        )
    if "" in sampling.stop:
        raise EngineError(explain(f"{name}: a stop string is empty"))
    if sampling.routes and model.capture is None:
        raise EngineError(
            explain(f"{name} asks for routes", do="start the engine of a mixture-of-experts model with routes=true")
        )


def check_score(rows: Sequence[NDArray[np.int32]], temperature: float, model: ServedModel) -> None:
    """Refuse rows that cannot be scored.

    Raises:
        EngineError: with the reason.
    """
    if not 0.0 < temperature < float("inf"):
        raise EngineError(explain("score: temperature is out of range", got=temperature, expected="finite and > 0"))
    for index, row in enumerate(rows):
        check_ids(row, f"score: row {index}", limit=model.limit)
        if len(row) > model.context:
            raise EngineError(
                explain(f"score: row {index} is too long", got=len(row), expected=f"<= {model.context} (context)")
            )


def check_ids(ids: NDArray[np.int32], name: str, *, limit: int) -> None:
    """Refuse anything but a non-empty 1-D array of ids below ``limit``.

    Raises:
        EngineError: with the reason.
    """
    if ids.ndim != 1 or not np.issubdtype(ids.dtype, np.integer):
        raise EngineError(
            explain(f"{name} ids are malformed", got=f"{ids.dtype} {ids.shape}", expected="integers [length]")
        )
    if not len(ids):
        raise EngineError(explain(f"{name} is empty", expected="at least one token"))
    if int(ids.min()) < 0 or int(ids.max()) >= limit:
        raise EngineError(
            explain(
                f"{name} has ids outside the vocabulary",
                got=[int(i) for i in ids if not 0 <= i < limit][:8],
                expected=f"0 <= id < {limit}",
            )
        )


def as_ids(ids: Sequence[int], *, limit: int) -> NDArray[np.int32]:
    """Ids from JSON as an array; numbers of any size are refused here, not overflowed.

    Raises:
        EngineError: an id outside the vocabulary.
    """
    if wrong := [token for token in ids if not 0 <= token < limit]:
        raise EngineError(
            explain("the prompt has ids outside the vocabulary", got=wrong[:8], expected=f"0 <= id < {limit}")
        )
    return np.array(ids, dtype=np.int32)
