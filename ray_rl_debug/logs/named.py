"""Processes that a line names, and those that the name of a log file names."""

from __future__ import annotations

import re
from collections import deque

from ray_rl_debug.model.snapshot.log_book import LogWriter

LOADER = "DataLoader worker"
"""Child of the process that tells of it."""
_NODE_MEMORY = r"^Memory on the node \(IP: (?P<ip>[\w.:]+), ID: \w+\) where the \w+ \([^()\n]*?(?:\bname=(?P<program>[\w.:]+), )?pid=(?P<pid>\d+)"
"""Ray's words on the worker that it ended for memory."""
_PAGE_FAULT = r"\bprocess (?P<program>[\w.:/-]{1,64}) pid (?P<pid>\d+) thread "
"""Words of the kernel's driver of a GPU; behind the report of the fault, or in its line."""
_ABOUT = tuple(
    re.compile(pattern)
    for pattern in (
        r"ray::(?:[^()\s:]{1,80}:)?(?P<program>[A-Za-z_]\w*)(?:[.:]\w+)*\(\) \(pid=(?P<pid>\d+)(?:, ip=(?P<ip>[\w.:]+))?",
        r"(?:Killed|reaped) process (?P<pid>\d+) \((?P<program>[^)\n]+)\)",
        r"INFO: task (?P<program>[^:\n]{1,64}):(?P<pid>\d+) blocked for more than",
        _NODE_MEMORY,
        r"\bWorker IP address: (?P<ip>[\w.:]+) Worker port: \d+ Worker PID: (?P<pid>\d+)",  # Ray of a worker that died
        r"\bWorker PID: (?P<pid>\d+)\b",  # the same, shortened by who copied it
        _PAGE_FAULT,
        r"\bpod=\"[\w-]+/(?P<node>[\w.-]+)\"",  # Kubernetes' own records
        r"\btask=(?P<program>[^,\n]{1,64}),pid=(?P<pid>\d+),uid=",
        r"/job:(?P<program>\w+)/replica:\d+/task:(?P<rank>\d+)\b",
        r"\bnode with node id: \w+ and (?:address|ip): (?P<ip>[\w.:]+)",
        r"\bRemoving node, node id = (?P<node>[\da-f]+)(?:, node name = (?P<ip>\d+(?:\.\d+){3})\b)?",
        r"\bHealth check failed for node (?P<node>[\da-f]+),",
        r"(?:^|[\s:])(?P<program>[A-Za-z_][\w:.+-]{0,60})\[(?P<pid>\d+)\]:? (?:segfault at|general protection|trap )",
        r"\bstuck for \d+s! \[(?P<program>[^\s\[\]]{1,60}):(?P<pid>\d+)\]",  # the kernel's watchdog of processors
        r"\bline \d+: +(?P<pid>\d+) (?:Killed|Aborted|Terminated|Segmentation fault|Bus error|Illegal instruction)\b",  # a shell of its child
        r"^==(?P<pid>\d+)==(?:[A-Z]+: )?\w+Sanitizer",
        r"\(PID:(?P<pid>\d+), Device:\d+, RankID:(?:(?P<rank>\d+)|-1)\)",  # torch_npu
        r"\bTIMEOUT \(pid:(?P<pid>\d+)\)",  # gunicorn of its child
        rf"(?P<program>{LOADER}) \(pid(?:\(s\))? (?P<pid>\d+)",
        r"local_rank: (?P<rank>\d+) \(pid: (?P<pid>\d+)\)",
        r"process rank (?P<rank>\d+) with PID (?P<pid>\d+) on node (?P<node>[\w.-]+) exited",  # mpirun
        r"\[Rank (?P<rank>\d+)\]",
        r"^-- Process (?P<rank>\d+) terminated with ",  # torch.multiprocessing of its child
        r"^rank\s+: (?P<rank>\d+) \(local_rank",
        r"^(?:\w+ )?(?P<node>[\w.-]+): tasks? (?P<rank>\d+)(?:-\d+|,\d+)*: ",
        r"Xid \((?P<node>PCI:[\w:.]+)\): \d+, pid='?(?P<pid>\d+)'?, name=(?P<program>[\w.:/-]+)",
        r"Xid \((?P<node>PCI:[\w:.]+)\): ",
        r"STEP [\w.+]+ (?:STEPD TERMINATED )?ON (?P<node>[\w.-]+) (?:CANCELLED|AT \S+ DUE TO JOB)",  # another node
        r"JOB \d+ ON (?P<node>[\w.-]+) CANCELLED(?! AT \S+ DUE TO NODE)",
        r"Node failure on (?P<node>[\w.-]+)|\bpod/(?P<node2>[\w.-]+)",
        r"\b(?:failed on|failure on|died on|crashed on|error on|draining|Draining) node (?P<node>[A-Za-z][\w.-]*\d[\w-]*)",
        r"^(?P<node>[a-z][\w.-]{0,80}[-_]\d{1,4}) exited with code \d",  # Docker Compose
        r"^(?P<node>[a-z0-9][a-z0-9.-]{0,80}) +\d+/\d+ +[A-Z]\w{3,40} +\d+ ",  # a pod in kubectl's table
        r"^(?P<node>[a-z0-9][\w.-]{0,80}) +NotReady(?:,\w+)* +",  # a node in kubectl's table
        r"^pdsh@[\w.-]+: (?P<node>[\w.-]+): ",
        r"\b[Ww]orker proc(?:ess)? (?P<program>[A-Za-z]\w{1,60})-(?P<rank>\d+) died\b",
        r"\bEngine core proc(?:ess)? (?P<program>EngineCore(?:_DP\d+)?) died\b",
        r"\bMPClient: (?P<program>engine core) exited unexpectedly\b",
        r"\bsending SIG(?:KILL|TERM) to process (?P<pid>\d+)\b",
        r"\b(?P<program>[A-Za-z][\w-]{0,60}) \(pid\W{1,2}(?P<pid>\d+)\),? (?:the \w+ )?(?:died|(?:crash|exit|end|terminat)ed|was \w+ed|is dead)\b",
        r"[Ww]orker process ?\((?P<pid>\d+)\)",
        r"^\s*(?:\w+ )*(?:Process|process|PID|pid)[ :=]+(?P<pid>\d+)\b",
        r"(?<![Ll]o[Rr][Aa] )(?<!adapter )(?<!matrix )(?<![TDPEC]P )\b[Rr]ank(?:[ :=]+|=\[)(?P<rank>\d+)\b",
        r"\((?P<program>\w+) pid=(?P<pid>\d+)",
    )
)
_FIELDS = re.compile(
    r"^\s*(?P<key>class_name|pid|ip|host|rank)\s*: ?(?P<value>[\w.:<>-]+)(?: \(local_rank: \d+\))?$"
    r"|^\s*exitcode\s*: -?\d+ \((?P<key2>pid): (?P<value2>\d+)\)$"
)
_LAUNCHED = re.compile(r"--local[_-]rank[= ](?P<rank>\d+)\b")
_INTRODUCES = re.compile(r"\b(?:the following|this) (?:error|exception|traceback): ?$")
_DESCRIBED = re.compile(rb"^Name:[ \t]+(?P<node>[\w.-]+)[ \t]*\r?$|Successfully assigned [\w-]+/(?P<node2>[\w.-]+) to ", re.MULTILINE)
_NODE_IP = re.compile(r"^The node IP: (?P<ip>[\d.]+|[\da-f:]+),")
"""Behind Ray's words that the node of a task died."""
_FAULTED = re.compile(_PAGE_FAULT)
_MPI_NAME = re.compile(r"^\s*Process name: \[\[\d+,\d+\],\s*(?P<rank>\d+)\]$")
"""Behind mpirun's words that a process ended with an exit code: job, step and rank."""
_JAVA = re.compile(r"^#\s+\S.* at pc=0x[\da-f]+, pid=(?P<pid>\d+), tid=")
"""Behind the words of a Java machine that it crashed."""
_FOR_MEMORY = re.compile(_NODE_MEMORY)
_DAEMON_LOST = re.compile(r"^Remote daemon: .{1,60} on node (?P<node>[\w.-]+)$")
"""Behind Open MPI's words that it has lost a machine."""
_RAY_FILE = re.compile(r"^(?:(?:io-)?worker-[0-9a-f]+-[0-9a-f]+-|python-core-(?:worker|driver)-[0-9a-f]+_)(\d+)\.(?:out|err|log)")
_RANK_FILE = re.compile(r"(?:^|[^a-z])(?:rank|trainer|proc|process|task|worker|gpu|r|t)[_.-]?(\d{1,6})(?=\D|$)")
_DAEMON = re.compile(r"^(raylet|gcs_server|dashboard_agent|dashboard|runtime_env_agent|log_monitor|monitor|ray_client_server)\.")
_NODE = re.compile(r"(?:^|[_.-])((?:node|host|gpu|worker|pod|ip|n|dgx|hgx|cn|nid|slurm)[-_]?[\w-]*\d[\w-]*|(?:node|host)[-_][A-Za-z])(?=[_.]|$)")
_ADDRESS = re.compile(r"(?<![\d.])(\d{1,3}(?:[.-]\d{1,3}){3})(?![\d.])")


def named_in(text: str, lines: tuple[str, ...] = ()) -> LogWriter | None:
    """The process that a text says has failed.

    Args:
        lines: More lines of the same block: Ray lists class and pid of a dead actor one per line.
    """
    fields: dict[str, str] = {}
    for line in lines:
        if found := _FIELDS.match(line):
            fields.setdefault(found["key"] or found["key2"], found["value"] or found["value2"])
    if fields.get("pid", "").isdigit():
        return LogWriter(
            pid=int(fields["pid"]), ip=fields.get("ip"), program=fields.get("class_name"), rank=fields.get("rank"), node=fields.get("host")
        )
    for pattern in _ABOUT:
        if found := pattern.search(text):
            got = found.groupdict()
            pid = got.get("pid")
            return LogWriter(
                node=got.get("node") or got.get("node2"),
                ip=got.get("ip"),
                pid=int(pid) if pid else None,
                rank=got.get("rank"),
                program=got.get("program"),
            )
    for line in lines:
        if found := _NODE_IP.match(line):
            return LogWriter(ip=found["ip"])
        if found := _FOR_MEMORY.match(line):
            return LogWriter(pid=int(found["pid"]), ip=found["ip"], program=found["program"])
        if found := _FAULTED.search(line):
            return LogWriter(pid=int(found["pid"]), program=found["program"])
        if found := _JAVA.match(line):
            return LogWriter(pid=int(found["pid"]))
        if found := _MPI_NAME.match(line):
            return LogWriter(rank=found["rank"])
        if found := _DAEMON_LOST.match(line):
            return LogWriter(node=found["node"])
    return None


def introduced_by(above: str) -> tuple[str, ...]:
    """The line above a traceback, where it ends in ``the following error:`` and so may name whose it is."""
    return (above,) if _INTRODUCES.search(above) else ()


def launched_in(line: str) -> LogWriter | None:
    """Whom the command in a launcher's line started: the command stands where marks do, in brackets."""
    found = _LAUNCHED.search(line)
    return LogWriter(rank=found["rank"]) if found else None


def described_in(before: bytes) -> LogWriter | None:
    """The object that ``kubectl describe`` names above its indented lines."""
    found = deque(_DESCRIBED.finditer(before), maxlen=1)
    return LogWriter(node=(found[0]["node"] or found[0]["node2"]).decode()) if found else None


def writer_of_file(path: str) -> LogWriter:
    """Who writes a file, by its name and folders: Ray's logs carry pids, launchers' carry ranks and nodes."""
    *folders, name = path.split("/")
    ray = _RAY_FILE.match(name)
    daemon = _DAEMON.match(name)
    rank = None
    if ray is None and daemon is None:
        found = _RANK_FILE.search(name)
        rank = found[1] if found else None
        if rank is None and folders and folders[-1].isdigit() and re.match(r"std(?:out|err)", name):
            rank = folders[-1]  # torchelastic: attempt_0/3/stderr.log
    address = _ADDRESS.search(name)
    node = _NODE.search(name) if ray is None else None
    where = next((f for f in reversed(folders) if _NODE.search(f) or _ADDRESS.search(f)), None)
    told = address[1] if address else node[1] if node and rank is None else where
    return LogWriter(node=told, pid=int(ray[1]) if ray else None, rank=rank, program=daemon[1] if daemon else None)


def is_one_process(a: LogWriter, b: LogWriter) -> bool:
    """Do two marks name one process, by its number and rank?"""
    return (a.pid, a.rank) == (b.pid, b.rank)


def filled(one: LogWriter, from_file: LogWriter) -> LogWriter:
    """What a line says of its writer, and what the file says where the line does not."""
    if one == LogWriter():
        return from_file
    is_other = (one.pid is not None and from_file.pid not in (None, one.pid)) or (one.rank is not None and from_file.rank not in (None, one.rank))
    return LogWriter(
        node=one.node or (from_file.node if one.ip is None else None),
        ip=one.ip,
        pid=one.pid if one.pid is not None or is_other or one.program else from_file.pid,
        rank=one.rank if one.rank is not None or is_other or one.pid is not None else from_file.rank,
        program=one.program or (None if is_other else from_file.program),
    )
