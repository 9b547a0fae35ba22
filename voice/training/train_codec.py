"""Trains the codec on the teacher's shards for a wall-clock budget.

Writes codec.safetensors and codec_config.json, then checks the saved weights on held-out sentences. May run
beside teacher.py: it waits for the first shards and picks up new ones.
"""
import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from budget import Budget
from checkpoints import load_codec
from codec_layers import use_fast_kernels
from codec_trainer import JUDGED_FRAMES, CodecTrainer, Settings
from inputs import InputError, run_tool
from pcm import INT16_SCALE, SAMPLE_RATE, save_wav, to_int16
from shard_pool import ShardPool
from spectra import MultiScaleMelLoss
from teacher import DEFAULT_SPEAKER, Speaker, Teacher
from text import held_out_sentences

SEED = 0
LATE_START = (
    0.6  # progress at which --init goes on: with discriminators, without restarts of codebook entries
)
POLL_SECONDS = 0.5
OTHER_SPEAKER = Speaker("slt", ratio=1.05, pitch=1.1, tilt=1.0)  # a speaker of the check
CHECKED_SENTENCES = 6
SAVED_SENTENCES = 2

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


def _add_training_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--lr", type=float, default=6e-4, help="peak learning rate (default: %(default)s)")
    add("--batch", type=int, default=16, help="crops in a batch (default: %(default)s)")
    add(
        "--crop",
        type=int,
        default=33,
        help=f"frames of 48 ms in a crop, more than {JUDGED_FRAMES} (default: %(default)s)",
    )
    add(
        "--adv-from",
        type=float,
        default=0.28,
        help="progress, 0 to 1, from which the discriminators take part (default: %(default)s)",
    )
    add(
        "--config",
        type=json.loads,
        default={},
        help="JSON object of values that differ from the built-in config",
    )
    add("--init", type=Path, help="go on from these weights (codec.safetensors), late in the schedule")
    add("--save-every", type=float, default=150, help="seconds between partial saves (default: %(default)s)")
    add("--eager", action="store_true", help="no CUDA graphs; slower, but easier to debug")


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--data", type=Path, required=True, help="folder with the shards of teacher.py")
    add(
        "--out",
        type=Path,
        required=True,
        help="folder for the codec and the check's WAV files; made if missing",
    )
    add(
        "--seconds",
        type=float,
        default=400,
        help="wall-clock budget, with start-up and the wait for shards (default: %(default)s)",
    )
    add("--max-steps", type=int, default=10**9, help="stop, and end all schedules, after so many steps")
    add(
        "--hours",
        type=float,
        default=30,
        help="hold at most this much speech in memory (default: %(default)s)",
    )
    add(
        "--min-hours",
        type=float,
        default=4,
        help="begin when there is this much speech (default: %(default)s)",
    )
    _add_training_options(parser)
    options = parser.parse_args()
    if options.crop <= JUDGED_FRAMES:
        parser.error(f"--crop must be more than {JUDGED_FRAMES}, the frames that the discriminators see")
    if options.hours < options.min_hours:
        parser.error(f"--hours {options.hours:g} is less than --min-hours {options.min_hours:g}")
    return options


def _wait_for_speech(pool: ShardPool, options: argparse.Namespace, begun: float) -> None:
    """Returns when there are --min-hours; teacher.py may be at work on them."""
    announced = False
    while (hours := pool.refresh()) < options.min_hours:
        wanted = f"{options.data} holds {hours:.2f} h of speech, --min-hours asks for {options.min_hours:g}"
        if time.time() - begun > options.seconds:
            raise InputError(f"{wanted}, and --seconds are over: make more with teacher.py")
        if not announced:
            print(f"{wanted}: waiting for teacher.py", flush=True)
            announced = True
        time.sleep(POLL_SECONDS)


@torch.no_grad()
def check(folder: Path, device: str) -> tuple[float, float]:
    """Reconstruction of held-out speech by the saved weights, for the default and another speaker.

    Mean absolute difference of log10 mels over the resolutions of the training loss. Writes some WAV files.
    """
    torch.backends.cudnn.benchmark = False  # each sentence has a length of its own
    codec, teacher, mel_loss = load_codec(folder, device), Teacher(), MultiScaleMelLoss().to(device)
    speakers = (DEFAULT_SPEAKER, OTHER_SPEAKER)
    losses: dict[Speaker, list[float]] = {speaker: [] for speaker in speakers}
    for i, sentence in enumerate(held_out_sentences()[:CHECKED_SENTENCES]):
        for speaker in speakers:
            samples, _ = teacher.speak(sentence, speaker)
            wave = torch.tensor(samples, device=device).float()[None, None] / INT16_SCALE
            decoded = codec.decode(codec.encode(wave))
            losses[speaker].append(mel_loss(decoded[:, 0], wave[:, 0]).item() / len(mel_loss.mels))
            if i < SAVED_SENTENCES:
                save_wav(folder / f"codec_{i}_{speaker.voice}.wav", to_int16(decoded[0, 0].float().cpu()))
                save_wav(folder / f"teacher_{i}_{speaker.voice}.wav", to_int16(wave[0, 0].cpu()))
    return np.mean(losses[DEFAULT_SPEAKER]), np.mean(losses[OTHER_SPEAKER])


def _use_gpu_settings() -> None:
    torch.backends.cudnn.benchmark = True
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    use_fast_kernels()


def _build_trainer(config: dict[str, Any], device: str, options: argparse.Namespace) -> CodecTrainer:
    torch.manual_seed(SEED)
    settings = Settings(
        batch=options.batch,
        crop_frames=options.crop,
        learning_rate=options.lr,
        adversarial_from=options.adv_from,
        save_every=options.save_every,
        graphs=device == "cuda" and not options.eager,
    )
    trainer = CodecTrainer(config, device, settings, options.init)
    codec, discriminators = trainer.parameter_counts()
    print("codec parameters", codec, "discriminators", discriminators, flush=True)
    return trainer


def main() -> None:
    options = _parse_options()
    begun = time.time()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    options.out.mkdir(parents=True, exist_ok=True)
    if device == "cuda":
        _use_gpu_settings()
    config = {**DEFAULT_CONFIG, **options.config}
    trainer = _build_trainer(config, device, options)
    pool = ShardPool(options.data, device, options.hours)
    _wait_for_speech(pool, options, begun)
    print(f"data ready {time.time() - begun:.0f}s, {pool.refresh():.1f} h", flush=True)
    trainer.begin(pool)
    print(f"first step ready {time.time() - begun:.0f}s", flush=True)
    budget = Budget(options.seconds, options.max_steps, begun, LATE_START if options.init else 0.0)
    steps = trainer.train(pool, budget, options.out)
    trainer.save(options.out / "codec.safetensors", {"format": "pt"})
    (options.out / "codec_config.json").write_text(json.dumps(config, indent=1))
    print("held-out log-mel L1: default speaker %.4f, another %.4f" % check(options.out, device), flush=True)
    print(f"done {steps} steps, {budget.elapsed():.0f}s", flush=True)


if __name__ == "__main__":
    run_tool(main)
