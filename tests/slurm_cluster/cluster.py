"""Start and stop a real Slurm on this machine: slurmctld and munged here, every node in namespaces of its own.

A node has its own network address, host name, process table, /tmp, /dev/shm and home, and its own root of the (version 1) cgroups; folders
under `SlurmCluster.shared` are the shared file system. Nothing outside the state folder is written, except network devices and cgroups,
and nothing but what was started here is stopped.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from ports import free_port

import ray_rl_debug

HERE = Path(__file__).parent
NEEDED = {"slurmctld": "slurm-wlm", "slurmd": "slurm-wlm", "munged": "munge", "ip": "iproute2", "unshare": "util-linux", "runuser": "util-linux"}
CONTROLLERS = ("cpuset", "cpu", "cpuacct", "memory", "freezer", "devices")
CGROUP = Path("/sys/fs/cgroup")
NETWORKS = ("10.231.77", "10.232.77", "172.30.77", "192.168.231")
START_DEADLINE_S = 60.0
KILL_WAIT_S = 8
USER = "nobody"


def why_not() -> str | None:
    """Why a Slurm cannot run here; None when it can."""
    if os.geteuid() != 0:
        return "a real Slurm needs root (namespaces, munge)"
    missing = sorted({package for program, package in NEEDED.items() if shutil.which(program) is None})
    if missing:
        return f"a real Slurm needs: apt-get install --no-install-recommends {' '.join(missing)}"
    done = subprocess.run(["unshare", "--uts", "--mount", "--net", "--pid", "--fork", "true"], capture_output=True, text=True, check=False)
    return f"namespaces are not allowed here: {done.stderr.strip()}" if done.returncode else None


class SlurmCluster:
    """Two nodes, ``n1`` and ``n2``, each claiming every core of this machine."""

    def __init__(self, nodes: int = 2) -> None:
        self.state = Path(tempfile.mkdtemp(prefix="rrd-slurm-", dir="/var/lib"))
        self.state.chmod(0o755)
        self.shared = self.state / "shared"
        self.names = tuple(f"n{i + 1}" for i in range(nodes))
        self._tag = f"rrd{os.getpid() % 100000}"
        self._network = _free_network()
        self._daemons: list[subprocess.Popen[bytes]] = []
        self.environ = {**os.environ, "SLURM_CONF": str(self.state / "slurm.conf")}

    # --- life -------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Returns when all nodes are idle.

        Raises:
            RuntimeError: with the last lines of the daemons' logs.
        """
        for name in ("shared", "log", "spool", "run", "munge"):
            (self.state / name).mkdir()
        self.shared.chmod(0o1777)
        self._start_munge()
        self._write_configuration()
        self._start_network()
        self._spawn(["slurmctld", "-D", "-f", str(self.state / "slurm.conf")], "slurmctld")
        for name in self.names:
            self._start_node(name)
        deadline = time.monotonic() + START_DEADLINE_S
        while self.run(["sinfo", "-h", "-N", "-o", "%T"]).stdout.split() != ["idle"] * len(self.names):
            if time.monotonic() > deadline:
                raise RuntimeError(f"Slurm did not start: {self.logs()}")
            time.sleep(0.2)

    def stop(self) -> None:
        """End all that was started, newest first; a killed node takes its processes with it."""
        for daemon in reversed(self._daemons):
            with contextlib.suppress(ProcessLookupError):
                daemon.send_signal(signal.SIGTERM if "munged" in str(daemon.args) else signal.SIGKILL)
            with contextlib.suppress(subprocess.TimeoutExpired):
                daemon.wait(10)
        for i, name in enumerate(self.names):
            _quiet("ip", "link", "del", f"{self._tag}v{i}")
            _quiet("ip", "netns", "del", f"{self._tag}{name}")
            for controller in CONTROLLERS:
                group = CGROUP / controller / f"{self._tag}{name}"
                for folder in sorted(group.glob("**/"), reverse=True):
                    _retry_rmdir(folder)
        _quiet("ip", "link", "del", f"{self._tag}br")
        shutil.rmtree(self.state, ignore_errors=True)

    # --- use --------------------------------------------------------------------------------------------------------

    def run(self, command: Sequence[str], *, user: str | None = None, cwd: Path | None = None, timeout_s: float = 60, **env: str) -> _Done:
        """Run a Slurm command on this machine, as the submitter would."""
        full = [*(["runuser", "-u", user, "--"] if user else []), *command]
        return subprocess.run(
            full, capture_output=True, text=True, timeout=timeout_s, check=False, cwd=cwd or self.shared, env={**self.environ, **env}
        )

    def sbatch(
        self, script: Path, *arguments: str, options: Sequence[str] = (), user: str | None = None, env: Mapping[str, str] | None = None
    ) -> str:
        """Submit and return the job's number."""
        done = self.run(["sbatch", "--parsable", *options, str(script), *arguments], user=user, cwd=script.parent, **(env or {}))
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def job(self, job_id: str) -> dict[str, str]:
        """Fields of ``scontrol show job``."""
        text = self.run(["scontrol", "--oneliner", "show", "job", job_id]).stdout
        return dict(word.partition("=")[::2] for word in text.split() if "=" in word)

    def wait(self, job_id: str, states: Sequence[str] = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT"), timeout_s: float = 90) -> dict[str, str]:
        """The job's fields as soon as it is in one of `states`."""
        deadline = time.monotonic() + timeout_s
        while True:
            fields = self.job(job_id)
            if fields.get("JobState") in states:
                return fields
            assert time.monotonic() < deadline, f"job {job_id} is {fields.get('JobState')}, not {states}, after {timeout_s} s: {_tail(fields)}"
            time.sleep(0.2)

    def on_node(self, name: str, command: Sequence[str], timeout_s: float = 60) -> _Done:
        """Run a command as root inside a node's namespaces, outside of any job."""
        pid = self._inside(name)
        return subprocess.run(
            ["nsenter", "-t", str(pid), "--all", "--", *command], capture_output=True, text=True, timeout=timeout_s, check=False, env=self.environ
        )

    def processes(self, name: str) -> list[str]:
        """Command lines on a node that belong to jobs: all but Slurm's own and the node's shell."""
        lines = self.on_node(name, ["ps", "-eo", "args", "--no-headers"]).stdout.splitlines()
        own = ("slurmd", "/bin/bash " + str(HERE), "sleep 3600", "ps -eo", "[", "slurmstepd")
        return [line for line in lines if not line.strip().startswith(own)]

    def logs(self) -> str:
        """The last lines of every daemon."""
        return "\n".join(
            f"{p.name}: {line}" for p in sorted((self.state / "log").iterdir()) for line in p.read_text(errors="replace").splitlines()[-5:]
        )

    # --- parts ------------------------------------------------------------------------------------------------------

    def _spawn(self, command: Sequence[str], name: str, **more: object) -> subprocess.Popen[bytes]:
        with (self.state / "log" / f"{name}.out").open("wb") as out:
            # whatever ends the tests ends Slurm too
            daemon = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", *command],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env=self.environ,
                **more,
            )
        self._daemons.append(daemon)
        return daemon

    def _start_munge(self) -> None:
        folder = self.state / "munge"
        (folder / "key").write_bytes(os.urandom(1024))
        (folder / "key").chmod(0o400)
        shutil.chown(folder, "munge", "munge")
        shutil.chown(folder / "key", "munge", "munge")
        files = [
            f"--{k}={folder / v}"
            for k, v in {"key-file": "key", "socket": "socket", "pid-file": "pid", "log-file": "log", "seed-file": "seed"}.items()
        ]
        as_munge = ["setpriv", "--pdeathsig", "KILL", "--reuid=munge", "--regid=munge", "--clear-groups"]
        self._spawn([*as_munge, "munged", "--foreground", *files], "munged")
        deadline = time.monotonic() + 10
        while subprocess.run(["munge", "-n", f"--socket={folder / 'socket'}"], capture_output=True, check=False).returncode:
            assert time.monotonic() < deadline, self.logs()
            time.sleep(0.05)

    def _write_configuration(self) -> None:
        cores, memory = os.cpu_count() or 1, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 20
        has_cgroups = (CGROUP / "cpuset").is_dir()
        gpus = [self.state / f"gpu{i}" for i in range(2)]
        for gpu in gpus:  # Slurm only asks that the device exists
            os.mknod(gpu, 0o666 | 0o020000, os.makedev(1, 3))
        lines = [
            "ClusterName=test",
            f"SlurmctldHost={socket.gethostname().split('.')[0]}({self._network}.1)",
            "SlurmUser=root",
            f"SlurmctldPort={free_port()}",
            "SlurmdPort=16818",
            "AuthType=auth/munge",
            "CredType=cred/munge",
            f"AuthInfo=socket={self.state}/munge/socket",
            "MpiDefault=none",
            f"ProctrackType=proctrack/{'cgroup' if has_cgroups else 'linuxproc'}",
            f"TaskPlugin=task/affinity{',task/cgroup' if has_cgroups else ''}",
            "SelectType=select/cons_tres",
            "SelectTypeParameters=CR_Core_Memory",
            "DefMemPerCPU=500",
            "GresTypes=gpu",
            f"StateSaveLocation={self.state}/spool",
            f"SlurmdSpoolDir={self.state}/spool.%n",
            f"SlurmctldPidFile={self.state}/run/slurmctld.pid",
            f"SlurmdPidFile={self.state}/run/slurmd.%n.pid",
            f"SlurmctldLogFile={self.state}/log/slurmctld.log",
            f"SlurmdLogFile={self.state}/log/slurmd.%n.log",
            "ReturnToService=2",
            f"KillWait={KILL_WAIT_S}",
            "UnkillableStepTimeout=20",
            "OverTimeLimit=0",
            "SchedulerParameters=sched_interval=2,bf_interval=2,batch_sched_delay=0",
            *(
                f"NodeName={name} NodeAddr={self._network}.{10 + i} CPUs={cores} SocketsPerBoard=1 CoresPerSocket={cores} ThreadsPerCore=1"
                f" RealMemory={memory // len(self.names) // 2} Gres=gpu:2 State=UNKNOWN"
                for i, name in enumerate(self.names)
            ),
            "PartitionName=debug Nodes=ALL Default=YES MaxTime=INFINITE State=UP",
        ]
        (self.state / "slurm.conf").write_text("\n".join(lines) + "\n")
        (self.state / "gres.conf").write_text("".join(f"NodeName={n} Name=gpu File={self.state}/gpu[0-1]\n" for n in self.names))
        (self.state / "cgroup.conf").write_text(
            "CgroupPlugin=cgroup/v1\nCgroupMountpoint=/sys/fs/cgroup\nCgroupAutomount=no\nConstrainCores=yes\n" if has_cgroups else ""
        )
        hosts = ["127.0.0.1 localhost", f"{self._network}.1 {socket.gethostname().split('.')[0]}"]
        (self.state / "hosts").write_text("\n".join([*hosts, *(f"{self._network}.{10 + i} {n}" for i, n in enumerate(self.names))]) + "\n")

    def _start_network(self) -> None:
        bridge = f"{self._tag}br"
        _ip("link", "add", bridge, "type", "bridge")
        _ip("addr", "add", f"{self._network}.1/24", "dev", bridge)
        _ip("link", "set", bridge, "up")
        for i, name in enumerate(self.names):
            space, veth = f"{self._tag}{name}", f"{self._tag}v{i}"
            _ip("netns", "add", space)
            _ip("link", "add", veth, "type", "veth", "peer", "name", "eth0", "netns", space)
            _ip("link", "set", veth, "master", bridge, "up")
            _ip("-n", space, "link", "set", "lo", "up")
            _ip("-n", space, "addr", "add", f"{self._network}.{10 + i}/24", "dev", "eth0")
            _ip("-n", space, "link", "set", "eth0", "up")
            _ip("-n", space, "route", "add", "default", "via", f"{self._network}.1")

    def _start_node(self, name: str) -> None:
        groups = []
        for controller in CONTROLLERS:
            root = CGROUP / controller
            if not (CGROUP / "cpuset").is_dir() or not root.is_dir():
                continue
            group = root / f"{self._tag}{name}"
            group.mkdir()
            if controller == "cpuset":
                for file in ("cpuset.cpus", "cpuset.mems"):
                    (group / file).write_text((root / file).read_text())
            groups.append(str(group / "cgroup.procs"))
        enter = "".join(f"echo $$ >{g}; " for g in groups)
        space = f"/run/netns/{self._tag}{name}"
        apart = "unshare --uts --mount --ipc --cgroup --pid --fork --kill-child"
        node = f"{HERE}/node.sh {self.state} {name} {' '.join(_needed_folders())}"
        self._spawn(["bash", "-c", f"{enter}exec nsenter --net={space} {apart} /bin/bash {node}"], f"node.{name}")

    def _inside(self, name: str) -> int:
        daemon = self._daemons[2 + self.names.index(name)]
        children = Path(f"/proc/{daemon.pid}/task/{daemon.pid}/children").read_text().split()
        return int(children[0])


def _tail(fields: Mapping[str, str]) -> str:
    """The end of a job's output."""
    path = Path(fields.get("StdOut", "/dev/null"))
    return path.read_text(errors="replace")[-3000:] if path.is_file() else "no output"


_Done = subprocess.CompletedProcess[str]


def _needed_folders() -> list[str]:
    """Folders that jobs need and that /tmp or root's home may hide."""
    package = Path(ray_rl_debug.__file__).resolve().parent.parent
    return sorted({str(Path(p).resolve()) for p in (sys.prefix, sys.base_prefix, package, HERE)})


def _free_network() -> str:
    used = subprocess.run(["ip", "-4", "route"], capture_output=True, text=True, check=False).stdout
    return next(n for n in NETWORKS if f"{n}." not in used)


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


def _quiet(*command: str) -> None:
    subprocess.run(command, check=False, capture_output=True)


def _retry_rmdir(folder: Path) -> None:
    """A killed namespace needs a moment until its cgroups are empty."""
    for _ in range(20):
        try:
            folder.rmdir()
            return
        except FileNotFoundError:
            return
        except OSError:
            time.sleep(0.1)
