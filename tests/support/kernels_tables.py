"""Tables of dynamic programming: bounds and indices from data, borders, triangles, and what is kept beside a table."""

# pyright: basic
from __future__ import annotations

import math

import torch

Tensor = torch.Tensor
FAR = -1e30


def edit_distance(a: Tensor, b: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """The borders are statements before the nest and in its rows."""
    table = a.new_zeros((a.shape[0], a.shape[1] + 1, b.shape[1] + 1))
    for s in range(a.shape[0]):
        for j in range(columns[s] + 1):
            table[s, 0, j] = j
        for i in range(1, rows[s] + 1):
            table[s, i, 0] = i
            for j in range(1, columns[s] + 1):
                cost = 0 if a[s, i - 1] == b[s, j - 1] else 1
                table[s, i, j] = min(table[s, i - 1, j] + 1, table[s, i, j - 1] + 1, table[s, i - 1, j - 1] + cost)
    return table


def common_subsequence(a: Tensor, b: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """From the ends of both, beyond which there is a border."""
    table = a.new_zeros((a.shape[0], a.shape[1] + 1, b.shape[1] + 1))
    for s in range(a.shape[0]):
        for i in range(rows[s] - 1, -1, -1):
            for j in range(columns[s] - 1, -1, -1):
                if a[s, i] == b[s, j]:
                    table[s, i, j] = table[s, i + 1, j + 1] + 1
                else:
                    table[s, i, j] = max(table[s, i + 1, j], table[s, i, j + 1])
    return table


def local_alignment(a: Tensor, b: Tensor, rows: Tensor, columns: Tensor, scores: Tensor) -> tuple[Tensor, Tensor]:
    """Scores are found through two sequences, and the best of the table is kept."""
    table = scores.new_zeros((a.shape[0], a.shape[1] + 1, b.shape[1] + 1))
    out = scores.new_zeros((a.shape[0],))
    for s in range(a.shape[0]):
        best = 0.0
        for i in range(1, rows[s] + 1):
            for j in range(1, columns[s] + 1):
                x = max(0.0, table[s, i - 1, j - 1] + scores[a[s, i - 1], b[s, j - 1]])
                x = max(x, max(table[s, i - 1, j], table[s, i, j - 1]) - 0.5)
                table[s, i, j] = x
                best = max(best, x)
        out[s] = best
    return table, out


def best_paths(logits: Tensor, labels: Tensor, frames: Tensor, lengths: Tensor) -> Tensor:
    """A transducer's best scores."""
    table = logits.new_zeros((logits.shape[0], logits.shape[1], logits.shape[2]))
    for s in range(logits.shape[0]):
        for t in range(frames[s]):
            for u in range(lengths[s] + 1):
                if t == 0 and u == 0:
                    table[s, 0, 0] = 0.0
                elif u == 0:
                    table[s, t, 0] = table[s, t - 1, 0] + logits[s, t - 1, 0, 0]
                elif t == 0:
                    table[s, 0, u] = table[s, 0, u - 1] + logits[s, 0, u - 1, labels[s, u - 1]]
                else:
                    stay = table[s, t - 1, u] + logits[s, t - 1, u, 0]
                    table[s, t, u] = max(stay, table[s, t, u - 1] + logits[s, t, u - 1, labels[s, u - 1]])
    return table


def sums_of_paths(logits: Tensor, labels: Tensor, frames: Tensor, lengths: Tensor) -> Tensor:
    """The same with all paths added up."""
    table = logits.new_zeros((logits.shape[0], logits.shape[1], logits.shape[2]))
    for s in range(logits.shape[0]):
        for t in range(frames[s]):
            for u in range(lengths[s] + 1):
                stay = table[s, t - 1, u] + logits[s, t - 1, u, 0] if t > 0 else FAR
                emit = table[s, t, u - 1] + logits[s, t, u - 1, labels[s, u - 1]] if u > 0 else FAR
                if t > 0 or u > 0:
                    table[s, t, u] = max(stay, emit) + math.log1p(math.exp(-abs(stay - emit)))
    return table


def connectionist(logits: Tensor, labels: Tensor, frames: Tensor, lengths: Tensor) -> Tensor:
    """Rows from the row before, two places back where labels differ."""
    batch, most, _ = logits.shape
    table = logits.new_full((batch, most, 2 * labels.shape[1] + 1), FAR)
    for s in range(batch):
        table[s, 0, 0] = logits[s, 0, 0]
        if lengths[s] > 0:
            table[s, 0, 1] = logits[s, 0, labels[s, 0]]
        for t in range(1, frames[s]):
            for u in range(2 * lengths[s] + 1):
                label = labels[s, u // 2] if u % 2 == 1 else 0
                best = table[s, t - 1, u]
                if u > 0:
                    best = max(best, table[s, t - 1, u - 1])
                if u > 2 and u % 2 == 1 and labels[s, u // 2] != labels[s, u // 2 - 1]:
                    best = max(best, table[s, t - 1, u - 2])
                table[s, t, u] = best + logits[s, t, label]
    return table


def monotonic_paths(value: Tensor, columns: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
    """Rows of which data bounds both ends, and a way back through the table."""
    table, path = torch.zeros_like(value), torch.zeros_like(value)
    for s in range(value.shape[0]):
        for y in range(rows[s]):
            for x in range(max(0, columns[s] + y - rows[s]), min(columns[s], y + 1)):
                above = FAR if x == y else table[s, y - 1, x]
                beside = 0.0 if y == 0 else FAR
                if x > 0:
                    beside = table[s, y - 1, x - 1]
                table[s, y, x] = value[s, y, x] + max(above, beside)
        index = columns[s] - 1
        for y in range(rows[s] - 1, -1, -1):
            path[s, y, index] = 1.0
            if index != 0 and (index == y or table[s, y - 1, index] < table[s, y - 1, index - 1]):
                index -= 1
    return table, path


def spans(x: Tensor) -> Tensor:
    """A triangle, from its last row on."""
    batch, n = x.shape
    table = x.new_zeros((batch, n + 1, n + 1))
    for s in range(batch):
        for i in range(n - 1, -1, -1):
            for j in range(i + 1, n):
                table[s, i, j] = max(table[s, i + 1, j], table[s, i, j - 1]) + x[s, i] * x[s, j]
    return table


def sequences(batch: int, height: int, width: int) -> tuple[Tensor, ...]:
    """Return pairs of sequences and how long they are: some are empty."""
    generator = torch.Generator().manual_seed(height)
    a, b = (torch.randint(0, 3, (batch, n), generator=generator, dtype=torch.int32) for n in (height, width))
    rows = torch.randint(0, height + 1, (batch,), generator=generator, dtype=torch.int32)
    columns = torch.randint(0, width + 1, (batch,), generator=generator)
    rows[0], columns[-1] = height, width
    return a, b, rows, columns


def scored(batch: int, height: int, width: int) -> tuple[Tensor, ...]:
    """Return the same with scores of pairs, which are equal for some."""
    return *sequences(batch, height, width), torch.tensor([[2.0, -1.0, 0.5], [-1.0, 1.0, 0.0], [0.5, 0.0, 3.0]])


def spoken(batch: int, height: int, width: int) -> tuple[Tensor, ...]:
    """Return scores of frames, labels, and how many there are of both."""
    _, _, rows, columns = sequences(batch, height, width)
    generator = torch.Generator().manual_seed(width)
    labels = torch.randint(1, 4, (batch, width), generator=generator, dtype=torch.int32)
    return torch.randn(batch, height, width + 1, 4, generator=generator), labels, rows, columns


def spoken_rows(batch: int, height: int, width: int) -> tuple[Tensor, ...]:
    """Return scores of frames alone, labels, and how many there are of both."""
    logits, *others = spoken(batch, height, width)
    return logits[:, :, 0].contiguous(), *others


def paired(batch: int, height: int, width: int) -> tuple[Tensor, ...]:
    """Return a table and its parts that are used, of which the first axis is the longer one."""
    generator = torch.Generator().manual_seed(height)
    columns = torch.randint(1, min(height, width) + 1, (batch,), generator=generator)
    rows = columns + torch.randint(0, height - int(columns.max()) + 1, (batch,), generator=generator)
    return torch.randn(batch, height, width, generator=generator), columns, rows


def row(batch: int, height: int, width: int) -> tuple[Tensor, ...]:
    """Return a row for each sample."""
    return (torch.randint(-4, 5, (batch, height + width), generator=torch.Generator().manual_seed(height)).float(),)


TABLES = {
    edit_distance: sequences,
    common_subsequence: sequences,
    local_alignment: scored,
    best_paths: spoken,
    sums_of_paths: spoken,
    connectionist: spoken_rows,
    monotonic_paths: paired,
    spans: row,
}
"""Functions, and what makes arguments of a size for them."""
