"""Planner and critic get each other by name, or make the other where it is not there yet; each round has a new pair.

In the usual order only the planner waits until the critic is made. With a strict start both wait for each other inside of their constructors.
"""

import kit
import ray


@ray.remote(num_cpus=0)
class Planner:
    def __init__(self, number, is_strict):
        import made_by_each_other as pair

        kit.mark("planner")
        self.critic = pair.Critic.options(name=f"critic-{number}", get_if_exists=True).remote(number, is_strict)
        ray.get(self.critic.ready.remote())

    def ready(self):
        return True

    def plan(self):
        kit.work(0.3)
        return ray.get(self.critic.judge.remote())


@ray.remote(num_cpus=0)
class Critic:
    def __init__(self, number, is_strict):
        import made_by_each_other as pair

        kit.mark("critic")
        self.planner = pair.Planner.options(name=f"planner-{number}", get_if_exists=True).remote(number, is_strict)
        if is_strict:
            ray.get(self.planner.ready.remote())

    def ready(self):
        return True

    def judge(self):
        kit.work(0.3)
        return 0.5


@ray.remote(num_cpus=0)
class Store:
    def __init__(self):
        kit.mark("store")
        self.plans = []

    def put(self, plan):
        self.plans.append(plan)


def main():
    import made_by_each_other as pair

    kit.begin()
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, namespace="debate", object_store_memory=80_000_000)
    kit.mark("cluster", address=ray.get_runtime_context().gcs_address)
    store = pair.Store.remote()
    for number in range(1, 10**6):
        planner = pair.Planner.options(name=f"planner-{number}", get_if_exists=True).remote(number, kit.differs(number))
        ray.get(store.put.remote(ray.get(planner.plan.remote())))
        ray.kill(ray.get_actor(f"critic-{number}"))
        ray.kill(planner)
        kit.step(number)


if __name__ == "__main__":
    main()
