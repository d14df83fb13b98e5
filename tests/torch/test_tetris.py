"""Tetris: the loops agree with plain Python move by move, on both devices; learning, alone and with two ranks."""

import itertools
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import brickwork as bw
from brickwork.config import config
from examples.tetris import drawing, plain, speeds
from examples.tetris.games import begin, dealt, finished, go_on
from examples.tetris.learning import Settings, generations
from examples.tetris.pieces import CELLS, FIRST, HEIGHT
from examples.tetris.play import play, play_in_step
from examples.tetris.rules import FEATURES, HIGH, ROWS, landing, value
from support.gpu import GPU, NO_SECOND

GOOD = torch.tensor([-4.5, 3.25, -3.25, -9.25, -8.0, -3.5, -1.0, -2.0])
"""Quarters, so that sums are exact in any order."""
ENGINES = {"by games": play, "in step": play_in_step}


@bw.op("test_tetris::looked_at")
def looked_at(boards: torch.Tensor, weights: torch.Tensor, placements: int) -> torch.Tensor:
    games = weights.shape[0]
    assert boards.shape == (games, HIGH)
    assert weights.shape == (games, 8)
    out = weights.new_empty((games, placements))
    for game in range(games):
        for placement in range(placements):
            out[game, placement] = value(boards, weights, game, placement, landing(boards, game, placement))
    return out


def bits(board):
    return [sum(cell << x for x, cell in enumerate(row)) for row in board]


def cells(rows):
    return [[bool(row >> x & 1) for x in range(plain.COLUMNS)] for row in rows[:ROWS]]


def test_there_are_162_placements_in_which_each_piece_has_four_cells():
    assert [FIRST[n + 1] - FIRST[n] for n in range(7)] == [17, 9, 34, 17, 17, 34, 34]
    rows = [CELLS[4 * p : 4 * p + 4] for p in range(FIRST[-1])]
    assert len(set(rows)) == FIRST[-1]
    assert all(sum(row.bit_count() for row in own) == 4 for own in rows)
    assert all(tall == sum(row != 0 for row in own) for own, tall in zip(rows, HEIGHT, strict=True))


def test_each_feature_is_that_of_plain_python():
    torch.manual_seed(2)
    weights = torch.cat([GOOD.expand(2, -1), torch.randint(-9, 10, (2, 8)).float()])
    games = begin(4)
    go_on(games, weights, dealt(25, 4, key=5))
    high = [0b1111111101] * 16 + [0b1000000001, 0b11, 0, 0]
    boards = [*games.boards[:, :ROWS].tolist(), high]
    seen = set()
    for rows in boards:
        given = torch.tensor([*rows, 0, 0, 0, 0], dtype=torch.int32).expand(8, -1).contiguous()
        found = looked_at(given, torch.eye(8), FIRST[-1])
        board = cells(rows)
        for placement in range(FIRST[-1]):
            row = plain.landing(board, placement)
            if row + HEIGHT[placement] > ROWS:
                assert found[:, placement].isneginf().all()
                seen.add("no room")
            else:
                parts = plain.features(plain.placed(board, placement, row))
                assert found[:, placement].tolist() == parts
                seen |= {name for name, part in zip(FEATURES, parts, strict=True) if part}
    assert seen == {*FEATURES, "no room"}


@pytest.mark.parametrize("engine", ENGINES)
def test_games_agree_with_plain_python_move_by_move(engine, device):
    torch.manual_seed(3)
    weights = torch.cat([GOOD.to(device).expand(2, -1), torch.randint(-9, 10, (2, 8)).float()])
    games, boards = begin(4, device), [plain.empty() for _ in range(4)]
    lines, over = [0] * 4, [False] * 4
    pieces = dealt(40, 4, key=7, device=device)
    for step in range(40):
        state = (games.boards, games.lines, games.moves, games.over)
        ENGINES[engine](*state, weights, pieces[step : step + 1])
        for game, piece in enumerate(pieces[step].tolist()):
            move = None if over[game] else plain.moved(boards[game], piece, weights[game].tolist())
            over[game] = move is None
            if move is not None:
                boards[game], lines[game] = move.after, lines[game] + len(move.full)
        assert games.boards[:, :ROWS].tolist() == [bits(board) for board in boards]
        assert games.lines.tolist() == lines
        assert games.over.bool().tolist() == over
    assert lines[0] > 8
    assert over[:2] == [False, False]
    assert any(over)


@pytest.mark.parametrize("device", [pytest.param("cuda", marks=GPU)])
def test_a_gpu_plays_the_games_that_the_cpu_plays(device):
    torch.manual_seed(4)
    weights = torch.cat([GOOD.expand(100, -1), torch.randint(-40, 40, (100, 8)) / 4])
    ours, theirs = (finished(weights.to(place), 11, most=1200) for place in ("cpu", device))
    for name in ("boards", "lines", "moves", "over"):
        assert torch.equal(getattr(ours, name), getattr(theirs, name).cpu())


def test_games_end_one_by_one_and_a_launch_is_bounded():
    weights = torch.zeros(8, 8)
    weights[:4] = GOOD
    games = finished(weights, 1, most=120, at_once=50)
    assert games.moves[:4].tolist() == [120] * 4
    assert games.over.tolist() == [0] * 4 + [1] * 4
    assert games.moves[4:].max() < 120
    filled = sum(games.boards >> column & 1 for column in range(plain.COLUMNS)).sum(dim=1)
    assert torch.equal(games.lines, (4 * games.moves - filled) // 10)


def test_the_pieces_of_a_game_are_its_own_whoever_plays_it():
    weights = GOOD.repeat(6, 1)
    whole = finished(weights, 1, most=60, at_once=25)
    rows = torch.tensor([1, 4])
    part = finished(weights, 1, most=60, at_once=25, rows=rows)
    assert torch.equal(part.boards[rows], whole.boards[rows])
    assert part.moves.tolist() == [0, 60, 0, 0, 60, 0]
    assert len({tuple(board) for board in whole.boards.tolist()}) == 6


def test_games_that_are_over_stay_as_they_are():
    games = begin(2)
    games.over[0] = 1
    go_on(games, torch.zeros(2, 8), dealt(5, 2, key=1))
    assert games.moves.tolist() == [0, 5]
    assert not games.boards[0].any()


@pytest.mark.parametrize("games", [3])
def test_numpy_and_plain_python_play_the_same_games(games):
    players = speeds.contenders(games, "cpu")
    assert {"brickwork", "numpy", "python"} <= set(players)
    lines = players["brickwork"]()
    assert lines.min() > 0
    assert all(torch.equal(play(), lines) for play in players.values())


def test_a_film_shows_full_rows_before_they_leave(tmp_path):
    frames = [*drawing.filmed(GOOD.tolist(), dealt(30, 1, key=2)[:, 0].tolist())]
    assert frames[-1].moves == 30
    assert frames[-1].lines > 0
    assert all(after.lines == frame.lines + len(frame.full) for frame, after in itertools.pairwise(frames))
    assert all(drawing.EMPTY not in frame.colours[y] for frame in frames for y in frame.full)
    filled = sum(piece != drawing.EMPTY for row in frames[-1].colours for piece in row)
    assert filled == 4 * 30 - 10 * frames[-1].lines
    drawing.animation(frames[:5], tmp_path / "game.gif")
    assert (tmp_path / "game.gif").read_bytes()[:3] == b"GIF"


# ---------------------------------------------------------------- learning


SMALL = Settings(controllers=32, games=1, elite=4, trials=3, most=300)


def test_the_cross_entropy_method_learns():
    search = generations(SMALL)
    scores = [next(search).learnt_lines for _ in range(5)]
    assert max(scores) > 10 * (scores[0] + 1)


@pytest.mark.parametrize(
    "device",
    [
        "cpu",
        pytest.param("cuda", marks=[*GPU, pytest.mark.skipif(torch.cuda.device_count() < 2, reason=NO_SECOND)]),
    ],
)
def test_two_ranks_come_to_what_one_comes_to(device, tmp_path):
    alone = generations(SMALL, device)
    expected = [next(alone) for _ in range(3)]
    other = subprocess.Popen(
        [sys.executable, "-c", RANK.format(store=tmp_path / "store", rank=1, device=device)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "BRICKWORK_CACHE_DIR": config.cache_dir},
        cwd=Path(__file__).parents[2],
    )
    found = {}
    exec(RANK.format(store=tmp_path / "store", rank=0, device=device), found)
    assert other.wait(60) == 0
    for ours, theirs in zip(expected, found["found"], strict=True):
        assert (ours.learnt_lines, ours.mean_lines, ours.best_lines, ours.moves) == (
            theirs.learnt_lines,
            theirs.mean_lines,
            theirs.best_lines,
            theirs.moves,
        )
        assert torch.equal(ours.mean, theirs.mean)
        assert torch.equal(ours.deviation, theirs.deviation)


RANK = """
import datetime
import torch
from torch import distributed
from examples.tetris.learning import Settings, agreed, generations
device = "{device}" if "{device}" == "cpu" else "cuda:{rank}"
if device != "cpu":
    torch.cuda.set_device(device)
wait = datetime.timedelta(seconds=60)
backend = "gloo" if device == "cpu" else "nccl"
distributed.init_process_group(backend, init_method="file://{store}", rank={rank}, world_size=2, timeout=wait)
try:
    search = generations(Settings(controllers=32, games=1, elite=4, trials=3, most=300), device)
    found = [next(search) for _ in range(3)]
    assert agreed({rank} == 1, device) and not agreed(False, device)
finally:
    distributed.destroy_process_group()
"""
