"""The form of a framework's table."""

from __future__ import annotations

import msgspec


class Role(msgspec.Struct, frozen=True):
    """What actors of a class are in the run."""

    class_name: str
    role: str
    example: str
    """A process title or actor name."""


class Phase(msgspec.Struct, frozen=True):
    """What the run is doing while a function is on a stack."""

    function: str
    phase: str
    example: str
    """A process title, or a frame as py-spy shows it."""


class Spot(msgspec.Struct, frozen=True):
    """A function whose frame means something."""

    function: str
    """Its qualified name, or the end of it after a dot: ``DetokenizerManager.event_loop``, ``monitor_workers``."""
    file: str
    """The end of its file's path."""

    def matches(self, function: str, file: str) -> bool:
        if not file.endswith(self.file):
            return False
        # before Python 3.11 a frame has no class
        bare = "." not in function and bool(self.file) and function == self.function.rpartition(".")[2]
        return bare or function == self.function or function.endswith(f".{self.function}")


GROUP_OPS = ("all_reduce", "_all_reduce_out_place", "all_gather", "reduce_scatter", "gather")
"""Collectives of the ``GroupCoordinator`` that vLLM and SGLang share, whichever library carries them out."""


TENSOR_OPS = ("all_reduce", "all_gather", "reduce_scatter", "gather")
"""Of ``communication_op.py`` in both: the same, called from the layers of the model."""


class Part(msgspec.Struct, frozen=True):
    """One kind of process of an inference engine."""

    part: str
    """``server`` takes the requests, ``core`` schedules them, ``worker`` computes, ``detokenizer`` makes text of what comes out, ``coordinator``."""
    label: str
    """What people call it: ``vLLM engine core``."""
    titles: tuple[str, ...]
    """Regular expressions that its process title begins with; a group ``ranks`` holds its ranks, as in ``_DP0_TP1``."""
    runs: tuple[Spot, ...] = ()
    """Functions near the outer end of its main thread's stack, for processes whose title tells nothing."""
    commands: tuple[str, ...] = ()
    """The kernel's names of it, cut to 15 characters: all that is left of a dead one."""


class EngineNames(msgspec.Struct, frozen=True):
    """The names of one inference engine: its processes, and what places and coroutines in them mean."""

    name: str
    version: str
    parts: tuple[Part, ...]
    rests: tuple[Spot, ...] = ()
    """Here a part waits for the next piece of work, which nobody owes it."""
    watches: tuple[Spot, ...] = ()
    """Here a thread watches for the death of another process."""
    transport: tuple[Spot, ...] = ()
    """Functions that only carry messages between the parts: who called them tells what is waited for. An empty name stands for the whole file."""
    awaits_start: tuple[Spot, ...] = ()
    """Where a front end waits until its cores have greeted it and have started."""
    greets: tuple[Spot, ...] = ()
    """Where a core has greeted its front end, and waits for the answer before it does anything else."""
    asks: tuple[Spot, ...] = ()
    """Where a thread of a program that has the engine inside of it waits for the engine core, a process of its own."""
    collectives: tuple[Spot, ...] = ()
    """Collectives of its own, which spin."""
    coordinated: tuple[Spot, ...] = ()
    """Collectives of its process groups, told by the call when no frame above names what carries them out."""
    groups_folder: str = ""
    """Where its library keeps its process groups; another program that waits there has the engine as its partner."""
    requests: tuple[Spot, ...] = ()
    """Coroutines of the server that await the engine: one for each request in flight."""
    calls: tuple[Spot, ...] = ()
    """Coroutines of the server that await the answer to a call of its own to the engine: a pause, an update of the weights."""
    housekeeping: tuple[Spot, ...] = ()
    """Coroutines of the server that wait for the next message, and are no request."""
    gates: tuple[Spot, ...] = ()
    """Coroutines of the server that hold requests back while the engine is paused."""
    steps: tuple[Spot, ...] = ()
    """Where the scheduler works on requests. A loop that turns elsewhere, with requests in flight, is paused or has none."""
    work: tuple[Spot, ...] = ()
    """Those of the steps in which it may be at work for long."""
    pulses: tuple[Spot, ...] = ()
    """A collective that the ranks of its scheduler are in on every turn, also when there is nothing to do."""
    loops: tuple[Spot, ...] = ()
    """The scheduler's event loop, which turns also when there is nothing to do."""
    paused: tuple[Spot, ...] = ()
    """What a paused scheduler alone does."""
    dying: tuple[Spot, ...] = ()
    """The server has seen the death or the hang of a part and is about to end."""
    ending: tuple[Spot, ...] = ()
    """Below a watch: the death of a worker was seen, and the others are being ended."""
    leaving: tuple[Spot, ...] = ()
    """What an engine core does last: it tidies up and ends."""
    alive: tuple[Spot, ...] = ()
    """Threads and coroutines of the server that live as long as its engine core."""
    death_lines: tuple[str, ...] = ()
    """Known error lines of the server's log (``layer/slug``) that it prints when a part has died."""
    pause_calls: tuple[str, ...] = ()
    """What resumes it, for the remedy."""


class Framework(msgspec.Struct, frozen=True):
    """The names of one framework."""

    name: str
    version: str
    """Read from and tried with this version; older and newer ones share most names."""
    roles: tuple[Role, ...]
    phases: tuple[Phase, ...]
    rests: tuple[Spot, ...] = ()
    """Threads of it stand here between two messages."""
    pollers: tuple[Spot, ...] = ()
    """Here it looks again and again for what others should deliver."""
    gates: tuple[Spot, ...] = ()
    """Here it waits until it may admit more work, or for work that is admitted: the control of staleness and capacity."""
    calls_threads: tuple[str, ...] = ()
    """Names of threads that run the calls of a local server."""
    one_at_a_time: tuple[Spot, ...] = ()
    """Below an event loop that by design does one piece of work at a time: that it is busy with it blocks nobody."""
