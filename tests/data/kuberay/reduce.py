"""Makes the schemas of this folder from KubeRay's custom resource definitions: the version v1 without its descriptions.

git clone https://github.com/ray-project/kuberay && git -C kuberay checkout v1.7.0
python tests/data/kuberay/reduce.py kuberay/ray-operator/config/crd/bases
"""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).parent
KINDS = ("rayclusters", "rayjobs")


def without_descriptions(schema: Any, *, names: bool = False) -> Any:
    """`names`: the keys are names of fields, and a field may be called description."""
    if isinstance(schema, dict):
        kept = ((k, v) for k, v in schema.items() if names or k != "description")
        return {k: without_descriptions(v, names=k == "properties" and not names) for k, v in kept}
    return [without_descriptions(s) for s in schema] if isinstance(schema, list) else schema


def main(folder: Path) -> None:
    for kind in KINDS:
        definition = yaml.safe_load((folder / f"ray.io_{kind}.yaml").read_text())
        (schema,) = (v["schema"]["openAPIV3Schema"] for v in definition["spec"]["versions"] if v["name"] == "v1")
        text = json.dumps(without_descriptions(schema), separators=(",", ":"), sort_keys=True)
        (HERE / f"{kind}.v1.json.gz").write_bytes(gzip.compress(text.encode(), 9, mtime=0))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
