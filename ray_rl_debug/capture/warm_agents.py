"""Agents that stay on the nodes of a cluster, so that each look at it begins at once."""

from __future__ import annotations

import os
import threading
import time
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping

import msgspec

from ray_rl_debug.capture.cluster import Capture, ClusterOptions
from ray_rl_debug.cluster.address import find_address
from ray_rl_debug.cluster.auth import with_token
from ray_rl_debug.cluster.backoff import Backoff
from ray_rl_debug.cluster.driver_handle import Driver
from ray_rl_debug.cluster.driver_messages import AgentNode, Ask, Ended, Facts, Gather, Lost, Message, Ready, Release
from ray_rl_debug.cluster.node_choice import choose_agent_nodes, unique_names
from ray_rl_debug.collect.discover import find_raylets_by_node
from ray_rl_debug.collect.options import CollectOptions
from ray_rl_debug.model.snapshot import RayNode, Snapshot
from ray_rl_debug.ray_state import read_nodes
from ray_rl_debug.ray_state.channel import OUR_NAMESPACE

FIRST_AGAIN_S, LONGEST_AGAIN_S = 4.0, 600.0
"""Between two attempts to place an agent where it failed."""
START_S = 20.0
"""For agents to start: one to three seconds each on a quiet node, more on a loaded one."""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What one node's agent answered to `Agents.ask`."""

    node: str
    """Name, as in `snapshot.Node.name`."""
    data: bytes | None = None
    reason: str | None = None
    """Why there is no `data`."""


class Agents:
    """Agents that stay: a detached actor per node, in our namespace, so that each look costs milliseconds instead of seconds.

    For a companion that lives beside the job::

        with Agents(ClusterOptions(address=None, job_id=None, timeout_s=30.0)) as agents:
            agents.start()                                  # an agent on every node; {node name: why not} for the others
            ...
            agents.refresh()                                # the same again: new nodes get one, dead agents are replaced
            agents.ask("ray_rl_debug.watch.node_watch:look", b"")  # one of our functions on every node, a few milliseconds
            agents.gather(CollectOptions(samples=3))        # a full snapshot, well under a second beyond its window
            agents.stop()                                   # our claim is given up

    ``rayrl-debug snapshot`` finds the same agents by name and uses them. Several companions share them: each has a claim (`keeper`), which every
    call prolongs, and an agent whose last claim was given up, or is 15 minutes old because its companion was killed, removes itself.
    Leaving the ``with`` block without `stop` leaves the agents for a successor; pass its `keeper` again to continue the claim.

    One Ray driver, a child process, serves all calls; when it dies, or hangs beyond a call's deadline, the next call starts a new one.
    Methods may be called from one thread at a time. They raise what `take_snapshot` raises, and for single nodes nothing.
    """

    def __init__(self, options: ClusterOptions, *, keeper: str | None = None, progress: Callable[[str], None] = lambda _: None) -> None:
        self.keeper = keeper or uuid.uuid4().hex[:12]
        self._options = msgspec.structs.replace(options, keeper=self.keeper)
        self._progress = progress
        self._address: str | None = None
        self._use_token = False
        self._driver: Driver | None = None
        self._agent_nodes: dict[str, AgentNode] = {}
        self._backoff = Backoff(FIRST_AGAIN_S, LONGEST_AGAIN_S)

    def __enter__(self) -> Agents:
        return self

    def __exit__(self, *_: object) -> None:
        self._drop_driver(kindly=True)

    @property
    def nodes(self) -> tuple[str, ...]:
        """Names of the nodes that had an agent at the last `start`, `refresh` or `ask`."""
        return tuple(agent_node.name for agent_node in self._agent_nodes.values())

    def start(self, *, deadline_s: float = START_S, only: Collection[str] | None = None) -> dict[str, str]:
        """Place an agent on every node that can take one without harm. Returns the names of the others and why.

        With `only` these nodes, by id, and no others. Where it failed it is tried again later and later, not with each call.
        """
        until = time.monotonic() + deadline_s
        alive = self._read_nodes(min(5.0, deadline_s / 2))
        names = unique_names(alive)
        wanted_nodes = [n for n in alive if only is None or n.node_id in only]
        due = [n for n in wanted_nodes if n.node_id in self._agent_nodes or self._backoff.is_due(n.node_id)]
        agent_nodes, refused = choose_agent_nodes(due, find_raylets_by_node(), names, {}, probe_s=min(2.0, deadline_s / 4), all_nodes=alive)
        lost = {n.node_id: f"{self._backoff.why(n.node_id)}; tried again later" for n in wanted_nodes if n not in due} | refused
        before, self._agent_nodes = self._agent_nodes, {}
        if only is not None and (left_over := tuple(s for i, s in before.items() if i not in only)):
            for _ in self._converse(Release(agent_nodes=left_over, keeper=self.keeper), 5.0):
                pass
        if agent_nodes:
            left = max(1.0, until - time.monotonic())
            wanted = {s.node_id: s for s in agent_nodes}
            for message in self._converse(Gather(agent_nodes=tuple(agent_nodes), start_s=left, gather_s=left, keeper=self.keeper), left + 1.0):
                if isinstance(message, Ready):
                    self._agent_nodes[message.node_id] = wanted[message.node_id]
                elif isinstance(message, Lost):
                    lost[message.node_id] = message.reason
                elif isinstance(message, Ended) and message.reason:
                    lost.update(dict.fromkeys((n for n in wanted if n not in self._agent_nodes), message.reason))
            lost.update(dict.fromkeys((n for n in wanted if n not in self._agent_nodes and n not in lost), f"no agent in {deadline_s:g} s"))
        for node in due:
            if node.node_id in self._agent_nodes:
                self._backoff.worked(node.node_id)
            else:
                self._backoff.failed(node.node_id, lost.get(node.node_id, "no agent"))
        return {names[node_id]: why for node_id, why in lost.items()}

    refresh = start

    def ask(self, target: str, payload: bytes = b"", *, deadline_s: float = 2.0, payloads: Mapping[str, bytes] | None = None) -> tuple[Answer, ...]:
        """Call one of our own functions in every agent.

        Args:
            target: ``ray_rl_debug.package.module:function``, a function of bytes to bytes; it may keep state in its module. Answers are
                at most 90,000 bytes.
            payload: Its argument.
            payloads: Arguments by node id instead; only these nodes are asked.
            deadline_s: For all nodes together. A call that takes longer goes on in the agent; at most three may be under way there.

        Returns:
            One answer per node with an agent. A node whose agent died has no agent_node any more until the next `refresh`.
        """
        waiting = {node_id: agent_node for node_id, agent_node in self._agent_nodes.items() if payloads is None or node_id in payloads}
        answers = []
        order = Ask(target=target, payload=payload, keeper=self.keeper, deadline_s=deadline_s, payloads=dict(payloads or {}))
        for message in self._converse(order, deadline_s + 1.0) if waiting else ():
            if isinstance(message, Facts | Lost) and message.node_id in waiting:
                name = waiting.pop(message.node_id).name
                answers.append(Answer(node=name, data=message.data) if isinstance(message, Facts) else Answer(node=name, reason=message.reason))
        answers += (Answer(node=agent_node.name, reason="our Ray driver did not answer, or has no agent there") for agent_node in waiting.values())
        return tuple(answers)

    def gather(self, collect: CollectOptions | None = None, *, job_id: str | None = None, stop: threading.Event | None = None) -> Snapshot:
        """A full snapshot like `take_snapshot`, of one job where it is named, by the agents that are there; missing ones are placed on the way."""
        options = self._options if collect is None else msgspec.structs.replace(self._options, collect=collect)
        options = options if job_id is None else msgspec.structs.replace(options, job_id=job_id)
        capture = Capture(options, self._progress, stop or threading.Event())
        return capture.run(self._ready_driver())

    def stop(self) -> None:
        """Give up our claim on all agents; those that nobody else claims are removed."""
        if self._agent_nodes:
            for _ in self._converse(Release(agent_nodes=tuple(self._agent_nodes.values()), keeper=self.keeper), 5.0):
                pass
        self._agent_nodes = {}
        self._drop_driver(kindly=True)

    def _read_nodes(self, deadline_s: float) -> list[RayNode]:
        if self._address is None:
            self._address = find_address(self._options.address, os.environ)
        address = self._address

        def told(said: str) -> None:
            self._use_token = True
            self._progress(said)

        nodes = with_token(lambda: read_nodes(address, deadline_s=deadline_s), told)
        return [n for n in nodes if n.alive]

    def _converse(self, order: Gather | Ask | Release, deadline_s: float) -> Iterator[Message]:
        """Give an order and hear what is said until it ends or the time is up."""
        driver = self._ready_driver()
        driver.connect(self._address or "", OUR_NAMESPACE, use_token=self._use_token)
        driver.order(order)
        until = time.monotonic() + deadline_s
        while (left := until - time.monotonic()) > 0:
            message = driver.receive(left)
            if message is not None:
                yield message
            if isinstance(message, Ended):
                return

    def _ready_driver(self) -> Driver:
        if self._driver is not None and not self._driver.settle():
            self._drop_driver(kindly=False)
        if self._driver is None:
            self._driver = Driver()
        return self._driver

    def _drop_driver(self, *, kindly: bool) -> None:
        driver, self._driver = self._driver, None
        if driver is not None:
            driver.__exit__(None if kindly else TimeoutError, None, None)
