"""The named voices of an engine."""
from __future__ import annotations

import os
from typing import Any, Iterator, NamedTuple

from . import _errors, _library
from ._waiting import interruptible


class Voice(NamedTuple):
    name: str
    clips: int  # recordings that it is made of; 0: the model's own
    transcripts: list[str]  # one for each clip, in order
    language: str  # "en-us", ...: that its name says (af_heart); "" for voices made of clips
    fixed: bool  # it came with the model and cannot be changed


def _voice(entry: dict[str, Any]) -> Voice:
    return Voice(*(entry[name] for name in Voice._fields))


class Voices:
    """`engine.voices`: a folder of clips with their words (references_dir), and the voices that came with the model.
    Iterating gives the names; `name in engine.voices` and `len` work. Others see a change at once and completely."""

    def __init__(self, handle: _library.Handle):
        self._handle = handle

    def list(self) -> list[Voice]:
        """Every voice, sorted by name."""
        return [_voice(entry) for entry in _library.call_json("shoal_voices_list", self._handle.value)]

    def get(self, name: str) -> Voice:
        """Raises NotFound, InvalidArgument."""
        return _voice(_library.call_json("shoal_voices_get", self._handle.value, _library.text_argument("name", name)))

    __getitem__ = get

    def add(self, name: str, audio: str | os.PathLike[str] | bytes, *, text: str) -> None:
        """Stores a recording (a path, or the bytes of a wav, flac, ogg, mp3 or aiff file) with the words spoken in it.

        Raises InvalidArgument (name, words, silence), AlreadyExists, CorruptFile, TooLarge, Unsupported."""
        data = _library.audio_argument("audio", audio)
        interruptible(_library.call, "shoal_voices_add", self._handle.value, _library.text_argument("name", name), data,
                      len(data), _library.text_argument("text", text))

    def rename(self, name: str, new_name: str) -> None:
        """Raises NotFound, AlreadyExists, InvalidArgument, Unsupported."""
        _library.call("shoal_voices_rename", self._handle.value, _library.text_argument("name", name),
                      _library.text_argument("new_name", new_name))

    def remove(self, name: str) -> None:
        """Raises NotFound, InvalidArgument, Unsupported."""
        _library.call("shoal_voices_remove", self._handle.value, _library.text_argument("name", name))

    def __iter__(self) -> Iterator[str]:
        return iter([voice.name for voice in self.list()])

    def __len__(self) -> int:
        return len(self.list())

    def __contains__(self, name: object) -> bool:
        try:
            self.get(name)  # type: ignore[arg-type]
        except (_errors.NotFound, _errors.InvalidArgument, TypeError):
            return False
        return True
