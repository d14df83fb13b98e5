"""Operators wherever Python code lives, beside whatever else is imported, on any disk, in threads and processes."""

import copy
import doctest
import errno
import importlib
import importlib.util
import os
import signal
import stat
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import zipfile
from functools import wraps
from pathlib import Path

import pytest
import torch

import brickwork as bw
from brickwork.config import config
from brickwork.runtime import cache, stages
from support.sweep import sampled

SOURCE = """
import torch
import brickwork as bw

@bw.op("{namespace}::shift")
def shift(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        out[i] = x[i] + {by}
    return out
"""
OTHERS = ("triton", "numba", "sklearn")
"""Each runs before us or after us in a sample, and in the other order with the rest."""
CHECK = "assert torch.equal(shift(torch.ones(3)), torch.full((3,), 3.0))\n"


def start(folder: Path, *arguments: str, text: str | None = None, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run Python in a folder, with a cache of its own."""
    environment = {**os.environ, "PYTHONPATH": str(Path(bw.__file__).parents[1])}
    environment |= {"BRICKWORK_CACHE_DIR": str(folder / "cache"), **variables}
    command = [sys.executable, *arguments]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, input=text, check=False, timeout=120
    )


def succeeds(folder: Path, *arguments: str, text: str | None = None, **variables: str) -> str:
    done = start(folder, *arguments, text=text, **variables)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


# ---------------------------------------------------------------- where a definition stands


def by_two(function):
    @wraps(function)
    def wrapper(*arguments):
        return function(*arguments)

    return wrapper


class Holder:
    """A definition in the body of a class, and one in a method."""

    @staticmethod
    @bw.op("bwcitizen::in_class")
    def doubled(x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        for i in range(x.shape[0]):
            out[i] = 2 * x[i]
        return out

    def make(self, by: float) -> bw.Op:
        def scaled(x: torch.Tensor) -> torch.Tensor:
            out = torch.empty_like(x)
            for i in range(x.shape[0]):
                out[i] = by * x[i]
            return out

        return bw.op("bwcitizen::in_method")(scaled)


def test_in_a_class_and_in_a_method():
    assert torch.equal(Holder.doubled(torch.ones(3)), torch.full((3,), 2.0))
    assert torch.equal(Holder().make(3.0)(torch.ones(3)), torch.full((3,), 3.0))
    assert torch.equal(Holder().make(4.0)(torch.ones(3)), torch.full((3,), 4.0))


def test_in_a_cell_of_a_notebook(monkeypatch):
    """Notebooks put the text of a cell into `linecache`, under a name that is no file; a cell may be run again."""
    for number, by in enumerate((2, 5)):
        source = SOURCE.format(namespace="bwcitizen_cell", by=by)
        name = f"<ipython-input-{number}-abc>"
        entry = (len(source), None, source.splitlines(keepends=True), name)
        monkeypatch.setitem(importlib.import_module("linecache").cache, name, entry)
        space: dict = {"__name__": "__main__"}
        exec(compile(source, name, "exec"), space)
        assert torch.equal(space["shift"](torch.ones(3)), torch.full((3,), 1.0 + by))


def test_in_a_doctest():
    source = SOURCE.format(namespace="bwcitizen_doc", by=2)
    lines = [line for line in source.strip().splitlines() if line]
    shown = [f"{'...' if line[0] in ' d' else '>>>'} {line}\n" for line in lines]
    text = "".join([*shown, "...\n>>> shift(torch.ones(3)).sum()\ntensor(9.)\n"])
    test = doctest.DocTestParser().get_doctest(text, {}, "shift", None, 0)
    assert doctest.DocTestRunner().run(test).failed == 0


def test_under_another_decorator():
    """A function that another decorator has wrapped is no longer what its source says: it is refused."""

    @by_two
    def wrapped(x: torch.Tensor) -> None:
        for i in range(x.shape[0]):
            x[i] = 0.0

    with pytest.raises(bw.CompileError, match="error BW001: `wrapped` was made by another decorator"):
        bw.op("bwcitizen::wrapped")(wrapped)


def test_from_a_zip_file(tmp_path, monkeypatch):
    with zipfile.ZipFile(tmp_path / "package.zip", "w") as archive:
        archive.writestr("zipped_operator.py", SOURCE.format(namespace="bwcitizen_zip", by=2))
    monkeypatch.syspath_prepend(str(tmp_path / "package.zip"))
    module = importlib.import_module("zipped_operator")
    assert torch.equal(module.shift(torch.ones(3)), torch.full((3,), 3.0))


@pytest.mark.parametrize("how", ["-c", "stdin"])
def test_without_a_source_the_error_says_where_to_write(tmp_path, how):
    source = SOURCE.format(namespace="bwcitizen_typed", by=2) + "\n"
    typed = {"-c": ("-c", source), "stdin": ("-",)}[how]
    done = start(tmp_path, *typed, text=None if how == "-c" else source)
    assert "BW001" in done.stderr
    assert "write it in a file or in a cell of a notebook" in done.stderr


def test_a_module_that_is_loaded_again(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    path = tmp_path / "reloaded_module.py"
    for by in (2, 7):
        path.write_text(SOURCE.format(namespace="bwcitizen_reload", by=by))
        os.utime(path, (by, by))
        importlib.invalidate_caches()
        known = sys.modules.get("reloaded_module")
        module = importlib.import_module("reloaded_module") if known is None else importlib.reload(known)
        assert torch.equal(module.shift(torch.ones(3)), torch.full((3,), 1.0 + by))


def test_tracing_does_not_stop_a_definition(tmp_path, monkeypatch):
    (tmp_path / "traced_operator.py").write_text(SOURCE.format(namespace="bwcitizen_trace", by=2))
    monkeypatch.syspath_prepend(str(tmp_path))
    before = sys.gettrace(), sys.getprofile()
    sys.settrace(lambda *_: None)
    sys.setprofile(lambda *_: None)
    try:
        result = importlib.import_module("traced_operator").shift(torch.ones(3))
    finally:
        sys.settrace(before[0])
        sys.setprofile(before[1])
    assert torch.equal(result, torch.full((3,), 3.0))


def test_optimised_strict_and_with_torchs_number_of_threads(tmp_path):
    """Under `-O` the asserts of an operator hold; no warning stops the import; threads are torch's, that many."""
    program = """
        import os, warnings, torch
        warnings.simplefilter("error")
        import brickwork
        from fresh import shift

        try:
            shift(torch.ones(3, 3))
        except AssertionError as error:
            print("held", error)

        def threads():
            return len(os.listdir("/proc/self/task"))

        torch.set_num_threads(1)
        x = torch.ones(1_000_000)
        shift(x)
        before = threads()
        shift(x)
        print("one" if threads() == before else "more")
        torch.set_num_threads(3)
        shift(x)
        print("several" if before < threads() <= before + 2 else f"wrong: {before}, then {threads()}")
        torch.set_num_threads(1)
        assert torch.equal(shift(x), x + 2)
        """
    text = SOURCE.format(namespace="bwcitizen_fresh", by=2)
    (tmp_path / "fresh.py").write_text(text.replace("    out =", '    assert x.ndim == 1, "one axis"\n    out ='))
    (tmp_path / "program.py").write_text(textwrap.dedent(program))
    said = succeeds(tmp_path, "-O", "program.py")
    for word in ("held", "one axis", "one\n", "several"):
        assert word in said


# ---------------------------------------------------------------- beside others


@pytest.mark.parametrize(
    ("other", "first"), sampled((other, first != (other == "numba")) for other in OTHERS for first in (True, False))
)
def test_beside_another_compiler(tmp_path, other, first):
    if importlib.util.find_spec(other) is None:
        pytest.skip(f"{other} is not installed")
    (tmp_path / "shifting.py").write_text(SOURCE.format(namespace="bwcitizen_beside", by=2))
    ours = f"import torch\nfrom shifting import shift\n{CHECK}"
    theirs = f"import {other}\n"
    if other == "numba":
        theirs += "assert numba.njit(lambda v: v + 1)(1) == 2\n"
    (tmp_path / "both.py").write_text(ours + theirs + CHECK if first else theirs + ours + theirs)
    succeeds(tmp_path, "both.py")


# ---------------------------------------------------------------- threads, processes, signals


def test_several_cold_operators_at_once():
    """Each is compiled once, however many threads meet it."""
    made: list[str] = []
    inner = stages.build

    def counted(definition, *arguments, **named):
        made.append(definition.name)
        return inner(definition, *arguments, **named)

    def third(x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        for i in range(x.shape[0]):
            out[i] = x[i] / 3
        return out

    def fifth(x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        for i in range(x.shape[0]):
            out[i] = x[i] / 5
        return out

    with pytest.MonkeyPatch.context() as patch, config.override(cache_size=0):
        patch.setattr(stages, "build", counted)
        cache.forget()
        operators = [bw.op(f"bwcitizen::{function.__name__}")(function) for function in (third, fifth)]
        barrier = threading.Barrier(6)
        wrong: list[int] = []

        def call(number: int) -> None:
            barrier.wait()
            x = torch.full((100,), 15.0)
            if not torch.equal(operators[number % 2](x), x / (3, 5)[number % 2]):
                wrong.append(number)

        threads = [threading.Thread(target=call, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not wrong
    assert sorted(made) == ["fifth", "third"]


def test_a_spawned_process_takes_operators_by_name(tmp_path):
    (tmp_path / "spawning.py").write_text(
        SOURCE.format(namespace="bwcitizen_spawn", by=2)
        + textwrap.dedent("""
        def work(op, x):
            return op(x)

        if __name__ == "__main__":
            import multiprocessing, spawning
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                assert torch.equal(pool.apply(work, (spawning.shift, torch.ones(3))), torch.full((3,), 3.0))
        """)
    )
    succeeds(tmp_path, "spawning.py")


def test_two_processes_compile_into_one_cache(tmp_path):
    (tmp_path / "racing.py").write_text(SOURCE.format(namespace="bwcitizen_race", by=2) + CHECK)
    environment = {**os.environ, "PYTHONPATH": str(Path(bw.__file__).parents[1])}
    environment["BRICKWORK_CACHE_DIR"] = str(tmp_path / "cache")
    running = [
        subprocess.Popen([sys.executable, "racing.py"], cwd=tmp_path, env=environment, stderr=subprocess.PIPE)
        for _ in range(2)
    ]
    assert [(each.communicate()[1], each.returncode) for each in running] == [(b"", 0), (b"", 0)]


@bw.op("bwcitizen::slow_")
def slow_(x: torch.Tensor, turns: int) -> None:
    for t in range(turns):
        for i in range(len(x)):
            x[i] = x[i] * 0.5 + 1.0
    for i in range(len(x)):
        x[i] = turns


def test_an_interrupted_call_ends_before_it_raises():
    """Handlers of signals wait for the end of a call, and see all of what it stores."""
    x, turns, after = torch.zeros(1 << 12), 100_000, []
    slow_(x, 1)

    def handler(*_):
        after.append(x.unique().tolist())
        raise KeyboardInterrupt

    previous = signal.signal(signal.SIGINT, handler)
    try:
        timer = threading.Timer(0.05, lambda: os.kill(os.getpid(), signal.SIGINT))
        with pytest.raises(KeyboardInterrupt):  # noqa: PT012  # the handler runs at the next step of Python, if not there
            timer.start()
            slow_(x, turns)
            timer.join()
            time.sleep(0.1)
    finally:
        signal.signal(signal.SIGINT, previous)
    assert after == [[turns]]
    assert x.unique().tolist() == [turns]


def test_an_interrupted_compilation_leaves_things_usable(monkeypatch):
    def zeroed(x: torch.Tensor) -> None:
        for i in range(x.shape[0]):
            x[i] = 0.0

    operator = bw.op("bwcitizen::interrupted")(zeroed)
    inner = stages.emit_entry

    def slow(*arguments, **named):
        signal.raise_signal(signal.SIGINT)
        time.sleep(0)
        return inner(*arguments, **named)

    x = torch.ones(3)
    with monkeypatch.context() as patch, config.override(cache_size=0):
        cache.forget()
        patch.setattr(stages, "emit_entry", slow)
        handler = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have it ignored
        with pytest.raises(KeyboardInterrupt):
            operator(x)
        signal.signal(signal.SIGINT, handler)
    operator(x)
    assert torch.equal(x, torch.zeros(3))


class Layer(torch.nn.Module):
    """A module that holds an operator."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(3))
        self.operator = Holder.doubled

    def forward(self, x):
        return self.operator(x) + self.weight


def test_modules_that_hold_operators_are_copied_and_pickled(tmp_path):
    layer = Layer()
    torch.save(layer, tmp_path / "layer")
    for copied in (copy.deepcopy(layer), torch.load(tmp_path / "layer", weights_only=False)):
        assert copied.operator is Holder.doubled
        assert copied.weight is not layer.weight
        assert torch.equal(copied(torch.ones(3)), torch.full((3,), 3.0))


# ---------------------------------------------------------------- disks


def test_a_home_that_cannot_be_written(tmp_path):
    if os.geteuid() == 0:
        pytest.skip("permissions do not stop the superuser; `test_cache.py` puts a file in the way instead")
    home = tmp_path / "home"
    home.mkdir()
    (tmp_path / "homeless.py").write_text(SOURCE.format(namespace="bwcitizen_home", by=2) + CHECK)
    home.chmod(stat.S_IRUSR | stat.S_IXUSR)
    said = succeeds(tmp_path, "homeless.py", HOME=str(home), XDG_CACHE_HOME="", BRICKWORK_CACHE_DIR="")
    assert "cannot write to its cache" in said


def test_a_disk_that_is_full(tmp_path, monkeypatch):
    def full(**_):
        raise OSError(errno.ENOSPC, "No space left on device")

    operator, x = Holder().make(5.0), torch.ones(3)
    with config.override(cache_dir=str(tmp_path / "cache")):
        cache.forget()
        monkeypatch.setattr(cache._state, "warned", False)
        monkeypatch.setattr(tempfile, "mkstemp", full)
        with pytest.warns(bw.BrickworkWarning, match="No space left on device"):
            assert torch.equal(operator(x), torch.full((3,), 5.0))


@bw.op("bwscript::blend")
def blend(x: torch.Tensor, others: list[torch.Tensor], weight: float, times: int = 2) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        out[i] = x[i] + weight * times * others[0][i]
    return out


def blended(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return blend(x, [y], times=4, weight=0.5) + 1


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_scripted_code_calls_an_operator_by_its_handle(tmp_path: Path):
    x, y = torch.ones(3), torch.ones(3, requires_grad=True)
    scripted = torch.jit.script(blended)
    torch.testing.assert_close(scripted(x, y), blended(x, y))
    (grad,) = torch.autograd.grad(scripted(x, y).sum(), y)
    assert grad.tolist() == [2.0] * 3
    file = str(tmp_path / "blended.pt")
    torch.jit.save(scripted, file)
    torch.testing.assert_close(torch.jit.load(file)(x, y), blended(x, y))


@pytest.mark.filterwarnings("ignore:BW403", "ignore:.*torch.jit:DeprecationWarning")
def test_scripts_call_the_code_of_their_handle_when_its_name_was_defined_again():
    def scaled_by(by):
        @bw.op("bwcitizen::scaled_anew")
        def scaled(x: torch.Tensor) -> torch.Tensor:
            out = torch.empty_like(x)
            for i in range(x.shape[0]):
                out[i] = by * x[i]
            return out

        return scaled

    old, new = scaled_by(2.0), scaled_by(3.0)

    def by_old(x: torch.Tensor) -> torch.Tensor:
        return old(x) + 0

    def by_new(x: torch.Tensor) -> torch.Tensor:
        return new(x) + 0

    x = torch.ones(2)
    old(x)
    assert torch.jit.script(by_old)(x).tolist() == [2.0, 2.0]
    assert torch.jit.script(by_new)(x).tolist() == [3.0, 3.0]
