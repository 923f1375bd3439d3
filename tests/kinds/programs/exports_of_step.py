"""Each step a program exports samples; its pool's thread waits for the end mark that only an atexit function puts.

The exit joins that thread before it calls the function.
"""

import atexit
import queue
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from kit import begin, differs, folder, mark, step, work

samples: "queue.Queue[int | None]" = queue.Queue()


def write() -> None:
    while (sample := samples.get()) is not None:
        (folder() / "samples").write_text(str(sample))


def tell() -> None:
    while True:
        (folder() / "alive").write_text(str(time.time()))
        time.sleep(0.5)


def export(number: int) -> None:
    mark("exporter")
    threading.Thread(target=tell, daemon=True).start()
    ThreadPoolExecutor(1).submit(write)
    for sample in range(3):
        work(0.1)
        samples.put(sample)
    if differs(number):
        atexit.register(samples.put, None)
    else:
        samples.put(None)


def main() -> None:
    begin()
    for number in range(10**6):
        work(0.4)
        subprocess.run([sys.executable, __file__, "export", str(number)], check=True)
        step(number)


if sys.argv[1] == "export":
    export(int(sys.argv[2]))
else:
    main()
