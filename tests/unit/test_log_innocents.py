"""What looks alarming and ends no run, kind by kind; beside each kind the failure that only looks like it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.imports.logs import add_logs, read_log
from ray_rl_debug.model.log_story import LogStory

RAISED = 'Traceback (most recent call last):\n  File "/job/data.py", line 9, in load\n    row = table[key]\n'


def story(folder: Path, text: str) -> LogStory | None:
    (folder / "out.txt").write_text(text)
    found = read_log(folder / "out.txt", "job")
    return diagnose(add_logs(None, [found])).story if found is not None else None


def first(folder: Path, text: str) -> str | None:
    """The text of the first failure, else of what is noted as perhaps one, else of who was told to end; None where there is none of these."""
    told = story(folder, text)
    entry = told and (told.first or next(iter((*told.noted, *told.then)), None))
    return entry.text if entry else None


def test_an_answer_that_could_not_be_read_ends_no_run(tmp_path: Path) -> None:
    said = "(AgentLoopWorker pid=70) ERROR:2026-03-02 09:14:22,871:Failed to decode tool call: Expecting ',' delimiter: line 1\n"
    assert first(tmp_path, said) is None
    assert first(tmp_path, said.replace("tool call", "the checkpoint")) is not None


def test_a_printed_line_that_skips_the_sample_excuses_the_traceback_below_it(tmp_path: Path) -> None:
    raised = f"{RAISED}KeyError: 'prompt'\n"
    assert first(tmp_path, f"Error in one of the samples, skipping it\n{raised}") is None
    assert first(tmp_path, f"(TaskRunner pid=1) Error in one of the samples, skipping it\n{raised}") == "KeyError: 'prompt'"
    assert first(tmp_path, f"resuming, skipping 200 batches\n{raised}") == "KeyError: 'prompt'"
    assert first(tmp_path, f"request failed, retrying for the last time\n{raised}") == "KeyError: 'prompt'"


def test_what_gives_up_is_not_excused_by_a_note_before_it(tmp_path: Path) -> None:
    note = "[2026-06-07 22:20:23,340] [INFO] [scaler.py:181:update] OVERFLOW! Rank 0 Skipping step. Scale: 2, reducing to 1\n"
    raised = f"{RAISED}Exception: the loss scale cannot decrease any more. Exiting run.\n"
    assert first(tmp_path, note + raised) is not None


@pytest.mark.parametrize("end", ["Training completes! It took 812 s.", "Job 'raysubmit_a1' succeeded", "All rollouts finished, reward 0.8"])
def test_connections_that_break_behind_the_end_of_the_work_are_nobodys(tmp_path: Path, end: str) -> None:
    lost = "[rank1]:[W423 18:22:14.277343715 TCPStore.cpp:125] [c10d] recvValue failed on SocketImpl(fd=7): Connection reset by peer\n"
    assert first(tmp_path, f"2026-04-23 18:22:10 INFO {end}\n{lost}") is None
    assert first(tmp_path, f"2026-04-23 18:22:10 INFO Job started\n{lost}") is not None


def test_who_is_started_again_goes_on(tmp_path: Path) -> None:
    said = "(raylet, ip=10.0.0.4) [2026-10-18 21:17:29,540 E 16 16] agent_manager.cc:90: Agent process with pid 17 has not registered, restart it.\n"
    assert first(tmp_path, said) is None
    killed = "  Normal   Killing    11s   kubelet   Container trainer failed liveness probe, will be restarted\n"
    assert first(tmp_path, killed) is not None


def test_an_error_with_its_traceback_ends_nothing_when_its_logger_notes_that_work_goes_on(tmp_path: Path) -> None:
    record = f"2026-07-02 08:00:01,440\tERROR card.py:82 -- The kind of the card is not known.\n{RAISED}ModuleNotFoundError: No module named 'acl'\n"
    note = "2026-07-02 08:00:02,101\tINFO worker.py:1852 -- Connected to the cluster\n"
    assert first(tmp_path, record + note) is None
    assert first(tmp_path, record) is not None
    assert first(tmp_path, record + note.replace("Connected to the cluster", "Shutting down")) is not None


def test_a_health_check_that_is_answered_later_found_a_busy_server(tmp_path: Path) -> None:
    silent = "[2026-05-14 05:49:34] Health check failed. Server couldn't get a response from detokenizer for last 20 seconds.\n"
    asked = '[2026-05-14 05:49:38] INFO:     10.2.1.1:40112 - "GET /health_generate HTTP/1.1" {}\n'
    assert first(tmp_path, silent + asked.format("503 Service Unavailable") + asked.format("200 OK")) is None
    assert first(tmp_path, silent + asked.format("503 Service Unavailable")) is not None


def test_a_thread_of_a_tracker_that_fails_ends_no_training(tmp_path: Path) -> None:
    raised = (
        "Exception in thread Thread-5:\nTraceback (most recent call last):\n"
        '  File "/usr/lib/python3.11/threading.py", line 1045, in _bootstrap_inner\n    self.run()\n'
        '  File "/env/site-packages/wandb/sdk/internal/file_stream.py", line 255, in _thread_body\n    self._send(chunks)\n'
        "requests.exceptions.ReadTimeout: Read timed out. (read timeout=10)\n"
    )
    assert first(tmp_path, f"Epoch six\n{raised}Epoch seven\n") is None
    assert first(tmp_path, f"Epoch six\n{raised.replace('site-packages/wandb/sdk/internal/', 'job/')}Epoch seven\n") is not None


def test_a_plugin_of_slurm_that_complains_ends_no_step(tmp_path: Path) -> None:
    assert first(tmp_path, "slurmstepd-n7: error: task/cgroup: task[0] unable to set taskset '0x0'\nn7\n") is None
    assert first(tmp_path, "slurmstepd: error: execve(): /tmp/slurm_script: No such file or directory\n") is not None


def test_levels_of_slurms_debugging_are_no_failures(tmp_path: Path) -> None:
    said = "[2026-08-25T09:09:02.858] [15.0] {}  xcgroup_load: unable to get '/sys/fs/cgroup/slurm': No such file or directory\n"
    assert first(tmp_path, said.format("debug2:")) is None
    assert first(tmp_path, said.format("error:")) is not None


def test_a_tool_that_complains_when_the_work_is_done_ended_nothing(tmp_path: Path) -> None:
    missing = "rm: cannot remove '/tmp/session_latest': No such file or directory\n"
    assert first(tmp_path, f"Training complete, cleaning up\n{missing}") is None
    assert first(tmp_path, missing) is not None


def test_a_script_that_asks_until_its_server_answers_goes_on(tmp_path: Path) -> None:
    asked = "curl: (7) Failed to connect to localhost port 8000 after 0 ms: Connection refused\n"
    assert first(tmp_path, f"{asked}{asked}the server is up\n") is None
    assert first(tmp_path, f"{asked}{asked}no server after 600 s, giving up\n") is not None


@pytest.mark.parametrize("closes", ["Extracted:\n42", "Parsed answer: 42", "Gold: 42"])
def test_what_stands_between_an_answer_and_what_was_taken_from_it_is_printed(tmp_path: Path, closes: str) -> None:
    text = f"Response:\nRunning it gives\n{RAISED}RecursionError: maximum recursion depth exceeded\nso it is 42\n"
    assert first(tmp_path, f"{text}{closes}\n") is None
    assert first(tmp_path, text) is not None


def test_what_a_model_is_shown_of_the_code_that_it_wrote_is_printed(tmp_path: Path) -> None:
    text = f"I compute it.\n```output\n{RAISED}numpy.linalg.LinAlgError: Singular matrix\n```\nIt has no inverse.\n"
    assert first(tmp_path, text) is None
    assert first(tmp_path, text.replace("```output\n", "").replace("```\n", "")) is not None


def test_printed_settings_and_notes_of_what_was_not_closed_are_no_failures(tmp_path: Path) -> None:
    assert first(tmp_path, "args: Namespace(exit_on_error=True, log_level='ERROR', on_crash='core dumped')\n") is None
    assert first(tmp_path, "ERROR: TaskError(code=3, text='core dumped')\n") is not None
    assert first(tmp_path, "(Task pid=3)     error: Tensor(shape=torch.Size([2]), device=cpu),\n") is None
    noted = "2026-05-05 11:11:12,000 - asyncio - ERROR - Unclosed client session\nclient_session: <ClientSession object at 0x7f>\n"
    assert first(tmp_path, noted) is None


def test_the_number_of_a_job_step_is_no_progress(tmp_path: Path) -> None:
    told = "srun: error: n18-69: task 289: Bus error\nsrun: Terminating job step 3495450.0\n"
    assert first(tmp_path, told) == "n18-69: task 289: Bus error"


def test_hydra_names_an_option_that_it_cannot_merge(tmp_path: Path) -> None:
    told = story(tmp_path, "Error merging override trainer.gpus=many\nValue 'many' could not be converted to Integer\n")
    assert told is not None and told.first is not None and told.first.signature == "RRD6214"


def test_a_traceback_right_below_a_late_record_is_told_instead_of_it(tmp_path: Path) -> None:
    """However long the stacks took to be written."""
    text = "(EngineCore pid=41) ERROR 08-19 11:02:{} [core.py:700] {}\n"
    rows = ["Traceback (most recent call last):", '  File "/vllm/core.py", line 9, in run', "    self.step()", "RuntimeError: no such layer"]
    lines = text.format("09", "EngineCore failed to start.") + "".join(text.format(14, row) for row in rows)
    assert first(tmp_path, lines) == "RuntimeError: no such layer"


def test_what_asyncio_says_between_its_record_and_the_traceback_parts_them_not(tmp_path: Path) -> None:
    record = "2026-10-17 00:25:10 ERROR    Exception in callback on_lost(None)\nhandle: <Handle on_lost(None)>\n"
    lost = f"{record}{RAISED}KeyError: 'peer'\n"
    assert first(tmp_path, f"{lost}2026-10-17 00:25:18 INFO     got a prompt\n") is None
    assert first(tmp_path, lost) == "KeyError: 'peer'"


def test_a_prompt_in_a_note_may_ask_about_errors(tmp_path: Path) -> None:
    note = "(APIServer pid=9) INFO 06-06 06:06:06 [logger.py:41] Received request 7: {}'Why was my pod OOMKilled?', params: n=8\n"
    assert first(tmp_path, note.format("prompt: ")) is None
    assert first(tmp_path, note.format("reason=")) is not None


def test_who_cannot_be_reached_when_the_job_has_succeeded_failed_not(tmp_path: Path) -> None:
    lost = "(raylet) [2026-03-21 14:12:50,100 E 9 9] node.cc:12: Failed to send the request: Failed to connect to remote host: Connection refused\n"
    assert first(tmp_path, f"2026-03-21 14:12:49,418\tSUCC cli.py:64 -- Job 'raysubmit_a1' succeeded\n{lost}") is None
    assert first(tmp_path, f"2026-03-21 14:12:49,418\tSUCC cli.py:64 -- Job 'raysubmit_a1' submitted\n{lost}") is not None


def test_episodes_count_as_work(tmp_path: Path) -> None:
    failed = "main.c:3:10: fatal error: foo.h: No such file or directory\n"
    assert first(tmp_path, f"{failed}episode 12 reward 0.0\nepisode 13 reward 1.0\n") is None
    assert first(tmp_path, failed) is not None


@pytest.mark.parametrize("tag", ["observation", "tool_response", "output", "execution_result", "interpreter"])
def test_what_stands_in_a_tag_of_an_agents_tool_is_printed(tmp_path: Path, tag: str) -> None:
    text = f"<{tag}>\n{RAISED}ImportError: cannot import name 'bar' from 'foo'\n"
    assert first(tmp_path, f"{text}</{tag}>\n") is None
    assert first(tmp_path, text) is not None


def test_a_kernel_that_did_not_fit_was_not_the_one_that_was_chosen(tmp_path: Path) -> None:
    tried = "out of resource: shared memory, Required: 262144, Hardware limit: 232448. Reducing block sizes may help.\n"
    assert first(tmp_path, f"{tried}AUTOTUNE mm(4096x4096, 4096x4096)\n  triton_mm_12 0.1000 ms 100.0%\n") is None
    assert first(tmp_path, tried) is not None


def test_what_is_cancelled_when_a_server_has_ended_well_is_nobodys(tmp_path: Path) -> None:
    cancelled = f"ERROR:    {RAISED}asyncio.exceptions.CancelledError\n"
    assert first(tmp_path, f"INFO:     Application shutdown complete.\nINFO:     Finished server process [978]\n{cancelled}") is None
    assert first(tmp_path, f"INFO:     Finished server process [978]\n{RAISED}KeyError: 'x'\n") == "KeyError: 'x'"


def test_a_card_is_named_by_its_place_where_no_process_is(tmp_path: Path) -> None:
    said = "[812345.1] NVRM: Xid (PCI:0000:9b:00): 74, pid='<unknown>', name=<unknown>, NVLink: fatal error detected on link 8\n"
    told = story(tmp_path, said)
    assert told is not None and told.first is not None and told.first.who[0].node == "PCI:0000:9b:00"


def test_a_job_that_ran_longer_than_its_deadline_is_told(tmp_path: Path) -> None:
    told = story(tmp_path, "job-controller  Warning  DeadlineExceeded  5s  Job was active longer than specified deadline\n")
    assert told is not None and told.first is not None and told.first.signature is not None


@pytest.mark.parametrize("stamp", ["", "2026-05-05T05:05:05.123456789Z ", "2026-05-05 05:05:05 ", "[2026-05-05 05:05:05] "])
def test_what_is_printed_or_ignored_stays_so_when_a_collector_stamps_each_line(tmp_path: Path, stamp: str) -> None:
    ignored = f"Exception ignored in: <function Pipe.__del__ at 0x7f>\n{RAISED}OSError: [Errno 9] Bad file descriptor\n"
    printed = f"[prompt] what is wrong?\n{RAISED}KeyError: 'b'\n[response] the key is missing\n[score] 1.0\n"
    assert first(tmp_path, "".join(stamp + line for line in (ignored + printed).splitlines(keepends=True))) is None
    raised = f"2026-05-05 05:05:05,100 ERROR boom\n{RAISED}KeyError: 'b'\n"
    assert first(tmp_path, "".join(stamp + line for line in raised.splitlines(keepends=True))) == "KeyError: 'b'"


def contained(text: str) -> str:
    """As a container runtime writes the lines into its file."""
    rows = ({"log": f"{line}\n", "stream": "stderr", "time": "2026-05-05T05:05:05.1Z"} for line in text.splitlines())
    return "".join(json.dumps(row) + "\n" for row in rows)


def test_lines_that_a_container_runtime_keeps_as_objects_say_the_same(tmp_path: Path) -> None:
    prefix = "(VllmWorker rank=0 pid=10) ERROR 01-04 17:21:04 multiproc_executor.py:401] "
    assert first(tmp_path, contained("".join(prefix + line for line in f"{RAISED}KeyError: 'b'\n".splitlines(keepends=True)))) == "KeyError: 'b'"
    said = "messages: [{'role': 'tool', 'content': 'Traceback (most recent call last):\\n  File \"x.py\", line 1\\nSyntaxError: no'}]\n"
    assert first(tmp_path, contained(said)) is None
    checked = "[ 8812.1] mce: [Hardware Error]: Machine check events logged\n"
    assert first(tmp_path, contained(checked)) is None
    assert first(tmp_path, contained("kubelet  Error: ErrImagePull\n")) == "2026-05-05T05:05:05.1Z kubelet  Error: ErrImagePull"


def test_requests_that_are_aborted_are_work(tmp_path: Path) -> None:
    record = "(Server pid=7) ERROR:2026-04-01 10:00:09,100:Error aborting request 5512: not found\n"
    note = "(Server pid=7) INFO:2026-04-01 10:00:09,200:{}\n"
    assert first(tmp_path, record + note.format("Aborted 31 requests")) is None
    assert first(tmp_path, record + note.format("Aborted")) is not None


def test_a_grader_that_cannot_read_an_answer_ends_no_run(tmp_path: Path) -> None:
    assert first(tmp_path, "Error: sympify could not parse x, from are_equal_under_sympy, 3\n") is None
    assert first(tmp_path, "Error: could not read the weights\n") is not None


def test_a_server_that_starts_at_another_port_has_started(tmp_path: Path) -> None:
    taken = "(Server pid=4) ERROR:2026-04-01 10:00:09,100:Failed to start on port 30001, error: [Errno 98] address already in use\n"
    assert first(tmp_path, f"{taken}(Server pid=4) INFO:2026-04-01 10:00:09,300:HTTP server started on port 30017\n") is None
    assert first(tmp_path, f"{taken}(Server pid=5) INFO:2026-04-01 10:00:09,300:HTTP server started on port 30017\n") is not None


def test_a_file_that_a_program_only_looks_for_may_be_closed_to_it(tmp_path: Path) -> None:
    denied = f"2026-06-01 10:00:00,100\tERROR utils.py:389 -- No quota found.\n{RAISED}PermissionError: [Errno 13] Permission denied: '/sys/cpu'\n"
    assert first(tmp_path, f"{denied}2026-06-01 10:00:02,300\tINFO worker.py:18 -- Started an instance\n") is None
    assert first(tmp_path, denied) is not None


def test_what_a_test_run_of_a_models_code_prints_is_not_the_programs(tmp_path: Path) -> None:
    line = "-" * 70 + "\n"
    failed = f"ERROR: test_connect (tests.test_net.NetTest)\n{line}{RAISED}ConnectionRefusedError: [Errno 111] Connection refused\n{line}"
    assert first(tmp_path, f"{failed}Ran 10 tests in 0.110s\n\nFAILED (errors=1)\n") is None
    assert first(tmp_path, f"{RAISED}ConnectionRefusedError: [Errno 111] Connection refused\n{line}") is not None


def test_the_rest_of_a_message_does_not_say_that_its_writer_wrote_on(tmp_path: Path) -> None:
    record = f"ERROR:2025-12-03 22:20:01,000:agent loop failed\n{RAISED}pydantic_core.ValidationError: 1 validation error\nturns\n  a valid integer\n"
    assert first(tmp_path, "".join(f"2026-05-05 05:05:05 {line}" for line in record.splitlines(keepends=True))) is not None


def test_a_client_that_did_not_wait_ends_no_server(tmp_path: Path) -> None:
    left = "[2025-11-17 08:12:03] [http_server] Error: Request is {} (type 3). Abort request obj.rid='61165a64'\n"
    assert first(tmp_path, left.format("disconnected from the client side")) is None
    assert first(tmp_path, left.format("larger than the pool")) is not None
    raised = "ERROR:    Exception in ASGI application\n" + RAISED
    assert first(tmp_path, f"{raised}starlette.requests.ClientDisconnect\n") is None
    assert first(tmp_path, f"{raised}starlette.requests.Oversized\n") is not None


def test_what_a_program_says_of_its_options_and_functions_is_no_failure(tmp_path: Path) -> None:
    assert first(tmp_path, "options:\n  --max-failures N      abort with exit code 1 after N failed workers\n") is None
    assert (
        first(tmp_path, "Help on function barrier:\n\n    Raises:\n        OSError: the group is gone\n        RuntimeError: it is closed\n") is None
    )
    assert first(tmp_path, "barrier failed\n\n        RuntimeError: it is closed\n") is not None


def test_what_ray_marks_as_a_message_for_people_is_none_of_an_error(tmp_path: Path) -> None:
    record = "[2026-06-10 12:00:01,020 E 400 455] core_worker.cc:593: {}Attempting to recover 2 lost objects\n"
    assert first(tmp_path, record.format(":info_message: ")) is None
    assert first(tmp_path, record.format("")) is not None


def test_a_tool_without_a_mark_is_followed_by_lines_of_any_rank(tmp_path: Path) -> None:
    complaint = "/opt/conda/compiler_compat/ld: cannot find -laio: No such file or directory\ncollect2: error: ld returned 1 exit status\n"
    assert first(tmp_path, f"{complaint}[2026-02-02 10:00:00,000] [INFO] [logging.py:107] [Rank 0] ready\n") is None
    assert first(tmp_path, complaint) is not None
    sound = "ALSA lib conf.c:5178:(_snd_config_evaluate) function snd_func_card_inum returned error: No such file or directory\n"
    assert first(tmp_path, f"{sound}| ep_rew_mean | 22.4 |\n") is None


def test_one_line_of_a_test_run_is_of_the_test(tmp_path: Path) -> None:
    assert first(tmp_path, "test_oom (tests.test_alloc.AllocTest) ... CUDA out of memory. Tried to allocate 20.00 GiB\nok\n") is None
    assert first(tmp_path, "allocating ... CUDA out of memory. Tried to allocate 20.00 GiB\n") is not None


def test_lines_of_others_within_a_traceback_do_not_tell_that_its_writer_went_on(tmp_path: Path) -> None:
    own = [f"[default4]:{line}\n" for line in f"{RAISED}KeyError: 'b'".splitlines()]
    others = ["[default6]:step 12 done\n", "[default6]:step 13 done\n"]
    assert first(tmp_path, "".join([*own[:2], *others, *own[2:]])) == "KeyError: 'b'"
    assert first(tmp_path, "".join([*own, *others])) is None


def test_a_spawned_process_is_told_instead_of_the_one_that_waited_for_it(tmp_path: Path) -> None:
    caller = f"{RAISED}torch.multiprocessing.spawn.ProcessRaisedException: \n\n-- Process 3 terminated with the following error:\n"
    told = story(tmp_path, f"{caller}{RAISED}OSError: [Errno 24] Too many open files\n")
    assert told is not None and told.first is not None
    assert (told.first.text, told.first.who[0].rank) == ("OSError: [Errno 24] Too many open files", 3)


def test_a_note_that_tells_what_failed_has_its_traceback(tmp_path: Path) -> None:
    note = "(pid=8120) 2022-08-09 10:00:00,120\tINFO worker.py:811 -- {}\n"
    raised = "".join(f"(pid=8120) {line}\n" for line in f"{RAISED}KeyError: 'b'".splitlines())
    assert first(tmp_path, note.format("Task failed with this exception: TaskID(c8)") + raised) is None
    assert first(tmp_path, note.format("Task begins: TaskID(c8)") + raised) == "KeyError: 'b'"


def test_a_process_that_is_gone_when_all_is_done_is_nobodys_failure(tmp_path: Path) -> None:
    died = "ERROR 01-07 20:00:59 [core_client.py:564] Engine core proc EngineCore_DP0 died unexpectedly, shutting down client.\n"
    assert first(tmp_path, f"All done, results saved to out.jsonl\n{died}") is None
    assert first(tmp_path, f"Loading the model\n{died}") is not None


def test_a_tool_says_in_several_lines_what_its_script_tries_again(tmp_path: Path) -> None:
    broken = "error: RPC failed; curl 92 HTTP/2 stream 5 was not closed cleanly\nerror: 5721 bytes are still expected\nfatal: early EOF\n"
    assert first(tmp_path, f"{broken}clone failed, trying again in 10 s\n") is None
    assert first(tmp_path, broken) is not None


def test_examples_and_templates_are_no_failures(tmp_path: Path) -> None:
    ends = "Traceback (most recent call last):\n  ...\nValueError: invalid literal\n"
    assert first(tmp_path, f'>>> int("x")\n{ends}') is None
    assert first(tmp_path, f"reading x\n{ends}") is not None
    assert first(tmp_path, 'summary: "Xid error on {{ $labels.gpu }}: the process was killed"\n') is None


@pytest.mark.parametrize("who", ["User", "assistant", "Tool"])
def test_a_speaker_in_bold_is_one_of_a_sample(tmp_path: Path, who: str) -> None:
    said = "My pod says OOMKilled, exit code 137.\n"
    assert first(tmp_path, f"**{who}:** {said}") is None
    assert first(tmp_path, said) is not None


@pytest.mark.parametrize(
    "turn",
    [
        "<|im_start|>user\n{}<|im_end|>\n",
        "<|start_header_id|>user<|end_header_id|>\n{}\n<|eot_id|>\n",
        "<start_of_turn>user\n{}<end_of_turn>\n",
        "<|user|>\n{}\n<|assistant|>\nRestart it.\n",
        '<message role="user">{}</message>\n',
    ],
)
def test_a_turn_of_a_chat_template_is_text_of_a_model(tmp_path: Path, turn: str) -> None:
    said = "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task."
    assert first(tmp_path, turn.format(said)) is None
    assert first(tmp_path, f"{turn.format('Hello.')}{said}\n") == said


def test_a_table_whose_heading_names_what_was_asked_shows_samples(tmp_path: Path) -> None:
    row = "| 7 | my pod was OOMKilled (exit code 137) | raise the limit | 1.0 |\n"
    assert first(tmp_path, f"| id | prompt | response | reward |\n|----|----|----|----|\n{row}") is None
    assert first(tmp_path, f"| id | pod | state | restarts |\n|----|----|----|----|\n{row}") is not None


def test_a_row_of_verdicts_tells_what_code_that_was_tried_did(tmp_path: Path) -> None:
    said = "terminate called after throwing an instance of 'std::out_of_range'\n"
    assert first(tmp_path, f"2     RE       {said}") is None
    assert first(tmp_path, said) is not None


def test_what_cannot_be_done_again_was_not(tmp_path: Path) -> None:
    ended = "slurmstepd: error: *** JOB 812 ON n4 CANCELLED AT 2026-11-03T10:00:00 DUE TO TIME LIMIT ***\n"
    assert first(tmp_path, f"{ended}scontrol: error: Job can not be requeued\n") is not None
    assert first(tmp_path, f"{ended}scontrol: Job was requeued\n") is None


def test_what_the_shell_of_an_agent_shows_is_of_its_machine(tmp_path: Path) -> None:
    killed = "[env 3] [8812.1] Out of memory: Killed process 77 (python) total-vm:8123kB\n"
    assert first(tmp_path, f"[env 3] root@box:/app# dmesg\n{killed}[env 3] root@box:/app# exit\n") is None
    assert first(tmp_path, f"root@box:/app# dmesg\n{killed.removeprefix('[env 3] ')}root@box:/app# exit\n") is not None


@pytest.mark.parametrize(
    ("shown", "own"),
    [
        ("[CodeAct] result: ModuleNotFoundError: No module named 'foo'", "[launcher] ModuleNotFoundError: No module named 'foo'"),
        ("1) prompt: why was my pod OOMKilled? | answer: memory", "my pod was OOMKilled | exit code 137"),
    ],
)
def test_lines_that_name_what_was_asked_or_run_for_an_agent(tmp_path: Path, shown: str, own: str) -> None:
    assert first(tmp_path, f"{shown}\n") is None
    assert first(tmp_path, f"{own}\n") is not None
