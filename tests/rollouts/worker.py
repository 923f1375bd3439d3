"""Many commands in one process, since importing torch and Transformers takes longer than all the rest: one line of JSON in, one out.

In: ``{"make": FOLDER}`` makes the models; ``{"words": [...]}`` is a command line of rayrl-debug. Out: exit code, stdout and stderr.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
from pathlib import Path

from models import make_all

from ray_rl_debug.commands.cli import main


def serve() -> None:
    answers = sys.stdout
    for line in sys.stdin:
        asked, out, err = json.loads(line), io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = make_all(Path(asked["make"])) or 0 if "make" in asked else main(asked["words"])
        print(json.dumps([code, out.getvalue(), err.getvalue()]), file=answers, flush=True)


if __name__ == "__main__":
    serve()
