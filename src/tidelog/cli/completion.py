"""`tidelog completion SHELL`: a completion script for the shell's start-up file."""

import click
from click.shell_completion import get_completion_class


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the completion script of SHELL; use it with: eval "$(tidelog completion bash)"."""
    from tidelog.cli.main import cli

    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(cli, {}, "tidelog", "_TIDELOG_COMPLETE").source())
