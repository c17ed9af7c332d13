"""Start an embedded engine as a child process."""

from __future__ import annotations

from pathlib import Path

from windage.engines.config import EngineConfig
from windage.engines.embedded.client import EngineClient
from windage.processes import Child, spawn

__all__ = ["launch"]


async def launch(
    config: EngineConfig,
    *,
    log: Path,
    policy_folder: str | None = None,
    name: str = "engine",
    deadline: float = 600.0,
) -> tuple[Child, EngineClient]:
    """Start an engine and wait until it serves.

    Arguments:
        config: model and sizes
        log: file its messages go to
        policy_folder: a published ``version-<n>`` folder; its weights and its version are loaded before it serves
        name: of the process, in messages
        deadline: seconds until it must serve

    Raises:
        ChildDied: it could not start; the end of its log is in the message.
        DeadlineExceeded: it took too long.
    """
    child = await spawn(
        name,
        "windage.engines.embedded",
        {"engine": config.model_dump(mode="json"), "policy_folder": policy_folder},
        log=log,
        env={"OMP_WAIT_POLICY": "PASSIVE", "TOKENIZERS_PARALLELISM": "false"},
        deadline=deadline,
    )
    return child, EngineClient(child.ready["url"])
