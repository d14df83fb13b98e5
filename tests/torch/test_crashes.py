"""Faults of brickwork itself: the error, the crash bundle and its replay; stages that are written down or replaced."""

import json
import runpy
import sys
import traceback
import warnings
from collections.abc import Generator
from pathlib import Path
from typing import NoReturn

import pytest
import torch

import brickwork as bw
from brickwork.codegen.llvm import compile_module
from brickwork.config import config
from brickwork.runtime import cache, device_ptx, stages
from brickwork.runtime.replay import replay
from brickwork.target.target import Target
from brickwork.transform import derive


def weight(v: torch.Tensor) -> torch.Tensor:
    return v * 2.0


def doubled(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        out[i] = weight(x[i])
    return out


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path) -> Generator[None]:
    with config.override(cache_dir=str(tmp_path / "cache")):
        cache.forget()
        yield
    cache.forget()


@pytest.fixture
def operator(request: pytest.FixtureRequest) -> bw.Op:
    return bw.op(f"bwcrash::c{abs(hash(request.node.name))}")(doubled)


def failing(*arguments: object, **named: object) -> NoReturn:
    del arguments, named
    raise KeyError("what no stage should say")


def test_a_surprise_leaves_a_bundle_that_replays(
    operator: bw.Op, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    x = torch.randn(5)
    with monkeypatch.context() as patch:
        patch.setattr(stages, "emit_entry", failing)
        with pytest.raises(bw.InternalError, match="fault of brickwork, not of your code") as caught:
            operator(x)
        bundle = caught.value.bundle or ""
        assert bundle.startswith(str(tmp_path / "cache"))
        assert f"python -m brickwork replay {bundle}" in str(caught.value)
        shown = "".join(traceback.format_exception(caught.value))
        assert "/brickwork/" not in shown.replace(str(tmp_path), "").split("\nbrickwork.diagnostics")[0]
        said, fails = replay(bundle)
        assert fails
        assert "the same failure" in said
        assert "KeyError: 'what no stage should say'" in said
    content = json.loads(Path(bundle).read_text())
    assert [*content["stages"]] == ["ir", "schedule"]
    assert "def doubled" in content["sources"][0]
    assert "def weight" in content["sources"][1]
    assert "failing" in content["traceback"]
    assert any(each.startswith("torch 2") for each in content["versions"])
    said, fails = replay(bundle)
    assert not fails
    assert "no failure any more" in said
    torch.testing.assert_close(operator(x), 2 * x)  # the process lives, and nothing wrong was kept


def test_what_llvm_refuses_goes_there_too(operator: bw.Op, monkeypatch: pytest.MonkeyPatch) -> None:
    def compile_nonsense(text: str, target: Target) -> bytes:
        return compile_module(f"{text}\nnonsense", target)

    monkeypatch.setattr(stages, "compile_in_parts", compile_nonsense)
    with pytest.raises(bw.InternalError, match="LLVM refused") as caught:
        operator(torch.randn(5))
    said, _ = replay(caught.value.bundle or "")
    assert "the same failure" in said


def test_a_failure_for_a_gpu_replays_without_one(operator: bw.Op, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_ptx, "compile_device", failing)
    with pytest.raises(bw.InternalError) as caught:
        operator.warmup(torch.randn(5), device="sm_90")
    said, _ = replay(caught.value.bundle or "")
    assert "the same failure" in said


def test_a_failure_before_the_ir_is_told_again(operator: bw.Op, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(derive, "lower", failing)
    with pytest.raises(bw.InternalError) as caught:
        operator(torch.randn(5))
    said, fails = replay(caught.value.bundle or "")
    assert fails
    assert "before there was IR" in said
    assert "what no stage should say" in said


def test_a_surprise_at_decoration(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["brickwork.op"], "define", failing)
    with pytest.raises(bw.InternalError, match="bwcrash::define cannot be compiled") as caught:
        bw.op("bwcrash::define")(doubled)
    assert caught.value.bundle is not None


def test_without_a_cache_the_bundle_is_a_temporary_file(
    operator: bw.Op, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(stages, "emit_entry", failing)
    with config.override(cache_dir=str(tmp_path / "file")), pytest.raises(bw.InternalError) as caught:
        operator(torch.randn(5))
    assert "brickwork-crashes" in (caught.value.bundle or "")


def test_what_is_no_bundle_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("{}")
    for name in ("file", "missing"):
        with pytest.raises(bw.BrickworkError, match="is no crash bundle"):
            replay(str(tmp_path / name))


def test_all_frames_are_shown_on_demand(operator: bw.Op, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stages, "emit_entry", failing)
    with config.override(frames=1), pytest.raises(bw.InternalError) as caught:
        operator(torch.randn(5))
    assert "in failing" in "".join(traceback.format_exception(caught.value))


def test_a_stack_that_overflows_is_our_fault_unless_the_source_is_deep(
    operator: bw.Op, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The depth of a helper counts where it is called."""

    def endless(*arguments: object) -> NoReturn:
        raise RecursionError

    monkeypatch.setattr(derive, "lower", endless)
    with pytest.raises(bw.InternalError, match="RecursionError") as caught:
        operator(torch.randn(5))
    assert json.loads(Path(caught.value.bundle or "").read_text())["operator"] == "doubled"

    steps = range(sys.getrecursionlimit() // 8)  # some libraries raise the limit
    branches = "".join(f"    {'el' if step else ''}if v < {step}:\n        w = {step}.0\n" for step in steps)
    helper = f"def stepped(v):\n    w = 200.0\n{branches}    return w\n"
    body = "def f(x: Tensor) -> None:\n    for i in range(x.shape[0]):\n        x[i] = stepped(x[i])\n"
    (tmp_path / "deep.py").write_text(f"from torch import Tensor\n{helper}{body}")
    space = runpy.run_path(str(tmp_path / "deep.py"))
    with pytest.raises(bw.CompileError, match="BW014: `f` is nested too deeply"):
        bw.op("bwcrash::deep")(space["f"])(torch.randn(5))


# ---------------------------------------------------------------- dumps


def test_stages_are_written_in_order_also_from_a_warm_cache(operator: bw.Op, tmp_path: Path) -> None:
    for name in ("cold", "warm"):
        with config.override(dump_dir=str(tmp_path / name)):
            bw.op(operator.name)(doubled)(torch.randn(5))
        (folder,) = (tmp_path / name).iterdir()
        found = sorted(path.name for path in folder.iterdir())
        assert found == ["1-ir.txt", "2-schedule.txt", "3-llvm.txt", "explain.txt", "signature.txt"]
        assert folder.name.startswith("doubled-")
        assert "for i" in (folder / "1-ir.txt").read_text()


@pytest.mark.parametrize(("stage", "old", "new"), [("1-ir", "2.0", "3.0"), ("3-llvm", "0x4000000000000000", "3.0")])
def test_an_edited_stage_is_used_and_not_kept(operator: bw.Op, tmp_path: Path, stage: str, old: str, new: str) -> None:
    x = torch.randn(5, dtype=torch.float64)
    with config.override(dump_dir=str(tmp_path / "dump")):
        torch.testing.assert_close(operator(x), 2 * x)
    (folder,) = (tmp_path / "dump").iterdir()
    text = (folder / f"{stage}.txt").read_text()
    for path in folder.iterdir():
        path.unlink()
    assert old in text
    (folder / f"{stage}.txt").write_text(text.replace(old, new))
    with config.override(override_dir=str(tmp_path / "dump")):
        edited = bw.op(operator.name)(doubled)
        with pytest.warns(bw.BrickworkWarning, match="stand in for what brickwork makes"):
            torch.testing.assert_close(edited(x), 3 * x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.testing.assert_close(bw.op(operator.name)(doubled)(x), 2 * x)


def test_an_edited_stage_that_cannot_be_read_is_told(operator: bw.Op, tmp_path: Path) -> None:
    with config.override(dump_dir=str(tmp_path)):
        operator(torch.randn(5))
    (folder,) = tmp_path.glob("doubled-*")
    for path in folder.iterdir():
        path.unlink()
    (folder / "1-ir.txt").write_text("program(")
    with (
        config.override(override_dir=str(tmp_path)),
        pytest.warns(bw.BrickworkWarning),
        pytest.raises(bw.BrickworkError, match=r"cannot be compiled from the edited ir\.txt"),
    ):
        bw.op(operator.name)(doubled)(torch.randn(5))
