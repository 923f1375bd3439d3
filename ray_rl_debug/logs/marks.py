"""What programs and launchers put in front of their lines: one pattern for each kind of mark."""

from __future__ import annotations

import re

LEVEL = re.compile(r"(?P<level>DEBUG|TRACE|INFO|NOTICE|SUCCESS|WARNING|WARN|ERROR|ERR|FATAL|CRITICAL|SEVERE)(?=[\s:|\]]|$)[\s:|]*")
PADDED = re.compile(r" {2,8}(?=(?:DEBUG|INFO|WARNING|ERROR|CRITICAL|SUCCESS)\b)")
"""Between a bar and a level that is moved to the right."""
LOGGER_AND_LEVEL = re.compile(r"[A-Za-z][\w.-]{0,40}:(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL): ")
NUMBER_AND_LEVEL = re.compile(r"\d{1,8}:(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL):(?=[A-Za-z])")
"""``58:ERROR:app.loop: ``: behind a stamp the process and its level, as Python's loggers are told to write."""
LEVEL_AND_SOURCE = re.compile(r"(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL)\|(?P<source>[\w./-]{1,80}\.py:\d{1,6})$")
"""``[INFO|trainer.py:712] ``, as Transformers writes."""
OF_CHROMIUM = re.compile(
    r"(?:\d+:\d+:)?\d{4}/\d{6}(?:\.\d{1,6})?:(?P<level>INFO|WARNING|ERROR|FATAL|VERBOSE)\d?:(?P<source>[\w./-]{1,80}?)[(:](?P<line>\d{1,6})\)?$"
)
"""``[58:58:1123/101502.123456:ERROR:bus.cc(399)] ``"""
LOGGER_LEVEL = re.compile(
    r"(?!(?i:observation|tool|answer|response|prompt|question|output|completion|sample))"
    r"(?:[a-z][\w.-]{1,40}|[A-Z][\w.-]{1,40}(?: (?!Rank)[A-Z][\w.-]{1,40}){0,2})(?: Rank (?P<rank>\d{1,6}))?"
    r" +(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL)(?:: | *(?:(?<=DEBUG)|(?<=INFO)) +(?=\S))"
)
"""``RemoteInfEngine Rank 2 ERROR: ``: the name of a logger may have words. What a model or its tool said has such heads, too.

Without a colon only a note counts: ``got ERROR from the server`` is a sentence."""
DOTTED_LEVEL = re.compile(r"(?:[a-z]\w{0,40}(?:\.\w{1,40}){1,8}|(?!HTTP)[A-Z]{3,12}) +(?P<level>WARNING|ERROR|CRITICAL) +(?=\S)")
"""``app.agent ERROR ``, ``LINK ERROR ``: a name with dots or of capitals is that of a logger."""
LOW_LEVEL = re.compile(r"(?P<level>debug[1-5]?|info|info_message|warning|warn|error|fatal|critical|Debug|Info|Note|Warning)(?=[:|]) ?[:|]?\s*")
WITH_PID = re.compile(r"\((?P<inner>[^()\n]{1,160}(?:\([^()\n]{0,80}\)[^()\n]{0,80})?)\)\s?")
"""The name of a Ray actor is what it calls itself: ``(Sampler(3) pid=92)``."""
BRACKET = re.compile(r"\[(?P<inner>[^\[\]\n]{1,160})\](?::(?=\s|\[|$))?\s?")
RANK = re.compile(r"^(?:rank|default|role|trainer|local_rank|Rank|RANK|GPU|gpu)[ _:=]?(?P<rank>\d{1,6})(?:\|\d+)?$")
ROLE = re.compile(
    r"^(?P<role>(?:[A-Za-z]+_)*(?:[Ww]orker|[Aa]ctor|[Ll]earner|[Ss]ampler|[Cc]ritic|[Rr]eplica|[Ee]ngine))[ _:/#-]?(?P<rank>\d{1,6})$"
    r"|^(?P<role2>(?:[a-z]+_)?(?:rollout|trainer|reward|policy|generator|server|judge|env))/(?P<rank2>\d{1,6})$"
)
"""``rollout_worker_2``, ``actor 0``; words that also name pieces of work only as ``rollout/3``: ``rollout 12`` is mostly the twelfth."""
ROLE_COLUMN = re.compile(r"(?P<name>\w+[ _:/#-]?\d{1,6}) +\| ")
TF_LEVEL = re.compile(r"(?P<level>[IWF]) (?=[\w./-]{1,200}\.(?:cc|cu|h|cpp):\d+\] )")
"""Of TensorFlow and XLA, behind their stamp: ``: F external/xla/agent.cc:431] ``; their ``E`` also means what does no harm."""
OF_TORCH = re.compile(r"Rank \d{1,6}$|PG (?:ID )?\d[^\n]* Rank \d{1,6}$")
"""torch counts the rank in a group; the ``[rank5]:`` in front of its lines is that of the world, and counts."""
OF_GROUP = re.compile(r"\bRank (?P<rank>\d{1,6})\b")
PARTS = re.compile(r"\b((?:(?:DP|TP|PP|EP|CP|ATTN_TP)\d{1,5})(?: (?:DP|TP|PP|EP|CP)\d{1,5})*)$")
BARE_RANK = re.compile(r"\[(?P<rank>\d{1,5})\]: (?= *\S)|[Rr]ank[_-]?(?P<named>\d{1,6}): ")
PID = re.compile(r"pid (?P<pid>\d{1,8})$")
_SOURCES = "".join(rf"(?<!\.{end})" for end in ("py", "c", "h", "cc", "cpp", "cu", "rs", "go"))
HOST_PID = re.compile(r"(?P<node>(?=[A-Za-z-]*\d)[A-Za-z][A-Za-z\d-]*(?:\.[A-Za-z\d-]+)*)" + _SOURCES + r":(?P<pid>\d{2,8})(?::\d{1,8}){0,2}$")
"""``[node-3:58]``, as Open MPI writes, and ``[node-3:58:0:91]``, as UCX does.

A source file with its line is none, nor a name without a digit: ``[step:120]``, ``[pid:58]``, ``[trl.trainer:412]``."""
OF_UCX = re.compile(
    r"\[(?P<node>[\w.-]{1,80}):(?P<pid>\d{1,8}) {0,4}:[\d:a-z]{1,16}\]\s{1,40}(?P<source>[\w./-]{1,80}\.\w{1,4}:\d{1,6})\s{1,8}"
    r"UCX\s{1,4}(?P<level>FATAL|ERROR|WARN|INFO|DIAG|DEBUG|TRACE)\s{1,4}"
)
"""``[node-3:58 :0]   ib_md.c:501  UCX  ERROR ``, behind a stamp."""
OF_OPEN_MPI = re.compile(
    r"\[(?P<node>[\w.-]{1,80})\]\[\[\d{1,8},\d{1,8}\],(?P<rank>\d{1,6})\]\[(?P<source>[\w./-]{1,80}\.\w{1,4}:\d{1,6}):\w{1,80}\] ?"
)
"""``[node-3][[44612,1],7][btl_tcp.c:559:mca_btl_tcp_recv] ``: the job and its step, then the rank."""
NAME_AND_LEVEL = re.compile(r"\[[A-Za-z][\w-]{1,40}\]\s?(?=\[(?:DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL|FATAL)\])")
"""``[Engine-LLM][ERROR] ``: the name of a program in front of its level."""
PRIORITY = re.compile(r"<\d{1,3}>(?=[A-Z\d])")
"""Of a syslog record, as it goes over the network."""
BAR = re.compile(r"(?<!\d)\d+/\d+ \[[\d:]+<[^\]\n]{1,300}\](?=[\[(A-Z]|\d{4}-\d\d-\d\d)")
"""A progress bar with the line of a program right behind it."""
OF_A_FAMILY = re.compile(r"\((?!raylet|gcs_server|autoscaler)[A-Za-z][\w-]{1,30}\) (?=\[?20\d\d-?\d\d-?\d\d[-T _]\d\d:)")
"""``(AReaL) 20261121-10:00:00.123 ``: which software writes, in front of a stamp; it names no process."""
MPI = re.compile(r"^(?P<job>\d+),(?:mpirank:)?(?P<rank>\d+)(?:,(?P<node>[\w.-]+))?$")
KEYED = re.compile(r"\b(?P<key>pid|PID|ip|rank|RankID|node)[=:] ?(?!-)(?P<value>[\w.:-]+)")
SRUN = re.compile(r"(?P<rank>\d{1,6}): ")
NCCL = re.compile(r"(?:[\w./-]{1,120}\.(?:txt|log|out|err):(?:\d{1,9}:)?)?(?P<node>[\w.-]{1,80}):(?P<pid>\d+):\d+ \[(?P<gpu>-?\d+)\] ")
PID_TID = re.compile(r"\s*(?P<pid>\d+):\d+ +")
SYSLOG = re.compile(r"(?P<node>[\w.-]{1,80}) (?P<program>[\w./@-]{1,60})(?:\[(?P<pid>\d+)\])?: ")
UNIT = re.compile(r"(?P<program>[\w@-]{1,80}\.(?:service|scope)): ")
"""Behind the name of systemd the unit that it speaks of."""
COMPOSE = re.compile(r"(?P<node>[\w.-]{1,80}) +\| ")
HOST = re.compile(
    r"(?P<node>(?:[\w-]{1,40}-)?(?:node|host|gpu|worker|server|compute|dgx|hgx|cn|nid|slurm)[\w-]{0,40}\d[\w.-]{0,60}): (?!-?[\d.,]+ ?[\w%/]{0,8}$)"
)
"""pdsh and its like put the machine in front; only names of a machine, as any word of a program may end so, and no figure: ``gpu_mem_0: 12 GB``."""
POD = re.compile(r"(?P<node>[a-z][\w.-]{0,80}\d[\w.-]{0,80})(?: [\w.-]{1,60})? (?=\d{4}-\d\d-\d\d[T ]\d\d:)")
"""``trainer-7d9f main 2026-…``: a machine or pod, perhaps with the container, in front of a stamp."""
COLUMNS = re.compile(
    r"(?:[\w.<>:/@-]{1,60} +[-|] +|[\w./-]{1,80}\.(?:py|cc|cpp|cu|h|go|rs):\d{1,6} +"
    r"|(?:\d{1,8}|[\w-]{0,40}\d[\w.-]{0,40}|\w{1,40}(?:\.\w{1,40}){1,8}|\{[^{}\n]{1,60}\}) +(?:[-|] +)?){1,4}"
    r"(?P<level>DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL|FATAL)(?=[ :|-])[ :|-]{1,8}"
)
"""Behind a stamp: ``58 - app.loop - WARNING - ``, ``gpu-3 58 ERROR ``, ``{task.py:58} ERROR - ``; a plain word before a level is a sentence's."""
RANK_FIELD = re.compile(r"(?:local_)?[Rr]ank(?:=(?P<rank>\d{1,6})[ ,:|]\s*|[ -](?P<named>\d{1,6})(?::| [|-]) )")
OF_PYTHON = re.compile(r"Process-(\d+) [\w.]+$")
"""``(Process-9100 package.module)``: number of the process and name of the logger; ``Process-3`` alone is a name that Python gives."""
COLLECTED = re.compile(
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d) "
    r"(?! ?\[?(?:DEBUG|TRACE|INFO|NOTICE|WARN|ERR|FATAL|CRITICAL|debug|trace|info|notice|warn|err|fatal|critical))"
)
"""The stamp that ``kubectl logs --timestamps``, Docker and their like put in front of each line: with its zone, and no level behind it."""
KUBE = re.compile(r"(?:stdout|stderr) [FP] ")
STREAM = re.compile(r"<(?:stdout|stderr)>:? ?")
RAY_NUMBERS = re.compile(r"\s+(?P<level>[DIWEFC])\s+(?P<pid>\d+)\s+\d+$")
GLOG_TAIL = re.compile(r" +(?P<pid>\d+) +(?P<source>[\w./-]+\.\w+:\d+)\] ?")
PID_AND_LEVEL = re.compile(r": {1,4}(?P<pid>\d{1,8}) {1,4}(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL) (?=\S)")
"""``2026-03-02 11:20:31.000811:  58  ERROR ||NEURON_CC_WRAPPER||: ``"""
SOURCE = re.compile(r"[\w./-]{1,80}\.(?:py|cc|cpp|cu|h|go|rs):\d{1,6}\] ?")
"""``core.py:250] ``, behind a level: the bracket may open in front of the level, or nowhere."""
NAMED = re.compile(
    r"(?P<program>wandb|srun|slurmstepd(?:-(?P<node>[\w.-]+))?|slurm(?:d|ctld|dbd)|salloc|scontrol|sbatch|torchrun|mpirun|ray|raylet|nvidia-[a-z]{2,20}|kubelet|containerd|dockerd|bash|sh|python\d?"
    r"|gcc|ld|ninja): "
)
OF_SYSTEMD = re.compile(r"systemd\[1\]: (?P<program>[\w@-]{1,80}\.(?:service|scope)): ")
"""Without a stamp, as ``journalctl -o cat`` and people who paste leave it."""
OF_MODULE = re.compile(
    r"(?:ray|torch|vllm|sglang|verl|areal)(?:\.[a-z_]\w{0,40}){1,6}: (?=[A-Z]\w* |(?:\w+\.)+[A-Z]\w*: )"
    r"|(?:[a-z_]\w{0,40}\.){1,6}[a-z_]\w{0,40} - (?=(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) - )"
)
"""``ray._private.services: Unable to ``, ``distributed.nanny - ERROR - ``: the name of a logger in front of a sentence, an exception or a level."""
SOURCE_FILE = re.compile(r"[\w./-]{1,80}\.(?:py|cc|cpp|cu|h|go|rs):\d{1,6}")
OF_CANN = re.compile(r"[A-Z][A-Z_]{1,15}\((?P<pid>\d{1,8}),[\w.:-]{1,60}\):")
"""``HCCL(58,python3):2026-…``: behind their level the parts of Ascend's software name themselves and their process."""
LETTER = re.compile(r"(?:[A-Za-z][\w-]{1,20} )?(?P<level>[DIWEC]) (?=\d)")
"""``[E 2026-11-21 10:00:00.123 ServerApp] ``, ``[NeMo W 2026-11-21 10:00:00 utils:12] ``"""
LETTER_IN_FRONT = re.compile(r"[DIWEF] (?=\d\d-\d\d \d\d:\d\d:\d\d )")
"""``E 11-21 10:00:00 controller.py:471] ``, as SkyPilot writes"""
HOST_OF_TOOL = re.compile(
    r"(?P<node>[A-Za-z][\w.-]{0,60}\d[\w.-]{0,60}) (?=(?:srun|torchrun|mpirun|ray|raylet|kubelet|containerd|dockerd|python\d?): )"
)
"""``node-3 torchrun: ``, as a collector writes that keeps no times."""
LOGGER = re.compile(
    r"(?!(?:global_)?(?i:step|epoch|iter(?:ation)?|episode|round|update):\d)"
    r"(?:[\w.-]{1,80}(?::[\w<>.]{1,80})?(?::\d+)?|<\w+>|[\w./-]+\.py:\d+)(?: [-|]+ | +-- )|[\w-]+[./][\w./-]*(?::\d+)*(?:[\w:]*)?: "
    r"|[a-z_]\w{0,40}(?:::[a-z_]\w{0,40}){1,6}: (?:[\w./-]{1,80}\.rs:\d{1,6}: )?"
)
"""No ``step:12 - ``, which is work that is counted."""
