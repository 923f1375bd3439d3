"""What the own facts of those say for whom others wait: servers and their handlers, givers, children. Reasons of rows of the table in `outlook`.

Each takes the facts of one activity and tells why its row applies, in words for people; None where it does not.
"""

from __future__ import annotations

from ray_rl_debug.analyze.await_chains import is_own, is_read_in_part, serves_by_name
from ray_rl_debug.analyze.clocks import wakes_soon
from ray_rl_debug.analyze.coroutines import SERVES_RANK, rank, sleeps_on
from ray_rl_debug.analyze.descriptors_left import is_full_for_good, kept_out
from ray_rl_debug.analyze.edges import Why
from ray_rl_debug.analyze.handlers import (
    does_not_accept,
    own_threads,
    pausing_handler,
    waiting_thread,
    waits_for_client,
)
from ray_rl_debug.analyze.kernel_calls import kernel_call
from ray_rl_debug.analyze.kinds_of_places import Kind
from ray_rl_debug.analyze.limits import FEW_WAKES
from ray_rl_debug.analyze.lost_threads import LOST_CALLER, lost_caller, lost_thread
from ray_rl_debug.analyze.outlook_facts import ENDS, EXACT, Facts
from ray_rl_debug.analyze.outlook_naps import awake, lives, writes
from ray_rl_debug.analyze.pauses import (
    ANSWER_S,
    is_plain_sleep,
    may_wake_soon,
    napping,
    rests,
    sleeps,
    turns_by_clock,
    wakes_first,
    wakes_often,
)
from ray_rl_debug.analyze.progress import Motion
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.analyze.unread_coroutines import is_blind
from ray_rl_debug.analyze.view import View
from ray_rl_debug.analyze.waits_async import POOL_WORKERS
from ray_rl_debug.analyze.waits_brokers import clients_of, keeps_requests_back
from ray_rl_debug.analyze.waits_children import is_unseen_child
from ray_rl_debug.model.snapshot import AsyncTask, Thread

_ANSWERS = frozenset({Why.SOCKET, Why.AWAITED_SOCKET})
_ITS_END = frozenset({Why.CHILD, Why.AWAITED_CHILD})
_TAKERS = frozenset({Why.SEMAPHORE, Why.GIVERS})


def lacks_thread(f: Facts) -> str | None:
    lost = lost_thread(f.view, f.one) if not f.asked_for.isdisjoint(_TAKERS) else None
    if lost is None and any(e.op == LOST_CALLER for e in f.asked):
        lost = lost_caller(f.view, f.one)
    return f"its fellows each run a thread in {lost.function}, and its own has ended" if lost is not None else None


def serves_for_ever(f: Facts) -> str | None:
    """A method that serves or pauses between two turns gives its lane back to nobody; what is being set up will be ready one day."""
    queued = Why.QUEUED_CALL in f.asked_for
    method = f.one.identity.method or ""
    pauses = f.one.core is not None and rests(f.one)  # whether its calls come and go, its core worker tells
    if not queued or f.one.is_idle or method == "__init__" or not (serves_by_name(method) or pauses):
        return None
    return f"it runs {method or 'a method'}, which serves and does not return"


def turns(f: Facts) -> str | None:
    """A server of one thread may gather requests, and answer in a later turn of its loop."""
    turn_s = turns_by_clock(f.one) if f.asked else None
    return f"its loop makes its next turn in {turn_s:.0f} s at most" if turn_s is not None else None


def fills_pipe(f: Facts) -> str | None:
    at_pipe = [e.source for e in f.asked if e.why is Why.PIPE] if Why.PIPE in f.asked_for else []
    reads = f.one.process.read_bytes != 0  # slowly, piece by piece; or nobody knows
    # it may read when it has done its step or its pause, or stand at a full pipe itself
    goes_on = f.one.motion is Motion.BUSY or lives(f) or f.lacks_kernel or _is_elsewhere(f.one) or is_blind(f.view, f.one)
    is_full = bool(at_pipe) and not reads and not goes_on and any(writes(f.view, source) for source in at_pipe)
    return "it does not read what it is sent, and the pipe is full" if is_full else None


def _is_elsewhere(one: Seen) -> bool:
    """Does one without a stack stand in a write of its own, or in a pause that ends soon?"""
    first = one.process.threads[0] if one.process.threads and not one.threads else None
    return kernel_call(first) == "write" or (first is not None and kernel_call(first) == "sleep" and may_wake_soon(first))


def old_child(f: Facts) -> str | None:
    age = f.one.age_s
    awaited = not f.asked_for.isdisjoint(ENDS) and f.one.process.kind == "child"
    if f.one.process.state != "D" and ((f.one.process.python is not None and not f.one.threads) or f.lacks_kernel):
        return None  # its stack, or its side in the kernel, would tell what it does
    if wakes_first(f.one) or is_plain_sleep(f.one) or (f.one.threads and f.waits):
        return None  # how long it lives says nothing of one step of it, or of one wait
    if f.one.threads and sleeps(f.one):
        return None  # a program of many steps may well pause between two of them, whoever waits for what it does in a step
    if not f.one.threads and f.one.process.state != "D" and not _rests(f.one):
        return None  # it woke up meanwhile, or its clock will wake it, and nobody knows what it does then
    return f"it runs for {age:.0f} s" if awaited and age is not None and age >= ANSWER_S and f.one.motion is not Motion.BUSY else None


def _rests(one: Seen) -> bool:
    """Do all threads of a program without a stack stand in system calls that no clock ends, and did none of them run?"""
    threads = one.process.threads
    return bool(threads) and all(
        t.state == "S" and t.wakes_in_s is None and kernel_call(t) not in (None, "sleep") and not t.run_slices and _is_at_known_files(one, t)
        for t in threads
    )


def _is_at_known_files(one: Seen, thread: Thread) -> bool:
    """Is it known what each descriptor is at which it waits? Who could end the wait hangs on that."""
    known = {f.fd for f in one.process.files or ()} | {s.fd for s in one.process.sockets or ()}
    return one.process.files is None or known.issuperset(thread.waits_on_fds or ())


def child_began(f: Facts) -> str | None:
    """It waits for the end of a child that was not there when all processes were looked for: a script that goes on to its next program.

    One that did not run at all meanwhile has begun none.
    """
    thread = waiting_thread(f.one)
    kernel = thread.kernel if thread is not None else next(iter(f.one.process.threads), None)
    if (
        f.asked_for.isdisjoint(ENDS)
        or kernel is None
        or kernel.run_slices == 0
        or kernel_call(kernel) != "wait"
        or not is_unseen_child(f.view, f.one, kernel.syscall_arg0)
    ):
        return None
    return "the child that it waits for began while it was looked at"


def serves_in_coroutine(f: Facts) -> str | None:
    """Begun by a server or by Ray, with a piece in its hands, or in no loop that nothing ends, it is on the way to an answer.

    A loop of the program's own rhythm is not. Of one that sleeps and was read in part nobody knows.
    """
    if f.asked_for <= EXACT:
        return None
    in_part = (t for t in f.one.process.async_tasks or () if sleeps_on(t) and is_read_in_part(t))
    if any(_is_on_the_way(t) for t in napping(f.one)) or next(in_part, None) is not None:
        return "its coroutines that answer sleep and will go on by themselves"
    return None


def _is_on_the_way(task: AsyncTask) -> bool:
    first = task.chain[0]
    return not is_own(first) or first.takes is True or first.goes_round is False or (first.takes is None and first.apart is False)


def client_pauses(f: Facts) -> str | None:
    """Its coroutines keep requests back until another request comes.

    A client of it may send one by itself, in another coroutine or thread; so may anybody who goes on, over a connection of its own.
    """
    if f.asked_for.isdisjoint(_ANSWERS) or f.one.kind is not Kind.LOOP_IDLE or not keeps_requests_back(f.one):
        return None
    for key in sorted(clients_of(f.view, f.one)):
        client = f.view.seen[key]
        if napping(client) or client.process.async_tasks is None or any(t.place.kind is Kind.SLEEP and t.place.path for t in client.threads):
            return f"{client.identity.label} pauses, and may send what its requests wait for"
    other = next((o for o in f.view.once(awake) if o.process is not f.one.process), None)
    return f"{other.identity.label} goes on, and may send what its requests wait for" if other is not None else None


def asks_pool_again(f: Facts) -> str | None:
    """Its own giving up in between is no progress: only a worker of the pool brings one."""
    asks = any(e.among == POOL_WORKERS for e in f.waits) and all(e.awaited.kind == "executor" for e in f.one.ends if rank(e) < SERVES_RANK)
    return "it asks its pool of processes again and again, and waits for those workers of it that have work" if asks else None


def handler_pauses(f: Facts) -> str | None:
    """It only listens; the answer, or what a child puts into its queue, may come from another thread of its program."""
    thread = pausing_handler(f.one) if not f.asked_for.isdisjoint((*_ANSWERS, Why.CHILD_QUEUE)) else None
    return f"its thread {thread.called} may have the request, and sleeps for some seconds" if thread is not None else None


def coroutine_pauses(f: Facts) -> str | None:
    """None of its coroutines stands, and one wakes by its clock and may bring what others wait for. For an answer it must have a request in hand."""
    if not f.one.is_idle or not f.asked_for.isdisjoint(_ANSWERS) or any(e.is_still and rank(e) < SERVES_RANK for e in f.one.ends):
        return None
    task = next((t for t in napping(f.one) if t.chain[0].apart is False), None)
    return f"its coroutine {task.name} pauses, and may bring what they wait for when it wakes" if task is not None else None


def leaves_clients(f: Facts) -> str | None:
    if f.asked_for.isdisjoint(_ANSWERS):
        return None
    queued = [e for e in f.asked if e.why in _ANSWERS and f.view.seen[e.source].motion is Motion.FROZEN]
    if not queued or not does_not_accept(f.one):
        return None
    return "clients wait in its queue, and its one thread comes back to its pause without accepting them"


def lacks_descriptors(f: Facts) -> str | None:
    """It may run and try again as often as it likes: it has room for nobody, and nothing is seen that would make room."""
    if f.asked_for.isdisjoint(_ANSWERS) or not f.asked_for <= _ANSWERS | _ITS_END or not kept_out(f.one) or not is_full_for_good(f.view, f.one):
        return None
    frozen = any(f.view.seen[e.source].motion is Motion.FROZEN for e in f.asked if e.source in f.view.seen)
    return "clients wait in its queue, and it has no descriptor for them and closes none" if frozen else None


def works_below(f: Facts) -> str | None:
    asked = not f.asked_for <= EXACT
    return "one of its children works" if asked and _child_works(f.view, f.one) else None


def _child_works(view: View, one: Seen) -> bool:
    return any(child.motion in (Motion.MOVING, Motion.BUSY) or _child_works(view, child) for child in view.children(one))


def young_program(f: Facts) -> str | None:
    """Agents await programs all the time, and most end, as does one that has just begun and works. Not one that stands at a file."""
    age, awaited = f.one.age_s, Why.AWAITED_CHILD in f.asked_for
    begins = f.one.motion is Motion.BUSY and not f.one.threads and (age or ANSWER_S) < ANSWER_S and Why.CHILD in f.asked_for
    if not (awaited or begins) or age is None or any(kernel_call(t) in _AT_FILE for t in f.one.process.threads[:1]):
        return None
    return f"the program runs for {age:.0f} s and may still end"


_AT_FILE = frozenset({"open", "flock", "fcntl", "read", "write"})


def foreign(f: Facts) -> str | None:
    """A child that is no Python: the kernel tells where its threads stand."""
    threads = f.one.process.threads
    if f.one.threads or f.one.process.python is not None or not threads or f.asked_for.isdisjoint(ENDS) or f.one.motion is Motion.BUSY:
        return None
    return f"it stands in {kernel_call(threads[0])}" if _rests(f.one) else None


def worker_begins(f: Facts) -> str | None:
    """A worker of Ray that starts shows no stack at first: that it runs now and then tells that it goes on."""
    if Why.STARTS not in f.asked_for or f.one.threads or f.one.is_stopped:
        return None
    slices = sum(t.run_slices or 0 for t in f.one.process.threads)
    return f"it starts, and ran {slices} times during the window" if slices > FEW_WAKES else None


def foreign_sleeps(f: Facts) -> str | None:
    """The kernel's clock will wake it; how often it has slept so is not known. Or what it reads came in meanwhile, and may go on to come."""
    threads = f.one.process.threads
    if f.one.process.python is not None or f.one.threads or not threads or f.asked_for.isdisjoint(ENDS):
        return None
    if len(threads) == 1 and kernel_call(threads[0]) == "read" and threads[0].run_slices and f.one.process.read_bytes:
        return f"it read {f.one.process.read_bytes} bytes during the window"
    return "it is no Python and sleeps for a time" if all(t.state == "S" and kernel_call(t) == "sleep" for t in threads) else None


def listens(f: Facts) -> str | None:
    """Not where somebody waits for its answer, or for its end."""
    delivers = not f.asked_for.isdisjoint(_DELIVERS) and f.asked_for.isdisjoint((*_ANSWERS, Why.CHILD, Why.AWAITED_CHILD))
    return f"{f.one.motion_reason}; it waits for a client, and who that may be was not seen" if delivers and waits_for_client(f.one) else None


_DELIVERS = frozenset({Why.CHILD_QUEUE, Why.GIVERS})


def frameless(f: Facts) -> str | None:
    """A generator that is held back shows no frame: whoever takes what it makes may take the next."""
    runs = f.one.is_idle and f.one.core is not None and bool(f.one.core.running_task_ids) and not f.one.process.async_tasks
    is_asked = runs and Why.QUEUED_CALL in f.asked_for
    return f"{f.one.motion_reason}; its call shows no frame, and none of its kind has finished" if is_asked else None


def _clocks_were_read(view: View) -> bool:
    return any(t.wakes_in_s is not None for one in view for t in one.process.threads)


def silent_server(f: Facts) -> str | None:
    """Its one thread at work sleeps through the whole window with a request in hand. One that works in steps wakes up between them.

    Where the kernel told when its clock wakes it, that decides.
    """
    thread = f.one.followed or f.one.telling
    kernel = thread.kernel if thread is not None and thread.place.kind is Kind.SLEEP else None
    asked = not f.asked_for.isdisjoint(_ANSWERS)
    if not asked or kernel is None or f.one.motion is not Motion.FROZEN or wakes_often(f.one, kernel) or wakes_soon(kernel):
        return None
    if kernel.wakes_in_s is None and (kernel.call is not None or f.view.once(_clocks_were_read)):
        return None  # when its clock wakes it was not read
    if len(own_threads(f.one)) > 1:
        return None  # another one may have the request
    return f"{f.one.motion_reason}; it sleeps while others wait for its answer"
