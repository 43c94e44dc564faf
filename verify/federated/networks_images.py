"""Networks that classify images, in flax.

On a CPU, XLA's own convolution reaches a twentieth of its speed or less inside a compiled loop over a client's batches,
and outside of it where images are small. Here the neighbourhood of each pixel is laid out, and a matrix product
convolves.
"""

import math
from functools import reduce

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn
from jax import Array

# As PyTorch adds to a variance.
_EPSILON = 1e-5


class TwoLayer(nn.Module):
    """One hidden layer."""

    classes: int
    hidden: int

    @nn.compact
    def __call__(self, images: Array) -> Array:
        """Return logits."""
        flat = images.reshape(len(images), -1)
        hidden = nn.relu(nn.Dense(self.hidden)(flat))
        return nn.Dense(self.classes)(hidden)


class SmallCnn(nn.Module):
    """Two convolutions, a maximum and one hidden layer."""

    classes: int
    hidden: int

    @nn.compact
    def __call__(self, images: Array) -> Array:
        """Return logits."""
        features = images
        for filters in (32, 64):
            features = nn.relu(nn.Dense(filters)(_patches(features)))
        flat = _pooled(features).reshape(len(images), -1)
        hidden = nn.relu(nn.Dense(self.hidden)(flat))
        return nn.Dense(self.classes)(hidden)


class FourLayerCnn(nn.Module):
    """Four convolutions, each normalised by the same parameters, cut at 0 and halved by a maximum."""

    classes: int
    channels: int

    @nn.compact
    def __call__(self, images: Array) -> Array:
        """Return logits."""
        normalised = _GroupNorm(self.channels)
        features = images
        for _ in range(4):
            features = nn.Dense(self.channels)(_patches(_padded(features, 2)))
            features = _largest(nn.relu(normalised(features)), 2)
        return nn.Dense(self.classes)(features.reshape(len(images), -1))


class ResNet18(nn.Module):
    """He et al.'s residual network of 18 layers with parameters (arXiv 1512.03385, Table 1)."""

    classes: int
    channels: int

    @nn.compact
    def __call__(self, images: Array) -> Array:
        """Return logits."""
        features = _Convolution(self.channels, 7, 2)(images)
        features = nn.relu(_normalisation(self.channels)(features))
        features = _largest(_padded(features, 1), 3)
        for stage in range(4):
            for block in range(2):
                features = _Residual(self.channels << stage, 2 if stage > 0 and block == 0 else 1)(features)
        return nn.Dense(self.classes)(features.mean(axis=(1, 2)))


class _Residual(nn.Module):
    channels: int
    stride: int

    @nn.compact
    def __call__(self, features: Array) -> Array:
        inner = nn.relu(_normalisation(self.channels)(_Convolution(self.channels, 3, self.stride)(features)))
        inner = _normalisation(self.channels)(_Convolution(self.channels, 3, 1)(inner))
        if features.shape[-1] != self.channels:
            features = _normalisation(self.channels)(_Convolution(self.channels, 1, self.stride)(features))
        return nn.relu(features + inner)


class _Convolution(nn.Module):
    """Without shift, as a normalisation follows, and with so many zeros around that stride 1 keeps the size."""

    channels: int
    width: int
    stride: int

    @nn.compact
    def __call__(self, images: Array) -> Array:
        patches = _patches(_padded(images, self.width // 2), self.width, self.stride)
        return nn.Dense(self.channels, use_bias=False)(patches)


class _GroupNorm(nn.Module):
    """Mean 0 and variance 1 in each group of neighbouring channels of an image (arXiv 1803.08494), scaled and shifted.

    The sums over a group are a product with a matrix of zeros and ones; flax's own take four times as long.
    """

    groups: int

    @nn.compact
    def __call__(self, images: Array) -> Array:
        count, height, width, channels = images.shape
        scale = self.param("scale", nn.initializers.ones, (channels,))
        bias = self.param("bias", nn.initializers.zeros, (channels,))
        member = np.repeat(np.eye(self.groups, dtype=np.float32), channels // self.groups, axis=0)
        size = height * width * channels / self.groups

        def mean(values: Array) -> Array:
            return (values.sum(axis=1) @ member / size @ member.T)[:, np.newaxis]

        pixels = images.reshape(count, -1, channels)
        pixels = pixels - mean(pixels)
        factors = scale * jax.lax.rsqrt(mean(jnp.square(pixels)) + _EPSILON)
        return (pixels * factors + bias).reshape(images.shape)


def _normalisation(channels: int) -> _GroupNorm:
    # Opacus puts these groups in place of batch normalisation, which mixes the examples of a batch.
    return _GroupNorm(math.gcd(32, channels))


def _padded(images: Array, pixels: int) -> Array:
    return jnp.pad(images, ((0, 0), (pixels, pixels), (pixels, pixels), (0, 0)))


def _patches(images: Array, width: int = 3, stride: int = 1) -> Array:
    """Return the neighbourhood of every inner pixel, or of every second one, so that a matrix product convolves."""
    height, breadth = images.shape[1] - width + 1, images.shape[2] - width + 1
    shifts = ((i, j) for i in range(width) for j in range(width))
    return jnp.concatenate([images[:, i : i + height : stride, j : j + breadth : stride] for i, j in shifts], axis=-1)


def _pooled(images: Array) -> Array:
    """Return the largest value of each square of 2 × 2; an odd last row or column is left out."""
    count, height, width, channels = images.shape
    even = images[:, : height // 2 * 2, : width // 2 * 2]
    return even.reshape(count, height // 2, 2, width // 2, 2, channels).max(axis=(2, 4))


def _largest(images: Array, window: int) -> Array:
    """Return the largest values of windows that start at every second pixel.

    The gradient of XLA's own maximum takes some four times as long.
    """
    for axis in (1, 2):
        last = images.shape[axis] - window
        shifted = (jax.lax.slice_in_dim(images, i, i + last + 1, 2, axis) for i in range(window))
        images = reduce(jnp.maximum, shifted)
    return images
