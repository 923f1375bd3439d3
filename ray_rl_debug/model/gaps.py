"""What can be missing from a snapshot: ids, names and usual remedies of gaps (RRD900 to RRD949)."""

from __future__ import annotations

NODE_SILENT = "RRD901"
STACKS_REFUSED = "RRD902"
PROCESS_GONE = "RRD903"
PYSPY_MISSING = "RRD904"
RAY_TABLES = "RRD905"
RULE_RAISED = "RRD906"
GPU_UNREAD = "RRD907"
MEMORY_REFUSED = "RRD908"
WINDOW_SHORT = "RRD909"
TRUNCATED = "RRD910"
ASYNC_UNREAD = "RRD911"
FILE_UNREAD = "RRD912"
STACKS_FAILED = "RRD913"
DESCRIPTORS_REFUSED = "RRD914"
LOGS_UNREAD = "RRD915"
WORKER_SILENT = "RRD916"
NO_RAY_TABLES_IN_FILE = "RRD917"
RANK_UNKNOWN = "RRD918"
COLLECTOR_FAILED = "RRD919"
AGENT_SILENT = "RRD920"
DRIVER_UNKNOWN = "RRD921"
INTERRUPTED = "RRD922"
RAYLET_SILENT = "RRD923"
RAS_UNREAD = "RRD924"
PYSTACK_FAILED = "RRD925"
STARVED = "RRD926"
FRAMES_UNREAD = "RRD927"
STORE_UNREAD = "RRD936"

NAMES: dict[str, str] = {
    NODE_SILENT: "node did not answer",
    STACKS_REFUSED: "stacks may not be read",
    PROCESS_GONE: "process ended while we looked",
    PYSPY_MISSING: "py-spy is missing",
    RAY_TABLES: "Ray's tables could not be read",
    RULE_RAISED: "one of our rules failed",
    GPU_UNREAD: "GPU facts could not be read",
    MEMORY_REFUSED: "process memory may not be read",
    WINDOW_SHORT: "window too short to tell slow from hung",
    TRUNCATED: "more than the tool reads",
    ASYNC_UNREAD: "asyncio tasks could not be read",
    FILE_UNREAD: "file could not be used",
    STACKS_FAILED: "stacks could not be read",
    DESCRIPTORS_REFUSED: "sockets and open files may not be read",
    LOGS_UNREAD: "logs could not be read",
    WORKER_SILENT: "a Ray worker did not answer",
    NO_RAY_TABLES_IN_FILE: "the files hold no tables of Ray",
    RANK_UNKNOWN: "rank or world could not be learned",
    COLLECTOR_FAILED: "one of our collectors failed",
    AGENT_SILENT: "no agent on a node; its facts came another way",
    DRIVER_UNKNOWN: "the driver could not be found",
    INTERRUPTED: "capture was interrupted",
    RAYLET_SILENT: "a raylet did not answer",
    RAS_UNREAD: "NCCL's own counts could not be read",
    PYSTACK_FAILED: "pystack gave no stacks",
    STARVED: "other programs kept the cores busy",
    FRAMES_UNREAD: "lines that look like frames were not read",
    STORE_UNREAD: "a store of rollouts did not tell all",
}
