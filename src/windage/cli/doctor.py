"""``windage doctor``: examine a recipe by really starting its engine and learner for a moment."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import anyio
import typer

from windage.runtime.explain_config import explain_config
from windage.runtime.recipe import load_recipe

__all__ = ["doctor"]


def doctor(recipe: str, overrides: Sequence[str]) -> None:
    """Print the resolved bounds, then what the measurements found."""
    config = load_recipe(recipe, overrides)
    typer.echo(explain_config(config))
    from windage.runtime import doctor as measurements

    typer.echo(anyio.run(partial(measurements.diagnose, config)))
