"""`linocut doctor`: what works on this machine."""

import json
from typing import Annotated, Any

import typer


def doctor(as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False) -> None:
    """Show versions and devices, and check that every backend gives the same bits; exit 1 if one does not."""
    from linocut.recipes.doctor import examine

    report = examine()
    if as_json:
        typer.echo(json.dumps(report))
    else:
        _print(report)
    if not report["healthy"]:
        raise typer.Exit(1)


def _print(report: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console()
    about = Table(show_header=False, box=None)
    about.add_row("Python", f"{report['python']} on {report['platform']}")
    about.add_row("CPU", f"{report['cpu']}, {report['cores']} cores, {report['torch_threads']} torch threads")
    about.add_row("GPU", ", ".join(report["gpus"]) or "none that torch can use")
    versions = report["packages"].items()
    about.add_row("Packages", ", ".join(f"{name} {version or '(not installed)'}" for name, version in versions))
    console.print(about, highlight=False)
    colors = {"ok": "green", "unavailable": "dim", "differs": "red", "broken": "red"}
    table = Table("backend", "device", "", "detail", "seconds")
    for check in report["backends"]:
        status = f"[{colors[check['status']]}]{check['status']}[/]"
        seconds = f"{check['seconds']:.2f}" if check["seconds"] else ""
        table.add_row(check["backend"], check["device"], status, escape(check["detail"]), seconds)
    console.print(table)
    for warning in report["warnings"]:
        console.print(f"[yellow]warning[/] {escape(warning)}", soft_wrap=True)
