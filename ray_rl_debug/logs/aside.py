"""Lines at level error of what no run lives from: they say that something beside it does not work, is slow, or is not there yet."""

from __future__ import annotations

import re
from itertools import islice

from ray_rl_debug.logs.ends import GIVES_UP
from ray_rl_debug.logs.spotted import Spotted
from ray_rl_debug.logs.window import Window
from ray_rl_debug.logs.words import EXCEPTION, SMALL_TOOL
from ray_rl_debug.model.snapshot.log_book import LogWriter

_FAILS = r"(?:[Ff]ail(?:ed|ure|s)|[Uu]nable|[Cc]ould not|[Cc]annot|[Cc]an't|[Ee]rror(?:s)?)\b"
_TELLING = r"(?:send|push|export|report|collect|scrap|upload|flush|publish|emit|ingest|submit|writ|read|get|measur|sampl|quer|watch|gather|fetch)\w*"
_MEASURES = (
    r"(?:metrics?|telemetry|usage (?:stats|statistics|data)|statistics|(?:trace )?spans|analytics|power(?: limit| usage)?|energy|temperature"
    r"|fan speed|clock speed|gauges?|counters?)"
)
OF_MEASURING = re.compile(
    rf"\b{_FAILS}[^.:]{{0,40}}\b{_TELLING}\b[^.:]{{0,60}}\b{_MEASURES}\b|\b{_MEASURES}\b[^.:]{{0,40}}\b{_TELLING}\b[^.:]{{0,20}}\b{_FAILS}"
    rf"|\b{_FAILS} to (?:start|launch|create|set up|init\w*) (?:the )?(?:\w+ ){{0,2}}(?:profiler|metrics?|telemetry|monitoring|tensorboard)\b"
    r"|\b(?:[Cc]ollector|[Ee]xporter|[Ss]craper?) (?:\w+ )?failed\b|\bpowercap\b|\b[Ee]rror running check\b"
)
"""Who only measures or reports: an exporter, a monitoring agent, telemetry."""
OF_A_HELPER = re.compile(
    r"(?<![\w/.])(?!metrics[-_ ])[a-z][\w-]{1,40}[-_](?:exporter|hostengine|collector|sidecar|device-plugin|problem-detector)\b"
    r"|(?<![\w/.])(?:promtail|telegraf|fluent-?(?:bit|d)|filebeat|statsd|cadvisor)\b"
)
"""Names of services that only measure, report or hand out devices: a run goes on without them."""
OF_A_DESK = re.compile(
    r"\bsystem_bus_socket\b|\bD-?Bus\b|\bdconf\b|\b(?:PulseAudio|pulseaudio|ALSA|JACK)\b|\b[Ss]ound card|\b[Aa]udio (?:device|output|driver)"
    r"|\b[Cc]amera(?: \w+)? (?:index|by index)|\bvaapi\w*\b|\b[Ff]ont(?:config)?\b"
)
"""A part of a desktop that a machine in a rack does not have."""
SLOW = re.compile(
    r"\b(?:is|are|was|were) taking (?:a long time|longer|more|>|\d)"
    r"|\b(?:[Tt]ook|taken) (?:a long time|longer than|more than|> ?\d|\d+(?:\.\d+)? ?m?s\b)"
)
"""What takes long goes on."""
NOT_YET = re.compile(
    r"\b(?:is|are) (?:still )?(?:starting(?: up)?|booting|warming up|initializing|loading)(?:$|[.,;)])|\b[Nn]ot (?:ready|available|up) yet\b"
)
"""Who is asked too early answers later."""
_CLEARS = re.compile(
    rf"\b{_FAILS}(?: to| in| while| when| during)? "
    r"(?:delet|remov|stop|kill|clos|shut|terminat|disconnect|destroy|clean|unload|releas|(?:un|de)regist)\w*\b[^:]{0,80}"
    r"(?:: .{0,120})?\b(?:gone|dead|not found|[Nn]o such|already|(?:does not|doesn't) exist|not exist|unknown)\b"
)
"""Who clears something away that is not there any longer has what it wanted."""
_VALUE = re.compile(r"[\w ./-]{1,40}[:=] ?(?:\w{1,20})?[\[{(<].*[\]})>]$")
"""A name and the printed value of an object."""
_TROUBLE = re.compile(
    r"(?i:err|fail|\bnot?\b|exception|cannot|unable|invalid|fatal|abort|crash|kill|dead|die|lost|refus|den(?:y|ied)|timed? ?out|exceed|corrupt"
    r"|missing)"
)
"""With one of these words a printed value may tell of an error all the same."""


def aside(window: Window, one: Spotted) -> str | None:
    """Why a line at level error, which is no known error, ends no run; None where it may."""
    text = one.text
    if _is_of_a_helper(window, one):
        return "a service that only measures or reports said it"
    if not EXCEPTION.match(text) and not SMALL_TOOL.match(text) and _CLEARS.search(text):
        return "what it was to clear away was gone"
    if EXCEPTION.match(text):
        return None
    if OF_MEASURING.search(text):
        return "something is not measured or reported"  # whoever only measures gives up alone
    if GIVES_UP.search(text):
        return None
    if OF_A_DESK.search(text):
        return "a part of a desktop is not there"
    if SLOW.search(text):
        return "something takes long"
    if _VALUE.match(text) and not _TROUBLE.search(text):
        return "a value is printed"
    return "something is not there yet" if NOT_YET.search(text) else None


def _is_of_a_helper(window: Window, one: Spotted) -> bool:
    """Does the log of a program that marks no process name a helper, in this record or in the ones beside it?"""
    if one.head.level is None or one.head.writer != LogWriter():
        return False
    beside = (window.line_before(one.start), *islice(window.next_of(one.head.writer, one.end), 2))
    own = (h.text for h in beside if h.is_stamped and h.level is not None and h.writer == LogWriter())
    return any(OF_A_HELPER.search(text) for text in (one.text, *own))
