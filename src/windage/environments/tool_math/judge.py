"""The scoring process: ``python -m windage.environments.tool_math.judge``, one question and one verdict at a time.

Whatever a scorer raises ends this process; the sample is then invalid and the process is replaced. So is a process that
is asked for more than its memory. Time is kept by the controller, which kills it.
"""

from __future__ import annotations

import json
import logging
import resource
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from windage.processes import Inbox

__all__ = ["main", "verdict"]

_RIGHT = 0.99


def main() -> None:
    """Serve until the controller goes away."""
    inbox = Inbox()
    memory = int(inbox.config["memory_mb"]) * 2**20
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    logging.getLogger("math_verify").setLevel(logging.ERROR)
    inbox.ready({"ready": True})
    while True:
        request = json.loads(inbox.receive())
        inbox.send(json.dumps({"right": verdict(**request)}).encode())


def verdict(*, answer: str, gold: str, scorer: Mapping[str, Any]) -> bool:
    """True when ``answer`` is right: by the family's scorer where there is one, else by math-verify."""
    if not scorer:
        return _same_value(answer, gold)
    family = _family(scorer["family"], json.dumps(scorer["settings"]), scorer["seed"])
    return float(family.score_answer(answer, family[scorer["index"]])) >= _RIGHT


def _same_value(answer: str, gold: str) -> bool:
    from math_verify import parse, verify

    return bool(verify(_parsed(parse, gold), _parsed(parse, answer), timeout_seconds=None))


def _parsed(parse: Any, text: str) -> Any:
    bare = text.strip().strip("$")
    return parse(f"${bare}$", parsing_timeout=None) or parse(bare, parsing_timeout=None)


@lru_cache(maxsize=32)
def _family(name: str, settings: str, seed: int) -> Any:
    from windage.environments.tool_math.reasoning_gym_source import open_family

    return open_family(name, json.loads(settings), seed=seed)


if __name__ == "__main__":
    main()
