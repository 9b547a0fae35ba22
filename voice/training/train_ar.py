"""Trains the DualAR model: encodes the teacher's shards with the codec, packs them into rows, and trains.

Writes model.safetensors, config.json, tokenizer.tiktoken and special_tokens.json: with the codec's files the
folder is a complete voice. Stops after a wall-clock budget.
"""
import argparse
import json
import time
from pathlib import Path
from typing import Any

import torch

from ar_trainer import ArTrainer, Settings, Stage
from budget import Budget
from checkpoints import load_weights
from codec_layers import use_fast_kernels, use_plain_kernels
from dual_ar import DualAR
from encoded_speech import EncodedSpeech, encode_shards, load_encoded
from inputs import run_tool
from prompt import PAD_ID, SEMANTIC_BEGIN, write_tokenizer
from rows import build_rows

SEED = 1
ROW_LENGTHS = (512, 1024)  # of the two stages
LATE_START = 0.45  # progress at which --init goes on: where the learning rate begins to fall
VOCABULARY_MULTIPLE = 64  # matrix products prefer such sizes

DEFAULT_CONFIG = {
    "model_type": "dual_ar",
    "vocab_size": None,  # follows from the codec, as do the two sizes of the codebooks
    "n_layer": 6,
    "n_head": 6,
    "n_local_heads": 2,
    "head_dim": 64,
    "dim": 320,
    "intermediate_size": 768,
    "rope_base": 10000,
    "norm_eps": 1e-6,
    "max_seq_len": 4096,
    "dropout": 0.0,
    "tie_word_embeddings": True,
    "attention_qkv_bias": False,
    "attention_o_bias": False,
    "attention_qk_norm": True,
    "codebook_size": None,
    "num_codebooks": None,
    "initializer_range": 0.02,
    "is_reward_model": False,
    "scale_codebook_embeddings": True,
    "use_gradient_checkpointing": False,
    "n_fast_layer": 2,
    "fast_dim": 192,
    "fast_n_head": 4,
    "fast_n_local_heads": 2,
    "fast_head_dim": 64,
    "fast_intermediate_size": 512,
    "fast_attention_qkv_bias": False,
    "fast_attention_qk_norm": False,
    "fast_attention_o_bias": False,
}


def model_config(codec_config: dict[str, Any], overrides: dict[str, Any]) -> dict[str, Any]:
    """The values of config.json for a codec."""
    size = codec_config["semantic_codebook_size"]
    tokens = SEMANTIC_BEGIN + size
    from_codec = {
        "vocab_size": -(-tokens // VOCABULARY_MULTIPLE) * VOCABULARY_MULTIPLE,
        "codebook_size": size,
        "num_codebooks": codec_config["n_codebooks"] + 1,
    }
    return {**DEFAULT_CONFIG, **from_codec, **overrides}


def _add_training_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--lr", type=float, default=2e-3, help="peak learning rate (default: %(default)s)")
    add("--tokens", type=int, default=65536, help="tokens in a batch (default: %(default)s)")
    add(
        "--fast-frames",
        type=int,
        default=16384,
        help="frames of a batch on which the fast model is trained (default: %(default)s)",
    )
    add(
        "--long-from",
        type=float,
        default=0.7,
        help="progress, 0 to 1, from which rows are 1024 instead of 512 tokens long (default: %(default)s)",
    )
    add(
        "--corrupt",
        type=float,
        default=0.08,
        help="share of input frames replaced, which falls to 40 %% of it (default: %(default)s)",
    )
    add("--optim", choices=("muon", "adamw"), default="muon", help="for the matrices of the blocks")
    add(
        "--config",
        type=json.loads,
        default={},
        help="JSON object of values that differ from the built-in config",
    )
    add("--init", type=Path, help="go on from these weights (model.safetensors), late in the schedule")
    add("--save-every", type=float, default=150, help="seconds between partial saves (default: %(default)s)")
    add("--eager", action="store_true", help="do not compile the model; slower, but easier to debug")


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--data", type=Path, required=True, help="folder with the shards of teacher.py")
    add("--codec", type=Path, required=True, help="folder with codec.safetensors and codec_config.json")
    add("--out", type=Path, required=True, help="folder for the model; made if missing")
    add(
        "--seconds",
        type=float,
        default=400,
        help="wall-clock budget, with start-up, encoding and compilation (default: %(default)s)",
    )
    add("--max-steps", type=int, default=10**9, help="stop, and end all schedules, after so many steps")
    add("--hours", type=float, default=1e9, help="use this much speech (default: all)")
    add("--cache", type=Path, help="file for the encoded speech: read if it exists, else written")
    add("--encode-only", action="store_true", help="stop when the speech is encoded (and in the cache)")
    _add_training_options(parser)
    return parser.parse_args()


def _encoded_speech(options: argparse.Namespace, device: str) -> EncodedSpeech:
    if options.cache and options.cache.exists():
        return load_encoded(options.cache)
    if device == "cuda":
        use_fast_kernels()
    speech = encode_shards(options.data, options.codec, device, options.hours)
    use_plain_kernels()
    if options.cache:
        speech.save(options.cache)
    return speech


def _build_stages(speech: EncodedSpeech, device: str, begun: float) -> tuple[Stage, Stage]:
    stages = []
    for seed, length in enumerate(ROW_LENGTHS):
        rows = build_rows(speech, length, seed)
        filled, supervised = (rows.tokens[..., 0] != PAD_ID).float().mean(), rows.supervised.float().mean()
        print(
            f"rows of {length}: {len(rows.tokens)}, filled {filled:.2f}, supervised {supervised:.2f},"
            f" {time.time() - begun:.0f}s",
            flush=True,
        )
        stages.append(Stage(length, rows.to(device)))
    return tuple(stages)


def _build_model(options: argparse.Namespace, codec_config: dict[str, Any], device: str) -> DualAR:
    """Also writes the files that describe the model."""
    config = model_config(codec_config, options.config)
    (options.out / "config.json").write_text(json.dumps(config, indent=1))
    write_tokenizer(options.out, config["codebook_size"])
    model = DualAR(config, SEMANTIC_BEGIN).to(device)
    if options.init:
        load_weights(model, options.init)
    print("DualAR parameters", sum(parameter.numel() for parameter in model.parameters()), flush=True)
    return model


def _settings(options: argparse.Namespace, device: str) -> Settings:
    return Settings(
        learning_rate=options.lr,
        tokens=options.tokens,
        fast_frames=options.fast_frames,
        long_from=options.long_from,
        corruption=options.corrupt,
        save_every=options.save_every,
        muon=options.optim == "muon",
        compiled=device == "cuda" and not options.eager,
    )


def main() -> None:
    options = _parse_options()
    begun = time.time()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(SEED)
    options.out.mkdir(parents=True, exist_ok=True)
    if device == "cuda":
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    speech = _encoded_speech(options, device)
    characters = sum(map(len, speech.texts)) / 1e6
    print(
        f"{len(speech.texts)} utterances, {speech.hours():.1f} h, {characters:.1f} M chars,"
        f" {time.time() - begun:.0f}s",
        flush=True,
    )
    if options.encode_only:
        return
    model = _build_model(options, speech.codec_config, device)
    stages = _build_stages(speech, device, begun)
    trainer = ArTrainer(model, stages, _settings(options, device))
    budget = Budget(options.seconds, options.max_steps, begun, LATE_START if options.init else 0.0)
    steps = trainer.train(budget, options.out)
    print(f"done {steps} steps, {budget.elapsed():.0f}s", flush=True)


if __name__ == "__main__":
    run_tool(main)
