"""Where CPython keeps what we read: byte offsets per minor version, for 64-bit builds with a GIL.

Source: the debug information (DWARF) of CPython 3.10.13, 3.11.7, 3.12.1 and 3.13.0, x86-64, default configuration; for 3.14 the headers,
``_Py_DebugOffsets`` and ``_AsyncioDebug`` of 3.14.10. Offsets inside ``_PyRuntime`` and the interpreter differ between builds of 3.13 and
later: those carry their own table (`DEBUG_OFFSETS`), which overrules this one. On aarch64 they are the same, tried with Debian's 3.11, 3.13 and 3.14.
Nothing here is trusted unseen: `runtime.attach` refuses a target whose ``sys.hexversion`` is not found through these offsets, `tasks.Interpreter`
one whose ``_asyncio.Task`` has another size.
"""

from __future__ import annotations

import msgspec


class Layout(msgspec.Struct, frozen=True, kw_only=True):
    """Offsets in bytes. None: this version has no such field."""

    version: tuple[int, int]

    runtime_interpreters: int
    interp_next: int
    interp_modules: int
    interp_threads: int
    thread_next: int = 8
    thread_ident: int
    thread_native: int | None

    type_name: int = 24
    type_basicsize: int = 32
    type_flags: int = 168
    type_members: int = 240
    type_base: int = 256
    type_dict: int = 264
    type_dictoffset: int = 288
    type_cached_keys: int
    string_ascii: int
    string_compact: int

    tuple_items: int = 24

    generator_qualname: int
    generator_state: int | None
    """Frame state, one signed byte; 3.10 has it in the frame."""
    generator_frame: int
    """3.10: pointer to the frame; later: the frame itself."""
    frame_code: int
    frame_instruction: int = 56
    """3.10: ``f_lasti`` in code units; later a pointer into the code."""
    frame_stack: int = 64
    """3.10: depth of the value stack; 3.11 to 3.13: index of its top in the locals; 3.14: pointer to its top."""
    frame_locals: int = 72
    frame_value_stack: int | None = None
    frame_state: int | None = None

    code_first_line: int
    code_file: int = 112
    code_qualname: int = 128
    """3.10: the plain name; the generator has the qualified one."""
    code_lines: int = 136
    code_local_names: int = 96
    code_start: int
    """3.10: pointer to a bytes object; later: the instructions themselves."""

    future_size: int
    future_loop: int = 16
    future_callback0: int = 24
    future_state: int
    task_size: int
    task_waiter: int
    task_coroutine: int
    task_name: int

    created: tuple[int, ...]
    """Frame states before the first step."""
    suspended: tuple[int, ...]
    awaiting: int | None = None
    """The frame state that says "suspended in an await"; None: the instruction tells."""
    resume: tuple[int, ...] = ()
    """3.11, 3.12: codes of RESUME and what may stand in its place; 3.10: YIELD_FROM."""
    registries: tuple[str, ...]
    """Names in ``asyncio.tasks`` that hold the tasks; 3.14 has most of them in lists of its own, see `TaskLists`."""


class TaskLists(msgspec.Struct, frozen=True, kw_only=True):
    """Where ``_asyncio`` of 3.14 chains its tasks, from the ``_AsyncioDebug`` table that stands in that module's data."""

    task_node: int
    interp_head: int
    thread_task: int
    """The task that a thread executes."""
    thread_head: int


LAYOUTS: dict[tuple[int, int], Layout] = {
    (3, 10): Layout(
        version=(3, 10),
        runtime_interpreters=32,
        interp_next=0,
        interp_modules=856,
        interp_threads=8,
        thread_ident=176,
        thread_native=None,
        type_cached_keys=872,
        string_ascii=48,
        string_compact=72,
        generator_qualname=48,
        generator_state=None,
        generator_frame=16,
        frame_code=32,
        frame_instruction=96,
        frame_stack=80,
        frame_locals=352,
        frame_value_stack=64,
        frame_state=108,
        code_first_line=40,
        code_file=104,
        code_qualname=112,
        code_lines=120,
        code_local_names=72,
        code_start=48,
        future_size=152,
        future_state=88,
        task_size=192,
        task_waiter=152,
        task_coroutine=160,
        task_name=168,
        created=(-2,),
        suspended=(-1,),
        resume=(72,),
        registries=("_all_tasks",),
    ),
    (3, 11): Layout(
        version=(3, 11),
        runtime_interpreters=40,
        interp_next=0,
        interp_modules=888,
        interp_threads=16,
        thread_ident=152,
        thread_native=160,
        type_cached_keys=872,
        string_ascii=48,
        string_compact=72,
        generator_qualname=40,
        generator_state=75,
        generator_frame=80,
        frame_code=32,
        code_first_line=72,
        future_state=88,
        future_size=128,
        code_start=184,
        task_size=176,
        task_waiter=128,
        task_coroutine=136,
        task_name=144,
        created=(-2,),
        suspended=(-1,),
        resume=(151, 150),
        registries=("_all_tasks",),
    ),
    (3, 12): Layout(
        version=(3, 12),
        runtime_interpreters=40,
        interp_next=0,
        interp_modules=944,
        interp_threads=72,
        thread_ident=136,
        thread_native=144,
        type_cached_keys=880,
        string_ascii=40,
        string_compact=56,
        generator_qualname=32,
        generator_state=67,
        generator_frame=72,
        frame_code=0,
        code_first_line=68,
        future_state=88,
        future_size=128,
        code_start=192,
        task_size=176,
        task_waiter=128,
        task_coroutine=136,
        task_name=144,
        created=(-2,),
        suspended=(-1,),
        resume=(151, 240),
        registries=("_scheduled_tasks", "_eager_tasks"),
    ),
    (3, 13): Layout(
        version=(3, 13),
        runtime_interpreters=632,
        interp_next=7264,
        interp_modules=7656,
        interp_threads=7344,
        thread_ident=152,
        thread_native=160,
        type_cached_keys=880,
        string_ascii=40,
        string_compact=56,
        generator_qualname=32,
        generator_state=67,
        generator_frame=72,
        frame_code=0,
        code_first_line=68,
        future_state=96,
        future_size=104,
        code_start=200,
        task_size=144,
        task_waiter=112,
        task_coroutine=120,
        task_name=128,
        created=(-3,),
        suspended=(-2, -1),
        awaiting=-1,
        registries=("_scheduled_tasks", "_eager_tasks"),
    ),
    (3, 14): Layout(
        version=(3, 14),
        runtime_interpreters=808,
        interp_next=7272,
        interp_modules=7688,
        interp_threads=7344,
        thread_ident=152,
        thread_native=160,
        type_cached_keys=880,
        string_ascii=40,
        string_compact=56,
        tuple_items=32,
        generator_qualname=32,
        generator_state=67,
        generator_frame=72,
        frame_code=0,
        frame_locals=80,
        code_first_line=68,
        code_start=208,
        future_state=104,
        future_size=112,
        task_size=168,
        task_waiter=120,
        task_coroutine=128,
        task_name=136,
        created=(-3,),
        suspended=(-2, -1),
        awaiting=-1,
        registries=("_scheduled_tasks", "_eager_tasks"),
    ),
}

COOKIE = b"xdebugpy"
FREE_THREADED = 16
"""Word of ``_Py_DebugOffsets`` that is not zero in a build without a GIL."""
DEBUG_OFFSETS = {
    (3, 13): {
        "runtime_interpreters": 40,
        "interp_next": 64,
        "interp_threads": 72,
        "interp_modules": 88,
        "thread_native": 200,
    },
    (3, 14): {
        "runtime_interpreters": 40,
        "interp_next": 64,
        "interp_threads": 72,
        "interp_modules": 96,
        "thread_next": 192,
        "thread_ident": 216,
        "thread_native": 224,
        "frame_code": 264,
        "frame_instruction": 272,
        "frame_locals": 280,
        "frame_stack": 296,
        "code_file": 320,
        "code_qualname": 336,
        "code_lines": 344,
        "code_first_line": 352,
        "code_local_names": 368,
        "code_start": 384,
        "string_ascii": 640,
        "generator_frame": 680,
        "generator_state": 688,
    },
}
"""Field to its place inside ``_Py_DebugOffsets``, which stands at the start of ``_PyRuntime``."""
INTERPRETER_SIZE = 48
"""Word of ``_Py_DebugOffsets`` with the size of the interpreter state: 3.14."""
ASYNCIO_DEBUG_WORDS = 13
"""Of ``_AsyncioDebug``: task size, name, awaited by, is task, awaited by is set, coroutine, node; interpreter size, head;
thread size, loop, task, head."""
