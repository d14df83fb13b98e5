"""The brick wall and the replaced sine: what they compute, learn and leave behind, at small sizes."""

import pytest
import torch

import brickwork as bw
from benchmarks.peers import torch_formulations
from brickwork import ops
from examples.brick_wall import __main__ as brick_wall
from examples.brick_wall import tiles
from examples.brick_wall.pipeline import Pictures, batches
from examples.brick_wall.wall import Bond, learned
from examples.override_sin import __main__ as override_sin
from examples.override_sin.fitting import Settings, fit, loss_and_gradients, made, places
from examples.override_sin.sines import sines
from examples.sheet import sheet

SMALL = Settings(width=24, layers=3, updates=25)


def silent(number, loss):
    pass


# ---------------------------------------------------------------- the brick wall


@pytest.mark.parametrize("tile", [tiles.gradient(16, 20), tiles.photograph(24)], ids=["gradient", "photograph"])
def test_a_tile_is_laid_as_tensor_operations_lay_it(tile):
    h, w = tile.shape[:2]
    wall = Bond(7).wall(tile, 50, 70, (5, 3))
    assert torch.equal(wall, torch_formulations.brick_pad(tile, 50, 70, [5, 3], [w, 0], [7, h]))


def test_the_photograph_is_small_and_says_where_it_comes_from():
    assert tiles.PHOTOGRAPH.stat().st_size < 60_000
    assert "licence" in tiles.PHOTOGRAPH.with_suffix(".md").read_text(encoding="utf-8").lower()
    assert tiles.photograph(24).std() > 0.1


def test_workers_make_the_pictures_that_one_process_makes():
    pictures = Pictures(tiles.brick(12, 24, 2), Bond(12), count=6, size=30)
    here, there = (list(batches(pictures, 2, workers)) for workers in (0, 2))
    assert len(here) == 3
    for (one, origins), (other, others) in zip(here, there, strict=True):
        assert torch.equal(one, other)
        assert torch.equal(origins, others)
    assert not torch.equal(here[0][0][0], here[0][0][1])


def test_a_brick_is_learned_from_pictures_of_a_wall():
    brick = tiles.brick(12, 24, 2)
    pictures = Pictures(brick, Bond(12), count=240, size=40)
    losses = []
    found = learned(batches(pictures, 4, 0), Bond(12), (12, 24), lambda number, loss: losses.append(loss))
    assert (found - brick).abs().mean() < 0.05
    assert losses[-1] == pytest.approx(0.3**2, rel=0.15)


def test_the_brick_wall_draws_its_pictures(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["brick_wall", "--updates", "4", "--batch", "2", "--workers", "0"])
    brick_wall.main()
    assert (tmp_path / "demo-output" / "brick-wall.jpg").stat().st_size > 10_000


# ---------------------------------------------------------------- a sine in place of PyTorch's


def test_a_network_learns_alike_with_a_replaced_sine_and_as_before_afterwards():
    picture = tiles.photograph(16)
    kernels = torch._C._dispatch_dump("aten::sin")
    before = fit(picture, SMALL, silent)
    assert before.losses[-1] < before.losses[0] / 2
    calls = []

    def counted(x):
        calls.append(x.shape)
        return ops.sin(x)

    for name, sine in {**sines("cpu"), "counted": counted}.items():
        with bw.override("aten::sin", sine):
            during = fit(picture, SMALL, silent)
        assert during.losses == pytest.approx(before.losses, rel=1e-2, abs=1e-4), name
    assert len(calls) == SMALL.layers * SMALL.updates
    assert fit(picture, SMALL, silent).losses == before.losses
    assert torch._C._dispatch_dump("aten::sin") == kernels


def test_gradients_are_equal_under_a_replaced_sine_also_when_compiled():
    torch._dynamo.reset()
    picture = tiles.photograph(12)
    x, colours = places(12, 12), picture.reshape(-1, 3)
    model = made(SMALL, "cpu")
    compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
    expected = loss_and_gradients(model, x, colours)
    with bw.override("aten::sin", ops.sin):
        for each in (model, compiled):
            torch.testing.assert_close(loss_and_gradients(each, x, colours), expected)


def test_the_replaced_sine_is_timed_and_drawn(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    small = "--device cpu --size 8 --width 8 --updates 3 --seconds 0.005 --backend aot_eager"
    monkeypatch.setattr("sys.argv", ["override_sin", *small.split()])
    override_sin.main()
    said = capsys.readouterr().out
    assert "bit for bit" in said
    assert "the same, compiled" in said
    assert "wrong" not in said
    assert (tmp_path / "demo-output" / "override-sin.png").exists()


def test_a_sheet_has_pictures_and_curves(tmp_path):
    picture = torch.rand(4, 6)
    path = sheet({"one": picture, "two": torch.rand(4, 6, 3)}, tmp_path / "a" / "sheet.png", 2, {"loss": [1.0, 0.5]})
    assert path.read_bytes()[:4] == b"\x89PNG"
