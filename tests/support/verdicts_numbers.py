"""Programs of the verdict table: steps and masks that are numbers of the program, and what a `while` says of them."""

from __future__ import annotations

from support.verdict_table import INDICES, Tensor, verdict

# ---------------------------------------------------------------- exclusive or


@verdict("p")
def exchanged_by_a_mask(x: Tensor, mask: int) -> None:
    for i in range(x.shape[0]):
        other = i ^ mask
        if other > i:
            kept = x[i]
            x[i] = x[other]
            x[other] = kept


@verdict("s")
def exchanged_on_both_sides(x: Tensor, mask: int) -> None:
    for i in range(x.shape[0]):
        other = i ^ mask
        if other >= 0:
            kept = x[i]
            x[i] = x[other]
            x[other] = kept


@verdict("p")
def placed_by_a_mask(x: Tensor, y: Tensor, mask: int) -> None:
    for i in range(x.shape[0]):
        other = mask ^ (i + 1)
        if other >= 0:
            y[other] = x[i]


@verdict("s")
def placed_by_a_mask_from_either_end(x: Tensor, y: Tensor, mask: int) -> None:
    for i in range(x.shape[0]):
        y[mask ^ (i + 1)] = x[i]


@verdict("s", masks=INDICES)
def placed_by_masks(x: Tensor, y: Tensor, masks: Tensor) -> None:
    for i in range(x.shape[0]):
        other = i ^ masks[i]
        if other >= 0:
            y[other] = x[i]


@verdict("s")
def placed_by_half_a_number(x: Tensor, y: Tensor, mask: int) -> None:
    for i in range(x.shape[0]):
        other = (i // 2) ^ mask
        if other >= 0:
            y[other] = x[i]


@verdict("sp")
def placed_by_rows_and_a_mask(y: Tensor, mask: int) -> None:
    for i in range(3):
        for j in range(y.shape[0] - 3):
            other = (i + j) ^ mask
            if other >= 0:
                y[other] = i + j


# ---------------------------------------------------------------- steps that are numbers


@verdict("p")
def up_or_down(x: Tensor, first: int, last: int, step: int) -> None:
    for m in range(first, last, step):
        if m >= 0:
            x[m] = m


@verdict("s")
def up_or_down_from_either_end(x: Tensor, first: int, last: int, step: int) -> None:
    for m in range(first, last, step):
        x[m] = m


@verdict("s")
def a_factor_that_may_be_zero(x: Tensor, n: int, factor: int) -> None:
    for t in range(n):
        if factor * t >= 0:
            x[factor * t] = t


@verdict("p")
def a_factor_that_is_not_zero(x: Tensor, n: int, factor: int) -> None:
    if factor != 0:
        for t in range(n):
            if factor * t >= 0:
                x[factor * t] = t


# ---------------------------------------------------------------- what a while says


@verdict("p")
def multiples(x: Tensor, n: int) -> None:
    p = 2
    while p * p < n:
        for m in range(p * p, n, p):
            x[m] = 0.0
        p += 1


@verdict("s")
def multiples_of_what_becomes_zero(x: Tensor, n: int) -> None:
    p = 3
    while p * p < n:
        for t in range(n):
            x[p * t] = t
        p -= 1


@verdict("pp")
def butterflies(x: Tensor) -> None:
    n = x.shape[0]
    length = 2
    while length <= n:
        half = length // 2
        for start in range(0, n, length):
            for k in range(half):
                other = x[start + k + half]
                x[start + k + half] = x[start + k] - other
                x[start + k] = x[start + k] + other
        length *= 2


@verdict("sp")
def butterflies_that_overlap(x: Tensor) -> None:
    n = x.shape[0]
    length = 2
    while length <= n:
        half = length // 2
        for start in range(0, n, length):
            for k in range(length + 1):
                x[start + k + half] = x[start + k + half] * 2.0
        length *= 2


@verdict("ss")
def butterflies_that_meet(x: Tensor) -> None:
    n = x.shape[0]
    length = 2
    while length <= n:
        half = length // 2
        for start in range(0, n, length):
            for k in range(length):
                x[start + k + half] = x[start + k]
        length *= 2


@verdict("s")
def a_stride_that_wraps(x: Tensor, n: int) -> None:
    stride = 1
    while stride != n:
        for i in range(x.shape[0]):
            x[i * stride] = i
        stride *= 2
