"""``rayrl-debug report``: analyse what was saved, here or elsewhere."""

from __future__ import annotations

from pathlib import Path

import click

from ray_rl_debug.commands.durations import Duration
from ray_rl_debug.commands.options import exit_code, rendering, show_report, tell
from ray_rl_debug.commands.pasted import with_pasted, without_folder
from ray_rl_debug.commands.paths import PatientPath
from ray_rl_debug.commands.reading import reading
from ray_rl_debug.model.errors import EXIT_NO_VERDICT, OutputError
from ray_rl_debug.saving.files import save

EPILOG = """\b
Examples:
  rayrl-debug report hang/snapshot.json.gz
  rayrl-debug report hang/*/snapshot.json.gz  # from several nodes, see --here
  rayrl-debug report dumps/                   # py-spy, pystack, faulthandler
  rayrl-debug report rank0.txt rank1.txt      # stacks collected by hand
  rayrl-debug report - < issue.txt            # a pasted issue, as it is
  rayrl-debug report /tmp/nccl_trace_rank_*   # Flight Recorder dumps
  rayrl-debug report run/hang_detector/       # what Ray Train captured
  rayrl-debug report slurm-812.out ray/logs/  # known errors in logs
  rayrl-debug report --hung-for 40m dumps/    # it has hung for 40 min
  rayrl-debug report --format html hang/snapshot.json.gz > page.html
"""


@click.command(epilog=EPILOG)
@click.argument("files", nargs=-1, required=True, type=PatientPath(exists=True, one_of_many=True, allow_dash=True, path_type=Path), metavar="FILE...")
@click.option("--hung-for", type=Duration(), metavar="TIME", help="How long the run has hung, if you know it: 90s, 40m, 2h.")
@rendering
def report(
    files: tuple[Path, ...], hung_for: float | None, format_: str, as_json: bool, output: Path | None, verbose: bool, quiet: bool, no_color: bool
) -> int:
    """Analyse saved snapshots, stacks, counters and logs.

    Works on any machine, without Ray. FILE is a snapshot (several are merged), a saved report.json, stacks of any tool (py-spy, pystack, gdb,
    faulthandler, torch's debug server) as printed or as pasted into an issue, a Flight Recorder dump, an answer of ncclras, or a log. A folder
    stands for its files, - for standard input, and <(COMMAND) is read too. A file that cannot be used is listed with the reason; the others are used.

    Stacks that you collected yourself are taken as those of a run that hangs: one look gives a possible cause and what to dump next; equal looks,
    some time apart, give a likely one.
    """
    from ray_rl_debug.imports.folder import load

    with with_pasted(files) as paths, reading(paths, quiet=quiet) as read:
        found = without_folder(load(paths, read=read), paths)
    snapshot = found.snapshot
    if found.report is not None:
        result = found.report
    else:
        from ray_rl_debug.analyze.by_hand import said_to_hang
        from ray_rl_debug.diagnosis.diagnose import diagnose

        assert snapshot is not None
        snapshot = said_to_hang(snapshot, hung_for) if hung_for is not None else snapshot
        result = diagnose(snapshot)
    trouble = None
    if output is not None:
        try:
            save(output, result, snapshot)
        except OutputError as e:
            trouble = e  # a full disk costs the files, not the report
        if trouble is None and not quiet:
            click.echo(f"saved in {output}", err=True)
    show_report(result, snapshot, format_=format_, as_json=as_json, no_color=no_color, verbose=verbose)
    if trouble is not None:
        tell(trouble)
        return EXIT_NO_VERDICT
    return exit_code(result)
