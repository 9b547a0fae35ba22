"""The streaming VQ codec: wave -> codes -> wave, all causal, in the S1-mini checkpoint layout."""
import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from codec_layers import Chain, Conv, ConvTranspose, ResidualUnit, Snake, residual_units
from quantizer import Quantizer

# Start of the training: each layer keeps unit variance, so that the signal reaches the quantisers.
INPUT_GAIN = 12.0  # speech has an rms near 0.08
OUTPUT_GAIN = 0.05
RESIDUAL_GAIN = 0.4  # of a unit's branch, so that the sum over the units grows slowly


def _encoder(config: dict[str, Any]) -> Chain:
    """Each stage doubles the channels and divides the rate by its stride."""
    channels = config["encoder_dim"]
    stages = [Conv(1, channels, 7)]
    for stride in config["encoder_rates"]:
        down = Conv(channels, 2 * channels, 2 * stride, stride=stride)
        # The identity stands where the layout has a transformer, which this codec does without.
        stages.append(Chain(*residual_units(channels), Snake(channels), down, nn.Identity()))
        channels *= 2
    return Chain(*stages, Snake(channels), Conv(channels, config["latent_dim"], 3))


def _decoder(config: dict[str, Any]) -> Chain:
    """Each stage halves the channels and multiplies the rate by its stride."""
    channels = config["decoder_dim"]
    stages = [Conv(config["latent_dim"], channels, 7)]
    for stride in config["decoder_rates"]:
        up = ConvTranspose(channels, channels // 2, 2 * stride, stride)
        stages.append(Chain(Snake(channels), up, *residual_units(channels // 2)))
        channels //= 2
    return Chain(*stages, Snake(channels), Conv(channels, 1, 7), nn.Tanh(), name="model")


class Codec(nn.Module):
    """Built from the values of codec_config.json."""

    def __init__(self, config: dict[str, Any]):
        super().__init__()
        self.config = config
        self.frame_samples = math.prod(config["encoder_rates"]) * math.prod(config["downsample_factor"])
        self.encoder = _encoder(config)
        self.quantizer = Quantizer(config)
        self.decoder = _decoder(config)
        self._initialise()

    def _initialise(self) -> None:
        """Unit variance, no biases: biases above the signal would put all frames on the same few entries."""
        for module in self.modules():
            if isinstance(module, (nn.Conv1d, nn.ConvTranspose1d)):
                overlap = module.stride[0] if isinstance(module, nn.ConvTranspose1d) else 1
                fan_in = module.in_channels // module.groups * module.kernel_size[0] / overlap
                nn.init.normal_(module.weight, std=fan_in**-0.5)
                nn.init.zeros_(module.bias)
        for module in self.modules():
            if isinstance(module, ResidualUnit):
                last = module.block[3].conv
                nn.init.normal_(last.weight, std=RESIDUAL_GAIN * last.in_channels**-0.5)
        self.encoder.block[0].conv.weight.data.mul_(INPUT_GAIN)
        self.decoder.model[-2].conv.weight.data.mul_(OUTPUT_GAIN)

    def encode(self, waves: torch.Tensor) -> torch.Tensor:
        """[B, 1, samples] -> codes [B, K, frames]; the last frame is filled up with silence."""
        padded = F.pad(waves, (0, -waves.shape[-1] % self.frame_samples))
        return self.quantizer(self.encoder(padded)).codes

    def decode(self, codes: torch.Tensor) -> torch.Tensor:
        """Codes [B, K, frames] -> [B, 1, frames * frame_samples]."""
        return self.decoder(self.quantizer.decode(codes))
