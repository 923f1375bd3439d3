"""Marks by which chat templates begin and end a turn: what stands between two of them a model was asked, or said."""

from __future__ import annotations

BEGINS = (
    r"(?:<\|im_start\|>|<\|start_header_id\|>|<start_of_turn>|<\|(?:user|assistant|system|tool|observation)\|>|<[|｜](?:User|Assistant)[|｜]>|\[INST\]"
    r"|<(?:message|msg|turn) role=)"
)
ENDS = (
    r"(?:<\|im_end\|>|<\|eo[tm]_id\|>|<end_of_turn>|<\|end(?:oftext)?\|>|\[/INST\]|</(?:message|msg|turn)>|<\|assistant\|>|<[|｜]Assistant[|｜]>"
    r"|<｜end▁of▁sentence｜>)"
)
IN_BYTES = tuple(
    text.encode()
    for text in ("<|im_start", "<|start_header", "<start_of_turn>", "|user|>", "|assistant|>", "|system|>", "｜User｜", "|User|>", "[INST]", " role=")
)
"""One of them stands in nearly each line that begins a turn."""
