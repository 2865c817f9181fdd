"""The command line: one module a verb, and no logic here."""

import typer

from linocut.cli.theory import theory

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
app.command()(theory)


@app.callback()
def linocut() -> None:
    """Content-adaptive pixel discretisation, and an honest test of whether an image defence holds."""


def main() -> None:
    app()
