"""The codec's part of the training: waits for the first shards, trains, and checks what it saved."""
import argparse
import json
import time
from pathlib import Path

import numpy as np
import torch

from budget import Budget
from checkpoints import load_codec
from codec_layers import use_fast_kernels
from codec_trainer import JUDGED_FRAMES, PART, CodecTrainer, Settings
from inputs import InputError
from pcm import INT16_SCALE, SAMPLE_RATE
from shard_pool import ShardPool
from spectra import MultiScaleMelLoss
from stretch import Stretch
from teacher import DEFAULT_SPEAKER, Speaker, Teacher
from text import held_out_sentences

SEED = 0
POLL_SECONDS = 0.5
OTHER_SPEAKER = Speaker("slt", ratio=1.05, pitch=1.1, tilt=1.0)  # a speaker of the check
CHECKED_SENTENCES = 6

DEFAULT_CONFIG = {
    "sample_rate": SAMPLE_RATE,
    "encoder_dim": 16,
    "encoder_rates": [2, 4, 4, 6],
    "decoder_dim": 320,
    "decoder_rates": [6, 4, 4, 2],
    "latent_dim": 192,
    "encoder_transformer_layers": [0, 0, 0, 0],
    "decoder_transformer_layers": [0, 0, 0, 0],
    "n_codebooks": 5,
    "codebook_size": 512,
    "semantic_codebook_size": 512,
    "codebook_dim": 8,
    "downsample_factor": [2, 2],
    "q_layers": 2,
    "q_heads": 3,
    "q_head_dim": 64,
    "q_inter": 384,
    "q_window": 32,
    "q_block_size": 4096,
    "rope_base": 10000,
    "norm_eps": 1e-5,
    # Of the transformers inside encoder and decoder, of which there are none here:
    "head_dim": 64,
    "enc_block_size": 16384,
}


def add_codec_options(parser: argparse.ArgumentParser) -> None:
    """Options of the codec's part."""
    add = parser.add_argument_group("codec").add_argument
    add("--codec-seconds", type=float, default=850, help="of all stretches together (default: %(default)s)")
    add("--codec-steps", type=int, default=10**9, help="the schedule ends after so many of a stretch")
    add("--codec-lr", type=float, default=6e-4, help="peak learning rate (default: %(default)s)")
    add("--codec-batch", type=int, default=16, help="crops in a batch (default: %(default)s)")
    add(
        "--crop",
        type=int,
        default=33,
        help=f"frames of 48 ms in a crop, more than {JUDGED_FRAMES} (default: %(default)s)",
    )
    add(
        "--adversarial-from",
        type=float,
        default=0.28,
        help="progress, 0 to 1, from which the discriminators take part (default: %(default)s)",
    )
    add(
        "--codec-config",
        type=json.loads,
        default={},
        help="JSON object of values that differ from the built-in ones",
    )
    add(
        "--pool-hours",
        type=float,
        default=60,
        help="hold at most this much speech in memory (default: %(default)s)",
    )
    add(
        "--min-hours",
        type=float,
        default=4,
        help="begin when there is this much speech (default: %(default)s)",
    )


def _wait_for_speech(pool: ShardPool, options: argparse.Namespace, stretch: Stretch) -> None:
    """Returns when there are --min-hours; the teacher is at work on them."""
    while (hours := pool.refresh()) < options.min_hours:
        if stretch.seconds_left() <= 0:
            raise InputError(
                f"{hours:.2f} h of speech at the end of the stretch, --min-hours {options.min_hours:g}"
            )
        time.sleep(POLL_SECONDS)


@torch.no_grad()
def check(folder: Path, device: str) -> tuple[float, float]:
    """Reconstruction of held-out speech by the saved weights, for the default and another speaker.

    Mean absolute difference of log10 mels over the resolutions of the training loss.
    """
    torch.backends.cudnn.benchmark = False  # each sentence has a length of its own
    codec, teacher, mel_loss = load_codec(folder, device), Teacher(), MultiScaleMelLoss().to(device)
    speakers = (DEFAULT_SPEAKER, OTHER_SPEAKER)
    losses: dict[Speaker, list[float]] = {speaker: [] for speaker in speakers}
    for sentence in held_out_sentences()[:CHECKED_SENTENCES]:
        for speaker in speakers:
            samples, _ = teacher.speak(sentence, speaker)
            wave = torch.tensor(samples, device=device).float()[None, None] / INT16_SCALE
            decoded = codec.decode(codec.encode(wave))
            losses[speaker].append(mel_loss(decoded[:, 0], wave[:, 0]).item() / len(mel_loss.mels))
    return np.mean(losses[DEFAULT_SPEAKER]), np.mean(losses[OTHER_SPEAKER])


def _use_gpu_settings() -> None:
    torch.backends.cudnn.benchmark = True
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    use_fast_kernels()


def train_codec(options: argparse.Namespace, data: Path, stretch: Stretch, device: str) -> None:
    """Trains until the end of the stretch, or of the codec's schedule."""
    if device == "cuda" and not options.eager:
        _use_gpu_settings()
    torch.manual_seed(SEED + round(1e5 * stretch.progress(PART)))
    config = {**DEFAULT_CONFIG, **options.codec_config}
    (stretch.out / "codec_config.json").write_text(json.dumps(config, indent=1))
    settings = Settings(
        batch=options.codec_batch,
        crop_frames=options.crop,
        learning_rate=options.codec_lr,
        adversarial_from=options.adversarial_from,
        save_every=options.save_every,
        graphs=device == "cuda" and not options.eager,
    )
    trainer = CodecTrainer(config, device, settings)
    print("codec parameters %d, discriminators %d" % trainer.parameter_counts(), flush=True)
    pool = ShardPool(data, device, options.pool_hours)
    _wait_for_speech(pool, options, stretch)
    trainer.resume(stretch)
    start = stretch.progress(PART)
    print(f"codec from {start:.3f} on {pool.refresh():.1f} h", flush=True)
    trainer.begin(pool, start)
    budget = Budget(options.codec_seconds, stretch.deadline, options.codec_steps, start)
    progress = trainer.train(pool, budget, stretch)
    print(f"codec at {progress:.3f}", flush=True)
    if progress >= 1:
        print(
            "held-out log-mel L1: default speaker %.4f, another %.4f" % check(stretch.out, device), flush=True
        )
