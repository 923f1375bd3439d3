"""Anything at all in what we parse: the tables of the kernel, names in them, words of a job script."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from ray_rl_debug.collect.files import read_locks
from ray_rl_debug.collect.mounts import Mounts
from ray_rl_debug.collect.network import read_network
from ray_rl_debug.collect.procfs import read_arguments, read_environment, read_stat, read_status
from ray_rl_debug.collect.sockets import _tables
from ray_rl_debug.slurm.job import Job
from ray_rl_debug.slurm.render import _directive, _quoted, render

BASH = shutil.which("bash") or "bash"
relaxed = settings(deadline=None, max_examples=200, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
raw = st.binary(max_size=400)
word = st.text(st.characters(exclude_characters="\0\n\r", exclude_categories=("Cs",)), max_size=40) | st.lists(
    st.sampled_from(["$", "${", "}", "`", '"', "'", "\\", "$(", ")", "$HOME", "${HOME}", "!", "#", " ", "a", "=", ";", "&", "*", "~", "${x:-"]),
    max_size=12,
).map("".join)


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("proc") / "7"
    (folder / "net").mkdir(parents=True)
    return folder


@relaxed
@given(raw, raw)
@example(b"7 (a) S 1 ( \xff) R 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22", b"A=\xff\0=\0B")
@example(b"7 () S " + b"9" * 300, b"\0" * 300)
def test_the_files_of_a_process_hold_anything(process: Path, first: bytes, second: bytes) -> None:
    """The kernel's files of a process hold any bytes.
    Each reader answers with text that can be encoded, or with nothing."""
    for name in ("stat", "status", "cmdline", "environ"):
        (process / name).write_bytes(first + second)
    stat = read_stat(process)
    if stat is not None:
        stat.comm.encode()
    for key, value in read_status(7, process.parent).items():
        (key + value).encode()
    "".join(read_arguments(7, process.parent)).encode()
    "".join(k + v for k, v in read_environment(7, process.parent) or ()).encode()


@relaxed
@given(raw, st.text(max_size=60))
def test_tables_of_sockets_and_locks_hold_anything(process: Path, data: bytes, path: str) -> None:
    """The kernel's tables of sockets, locks and interfaces hold any bytes, and sockets have any paths.
    The readers give what can be read, and a socket whose path holds spaces keeps the whole path."""
    head = b"Num RefCount Protocol Flags Type St Inode Path\n"
    plain = " ".join(path.split())
    row = f"0000000000000000: 00000002 00000000 00010000 0001 01 4242 {plain}\n".encode("utf-8", "surrogatepass")
    (process / "net" / "unix").write_bytes(head + row + data)
    (process / "net" / "tcp").write_bytes(b"head\n" + data)
    (process / "net" / "tcp6").write_bytes(b"head\n" + data)
    (process / "net" / "dev").write_bytes(data)
    (process / "locks").write_bytes(data)
    table = _tables(process / "net")
    for socket in table.values():
        f"{socket.local}{socket.remote}".encode()
    if "\\" not in plain and plain.isascii() and b"4242" not in data:
        assert table[4242].local.split() == plain.split()
    read_locks(process)
    read_network(process)
    Mounts(path).network(path)


@relaxed
@given(word)
@example("a b#c")
@example('x" --wrap="rm')
def test_an_option_of_sbatch_stays_one_option(value: str) -> None:
    """The value of an option of sbatch holds spaces, quotes and signs.
    The line is one option, whose quotes are closed."""
    assert shlex.split(_directive(f"--job-name={value}")) == [f"--job-name={value}"]


@settings(relaxed, max_examples=40)
@given(st.lists(word, min_size=1, max_size=8))
@example(["${", "${x", "$(id)", "`id`", "${x:-`id`}", "$", "a$", "$1", "${!x}", "$'a'", "${x@P}"])
def test_words_of_a_command_stay_words_for_bash(words: list[str]) -> None:
    """Words of a command for a job script hold everything that means something to bash.
    Bash takes each as one word, runs nothing, and puts in no more than named variables."""
    line = " ".join(map(_quoted, words))
    script = f'HOME=/h x=; unset b; W=({line}); printf "%s\\0" "${{W[@]}}"'
    done = subprocess.run([BASH, "-c", script], capture_output=True, env={"PATH": "/nonexistent"}, check=False, timeout=30)
    assert done.returncode == 0 and done.stderr == b"", (script, done.stderr)
    shown = done.stdout.split(b"\0")[:-1]
    assert len(shown) == len(words)
    for one, seen in zip(words, shown, strict=True):
        if "$" not in one:
            assert seen.decode() == one


def test_a_script_with_odd_words_is_whole() -> None:
    """A job is rendered with values that look like bash everywhere.
    The script is good bash, and its settings are the values."""
    odd = "a b'c\"d;e`id`$(id)${"
    text = render(
        Job(framework="ray", command=("x", odd), setup=odd, output_dir=f"/{odd}", env=(f"A={odd}",), iface=odd, job_name=odd, watch_args=(odd,))
    )
    assert subprocess.run(["bash", "-n"], input=text.encode(), check=False, timeout=30).returncode == 0
    start, end = text.index("# ---- settings"), text.index("set -uo pipefail")
    told = text[start:end] + 'printf "%s\\n" "${CMD[1]}" "$SETUP" "$LOG_ROOT" "$A" "$HEAD_IFACE" "${WATCH_ARGS[0]}"'
    done = subprocess.run(["bash", "-c", told], capture_output=True, text=True, check=True, timeout=30)
    assert done.stdout.splitlines() == [odd, odd, f"/{odd}", odd, odd, odd]
