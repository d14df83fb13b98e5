"""The cache: an entry is found again, here and in other processes; damage and read-only folders cost a compile."""

import math
import multiprocessing
import os
import pwd
import tempfile
import threading
import time
import warnings

import pytest
import torch

import brickwork as bw
from brickwork.config import config, temporary_cache
from brickwork.diagnostics.errors import BrickworkWarning
from brickwork.runtime import cache
from brickwork.runtime.cache import Entry

ENTRY = Entry({"explain": "loop i: parallel", "sites": [1, 2]}, {"object": bytes(range(256)) * 8, "thunk": b""})


def doubled(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        out[i] = x[i] * 2
    return out


@pytest.fixture(autouse=True)
def folder(tmp_path):
    with config.override(cache_dir=str(tmp_path / "cache")):
        cache.clear()
        cache._state.warned = False
        yield tmp_path / "cache"
    cache.forget()


def test_an_entry_is_found_in_memory_and_on_disk():
    key = cache.key_of(["one"])
    assert cache.get(key) is None
    cache.put(key, ENTRY)
    assert cache.get(key) is ENTRY
    cache.forget()
    found = cache.get(key)
    assert found == ENTRY
    assert found is not ENTRY
    assert cache.get(key) is found


def test_the_folder_is_looked_through_for_each_part_of_the_limit_that_was_written(monkeypatch):
    looks = []
    monkeypatch.setattr(cache, "_files", lambda directory: looks.append(directory) or [])
    monkeypatch.setattr(cache._state, "written", math.inf)
    for number in range(3):
        cache.put(cache.key_of([f"looked {number}"]), ENTRY)
    assert len(looks) == 1
    with config.override(cache_size=1):
        for number in range(9):
            cache.put(cache.key_of([f"looked again {number}"]), ENTRY)
    assert len(looks) == 2


def test_keys_tell_parts_apart():
    assert cache.key_of(["ab", "c"]) != cache.key_of(["a", "bc"])
    assert cache.key_of(["ab"]) == cache.key_of(["ab"])


@pytest.mark.parametrize("place", [0, 20, 60, -1])
def test_a_damaged_entry_is_absent_with_one_warning(folder, place):
    key = cache.key_of(["two"])
    cache.put(key, ENTRY)
    (path,) = folder.glob("??/*")
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)
    cache.forget()
    with pytest.warns(BrickworkWarning, match="damaged"):
        assert cache.get(key) is None
    assert not path.exists()
    cache.put(key, ENTRY)
    cache.forget()
    assert cache.get(key) == ENTRY


def test_a_cut_entry_is_absent(folder):
    cache.put("ab" * 32, ENTRY)
    (path,) = folder.glob("??/*")
    for length in (0, 5, 40, 100):
        assert cache.decode(path.read_bytes()[:length]) is None


def test_a_folder_that_cannot_be_written_warns_once(tmp_path):
    (tmp_path / "file").write_text("")
    with config.override(cache_dir=str(tmp_path / "file")):
        with pytest.warns(BrickworkWarning, match="cannot write"):
            cache.put("ab" * 32, ENTRY)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            cache.put("cd" * 32, ENTRY)
        assert cache.get("ab" * 32) is ENTRY


def test_a_user_without_a_home_has_a_temporary_cache_of_his_own(tmp_path, monkeypatch):
    def unknown(_):
        raise KeyError("no such user")

    for variable in ("HOME", "XDG_CACHE_HOME", "BRICKWORK_CACHE_DIR"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", unknown)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    expected = tmp_path / f"brickwork-{os.getuid()}"
    for others in (False, True):
        temporary_cache.cache_clear()
        with config.override(cache_dir=""), warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            operator = bw.op("bwcache::homeless")(doubled)
            folder = config.cache_path()
            assert operator(torch.ones(2)).tolist() == [2, 2]
            assert (folder == expected, folder.is_relative_to(tmp_path)) == (not others, True)
            assert folder.stat().st_mode & 0o077 == 0
            assert [*folder.glob("??/*.entry")]
        (found,) = told
        assert (found.filename, str(folder) in str(found.message)) == (__file__, True)
        expected.chmod(0o777)
        cache.forget()
    with config.override(cache_dir="~/elsewhere"):
        assert config.cache_path() == folder
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    temporary_cache.cache_clear()
    with config.override(cache_dir=""), pytest.warns(BrickworkWarning) as told:
        cache.put("ab" * 32, ENTRY)
    assert ["no home folder" in str(each.message) for each in told] == [True, False]
    temporary_cache.cache_clear()


def test_an_unwritable_cache_is_told_at_the_users_line(tmp_path):
    (tmp_path / "file").write_text("")
    with (
        config.override(cache_dir=str(tmp_path / "file")),
        pytest.warns(BrickworkWarning, match="cannot write") as told,
    ):
        bw.op("bwcache::unwritable")(doubled)(torch.ones(3, dtype=torch.float64))
    assert [each.filename for each in told] == [__file__]


def test_nothing_unfinished_is_left(folder):
    cache.put("ab" * 32, ENTRY)
    assert [path.name for path in folder.glob("*/*")] == ["ab" * 32 + ".entry"]


def test_the_entries_not_used_for_longest_go_first(folder):
    big = Entry({}, {"object": os.urandom(300_000)})
    with config.override(cache_size=1):
        for number in range(3):
            cache.put(f"{number:064x}", big)
            os.utime(next(folder.glob(f"*/{number:064x}*")), (number, number))
        cache.forget()
        assert cache.get(f"{0:064x}") is not None  # used now: the newest
        cache.put(f"{3:064x}", big)
        left = {int(path.stem, 16) for path in folder.glob("??/*")}
    assert left == {0, 3}


def test_size_zero_turns_the_disk_off(folder):
    with config.override(cache_size=0):
        cache.put("ab" * 32, ENTRY)
        assert cache.get("ab" * 32) is ENTRY
    assert not folder.exists()


def test_threads_that_meet_make_an_entry_once():
    made = []
    barrier = threading.Barrier(4)

    def make():
        made.append(1)
        time.sleep(0.05)
        return ENTRY

    def ask():
        barrier.wait()
        assert cache.obtain("ef" * 32, make)[0] is ENTRY

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == [1]
    assert cache.obtain("ef" * 32, make) == (ENTRY, True)


def test_info_counts():
    before = cache.info()
    cache.put("ab" * 32, ENTRY)
    cache.get("ab" * 32)
    cache.forget()
    cache.get("ab" * 32)
    cache.get("cd" * 32)
    after = cache.info()
    assert after.entries == 1
    assert after.bytes == len(cache.encode(ENTRY))
    assert after.memory_hits - before.memory_hits == 1
    assert after.disk_hits - before.disk_hits == 1
    assert after.misses - before.misses == 1


def _work(directory, number):
    with config.override(cache_dir=directory):
        for turn in range(40):
            key = f"{turn % 4:064x}"
            entry = Entry({"turn": turn % 4}, {"object": bytes([turn % 4]) * 100_000})
            if (number + turn) % 3:
                cache.put(key, entry)
            cache.forget()
            found = cache.get(key)
            assert found is None or found == entry
    os._exit(0)


def test_processes_share_the_folder(folder):
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=_work, args=(str(folder), number)) for number in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0, 0, 0]
    assert {path.name for path in folder.glob("*/*")} == {f"{turn:064x}.entry" for turn in range(4)}
