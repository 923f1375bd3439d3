"""Raylets on this machine, until standard input closes: ``cluster_program.py FOLDER NODES [dashboard]``."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "examples"))
from ports import free_port


def main() -> None:
    folder, count, *more = sys.argv[1:]
    # Ray writes the address file into RAY_TMPDIR/ray, which must be there
    os.environ["RAY_TMPDIR"] = folder
    temp = os.path.join(folder, "ray")
    os.makedirs(temp, exist_ok=True)
    from ray.cluster_utils import Cluster

    shared = {"num_cpus": 2, "object_store_memory": 80 << 20}
    head = {**shared, "include_dashboard": "dashboard" in more, "temp_dir": temp}
    # what Ray chooses is one port for all clusters of a machine
    head |= {"dashboard_port": free_port(), "dashboard_agent_listen_port": free_port()}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    nodes = [cluster.head_node, *(cluster.add_node(**shared) for _ in range(int(count) - 1))]
    raylets = [n.all_processes["raylet"][0].process.pid for n in nodes]
    dashboard = cluster.head_node.address_info.get("webui_url") if "dashboard" in more else None
    print(json.dumps({"address": cluster.address, "raylets": raylets, "dashboard": dashboard}), flush=True)
    sys.stdin.read()
    cluster.shutdown()


if __name__ == "__main__":
    main()
