"""``windage eval``: held-out success of a run's last checkpoint, or of the model a recipe starts from."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import anyio
import typer

from windage.cli.border import remember_run
from windage.runtime.json_lines import to_json
from windage.runtime.recipe import load_recipe, load_resolved, override
from windage.runtime.run_folder import RunFolder

__all__ = ["evaluate"]


def evaluate(target: str, overrides: Sequence[str]) -> None:
    """Play the held-out tasks and print the result as JSON. A run folder is read, never written."""
    run = Path(target)
    if RunFolder(run).config.is_file():
        remember_run(run)
        config = override(load_resolved(RunFolder(run).config), overrides)
    else:
        config, run = load_recipe(target, overrides), None
    from windage.runtime import evaluation

    result = anyio.run(partial(evaluation.evaluate_config, config, run_dir=run))
    typer.echo(to_json(result, indent=2))
