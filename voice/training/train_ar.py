"""The DualAR model's part of the training: encodes the shards with the finished codec, and trains."""
import argparse
import hashlib
import json
import time
from pathlib import Path
from typing import Any

import torch

import codec_trainer
from ar_trainer import PART, ROW_LENGTHS, ArTrainer, Settings
from budget import Budget
from checkpoints import load_codec
from codec_layers import use_fast_kernels
from dual_ar import DualAR
from inputs import InputError
from prompt import SEMANTIC_BEGIN, write_tokenizer
from row_pool import RowPool
from stretch import Stretch

SEED = 1
CATCH_UP_SECONDS = 20.0  # of encoding, after the functions are compiled
ROWS_FILE = "rows.pt"  # of a stretch that does not finish
VOCABULARY_MULTIPLE = 64  # matrix products prefer such sizes
# Beside the weights, for the engine.
GENERATION_DEFAULTS = {
    "normalize": True,
    "temperature": 0.7,
    "top_p": 0.7,
    "repetition_penalty": 1.1,
    "languages": ["en"],
}

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


def add_ar_options(parser: argparse.ArgumentParser) -> None:
    """Options of the DualAR model's part."""
    add = parser.add_argument_group("DualAR model").add_argument
    add("--ar-seconds", type=float, default=300, help="of all stretches together (default: %(default)s)")
    add("--ar-steps", type=int, default=10**9, help="the schedule ends after so many of a stretch")
    add(
        "--max-passes",
        type=float,
        default=15,
        help="the schedule ends after so many over the rows: more overfit (default: %(default)s)",
    )
    add("--ar-lr", type=float, default=2e-3, help="peak learning rate (default: %(default)s)")
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
        "--ar-config",
        type=json.loads,
        default={},
        help="JSON object of values that differ from the built-in ones",
    )


def _codec_hash(stretch: Stretch) -> str:
    return hashlib.sha256((stretch.out / codec_trainer.WEIGHTS_FILE).read_bytes()).hexdigest()


def _rows(options: argparse.Namespace, data: Path, stretch: Stretch, device: str) -> RowPool:
    """Those of all shards that are there."""
    begun = time.time()
    if device == "cuda" and not options.eager:
        use_fast_kernels()
    torch.backends.cudnn.benchmark = False  # batches of many shapes
    rows = RowPool(data, load_codec(stretch.out, device), ROW_LENGTHS, device)
    rows.load(stretch.work / ROWS_FILE, _codec_hash(stretch))
    while rows.refresh(seconds=5) and stretch.seconds_left() > 0:
        pass
    if not all(rows.tokens(length) for length in ROW_LENGTHS):
        raise InputError(f"{data}: the speech fills no rows; make more shards")
    filled = rows.tokens(ROW_LENGTHS[0]) / rows.rows(ROW_LENGTHS[0]).tokens[..., 0].numel()
    print(
        f"{rows.hours:.1f} h encoded in {time.time() - begun:.0f}s, rows filled to {filled:.2f}", flush=True
    )
    return rows


def _write_configs(options: argparse.Namespace, out: Path) -> dict[str, Any]:
    codec_config = json.loads((out / "codec_config.json").read_text())
    config = model_config(codec_config, options.ar_config)
    (out / "config.json").write_text(json.dumps(config, indent=1))
    (out / "generation_config.json").write_text(json.dumps(GENERATION_DEFAULTS, indent=1))
    write_tokenizer(out, config["codebook_size"])
    return config


def train_ar(options: argparse.Namespace, data: Path, stretch: Stretch, device: str) -> None:
    """Trains until the end of the stretch, or of the model's schedule."""
    torch.manual_seed(SEED + round(1e5 * stretch.progress(PART)))
    if device == "cuda":
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    rows = _rows(options, data, stretch, device)
    model = DualAR(_write_configs(options, stretch.out), SEMANTIC_BEGIN).to(device)
    print("DualAR parameters", sum(parameter.numel() for parameter in model.parameters()), flush=True)
    settings = Settings(
        learning_rate=options.ar_lr,
        tokens=options.tokens,
        fast_frames=options.fast_frames,
        long_from=options.long_from,
        max_passes=options.max_passes,
        corruption=options.corrupt,
        save_every=options.save_every,
        muon=options.optim == "muon",
        compiled=device == "cuda" and not options.eager,
    )
    trainer = ArTrainer(model, rows, settings)
    trainer.resume(stretch)
    trainer.compile()
    rows.refresh(CATCH_UP_SECONDS)  # speech that came meanwhile
    start = stretch.progress(PART)
    print(f"DualAR from {start:.3f}", flush=True)
    budget = Budget(options.ar_seconds, stretch.deadline, options.ar_steps, start)
    progress = trainer.train(budget, stretch)
    print(f"DualAR at {progress:.3f}", flush=True)
    if progress < 1:
        rows.save(stretch.work / ROWS_FILE, _codec_hash(stretch))
