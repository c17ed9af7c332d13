"""``windage eval``: the held-out tasks under a run's newest checkpoint, or under a recipe's untrained model."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio

from windage.errors import DataError, explain
from windage.runtime.checkpoints import Checkpoints
from windage.runtime.config import RunConfig
from windage.runtime.fleet import open_fleet
from windage.runtime.run_folder import RunFolder

__all__ = ["evaluate_config"]


async def evaluate_config(config: RunConfig, *, run_dir: Path | None) -> Mapping[str, Any]:
    """Success, reward and counts on the held-out tasks. ``run_dir`` is read, never written.

    Raises:
        DataError: the run has no complete checkpoint, or the recipe has no held-out tasks.
    """
    if not config.evaluation.tasks:
        raise DataError(explain("nothing to evaluate", got="evaluation.tasks=0", do="set evaluation.tasks=128"))
    result: dict[str, Any] = {"batches": None, "version": 0, "temperature": config.evaluation.temperature}
    with tempfile.TemporaryDirectory(prefix="windage-eval-") as scratch:
        folder = RunFolder(Path(scratch))
        async with open_fleet(config, folder, note=lambda text: None) as fleet, anyio.create_task_group() as background:
            if run_dir is not None:
                result["batches"], path = _newest(run_dir)
                result["version"] = (await fleet.learner.load(str(path))).version
            await fleet.publisher.publish(result["version"])
            await fleet.serve(background)
            result.update((await fleet.evaluate()).as_dict())
            background.cancel_scope.cancel()
    return result


def _newest(run_dir: Path) -> tuple[int, Path]:
    checkpoints = Checkpoints(RunFolder(run_dir).checkpoints, keep=1)
    complete = checkpoints.complete()
    if not complete:
        raise DataError(
            explain(
                f"{run_dir} has no complete checkpoint",
                expected="at least the one made before batch 0",
                do=f"go on with the run: windage resume {run_dir}",
            )
        )
    return complete[-1], checkpoints.path(complete[-1])
