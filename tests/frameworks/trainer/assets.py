"""A model of some thousand weights, a tokenizer of bytes and a few sums to practise: ``assets.py FOLDER [HIDDEN_SIZE POSITIONS]``.

Real engines want a hidden size of 128 (heads of 32); without that, the smallest that the trainer takes is made.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

SPECIAL = ["<pad>", "<eos>", "<unk>", "<|im_start|>", "<|im_end|>"]
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def make_model(folder: Path, hidden_size: int = 32, positions: int = 512) -> None:
    pieces = [*SPECIAL, *sorted(pre_tokenizers.ByteLevel.alphabet())]
    bytes_only = Tokenizer(models.BPE(vocab={piece: i for i, piece in enumerate(pieces)}, merges=[]))
    bytes_only.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    bytes_only.decoder = decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=bytes_only, pad_token="<pad>", eos_token="<|im_end|>", additional_special_tokens=["<|im_start|>", "<|im_end|>"]
    )
    tokenizer.chat_template = TEMPLATE
    tokenizer.save_pretrained(folder)
    config = Qwen2Config(
        vocab_size=320,
        hidden_size=hidden_size,
        intermediate_size=2 * hidden_size,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=positions,
        pad_token_id=0,
        eos_token_id=4,
        bos_token_id=3,
        tie_word_embeddings=False,
    )
    Qwen2ForCausalLM(config).save_pretrained(folder)


def make_prompts(file: Path, count: int) -> None:
    import pandas as pd  # engines' environments have none, and need no prompts

    rows = [
        {
            "data_source": "sums",
            "prompt": [{"role": "user", "content": f"{i} + 1 ="}],
            "ability": "math",
            "reward_model": {"style": "rule", "ground_truth": str(i + 1)},
            "extra_info": {"index": i, "split": "train"},
        }
        for i in range(count)
    ]
    pd.DataFrame(rows).to_parquet(file)


if __name__ == "__main__":
    target = Path(sys.argv[1])
    make_model(target / "model", *map(int, sys.argv[2:4]))
    if importlib.util.find_spec("pandas"):
        make_prompts(target / "train.parquet", 32)
        make_prompts(target / "val.parquet", 4)
