"""`python -m brickwork`: each command answers, and a wrong one is refused with the choices."""

import os
import subprocess
import sys


def run(*arguments, folder):
    environment = {**os.environ, "BRICKWORK_CACHE_DIR": str(folder)}
    command = [sys.executable, "-m", "brickwork", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_doctor_says_versions_machine_settings_and_cache(tmp_path):
    said = run("doctor", folder=tmp_path).stdout
    counted = f"cache: 0 entries, 0.0 of 512 megabytes, in {tmp_path}"
    for word in ("torch 2", "llvmlite", "vectors: ", "GPU", "libdevice: ", "NVRTC: ", "BRICKWORK_CACHE_DIR", counted):
        assert word in said


def test_clear_empties_the_cache(tmp_path):
    program = "import torch; from brickwork import ops; ops.sin(torch.randn(3))"
    environment = {**os.environ, "BRICKWORK_CACHE_DIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)
    assert "cache: 0 entries" not in run("cache", folder=tmp_path).stdout
    assert "cache: 0 entries" in run("clear", folder=tmp_path).stdout


def test_an_unknown_command_is_refused(tmp_path):
    done = run("nonsense", folder=tmp_path)
    assert done.returncode == 2
    assert "doctor" in done.stderr
