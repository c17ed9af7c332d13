"""Start the learner process. No torch here."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from windage.errors import LearnerError
from windage.learner.client import LearnerClient
from windage.learner.rpc import Reply, rebuild
from windage.learner.setup import LearnerSetup
from windage.processes import Child, ChildDied, spawn

__all__ = ["launch"]


async def launch(
    setup: LearnerSetup,
    *,
    log: Path,
    deadline: float = 600.0,
    call_deadline: float = 3600.0,
    note: Callable[[str], None] | None = None,
) -> tuple[Child, LearnerClient]:
    """Start ``python -m windage.learner`` and wait until its model is loaded; ``note`` hears progress lines.

    Raises:
        ConfigError, DataError: a setting or the model is wrong.
        LearnerError: it ended before it was ready; its last words are in the message.
        DeadlineExceeded: it was not ready within ``deadline`` seconds.
    """
    try:
        child = await spawn(
            "learner",
            "windage.learner",
            setup.model_dump(mode="json"),
            log=log,
            env=_environment(setup.learner.threads),
            deadline=deadline,
        )
    except ChildDied as error:
        raise LearnerError(str(error)) from error
    if "error" in child.ready:
        await child.stop()
        raise rebuild(Reply(status="error", kind=child.ready["kind"], text=child.ready["error"]))
    return child, LearnerClient(child, deadline=call_deadline, note=note)


def _environment(threads: int) -> dict[str, str]:
    """Threads fixed before torch loads; waiting threads sleep, because engine and learner share the cores."""
    count = threads or max(1, (os.cpu_count() or 2) // 2)
    return {
        "OMP_NUM_THREADS": str(count),
        "OMP_WAIT_POLICY": "PASSIVE",
        "CUBLAS_WORKSPACE_CONFIG": ":4096:8",
        "TOKENIZERS_PARALLELISM": "false",
    }
