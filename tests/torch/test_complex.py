"""Operators on complex tensors: gradients in PyTorch's convention, checks, vmap, graphs, the programs of users."""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportOperatorIssue=false, reportUnknownParameterType=false, reportMissingParameterType=false

from __future__ import annotations

import cmath
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch

import brickwork as bw
from brickwork.config import config
from support.sweep import sampled


def numbers(*shape: int, seed: int = 0, dtype: torch.dtype = torch.complex64) -> torch.Tensor:
    return torch.randn(*shape, dtype=dtype, generator=torch.Generator().manual_seed(seed))


def reals(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@bw.op("complexes::fft")
def fft(x: torch.Tensor) -> torch.Tensor:
    """Return the transform of a power of two numbers, by decimation in time."""
    n = x.shape[0]
    out = torch.empty_like(x)
    bits = 0
    m = 1
    while m < n:
        m *= 2
        bits += 1
    for i in range(n):
        r = 0
        v = i
        for _ in range(bits):
            r = r * 2 + v % 2
            v //= 2
        out[r] = x[i]
    half = 1
    while half < n:
        for k in range(n // 2):
            j = k % half
            i = (k // half) * 2 * half + j
            a = out[i]
            b = out[i + half] * cmath.exp(-1j * math.pi * j / half)
            out[i] = a + b
            out[i + half] = a - b
        half *= 2
    return out


@bw.op("complexes::escape")
def escape(c: torch.Tensor, most: int) -> torch.Tensor:
    out = torch.zeros(c.shape, dtype=torch.int32)
    for i, j in bw.indices(c):
        z = 0
        n = 0
        while n < most and abs(z) <= 2:
            z = z * z + c[i, j]
            n += 1
        out[i, j] = n
    return out


@bw.op("complexes::rotary")
def rotary(x: torch.Tensor, angles: torch.Tensor) -> torch.Tensor:
    B, T, H, D = x.shape
    out = torch.empty_like(x)
    for b in range(B):
        for t in range(T):
            for h in range(H):
                for d in range(D):
                    out[b, t, h, d] = x[b, t, h, d] * torch.polar(1.0, angles[t, d])
    return out


@bw.op("complexes::s4d")
def s4d(log_dt: torch.Tensor, A: torch.Tensor, C: torch.Tensor, L: int) -> torch.Tensor:
    """Return the kernel of a diagonal state space: a sum of complex exponentials."""
    H, N = A.shape
    K = torch.empty(H, L, dtype=log_dt.dtype)
    for h in range(H):
        dt = math.exp(log_dt[h])
        for l in range(L):
            s = 0j
            for n in range(N):
                step = A[h, n] * dt
                s += C[h, n] * (cmath.exp(step) - 1) / A[h, n] * cmath.exp(step * l)
            K[h, l] = 2 * s.real
    return K


@bw.op("complexes::gabor")
def gabor(x: torch.Tensor, sigma: float, f: float) -> torch.Tensor:
    n = x.shape[0]
    out = torch.zeros(n, dtype=torch.complex64)
    for i in range(n):
        s = 0.0
        for k in range(-8, 9):
            if 0 <= i + k < n:
                s += x[i + k] * math.exp(-k * k / (2 * sigma * sigma)) * cmath.exp(2j * math.pi * f * k)
        out[i] = s
    return out


@bw.op("complexes::gate")
def gate(state: torch.Tensor, u: torch.Tensor, q: int) -> None:
    """Apply a gate to one qubit."""
    step = 1 << q
    for k in range(state.shape[0] // 2):
        i = (k // step) * 2 * step + k % step
        a = state[i]
        b = state[i + step]
        state[i] = u[0, 0] * a + u[0, 1] * b
        state[i + step] = u[1, 0] * a + u[1, 1] * b


@bw.op("complexes::stft")
def stft(x: torch.Tensor, window: torch.Tensor, hop: int) -> torch.Tensor:
    n = window.shape[0]
    frames = (x.shape[0] - n) // hop + 1
    out = torch.empty(n // 2 + 1, frames, dtype=torch.complex64)
    for k in range(n // 2 + 1):
        for t in range(frames):
            s = 0j
            for m in range(n):
                s += x[t * hop + m] * window[m] * torch.polar(1.0, -2 * math.pi * k * m / n)
            out[k, t] = s
    return out


@bw.op("complexes::matmul")
def matmul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    n, k = a.shape
    m = b.shape[1]
    out = a.new_empty(n, m)
    for i in range(n):
        for j in range(m):
            s = 0j
            for l in range(k):
                s += a[i, l] * b[l, j]
            out[i, j] = s
    return out


@bw.op("complexes::mixed")
def mixed(z: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(z.shape[0]):
        v = z[i]
        out[i] = abs(v) * x[i] + (cmath.exp(v) / (v + 1j)).real + cmath.phase(cmath.sqrt(v) * v**3)
    return out


def mixed_of_torch(z: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return z.abs() * x + (z.exp() / (z + 1j)).real + (z.sqrt() * z**3).angle()


def s4d_of_torch(log_dt: torch.Tensor, A: torch.Tensor, C: torch.Tensor, L: int) -> torch.Tensor:
    step = A * log_dt.exp()[:, None]
    powers = (step[..., None] * torch.arange(L)).exp()
    return 2 * torch.einsum("hn,hnl->hl", C * (step.exp() - 1) / A, powers).real


def gabor_of_torch(x: torch.Tensor, sigma: float, f: float) -> torch.Tensor:
    k = torch.arange(-8, 9)
    kernel = torch.exp(-k * k / (2 * sigma * sigma)) * torch.exp(2j * math.pi * f * k)
    return torch.nn.functional.conv1d(x[None, None] + 0j, kernel[None, None].to(torch.complex64), padding=8)[0, 0]


def stft_of_torch(x: torch.Tensor, window: torch.Tensor, hop: int) -> torch.Tensor:
    return torch.stft(x, len(window), hop, window=window, center=False, return_complex=True)


A = torch.complex(-torch.rand(3, 4, generator=torch.Generator().manual_seed(5)) - 0.1, reals(3, 4))
PROGRAMS: dict[str, tuple[bw.Op, Callable[..., Any], tuple[Any, ...]]] = {
    "fft": (fft, torch.fft.fft, (numbers(64),)),
    "rotary": (
        rotary,
        lambda x, f: x * torch.polar(torch.ones_like(f), f)[None, :, None],
        (numbers(2, 5, 3, 4), reals(5, 4)),
    ),
    "s4d": (s4d, s4d_of_torch, (reals(3) * 0.1 - 2, A, numbers(3, 4), 20)),
    "gabor": (gabor, gabor_of_torch, (reals(40), 3.0, 0.1)),
    "stft": (stft, stft_of_torch, (reals(100), torch.hann_window(16), 4)),
    "matmul": (matmul, torch.matmul, (numbers(17, 9), numbers(9, 21, seed=1))),
    "mixed": (mixed, mixed_of_torch, (numbers(23), reals(23))),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_and_their_gradients_are_torchs(name: str) -> None:
    operator, like, arguments = PROGRAMS[name]
    ours = [item.clone().requires_grad_() if isinstance(item, torch.Tensor) else item for item in arguments]
    theirs = [item.clone().requires_grad_() if isinstance(item, torch.Tensor) else item for item in arguments]
    result, expected = operator(*ours), like(*theirs)
    torch.testing.assert_close(result, expected, rtol=1e-4, atol=1e-4)
    outer = torch.randn(expected.shape, dtype=expected.dtype, generator=torch.Generator().manual_seed(7))
    inputs = [[item for item in given if isinstance(item, torch.Tensor)] for given in (ours, theirs)]
    pairs = zip(
        torch.autograd.grad(result, inputs[0], outer), torch.autograd.grad(expected, inputs[1], outer), strict=True
    )
    for one, other in pairs:
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-3)


CHECKED: dict[str, tuple[bw.Op, tuple[Any, ...]]] = {
    "fft": (fft, (numbers(8),)),
    "rotary": (rotary, (numbers(1, 2, 1, 3), reals(2, 3))),
    "s4d": (s4d, (reals(2) * 0.1 - 2, A[:2, :3].clone(), numbers(2, 3), 4)),
    "gate": (gate, (numbers(8), numbers(2, 2), 1)),
    "matmul": (matmul, (numbers(3, 4), numbers(4, 2))),
    "mixed": (mixed, (numbers(5), reals(5))),
}


@pytest.mark.parametrize("name", sampled(CHECKED, 3))
def test_checks_pass(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    operator, arguments = CHECKED[name]
    operator.check(*arguments)
    assert "skipped" not in capsys.readouterr().out


def test_gates_act_on_states() -> None:
    state, u = numbers(16), torch.linalg.qr(numbers(2, 2))[0]
    expected = torch.einsum("ab,xby->xay", u, state.view(2, 2, 4)).reshape(16)
    gate(state, u, 2)
    torch.testing.assert_close(state, expected)


def test_points_escape_as_in_plain_python() -> None:
    c = torch.complex(*torch.meshgrid(torch.linspace(-2, 1, 12), torch.linspace(-1, 1, 8), indexing="ij"))
    c = c.to(torch.complex128)
    assert torch.equal(escape(c, 30), escape.python(c, 30))


@bw.op("complexes::size")
def size(z: torch.Tensor) -> torch.Tensor:
    out = torch.empty(z.shape[0], dtype=torch.float64)
    for i in range(z.shape[0]):
        out[i] = abs(z[i])
    return out


def test_the_gradient_of_the_absolute_value_is_zero_at_zero() -> None:
    z = torch.tensor([0j, 3 + 4j], dtype=torch.complex128, requires_grad=True)
    (grad,) = torch.autograd.grad(size(z).sum(), z)
    torch.testing.assert_close(grad, torch.tensor([0j, 0.6 + 0.8j], dtype=torch.complex128))


def test_lazy_conjugates_among_gradients() -> None:
    a, b = numbers(4, 3).requires_grad_(), numbers(3, 2, seed=1).requires_grad_()
    ours = torch.autograd.grad(matmul(a.conj(), b).conj().real.sum(), (a, b))
    theirs = torch.autograd.grad((a.conj() @ b).conj().real.sum(), (a, b))
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.filterwarnings("ignore:Torchinductor does not support code generation for complex")
def test_compiled_graphs() -> None:
    z, x = numbers(9), reals(9)

    def function(z: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return mixed(z * 2, x) + size(z)

    compiled = torch.compile(function, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(z, x), function(z, x))
    one, other = z.clone().requires_grad_(), z.clone().requires_grad_()
    compiled(one, x).sum().backward()
    function(other, x).sum().backward()
    torch.testing.assert_close(one.grad, other.grad)


def test_samples_and_tangents() -> None:
    a, b = numbers(5, 3, 4), numbers(4, 2, seed=1)
    torch.testing.assert_close(torch.vmap(matmul, (0, None))(a, b), a @ b)
    value, tangent = torch.func.jvp(matmul, (a[0], b), (a[1], b))
    torch.testing.assert_close(value, a[0] @ b)
    torch.testing.assert_close(tangent, a[1] @ b + a[0] @ b)


def blended(z: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros(z.shape[0], 2, dtype=z.dtype)
    for i in range(z.shape[0]):
        out[i, 1] = z[i] * x[i] + cmath.exp(1j * x[i])
        z[i] = out[i, 1].conjugate()
    return out


def test_the_interpreter_runs_them() -> None:
    compiled = bw.op("complexes::blended")(blended)
    with config.override(check="interpret"):
        checked = bw.op("complexes::blended_checked")(blended)
    for given in (numbers(4), numbers(4, 2)[:, 1], numbers(4).conj()):
        one, other, x = given.clone(), given.clone(), reals(4)
        torch.testing.assert_close(checked(one, x), compiled(other, x))
        torch.testing.assert_close(one, other)


def test_explain_speaks_of_complex_elements() -> None:
    assert "mixed(complex64[1] contiguous, float32[1]" in str(mixed.explain(numbers(4), reals(4)))
