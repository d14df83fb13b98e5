"""What docs/articles.md shows of three articles: what they published, and what the records have of the same.

`PUBLISHED` is quoted from the articles and from the repositories that they name; all other figures are the records',
and a cell is empty where no record has one. Lines are counted in the sources of the peers that were measured.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from benchmarks.questions import RECORDS
from brickwork.bench import plots
from brickwork.bench.question_results import Findings
from brickwork.bench.table import Table, X

DOCUMENT = "docs/articles.md"
LADDER = "articles-ladder.png"
ROOT = Path(__file__).parents[1]
GPU, CPU = "nvidia-h200", "cpu-2core"
PADDING = {"torch_pad": (30.392, 58), "ti_pad": (0.267, 1)}
"""Milliseconds and kernels on an RTX 3090, from the article on Taichi and PyTorch (15 September 2022)."""
CONVOLUTION = {"PyTorch": (94.0, 529.0), "v0": (45.0, 84.0), "v1": (17.0, 43.0), "v2": (13.0, 31.0), "v3": (3.4, 23.0)}
"""Milliseconds forward and backward on a GTX 1070 mobile, from the README of RWKV-CUDA."""
CONVOLUTION_3090 = {"PyTorch": (14.0, 65.0), "v3": (0.8, 5.5)}
"""The same on an RTX 3090."""
LONGEST, STEPS, SINE = 4144, 768, 12672
DRAWN = (1000, 5000, 100_000)
_PEERS = ROOT / "benchmarks" / "peers"


def table(machine: str, question: str, name: str) -> Table:
    """Return a recorded table."""
    return Findings.load(RECORDS / machine / f"{question}.json").tables[name]


def padding() -> str:
    """Return the padding: times, kernels and memory."""
    on_gpu, on_cpu = table(GPU, "pad", "given"), table(CPU, "pad", "given")
    case = on_gpu.case(LONGEST)
    rows = [
        (
            label,
            _number(on_gpu.value(LONGEST, label)),
            str(case.launches.get(label, "")),
            _mebibytes(case.memory.get(label)),
            _number(on_cpu.value(LONGEST, label) if label in on_cpu.lines else None),
        )
        for label in _labels(on_gpu, on_cpu)
    ]
    published = [(f"`{name}`, published", _number(ms), str(count), "", "") for name, (ms, count) in PADDING.items()]
    return _markdown(("", "GPU, ms", "kernels", "MiB beside the image", "CPU, ms"), [*published, *rows])


def convolution() -> str:
    """Return the convolution: forward and both gradients."""
    forward, backward = (table(GPU, "timex", f"{name}-T") for name in ("forward", "backward"))
    published = [
        *((f"CUDA {name}, published, GTX 1070 mobile", *map(_number, each)) for name, each in CONVOLUTION.items()),
        *((f"CUDA {name}, published, RTX 3090", *map(_number, each)) for name, each in CONVOLUTION_3090.items()),
    ]
    published = [(label.replace("CUDA PyTorch", "PyTorch"), *rest) for label, *rest in published]
    rows = [
        (label, _number(forward.value(STEPS, label)), _number(backward.value(STEPS, label))) for label in forward.lines
    ]
    return _markdown(("", "forward, ms", "both gradients, ms"), [*published, *rows])


def samples() -> str:
    """Return the samples, both kinds of them, as times and as multiples of torch.compile's speed."""
    parts: list[str] = []
    for name, title in (("shared", "One z, given and shared by all d"), ("independent", "Every element its own draw")):
        found = table(GPU, "sample", name)
        columns = (f"{title}; us", *(f"d = {d}" for d in DRAWN), f"torch.compile's time over it, d = {DRAWN[-1]}")
        rows = [
            (
                label,
                *(_number(found.value(d, label)) for d in DRAWN),
                _times(found, DRAWN[-1], "torch.compile", label),
            )
            for label in found.lines
        ]
        parts.append(_markdown(columns, rows))
    return "\n\n".join(parts)


def sines() -> str:
    """Return the sine, and torch's own with another in its place."""
    rate, overridden, call = (table(GPU, "sin", name) for name in ("rate", "overridden", "call"))
    rows = [(label, *(_number(rate.value(n, label)) for n in (256, 1024, 4096, SINE))) for label in rate.lines]
    first = _markdown(("GB/s", "N = 256", "N = 1024", "N = 4096", f"N = {SINE}"), rows)
    over = [(label, _number(overridden.value(SINE, label)), _host(call, label)) for label in overridden.lines]
    head = ("`torch.sin(x)` while it runs", f"GB/s, N = {SINE}", "us of the host, 1024 floats")
    return f"{first}\n\n{_markdown(head, over)}"


def ways() -> str:
    """Return one operator written in several ways: lines, time, gradient."""
    forward, backward = (table(GPU, "timex", f"{name}-T") for name in ("forward", "backward"))
    rows = [
        (
            f"[{title}]({place})",
            str(lines),
            of_gradient,
            _number(forward.value(STEPS, label)),
            _number(backward.value(STEPS, label)),
        )
        for title, label, place, lines, of_gradient in _ways()
    ]
    head = ("", "lines of the kernel", "lines of the gradients", "forward, ms", "both gradients, ms")
    return _markdown(head, rows)


def _ways() -> Iterable[tuple[str, str, str, int, str]]:
    """Yield a title, the label in the records, the source, and the lines of kernels, for gradients in words."""
    here = "../benchmarks/peers"
    cuda = {name: _cuda(_PEERS / "cuda_sources" / f"timex_{name}.cu") for name in ("plain", "tuned")}
    plain, tuned, triton = (
        _functions(_PEERS / f"{name}.py") for name in ("taichi_loops", "taichi_tiles", "triton_loops")
    )
    own, torch = _functions(ROOT / "src/brickwork/ops/timex.py"), _functions(_PEERS / "torch_formulations.py")
    yield "brickwork", "brickwork", "../src/brickwork/ops/timex.py", own("timex"), "derived"
    yield "PyTorch, `conv1d`", "torch conv1d", f"{here}/torch_formulations.py", torch("timex"), "PyTorch's"
    yield "PyTorch, FFT", "torch FFT", f"{here}/torch_formulations.py", torch("timex_fourier"), "PyTorch's"
    gradients = plain("_timex_backward")
    yield "Taichi, plain", "taichi", f"{here}/taichi_loops.py", plain("_timex"), str(gradients)
    yield (
        "Taichi, tuned",
        "taichi, tuned",
        f"{here}/taichi_tiles.py",
        tuned("_convolution"),
        str(tuned("_gradient_of_w")),
    )
    gradients = cuda["plain"]("gradient_of_k") + cuda["plain"]("gradient_of_w")
    yield "CUDA C++, plain", "CUDA C++", f"{here}/cuda_sources/timex_plain.cu", cuda["plain"]("timex"), str(gradients)
    whole = cuda["tuned"]("")
    own_gradient = cuda["tuned"]("gradient_of_w")
    place = f"{here}/cuda_sources/timex_tuned.cu"
    yield (
        "CUDA C++, tuned",
        "CUDA C++, tuned",
        place,
        whole - own_gradient,
        f"{own_gradient}, and the kernel turned round",
    )
    gradients = triton("_gradient_of_k") + triton("_gradient_of_w")
    yield "Triton, tensor cores", "triton, tf32x3", f"{here}/triton_loops.py", triton("_timex"), str(gradients)


def draw(path: Path) -> None:
    """Draw the ladder from the plain kernel to the tuned one: published, and measured with the same sizes."""
    found = table(GPU, "timex", "forward-T")
    gpu = "NVIDIA H200"
    measured: dict[str, dict[str, str]] = {
        f"CUDA C++, {gpu}": {"v0": "CUDA C++", "v3": "CUDA C++, tuned"},
        f"Taichi, {gpu}": {"v0": "taichi", "v3": "taichi, tuned"},
        f"brickwork, {gpu}": {"plain loops": "brickwork"},
        f"PyTorch, {gpu}": {"PyTorch": "torch conv1d"},
    }
    steps = ("PyTorch", "v0", "v1", "v2", "v3", "plain loops")
    curves = [
        plots.Curve(f"{name}, published", tuple(given), tuple(ms for ms, _ in given.values()), colour=colour)
        for name, given, colour in (
            ("GTX 1070 mobile", CONVOLUTION, "#9aa5ad"),
            ("RTX 3090", CONVOLUTION_3090, "#c2c9ce"),
        )
    ]
    for name, lines in measured.items():
        values = {step: value for step, label in lines.items() if (value := found.value(STEPS, label)) is not None}
        curves.append(plots.Curve(name, tuple(values), tuple(values.values())))
    curves.sort(key=lambda curve: min(steps.index(str(step)) for step in curve.x))
    title = f"The causal convolution, forward, B = 32, C = 768, T = {STEPS}"
    path.parent.mkdir(parents=True, exist_ok=True)
    plots.lines(curves, path, plots.Axes(title=title, x="", y="milliseconds", y_log=True))


PARTS: dict[str, Callable[[], str]] = {
    "padding": padding,
    "convolution": convolution,
    "samples": samples,
    "sines": sines,
    "ways": ways,
}
"""What is written between which marks of the document."""


# ---------------------------------------------------------------- tables and lines


def _labels(*tables: Table) -> list[str]:
    return list(dict.fromkeys(label for each in tables for label in each.lines))


def _markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.0f}" if value >= 1000 else f"{value:.3g}"


def _mebibytes(size: int | None) -> str:
    return "" if size is None else _number(size / (1 << 20))


def _times(found: Table, x: X, reference: str, label: str) -> str:
    of, own = found.value(x, reference), found.value(x, label)
    return "" if of is None or own is None else f"{of / own:.2f} x"


def _host(call: Table, label: str) -> str:
    timing = call.timing("sin(x)", label) if label in call.lines else None
    return "" if timing is None else _number(timing.median * 1e6)


def _functions(path: Path) -> Callable[[str], int]:
    """Return what counts the lines of a function of a file, without blank ones, comments and docstrings."""
    text = path.read_text(encoding="utf-8")
    nodes = {node.name: node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)}

    def lines(name: str) -> int:
        node = nodes[name]
        docstring = node.body[0] if ast.get_docstring(node) else None
        skipped = range(docstring.lineno, (docstring.end_lineno or 0) + 1) if docstring else range(0)
        numbers = (number for number in range(node.lineno, (node.end_lineno or 0) + 1) if number not in skipped)
        return _counted((text.splitlines()[number - 1] for number in numbers), "#")

    return lines


def _cuda(path: Path) -> Callable[[str], int]:
    """Return what counts the lines of a kernel of a file, or of all of it, without blank ones and comments."""
    text = path.read_text(encoding="utf-8")

    def lines(name: str) -> int:
        found = re.search(rf"^(?:template.*\n)?[^\n]*__global__[^\n]*\b{name}\((?:.|\n)*?^\}}", text, re.MULTILINE)
        return _counted((text if not name or found is None else found[0]).splitlines(), "//")

    return lines


def _counted(lines: Iterable[str], comment: str) -> int:
    return sum(bool(line.strip()) and not line.strip().startswith(comment) for line in lines)


def texts() -> Mapping[str, str]:
    """Return what stands between the marks of the document."""
    return {f"articles, {name}": part() for name, part in PARTS.items()}
