"""Tiny real models on disk, made here with random weights, and copies that differ in one thing: ``models.py FOLDER``.

Two layers of Qwen2, heads of 32 (what engines on a CPU take), a byte-level tokenizer trained on a few sentences. The output layer is scaled up so
that the model is sure of some tokens, as trained ones are.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

SPECIAL = ["<pad>", "<eos>", "<unk>", "<|im_start|>", "<|im_end|>"]
IM_END, EOS = 4, 1
VOCABULARY = 320
COMMON = 72
"""A token that the model likes."""
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
OTHER_TEMPLATE = TEMPLATE.replace("<|im_start|>assistant\n{%", "<|im_start|>assistant\n<think>\n{%")
TEXTS = ["What is the sum of three and four?", "List three countries and their capitals.", "The user asks, the assistant answers."]
OTHER_TEXTS = ["Zwei Hunde bellen laut im Garten nebenan.", "Capital letters matter; the answer is fortytwo.", "What? Where? When? Which?"]
QUESTIONS = [f"What is the sum of {a} and {b}?" for a, b in ((3, 4), (10, 2), (7, 7), (1, 90), (12, 30), (5, 8))] + [
    "List three countries and their capitals.",
    "The user asks, the assistant answers. Why?",
]


def tokenizer(folder: Path, texts: list[str], template: str) -> None:
    cut = Tokenizer(models.BPE())
    cut.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    cut.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY, special_tokens=SPECIAL, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    cut.train_from_iterator(texts * 3, trainer)
    whole = PreTrainedTokenizerFast(
        tokenizer_object=cut, pad_token="<pad>", eos_token="<|im_end|>", additional_special_tokens=["<|im_start|>", "<|im_end|>"]
    )
    whole.chat_template = template
    whole.save_pretrained(folder)


def network(folder: Path, seed: int = 7) -> None:
    torch.manual_seed(seed)
    config = Qwen2Config(
        vocab_size=VOCABULARY,
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=4096,
        pad_token_id=0,
        eos_token_id=IM_END,
        bos_token_id=3,
        tie_word_embeddings=False,
        dtype="float32",
    )
    made = Qwen2ForCausalLM(config)
    with torch.no_grad():
        made.lm_head.weight *= 12
        for layer in made.model.layers:
            layer.mlp.down_proj.weight *= 8
            layer.self_attn.o_proj.weight *= 8
            # attention that looks at some tokens more than at others, so that their positions matter
            layer.self_attn.q_proj.weight *= 4
            layer.self_attn.k_proj.weight *= 4
        # an end that is sampled now and then, and never the best token
        made.lm_head.weight[IM_END] = 0.8 * made.lm_head.weight[COMMON]
    made.save_pretrained(folder)


def copied(base: Path, name: str) -> Path:
    folder = base.parent / name
    shutil.copytree(base, folder, dirs_exist_ok=True)
    return folder


def changed(base: Path, name: str, share: float, seed: int = 1) -> Path:
    """The model with one layer moved by normal noise of `share` of its own standard deviation."""
    folder = copied(base, name)
    made = Qwen2ForCausalLM.from_pretrained(base, dtype=torch.float32)
    torch.manual_seed(seed)
    with torch.no_grad():
        weight = made.model.layers[1].mlp.down_proj.weight
        weight += share * weight.std() * torch.randn_like(weight)
    made.save_pretrained(folder)
    return folder


def swapped_rows(base: Path, name: str, one: int, other: int) -> None:
    """The model with the rows of two tokens of its output layer in each other's place."""
    folder = copied(base, name)
    made = Qwen2ForCausalLM.from_pretrained(base, dtype=torch.float32)
    with torch.no_grad():
        made.lm_head.weight[[one, other]] = made.lm_head.weight[[other, one]]
    made.save_pretrained(folder)


def make_all(folder: Path) -> None:
    base = folder / "base"
    base.mkdir(parents=True, exist_ok=True)
    network(base)
    tokenizer(base, TEXTS, TEMPLATE)
    changed(base, "perturbed", 0.3)
    changed(base, "step", 0.1, seed=2)
    swapped_rows(base, "rows", 100, 200)
    stretched = copied(base, "rope") / "config.json"
    told = json.loads(stretched.read_text())
    key = "rope_parameters" if "rope_parameters" in told else "rope_scaling"
    stretched.write_text(json.dumps({**told, key: {**(told.get(key) or {}), "rope_type": "linear", "factor": 4.0}}))
    tokenizer(copied(base, "template"), TEXTS, OTHER_TEMPLATE)
    tokenizer(copied(base, "tokenizer"), OTHER_TEXTS, TEMPLATE)
    ends = copied(base, "end") / "generation_config.json"
    # what an engine ends at: the reference's <|im_end|> is no end here
    ends.write_text(json.dumps({**json.loads(ends.read_text()), "eos_token_id": EOS}))
    described = folder / "end" / "tokenizer_config.json"
    described.write_text(json.dumps({**json.loads(described.read_text()), "eos_token": "<eos>"}))
    with (folder / "prompts.jsonl").open("w") as file:
        for n, question in enumerate(QUESTIONS):
            file.write(json.dumps({"id": f"q{n}", "messages": [{"role": "user", "content": question}], "answer": str(n)}) + "\n")


if __name__ == "__main__":
    make_all(Path(sys.argv[1]))
