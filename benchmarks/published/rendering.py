"""Blending from front to back: of splats that lie over pixels, and of samples along rays."""

# pyright: reportArgumentType=false, reportCallIssue=false
# Elements are values in the language, and tensors to the type checker.
from __future__ import annotations

import math
from typing import Any

import torch

import brickwork as bw
from benchmarks.published.operator import Published, Source, values

TILE = 16
"""Pixels along a side of the squares for which splats are listed."""


@bw.op("published::render_gaussians")
def render_gaussians(
    ranges: torch.Tensor,
    listed: torch.Tensor,
    centres: torch.Tensor,
    colours: torch.Tensor,
    conics: torch.Tensor,
    background: torch.Tensor,
    height: int,
    width: int,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Blend the splats that are listed for each tile, front to back, until a pixel is opaque.

    ranges: (tiles, 2), where each tile's splats stand in `listed`, front to back; centres: (P, 2), colours: (P, 3),
    conics: (P, 4), three of the inverse covariance and the opacity; background: (3,)
    -> (3, height, width), then what light passes and how many splats were looked at, both (height, width).
    """
    across = (width + TILE - 1) // TILE
    image = colours.new_empty((3, height, width))
    passed = colours.new_empty((height, width))
    looked = torch.empty(height, width, dtype=torch.int32)
    for y in range(height):
        for x in range(width):
            tile = y // TILE * across + x // TILE
            light = 1.0
            colour = [0.0] * 3
            count, last = 0, 0
            for p in range(ranges[tile, 0], ranges[tile, 1]):
                splat = listed[p]
                count += 1
                dx, dy = centres[splat, 0] - x, centres[splat, 1] - y
                power = -0.5 * (conics[splat, 0] * dx * dx + conics[splat, 2] * dy * dy) - conics[splat, 1] * dx * dy
                if power > 0.0:
                    continue
                alpha = min(0.99, conics[splat, 3] * math.exp(power))
                if alpha < 1.0 / 255.0:
                    continue
                rest = light * (1.0 - alpha)
                if rest < 0.0001:
                    break
                for c in range(3):
                    colour[c] += colours[splat, c] * alpha * light
                light = rest
                last = count
            passed[y, x] = light
            looked[y, x] = last
            for c in range(3):
                image[c, y, x] = colour[c] + light * background[c]
    return image, passed, looked


def render_gaussians_inputs(make: Source, side: int, splats: int) -> tuple[Any, ...]:
    """Return splats some pixels wide, each listed in its own tile and the eight around it."""
    across = (side + TILE - 1) // TILE
    each = max(splats // (across * across), 1)
    tiles = torch.arange(across * across, device=make.device)
    row, column = tiles // across, tiles % across
    steps = torch.arange(-1, 2, device=make.device)
    rows, columns = (row[:, None, None] + steps[:, None]) % across, (column[:, None, None] + steps) % across
    near = (rows * across + columns).flatten(1)[..., None] * each + torch.arange(each, device=make.device)
    listed = near.flatten(1)
    ends = (tiles + 1) * listed.shape[1]
    corner = torch.stack([column, row], 1).repeat_interleave(each, 0) * TILE
    count = len(corner)
    centres = corner + make.uniform(count, 2, high=float(TILE))
    spread = make.uniform(count, 2, low=0.01, high=0.1)
    conics = torch.stack([spread[:, 0], spread[:, 1] * 0, spread[:, 1], make.uniform(count, low=0.1, high=0.99)], 1)
    ranges = torch.stack([ends - listed.shape[1], ends], 1).int()
    return ranges, listed.flatten().int(), centres, make.uniform(count, 3), conics, make.uniform(3), side, side


def render_gaussians_reference(
    ranges: torch.Tensor,
    listed: torch.Tensor,
    centres: torch.Tensor,
    colours: torch.Tensor,
    conics: torch.Tensor,
    background: torch.Tensor,
    height: int,
    width: int,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Compute `render_gaussians` tile by tile, splat by splat, for all pixels of a tile together."""
    across = (width + TILE - 1) // TILE
    image, passed = centres.new_zeros((3, height, width)), centres.new_zeros((height, width))
    looked = torch.zeros(height, width, dtype=torch.int32)
    for tile, (first, end) in enumerate(values(ranges)):
        place = (..., *(slice(TILE * each, TILE * (each + 1)) for each in divmod(tile, across)))
        ys, xs = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
        y, x = ys[place], xs[place]
        light, done = torch.ones_like(y, dtype=centres.dtype), torch.zeros_like(y, dtype=torch.bool)
        colour = torch.zeros_like(image[place])
        for count, splat in enumerate(values(listed[first:end]), 1):
            dx, dy = centres[splat, 0] - x, centres[splat, 1] - y
            a, b, c, opacity = conics[splat]
            power = -0.5 * (a * dx * dx + c * dy * dy) - b * dx * dy
            alpha = (opacity * power.exp()).clamp(max=0.99)
            seen = (power <= 0) & (alpha >= 1 / 255) & ~done
            done = done | (seen & (light * (1 - alpha) < 0.0001))
            alpha = torch.where(seen & ~done, alpha, 0.0)
            colour = colour + colours[splat, :, None, None] * alpha * light
            light = light * (1 - alpha)
            looked[place] = torch.where(seen & ~done, count, looked[place])
        image[place] = colour + light * background[:, None, None]
        passed[place] = light
    return image, passed, looked


@bw.op("published::composite_rays")
def composite_rays(
    sigmas: torch.Tensor, rgbs: torch.Tensor, deltas: torch.Tensor, rays: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Blend the samples along each ray until it is opaque.

    sigmas: (M,), rgbs: (M, 3), deltas: (M, 2), rays: (N, 3), a ray's place in the results, its first sample and their
    number -> the sum of weights (N,), the depth (N,), and the colour (N, 3).
    """
    N, M = rays.shape[0], sigmas.shape[0]
    weights, depth, image = sigmas.new_empty(N), sigmas.new_empty(N), sigmas.new_empty((N, 3))
    for n in bw.prange(N):  # each ray has a place of its own
        index, offset, steps = rays[n, 0], rays[n, 1], rays[n, 2]
        light, t = 1.0, 0.0
        red, green, blue, total, far = 0.0, 0.0, 0.0, 0.0, 0.0
        if offset + steps <= M:
            step = 0
            while step < steps:
                alpha = 1.0 - math.exp(-sigmas[offset + step] * deltas[offset + step, 0])
                weight = alpha * light
                red += weight * rgbs[offset + step, 0]
                green += weight * rgbs[offset + step, 1]
                blue += weight * rgbs[offset + step, 2]
                t += deltas[offset + step, 1]
                far += weight * t
                total += weight
                light *= 1.0 - alpha
                if light < 1e-4:
                    break
                step += 1
        weights[index] = total
        depth[index] = far
        image[index, 0] = red
        image[index, 1] = green
        image[index, 2] = blue
    return weights, depth, image


def composite_rays_inputs(make: Source, N: int, steps: int) -> tuple[Any, ...]:
    """Return rays with as many samples each, in any order; they are opaque about halfway."""
    order = torch.argsort(make.uniform(N))
    rays = torch.stack([order, order * steps, torch.full_like(order, steps)], 1).int()
    step = make.uniform(N * steps, 1, low=0.01, high=0.1)
    sigmas = make.uniform(N * steps, high=640.0 / steps)
    return sigmas, make.uniform(N * steps, 3), step.expand(-1, 2).contiguous(), rays


def composite_rays_reference(
    sigmas: torch.Tensor, rgbs: torch.Tensor, deltas: torch.Tensor, rays: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Compute `composite_rays` ray by ray."""
    found: list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]] = []
    for _, offset, steps in values(rays[rays[:, 0].argsort()]):
        part = slice(offset, offset + steps)
        after = torch.exp(-sigmas[part] * deltas[part, 0]).cumprod(0)
        before = torch.cat([torch.ones_like(after[:1]), after[:-1]])
        weight = torch.where(before >= 1e-4, before - after, 0.0)
        found.append((weight.sum(), (weight * deltas[part, 1].cumsum(0)).sum(), weight @ rgbs[part]))
    weights, depth, image = (torch.stack(each) for each in zip(*found, strict=True))
    return weights, depth, image


OPERATORS = (
    Published(
        op=render_gaussians,
        repository="graphdeco-inria/diff-gaussian-rasterization",
        file="cuda_rasterizer/forward.cu",
        commit="4ace58a",
        inputs=render_gaussians_inputs,
        reference=render_gaussians_reference,
        tiny=(20, 12),
        small=(64, 100),
        large=(1024, 100_000),
        gradient=("centres", "colours", "conics"),
    ),
    Published(
        op=composite_rays,
        repository="ashawkey/torch-ngp",
        file="raymarching/src/raymarching.cu",
        commit="dd2add6",
        inputs=composite_rays_inputs,
        reference=composite_rays_reference,
        tiny=(4, 6),
        small=(256, 32),
        large=(65536, 256),
        gradient=("sigmas", "rgbs"),
    ),
)
