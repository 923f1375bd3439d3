"""Which functions can hand nothing to the rest of their program, as their source tells."""

from __future__ import annotations

import ast

import pytest

from ray_rl_debug.collect.source_reach import is_apart

KIT = """
import os
from pathlib import Path
SEEN = []
def folder():
    return Path(os.environ['F'])
def note(x):
    SEEN.append(x)
"""
HEAD = """
import anyio
import os
import queue
import sys
import time
import asyncio
import kit
import requests
from pathlib import Path
from kit import folder, note
BATCHES = queue.Queue()
EVERY_S = 5.0
LIST = []
FLAG = False
def fill():
    BATCHES.put(1)
def rest():
    time.sleep(EVERY_S)
"""
HERE = "time.sleep(1)  # here"


def apart(body: str, head: str = "def beat():") -> bool:
    source = f"{HEAD}{head}\n    while True:\n" + "".join(f"        {line}\n" for line in body.split("\n"))
    line = next(i for i, text in enumerate(source.splitlines(), 1) if "# here" in text)
    return is_apart(ast.parse(source), line, lambda name: ast.parse(KIT) if name == "kit" else None)


@pytest.mark.parametrize(
    "body",
    [
        HERE,
        f"{HERE}\n(kit.folder() / 'alive').write_text(str(time.time()))",
        f"{HERE}\n(folder() / 'alive').touch()",
        f"now = time.time()\nprint(f'alive since {{now:.0f}}', flush=True)\n{HERE}",
        f"with open(os.path.join('/tmp', 'x'), 'w') as file:\n    file.write('x')\n{HERE}",
        f"try:\n    Path('x').touch()\nexcept OSError as error:\n    print(error)\n{HERE}",
        f"rest()\n{HERE}",
        f"anyio.sleep(anyio.current_time() % 2)\n{HERE}",
    ],
)
def test_heartbeats_are_apart(body: str) -> None:
    assert apart(body)
    assert apart(body, head="async def beat():")


@pytest.mark.parametrize(
    "body",
    [
        f"BATCHES.put(1)\n{HERE}",
        f"fill()\n{HERE}",
        f"put = BATCHES.put\nput(1)\n{HERE}",
        f"LIST.append(1)\n{HERE}",
        f"LIST[0] = 1\n{HERE}",
        f"kit.note(1)\n{HERE}",
        f"note(1)\n{HERE}",
        f"kit.ready = True\n{HERE}",
        f"global FLAG\nFLAG = True\n{HERE}",
        f"requests.post('http://there')\n{HERE}",
        f"sys.modules['__main__'].BATCHES.put(1)\n{HERE}",
        f"os.kill(1, 10)\n{HERE}",
        f"getattr(kit, 'note')(1)\n{HERE}",
        f"eval('fill()')\n{HERE}",
        f"import kit as other\nother.note(1)\n{HERE}",
        f"(lambda: fill())()\n{HERE}",
        f"unknown()\n{HERE}",
        f"time.sleep.__globals__['x']\n{HERE}",
    ],
)
def test_whoever_may_reach_the_rest_is_not(body: str) -> None:
    assert not apart(body)


@pytest.mark.parametrize(
    "head", ["def beat(out):", "def beat(*out):", "@kit.each\ndef beat():", "class Beat:\n  def beat(self):", "def outer():\n  def beat():"]
)
def test_who_is_given_something_is_not(head: str) -> None:
    lines = f"while True:\n  {HERE}"
    indent = "    " if "\n  def" in head else "  "
    source = f"{HEAD}{head}\n" + "".join(f"{indent}{line}\n" for line in lines.split("\n"))
    line = next(i for i, text in enumerate(source.splitlines(), 1) if "# here" in text)
    assert not is_apart(ast.parse(source), line, lambda name: None)


def test_a_module_that_is_not_beside_it_is_not_known() -> None:
    source = f"{HEAD}def beat():\n    kit.folder()\n    {HERE}\n"
    line = next(i for i, text in enumerate(source.splitlines(), 1) if "# here" in text)
    assert not is_apart(ast.parse(source), line, lambda name: None)


def test_code_outside_of_functions_is_not() -> None:
    source = f"{HEAD}while True:\n    {HERE}\n"
    line = next(i for i, text in enumerate(source.splitlines(), 1) if "# here" in text)
    assert not is_apart(ast.parse(source), line, lambda name: None)
