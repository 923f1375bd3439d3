"""The wait-for graph of a view: all edges, each with its evidence, solved."""

from __future__ import annotations

import msgspec

from ray_rl_debug.analyze.known_edges import KnownEdges
from ray_rl_debug.analyze.rank_counters import Joined, find_joined, joined_edges
from ray_rl_debug.analyze.view import View
from ray_rl_debug.analyze.waiting import Graph, build_graph
from ray_rl_debug.analyze.waits_assumed import assumed_edges
from ray_rl_debug.analyze.waits_async import async_edges, awaited_child_edges, awaited_pool_edges, awaited_socket_edges
from ray_rl_debug.analyze.waits_brokers import loop_broker_edges
from ray_rl_debug.analyze.waits_calls import call_edges
from ray_rl_debug.analyze.waits_engines import engine_edges
from ray_rl_debug.analyze.waits_fed import fed_edges
from ray_rl_debug.analyze.waits_file_locks import file_lock_edges
from ray_rl_debug.analyze.waits_generators import generator_edges, reader_edges
from ray_rl_debug.analyze.waits_graphs import graph_edges
from ray_rl_debug.analyze.waits_idle import idle_edges
from ray_rl_debug.analyze.waits_lanes import lane_edges
from ray_rl_debug.analyze.waits_launchers import launcher_edges
from ray_rl_debug.analyze.waits_looks import look_edges
from ray_rl_debug.analyze.waits_messages import message_edges
from ray_rl_debug.analyze.waits_poll import poll_edges
from ray_rl_debug.analyze.waits_ranks import rank_edges
from ray_rl_debug.analyze.waits_ray import ray_edges
from ray_rl_debug.analyze.waits_requests import request_edges
from ray_rl_debug.analyze.waits_room import room_edges
from ray_rl_debug.analyze.waits_rpc import rpc_edges, shutdown_edges
from ray_rl_debug.analyze.waits_semaphores import semaphore_edges
from ray_rl_debug.analyze.waits_serving import inside_edges, through_threads, without_unasked
from ray_rl_debug.analyze.waits_shared import shared_memory_edges
from ray_rl_debug.analyze.waits_sidecars import sidecar_edges
from ray_rl_debug.analyze.waits_sizes import size_edges
from ray_rl_debug.analyze.waits_starts import start_edges
from ray_rl_debug.analyze.waits_stores import store_edges
from ray_rl_debug.analyze.waits_system import onward_edges, system_edges
from ray_rl_debug.analyze.waits_system_v import system_v_edges
from ray_rl_debug.analyze.waits_unseen import programs_edges, sibling_edges, unseen_edges
from ray_rl_debug.analyze.worlds import World, find_worlds


class Waits(msgspec.Struct, frozen=True, kw_only=True):
    """The solved graph and the worlds it was built with."""

    graph: Graph
    worlds: tuple[World, ...]
    joined: Joined = Joined()
    """What Flight Recorder and NCCL RAS say of the ranks."""


def find_waits(view: View) -> Waits:
    """All edges of a view and their solution; pure."""
    worlds = find_worlds(view)
    joined = find_joined(view)
    edges = KnownEdges([
        *ray_edges(view),
        *joined_edges(view, joined, list(rank_edges(view, worlds))),
        *rpc_edges(view, worlds),
        *size_edges(view),
        *system_edges(view),
        *file_lock_edges(view),
        *engine_edges(view),
        *generator_edges(view),
        *graph_edges(view),
        *launcher_edges(view),
        *awaited_socket_edges(view),
        *awaited_child_edges(view),
        *awaited_pool_edges(view),
        *unseen_edges(view),
        *semaphore_edges(view),
        *shared_memory_edges(view),
        *sidecar_edges(view),
    ])  # fmt: skip
    edges += room_edges(view, edges)
    starts = [*start_edges(view, edges)]
    edges += (*starts, *onward_edges(view, starts))
    edges += shutdown_edges(view, worlds, edges)
    edges += message_edges(view, edges)
    edges += idle_edges(view, edges)
    edges += store_edges(view, edges)
    edges += loop_broker_edges(view, edges)
    edges += fed_edges(view, edges)
    edges += sibling_edges(view, edges)
    edges += programs_edges(view, edges)
    edges += call_edges(view, edges)
    edges += reader_edges(view, edges)
    edges += system_v_edges(view, edges)
    edges += lane_edges(view, edges)
    edges += poll_edges(view, edges)
    edges += look_edges(view, edges)
    edges += async_edges(view, edges)
    edges += request_edges(view, edges)
    edges += assumed_edges(view, worlds, edges)
    edges += inside_edges(view)
    return Waits(graph=build_graph(view, without_unasked(through_threads(view, edges)), joined), worlds=worlds, joined=joined)
