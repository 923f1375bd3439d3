"""A program with one asyncio task of each kind, which writes down what it knows of itself: ``async_program.py TRUTH [uvloop]``.

Standard library only, any CPython from 3.10 on.
"""

import asyncio
import gc
import json
import os
import sys
import threading
import time
import types

LONG_S = 3600.5
EXPECTED = {}
"""Name of a task to what it awaits."""
AWAITED = [("reads", "fd"), ("ends", "pid")]
"""What tasks themselves have yet to tell."""


async def nap():
    numbers = [
        1,
        2,
    ]
    await asyncio.sleep(
        LONG_S,
    )
    return numbers


async def holds(lock):
    async with lock:
        await nap()


async def acquires(lock):
    async with lock:
        raise AssertionError("nobody releases it")


async def gets(queue):
    return await queue.get()


async def puts(queue):
    await queue.put(1)
    await queue.put(2)


async def waits(thing):
    await thing.wait()


async def waits_inside(condition):
    async with condition:
        await condition.wait()


async def gathers():
    await asyncio.gather(nap(), nap(), return_exceptions=True)


async def limits():
    await asyncio.wait_for(nap(), 7200)


async def waits_for_all():
    await asyncio.wait([asyncio.ensure_future(nap())])


async def waits_for_first():
    await asyncio.wait([asyncio.ensure_future(nap()), asyncio.ensure_future(nap())], return_when=asyncio.FIRST_COMPLETED)


async def shields():
    await asyncio.shield(nap())


async def awaits(what):
    await what


async def numbers():
    yield 1
    await asyncio.sleep(LONG_S)
    yield 2


async def iterates():
    async for _ in numbers():
        pass


async def asks_by_hand():
    found = numbers()
    await found.__anext__()
    await found.__anext__()


@types.coroutine
def old_style():
    yield from asyncio.sleep(LONG_S).__await__()


class Own:
    def __await__(self):
        return nap().__await__()


class Rollout:
    async def méthode(self, *args, **kwargs):
        def keeps():
            return self  # makes self a cell

        try:
            raise ValueError
        except ValueError:
            await asyncio.sleep(LONG_S)
        return keeps


async def runs_thread(started):
    def work():
        started.set()
        threading.Event().wait()

    await asyncio.get_running_loop().run_in_executor(None, work)


async def reads(port):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    EXPECTED["reads"].update(fd=writer.get_extra_info("socket").fileno())
    await reader.read(10)


async def serves(reader, writer):
    await asyncio.sleep(LONG_S)
    return reader, writer  # whoever drops the writer closes the connection


async def deep(depth):
    if depth:
        await deep(depth - 1)
    else:
        await asyncio.get_running_loop().create_future()


async def crosses(loop):
    await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(nap(), loop))


async def runs_child(name):
    child = await asyncio.create_subprocess_exec("sleep", "3600", stdout=asyncio.subprocess.PIPE)
    if EXPECTED[name]["kind"] == "subprocess":
        EXPECTED[name].update(pid=child.pid)
    await (child.wait() if name == "ends" else child.stdout.readline())
    return child


async def limits_shielded():
    await asyncio.wait_for(asyncio.shield(nap()), 7200)


async def groups():
    async with asyncio.TaskGroup() as group:
        group.create_task(nap())
        group.create_task(nap())


async def has_time():
    async with asyncio.timeout(7200):
        await nap()


async def meets(barrier):
    async with barrier:
        raise AssertionError("one is missing")


async def takes_first():
    for first in asyncio.as_completed([nap(), nap()]):
        await first


async def locks_in_turn(first, second):
    async with first:
        async with second:
            await nap()


def chain_of(coroutine):
    """(function, file, line) from the outermost in, as the interpreter tells it."""
    chain = []
    while coroutine is not None:
        for prefix, inner in (("cr", "cr_await"), ("gi", "gi_yieldfrom"), ("ag", "ag_await")):
            if hasattr(coroutine, prefix + "_frame"):
                frame, code = getattr(coroutine, prefix + "_frame"), getattr(coroutine, prefix + "_code")
                chain.append([coroutine.__qualname__, code.co_filename, frame.f_lineno if frame else None])
                coroutine = getattr(coroutine, inner)
                break
        else:
            kinds = (types.CoroutineType, types.AsyncGeneratorType)
            hidden = type(coroutine).__name__ in ("coroutine_wrapper", "async_generator_asend")
            coroutine = next((x for x in gc.get_referents(coroutine) if isinstance(x, kinds)), None) if hidden else None
    return chain


def tell(path, loops):
    tasks = {}
    for loop, tid in loops:
        for task in asyncio.all_tasks(loop):
            if task is not asyncio.current_task():
                tasks[id(task)] = {
                    "name": task.get_name(),
                    "chain": chain_of(task.get_coro()),
                    "loop": id(loop),
                    "tid": tid,
                    "awaited": EXPECTED.get(task.get_name()),
                }
    with open(path + ".part", "w") as f:
        json.dump(tasks, f)
    os.rename(path + ".part", path)


async def settled(tasks, started):
    """Every task has come as far as it can."""
    while not started.is_set() or not all(t._fut_waiter for t in tasks) or not all(place in EXPECTED[name] for name, place in AWAITED):
        await asyncio.sleep(0.01)
    for _ in range(20):  # a task that was just awaited by another may go one step further
        await asyncio.sleep(0)
    await asyncio.sleep(0.05)


async def main(path):
    side, side_tid = second_loop()
    server = await asyncio.start_server(serves, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    lock, semaphore, bounded = asyncio.Lock(), asyncio.Semaphore(2), asyncio.BoundedSemaphore(1)
    empty, full, done = asyncio.Queue(), asyncio.LifoQueue(1), asyncio.Queue()
    event, condition, future = asyncio.Event(), asyncio.Condition(), asyncio.get_running_loop().create_future()
    done.put_nowait(1)
    await semaphore.acquire()
    keep = []

    def start(name, coroutine, **expected):
        EXPECTED[name] = expected
        keep.append(asyncio.create_task(coroutine, name=name))
        return keep[-1]

    sleeper = start("nap ☃", nap(), kind="sleep", delay_s=LONG_S)
    holder = start("holds", holds(lock), kind="sleep")
    start("acquires", acquires(lock), kind="lock", address=id(lock), detail="Lock locked", holders=[id(holder)])
    second = start("holds one permit", holds(semaphore), kind="sleep")
    start("no permit", acquires(semaphore), kind="semaphore", address=id(semaphore), value=0, holders=[id(second)])
    await bounded.acquire()
    start("leaked permit", acquires(bounded), kind="semaphore", address=id(bounded), value=0, detail="BoundedSemaphore value=0", holders=[])
    start("gets", gets(empty), kind="queue", address=id(empty), value=0, detail="Queue.get empty")
    start("puts", puts(full), kind="queue", address=id(full), value=1, detail="LifoQueue.put full 1 of 1")
    start("joins", awaits(done.join()), kind="queue", address=id(done), value=1, detail="Queue.join 1 unfinished")
    start("waits", waits(event), kind="event", address=id(event), detail="Event unset")
    start("notified", waits_inside(condition), kind="condition", address=id(condition), holders=[])
    start("gathers", gathers(), kind="gather", detail="gather of 2")
    start("limits", limits(), kind="task" if sys.version_info < (3, 12) else "sleep")
    start("waits for all", waits_for_all(), kind="gather", detail="asyncio.wait of 1")
    start("waits for first", waits_for_first(), kind="gather", detail="asyncio.wait for the first of 2", first=True)
    start("shields", shields(), kind="task")
    start("future", awaits(future), kind="future", address=id(future))
    start("task", awaits(sleeper), kind="task", address=id(sleeper), tasks=[id(sleeper)])
    start("iterates", iterates(), kind="sleep")
    start("asks by hand", asks_by_hand(), kind="sleep")
    start("old style", awaits(old_style()), kind="sleep")
    start("own", awaits(Own()), kind="sleep")
    start("method", Rollout().méthode(), kind="sleep")
    started = threading.Event()
    start("thread", runs_thread(started), kind="executor", detail="thread future running")
    start("reads", reads(port), kind="socket")
    start("deep", deep(60), kind="future")
    start("crosses", crosses(side), kind="task", detail="task of another loop")
    start("ends", runs_child("ends"), kind="subprocess")
    start("writes nothing", runs_child("writes nothing"), kind="socket" if "uvloop" in sys.modules else "subprocess")  # uvloop gives it a socket pair
    start("limits shielded", limits_shielded(), kind="task")
    start("takes first", takes_first(), kind="gather" if sys.version_info >= (3, 13) else "queue")
    outer, inner = asyncio.Lock(), asyncio.Lock()
    both = start("holds both", locks_in_turn(outer, inner), kind="sleep")
    start("wants outer", locks_in_turn(outer, inner), kind="lock", address=id(outer), holders=[id(both)])
    wanted = start("holds other", locks_in_turn(asyncio.Lock(), inner), kind="lock", address=id(inner), holders=[id(both)])
    start("behind both", awaits(wanted), kind="task", tasks=[id(wanted)])
    if sys.version_info >= (3, 11):
        start("groups", groups(), kind="gather", detail="TaskGroup of 2")
        start("has time", has_time(), kind="sleep")
        barrier = asyncio.Barrier(3)
        start("meets", meets(barrier), kind="condition", address=id(barrier), detail="Barrier 1 of 3")
    if sys.version_info >= (3, 12):
        EXPECTED["eager"] = {"kind": "sleep"}
        keep.append(asyncio.Task(nap(), loop=asyncio.get_running_loop(), name="eager", eager_start=True))
    await settled(keep, started)
    tell(path, [(asyncio.get_running_loop(), threading.get_native_id()), (side, side_tid)])
    await asyncio.get_running_loop().create_future()
    return keep, server


def second_loop():
    loop, ready = asyncio.new_event_loop(), threading.Event()
    tids = []

    def run():
        asyncio.set_event_loop(loop)
        tids.append(threading.get_native_id())
        EXPECTED["second loop"] = {"kind": "sleep"}
        task = loop.create_task(nap(), name="second loop")
        loop.call_later(0.05, ready.set)
        loop.run_forever()
        return task

    threading.Thread(target=run, daemon=True, name="side").start()
    while not ready.wait(5):
        time.sleep(0.01)
    return loop, tids[0]


if __name__ == "__main__":
    if sys.argv[2:] == ["uvloop"]:
        import uvloop

        asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    loop.run_until_complete(main(sys.argv[1]))
