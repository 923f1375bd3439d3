"""The companion's loop: read the signs, decide, look, tell, keep; until the job ends, it hangs for good, or we are asked to leave."""

from __future__ import annotations

import os
import threading
import time
import uuid
from collections.abc import Callable, Collection, Mapping

import msgspec

from ray_rl_debug.analyze.by_hand import said_to_hang
from ray_rl_debug.analyze.pace import with_pace
from ray_rl_debug.capture.jobs import choose_job
from ray_rl_debug.collect.procfs import machine_of
from ray_rl_debug.model.errors import RayRlDebugError
from ray_rl_debug.model.snapshot import RayJob, Snapshot, TaskHistory
from ray_rl_debug.ray_state.roll_call import RollCall
from ray_rl_debug.watch.beats import Census
from ray_rl_debug.watch.closer_look import Keeping, Look, describe_trouble, keep_trace, take_look
from ray_rl_debug.watch.crew import Crew
from ray_rl_debug.watch.departed import Departed
from ray_rl_debug.watch.history import Event, History, folder_of_run
from ray_rl_debug.watch.job_watch import REST_S, JobWatch
from ray_rl_debug.watch.last_check import check_end, has_trained
from ray_rl_debug.watch.learning import Learning
from ray_rl_debug.watch.listener import Listener
from ray_rl_debug.watch.live import Live, role_lines, table
from ray_rl_debug.watch.node_watch import WatchOrder
from ray_rl_debug.watch.options import WatchOptions
from ray_rl_debug.watch.telling import Telling

ROLL_EVERY_S = 30.0
"""Nodes and jobs are asked for this often: a run that ended, a node that joined."""
ROLL_SOON_S = 3.0
"""and this often while there is no job, a process is unknown, a driver has ended or a node is silent."""
NO_JOB_S = 20.0
"""Without any job for so long, after one was there, the watch is over."""
FIRST_S = 40.0
"""For the first word of any node."""
GOLDEN = 0.618034
"""Its multiples fill the interval from 0 to 1 evenly."""


class Companion:
    """Watches the jobs of one cluster."""

    def __init__(
        self,
        options: WatchOptions,
        crew: Crew,
        roll: Callable[[Collection[str]], RollCall],
        live: Live,
        *,
        listener: Listener | None = None,
        end_driver: Callable[[str, int, int], str | None] | None = None,
        address: str = "",
        finished: Callable[[RayJob], tuple[TaskHistory, ...]] | None = None,
        learning: Learning | None = None,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._options = options
        self._crew = crew
        self._roll = roll
        self._live = live
        self._listener = listener
        self._end_driver = end_driver
        self._address = address
        self._finished = finished
        self._learning = learning
        self._clock = clock
        self._wall = wall
        self._name = uuid.uuid4().hex[:12]
        self._machine = machine_of()
        self._census = Census()
        self._departed = Departed()
        self._jobs: dict[str, JobWatch] = {}
        self._ended: set[str] = set()
        self._telling = Telling(options, self._say)
        self._drivers: tuple[int, ...] = ()
        self._silent: dict[str, str] = {}
        self._began = clock()
        self._rolled_at = float("-inf")
        self._names: dict[str, str] = {}
        """Of the nodes that live, by id."""
        self._had_job_at: float | None = None
        self._told_trouble: str | None = None
        self.hung = False
        """Is there a hang that people were told of and that has not ended?"""

    def run(self, stop: threading.Event) -> None:
        """Until there is nothing more to watch. Raises what the first contact with the cluster raises."""
        try:
            self._call_roll(first=True)
            next_at, number = self._clock(), 0
            while not stop.is_set():
                self._tick(stop)
                if self._is_over():
                    break
                number += 1
                # uneven, so that a run in step with us does not look frozen
                next_at = max(next_at + self._wait_s() * (0.8 + 0.4 * (number * GOLDEN % 1.0)), self._clock())
                stop.wait(max(0.0, next_at - self._clock()))
        finally:
            self._leave(stop)

    def _wait_s(self) -> float:
        """Until the next reading: as soon as the job that is looked at most closely wants it."""
        return min((w.progress.wait_s for w in self._jobs.values()), default=self._options.interval_s)

    def _tick(self, stop: threading.Event) -> None:
        now = self._clock()
        if now - self._rolled_at >= (ROLL_SOON_S if self._needs_roll() else ROLL_EVERY_S):
            self._call_roll()
        try:
            readings, lost = self._crew.read(self._order())
        except RayRlDebugError as e:
            readings, lost = {}, {"cluster": str(e)}
        self._note_silence(lost)
        self._silent = {n: w for n, w in self._silent.items() if n not in readings}
        now = self._clock()
        if not readings and not self._census.seen and now - self._began < FIRST_S:
            self._show(now, 0)
            return  # nobody has been seen yet: silence would say nothing
        beats = self._census.beats(readings, now, self._jobs)
        self._departed.note(self._census.gone, now)
        for job, watch in list(self._jobs.items()):
            last = watch.last_look
            for event in watch.take(beats[job], self._wall(), self._census.gpus.values()):
                self._say(f"job {job}: {event.text}")
                if event.kind == "recovered":
                    self.hung = any(w.alarmed for w in self._jobs.values())
                    if last is not None:
                        self._telling.recovered(job, last)
                if self._listener is not None:
                    self._listener.event(job, event)
            if watch.wants_look(now) and not stop.is_set():
                self._look(watch)
        self._hear_learning()
        self._show(now, len(readings))

    def _hear_learning(self) -> None:
        """What is new about the metrics of the run: it may be alive and learn nothing."""
        told = self._learning.poll() if self._learning is not None and self._jobs else []
        for one in told:
            self._say(one.text)
            for job, watch in self._jobs.items():
                event = watch.note(self._wall(), "trouble" if one.is_trouble else "learning", one.text)
                if self._listener is not None:
                    self._listener.event(job, event)
                if one.finding is not None:
                    self._telling.learning(job, one.finding)
        if told and self._listener is not None and self._learning is not None and self._learning.report is not None:
            self._listener.learning(self._learning.report)

    def _order(self) -> WatchOrder:
        decisions = [w.decision for w in self._jobs.values()]
        often, closely = any(d.soon for d in decisions), any(d.closely for d in decisions)
        return WatchOrder(companion=self._name, drivers=self._drivers, skip=(os.getpid(),), skip_on=self._machine, often=often, closely=closely)

    def _gather(self, watch: JobWatch) -> Snapshot:
        """A closer look, with what only somebody who was there before can know."""
        found = self._departed.told_in(self._crew.gather(watch.job.job_id), self._clock())
        found = with_pace(found, watch.progress.longest_step_s)
        return said_to_hang(found, watch.decision.age_s) if watch.decision.declared else found

    def _look(self, watch: JobWatch) -> None:
        job, decision = watch.job.job_id, watch.decision
        self._say(f"job {job}: {decision.reason}; looking closer")
        began = self._wall()
        try:
            look = take_look(lambda: self._gather(watch), watch.history, now_s=began)
        except Exception as e:  # noqa: BLE001 the watch must outlive any look
            watch.progress.looked(self._clock(), rest_s=REST_S)
            event = watch.note(self._wall(), "trouble", f"the closer look failed: {describe_trouble(e)}")
            self._say(f"job {job}: {event.text}")
            return
        event, tell = watch.judge(look, self._clock(), self._wall())
        self.hung = self.hung or tell
        look = self._tell_and_keep(watch, look, event, began, tell=tell)
        if look.is_hang:
            keep_trace(look, watch.history, lambda text: None)
        watch.prune()
        if self._options.stop_job and self._end_driver is not None and watch.is_confirmed(look, self._clock()):
            said = self._stop_driver(watch.job)
            self._say(f"job {job}: {watch.note(self._wall(), 'stopped', said or 'asked its driver to end (--stop-job)').text}")

    def _tell_and_keep(self, watch: JobWatch, look: Look, event: Event, began_s: float, *, tell: bool) -> Look:
        """People first: a disk that hangs must not keep the news from them. Then the files of the look, and its event."""
        job, keeping = watch.job.job_id, Keeping(look)
        self._say(f"job {job}: {event.text}")
        if tell:
            self._telling.hang(job, keeping, event.age_s or 0.0)
        look = watch.last_look = keeping.write(watch.history, began_s)
        event = watch.keep(event, look)
        if look.folder:
            self._say(f"job {job}: files in {look.folder}")
        if look.trouble:
            self._say(f"job {job}: {watch.note(self._wall(), 'trouble', look.trouble).text}")
        if self._listener is not None:
            self._listener.look(job, look, event, began_s=began_s)
        return look

    def _stop_driver(self, job: RayJob) -> str | None:
        """Ask the driver to end that was seen as this job's: on its node, and born when it was."""
        ids = {name: node_id for node_id, name in self._names.items()}
        seen = [s for s in self._census.seen.values() if s.known.kind == "driver" and s.known.pid == job.driver_pid and s.node in ids]
        seen = [s for s in seen if self._census.job_of(s) == job.job_id]
        if self._end_driver is None or not seen or len({s.known.born for s in seen}) > 1:
            return "the driver was not ended: its process was not found"
        return self._end_driver(ids[seen[0].node], seen[0].known.pid, seen[0].known.born)

    def _call_roll(self, *, first: bool = False) -> None:
        """Ask for nodes and jobs, and for workers where somebody is not known; place agents where a node is new or silent."""
        self._rolled_at = self._clock()
        try:
            unknown = self._census.unknown()
            roll = self._roll({node_id for node_id, name in self._names.items() if name in unknown})
        except Exception as e:
            if first:
                raise
            self._trouble(f"Ray's tables cannot be read: {describe_trouble(e)}")
            return
        self._take_jobs(roll, first=first)
        names = _node_names(roll)
        for gone in self._names.keys() - names.keys():
            count = self._census.forget_node(self._names[gone])
            self._silent.pop(self._names[gone], None)
            self._note(f"node {self._names[gone]} has left the cluster, and {count} processes with it")
        self._names = names
        watched = {j.job_id for j in roll.jobs if j.job_id in self._jobs}
        of_ip = {ip: [names[n.node_id] for n in roll.nodes if n.alive and n.ip == ip] for ip in {j.driver_ip for j in roll.jobs if j.driver_ip}}
        drivers = {
            (name, j.driver_pid): j.job_id for j in roll.jobs if j.job_id in watched and j.driver_pid for name in of_ip.get(j.driver_ip or "", ())
        }
        self._census.learn_jobs({names[n]: jobs for n, jobs in roll.worker_jobs.items() if n in names}, drivers)
        try:
            lost = self._crew.refresh()
        except RayRlDebugError as e:
            lost = {"cluster": str(e)}
        self._note_silence(lost)

    def _take_jobs(self, roll: RollCall, *, first: bool) -> None:
        wanted = choose_job(self._options.job_id, roll.jobs) if first or self._options.job_id in {j.job_id for j in roll.jobs} else None
        if first and self._options.job_id is not None:
            self._options = msgspec.structs.replace(self._options, job_id=wanted)
        now, now_s = self._clock(), self._wall()
        own = os.environ.get("RAY_JOB_SUBMISSION_ID") or _own_submission()
        for job in roll.jobs:
            if not job.alive and job.job_id in self._jobs:
                self._check_end(self._jobs[job.job_id])
                self._end_job(job.job_id, "the job has ended")
            watched = self._options.job_id in (None, job.job_id) and job.alive and not (own and job.submission_id == own)
            if watched and job.job_id not in self._jobs and job.job_id not in self._ended:
                history = History(self._options.output / folder_of_run(job))
                watch = JobWatch(job, history, self._options.limits, interval_s=self._options.interval_s, now=now, now_s=now_s)
                self._jobs[job.job_id] = watch
                self._say(watch.history.events[-1].text)
        self._drivers = tuple(sorted(w.job.driver_pid for w in self._jobs.values() if w.job.driver_pid))
        if self._jobs:
            self._had_job_at = now

    def _check_end(self, watch: JobWatch) -> None:
        """A job that ended with a cheerful last line and no training step: people are told of that as well."""
        if self._finished is None or has_trained(watch.progress.learned):
            return
        try:
            history, now_s = self._finished(watch.job), self._wall()
            if has_trained(watch.progress.learned, (h.name for h in history)):
                return
            found = check_end(watch.job, history, address=self._address, now_s=now_s)
            if found is None:
                return
            look = take_look(lambda: found[0], watch.history, now_s=now_s, judge=lambda _: found[1])
        except Exception as e:  # noqa: BLE001 the end of one job is not the end of the watch
            self._trouble(f"job {watch.job.job_id}: its finished tasks cannot be read: {describe_trouble(e)}")
            return
        self._tell_and_keep(watch, look, watch.verdict(look, now_s), now_s, tell=True)

    def _end_job(self, job: str, text: str) -> None:
        watch = self._jobs.pop(job)
        self._ended.add(job)
        if self._listener is not None:
            self._listener.forget(job)
        self._say(f"job {job}: {watch.end(self._wall(), text).text}")

    def _needs_roll(self) -> bool:
        watched = {w.job.driver_pid for w in self._jobs.values()}
        seen = {s.known.pid for s in self._census.seen.values() if s.known.kind == "driver"}
        return not self._jobs or bool(watched - seen - {None}) or bool(self._census.unknown()) or bool(self._silent)

    def _note_silence(self, lost: Mapping[str, str]) -> None:
        for node, why in lost.items():
            if node not in self._silent:
                self._silent[node] = why
                self._note(f"node {node} is silent: {why}")

    def _note(self, text: str) -> None:
        self._say(text)
        for watch in self._jobs.values():
            watch.note(self._wall(), "node", text)

    def _is_over(self) -> bool:
        if self._options.exit_once_hung and self.hung:
            return True
        if self._jobs:
            return False
        if self._options.job_id is not None and self._options.job_id in self._ended:
            return True
        return self._had_job_at is not None and self._clock() - self._had_job_at > NO_JOB_S

    def _leave(self, stop: threading.Event) -> None:
        for job in list(self._jobs):
            self._end_job(job, "the companion was stopped" if stop.is_set() else "the companion has done its work")
        self._telling.finish()
        if self._listener is not None:
            self._listener.close()
        self._crew.stop()

    def _show(self, now: float, nodes: int) -> None:
        jobs = {j: (w.progress, role_lines(self._census, j, w.progress, now)) for j, w in self._jobs.items()}
        busy = [g.utilization for g in self._census.gpus.values() if g.utilization is not None]
        gpus = f"{100 * sum(busy) / len(busy):.0f} % of {len(busy)}" if busy else None
        learning = self._learning.line() if self._learning is not None else None
        self._live.show([*table(jobs, nodes, len(self._silent), gpus), *([learning] if learning else [])], now, self._wall())
        if self._listener is not None:
            for job, watch in self._jobs.items():
                self._listener.progress(job, jobs[job][1], watch.progress.age_s(now), watch.progress.learned.step)
            self._listener.gpus(self._census.gpus)
            self._listener.nodes(nodes, len(self._silent))

    def _trouble(self, text: str) -> None:
        if text != self._told_trouble:
            self._told_trouble = text
            self._say(text)

    def _say(self, text: str) -> None:
        self._live.say(text, self._wall())


def _node_names(roll: RollCall) -> dict[str, str]:
    from ray_rl_debug.cluster.node_choice import unique_names

    return unique_names([n for n in roll.nodes if n.alive])


def _own_submission() -> str | None:
    """The submission that runs us, from the configuration that Ray hands to its driver."""
    import json

    try:
        found = json.loads(os.environ.get("RAY_JOB_CONFIG_JSON_ENV_VAR", "{}"))
        return str(found["metadata"]["job_submission_id"])
    except (ValueError, KeyError, TypeError):
        return None
