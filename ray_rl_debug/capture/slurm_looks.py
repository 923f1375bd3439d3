"""Nodes that give nothing through Ray, looked at by a step of the Slurm job that the cluster runs in: ``srun --overlap``, one for all of them."""

from __future__ import annotations

import os
import re
import shutil
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence

import msgspec

from ray_rl_debug.bounded.programs import Finished, run_bounded
from ray_rl_debug.collect.options import CollectOptions
from ray_rl_debug.model import codec
from ray_rl_debug.model.errors import RayRlDebugError, UnreadableFileError
from ray_rl_debug.model.snapshot import Node, RayNode
from ray_rl_debug.privacy.redact import made_safe
from ray_rl_debug.slurm.allocation import clean
from ray_rl_debug.slurm.node_lines import read_lines, write_lines

START_S = 10.0
"""For srun to start its tasks and to bring their output back; with less time than twice this it is not tried."""
MAX_BYTES = 256 << 20
_TELL = "import sys; sys.path[:] = {path!r}; from ray_rl_debug.capture.slurm_looks import tell; tell()"


class SlurmLooks:
    """Of the job that we run in."""

    def __init__(
        self,
        job: str,
        names: Mapping[str, str],
        collect: CollectOptions,
        *,
        env: Mapping[str, str] = os.environ,
        run: Callable[..., Finished] = run_bounded,
    ) -> None:
        self._job = job
        self._names = names
        self._collect = collect
        self._env = env
        self._run = run
        self._threads: list[threading.Thread] = []
        self.found: dict[str, Node] = {}
        """By Ray's node id."""
        self.failed: dict[str, str] = {}

    def start(self, nodes: Sequence[RayNode], until: float) -> None:
        """Begin to look at these nodes; what has come by the time `until` (monotonic) is in `found`."""
        room = until - time.monotonic() - START_S
        if room < START_S:
            self.failed.update(dict.fromkeys((n.node_id for n in nodes), "no time was left for srun"))
            return
        thread = threading.Thread(target=self._look, args=(tuple(nodes), room), daemon=True, name="srun")
        self._threads.append(thread)
        thread.start()

    def finish(self, until: float) -> None:
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))

    def _look(self, nodes: Sequence[RayNode], room_s: float) -> None:
        by_host = {slurm_name(n, self._env): n for n in nodes}
        samples = min(self._collect.samples, 1 + int(room_s / 2 / self._collect.interval_s))
        asked = msgspec.structs.replace(self._collect, samples=samples, timeout_s=max(1.0, room_s / 2), pyspy=None, driver_pids=None)
        argv = [*step(self._job, list(by_host)), "timeout", "-k", "5", f"{room_s:.0f}", sys.executable, "-c", _TELL.format(path=sys.path)]
        try:
            done = self._run([*argv, codec.encode(asked).decode()], room_s + START_S / 2, max_bytes=MAX_BYTES, env=clean(self._env))
        except OSError as e:
            self.failed.update(dict.fromkeys((n.node_id for n in nodes), f"srun: {e.strerror}"))
            return
        answers = read_lines(done.out.decode("utf-8", "replace"))
        said = done.err.decode("utf-8", "replace").strip().splitlines()
        for host, node in by_host.items():
            try:
                found = made_safe(codec.decode_node(answers[host]))
                self.found[node.node_id] = msgspec.structs.replace(found, node_id=node.node_id, name=self._names[node.node_id], ip=node.ip)
            except KeyError:
                self.failed[node.node_id] = (
                    f"srun gave nothing in {room_s:.0f} s" if done.timed_out else f"srun: {said[-1][:160] if said else done.code}"
                )
            except (UnreadableFileError, ValueError, RecursionError):
                self.failed[node.node_id] = "what came through srun is damaged"


def step(job: str, hosts: Sequence[str]) -> list[str]:
    """The head of a command in a step beside what runs on these nodes; it takes nothing from the job."""
    count = len(hosts)
    size = f"--jobid={job} --overlap --mem=0 --cpu-bind=none --nodes={count} --ntasks={count} --ntasks-per-node=1".split()
    return ["srun", *size, f"--nodelist={','.join(hosts)}", "--kill-on-bad-exit=0"]


def own_job(env: Mapping[str, str] = os.environ, which: Callable[[str], str | None] = shutil.which) -> str | None:
    """The Slurm job that we run in, where srun is here."""
    job = env.get("SLURM_JOB_ID", "")
    return job if re.fullmatch(r"\d+(_\d+)?", job) and which("srun") is not None else None


def is_host(node: RayNode) -> bool:
    """Has the node a name that may stand in a list of Slurm's?"""
    return re.fullmatch(r"[A-Za-z0-9._-]+", node.host or "") is not None


def slurm_name(node: RayNode, env: Mapping[str, str] = os.environ) -> str:
    """Slurm knows most nodes by their short names."""
    host = node.host or node.ip
    return host if host in env.get("SLURM_JOB_NODELIST", "") else host.partition(".")[0]


def tell() -> None:
    """On a node, started by srun: its facts as lines."""
    from ray_rl_debug.collect.node import collect_node

    host = os.environ.get("SLURMD_NODENAME") or os.uname().nodename
    try:
        node = collect_node(msgspec.json.decode(sys.argv[1], type=CollectOptions))
    except RayRlDebugError as e:
        sys.exit(f"{host}: {e}")
    sys.stdout.writelines(f"{line}\n" for line in write_lines(host, codec.encode(node)))
