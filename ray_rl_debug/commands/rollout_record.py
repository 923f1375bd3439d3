"""``rayrl-debug rollout record``: keep what an inference endpoint answers."""

from __future__ import annotations

from pathlib import Path

import click

from ray_rl_debug.commands.paths import PatientPath

EPILOG = """\b
Examples:
  rayrl-debug rollout record http://127.0.0.1:8000/v1 -o answers.jsonl
  OPENAI_BASE_URL=http://127.0.0.1:8400/v1 python agent.py  # asks through it
"""


@click.command(epilog=EPILOG)
@click.argument("engine", metavar="URL")
@click.option("-o", "--output", "file", type=PatientPath(dir_okay=False, path_type=Path), metavar="FILE", required=True, help="File to write.")
@click.option("--port", type=click.IntRange(0, 65535), default=8400, show_default=True, help="Port on 127.0.0.1; 0 takes a free one.")
@click.option("--timeout", "timeout_s", type=click.FloatRange(min=1), default=600.0, show_default=True, help="Seconds for one answer.")
@click.option("-q", "--quiet", is_flag=True, help="Show no progress on stderr.")
def record(engine: str, file: Path, port: int, timeout_s: float, quiet: bool) -> int:
    """Keep what an inference endpoint answers.

    Listens on 127.0.0.1, passes every request on to URL, and writes it to FILE with its whole answer, streams included. Headers, and so keys, are not
    kept. The address to use is printed; Ctrl-C ends it. rollout serve FILE then answers without an engine.
    """
    from ray_rl_debug.commands.options import progress
    from ray_rl_debug.endpoints import loopback
    from ray_rl_debug.endpoints.exchanges import Writer
    from ray_rl_debug.model.errors import EXIT_OK

    show = progress(quiet)
    silent = loopback.why_silent(engine)
    writer = Writer(file)
    if silent is not None:
        show(f"{engine} cannot be reached now ({silent}); requests fail until it can be")
    try:
        loopback.record(engine, writer, port, click.echo, show, timeout_s=timeout_s)
    finally:
        writer.close()
    show(f"{writer.count} answers in {file}" if writer.count else "no answer came, so no file was kept")
    return EXIT_OK
