"""What is true of each program in ``programs/``, and whether a report says so.

One line a program: name | kind | who is to be named | causes that fit | who may be named beside. Who: names of the program's marks, several divided
by blanks; at least one of them must be in the first finding, and of all other marked processes none, but those of the last column. ``label:TEXT``
stands for what is no living process, by a part of its label. The twin of each program moves: nobody may be accused.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

QUIET = ("healthy", "slow")

TABLE = """
barrier_under_lock | locks known by their names | main | lock-deadlock |
weights_and_table | locks known by their names | main | lock-deadlock |
buffer_flushed_inside | locks known by their names | main | lock-deadlock |
client_under_lock | locks known by their names | server checker | blocked-io straggler | main
pipeline_step        | recv against collective            | rank0                   | p2p-mismatch collective-mismatch          | rank1
groups_of_step       | new_group against collective       | rank3                   | collective-mismatch init-deadlock         |
mesh_of_four         | two groups crossed                 | rank0 rank1 rank2 rank3 | collective-mismatch                       |
shard_writer         | barrier on the wrong group         | rank2                   | collective-mismatch                       |
plan_of_epoch        | object collectives                 | rank1                   | collective-mismatch                       |
pair_of_ranks        | a tie of two ranks                 | rank0 rank1             | collective-mismatch                       |
reference_groups     | identity of groups                 | rank0 rank1             | collective-mismatch init-deadlock         |
generate_service     | client, server, handler, engine    | server                  | blocked-io                                |
nested_scoring       | pool inside pool                   | main                    | lock-deadlock                             |
grouped_actor        | concurrency groups of an actor     | scorer                  | ray-queued-call lock-deadlock             |
threads_of_loop      | threads of a loop used up          | main                    | asyncio-stuck lock-deadlock               |
sandbox_slots        | semaphores across processes        | worker0 worker1         | blocked-io                                |
episodes_queue       | queue with a dead producer         | maker                   | producer-died                             |
long_episodes        | queue with a slow producer         | maker                   | blocked-io                                |
own_pipes            | other end of a pipe                | worker1                 | lock-deadlock                             |
forked_simulators    | a dead child beside living ones    | simulator1              | producer-died                             |
shared_store         | wait in a C extension              | publisher               | lock-deadlock                             |
pool_beside          | idle pool beside                   | main                    | blocked-io                                |
uploads_at_end       | no own frame in the main thread    | main                    | blocked-io                                |
session_server       | a loop that starves                | server                  | asyncio-stuck                             |
looking_for_batches  | polls for what nobody makes        | main                    | producer-died lock-deadlock               |
judged_by_pool       | coroutine, executor, child         | judge checker           | blocked-io                                |
ring_exchange        | recv against collective            | rank2                   | p2p-mismatch collective-mismatch          |
evaluator_cache      | new_group against collective       | rank0                   | collective-mismatch init-deadlock         |
metrics_first        | two groups crossed                 | rank1                   | collective-mismatch                       |
writers_of_log       | barrier on the wrong group         | rank1                   | collective-mismatch                       | rank0
scatter_prompts      | object collectives                 | rank2                   | collective-mismatch                       |
swapped_pair         | a tie of two ranks                 | rank0 rank1             | p2p-mismatch                              |
meeting_port         | identity of groups                 | rank0 rank1             | init-deadlock                             |
managed_generator    | client, server, handler, engine    | generator compiler      | blocked-io                                |
graders_of_graders   | pool inside pool                   | grader                  | blocked-io                                |
async_groups         | concurrency groups of an actor     | engine                  | asyncio-stuck ray-queued-call             |
threads_meet         | threads of a loop used up          | main                    | asyncio-stuck lock-deadlock               |
cores_and_memory     | semaphores across processes        | left right              | lock-deadlock                             |
prefetch_thread      | queue with a dead producer         | main                    | producer-died lock-deadlock               |
simulated_episodes   | queue with a slow producer         | main simulator          | blocked-io                                |
tasks_in_common      | other end of a pipe                | busy main               | blocked-io lock-deadlock                  |
pool_of_checkers     | a dead child beside living ones    | main                    | producer-died lock-deadlock               |
remote_judge         | wait in a C extension              | judge                   | lock-deadlock                             |
loaders_beside       | idle pool beside                   | copier main             | blocked-io lock-deadlock                  |
fetches_at_end       | no own frame in the main thread    | files                   | blocked-io lock-deadlock                  | main
connections_of_client| a loop that starves                | main                    | asyncio-stuck                             |
status_of_run        | polls for what nobody makes        | service                 | lock-deadlock                             |
tools_in_threads     | coroutine, executor, child         | tool main               | blocked-io asyncio-stuck                  |
three_services       | ring over a connection             | planner coder critic    | blocked-io lock-deadlock                  |
two_talkers          | ring over a connection             | left right              | lock-deadlock blocked-io                  |
collected_scores     | recv against collective            | rank2                   | p2p-mismatch collective-mismatch          | rank0
members_only         | new_group against collective       | rank1                   | collective-mismatch init-deadlock         | rank0
sync_and_data        | two groups crossed                 | rank0 rank1             | collective-mismatch weight-sync-mismatch  |
evaluation_rounds    | barrier on the wrong group         | rank1                   | collective-mismatch p2p-mismatch          | rank0
letters_of_ranks     | object collectives                 | rank2                   | p2p-mismatch collective-mismatch          | rank0
sums_and_parts       | a tie of two ranks                 | rank0 rank1             | collective-mismatch                       |
two_engines          | identity of groups                 | left1                   | blocked-io straggler                      |
engine_behind        | client, server, handler, engine    | engine                  | lock-deadlock                             |
pool_of_threads      | pool inside pool                   | main                    | lock-deadlock                             |
buffer_actor         | concurrency groups of an actor     | buffer                  | ray-queued-call lock-deadlock             |
locked_data          | threads of a loop used up          | cleaner main            | blocked-io asyncio-stuck lock-deadlock    |
one_gpu              | semaphores across processes        | worker0 worker1 worker2 | lock-deadlock producer-died               |
tasks_of_loop        | queue with a dead producer         | main                    | asyncio-stuck producer-died               |
remote_episodes      | queue with a slow producer         | main simulator          | blocked-io asyncio-stuck lock-deadlock    |
line_of_programs     | other end of a pipe                | encoder                 | blocked-io                                |
rounds_of_players    | a dead child beside living ones    | player2                 | producer-died rank-died                   |
shared_ledger        | wait in a C extension              | grader                  | lock-deadlock blocked-io                  | main
pools_and_script     | idle pool beside                   | main script             | blocked-io                                |
inline_client        | no own frame in the main thread    | server                  | lock-deadlock blocked-io                  |
borrowed_pairs       | a loop that starves                | server                  | asyncio-stuck                             |
collector_actor      | polls for what nobody makes        | rollout                 | blocked-io                                |
graded_in_threads    | coroutine, executor, child         | grader                  | blocked-io                                | main
big_letters          | ring over a connection             | left right              | blocked-io lock-deadlock                  |
uneven_batches       | mixed                              | rank1                   | collective-mismatch straggler             |
talkative_child      | mixed                              | main program            | blocked-io                                |
managed_queue        | mixed                              | actor0 actor1           | producer-died                             |
threads_in_step      | mixed                              | main                    | lock-deadlock producer-died               |
queue_of_ray         | mixed                              | rollout cleaner         | blocked-io                                |
calls_back           | mixed                              | writer critic           | ray-get-cycle ray-queued-call             |
locked_by_others     | mixed                              | updater main            | blocked-io lock-deadlock asyncio-stuck    |
coroutines_of_grpc   | mixed                              | service                 | asyncio-stuck                             |
keys_of_store        | mixed                              | rank2                   | blocked-io                                |
tensors_handed_over  | mixed                              | sampler1                | lock-deadlock                             |
groups_in_turn       | mixed                              | rank1                   | init-deadlock collective-mismatch         |
weights_to_engine    | mixed                              | rank3                   | collective-mismatch weight-sync-mismatch  | rank2
awaited_programs     | mixed                              | checker                 | blocked-io asyncio-stuck                  | main
workers_made_ready   | mixed                              | worker main             | lock-deadlock                             |
late_evaluation      | mixed                              | rank1                   | collective-mismatch                       |
scores_in_line       | mixed                              | rank2                   | p2p-mismatch collective-mismatch          | rank0
adapters_of_engine   | client, server, handler, engine    | server                  | blocked-io                                |
tokens_of_child      | client, server, handler, engine    | tokenizer               | lock-deadlock producer-died               |
answers_by_threads   | threads of a loop used up          | rollout                 | asyncio-stuck lock-deadlock               |
own_calls_of_env     | mixed                              | environment             | ray-get-cycle ray-queued-call             |
managed_slots        | semaphores across processes        | writer reader           | lock-deadlock                             |
two_devices          | semaphores across processes        | trainer generator       | lock-deadlock blocked-io                  |
packed_batches       | queue with a dead producer         | packer                  | producer-died rank-died                   |
games_received       | queue with a slow producer         | game                    | blocked-io                                |
converted_checkpoints| polls for what nobody makes        | converter               | producer-died rank-died                   |
versions_asked_for   | polls for what nobody makes        | rollout0 rollout1 main  | staleness-gate ray-get-cycle producer-died asyncio-stuck |
returned_samples     | mixed                              | main                    | lock-deadlock                             |
weights_under_readers| mixed                              | trainer                 | lock-deadlock                             |
judged_ranks         | mixed                              | program checker         | blocked-io                                |
far_cleaner          | mixed                              | cleaner                 | blocked-io lock-deadlock                  |
counted_microbatches | recv against collective            | rank1                   | p2p-mismatch collective-mismatch          | rank0
checkpoints_behind   | mixed                              | rank1                   | blocked-io straggler                      |
received_by_threads  | mixed                              | rank2                   | blocked-io straggler                      |
parts_of_grades      | pool inside pool                   | grader                  | lock-deadlock                             |
inbox_of_files       | queue with a slow producer         | sampler                 | blocked-io                                |
ring_in_memory       | polls for what nobody makes        | sampler learner         | lock-deadlock producer-died blocked-io    |
signal_to_save       | locks known by their names         | main                    | lock-deadlock                             |
streamed_tokens      | client, server, handler, engine    | server                  | asyncio-stuck producer-died lock-deadlock |
locks_of_coroutines  | mixed                              | main                    | asyncio-stuck lock-deadlock               |
opened_pipes         | other end of a pipe                | main engine             | blocked-io lock-deadlock                  |
inherited_lock       | mixed                              | helper worker0          | blocked-io lock-deadlock                  |
judge_asks_back      | ring over a connection             | engine judge            | event-loop-blocked ray-get-cycle blocked-io asyncio-stuck |
pulls_of_version     | concurrency groups of an actor     | worker2                 | blocked-io                                |
stream_of_samples    | mixed                              | sampler main            | ray-queued-call ray-get-cycle lock-deadlock |
counted_tasks        | mixed                              | main                    | lock-deadlock producer-died            | worker0 worker1 worker2
lines_of_log         | mixed                              | main                    | lock-deadlock                             |
shell_of_agent       | other end of a pipe                | main shell0             | blocked-io lock-deadlock                  |
pause_before_weights | ring over a connection             | main generator judge    | asyncio-stuck weight-sync-mismatch lock-deadlock blocked-io |
threads_of_buffer    | mixed                              | main                    | lock-deadlock producer-died               |
lock_around_batches  | semaphores across processes        | main loader0 loader1    | lock-deadlock dataloader-stuck            |
rules_of_planner     | ring over a connection             | planner checker         | lock-deadlock blocked-io                  |
reward_of_steps      | pool inside pool                   | reward                  | lock-deadlock                             |
drained_engine       | inside one process                 | engine                  | lock-deadlock producer-died ray-queued-call |
episodes_of_sampler  | inside one process                 | sampler                 | asyncio-stuck lock-deadlock producer-died |
scores_by_script     | coroutine, executor, child         | service                 | blocked-io                                |
buffer_asks_learner  | concurrency groups of an actor     | learner                 | blocked-io                                |
results_after_join   | inside one process                 | main                    | lock-deadlock producer-died               |
worlds_in_lockstep   | inside one process                 | rank1                   | lock-deadlock producer-died straggler     |
flushed_by_signal    | inside one process                 | rollout                 | lock-deadlock                             |
exports_of_step      | inside one process                 | exporter                | lock-deadlock cleanup-deadlock producer-died |
packed_by_program    | inside one process                 | packer                  | blocked-io lock-deadlock                  |
lanes_in_ring        | concurrency groups of an actor     | engine reward           | ray-get-cycle lock-deadlock ray-queued-call |
sandboxes_in_queue   | queue with a dead producer         | tools                   | asyncio-stuck producer-died               |
shards_in_threads    | inside one process                 | rank1                   | blocked-io straggler                      |
pings_of_ranks       | inside one process                 | rank1                   | blocked-io straggler                      |
tools_of_agent       | client, server, handler, engine    | compiler                | lock-deadlock blocked-io                  |
swaps_of_adapters    | concurrency groups of an actor     | engine                  | lock-deadlock producer-died               |
skipped_for_nan      | mixed                              | rank1                   | collective-mismatch                       |
state_of_shards      | mixed                              | rank0                   | collective-mismatch                       |
weights_from_source  | mixed                              | rank2                   | collective-mismatch weight-sync-mismatch p2p-mismatch | rank0
batch_of_envs        | mixed                              | env1                    | blocked-io                                |
priorities_and_batches| ring over a connection            | buffer learner          | lock-deadlock blocked-io                  |
lock_left_behind     | mixed                              | rank1                   | lock-deadlock blocked-io producer-died straggler |
meeting_in_files     | mixed                              | actor2                  | blocked-io straggler                      |
router_of_backends   | client, server, handler, engine    | router backend1         | asyncio-stuck producer-died engine-died blocked-io |
placed_behind_others | mixed                              | holder0 holder1 main label:placement | ray-pending                  |
named_before_made    | polls for what nobody makes        | rollout0 rollout1 main  | ray-get-cycle lock-deadlock producer-died blocked-io straggler |
devices_of_tasks     | mixed                              | train0 train1 label:evaluate | ray-pending ray-get-cycle                 |
enough_of_episodes   | client, server, handler, engine    | server                  | blocked-io                                |
barrier_actor        | mixed                              | exporter                | blocked-io                                |
runners_of_store     | polls for what nobody makes        | runner1                 | producer-died                             |
rewards_call_back    | client, server, handler, engine    | server                  | lock-deadlock blocked-io                  |
slots_of_cancelled   | a loop that starves                | main                    | asyncio-stuck lock-deadlock               |
counter_of_drain     | mixed                              | engine                  | straggler lock-deadlock producer-died blocked-io |
server_that_crashed  | polls for what nobody makes        | server                  | producer-died                             | scorer
shard_of_first       | polls for what nobody makes        | loader0                 | producer-died                             | loader1 loader2
names_of_versions    | polls for what nobody makes        | trainer engine          | producer-died lock-deadlock               |
batch_above_capacity | polls for what nobody makes        | main                    | lock-deadlock producer-died               |
stop_word_missing    | mixed                              | rank1                   | straggler                                 |
paused_by_trainer    | mixed                              | engine0                 | process-stopped                           | main
loaders_of_epoch     | mixed                              | loader0 loader1 main    | dataloader-stuck lock-deadlock            |
joined_before_read   | other end of a pipe                | scorer main             | lock-deadlock blocked-io cleanup-deadlock |
some_of_rollouts     | ring over a connection             | main rollout2 rollout3  | ray-get-cycle lock-deadlock               | weights
feedback_of_queues   | ring over a connection             | generator trainer       | ray-get-cycle lock-deadlock               |
debates_in_pool      | pool inside pool                   | player0 player1 main    | ray-get-cycle lock-deadlock               |
made_by_each_other   | ring over a connection             | planner critic          | ray-get-cycle lock-deadlock               |
second_of_group      | mixed                              | label:Critic main       | ray-pending                               | policy
hints_as_objects     | object collectives                 | rank1                   | p2p-mismatch collective-mismatch          | rank0
stages_by_tag        | a tie of two ranks                 | stage0 stage1           | p2p-mismatch                              |
woken_in_turn        | inside one process                 | main                    | lock-deadlock producer-died               |
paused_twice         | a loop that starves                | server                  | asyncio-stuck engine-paused               |
state_asks_itself    | inside one process                 | main                    | asyncio-stuck lock-deadlock               |
not_accepted         | client, server, handler, engine    | buffer                  | producer-died lock-deadlock blocked-io    |
pipeline_of_export   | mixed                              | writer                  | process-stopped                           | supervisor
one_at_a_time        | client, server, handler, engine    | server evaluator        | blocked-io lock-deadlock                  |
lines_through_proxy  | ring over a connection             | proxy rollout           | blocked-io lock-deadlock asyncio-stuck    |
copy_of_socket       | other end of a pipe                | monitor rollout main    | producer-died blocked-io lock-deadlock    |
restarted_environment| mixed                              | environment1            | ray-queued-call blocked-io                |
answers_not_read     | inside one process                 | main                    | lock-deadlock producer-died               |
permits_of_rollouts  | semaphores across processes        | permits evaluator       | asyncio-stuck ray-get-cycle               |
gathered_at_writer   | recv against collective            | rank1                   | collective-mismatch p2p-mismatch          | rank0
refill_of_tokens     | a loop that starves                | limiter                 | asyncio-stuck producer-died               |
rounds_of_worlds     | a dead child beside living ones    | simulator1              | producer-died lock-deadlock blocked-io    |
flag_of_round        | polls for what nobody makes        | follower1 main          | producer-died lock-deadlock blocked-io straggler |
module_instead_of_ddp| mixed                              | rank2                   | collective-mismatch                       |
question_on_terminal | other end of a pipe                | command                 | blocked-io lock-deadlock                  | main
input_held_open      | other end of a pipe                | packer logger main      | blocked-io lock-deadlock                  |
notified_before_waiting| mixed                            | sampler learner         | lock-deadlock producer-died               |
watcher_of_pool      | inside one process                 | main                    | lock-deadlock producer-died               |
lease_of_manager     | semaphores across processes        | actor1                  | producer-died lock-deadlock               |
slots_of_branches    | a loop that starves                | main                    | asyncio-stuck lock-deadlock               |
one_connection       | client, server, handler, engine    | main                    | asyncio-stuck lock-deadlock               |
core_of_planner      | mixed                              | planner label:check     | ray-pending ray-get-cycle                 | main table
flags_in_memory      | polls for what nobody makes        | rank2                   | blocked-io straggler                      |
barrier_against_store| mixed                              | rank0 rank1             | collective-mismatch lock-deadlock blocked-io straggler |
woken_by_signal      | mixed                              | trainer main            | lock-deadlock producer-died blocked-io    |
events_from_thread   | a loop that starves                | main                    | asyncio-stuck lock-deadlock               |
hooks_of_backward    | queue with a dead producer         | rank1                   | lock-deadlock producer-died straggler blocked-io |
channels_of_graph    | mixed                              | stage1                  | blocked-io                                |
sync_inside_loop     | inside one process                 | main                    | event-loop-blocked asyncio-stuck lock-deadlock |
finalizer_takes_lock | inside one process                 | buffer                  | lock-deadlock                             |
trials_in_database   | ring over a connection             | evaluator main          | blocked-io lock-deadlock producer-died    |
tools_timed_out      | threads of a loop used up          | main                    | blocked-io lock-deadlock asyncio-stuck    |
barrier_of_shards    | semaphores across processes        | worker2                 | producer-died lock-deadlock               | main
joined_queue         | a loop that starves                | main                    | asyncio-stuck lock-deadlock producer-died |
failed_beside_slow   | inside one process                 | scorer                  | blocked-io lock-deadlock                  |
compiled_steps       | client, server, handler, engine    | critic                  | blocked-io                                |
sums_of_actors       | recv against collective            | trainer2                | collective-mismatch straggler             |
arguments_of_update  | ring over a connection             | rollout main            | ray-get-cycle ray-queued-call lock-deadlock | trainer
prompts_tried_again  | mixed                              | label:Engine            | engine-died producer-died rank-died       |
hook_of_workers      | mixed                              | worker label:Environment | blocked-io ray-pending                   |
minimum_of_buffer    | ring over a connection             | main rollout0 rollout1  | ray-get-cycle lock-deadlock asyncio-stuck | buffer weights
events_of_thread     | a loop that starves                | judge                   | asyncio-stuck lock-deadlock               |
background_of_tool   | other end of a pipe                | server                  | blocked-io lock-deadlock                  | main
cancelled_scores     | inside one process                 | main                    | lock-deadlock producer-died               |
news_by_datagram     | ring over a connection             | rollout1                | blocked-io lock-deadlock                  | main
warnings_of_child    | other end of a pipe                | simulator main          | blocked-io lock-deadlock                  |
registered_clients   | client, server, handler, engine    | server                  | blocked-io lock-deadlock producer-died    | main
second_node_missing  | identity of groups                 | label:launcher          | init-deadlock                             |
lock_of_ended_job    | semaphores across processes        | turns                   | asyncio-stuck lock-deadlock producer-died ray-queued-call | main
batches_of_graph     | mixed                              | main                    | blocked-io straggler                      |
streams_both_ways    | ring over a connection             | main rollout            | asyncio-stuck blocked-io lock-deadlock    |
ends_of_episodes     | inside one process                 | main                    | lock-deadlock producer-died               |
killed_tools         | other end of a pipe                | server                  | blocked-io asyncio-stuck lock-deadlock    | main
graded_again         | mixed                              | label:grade             | producer-died straggler ray-pending       | trainer
scores_asked_back    | client, server, handler, engine    | server                  | blocked-io lock-deadlock                  |
replies_half_read    | a loop that starves                | main                    | blocked-io lock-deadlock                  |
forked_after_sums    | wait in a C extension              | simulator               | lock-deadlock blocked-io                  |
plugin_of_scorer     | inside one process                 | scorer                  | lock-deadlock                             |
logs_of_envs         | queue with a dead producer         | main                    | producer-died lock-deadlock blocked-io    |
probe_without_key    | client, server, handler, engine    | probe server            | blocked-io                                |
tools_closed_between | ring over a connection             | main agent              | blocked-io lock-deadlock                  |
checkpoint_of_first  | object collectives                 | rank0                   | collective-mismatch straggler             |
lent_by_generator    | inside one process                 | main                    | asyncio-stuck lock-deadlock               |
stopped_by_request   | client, server, handler, engine    | verifier                | blocked-io lock-deadlock                  |
engine_not_reaped    | polls for what nobody makes        | keeper main             | producer-died blocked-io lock-deadlock    |
cache_and_index      | semaphores across processes        | loader0 loader1         | lock-deadlock blocked-io                  |
flush_of_streamer    | concurrency groups of an actor     | main sampler            | ray-get-cycle ray-queued-call lock-deadlock blocked-io |
asked_within_limits  | inside one process                 | main                    | asyncio-stuck lock-deadlock producer-died |
tokens_of_stream     | inside one process                 | main                    | asyncio-stuck lock-deadlock               |
retried_for_ever     | polls for what nobody makes        | main rollout            | producer-died blocked-io lock-deadlock straggler |
tuned_while_stepping | inside one process                 | main                    | lock-deadlock                             |
weights_in_parts     | recv against collective            | rank2 rank0             | p2p-mismatch collective-mismatch          |
judge_behind_proxy   | client, server, handler, engine    | judge model             | blocked-io lock-deadlock                  |
slots_of_async_actor | concurrency groups of an actor     | sandboxes               | ray-queued-call asyncio-stuck lock-deadlock |
scorer_at_path       | client, server, handler, engine    | first main              | blocked-io lock-deadlock                  | scorer second
backoff_in_pool      | inside one process                 | main                    | lock-deadlock                             |
totals_of_client     | client, server, handler, engine    | judge                   | blocked-io asyncio-stuck lock-deadlock    |
barrier_in_finally   | barrier on the wrong group         | rank2                   | collective-mismatch                       |
followed_log         | coroutine, executor, child         | server tail             | blocked-io                                |
epoch_of_collector   | polls for what nobody makes        | collector main          | producer-died lock-deadlock ray-get-cycle straggler |
state_of_collector   | concurrency groups of an actor     | collector               | lock-deadlock producer-died               | main
health_before_weights| mixed                              | trainer engine1 engine2 | ray-get-cycle ray-queued-call collective-mismatch |
dispatched_to_some   | mixed                              | rank3 main              | collective-mismatch straggler             |
makers_of_driver     | a loop that starves                | main engine1            | asyncio-stuck producer-died engine-died rank-died |
groups_of_trials     | mixed                              | trial0 trial1 label:placement | ray-pending ray-get-cycle lock-deadlock   | main
paused_after_disk    | client, server, handler, engine    | engine main             | asyncio-stuck engine-paused ray-get-cycle |
pending_in_pool      | polls for what nobody makes        | main sandbox0 sandbox1  | producer-died rank-died lock-deadlock straggler |
dropped_as_stale     | ring over a connection             | rollouter trainer       | ray-get-cycle asyncio-stuck staleness-gate | samples main
engine_not_placed    | mixed                              | label:Engine evaluator main | ray-pending init-deadlock                 |
refused_update       | client, server, handler, engine    | engine                  | straggler collective-mismatch weight-sync-mismatch | trainer
errors_of_scorers    | inside one process                 | main                    | lock-deadlock producer-died               |
workers_made_again   | a dead child beside living ones    | main                    | lock-deadlock producer-died blocked-io    |
spawned_under_lock   | other end of a pipe                | main rollout            | lock-deadlock blocked-io                  |
films_of_episodes    | other end of a pipe                | environment film        | lock-deadlock blocked-io producer-died cleanup-deadlock |
session_after_fork   | ring over a connection             | main evaluator          | blocked-io lock-deadlock                  | server
two_at_one_port      | client, server, handler, engine    | former                  | blocked-io producer-died                  |
asked_to_end         | mixed                              | environment             | blocked-io lock-deadlock producer-died    |
connections_at_close | ring over a connection             | server dashboard        | asyncio-stuck lock-deadlock blocked-io    |
mutex_and_interpreter| wait in a C extension              | sampler                 | lock-deadlock gil-held                        |
jobs_of_broker       | ring over a connection             | main grader             | lock-deadlock blocked-io producer-died    | broker
loaders_of_replay    | ring over a connection             | main loader0 loader1    | dataloader-stuck lock-deadlock producer-died blocked-io |
fetched_by_first     | other end of a pipe                | fetcher rank0           | blocked-io straggler                      |
compiled_for_shapes  | semaphores across processes        | rank2                   | lock-deadlock blocked-io straggler        |
parts_of_upload      | client, server, handler, engine    | store writer            | blocked-io lock-deadlock                  |
permits_of_judge     | client, server, handler, engine    | judge                   | blocked-io lock-deadlock producer-died    |
shards_of_tokenizer  | semaphores across processes        | tokenizer               | lock-deadlock blocked-io                  |
moves_in_buffer      | ring over a connection             | environment2 main       | blocked-io lock-deadlock asyncio-stuck    |
starts_of_learning   | client, server, handler, engine    | buffer main             | blocked-io lock-deadlock producer-died    |
inflight_before_sync | polls for what nobody makes        | engine main             | asyncio-stuck producer-died blocked-io lock-deadlock|
compaction_of_replay | ring over a connection             | compactor writer0 writer1| blocked-io lock-deadlock                  |
judges_made_ready    | semaphores across processes        | main judge1 judge2      | blocked-io lock-deadlock producer-died    | judge0
served_after_load    | ring over a connection             | server rollout0 rollout1| blocked-io lock-deadlock                  |
kernels_of_device    | wait in a C extension              | main                    | lock-deadlock blocked-io straggler producer-died|
window_of_feedback   | ring over a connection             | users main | blocked-io lock-deadlock producer-died | collector0 collector1 collector2
graders_that_end     | inside one process                 | grader1                 | lock-deadlock cleanup-deadlock producer-died blocked-io|
reports_of_workers   | barrier on the wrong group | worker2 reports | straggler collective-mismatch asyncio-stuck producer-died lock-deadlock | main
engine_of_old_handle | mixed | engine0 trainer | asyncio-stuck engine-paused lock-deadlock producer-died weight-sync-mismatch |
groups_without_spread| polls for what nobody makes        | main                    | producer-died lock-deadlock straggler     |
streams_in_order     | ring over a connection | sampler0 sampler1 learner | ray-get-cycle lock-deadlock ray-queued-call asyncio-stuck | licences
store_while_loading  | concurrency groups of an actor | store engine | ray-get-cycle ray-queued-call asyncio-stuck lock-deadlock |
threads_of_driver    | inside one process                 | main                    | lock-deadlock producer-died               |
signal_of_evaluation | mixed                              | signal main             | asyncio-stuck producer-died lock-deadlock ray-get-cycle |
pushes_of_versions   | mixed | worker1 server | lock-deadlock producer-died straggler ray-get-cycle collective-mismatch |
sentinels_of_loaders | queue with a dead producer | loader2 learner main | producer-died lock-deadlock asyncio-stuck straggler |
tokens_of_rank       | mixed                              | rank0 judge             | ray-get-cycle ray-queued-call             |
ready_file_of_first  | object collectives | rank2 | collective-mismatch straggler producer-died lock-deadlock |
exchanges_in_batches | recv against collective | rank1 | p2p-mismatch collective-mismatch init-deadlock |
pairs_of_three       | two groups crossed | expert0 expert1 expert2 | collective-mismatch |
meetings_of_rollouts | barrier on the wrong group | member2 | collective-mismatch |
inputs_of_core       | client, server, handler, engine | core | lock-deadlock producer-died blocked-io |
pools_ask_in_turn    | pool inside pool | main | lock-deadlock |
stop_behind_run      | concurrency groups of an actor | rollout | ray-queued-call ray-get-cycle lock-deadlock |
readers_of_errors    | threads of a loop used up | main | asyncio-stuck lock-deadlock blocked-io |
lock_of_killed_worker| semaphores across processes | worker0 worker1 worker2 | lock-deadlock |
thread_of_maker_ended| queue with a dead producer | maker | producer-died lock-deadlock |
experts_exchanged | two groups crossed | rank3 | collective-mismatch | rank2
loop_of_tools | inside one process | main | asyncio-stuck lock-deadlock producer-died |
sessions_kept_alive | client, server, handler, engine | server | blocked-io lock-deadlock asyncio-stuck | agent0 agent1
limited_batches | inside one process | main | lock-deadlock producer-died |
barrier_tried_again | barrier on the wrong group | environment2 | lock-deadlock producer-died straggler blocked-io | main
tallied_by_callback | inside one process | grader | lock-deadlock |
rounds_of_agents | a loop that starves | main | asyncio-stuck lock-deadlock |
scores_from_anyone | recv against collective | rank2 rank0 | p2p-mismatch collective-mismatch | rank1
rank_frozen_by_container | mixed | rank1 | process-stopped |
threads_of_rank_cross | two groups crossed | rank1 | collective-mismatch |
greenlets_of_envs | client, server, handler, engine | simulator | blocked-io |
metrics_to_wandb | mixed | service | process-stopped |
sessions_on_uvloop | a loop that starves | main | asyncio-stuck lock-deadlock producer-died |
asked_to_come_later | mixed | rollout | blocked-io straggler lock-deadlock producer-died |
news_of_folder | polls for what nobody makes | evaluator | blocked-io lock-deadlock producer-died | main
places_of_meeting | concurrency groups of an actor | meeting | ray-queued-call lock-deadlock |
cancelled_plays | a loop that starves | rollout2 | asyncio-stuck lock-deadlock |
download_by_first | client, server, handler, engine | store | blocked-io straggler |
timer_of_pacer | other end of a pipe | pacer | blocked-io lock-deadlock producer-died | main
folder_made_again | polls for what nobody makes | evaluator | blocked-io lock-deadlock producer-died | main
tool_in_background | other end of a pipe | tool | process-stopped |
ends_by_descriptor | other end of a pipe | worker0 | blocked-io lock-deadlock producer-died |
stopped_by_guard | semaphores across processes | rollout1 | process-stopped lock-deadlock | guard
terminal_not_read | other end of a pipe | main simulator | blocked-io lock-deadlock |
messages_by_type | ring over a connection | main judge | blocked-io lock-deadlock producer-died |
beats_of_ranks | polls for what nobody makes | monitor rank1 | asyncio-stuck lock-deadlock producer-died |
served_by_rank | mixed | rank0 rank2 | blocked-io collective-mismatch lock-deadlock straggler | rank1
compiler_asks | mixed | compiler rank0 | blocked-io straggler lock-deadlock | main
file_of_version | polls for what nobody makes | engine | blocked-io lock-deadlock producer-died | main
tasks_of_head | ring over a connection | main worker1 | blocked-io lock-deadlock | worker0 worker2
condition_under_lock | inside one process | main | lock-deadlock producer-died |
acknowledged_samples | concurrency groups of an actor | learner sampler | ray-get-cycle ray-queued-call | main
meeting_of_pool | a dead child beside living ones | main late | lock-deadlock producer-died |
tail_of_scores | queue with a dead producer | scorer | producer-died blocked-io | main tail
scorer_asks_itself | client, server, handler, engine | scorer | blocked-io lock-deadlock | port
callback_of_pool | pool inside pool | main | lock-deadlock |
lines_of_shell | ring over a connection | main shell | blocked-io lock-deadlock |
programs_of_xargs | other end of a pipe | check | blocked-io lock-deadlock straggler | main
ranges_of_replay | ring over a connection | sampler learner | blocked-io lock-deadlock | main
posts_of_kernel | ring over a connection | rollout judge | blocked-io lock-deadlock producer-died | main
count_of_samples | a dead child beside living ones | sampler1 main | producer-died lock-deadlock blocked-io |
children_of_server | ring over a connection | server child0 child1 rollout0 rollout1 | blocked-io lock-deadlock | main
prompts_of_pool | inside one process | prompts | blocked-io | main
calls_of_torch | pool inside pool | trainer server | lock-deadlock blocked-io straggler |
ranks_checked_in | barrier on the wrong group | rank0 | collective-mismatch p2p-mismatch |
log_to_collector | client, server, handler, engine | collector | blocked-io lock-deadlock | rollout
pool_of_ray | client, server, handler, engine | judge | blocked-io | main
lock_at_broker | semaphores across processes | rollout2 main | producer-died lock-deadlock | broker
waves_of_cores | ring over a connection | main core0 core1 | lock-deadlock blocked-io collective-mismatch straggler |
semaphores_of_system | semaphores across processes | worker0 worker1 worker2 worker3 | lock-deadlock producer-died blocked-io | main
stopped_after_enough | a loop that starves | main | asyncio-stuck lock-deadlock producer-died |
turns_over_socket | ring over a connection | environment agent | blocked-io lock-deadlock asyncio-stuck | main
lists_of_manager | polls for what nobody makes | rollout1 | blocked-io lock-deadlock straggler | main
versions_long_polled | polls for what nobody makes | main engine | lock-deadlock producer-died blocked-io weight-sync-mismatch |
lock_around_generator | pool inside pool | main | lock-deadlock |
permits_by_name | semaphores across processes | worker1 | blocked-io | main
weights_by_store | mixed | engine rank0 rank1 | lock-deadlock collective-mismatch blocked-io straggler weight-sync-mismatch |
forwards_of_shards | two groups crossed | rank1 | collective-mismatch straggler |
samples_for_learner | queue with a dead producer | learner label:Learner | producer-died rank-died engine-died lock-deadlock |
left_by_feeder | queue with a dead producer | player main | lock-deadlock producer-died blocked-io | host
threads_before_fork | pool inside pool | scorer | lock-deadlock producer-died |
collected_by_stream | client, server, handler, engine | main | lock-deadlock producer-died blocked-io asyncio-stuck |
tasks_in_bundle | mixed | trainer label:score | ray-pending ray-get-cycle | main
forgotten_plays | a loop that starves | collector | asyncio-stuck producer-died lock-deadlock |
buffer_in_loop | a loop that starves | rollout | event-loop-blocked lock-deadlock asyncio-stuck |
graders_exchanged | semaphores across processes | grader0 grader1 grader2 main | lock-deadlock producer-died blocked-io |
lines_of_ranks | other end of a pipe | main archiver shipper | lock-deadlock blocked-io | rank0 rank1 rank2
workers_behind_port | a dead child beside living ones | master | blocked-io producer-died lock-deadlock rank-died |
service_of_metrics | mixed | rank0 service | producer-died lock-deadlock blocked-io straggler asyncio-stuck |
answers_of_engine | other end of a pipe | server engine label:engine | engine-died producer-died rank-died lock-deadlock blocked-io |
cancel_not_heeded | a loop that starves | main tools | asyncio-stuck lock-deadlock |
scores_in_pairs | ring over a connection | main scorer | lock-deadlock blocked-io producer-died |
arbiter_of_workers | client, server, handler, engine | worker0 worker1 | blocked-io lock-deadlock |
one_learner_left | queue with a dead producer | learner1 | blocked-io straggler lock-deadlock |
callbacks_of_refs | mixed | evaluator | blocked-io straggler |
answer_after_meeting | client, server, handler, engine | main engine | lock-deadlock blocked-io init-deadlock |
word_to_all | semaphores across processes | main | lock-deadlock producer-died |
ended_after_two | pool inside pool | main | lock-deadlock producer-died |
prepared_child | semaphores across processes | child main | lock-deadlock blocked-io |
kernels_of_sidecar | coroutine, executor, child | compiler | blocked-io lock-deadlock | main
wrapper_of_worker | mixed | wrapper label:Environment | blocked-io ray-pending | main
trial_in_thread | concurrency groups of an actor | trial | lock-deadlock producer-died cleanup-deadlock |
half_of_message | a dead child beside living ones | worker0 main | producer-died rank-died lock-deadlock blocked-io |
tasks_of_dead | a dead child beside living ones | worker0 main | producer-died rank-died lock-deadlock blocked-io |
stages_of_schedule | recv against collective | rank1 | p2p-mismatch collective-mismatch |
version_of_killed | a dead child beside living ones | trainer main | producer-died rank-died lock-deadlock blocked-io |
core_of_restarted | mixed | evaluator engine label:Engine | ray-pending ray-queued-call | main
reaped_by_other | polls for what nobody makes | main | producer-died lock-deadlock blocked-io |
critic_of_some | mixed | rank2 | collective-mismatch straggler |
saved_behind | coroutine, executor, child | rank1 | blocked-io straggler |
idle_grader_killed | semaphores across processes | main | producer-died lock-deadlock |
fetched_in_import | mixed | viewer label:tabulate | ray-pending | registry main
slots_in_files | other end of a pipe | tool | blocked-io lock-deadlock | main worker1
weights_of_last | mixed | engine2 | weight-sync-mismatch collective-mismatch straggler |
batches_of_stream | queue with a dead producer | trainer | producer-died lock-deadlock |
capacity_of_workers | polls for what nobody makes | worker0 main | staleness-gate asyncio-stuck lock-deadlock blocked-io producer-died |
raced_prompts | a loop that starves | main | asyncio-stuck lock-deadlock |
tools_over_stdin | inside one process | part server | lock-deadlock blocked-io producer-died |
captured_output | inside one process | main | lock-deadlock event-loop-blocked asyncio-stuck |
signal_of_lock | semaphores across processes | broker rollout1 | lock-deadlock producer-died blocked-io | main rollout0
pop_before_push | ring over a connection | main broker | lock-deadlock asyncio-stuck blocked-io producer-died |
pool_of_connections | ring over a connection | main broker | lock-deadlock blocked-io producer-died |
verified_in_time | pool inside pool | verifier0 verifier1 | blocked-io lock-deadlock |
answers_by_events | a loop that starves | main | asyncio-stuck producer-died lock-deadlock |
wakeups_not_read | inside one process | main | lock-deadlock blocked-io asyncio-stuck cleanup-deadlock |
group_over_http | mixed | main engine | init-deadlock lock-deadlock blocked-io weight-sync-mismatch |
store_in_transaction | inside one process | main | lock-deadlock asyncio-stuck blocked-io |
cache_locked_twice | inside one process | main | lock-deadlock asyncio-stuck blocked-io |
heartbeat_in_group | a loop that starves | main | asyncio-stuck lock-deadlock producer-died |
versions_published | client, server, handler, engine | main | blocked-io straggler |
streams_kept_open | a loop that starves | main | asyncio-stuck lock-deadlock |
clones_of_stream | a loop that starves | main | asyncio-stuck lock-deadlock producer-died |
tokens_of_limiter | threads of a loop used up | main | asyncio-stuck lock-deadlock |
deaf_environment | ring over a connection | environment main | lock-deadlock blocked-io cleanup-deadlock |
left_before_word | barrier on the wrong group | trainer evaluator | lock-deadlock blocked-io straggler collective-mismatch producer-died | main
actions_and_frames | ring over a connection | main simulator | asyncio-stuck lock-deadlock blocked-io |
tokens_half_read | ring over a connection | main engine | asyncio-stuck lock-deadlock blocked-io |
packages_of_task | mixed | fetch label:score | blocked-io ray-pending | main
timer_of_batch | inside one process | judge | blocked-io lock-deadlock producer-died asyncio-stuck |
length_of_body | ring over a connection | agent1 server | lock-deadlock blocked-io | main
ready_when_there | polls for what nobody makes | main label:judge | producer-died lock-deadlock blocked-io |
norms_of_shards | two groups crossed | rank1 | collective-mismatch straggler |
turn_of_condition | a loop that starves | main | asyncio-stuck lock-deadlock producer-died |
asked_within_scope | client, server, handler, engine | judge | asyncio-stuck blocked-io lock-deadlock |
long_prompts | coroutine, executor, child | tool | blocked-io lock-deadlock | main
texts_by_forkserver | pool inside pool | cutter | blocked-io lock-deadlock |
prompt_of_tool | ring over a connection | main tool | blocked-io lock-deadlock asyncio-stuck |
first_batch_of_epoch | ring over a connection | main loader0 loader1 | dataloader-stuck lock-deadlock |
stream_put_aside | mixed | main sampler learner | ray-queued-call ray-get-cycle lock-deadlock producer-died |
orders_of_dispatch | two groups crossed | rank0 rank1 rank2 | collective-mismatch | main
weights_by_ray_group | mixed | engine1 | blocked-io straggler | main
left_by_rpc | barrier on the wrong group | judge1 | lock-deadlock producer-died straggler | main
monitored_by_first | other end of a pipe | archive | lock-deadlock producer-died blocked-io straggler |
capacity_of_failed | inside one process | main | asyncio-stuck producer-died lock-deadlock staleness-gate |
spans_of_rollout | a loop that starves | store | asyncio-stuck lock-deadlock | main
tokens_by_zmq | client, server, handler, engine | detokenizer | lock-deadlock producer-died |
prefetched_past_end | inside one process | main | lock-deadlock producer-died |
gateway_and_tools | client, server, handler, engine | gateway tools | lock-deadlock asyncio-stuck blocked-io |
weights_under_file_lock | ring over a connection | main engine0 engine1 | lock-deadlock blocked-io weight-sync-mismatch |
shards_of_loaders | mixed | rank0 rank1 loader0 loader1 | lock-deadlock blocked-io collective-mismatch straggler dataloader-stuck |
register_of_ranks | polls for what nobody makes | devices | lock-deadlock producer-died blocked-io |
callbacks_over_http | polls for what nobody makes | main | lock-deadlock producer-died |
asleep_before_answer | a loop that starves | main replica1 | asyncio-stuck engine-paused ray-get-cycle lock-deadlock |
requests_broadcast | other end of a pipe | detokenizer | blocked-io |
queue_of_dataset | queue with a dead producer | main loader | producer-died dataloader-stuck lock-deadlock blocked-io |
folders_of_sandboxes | client, server, handler, engine | server | lock-deadlock producer-died blocked-io |
cores_at_barrier | wait in a C extension | core2 | blocked-io straggler |
dispatcher_of_gateway | queue with a dead producer | gateway | asyncio-stuck producer-died |
acks_of_buckets | ring over a connection | main engine1 | lock-deadlock producer-died collective-mismatch weight-sync-mismatch blocked-io | engine0
evaluator_in_fork | pool inside pool | worker1 child | lock-deadlock blocked-io |
queue_under_semaphore | a loop that starves | main player | ray-get-cycle asyncio-stuck lock-deadlock blocked-io |
finished_of_daemon | polls for what nobody makes | main | producer-died asyncio-stuck lock-deadlock |
decoded_output | queue with a dead producer | main | producer-died lock-deadlock blocked-io | trainer
samples_pushed | client, server, handler, engine | player1 | blocked-io straggler |
asked_by_router | client, server, handler, engine | judge checker | blocked-io | main
stages_of_threads | queue with a dead producer | main | producer-died lock-deadlock |
stopped_behind_gateway | client, server, handler, engine | engine | process-stopped |
loops_of_two_threads | inside one process | main | asyncio-stuck lock-deadlock |
pool_blocks | inside one process | main | lock-deadlock |
lock_kept_by_tool | semaphores across processes | tool | blocked-io lock-deadlock | worker0
ready_line_buffered | ring over a connection | main engine | lock-deadlock blocked-io |
wrapped_anew         | mixed                              | rank2                   | straggler lock-deadlock collective-mismatch |
group_of_actors      | mixed                              | member1                 | straggler lock-deadlock collective-mismatch |
group_in_evaluator | mixed | evaluator trainer label:placement | ray-pending ray-get-cycle lock-deadlock | main
matches_in_order | ring over a connection | main player0 table | ray-get-cycle asyncio-stuck lock-deadlock ray-queued-call |
graders_not_pushed | polls for what nobody makes | main | producer-died lock-deadlock |
quorum_of_rollouts | ring over a connection | main rollout2 rollout3 weights | ray-get-cycle asyncio-stuck lock-deadlock staleness-gate |
world_of_four | identity of groups | label:world/3 | init-deadlock rank-died straggler |
more_than_fits | ring over a connection | main rollout | ray-get-cycle lock-deadlock asyncio-stuck ray-queued-call |
watchers_of_registry | threads of a loop used up | registry | lock-deadlock blocked-io producer-died asyncio-stuck | main
lock_over_await | a loop that starves | buffer | event-loop-blocked asyncio-stuck lock-deadlock |
asked_in_constructor | mixed | learner critic | ray-get-cycle ray-queued-call lock-deadlock | main
metrics_not_pickled | object collectives | rank2 | collective-mismatch |
zone_of_engine | mixed | label:Engine main | ray-pending |
answers_by_number | a loop that starves | main | asyncio-stuck lock-deadlock producer-died |
one_client_at_a_time | ring over a connection | server rollout0 rollout1 | lock-deadlock blocked-io | main
errors_of_engine | other end of a pipe | main engine | lock-deadlock blocked-io producer-died |
indices_ahead | inside one process | main | lock-deadlock producer-died dataloader-stuck |
abort_behind_generate | client, server, handler, engine | engine | lock-deadlock blocked-io | main
calls_before_barrier | ring over a connection | rank0 rank1 | lock-deadlock collective-mismatch blocked-io straggler |
cold_tokenizer | a loop that starves | tokenizer1 | asyncio-stuck producer-died lock-deadlock |
gathered_while_streamed | client, server, handler, engine | engine | blocked-io lock-deadlock |
nested_rpc_calls | threads of a loop used up | agent0 agent1 | lock-deadlock blocked-io |
batches_from_first | client, server, handler, engine | rank0 | blocked-io |
units_over_zmq | ring over a connection | store rollout0 rollout1 | lock-deadlock ray-get-cycle blocked-io |
opponents_by_thread | other end of a pipe | main | blocked-io |
scores_on_executor | coroutine, executor, child | rank1 | blocked-io |
answers_by_recv | recv against collective | rank1 | blocked-io straggler |
kv_of_other_engine | client, server, handler, engine | prefill | blocked-io |
drained_while_paused | polls for what nobody makes | main proxy engine | engine-paused asyncio-stuck lock-deadlock producer-died |
sampled_by_tool | ring over a connection | tools main | asyncio-stuck lock-deadlock blocked-io |
manager_in_thread | client, server, handler, engine | main | blocked-io |
answer_to_other_loop | inside one process | main | asyncio-stuck lock-deadlock producer-died |
pinged_under_lock | ring over a connection | rank0 monitor | lock-deadlock blocked-io | rank1
adapter_under_flock | client, server, handler, engine | main tokenizer engine | lock-deadlock blocked-io |
pulled_under_lock | ring over a connection | main engine | lock-deadlock blocked-io |
tokenized_for_others | pool inside pool | tokenizer | blocked-io | rank0
"""


@dataclasses.dataclass(frozen=True)
class Program:
    name: str
    kind: str
    who: tuple[str, ...]
    causes: tuple[str, ...]
    beside: tuple[str, ...]

    def is_told(self, report: Mapping[str, Any], marks: Mapping[str, int], healthy: bool) -> bool:
        """``marks``: the process of each mark."""
        verdict, findings = report.get("verdict") or {}, report.get("findings") or []
        if healthy:
            return verdict.get("state") in QUIET and all(f["certainty"] == "possible" for f in findings)
        if verdict.get("state") != "hang" or not findings or findings[0]["cause"] not in self.causes:
            return False
        named = findings[0]["who"]
        wrong = {pid for name, pid in marks.items() if name not in (*self.who, *self.beside)} - {marks.get(name) for name in self.who}
        return any(self._is_meant(one, marks) for one in named) and not any(one.get("pid") in wrong for one in named)

    def _is_meant(self, one: Mapping[str, Any], marks: Mapping[str, int]) -> bool:
        labels = [name.removeprefix("label:") for name in self.who if name.startswith("label:")]
        return one.get("pid") in {marks.get(name) for name in self.who} - {None} or any(text in str(one.get("label")) for text in labels)


PROGRAMS = {
    name: Program(name, kind, tuple(who.split()), tuple(causes.split()), tuple(beside.split()))
    for name, kind, who, causes, beside in ([cell.strip() for cell in line.split("|")] for line in TABLE.strip().splitlines())
}

MISSED = {
    "second_node_missing-hang": "a launcher in its rendezvous: that the other node's never comes no fact of this machine tells; only possible",
    "lock_left_behind-hang": "slow: who made the lock file is not recorded, and its maker may live outside of the job, as it does in the twin",
    "router_of_backends-hang": "a router that tries a dead server again after a pause: its coroutines only sleep: slow",
    "versions_asked_for-hang": "coroutines poll by short calls: possible, as an early call took half as long",
    "names_of_versions-hang": "slow: two look for each other's files, and a third, which goes round for ever, might make one",
    "stop_word_missing-hang": "a rank that generates without an end: slow, the rank is named as possible; its twin looks the same",
    "some_of_rollouts-hang": "possible: two idle rollouts may as well have left out the call that all wait for",
    "restarted_environment-hang": "slow, named as possible: an actor that was made anew stands in its constructor, and no other was ever slow there",
    "managed_generator-hang": "slow, named as possible: the child is no Python and wakes now and then; after a minute it is likely",
    "named_before_made-hang": "slow, named as possible: it asks again and again for an actor by its name, and who waits so long may be early",
    "flag_of_round-hang": "slow, only possible: all of the job wait for the follower, but a file may come from outside of the job",
    "module_instead_of_ddp-hang": "unknown, the rank is named as possible: three ranks in three calls; no count tells which two are one apart",
    "asked_within_limits-hang": "possible: a coroutine asks for five seconds at a time, and a request to its port might fill the queue",
    "logs_of_envs-hang": "its process is named, in a ring with one that sends lines: which thread gave the queue's room back so far is not recorded",
    "retried_for_ever-hang": "slow: its call runs for 9 s where such took 6 s, and the server may be started again, as it is in the twin",
    "pending_in_pool-hang": "possible for a minute: a driver sleeps between looks, its sandboxes are dead, and it may make others in their place",
    "groups_without_spread-hang": "a driver looks for answers while no call is under way: slow for a minute, its twin backs off and looks the same",
    "compiled_for_shapes-healthy": "a rank computes in one call of C: whether that ends nobody can tell; unknown, only possible",
    "shards_of_tokenizer-healthy": "the same of a worker of a pool",
    "inflight_before_sync-healthy": "the same of an engine's thread",
    "compaction_of_replay-healthy": "the same below a lock of a database",
    "judges_made_ready-healthy": "the same of the one whom others await at a barrier",
    "inflight_before_sync-hang": "a trainer asks every two seconds how many requests an engine still has: slow, as its pause outlasts the window",
    "served_after_load-hang": "two rollouts try to connect with growing pauses, and whom they try waits for them: slow, they pause",
    "kernels_of_device-hang": "a thread has dropped what the main thread waits for in C: possible, as a heartbeat beside it sleeps and might do it",
    "window_of_feedback-hang": "three collectors wait for clients, and who these are was not seen: unknown, only possible",
    "news_of_folder-hang": "unknown, named as possible: it waits for news of files, and who should write these is not recorded",
    "versions_long_polled-hang": "unknown, named as possible: an engine's questions are answered with nothing, each within a second",
    "heartbeat_in_group-hang": "unknown: it awaits the end of a coroutine that goes round for ever, as a service may do by design",
    "reaped_by_other-hang": "slow: it looks for the end of a child whose status a library took; a judge lives, and it may look for that one's end",
    "weights_of_last-hang": "unknown, both engines are named: which of them took a tensor less neither its stack nor its connections tell",
    "thread_of_maker_ended-hang": "slow, possible: the maker waits for a client too, and who that may be was not seen; its thread left no trace",
    "ready_when_there-hang": "unknown, only possible: gRPC tries a port again where nobody listens; a server may be started again, as in the twin",
    "ready_when_there-healthy": "unknown, only possible: a thread pauses before it starts the server again, and which one is awaited nothing tells",
    "first_batch_of_epoch-hang": "unknown, both loaders are named as possible: who should set the event of multiprocessing is not recorded",
    "capacity_of_failed-hang": "slow: a coroutine goes round, and whether a count that keeps it from work will change no fact tells",
    "finished_of_daemon-hang": "slow: a daemon looks each second, and runners ask each second: its twin looks the same but for one long pause",
    "samples_pushed-hang": "slow: whoever does not wait may send a sample, and a player that looks for a file does so by its clock",
    "graders_not_pushed-hang": "slow for a minute: a driver looks whether its pool of actors has a free one, and whether a thread gives one back",
    "world_of_four-hang": "unknown: the rank of four that was never started is named, only possible, as somebody may yet start it",
    "answers_by_number-hang": "a ring with its engine, which is idle, is named: whose message was lost the connection does not tell",
    "beats_of_ranks-hang.2": "slow: in a window of two seconds another call of the monitor may end the wait; the longer look that follows tells it",
    "cold_tokenizer-hang": "a ring of all three parts is told: which of them never began to read its messages no fact tells; its fellow does read",
    "drained_while_paused-hang": "slow: a proxy tries a refused request again and again, and its engine answers: no fact tells that none is taken",
    "lock_at_broker-hang": "slow: two ask again and again for a key of a broker, whose owner has died; the broker answers them",
}
"""What is not told yet, and why. Whoever is to blame is the first to be named there too, if only as *possible*."""
