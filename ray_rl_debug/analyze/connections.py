"""TCP connections between collected processes: who owns the other end, on whatever node."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from ray_rl_debug.analyze.kernel_calls import kernel_call
from ray_rl_debug.analyze.kinds_of_places import Kind
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.analyze.view import View
from ray_rl_debug.model.snapshot import Process, Socket, Thread

Endpoint = tuple[str, str]
Owners = dict[tuple[Endpoint, Endpoint | None], list[tuple[str, Process]]]
"""Processes by (local, remote) endpoint of their sockets; remote is None for a listener."""

RAY_PROCESSES = frozenset({"raylet", "gcs", "ray-system", "agent"})
_LOOPBACK = ("127.", "::1", "0.0.0.0", "::ffff:127.")


def endpoint_key(node: str, address: str) -> Endpoint:
    """An endpoint's identity: loopback addresses belong to their node."""
    host, _, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]").removeprefix("::ffff:")
    return (f"{node}|lo" if host.startswith(_LOOPBACK) else host, port)


def socket_owners(view: View) -> Owners:
    """Every TCP socket of the snapshot by its two ends."""
    return view.once(_socket_owners)


def _socket_owners(view: View) -> Owners:
    owners: Owners = defaultdict(list)
    for node in view.snapshot.nodes:
        for process in node.processes:
            for socket in process.sockets or ():
                if not socket.family.startswith("tcp"):
                    continue
                local = endpoint_key(node.name, socket.local)
                remote = endpoint_key(node.name, socket.remote) if socket.remote and socket.state != "LISTEN" else None
                owners[(local, remote)].append((f"{node.name}/{process.pid}", process))
    return owners


def listeners(view: View) -> dict[str, list[tuple[str, Process]]]:
    """Processes by the TCP ports at which they listen, on any node."""
    found: dict[str, list[tuple[str, Process]]] = defaultdict(list)
    for (local, remote), ends in socket_owners(view).items():
        if remote is None:
            found[local[1]] += ends
    return found


def not_accepted(view: View) -> Owners:
    """Connections at whose other end somebody listens and nobody was seen who has accepted them, by that end; each with who has made it."""
    return view.once(_not_accepted)


def _not_accepted(view: View) -> Owners:
    owners, ports = socket_owners(view), view.once(listeners)
    found: Owners = defaultdict(list)
    for (local, remote), ends in owners.items():
        if remote is not None and remote[1] in ports and (remote, local) not in owners:
            found[(remote, None)] += ends
    return found


def own_hosts(view: View) -> set[str]:
    """Addresses of the machines that were looked at."""
    return view.once(_own_hosts)


def _own_hosts(view: View) -> set[str]:
    return {endpoint_key(one.node.name, s.local)[0] for one in view for s in one.process.sockets or ()} | {f"{one.node.name}|lo" for one in view}


def _ray_ports(view: View) -> set[str]:
    actors = view.ray.actors if view.ray else ()
    told = {a.address.rpartition(":")[2] for a in actors if a.address}
    unread = [view.seen[key] for a in actors if not a.address and (key := view.by_actor.get(a.actor_id)) is not None]
    return told | {port_of(s) for one in unread for s in one.process.sockets or () if s.state == "LISTEN"}


def is_ray_port(view: View, socket: Socket) -> bool:
    """Does a worker of Ray listen there for calls?"""
    return port_of(socket) in view.once(_ray_ports)


def is_rays(view: View, one: Seen, socket: Socket, owners: Owners) -> bool:
    node = one.node.name
    ends = owners.get((endpoint_key(node, socket.remote or ""), endpoint_key(node, socket.local)), [])
    ray_ports = view.once(_ray_ports)
    ports = {socket.local.rpartition(":")[2], (socket.remote or "").rpartition(":")[2]}
    return any(p.kind in RAY_PROCESSES for _, p in ends) or bool(ports & ray_ports)


def connected_peers(view: View, one: Seen) -> set[str]:
    """Keys of the processes that hold the other ends of `one`'s connections, Ray's own left out."""
    owners = socket_owners(view)
    node = one.node.name
    found: set[str] = set()
    for socket in one.process.sockets or ():
        if not socket.family.startswith("tcp") or socket.state != "ESTABLISHED" or socket.remote is None or is_rays(view, one, socket, owners):
            continue
        found.update(k for k, _ in owners.get((endpoint_key(node, socket.remote), endpoint_key(node, socket.local)), []))
    return found


def clients(view: View, one: Seen, socket: Socket, owners: Owners) -> Iterator[tuple[str, Socket]]:
    """Processes that were seen at the other end of a server's connection, each with its end."""
    if socket.family == "unix":
        for other in view:
            if other.node is one.node and other.key != one.process_key:
                yield from ((other.key, s) for s in other.process.sockets or () if s.inode == socket.peer_inode and s.inode is not None)
        return
    if socket.remote is None or not socket.family.startswith("tcp"):
        return
    local, remote = endpoint_key(one.node.name, socket.local), endpoint_key(one.node.name, socket.remote)
    for key, process in owners.get((remote, local), []):
        if key in view.seen and key != one.process_key:
            node = view.seen[key].node.name
            yield from ((key, s) for s in process.sockets or () if s.remote is not None and endpoint_key(node, s.local) == remote)


def lacks_other_end(socket: Socket) -> bool:
    """Was not read who has the other end of a connection: neither its address nor, of a Unix socket, its number?"""
    return socket.peer_inode is None if socket.family == "unix" else socket.family.startswith("tcp") and socket.remote is None


def lacks_client(view: View, one: Seen, socket: Socket) -> bool:
    """Has it accepted this connection of a client on a machine that was looked at, and was the client not seen there?"""
    if socket.remote is None or not socket.family.startswith("tcp") or not is_served(one, socket):
        return False
    remote, local = endpoint_key(one.node.name, socket.remote), endpoint_key(one.node.name, socket.local)
    return remote[0] in own_hosts(view) and (remote, local) not in socket_owners(view)


def has_last_word(one: Seen, other: Seen) -> bool:
    """Came the last data on a connection between two processes to the first of them, as the clocks of both ends tell?"""
    for socket in one.process.sockets or ():
        if socket.quiet_s is None or socket.remote is None or not socket.family.startswith("tcp"):
            continue
        ends = (s for s in other.process.sockets or () if s.local == socket.remote and s.remote == socket.local and s.quiet_s is not None)
        if any((s.quiet_s or 0.0) > socket.quiet_s + TICK_S for s in ends):
            return True
    return False


TICK_S = 0.01
"""Clocks of connections go in steps of four milliseconds at most."""


def is_served(one: Seen, socket: Socket) -> bool:
    """Is this the server's end of a connection? Then the wait is for the next request, which nobody owes.

    It listens there; or it was connected at one port by several, as each connection that a process makes has a port of its own, and at a
    Unix socket no name.
    """
    port, sockets = port_of(socket), one.process.sockets or ()
    if socket.family == "unix":
        return bool(socket.local) and any(s.family == "unix" and s is not socket and s.local == socket.local for s in sockets)
    return any(port_of(s) == port and (s.state == "LISTEN" or s.local == socket.local) and s is not socket for s in sockets)


def lacks_listener(one: Seen) -> bool:
    """Does a thread that waits to be called do so at a descriptor that was not read? What is accepted there looks like a connection of its own."""
    known = {s.fd for s in one.process.sockets or ()} | {f.fd for f in one.process.files or ()}
    asked = [t.kernel for t in one.threads if t.kernel is not None and (t.listens or t.place.kind is Kind.LOOP_IDLE)]
    return one.process.sockets is not None and any(not known.issuperset(_awaited(kernel)) for kernel in asked)


GIVEN_FROM = 32768
"""Linux gives ports from here on to those that connect (net.ipv4.ip_local_port_range, as it comes)."""


def lacks_own_listener(one: Seen, socket: Socket) -> bool:
    """Has the kernel given the port of the other end alone, so that this one is the server's, and nobody was seen to listen at it?"""
    if not socket.family.startswith("tcp") or socket.remote is None or is_served(one, socket):
        return False
    own, other = port_of(socket), socket.remote.rpartition(":")[2]
    return own.isdigit() and other.isdigit() and int(own) < GIVEN_FROM <= int(other)


def _awaited(kernel: Thread) -> tuple[int | None, ...]:
    """The descriptors at which a thread waits."""
    return kernel.waits_on_fds or ((kernel.syscall_arg0,) if kernel_call(kernel) == "accept" else ())


def port_of(socket: Socket) -> str:
    """Of its own end."""
    return socket.local.rpartition(":")[2]
