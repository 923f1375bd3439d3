"""Ray's names of what is asked of a bundle, as its tables list them."""

from __future__ import annotations

from ray_rl_debug.ray_state.bundles import asked, public

GROUP = "7da4a71226b2e13991411a5ac9ea01000000"


def test_what_is_asked_of_one_bundle() -> None:
    found = asked({f"CPU_group_0_{GROUP}": 2.0, f"CPU_group_{GROUP}": 2.0, f"bundle_group_0_{GROUP}": 0.001, f"bundle_group_{GROUP}": 0.001})
    assert (found.resources, found.placement_group_id, found.bundle) == ({"CPU": 2.0}, GROUP, 0)


def test_what_is_asked_of_any_bundle_of_a_group() -> None:
    found = asked({f"GPU_group_{GROUP}": 1.0, f"tpu_group_like_group_{GROUP}": 4.0})
    assert (found.resources, found.placement_group_id, found.bundle) == ({"GPU": 1.0, "tpu_group_like": 4.0}, GROUP, None)


def test_what_is_asked_of_the_nodes() -> None:
    found = asked({"CPU": 1.00001, "node:10.0.0.1": 0.001, "my_group_name": 1.0})
    assert (found.resources, found.placement_group_id, found.bundle) == ({"CPU": 1.0, "my_group_name": 1.0}, None, None)
    assert asked(None).resources == {}


def test_what_a_node_has_without_what_groups_took_of_it() -> None:
    assert public({"CPU": 4.0, f"CPU_group_0_{GROUP}": 2.0, "node:10.0.0.1": 1.0}) == {"CPU": 4.0}


def test_a_resource_of_the_users_that_is_only_called_like_a_groups() -> None:
    found = asked({"gpu_group_0": 1.0, "worker_group_a": 2.0})
    assert (found.resources, found.placement_group_id) == ({"gpu_group_0": 1.0, "worker_group_a": 2.0}, None)
