"""The examples, run at small sizes: what they check themselves, and what they promise."""

import pytest
import torch

import brickwork as bw
from brickwork import ops
from examples.language_model.model import LanguageModel, mix_by_convolution
from examples.language_model.text import standard_library, written
from examples.language_model.training import Settings, train
from examples.tetris import plain
from examples.tetris.games import begin, finished, go_on
from examples.tetris.learning import Settings as SearchSettings
from examples.tetris.learning import generations
from examples.tour import (
    bodies,
    counting,
    life,
    mandelbrot,
    neighbours,
    normalising,
    resampling,
    sparse,
    wave,
)

STATIONS = {
    mandelbrot: (120,),
    bodies: (60, 50),
    life: (64, 20),
    wave: (64, 40),
    counting: (20_000,),
    neighbours: (20, 300, 24),
    resampling: (32, 150),
    sparse: (300,),
    normalising: (8, 40),
}


@pytest.mark.parametrize("station", STATIONS, ids=lambda station: station.__name__.rpartition(".")[2])
def test_a_station_of_the_tour_finds_what_it_promises(station, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert station.main(*STATIONS[station])


# ---------------------------------------------------------------- the language model


def test_the_language_model_learns_alike_with_timex_and_with_torchs_convolution():
    settings = Settings(channels=16, layers=2, steps=32, batch=4, updates=25)
    text = standard_library(20_000)
    ours, theirs = (train(text, mix, settings, lambda number, loss: None) for mix in (ops.timex, mix_by_convolution))
    assert ours.losses[-1] < ours.losses[0] - 0.5
    torch.testing.assert_close(torch.tensor(ours.losses), torch.tensor(theirs.losses), rtol=1e-3, atol=1e-3)


def test_the_language_model_sees_nothing_of_what_follows():
    torch.manual_seed(0)
    model = LanguageModel(channels=16, layers=2, steps=24, mix=ops.timex)
    tokens = torch.randint(0, 128, (1, 24))
    changed = tokens.clone()
    changed[0, 12:] = 5
    with torch.no_grad():
        torch.testing.assert_close(model(tokens)[0, :12], model(changed)[0, :12])
    assert len(written(model.write(tokens[0, :3], 30, torch.Generator().manual_seed(1)))) == 33


# ---------------------------------------------------------------- Tetris


@bw.op("test_examples::pieces")
def pieces(games: int) -> torch.Tensor:
    """The pieces that `play` draws for the first move of each game."""
    out = torch.empty((games,), dtype=torch.int64)
    for game in range(games):
        for move in range(1):
            out[game] = bw.randint(0, 7) + move
    return out


@pytest.mark.parametrize("good", [False, True])
def test_the_rules_of_tetris_agree_with_plain_python_move_by_move(good):
    generator = torch.Generator().manual_seed(3)
    count = 3
    if good:
        weights = torch.tensor([-4, 3, -3, -9, -8, -3, -1, -2]) + torch.randint(-1, 2, (count, 8), generator=generator)
    else:
        weights = torch.randint(-9, 10, (count, 8), generator=generator)
    weights = weights.float()
    games, boards, lines = begin(count), [plain.empty() for _ in range(count)], [0] * count
    over = [False] * count
    for step in range(40):
        key = torch.tensor(step)
        go_on_with_key(games, weights, key)
        for game, piece in enumerate(pieces(count, key=key).tolist()):
            after = None if over[game] else plain.move(boards[game], piece, weights[game].tolist())
            over[game] = after is None
            if after is not None:
                boards[game], lines[game] = after[0], lines[game] + after[1]
        bits = [[sum(cell << x for x, cell in enumerate(row)) for row in board] for board in boards]
        assert games.boards.tolist() == bits
        assert games.lines.tolist() == lines
        assert games.over.bool().tolist() == over
    assert any(over) != good


def go_on_with_key(games, weights, key):
    from examples.tetris.rules import play

    play(games.boards, games.lines, games.moves, games.over, weights, 1, key=key)


def test_games_end_one_by_one_and_a_launch_is_bounded():
    torch.manual_seed(1)
    weights = torch.zeros(8, 8)
    weights[:4] = torch.tensor([-4.5, 3.4, -3.2, -9.3, -7.9, -3.4, -1.0, -2.0])
    games = finished(weights, most=120, at_once=50)
    assert games.moves[:4].tolist() == [120] * 4
    assert games.over.tolist() == [0] * 4 + [1] * 4
    assert games.moves[4:].max() < 120
    assert torch.equal(games.lines, (4 * games.moves - filled(games)) // 10)


def filled(games):
    return sum(games.boards >> column & 1 for column in range(10)).sum(dim=1)


def test_games_that_are_over_stay_as_they_are():
    games = begin(2)
    games.over[0] = 1
    go_on(games, torch.zeros(2, 8), 5)
    assert games.moves.tolist() == [0, 5]
    assert not games.boards[0].any()


def test_the_cross_entropy_method_learns():
    torch.manual_seed(0)
    search = generations(SearchSettings(controllers=32, games=1, elite=4, most=300))
    scores = [next(search).mean_lines for _ in range(6)]
    assert max(scores) > 10 * scores[0]
