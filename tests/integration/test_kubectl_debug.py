"""The recipe of docs/kubernetes.md with the real kubectl: which container it asks for. Of the API server only its four answers are made here."""

from __future__ import annotations

import http.server
import json
import os
import re
import shlex
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from test_kubernetes import ROOT, schema

pytestmark = [pytest.mark.integration, pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")]
VERBS = ["get", "patch", "update"]
PODS = [{"name": n, "singularName": "", "namespaced": True, "kind": "Pod", "verbs": VERBS} for n in ("pods", "pods/ephemeralcontainers")]
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "POD", "namespace": "default", "uid": "1", "resourceVersion": "1"},
    "spec": {"containers": [{"name": "ray-worker", "image": "i"}]},
    "status": {"phase": "Running"},
}
ANSWERS = {
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": []},
    "/api/v1": {"kind": "APIResourceList", "groupVersion": "v1", "resources": PODS},
}


@pytest.fixture
def server() -> Iterator[tuple[str, list[tuple[str, Any]]]]:
    """Its address, and the patches that it was given."""
    patches: list[tuple[str, Any]] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def answer(self, body: Any) -> None:
            data = json.dumps(body).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def do_GET(self) -> None:
            self.answer(ANSWERS.get(self.path.split("?")[0], POD))

        def do_PATCH(self) -> None:
            patches.append((self.path, json.loads(self.rfile.read(int(self.headers["content-length"])))))
            self.answer(POD)

        def log_message(self, *arguments: object) -> None:
            pass

    made = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=made.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{made.server_port}", patches
    made.shutdown()
    made.server_close()


def test_the_added_container_is_roots_with_one_right_beside_the_one_that_is_named(server: tuple[str, list[tuple[str, Any]]], tmp_path: Path) -> None:
    address, patches = server
    text = (ROOT / "docs" / "kubernetes.md").read_text().replace("\\\n", " ")
    (line,) = re.findall(r"^kubectl debug .*$", text, re.MULTILINE)
    argv = shlex.split(line)
    env = {**os.environ, "HOME": str(tmp_path), "KUBECONFIG": str(tmp_path / "none")}
    done = subprocess.run([argv[0], f"--server={address}", *argv[1:]], cwd=ROOT, env=env, capture_output=True, text=True, timeout=60, check=False)
    if "unknown flag: --custom" in done.stderr:
        pytest.skip("this kubectl is older than 1.31")
    assert done.returncode == 0, done.stderr
    ((path, body),) = patches
    assert path.partition("?")[0].endswith("/pods/POD/ephemeralcontainers")
    (added,) = body["spec"]["ephemeralContainers"]
    assert added["targetContainerName"] == "ray-worker"
    assert added["securityContext"] == {"runAsUser": 0, "runAsNonRoot": False, "capabilities": {"add": ["SYS_PTRACE"]}}
    assert added["command"] == ["sleep", "3600"]
    head = schema("RayCluster")["properties"]["spec"]["properties"]["headGroupSpec"]["properties"]["template"]
    container = head["properties"]["spec"]["properties"]["ephemeralContainers"]["items"]
    assert list(jsonschema.Draft7Validator(container).iter_errors(added)) == []
