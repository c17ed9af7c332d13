"""``windage train`` and ``windage resume``."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import anyio
import typer

from windage.cli.border import remember_run
from windage.runtime.explain_config import explain_config
from windage.runtime.progress import open_progress
from windage.runtime.recipe import load_recipe, load_resolved
from windage.runtime.run_folder import RunFolder, default_run_dir

__all__ = ["resume", "train"]


def train(recipe: str, overrides: Sequence[str], *, run_dir: Path | None, dry_run: bool, quiet: bool) -> None:
    """Check the recipe; then print it (``dry_run``), or train it into a run folder."""
    config = load_recipe(recipe, overrides)
    if dry_run:
        typer.echo(explain_config(config))
        return
    from windage.runtime import trainer

    run = run_dir or default_run_dir(config.name)
    remember_run(run)
    typer.echo(f"run folder: {run}")
    progress = open_progress(steps=config.steps, title=config.name, quiet=quiet)
    anyio.run(partial(trainer.train, config, run, progress=progress))
    _point_to(run)


def resume(run: Path, *, quiet: bool) -> None:
    """Go on with a stopped run under the settings it was started with."""
    folder = RunFolder.open(run)
    config = load_resolved(folder.config)
    lines = folder.read_metrics()
    done = int(lines[-1]["step"]) + 1 if lines else 0
    from windage.runtime import trainer

    progress = open_progress(steps=config.steps, first_step=done, title=config.name, quiet=quiet)
    anyio.run(partial(trainer.resume, run, progress=progress))
    _point_to(run)


def _point_to(run: Path) -> None:
    folder = RunFolder(run)
    if folder.report.exists():
        typer.echo(f"report: {folder.report}")
