"""A fact that is missing accuses nobody else: a sample of all facts of all recorded snapshots, each taken away in turn."""

from __future__ import annotations

import zlib
from pathlib import Path

import pytest
from cases.taken_away import RECORDED, accuses_others, allowed, variants, wrong

from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.imports.folder import load
from ray_rl_debug.model.report import Certainty, State

TESTS = Path(__file__).resolve().parents[1]
FEW = tuple(f for f in RECORDED if zlib.crc32(f.name.encode()) % 4 == 0)
"""Plain pytest takes facts away from these; the slow lane from all of them, and far more."""
ONE_OF = 1500
ONE_OF_LONG = 25


ONCE_WRONG = """
adapters_of_engine   | process 6103: sockets[0]                | the other end of a descriptor
generate_service     | process 32584: sockets[0]               |
remote_judge         | process 14174: sockets[0].remote        |
three_services       | process 22441: sockets[0]               |
tokens_of_child      | process 6501: sockets[0].peer_inode     |
line_of_programs     | process 28535: threads[0].syscall_arg0  |
forked_simulators    | process 6466: files[8].inode            |
forked_simulators    | process 6466                            | the parent, which holds the same pipes
graded_in_threads    | process 5851                            | the parent of idle workers
two_engines          | process 21813                           | who gives a rank its next task
graded_in_threads    | process 5892: ppid                      | whose child it is
packed_batches       | process 14914: ppid                     |
two_talkers          | process 9091: ppid                      |
graders_of_graders   | process 1213                            | the worker whose own workers are there
one_gpu              | process 23930: state                    | that the holder of a lock has ended
evaluator_cache      | process 31243: torch                    | in which group the third rank stands
late_evaluation      | process 12227: env_now                  | that the third rank belongs to them
writers_of_log       | process 1299: samples                   | where the third rank stands
groups_in_turn       | process 3759: window_s                  | over which time its counts were taken
locked_data          | process 23516: threads                  | in which calls of the kernel its threads are
tokens_of_child      | process 6499: threads                   |
tokens_of_child      | process 6501: threads                   |
RRD102/hang-mismatch_overlapped_works | process 8883: threads  |
RRD205/hang          | core_workers[2].running_task_ids        | since when its call runs
RRD404/quiet         | core_workers[2].running_task_ids        |
tasks_in_common      | process 9784: files[5].writable         | whether it writes into a pipe
shard_writer         | process 24839: samples[2].threads[0].locals[0] | in which group a rank stands
writers_of_log       | process 1299: samples[2].threads[0].locals |
writers_of_log       | process 1301: torch                     |
evaluation_rounds    | process 16349: samples[2].threads[0].locals[0] |
loaders_beside       | locks[1].waiting                        | who waits for a lock, and who holds it
locked_data          | locks                                   |
far_cleaner          | locks[1].waiting                        |
forked_simulators    | process 6467: files[9].inode            | which pipe it is; its name tells it too
graders_of_graders   | process 1231: ppid                      | that a worker is there
two_engines          | process 21832: sockets[0].fd            | where its next task comes from
queue_of_ray         | process 23933: async_tasks[0].awaited   | for what a coroutine waits
keys_of_store        | process 1728: threads[0].wchan          | where in the kernel a thread sleeps
evaluation_rounds    | process 16350: samples[2].threads[0].locals | told by an earlier look
forked_simulators    | process 6468: state                     | that a child has ended
one_gpu              | semaphores[0]                           | who has the lock
two_engines          | process 21813: sockets[1]               | who is at the other end
coroutines_of_grpc   | process 1188: sockets                   | with whom it is connected
lease_of_manager     | process 19262: ppid                     | whose child the dead client was
feedback_of_queues   | process 6029: async_tasks[0].stable      | that a coroutine stood at two reads
cancelled_plays-healthy | process 5661: async_tasks[0].chain[2] | at which line of its own a coroutine sleeps
starts_of_learning-healthy | process 24643: sockets[2].fd       | at which connection a thread reads
asked_to_end         | process 11188: threads[0]               | for which child it waits
quiet/asks_judge-2         | process 8374: samples[0]                     | how often the looks woke its threads
quiet/asks_judge-2         | process 8374: samples[2].threads[1]          |
quiet/compile_baton-1      | process 17942: threads[0]                    | in which call of the kernel it waits for a child
quiet/compile_baton-2      | process 17942: threads                       |
quiet/monitored-2          | process 18782: threads                       |
quiet/runs_program-1       | process 13586: threads                       | that a program only sleeps
quiet/evaluates_in_c-1     | process 8813: samples[2].threads[1].owns_gil | that its computation has let go of the interpreter
quiet/one_slow_rollout-3   | process 28068: samples[1].threads[0]         | that it was in the same pause before
quiet/slow_loader-1        | process 25799: threads[0].wakes_in_s         | when its clock wakes it
quiet/stages-2             | process 26523: threads[0].wakes_in_s         |
quiet/weights_by_file-2    | process 21239: threads[0].wakes_in_s         |
quiet/agent_limits-1       | process 910: async_tasks[0].stable           | that a coroutine went on
quiet/agent_limits-2       | process 3925: ppid                           | whose child a coroutine waits for
quiet/agent_limits-2       | process 3925                                 |
quiet/cold_start-2         | process 18648                                | who should answer at an address
quiet/long_queue-2         | core_workers                                 | that calls have finished
quiet/evaluates_in_c-2     | core_workers[1]                              | the same, of one of them
quiet/many_tasks-1         | nodes[0]                                     | what a machine has
quiet/microbatches-1       | process 22045: threads[0].wakes_in_s         | when its clock wakes it, where nobody else sleeps
quiet/slow_disk-3          | process 24169: read_bytes                    | that it reads, piece by piece
quiet/one_slow_rollout-2   | process 28068: threads[0].wakes_in_s         | when its clock wakes it
quiet/replay_actor-1       | core_workers[1]                              | that calls have finished
quiet/weights_by_file-1    | process 21232                                | who makes what another one looks for
quiet/weights_by_file-2    | process 21232: samples                       |
loaders_of_replay-healthy  | process 12202: threads[1]                    | when the clock of the thread wakes it that has the next piece
rounds_of_worlds-healthy   | process 8763                                 | a party of a barrier
served_by_rank-healthy     | process 32049: threads[1].run_slices         | how often a rank woke up in its collective
two_at_one_port-healthy    | process 11147: sockets[1].remote             | who has accepted a connection
two_at_one_port            | process 10993                                |
tokens_of_stream           | process 11661: sockets[1]                    |
places_of_meeting          | actors[3]                                    | for which call it waits
health_before_weights      | process 28726: torch                         | for which ranks it waits
tail_of_scores             | process 844: files[0].fd                     | what it reads
quiet/replay_actor-3       | process 16235: sockets                       | that only Ray is connected to an actor
quiet/three_clients-2      | process 10700: sockets[1].fd                 | at which connection it waits
quiet/replay_actor-3       | core_workers[3].running_task_ids             | which calls it runs
quiet/timer_of_thread-1    | process 3404: samples[2].threads[0].tid      | which thread of the kernel's its timer is
streams_in_order           | core_workers[4]                              | which calls somebody else runs
quiet/checked_by_shells-1  | ended[0].ppid                                | whose child has ended
quiet/checked_by_shells-1  | process 8236                                 | the program that a shell runs
quiet/replay_actor-3       | history[1]                                   | that calls of another method have finished
quiet/replay_actor-3       | actors                                       | which connections are Ray's
quiet/replay_actor-3       | actors[2]                                    |
groups_of_trials-healthy   | actors[2]                                    | who has reserved what is waited for
dispatched_to_some-healthy | core_workers[0]                              | who calls all ranks
dispatched_to_some-healthy | core_workers[1].executed_tasks               | which rank was called less often
streams_in_order-healthy   | actors[1]                                    | which process an actor has
sentinels_of_loaders       | tasks                                        | which calls run
signal_of_evaluation       | history                                      | which calls have finished
judges_made_ready-healthy  | process 26723                                | a party of a barrier that has not come
barrier_of_shards          | process 20216                                |
starts_of_learning-healthy | process 24643: sockets[0].fd                 | at which port a server listens
logs_of_envs               | process 11599: threads                       | from which child a result comes
logs_of_envs               | process 11599: files[8].fd                   |
logs_of_envs               | process 11604: files                         |
news_by_datagram           | process 32498                                |
workers_made_again         | process 9986: files[7]                       |
compiler_asks              | process 1221: threads[0].syscall_arg0        | for the end of which child it waits
managed_slots              | semaphores[0].uses                           | who has taken a semaphore
asked_within_limits-healthy | process 1217: async_tasks[2].gives_up_s    | when a coroutine gives up
paused_after_disk          | process 19176: async_tasks[0].awaited        | what a coroutine waits for
tokens_of_stream           | process 11656: threads[1]                    | at which connection a thread reads
feedback_of_queues         | process 5774                                 | who is connected with an actor
flags_in_memory            | process 26232: files                         | who shares memory
lines_through_proxy        | process 31619                                | who is the client of a connection
lines_through_proxy        | process 31619: sockets                       |
sentinels_of_loaders       | history[6].callers                           | who has called a method so far
signal_of_evaluation       | history[4].callers                           |
starts_of_learning-healthy | process 24643: threads[2]                    | in which call of the kernel a handler is
streams_in_order-healthy   | process 31172: async_tasks[0].chain[3]       | how a call takes a semaphore
meeting_of_pool            | process 28822: files[9].inode                | from which pipe results come
folder_made_again          | process 7384: sockets[0].remote              | with whom it is connected
answers_by_threads         | process 2095: async_tasks[6].stable          | whether a coroutine was there before
quiet/asks_judge-1         | process 8374: threads[1].wakes_in_s          | when its clock wakes a handler
loop_of_tools-healthy      | process 27020: async_tasks[0].chain[0].file  | whose a coroutine is that goes on
second_of_group-healthy    | process 22923                                | who holds the room of a bundle
starts_of_learning-healthy | process 24643: sockets[0]                    | that a server listens
streams_in_order           | history[3].callers                           | who has given back so far
RRD501/hang-vllm-verl-worker-stopped | process 1848                       | the worker of an engine
RRD501/hang-vllm-verl-worker-stopped | process 1848: ppid                 |
gathered_at_writer         | process 1590: samples[2].threads[0].locals   | to which rank it sends
weights_from_source        | process 4203: samples[2].threads[0].locals   | from which rank it gets
RRD106/hang                | process 27943                                | which rank of a world it is
RRD106/hang                | process 27944                                |
starts_of_learning         | process 24292: sockets[2]                    | how many clients a server has
starts_of_learning         | process 24292: sockets[3]                    |
RRD204/quiet-vllm-coroutines-unread | process 23655: samples                  | what lives as long as an engine core
RRD501/hang-vllm-verl-worker-stopped | process 1635: sockets[16]                | at which socket it listens
connections_at_close       | process 11465: async_tasks[1]                | a coroutine that another one awaits
managed_slots              | process 6836: ppid                           | whose client of a manager it is
streams_in_order-healthy   | process 31172: async_tasks[0].chain[2]       | that a call stands in a method of own code
streams_in_order-healthy   | process 31172: async_tasks[0].chain[2].file  |
quiet/asks_judge-2         | process 8374: samples                        | what a server does
weights_from_source        | process 4203: threads[0]                     | whether a rank stands at its collective
streams_both_ways          | process 25490: sockets                       | with whom others are connected
lines_through_proxy        | process 31618                                | who is the client of a server that reads
lines_through_proxy        | process 31618: sockets[4].remote             |
lines_through_proxy-healthy | process 16500                               |
lines_through_proxy        | process 31617: samples                       | what one does who is named beside another
enough_of_episodes         | process 16486: sockets[0]                    | that a process listens, and so which of its connections it has accepted
asked_to_come_later        | process 22358: sockets[0]                    |
session_after_fork         | process 10888: sockets[0]                    |
logs_of_envs               | process 11603: files[7].inode                | which of several children it is
logs_of_envs               | semaphores[0].uses                           | who has given back a semaphore
meeting_of_pool            | process 28822: threads[3]                    | from which pipe results come
readers_of_errors          | process 24470: async_tasks[4].stable         | that a loop has work and no free thread
flags_in_memory            | process 26232                                | who shares memory with all who look at it
loaders_of_replay          | semaphores[0].uses[0]                        | who holds the lock at which a worker waits
loaders_of_replay          | process 12128                                |
shards_in_threads          | process 12556: samples[2].threads[2].locals  | which thread it joins
quiet/stages_joined-1      | semaphores[1]                                | who takes what a full queue waits for
quiet/gathers_requests-1   | process 9896: threads[0].wakes_in_s          | when a loop makes its next turn; the limit of its call tells it too
quiet/runs_program-1       | process 13586: threads[0].wakes_in_s         | when its clock wakes a program that only sleeps
tokens_of_stream-healthy   | process 11691: threads[1].wakes_in_s         | when its clock wakes a handler
RRD508/quiet               | awaited_files[0].holders                     | who holds a lock file open; the lists of open files tell it too
RRD508/quiet               | awaited_files                                | for which lock file it looks
quiet/saved_under_lock-1   | locks[0]                                     | who holds the lock at which the kernel holds it up
quiet/saved_under_lock-1   | locks[1].waiting                             |
quiet/uploaded_in_pieces-1 | process 16388                                | who reads what is written into a named pipe
barrier_actor              | process 18257: async_tasks[1].stable         | that a coroutine was there before
refill_of_tokens-healthy   | process 1879: window_s                       | whether data came in while it was looked at
refill_of_tokens-healthy   | process 1879: sockets[4].quiet_s             |
priorities_and_batches     | process 7935                                 | who serves at a port of this machine
tools_in_threads           | process 21163: threads                       | that a server listens
RRD201/hang-vllm-unread-stream | process 23961: sockets[7].fd             | who does not read what a server sends
weights_from_source        | process 4205: samples[2].threads[0].locals   | from which rank it gets
callback_of_pool-healthy   | process 18449: samples[0].threads[2].locals[2] | that it came into another wait
pipeline_of_export         | process 31400: samples                       | for whom a process waits, by its call of the kernel alone
RRD301/hang-vllm-verl-weight-sync-failed | process 31193: ppid            | whose worker it is
groups_of_trials-healthy   | placement_groups[3].job_id                   | whose a placement group is
cancelled_plays            | process 25049: async_tasks[0].chain[2]       | in which method a call waits
loop_of_tools-healthy      | process 27020: async_tasks[0]                | the only coroutine of a loop
quiet/replay_actor-3       | actors[2].address                            | at which port Ray listens
quiet/replay_actor-3       | history[1].callers                           | who has called a method so far
RRD404/quiet               | actors[1].end_time_s                         | when an actor died
RRD206/hang                | process 13406                                | which process drove the run
priorities_and_batches     | process 7935: sockets[0]                     | that a process listens; it was connected at one port by several
starts_of_learning-healthy | process 24643: sockets[3]                    | which client a thread of a server reads
callback_of_pool-healthy   | process 18449: samples[0]                    | that an event is another one than before
tool_in_background   | process 15351: state                  | whether a process is stopped; its first thread tells it too
RRD501/hang-sglang-idle-tp1-stopped-tp2 | process 10682: state                  |
streams_in_order     | core_workers[4].running_task_ids      | which call runs, which Ray and its owner tell too
sentinels_of_loaders | failed[0].actor_id                    | whose call has failed, which its id tells too
sentinels_of_loaders | failed                                | that a call has failed; calls are counted too
sentinels_of_loaders | failed[0]                             |
RRD205/hang          | actors[1]                             | which actor has died; of its worker a row is left
enough_of_episodes   | process 16486: sockets[4]             | that a connection was accepted; an empty queue tells it too
pushes_of_versions-healthy | process 7836: threads[1].wakes_in_s   | when its clock wakes the only sleeper
shard_of_first-healthy | process 15051                         | whose child is left; an older program that failed is none of multiprocessing
streams_both_ways    | process 25490                         | who does not read; its address is named instead
RRD101/hang-sglang-server-in-crash-dump-tp1 | process 19364                         | that a part of an engine lives; connected
RRD101/hang-sglang-server-in-crash-dump-tp1 | process 19364: ppid                   |
RRD205/hang-vllm-core-tidies-up | process 17862: log_lines[1]           | who died first
RRD301/hang-vllm-verl-weight-sync-failed | process 31193                         | the worker of an engine core
lines_through_proxy-healthy | process 16500: async_tasks[3].awaited | that a coroutine sleeps; where it stands tells it too
connections_at_close | process 11465: async_tasks[1].stable  | whether a coroutine was there before
lines_through_proxy  | process 31617: sockets[0]             | at which port a process listens; low ports are no client's
tokens_of_stream     | process 11661: sockets[0]             |
tail_of_scores       | process 844: threads[0].waits_on_fds  | at which descriptors a program polls
groups_of_trials-healthy | placement_groups[1]                   | who holds what a placement group waits for
groups_of_trials-healthy | placement_groups[1].creator_actor_id  |
pipeline_of_export   | process 31400: threads                | whether it stands at a full pipe itself
makers_of_driver-healthy | Ray's tables                          | who runs the call that a coroutine awaits
RRD510/quiet-many_below_the_limit | process 26258: threads[0]             | for the end of which child it waits
quiet/head-2         | process 24135: sockets[0]             | at which port a server listens
quiet/checked_by_shells-1 | ended                            | that children of a process came and went
connections_at_close | process 11465: async_tasks[1].chain[0] | in which code of the program a coroutine waits
scores_asked_back    | process 32575: sockets[0]             | whom a client asks
stages_by_tag        | process 25904: samples[2].threads[0].locals | from which rank it receives
log_to_collector     | process 2395                          | who serves at a port of this machine, and does not read
moves_in_buffer      | process 23637: async_tasks[2].awaited | for what a coroutine waits
loaders_of_replay-healthy | process 12202: threads           | what the kernel says of a thread that pauses
quiet/batching_window-1 | process 27032: threads[0]             | when its wait ends; what it was called with tells it too
quiet/batching_window-1 | process 27032: threads[0].wakes_in_s  |
kernels_of_sidecar-healthy | process 24651                         | a worker of the pool of torch's compiler
kernels_of_sidecar-healthy | process 24651: ppid                   |
tokens_of_rank-healthy | process 13453: async_tasks[0].awaited | that a coroutine sleeps; where it stands tells it too
session_after_fork   | process 10888: sockets[1].peer_inode  | which client is at the other end of a Unix socket
word_to_all          | process 20860: samples               | that who has the lock of a ring waits as well
dispatched_to_some-healthy | Ray's tables                       | how often actors were called
dispatched_to_some-healthy | core_workers                       |
weights_of_last      | process 26263                         | that a rank that was not seen may have taken its part
RRD205/hang-vllm-verl-enginecore-killed | Ray's tables              | how the server is called whose engine core is gone
cancel_not_heeded          | process 584: async_tasks[0].chain[0].file | in which code a coroutine waits for an answer
versions_published-healthy | process 28662: async_tasks[2].chain[2].brings | who brings what a coroutine waits for
wakeups_not_read           | process 19733: samples                | what who does not read a full pipe does
captured_output-healthy    | process 16469: async_tasks[0].chain[0].file | in which code a coroutine reads that completes a future
cancel_not_heeded          | process 584: async_tasks[0].chain[0]  |
pool_of_connections        | process 17610: sockets[0]             | that a broker listens; several are connected at one port of it
captured_output-healthy    | process 16469: async_tasks[0].chain[0] |
versions_published         | process 10296: sockets[2]             | at which port a broker serves
RRD510/hang-files_of_samples_kept | process 25605: descriptors            | how many descriptors a server holds that looks again and again
file_of_version            | process 18786: threads[0].run_slices  | how often a server woke up from its pause
raced_prompts-healthy      | process 16763: async_tasks[2]         | who has the only connection of a pool; another one names it
quiet/signalled-1          | process 32665: threads[1]             | what the kernel says of a thread that pauses and then sends a signal
tokens_of_stream           | process 11661: threads[1]             | at which connection a thread of a server reads
versions_long_polled       | process 8580: samples[2].threads[0]   | where a thread stands that began during the window
answers_of_engine          | process 31996: ppid                   | whose child has ended
pop_before_push-healthy    | process 18645: async_tasks[3].chain[0].file | in which code a coroutine sleeps
pop_before_push-healthy    | process 18645: async_tasks[3].chain[0] |
core_of_restarted-healthy | tasks                                 | when the restart of an actor began
tokens_of_rank-healthy | process 13453: async_tasks[0].awaited | for how long a coroutine sleeps
deaf_environment-healthy | process 3328: threads[0].syscall_arg0 | for the end of which child it waits
long_prompts         | process 11049: async_tasks[0].chain[0].file | in which code of the program a coroutine writes to a child
callbacks_over_http-healthy | process 17611                | who may send what a server waits for
requests_broadcast-healthy  | process 18519: samples       | where a reader pauses
requests_broadcast-healthy  | process 18520: samples       |
cores_at_barrier-healthy    | process 21301                | who shares the memory at which others wait
cores_at_barrier-healthy    | process 21301: ppid          |
dispatcher_of_gateway-healthy | process 26654: async_tasks[3].awaited | for what a dispatcher waits
dispatcher_of_gateway-healthy | process 26654: async_tasks[3].chain[0].file |
sessions_on_uvloop-healthy | process 15482: async_tasks[4].chain[0].file | in which code a coroutine stands; others at its line tell it too
stream_put_aside            | process 6926                  | who reads what a generator yields
turn_of_condition-healthy   | process 26293: async_tasks[0] | what stands in a process while another coroutine of it pauses
barrier_tried_again-hang.3  | process 18330                 | who else gives a semaphore of a condition
samples_pushed              | process 26874: sockets        | at which port a thread beside serves
RRD501/hang-sglang-idle-tp1-stopped-tp2 | process 10682: ppid | of which engine a scheduler is a part
group_in_evaluator-healthy  | tasks                         | which task holds what a placement group needs
monitored_by_first-healthy  | process 9647                  | a child that serves at a port of this machine
greenlets_of_envs-healthy   | process 14522: written_bytes  | that it writes; how much it reads is known
clones_of_stream            | process 4900: async_tasks[0]  | the coroutine that a loop runs to its end
texts_by_forkserver         | process 27690                 | the worker with the work, below a fork server
barrier_tried_again-hang.3  | semaphores[0].uses[0]         | who gave back a semaphore of a condition
threads_of_rank_cross       | process 13268: torch          | in which of its groups a rank waits
turn_of_condition-healthy   | process 26293: async_tasks[0].stable | whether a coroutine stands while another one pauses
lines_through_proxy-healthy | process 16500: async_tasks[3].chain[0] | in which code a coroutine sleeps before it passes a line on
meeting_of_pool             | semaphores[0].uses[1]         | who has only taken what the parties of a barrier give
quiet/turns_under_lock-1     | process 5647: threads         | in which call of the kernel a thread sleeps that has the lock
placed_behind_others-healthy.2 | process 29334: threads[7].wakes_in_s | when the time of a timer comes
threads_of_rank_cross       | process 13267: threads[0]      | what the kernel says of a rank whose other thread has joined as well
threads_of_rank_cross       | process 13268: samples[2].threads[0].locals[1] | in which group a rank is that stands in two collectives
verified_in_time-healthy    | process 21749                  | the worker of a pool that a coroutine waits for
spans_of_rollout            | process 10420: async_tasks[3].chain[2].file | whose a coroutine is that waits for a lock
queue_of_dataset-healthy    | process 19428: files[3]        | who holds the writing end of a queue
barrier_tried_again-healthy | process 29100: files[10]       | that a party has the barrier
weights_from_source         | process 4205: threads[0].run_slices | that a rank stands still which names another source
samples_pushed              | process 26874: threads[1]      | at which port the loop of a thread listens
long_prompts                | process 11049: async_tasks[0].stable | whether a coroutine was there before that writes to a child
followed_log                | process 22169: comm            | which program follows a file; its thread tells it too
lines_through_proxy-healthy | process 16500: async_tasks[3]  | the coroutine of which only a timer is left
tokens_by_zmq               | process 13924: threads[2]      | the thread of ZeroMQ that reads
stream_put_aside            | process 6925: threads          | that a generator is held back
kernel                      | process 2199: in_c             | what a rank does in C, as was read of its fellows
straggler                   | process 2029: samples          | that a rank works; its counters stand still
queued                      | process 713: window_s          | over which time a rank used a core
prompt_of_tool              | process 11311: async_tasks[0]  | what an agent does that does not read a full pipe
pop_before_push             | process 10216: async_tasks[1].chain[1] | that a server's coroutine rests by design
shards_of_loaders           | process 11425: torch           | which rank has not come; a forked loader is none
inputs_of_core              | process 23087                  | the only child of a server
batches_of_stream           | process 27952: samples         | for what an actor waits
sessions_on_uvloop-healthy  | process 15482: async_tasks[4].chain[0].line | where a coroutine stands; others of its function tell it too
one_client_at_a_time        | semaphores[0].uses             | who is a party of a barrier
barrier_tried_again-hang.2  | semaphores[0].uses             |
answer_to_other_loop | process 29461: async_tasks[0].awaited | what a coroutine beside a pipe waits for
answer_to_other_loop | process 29461: threads[0].run_slices | whether the loop of one that could go on sleeps
answer_to_other_loop | process 29461: async_tasks[0].tid | in which loop one stands that could go on
spans_of_rollout-healthy | process 10768: async_tasks[2].awaited | what the coroutine awaits that fills the queue
prompt_of_tool       | process 11311: async_tasks[0].chain[0] | in which code one awaits a child
engine_not_placed-healthy.2 | Ray: actors[14].end_time_s | when the engine was ended
pools_and_script-healthy.2 | process 9526: samples[0].threads[5] | a look before the next script
terminal_not_read    | process 22732: samples                  | what one does whose children wait for it
clones_of_stream-healthy | process 5040: async_tasks[2].chain[0] | in which code a coroutine sleeps
lines_through_proxy-healthy | process 16500: async_tasks[3].chain[0].takes | whether one that sleeps has something in hand
first_batch_of_epoch-healthy | process 736: files[3]     | an end of a pipe that idle workers have inherited
clones_of_stream     | process 4900: async_tasks[0].stable     | whether the only coroutine of an idle loop stood before
nested_rpc_calls     | process 30479: samples[0].threads[0].tid | which of its threads one look met
calls_before_barrier-healthy | process 23873: samples[2].threads[0].tid |
RRD501/hang-sglang-idle-tp1-stopped-tp2 | process 10682 | the other rank of an engine
reward_of_steps      | process 25921: ppid                     | whose child the other end of a connection is
pool_of_connections  | process 17609: threads[0]               | the main thread in the kernel
spawned_under_lock-healthy | process 10585                     | the child that reads what it is sent
texts_by_forkserver-healthy | process 27863: samples           | a fork server
texts_by_forkserver-healthy | process 27865: files[6]          | where a worker of a pool puts its results
tokenized_for_others-healthy | process 31733: files[5]         |
turn_of_condition-healthy | process 26293: async_tasks[1].chain[0].apart | whether a coroutine that sleeps hands anything on
verified_in_time-healthy | process 21749: ppid                 | whose worker it is
versions_published-healthy | process 28640                     | who started a server, and may bring what its requests wait for
answer_to_other_loop | process 29461: async_tasks         | what the loop beside a pipe does
answer_to_other_loop | process 29461: async_tasks[0]      |
answer_to_other_loop | process 29461: async_tasks[0].stable |
readers_of_errors    | process 24470: async_tasks         |
answers_of_engine    | process 31996                      | the child that has the other ends of two pipes
rounds_of_players    | process 24728                      | a party that has ended; its parent has pipes of it
calls_before_barrier-healthy | process 23873: samples[2].threads[0] | what a thread of C did when a look missed it
calls_before_barrier-healthy | process 23873: samples[2].threads[0].tid |
left_before_word-healthy     | process 3791: samples[4].threads[0] |
clones_of_stream-healthy | process 5040: async_tasks[2]    | the coroutine of which a timer of its loop is left
pop_before_push-healthy  | process 18645: async_tasks[3]   |
dispatcher_of_gateway-healthy | process 26654: async_tasks[3] | the coroutine for which a server works at the other end
followed_log         | process 22169: ppid                | whose child follows a file for ever
judges_made_ready    | process 26400: files[20]           | that a parent has a semaphore as its children have
judges_made_ready    | process 26400: files[20].inode     |
pool_of_connections-healthy | process 18192: threads[1]   | what the kernel says of a thread that feeds another
samples_pushed       | process 26874                      | the parent, which may make what a child looks for
samples_pushed       | process 26874: sockets[2]          | that a thread listens at a port
samples_pushed       | process 26874: sockets[2].fd       |
samples_pushed       | process 26876: samples             | that one goes on which may send something
sentinels_of_loaders | history[1]                    | when those who wait ended such a call for the last time
sentinels_of_loaders | history[1].last_end_time_s    |
session_after_fork   | process 10887: sockets[0].inode    | the number of an end of a connection; the other end tells it too
spans_of_rollout     | process 10420: async_tasks[3].chain[2] | in whose code a coroutine waits for a lock
texts_by_forkserver  | process 27685: samples             | that it is a fork server; its socket tells it too
texts_by_forkserver  | process 27690: files[6]            | that a worker of the pool has the pipe of its results
tokenized_for_others | process 31455: files[5]            | that a worker of the pool has the pipe of its results
versions_published   | process 10294                      | who may connect to a server and bring something
versions_published   | process 10296: async_tasks[0].chain[2].brings | whether only a further request ends a wait
versions_published   | process 10296: async_tasks[2].chain[0].file |
quiet/signalled-1    | process 32665: threads[1].wakes_in_s | when its clock wakes the thread that sends a signal
asked_to_come_later-healthy.2 | process 21171: sockets         | a connection that was used once
asked_to_come_later-healthy.2 | process 21171: sockets[6]      |
asked_to_come_later-healthy.2 | process 21171: sockets[6].quiet_s |
"""
"""Recorded run, fact, and what it told: without each of these somebody else was once accused."""


@pytest.mark.parametrize("line", ONCE_WRONG.strip().splitlines(), ids=lambda line: " ".join(line.split("|")[:2]))
def test_no_fact_that_once_mattered_accuses_anybody_else(line: str) -> None:
    name, what, _ = (cell.strip() for cell in line.split("|"))
    names = (f"kinds/recorded/{name}-hang", f"kinds/recorded/{name}", f"cases/{name}", f"data/gpu/{name}", name.replace("quiet/", "quiet/recorded/"))
    file = next(f for f in RECORDED if str(f.relative_to(TESTS)).removesuffix(".json.gz") in names)
    snapshot = load((file,)).snapshot
    assert snapshot is not None
    less = next(one for named, one in variants(snapshot) if f": {named}".endswith(f": {what}"))
    assert less != snapshot
    assert not accuses_others(diagnose(less), less, allowed(snapshot))


ONCE_HEALTHY = """
nested_scoring       | process 1005: samples[0].threads[5].locals[5] | at which item a worker was before
pool_of_threads      | process 17503: samples[0].threads[4].locals   |
graders_of_graders   | process 1231: samples[0].threads[0].locals[0] |
engine_behind        | process 16068: samples[0].threads[0]          | a thread that was there all the time
tokens_of_child      | process 6501: samples[0].threads[0]           |
session_server       | process 8344: async_tasks[2].stable           | whether one stands among those of an idle loop
tasks_of_loop        | process 1619: async_tasks[1].awaited          |
threads_of_driver    | process 1156: samples                         | where the driver stands
"""


@pytest.mark.parametrize("line", ONCE_HEALTHY.strip().splitlines(), ids=lambda line: " ".join(line.split("|")[:2]))
def test_no_fact_that_once_mattered_makes_a_hang_healthy(line: str) -> None:
    """Without it a hang may be *possible*, *unknown* or *slow*, and health no more than *possible*."""
    name, what, _ = (cell.strip() for cell in line.split("|"))
    snapshot = load((TESTS / f"kinds/recorded/{name}-hang.json.gz",)).snapshot
    assert snapshot is not None
    less = next(one for named, one in variants(snapshot) if named.endswith(f": {what}"))
    verdict = diagnose(less).verdict
    assert (verdict.state, verdict.certainty) != (State.HEALTHY, Certainty.LIKELY)


def test_who_awaits_somebody_unseen_is_not_called_healthy() -> None:
    snapshot = load((TESTS / "kinds/recorded/verified_in_time-healthy.json.gz",)).snapshot
    assert snapshot is not None
    less = next(one for named, one in variants(snapshot) if named.endswith(": process 21749"))
    assert diagnose(less).verdict.state is State.UNKNOWN


def test_what_one_look_missed_is_to_be_looked_at_again() -> None:
    """As root one would see no more of a process that was seen."""
    snapshot = load((TESTS / "kinds/recorded/left_before_word-healthy.json.gz",)).snapshot
    assert snapshot is not None
    less = next(one for named, one in variants(snapshot) if named.endswith(": process 3791: samples[4].threads[0]"))
    told = diagnose(less).verdict.summary
    assert "what thread" in told and "a longer window looks at it again" in told and "as root" not in told


def check(file: Path, every: int) -> None:
    snapshot = load((file,)).snapshot
    assert snapshot is not None
    start = zlib.crc32(file.name.encode()) % every
    found = [f"without {what}: {report.findings[0].summary}" for what, report, _ in wrong(snapshot, every=every, start=start)]
    assert found == []


@pytest.mark.parametrize("file", FEW, ids=lambda f: f"{f.parents[f.parent.name == 'recorded'].name}/{f.name.removesuffix('.json.gz')}")
def test_a_missing_fact_accuses_nobody_else(file: Path) -> None:
    check(file, ONE_OF)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("file", RECORDED, ids=lambda f: f"{f.parents[f.parent.name == 'recorded'].name}/{f.name.removesuffix('.json.gz')}")
def test_many_missing_facts_accuse_nobody_else(file: Path) -> None:
    check(file, ONE_OF_LONG)
