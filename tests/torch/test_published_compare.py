"""The comparison of the published operators with kernels beside them, with stand-ins on the processor."""

# pyright: basic
import sys
from pathlib import Path

import pytest
import torch

from benchmarks.published import PUBLISHED
from benchmarks.published.__main__ import main
from benchmarks.published.compare import BASE, OURS, THEIRS, EndedError, Worker, cases, compare, differences
from benchmarks.published.measured import rows
from benchmarks.published.peers import PEERS, Kernels, listed
from benchmarks.published.worker import FORWARD, GRADIENT, Answers, Contender, weights
from brickwork.bench.record import load_all

RIGHT = """
import torch
def silu_and_mul(x):
    gate, other = x.chunk(2, 1)
    return torch.nn.functional.silu(gate) * other
"""
SCATTER = """
import torch
def scatter_add(src, index, rows):
    return src.new_zeros((rows, src.shape[1])).index_add(0, index, src)
def scatter_add_backward(src, index, gradient):
    return gradient[index]
"""


ANSWERS = """
import json, os, sys, time
for line in sys.stdin:
    name = json.loads(line).get("name")
    if name == "ends":
        os._exit(3)
    if name == "waits":
        time.sleep(100)
    print(json.dumps({"first": 1.0}), flush=True)
"""


class Beside:
    """A contender in this process, of which one operator ends its process."""

    def __init__(self, arguments, environment, patience):
        self.answers = Answers(Kernels(Path(arguments[-1])) if "--built" in arguments else None, "cpu")

    def ask(self, **request):
        reply = self.answers.answer(request)
        if "SystemExit" in reply.get("error", ""):
            raise EndedError("the process ended")
        return reply

    def close(self):
        pass


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "silu_and_mul.py").write_text(RIGHT)
    (tmp_path / "scatter_add.py").write_text(SCATTER)
    monkeypatch.setattr("benchmarks.published.compare.warm", lambda *_: None)
    monkeypatch.setattr("benchmarks.published.compare.Worker", Beside)
    return tmp_path


def compared(names, built, **how):
    plain = {"sizes": ("tiny",), "device": "cpu", "jobs": 1, "progress": lambda _: None}
    return compare(names, built, None, **{**plain, **how})


def test_each_operator_has_a_peer():
    assert list(PEERS) == [each.name for each in PUBLISHED]


def test_cases_are_each_size_and_direction():
    found = [
        (each.name, size, direction)
        for each, size, direction in cases(("nms", "rotary"), ("small",), (FORWARD, GRADIENT))
    ]
    assert found == [("nms", "small", FORWARD), ("rotary", "small", FORWARD), ("rotary", "small", GRADIENT)]
    assert len(list(cases((), ("small", "large"), (FORWARD, GRADIENT)))) == 2 * (
        30 + sum(bool(each.gradient) for each in PUBLISHED)
    )


def test_ours_and_theirs_are_compared_and_kept(folder, tmp_path, capsys):
    kept = tmp_path / "record.json"
    how = ["--device", "cpu", "--sizes", "tiny", "--jobs", "1", "--base", sys.path[0]]
    assert main(["compare", "scatter_add", "--built", str(folder), "--record", str(kept), *how]) == 0
    (result,) = load_all(kept)
    assert [case.title for case in result.cases] == [
        "scatter_add, tiny, forward",
        "scatter_add, tiny, gradient",
    ]
    for case in result.cases:
        assert set(case.timings) == {OURS, THEIRS, BASE}
        assert case.reference == THEIRS
        assert case.notes["agreement"] == "the results agree"
    assert "gradient  largest: scatter_add tiny" in capsys.readouterr().out


def test_kernels_that_differ_end_or_are_not_there_are_named(folder):
    (folder / "silu_and_mul.py").write_text(RIGHT.replace("* other", "+ other"))
    (folder / "scatter_add.py").write_text("def scatter_add(*_):\n    raise RuntimeError('SystemExit')\n")
    found = compared(["silu_and_mul", "scatter_add", "nms"], folder)
    said = {case.each.name: case.notes for case in found if case.direction == FORWARD}
    assert said["silu_and_mul"]["agreement"].startswith("DIFFER: result 0: ")
    assert said["scatter_add"][THEIRS] == "failed: make: the process ended"
    assert "there is neither nms.so nor nms.py" in said["nms"][THEIRS]
    measured = {case.each.name: set(case.seconds) for case in found if case.direction == FORWARD}
    assert measured == {"silu_and_mul": {OURS, THEIRS}, "scatter_add": {OURS}, "nms": {OURS}}


def test_no_case_is_begun_late(folder):
    said = []
    assert not compared(["silu_and_mul"], folder, seconds=0.0, progress=said.append)
    assert "not measured: silu_and_mul, tiny, forward" in said


def test_differences():
    x = torch.linspace(-1, 1, 1000)
    assert not differences([x], [x + 1e-3])
    assert "100.0%" in differences([x], [x + 1e-2])
    assert not differences([x], [x + 1e-2], 0.05)
    assert not differences([x.half()], [(x + 5e-3).half()])
    near = x.clone()
    near[0] = 5
    assert not differences([x], [near])
    near[:3] = 5
    assert differences([x], [near]) == "DIFFER: result 0: 0.3% of the elements, by at most 6"
    assert not differences([x], [None])
    assert not differences([torch.full((2,), torch.inf)], [torch.full((2,), torch.inf)])
    assert "DIFFER" in differences([torch.zeros(2)], [torch.full((2,), torch.nan)])
    assert "DIFFER" in differences([torch.arange(4)], [torch.arange(4).flip(0)])
    assert differences([x], [x[:5]]) == "DIFFER: result 0: (1000,) beside (5,)"
    assert differences([x], []) == "DIFFER: 1 results beside 0"


def test_a_worker_that_does_not_start_is_started_once(tmp_path):
    (tmp_path / "torch.py").write_text("raise SystemExit(4)\n")
    worker = Worker(["--device", "cpu"], {"PATH": "", "PYTHONPATH": ":".join([str(tmp_path), *sys.path])})
    for _ in range(2):
        with pytest.raises(EndedError, match="does not start: the process ended with 4"):
            worker.ask(do="make", name="nms", size="tiny", direction=FORWARD)
        (tmp_path / "torch.py").unlink(missing_ok=True)


def test_a_worker_calls_an_operator():
    worker = Worker(["--device", "cpu"], {"PATH": "", "PYTHONPATH": ":".join(sys.path)})
    reply = worker.ask(do="make", name="nms", size="tiny", direction=FORWARD)
    worker.close()
    assert reply["first"] > 0


def test_a_worker_that_ended_or_was_ended_is_asked_again():
    worker = Worker([], {"PATH": ""}, patience=1.0)
    worker._command = [sys.executable, "-S", "-c", ANSWERS]
    for name, why in (("ends", "the process ended with 3"), ("waits", "took over 1 s")):
        with pytest.raises(EndedError, match=why):
            worker.ask(do="make", name=name)
        assert worker.ask(60.0, do="make", name="nms")["first"] > 0
    worker.close()


@pytest.mark.parametrize("name", [each.name for each in PUBLISHED if each.gradient and not PEERS[each.name].forward])
def test_backward_kernels_get_what_was_saved(name, tmp_path):
    """The arguments of a backward kernel can be made of its forward's results, and its results are taken apart."""
    each = next(each for each in PUBLISHED if each.name == name)
    peer = PEERS[name]
    given = peer.prepared(each.arguments("tiny", "cpu"))
    shapes = {
        "selective_scan": lambda: (given[0], given[0], given[0]),
        "rnnt_loss": lambda: (given[0][:, 0, 0, 0], given[0][..., 0], given[0][..., 0]),
        "soft_dtw": lambda: (given[0][:, 0, 0], given[0]),
    }
    found = listed(shapes[name]() if name in shapes else each.reference(*each.arguments("tiny", "cpu")))
    results = peer.results(found)
    assert len(results) == len(listed(each.reference(*each.arguments("tiny", "cpu"))))
    gradients = tuple(weights([results[place] for place in peer.upstream]))
    assert all(value is not None for value in peer.saved(given, found, gradients))


def test_the_inputs_of_two_processes_are_the_same(folder):
    each = next(each for each in PUBLISHED if each.name == "scatter_add")
    for direction in (FORWARD, GRADIENT):
        ours = Contender(each, "tiny", direction, None, "cpu")
        theirs = Contender(each, "tiny", direction, Kernels(folder), "cpu")
        ours.first()
        theirs.first()
        assert not differences(list(ours.results(ours.last)), list(theirs.results(theirs.last)))


def test_the_page_has_the_table_of_the_record():
    page = (Path(__file__).parents[2] / "benchmarks/published/README.md").read_text()
    assert "\n".join(rows()) in page
