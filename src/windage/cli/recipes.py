"""``windage recipes``: what there is, and what is in it."""

from __future__ import annotations

from collections.abc import Sequence

import typer

from windage.runtime.recipe import dump_config, find_recipe, list_recipes, load_recipe

__all__ = ["list_all", "show"]


def list_all() -> None:
    """One line a recipe: its name and its description."""
    recipes = list_recipes()
    width = max(len(recipe.name) for recipe in recipes)
    for recipe in recipes:
        typer.echo(f"{recipe.name:<{width}}  {recipe.description}")
    typer.echo("\nwindage recipes show NAME prints one; windage train NAME [KEY=VALUE]... trains it.")


def show(recipe: str, overrides: Sequence[str], *, resolved: bool) -> None:
    """The recipe's own text, or every setting with its defaults filled in."""
    if resolved or overrides:
        typer.echo(dump_config(load_recipe(recipe, overrides)), nl=False)
    else:
        typer.echo(find_recipe(recipe).read_text(encoding="utf-8"), nl=False)
