"""The DualAR model's training rows, which grow while it trains: shards are encoded as they appear."""
import time
from pathlib import Path

import torch

from codec import Codec
from encoded_speech import EncodedSpeech, encode_shard
from prompt import PAD_ID
from rows import Rows, build_rows
from shards import list_shards, read_shard, shard_index
from stretch import replace_file

HELD_OUT_SHARDS = 1  # the first ones: measured, never trained on
PACK_HOURS = 2.0  # shards that are packed into rows together: more fill the rows better


def _joined(parts: list[Rows]) -> Rows:
    return Rows(torch.cat([part.tokens for part in parts]), torch.cat([part.supervised for part in parts]))


class RowPool:
    """Rows of several lengths of all shards so far, on the device."""

    def __init__(self, data: Path, codec: Codec, lengths: tuple[int, ...], device: str):
        self._data, self._codec, self._lengths, self._device = data, codec, lengths, device
        self._seen: set[Path] = set()
        self._rows: dict[int, Rows] = {}
        self._held_out: dict[int, Rows] = {}
        self.hours = 0.0  # encoded, the held-out shards included

    def rows(self, length: int) -> Rows:
        """For training."""
        return self._rows[length]

    def held_out(self, length: int) -> Rows | None:
        """Of shards that are not trained on."""
        return self._held_out.get(length)

    def tokens(self, length: int) -> int:
        """In the training rows, without padding."""
        rows = self._rows.get(length)
        return 0 if rows is None else int((rows.tokens[..., 0] != PAD_ID).sum())

    def save(self, path: Path, codec_hash: str) -> None:
        """For a later stretch on this machine."""
        pool = (self._rows, self._held_out)
        rows = [{length: tuple(rows) for length, rows in part.items()} for part in pool]
        seen = sorted(shard_index(path) for path in self._seen)
        state = {"codec": codec_hash, "rows": rows, "seen": seen, "hours": self.hours}
        replace_file(path, lambda temporary: torch.save(state, temporary))

    def load(self, path: Path, codec_hash: str) -> None:
        """What save wrote, if it is there and of this codec."""
        if not path.exists():
            return
        state = torch.load(path, map_location=self._device)
        if state["codec"] != codec_hash:
            return
        self._rows, self._held_out = (
            {length: Rows(*rows) for length, rows in part.items()} for part in state["rows"]
        )
        seen = set(state["seen"])
        self._seen = {path for path in list_shards(self._data) if shard_index(path) in seen}
        self.hours = state["hours"]

    def refresh(self, seconds: float) -> bool:
        """Encodes shards that are new, for about so long. Returns whether there are more."""
        begun = time.time()
        while new := [path for path in list_shards(self._data) if path not in self._seen]:
            if time.time() - begun > seconds:
                return True
            if len(self._seen) < HELD_OUT_SHARDS:
                self._add(self._encode(new[:1]), self._held_out)
                continue
            self._add(self._encode(new), self._rows)
        return False

    def _encode(self, paths: list[Path]) -> EncodedSpeech:
        """Some of the shards, PACK_HOURS at most."""
        speech = EncodedSpeech(self._codec.config)
        for path in paths:
            encode_shard(self._codec, read_shard(path), speech, self._device)
            self._seen.add(path)
            if speech.hours() >= PACK_HOURS:
                break
        self.hours += speech.hours()
        return speech

    def _add(self, speech: EncodedSpeech, pool: dict[int, Rows]) -> None:
        for length in self._lengths:
            rows = build_rows(speech, length, seed=len(self._seen)).to(self._device)
            pool[length] = _joined([pool[length], rows]) if length in pool else rows
