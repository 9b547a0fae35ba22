"""Weights on disk: safetensors files, the weight-normed form of the codec, and a whole voice."""
import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn

from codec import Codec
from codec_layers import Conv, ConvTranspose
from dual_ar import DualAR
from inputs import InputError, require_file
from prompt import SEMANTIC_BEGIN
from quantizer import VectorQuantizer

Weights = dict[str, torch.Tensor]

_TYPE_NAMES = {
    torch.float32: "F32",
    torch.bfloat16: "BF16",
    torch.float16: "F16",
    torch.int16: "I16",
    torch.uint8: "U8",
}
_TYPES = {name: dtype for dtype, name in _TYPE_NAMES.items()}
# By element size: numpy has no bf16, so bytes are moved as integers.
_RAW_TYPES = {4: torch.int32, 2: torch.int16, 1: torch.uint8}


def save_safetensors(weights: Weights, path: Path, metadata: dict[str, str] | None = None) -> None:
    """Writes tensors of the types above in the order of the dictionary."""
    header: dict[str, Any] = {"__metadata__": metadata} if metadata else {}
    blobs, offset = [], 0
    for name, tensor in weights.items():
        tensor = tensor.detach().cpu().contiguous()
        blob = tensor.view(_RAW_TYPES[tensor.element_size()]).numpy().tobytes()
        header[name] = {
            "dtype": _TYPE_NAMES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [offset, offset + len(blob)],
        }
        offset += len(blob)
        blobs.append(blob)
    encoded = json.dumps(header).encode()
    encoded += b" " * (-len(encoded) % 8)  # the format aligns the data to 8 bytes
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(encoded)) + encoded)
        file.writelines(blobs)


def load_safetensors(path: Path) -> Weights:
    """The tensors of a file of the types above."""
    path = require_file(path, "give a folder or file with trained weights")
    raw = bytearray(path.read_bytes())
    header_size = struct.unpack("<Q", raw[:8])[0]
    header = json.loads(raw[8 : 8 + header_size])
    weights = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        if entry["dtype"] not in _TYPES:
            raise InputError(
                f"{path}: tensor {name} is {entry['dtype']}, expected one of {', '.join(_TYPES)}"
            )
        dtype = _TYPES[entry["dtype"]]
        item_size = torch.empty((), dtype=dtype).element_size()
        begin, end = entry["data_offsets"]
        count, offset = (end - begin) // item_size, 8 + header_size + begin
        integers = torch.frombuffer(raw, dtype=_RAW_TYPES[item_size], count=count, offset=offset)
        weights[name] = integers.clone().view(dtype).reshape(entry["shape"])
    return weights


def _weight_norm_names(codec: Codec) -> Iterator[tuple[str, str, str]]:
    """For each weight-normed layer the names of its plain weight and, on disk, of norm and direction."""
    for name, module in codec.named_modules():
        if isinstance(module, (Conv, ConvTranspose)) and module.weight_norm:
            on_disk = f"{name}.conv.parametrizations.weight.original"
            yield f"{name}.conv.weight", on_disk + "0", on_disk + "1"
        if isinstance(module, VectorQuantizer):
            for projection in ("in_proj", "out_proj"):
                on_disk = f"{name}.{projection}.weight"
                yield on_disk, on_disk + "_g", on_disk + "_v"


def export_codec(codec: Codec, dtype: torch.dtype = torch.bfloat16) -> Weights:
    """The codec's weights as they are stored; the direction is the weight itself, with its length."""
    weights = {name: tensor.detach().float().cpu() for name, tensor in codec.state_dict().items()}
    for plain, norm, direction in _weight_norm_names(codec):
        weight = weights.pop(plain)
        weights[norm] = weight.norm(dim=(1, 2), keepdim=True)
        weights[direction] = weight
    return {name: tensor.to(dtype) for name, tensor in weights.items()}


def import_codec(codec: Codec, weights: Weights) -> None:
    """Loads stored weights into the codec."""
    weights = {name: tensor.float() for name, tensor in weights.items()}
    for plain, norm, direction in _weight_norm_names(codec):
        if norm in weights:
            vector = weights.pop(direction)
            weights[plain] = vector * (weights.pop(norm) / vector.norm(dim=(1, 2), keepdim=True))
    codec.load_state_dict(weights)


def load_weights(model: nn.Module, path: Path) -> None:
    """Loads a safetensors file into a model whose parameter names are those of the file."""
    model.load_state_dict({name: tensor.float() for name, tensor in load_safetensors(path).items()})


def load_codec(folder: Path, device: str) -> Codec:
    """The codec of a folder with codec_config.json and codec.safetensors."""
    config = require_file(folder / "codec_config.json", "train_codec.py writes it")
    codec = Codec(json.loads(config.read_text())).to(device).eval()
    import_codec(codec, load_safetensors(folder / "codec.safetensors"))
    return codec


def load_voice(folder: Path, device: str) -> tuple[Codec, DualAR]:
    """Both models of a voice, in fp32."""
    codec = load_codec(folder, device)
    config = require_file(folder / "config.json", "train_ar.py writes it")
    dual_ar = DualAR(json.loads(config.read_text()), SEMANTIC_BEGIN).to(device).eval()
    load_weights(dual_ar, folder / "model.safetensors")
    return codec, dual_ar
