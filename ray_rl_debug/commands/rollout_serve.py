"""``rayrl-debug rollout serve``: an endpoint that answers from a recording."""

from __future__ import annotations

from pathlib import Path

import click

from ray_rl_debug.commands.paths import PatientPath

EPILOG = """\b
Examples:
  rayrl-debug rollout serve answers.jsonl --port 8000
  rayrl-debug rollout serve answers.jsonl --any --latency 0.5
"""


@click.command(epilog=EPILOG)
@click.argument("file", type=PatientPath(exists=True, dir_okay=False, path_type=Path), metavar="FILE")
@click.option("--port", type=click.IntRange(0, 65535), default=8400, show_default=True, help="Port on 127.0.0.1; 0 takes a free one.")
@click.option("--any", "any_answer", is_flag=True, help="Give some recorded answer to questions that were not recorded.")
@click.option("--latency", "latency_s", type=click.FloatRange(min=0), default=0.0, show_default=True, help="Seconds before each answer.")
@click.option("-q", "--quiet", is_flag=True, help="Do not tell on stderr what was not recorded.")
def serve(file: Path, port: int, any_answer: bool, latency_s: float, quiet: bool) -> int:
    """Answer from a recording, without an engine.

    Listens on 127.0.0.1 with the paths of the recorded endpoint. The same request gets the same answer; several recorded answers come in turn. The
    same question with other sampling parameters gets the recorded answer too; any other question gets 404.
    """
    from ray_rl_debug.commands.options import progress
    from ray_rl_debug.endpoints import loopback
    from ray_rl_debug.endpoints.exchanges import Shelf, read_exchanges
    from ray_rl_debug.model.errors import EXIT_OK

    shelf = Shelf(read_exchanges(file), any_answer=any_answer)
    loopback.serve(shelf, port, click.echo, progress(quiet), latency_s=latency_s)
    return EXIT_OK
