"""Each round has a placement group of a large and a small bundle: the critic needs the large one, the policy fits into both.

Once the policy is put into the large bundle, the critic is never placed. In the twin such a policy trains for some seconds and ends.
"""

import kit
import ray
from ray.util.placement_group import placement_group, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

LARGE, SMALL = 0, 1


@ray.remote(num_cpus=1)
class Policy:
    def __init__(self):
        kit.mark("policy")

    def train(self, scale):
        kit.work(scale)
        return 1

    def train_and_end(self):
        for _ in range(6):
            kit.work(0.8)
        ray.actor.exit_actor()


@ray.remote(num_cpus=2)
class Critic:
    def judge(self):
        kit.work(0.3)
        return 0.5


@ray.remote(num_cpus=0)
class Logger:
    def __init__(self):
        kit.mark("logger")

    def write(self, number):
        return number


def main():
    kit.begin()
    ray.init(address="local", num_cpus=4, include_dashboard=False, log_to_driver=False, object_store_memory=80_000_000)
    kit.mark("cluster", address=ray.get_runtime_context().gcs_address)
    logger = Logger.remote()
    for number in range(1, 10**6):
        group = placement_group([{"CPU": 2}, {"CPU": 1}])
        ray.get(group.ready())
        is_late = kit.is_healthy() and number % 3 == 0
        bundle = LARGE if is_late or kit.differs(number) else SMALL
        policy = Policy.options(scheduling_strategy=PlacementGroupSchedulingStrategy(group, bundle)).remote()
        ray.get(policy.train.remote(0.3))
        if is_late:
            policy.train_and_end.remote()
        critic = Critic.options(scheduling_strategy=PlacementGroupSchedulingStrategy(group, LARGE)).remote()
        ray.get(critic.judge.remote())
        ray.get(logger.write.remote(number))
        remove_placement_group(group)
        kit.step(number)


if __name__ == "__main__":
    main()
