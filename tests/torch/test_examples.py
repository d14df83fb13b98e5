"""The examples, run at small sizes: what they check themselves, and what they promise."""

import pytest
import torch

from brickwork import ops
from examples.cross_entropy import __main__ as cross_entropy
from examples.language_model.model import LanguageModel, mix_by_convolution
from examples.language_model.text import standard_library, written
from examples.language_model.training import Settings, train
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


def test_the_cross_entropy_method_finds_the_lowest_point(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert cross_entropy.main(512, 32, 8)
    assert (tmp_path / "demo-output" / "cross-entropy.png").stat().st_size > 10_000


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
