"""The token ids of the voice, its tokenizer files, and prompts.

The tokenizer knows bytes (ids 0 to 255), the special tokens, and one token for each semantic code.
"""
import base64
import json
from collections.abc import Sequence
from pathlib import Path

import torch

BYTES = 256
SPECIAL_TOKENS = [
    "<|begin_of_text|>",
    "<|end_of_text|>",
    "<|pad|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|phoneme_start|>",
    "<|phoneme_end|>",
    "<|tool_call_start|>",
    "<|tool_call_end|>",
    "<|text|>",
    "<|voice|>",
    "<|interleave|>",
    "<|audio_start|>",
    "<|audio_end|>",
    "<|audio|>",
]
SPECIAL_IDS = {token: BYTES + i for i, token in enumerate(SPECIAL_TOKENS)}
SEMANTIC_BEGIN = BYTES + len(SPECIAL_TOKENS)
START_ID = SPECIAL_IDS["<|interleave|>"]
END_ID = SPECIAL_IDS["<|im_end|>"]
PAD_ID = SPECIAL_IDS["<|pad|>"]
SPEAKER_TAG = list(b"<|speaker:0|>")  # plain text to this byte-level tokenizer, as to the one of S1-mini


def write_tokenizer(folder: Path, codebook_size: int) -> None:
    """Writes tokenizer.tiktoken and special_tokens.json."""
    lines = [f"{base64.b64encode(bytes([byte])).decode()} {byte}\n" for byte in range(BYTES)]
    (folder / "tokenizer.tiktoken").write_text("".join(lines))
    semantic = {f"<|semantic:{code}|>": SEMANTIC_BEGIN + code for code in range(codebook_size)}
    (folder / "special_tokens.json").write_text(json.dumps({**SPECIAL_IDS, **semantic}, indent=1))


def _text_rows(ids: Sequence[int], codebooks: int) -> list[list[int]]:
    return [[token] + [0] * codebooks for token in ids]


def build_prompt(
    text: str, codebooks: int, references: Sequence[tuple[str, torch.Tensor]] = ()
) -> torch.Tensor:
    """Token rows [T, 1+K]: <|interleave|> (speaker text codes <|im_end|>)* speaker text.

    references: texts and codes [frames, K] of the voice to follow; none = the default speaker.
    """
    rows = _text_rows([START_ID], codebooks)
    for reference_text, codes in references:
        rows += _text_rows(SPEAKER_TAG + list(reference_text.encode()), codebooks)
        rows += [[SEMANTIC_BEGIN + int(frame[0])] + [int(code) for code in frame] for frame in codes]
        rows += _text_rows([END_ID], codebooks)
    rows += _text_rows(SPEAKER_TAG + list(text.encode()), codebooks)
    return torch.tensor(rows)
