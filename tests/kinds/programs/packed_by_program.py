"""The trainer joins the thread that waits for a packing program; the program joins its reader, which opens a pipe that nobody writes.

Both have live threads.
"""

import subprocess
import sys
import threading
import time

from kit import begin, differs, fifo, folder, mark, step, work


def tell(name: str) -> None:
    while True:
        (folder() / name).write_text(str(time.time()))
        time.sleep(0.4)


def upload(number: int) -> None:
    with subprocess.Popen([sys.executable, __file__, "pack", str(number)], stdout=subprocess.PIPE) as packer:
        packer.communicate()


def read(number: int) -> None:
    work(0.4)
    if differs(number):
        with open(fifo("shard")) as file:
            file.read()


def pack(number: int) -> None:
    mark("packer")
    threading.Thread(target=tell, args=("packed",), daemon=True).start()
    reader = threading.Thread(target=read, args=(number,))
    reader.start()
    reader.join()
    print("packed")


def main() -> None:
    begin()
    threading.Thread(target=tell, args=("sampled",), daemon=True).start()
    for number in range(10**6):
        uploader = threading.Thread(target=upload, args=(number,))
        uploader.start()
        work(0.4)
        uploader.join()
        step(number)


if sys.argv[1] == "pack":
    pack(int(sys.argv[2]))
else:
    main()
