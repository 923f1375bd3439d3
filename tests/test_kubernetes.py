"""The manifests of ``deploy/kubernetes`` beside KubeRay's own schemas, and what they promise."""

from __future__ import annotations

import gzip
import json
import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from command_lines import in_shell, trouble

from ray_rl_debug.doctor.settings import WANTED

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "tests" / "data" / "kuberay"
MANIFESTS = sorted(p for p in (ROOT / "deploy" / "kubernetes").glob("ray*.yaml"))
QUANTITY = re.compile(r"^\d+(\.\d+)?(m|[kMGT]i?)?$")


@cache
def schema(kind: str) -> Any:
    return strict(json.loads(gzip.decompress((DATA / f"{kind.lower()}s.v1.json.gz").read_bytes())))


def strict(node: Any) -> Any:
    """A schema of a custom resource as JSON Schema: fields that it does not name are errors, as with ``kubectl apply --validate=strict``."""
    if isinstance(node, list):
        return [strict(n) for n in node]
    if not isinstance(node, dict):
        return node
    made = {k: {n: strict(s) for n, s in v.items()} if k == "properties" else strict(v) for k, v in node.items()}
    if "properties" in node and "additionalProperties" not in node and not node.get("x-kubernetes-preserve-unknown-fields"):
        made["additionalProperties"] = False
    if node.get("x-kubernetes-int-or-string"):
        made.pop("type", None)
    return made


def trouble_with(manifest: dict[str, Any]) -> list[str]:
    """What the schema of its kind says of a manifest; the metadata is a plain object there."""
    body = {k: v for k, v in manifest.items() if k != "metadata"}
    found = jsonschema.Draft7Validator(schema(manifest["kind"])).iter_errors(body)
    return [f"{'/'.join(map(str, e.absolute_path))}: {e.message}" for e in found]


def load(path: Path) -> dict[str, Any]:
    (manifest,) = yaml.safe_load_all(path.read_text())
    return dict(manifest)


def pods(manifest: dict[str, Any]) -> Iterator[dict[str, Any]]:
    cluster = manifest["spec"].get("rayClusterSpec", manifest["spec"])
    if "headGroupSpec" in cluster:
        yield cluster["headGroupSpec"]["template"]["spec"]
    yield from (group["template"]["spec"] for group in cluster.get("workerGroupSpecs", ()))


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda p: p.name)
def test_a_manifest_is_one_that_kuberay_takes(path: Path) -> None:
    manifest = load(path)
    assert manifest["apiVersion"] == "ray.io/v1"
    assert re.fullmatch(r"[a-z]([a-z0-9-]*[a-z0-9])?", manifest["metadata"]["name"])
    assert trouble_with(manifest) == []


def test_wrong_manifests_are_noticed() -> None:
    manifest = load(ROOT / "deploy" / "kubernetes" / "raycluster.yaml")
    (head, _) = pods(manifest)
    head["shareProcessNamespaces"] = True
    head["containers"][0]["securityContext"]["capabilities"]["add"] = "SYS_PTRACE"
    del manifest["spec"]["workerGroupSpecs"][0]["groupName"]
    said = "\n".join(trouble_with(manifest))
    assert "shareProcessNamespaces" in said
    assert "'SYS_PTRACE' is not of type 'array'" in said
    assert "'groupName' is a required property" in said


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda p: p.name)
def test_mounts_volumes_and_quantities_fit_each_other(path: Path) -> None:
    for pod in pods(load(path)):
        volumes = {v["name"]: v for v in pod["volumes"]}
        ray = pod["containers"][0]
        assert {m["name"] for c in pod["containers"] for m in c.get("volumeMounts", ())} == set(volumes)
        assert [m["mountPath"] for m in ray["volumeMounts"] if m["name"] == "shm"] == ["/dev/shm"]
        assert ray["resources"]["requests"] == ray["resources"]["limits"]
        memory, shm = ray["resources"]["limits"]["memory"], volumes["shm"]["emptyDir"]["sizeLimit"]
        assert 0.3 <= int(shm.removesuffix("Gi")) / int(memory.removesuffix("Gi")) < 0.4
        assert all(QUANTITY.match(str(q)) for c in pod["containers"] for part in c["resources"].values() for q in part.values())


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda p: p.name)
def test_workers_leave_the_evidence_that_the_doctor_wants(path: Path) -> None:
    for pod in pods(load(path)):
        env = {e["name"]: e["value"] for e in pod["containers"][0]["env"]}
        assert [names for names, _ in WANTED if not any(n in env for n in names)] == []


def test_one_cluster_has_one_right_and_the_other_none() -> None:
    for pod in pods(load(ROOT / "deploy" / "kubernetes" / "raycluster.yaml")):
        assert pod["containers"][0]["securityContext"] == {"runAsUser": 0, "capabilities": {"add": ["SYS_PTRACE"]}}
        assert "hostPID" not in pod and "securityContext" not in pod
    for pod in pods(load(ROOT / "deploy" / "kubernetes" / "raycluster-unprivileged.yaml")):
        # what Pod Security "restricted" asks for
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert pod["containers"][0]["securityContext"] == {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


def test_a_job_of_a_running_cluster_has_nothing_that_kuberay_refuses_there() -> None:
    spec = load(ROOT / "deploy" / "kubernetes" / "rayjob-companion.yaml")["spec"]
    assert spec["clusterSelector"] == {"ray.io/cluster": load(ROOT / "deploy" / "kubernetes" / "raycluster.yaml")["metadata"]["name"]}
    # KubeRay's ValidateRayJobSpec
    assert not {"rayClusterSpec", "backoffLimit", "suspend", "shutdownAfterJobFinishes"} & spec.keys()
    assert spec["submissionMode"] != "SidecarMode"


def test_a_job_in_sidecar_mode_has_nothing_that_kuberay_refuses_there() -> None:
    spec = load(ROOT / "deploy" / "kubernetes" / "rayjob-sidecar.yaml")["spec"]
    assert not {"submitterPodTemplate", "submitterConfig", "clusterSelector"} & spec.keys()
    (head, _) = pods({"spec": spec})
    assert head.get("restartPolicy", "Never") == "Never"
    assert yaml.safe_load(spec["runtimeEnvYAML"]) == {"worker_process_setup_hook": "ray_rl_debug.prepare.open_doors"}


def test_their_command_lines_are_taken() -> None:
    alone = load(ROOT / "deploy" / "kubernetes" / "rayjob-companion.yaml")["spec"]["entrypoint"]
    (head, _) = pods(load(ROOT / "deploy" / "kubernetes" / "rayjob-sidecar.yaml"))
    beside = head["containers"][1]["args"][0]
    lines = [*in_shell(alone), *in_shell(beside)]
    assert [line[0] for line in lines] == ["watch", "watch"]
    assert [t for line in lines if (t := trouble(line))] == []
    assert shlex.split(beside.splitlines()[-1]) == ["exec", "sleep", "infinity"]


def test_the_container_of_kubectl_debug_is_a_part_of_a_container() -> None:
    custom = yaml.safe_load((ROOT / "deploy" / "kubernetes" / "debug-container.yaml").read_text())
    template = schema("RayCluster")["properties"]["spec"]["properties"]["headGroupSpec"]["properties"]["template"]
    container = dict(template["properties"]["spec"]["properties"]["containers"]["items"])
    container.pop("required")
    assert list(jsonschema.Draft7Validator(container).iter_errors(custom)) == []
    assert custom["securityContext"]["capabilities"] == {"add": ["SYS_PTRACE"]}
