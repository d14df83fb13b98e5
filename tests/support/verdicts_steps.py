"""Programs of the verdict table: steps of indices that are, or seem to be, longer than what varies in an iteration."""

from __future__ import annotations

from support.verdict_table import INDICES, Tensor, verdict


@verdict("s")
def steps_that_differ(x: Tensor) -> None:
    for i in range(x.shape[0] // 2):
        x[2 * i] = x[i]


@verdict("s")
def steps_that_grow(x: Tensor, y: Tensor) -> None:
    for i in range(1, y.shape[0]):
        x[i * i] = x[i] + 1.0


@verdict("s")
def squares_that_meet(x: Tensor, y: Tensor) -> None:
    for i in range(-4, 4):
        place = i * i
        if place >= 0:
            x[place] = y[i]


@verdict("ss")
def steps_of_an_inner_index(x: Tensor) -> None:
    for i in range(6):
        for j in range(1, 5):
            x[i * j] = 1.0


@verdict("sss")
def steps_of_a_multiple_of_an_inner_index(x: Tensor, n: int) -> None:
    for l in range(n):
        for i in range(6):
            for j in range(1, 5):
                x[i * j * n] = l


@verdict("s")
def reads_that_count_from_the_end(x: Tensor) -> None:
    for i in range((x.shape[0] + 1) // 2):
        x[2 * i] = x[2 * i - 1]


@verdict("s")
def stores_that_count_from_the_end(x: Tensor) -> None:
    for i in range((x.shape[0] + 1) // 2):
        x[2 * i - 1] = x[2 * i]


@verdict("ss")
def reads_of_any_reach(x: Tensor, n: int, k: int) -> None:
    for i in range(n):
        for j in range(3):
            x[4 * i] = x[4 * i + k * j]


@verdict("ss")
def stores_of_any_reach(x: Tensor, n: int, k: int) -> None:
    for i in range(n):
        for j in range(3):
            x[4 * i + k * j] = x[4 * i]


@verdict("s", at=INDICES)
def places_that_do_not_cancel_out(x: Tensor, at: Tensor, k: int) -> None:
    for i in range(8):
        place = 4 * i + k * (at[i] % 5)
        if place >= 0:
            x[place] = i


@verdict("sp", at=INDICES)
def places_and_lengths_that_do_not_cancel_out(x: Tensor, at: Tensor, m: int, k: int) -> None:
    for i in range(8):
        place = k * (at[i] % 5)
        for j in range(-m, m):
            if 4 * m * i + j + place >= 0:
                x[4 * m * i + j + place] = j


@verdict("sss")
def rows_that_an_inner_loop_spreads(x: Tensor, n: int) -> None:
    for l in range(3):
        for i in range(n):
            for j in range(5):
                x[4 * i + l * j] = 1.0


@verdict("spp", at=INDICES)
def rows_that_an_outer_loop_moves(x: Tensor, at: Tensor, n: int, m: int) -> None:
    for l in range(3):
        place = at[l] % 7
        for i in range(n):
            for j in range(m):
                x[i * m + j + place] = j


@verdict("sp")
def stores_after_a_loop_that_runs_once(x: Tensor) -> None:
    for i in range(8):
        for j in range(i, 1):
            x[0] = j
        x[0] = 2.0


@verdict("s")
def halves_and_an_overlap(x: Tensor) -> None:
    n = x.shape[0]
    for i in range(n // 2):
        x[i] = x[n - 1 - i] + x[n - 3 - i]


@verdict("s")
def halves_and_a_store_into_the_other(x: Tensor) -> None:
    n = x.shape[0]
    for i in range(n // 2):
        x[i] = x[n - 1 - i]
        x[n - 2 - i] = 0.0


@verdict("s")
def reads_of_a_half_and_of_all(x: Tensor, y: Tensor) -> None:
    n = x.shape[0]
    for i in range(n):
        if 2 * i < n - 1:
            x[i] = x[n - 1 - i]
        y[i] = x[n - 1 - i]
