"""Our exceptions: what happened, why it usually happens, what to type.

The command line shows ``error:``, ``hint:`` and ``id:``; with ``--json`` the same three as a document.
"""

from __future__ import annotations

EXIT_OK = 0
EXIT_FINDINGS = 1
EXIT_USAGE = 2
EXIT_NO_VERDICT = 3
EXIT_INTERRUPTED = 130


class RayRlDebugError(Exception):
    """Something went wrong that has no number of its own. It may well be a fault of ours: please tell us what -v prints."""

    id = "RRD950"
    hint = "run the command again with -v to see where it failed"
    exit_code = EXIT_NO_VERDICT

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        if hint is not None:
            self.hint = hint


class NoClusterError(RayRlDebugError):
    """No Ray cluster was found on this machine and no address was given."""

    id = "RRD951"
    hint = "give --address HOST:PORT (ray start prints it), or look at this node without Ray: rayrl-debug snapshot --here"


class SeveralClustersError(RayRlDebugError):
    """More than one Ray cluster runs here; we do not guess."""

    id = "RRD952"
    hint = "choose one with --address"
    exit_code = EXIT_USAGE


class AuthenticationRefusedError(RayRlDebugError):
    """The cluster uses token authentication and refused ours."""

    id = "RRD953"
    hint = "use the token of the user who started the cluster: set RAY_AUTH_TOKEN_PATH, and RAY_AUTH_MODE=token"


class ClusterUnreachableError(RayRlDebugError):
    """The address does not answer."""

    id = "RRD954"
    hint = "check the address; if Ray itself is stuck, look at this node without it: rayrl-debug snapshot --here"


class UnreadableFileError(RayRlDebugError):
    """A snapshot or a dump cannot be read."""

    id = "RRD955"
    hint = "the file may be cut off, or from another tool: copy it again, or take a new snapshot"


class MissingToolError(RayRlDebugError):
    """A program we need is not there."""

    id = "RRD956"
    hint = "pip install py-spy"


class UsageError(RayRlDebugError):
    """The command line asks for something that cannot be."""

    id = "RRD957"
    hint = "see --help"
    exit_code = EXIT_USAGE


class OutputError(RayRlDebugError):
    """The result could not be written."""

    id = "RRD958"
    hint = "choose another folder with --output"


class MissingExporterError(RayRlDebugError):
    """A way out for telemetry is not installed, or its port is taken."""

    id = "RRD960"
    hint = "pip install 'ray-rl-debug[otlp]'"
    exit_code = EXIT_USAGE


class MissingExtraError(RayRlDebugError):
    """A library that only some commands need is not installed."""

    id = "RRD961"
    hint = "pip install 'ray-rl-debug[metrics]'"
    exit_code = EXIT_USAGE


class EndpointError(RayRlDebugError):
    """An inference endpoint does not answer, or not as OpenAI's interface does."""

    id = "RRD962"
    hint = "give the address up to /v1, and try: curl ADDRESS/models"


class StalledOutputError(OSError):
    """Nobody reads what we write to standard output."""


class InterruptedCommandError(RayRlDebugError):
    """The command was ended by Ctrl-C or a signal."""

    id = "RRD963"
    hint = "start it again; a snapshot keeps what was gathered so far when it is given -o DIR"
    exit_code = EXIT_INTERRUPTED


class ShortageError(RayRlDebugError):
    """The machine, or a limit of the shell, refuses memory, descriptors, processes or space that the command needs."""

    id = "RRD964"
    hint = "see what is short: ulimit -a, free -m, df -h"
