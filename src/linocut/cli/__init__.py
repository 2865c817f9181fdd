"""The command line: one module a verb, and no logic here."""

from typing import Annotated

import typer
from typer.core import TyperGroup

from linocut import __version__
from linocut.cli import (
    codebook,
    data,
    demo,
    doctor,
    evaluate,
    export,
    models,
    publish,
    report,
    reproduce,
    theory,
    train,
    transform,
    verify,
)
from linocut.cli.memory import keep_freed_memory
from linocut.errors import InputError, told_of_own_code


class Verbs(TyperGroup):
    """The verbs; what a user got wrong is told in one line, with exit status 2."""

    def invoke(self, ctx):
        try:
            return super().invoke(ctx)
        except InputError as reason:
            typer.echo(f"linocut {ctx.invoked_subcommand}: {reason}", err=True)
            raise typer.Exit(2) from None
        except Exception as reason:
            told = told_of_own_code(reason)
            if told is None:
                raise  # a fault of ours: where it was is worth more than a sentence
            typer.echo(f"linocut {ctx.invoked_subcommand}: {told}", err=True)
            raise typer.Exit(2) from None


app = typer.Typer(cls=Verbs, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
app.command("transform")(transform.transform)
app.command("demo")(demo.demo)
app.command("doctor")(doctor.doctor)
app.command("export")(export.export)
app.add_typer(codebook.app, name="codebook")
app.add_typer(data.app, name="data")
app.command("theory")(theory.theory)
app.add_typer(models.app, name="models")
app.command("train")(train.train)
app.command("evaluate")(evaluate.evaluate)
app.command("reproduce")(reproduce.reproduce)
app.command("publish")(publish.publish)
app.command("verify")(verify.verify)
app.command("report")(report.report)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"linocut {__version__}")
        raise typer.Exit


@app.callback()
def linocut(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Content-adaptive pixel discretisation, and an honest test of whether an image defence holds."""


def main() -> None:
    keep_freed_memory()
    app()
