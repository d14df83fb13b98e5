"""`python -m brickwork`: each command answers, and a wrong one is refused with the choices."""

import os
import subprocess
import sys

import pytest
import torch

from brickwork import __main__, ops
from brickwork.config import config
from brickwork.runtime import cache


@pytest.fixture
def folder(tmp_path):
    with config.override(cache_dir=str(tmp_path)):
        cache.forget()
        yield tmp_path
    cache.forget()


@pytest.fixture
def run(folder, monkeypatch, capsys):
    """Return what a command prints, run in this process."""

    def said(*arguments):
        monkeypatch.setattr("sys.argv", ["brickwork", *arguments])
        __main__.main()
        return capsys.readouterr().out

    return said


def test_doctor_says_versions_machine_settings_and_cache(tmp_path):
    """In a process of its own, as the command is given."""
    environment = {**os.environ, "BRICKWORK_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-m", "brickwork", "doctor"]
    said = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    counted = f"cache: 0 entries, 0.0 of 512 megabytes, in {tmp_path}"
    for word in ("torch 2", "llvmlite", "vectors: ", "GPU", "libdevice: ", "NVRTC: ", "BRICKWORK_CACHE_DIR", counted):
        assert word in said


def test_clear_empties_the_cache(run):
    ops.sin.warmup(torch.empty(3, 1, 2, 1, device="meta", dtype=torch.float64))
    assert "cache: 0 entries" not in run("cache")
    assert "cache: 0 entries" in run("clear")


def test_an_unknown_command_is_refused(run, capsys):
    with pytest.raises(SystemExit) as ended:
        run("nonsense")
    assert ended.value.code == 2
    assert "doctor" in capsys.readouterr().err


def test_without_a_command_it_says_which_there_are(run, capsys):
    with pytest.raises(SystemExit) as stopped:
        run()
    assert stopped.value.code == 2
    said = capsys.readouterr().err
    assert all(f"    {name} " in said for name in ("doctor", "cache", "clear", "replay", "bench"))
