"""``windage eval``: held-out success of a run's last checkpoint, or of a model folder."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import anyio
import typer

from windage.errors import ConfigError, explain
from windage.runtime.config import RunConfig
from windage.runtime.json_lines import to_json
from windage.runtime.recipe import load_recipe, load_resolved, override
from windage.runtime.run_folder import RunFolder

__all__ = ["evaluate"]


def evaluate(target: str, overrides: Sequence[str], *, recipe: str | None) -> None:
    """Evaluate and print the result as JSON."""
    path = Path(target)
    config = _config_of(path, overrides, recipe)
    from windage.runtime import evaluation

    result = anyio.run(partial(evaluation.evaluate_run, path, config))
    typer.echo(to_json(result, indent=2))


def _config_of(path: Path, overrides: Sequence[str], recipe: str | None) -> RunConfig:
    folder = RunFolder(path)
    if folder.config.is_file() and recipe is None:
        return override(load_resolved(folder.config), overrides)
    if recipe is None:
        raise ConfigError(
            explain(
                f"{path} is not a run folder",
                expected="a run folder, or a model folder with --recipe",
                do=f"windage eval {path} --recipe RECIPE",
            )
        )
    return load_recipe(recipe, overrides)
