"""The sound format of the voice (16 kHz mono) and WAV output."""
import io
import wave
from pathlib import Path

import numpy as np

SAMPLE_RATE = 16000
FRAME_SAMPLES = 768  # one codec frame: the product of the codec's strides, 48 ms
LABEL_SAMPLES = FRAME_SAMPLES // 2  # one phone label: two labels a frame, 24 ms each
INT16_SCALE = 32768  # int16 sample values per unit of a float wave


def to_int16(samples: np.ndarray) -> np.ndarray:
    """Float samples in [-1, 1] (values outside are clipped) as int16, rounded towards zero."""
    return (np.clip(np.asarray(samples), -1, 1) * 32767).astype("<i2")


def wav_bytes(pcm: np.ndarray) -> bytes:
    """int16 samples as a 16-bit mono WAV file at SAMPLE_RATE."""
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(SAMPLE_RATE)
        file.writeframes(pcm.astype("<i2").tobytes())
    return buffer.getvalue()


def save_wav(path: Path, pcm: np.ndarray) -> None:
    """Writes int16 samples as such a file."""
    path.write_bytes(wav_bytes(pcm))
