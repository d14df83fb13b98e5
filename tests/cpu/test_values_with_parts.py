"""Values with parts in operators: NamedTuples, dataclasses and small classes, with their methods and operators."""

# pyright: reportOperatorIssue=false, reportCallIssue=false, reportArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnnecessaryIsInstance=false, reportUnknownMemberType=false

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import pytest
import torch

import brickwork as bw
from brickwork.diagnostics.errors import CompileError
from support.fourfold import agree, failure

pytestmark = pytest.mark.usefixtures("quick")

# The classes hold numbers of the language, which are elements of tensors as well.


class Complex(NamedTuple):
    re: Any
    im: Any = 0.0

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, Complex):
            return Complex(self.re * other.re - self.im * other.im, self.re * other.im + self.im * other.re)
        return Complex(self.re * other, self.im * other)

    __rmul__ = __mul__

    def __add__(self, other: Any) -> Any:
        return Complex(self.re + other.re, self.im + other.im)

    @property
    def squared(self) -> Any:
        return self.re * self.re + self.im * self.im


@dataclass(frozen=True)
class Vector:
    x: Any
    y: Any
    z: Any = 0.0

    def __add__(self, other: Vector) -> Vector:
        return Vector(self.x + other.x, self.y + other.y, self.z + other.z)

    def __mul__(self, factor: Any) -> Vector:
        return Vector(self.x * factor, self.y * factor, self.z * factor)

    def __matmul__(self, other: Vector) -> Any:
        return self.x * other.x + self.y * other.y + self.z * other.z

    def __neg__(self) -> Vector:
        return self * -1.0

    def length(self) -> Any:
        return math.sqrt(self @ self)

    def unit(self) -> Vector:
        length = self.length()
        if length > 0:
            return self * (1 / length)
        return self


class Ray:
    def __init__(self, origin: Vector, direction: Vector) -> None:
        self.origin = origin
        self.direction = direction.unit()

    def at(self, t: Any) -> Vector:
        return self.origin + self.direction * t


class Corner(NamedTuple):
    x: Any
    y: Any


@dataclass
class Box:
    low: Corner
    high: Corner
    count: int = 2

    @property
    def size(self) -> Corner:
        return Corner(self.high.x - self.low.x, self.high.y - self.low.y)

    def area(self) -> Any:
        size = self.size
        return size.x * size.y

    def __contains__(self, corner: Corner) -> bool:
        return self.low.x <= corner.x < self.high.x

    @classmethod
    def unit(cls) -> Box:
        return cls(Corner(0.0, 0.0), Corner(1.0, 1.0))

    @staticmethod
    def twice(value: Any) -> Any:
        return value * 2


@dataclass(frozen=True, order=True)
class Key:
    a: Any
    b: Any = 1.0

    def __post_init__(self) -> None:
        if self.a < 0:
            object.__setattr__(self, "a", -self.a)


class Line:
    scale = 3

    def __init__(self, start: Any, *, slope: Any = 2.0) -> None:
        self.start = start
        self.slope = slope
        if start > 1:
            self.shift = start * 2
        else:
            self.shift = 0.5

    def __call__(self, t: Any) -> Any:
        return self.start + self.slope * t + self.shift

    def __bool__(self) -> bool:
        return self.start > 0

    def __len__(self) -> int:
        return 3

    def __abs__(self) -> Any:
        return abs(self.start)

    def __float__(self) -> float:
        return self.start + 0.5

    def __eq__(self, other: object) -> Any:
        return self.start == other.start if isinstance(other, Line) else NotImplemented

    def __lt__(self, other: Any) -> Any:
        return self.start < other.start

    def __getitem__(self, place: Any) -> Any:
        return self.start if place == 0 else self.slope

    def __iter__(self) -> Any:
        return iter((self.start, self.slope))

    def __radd__(self, other: Any) -> Any:
        return other + self.start

    def further(self, by: Any) -> Line:
        return type(self)(self.start + by, slope=self.slope)


LIGHT = Vector(0.5, 1.0, -0.3)
VIEW = Box(Corner(0.25, 0.5), Corner(3.0, 4.0))


def mandelbrot(x: torch.Tensor, y: torch.Tensor, most: int) -> torch.Tensor:
    out = torch.empty(x.shape[0], y.shape[0])
    for i in range(x.shape[0]):
        for j in range(y.shape[0]):
            c, z, count = Complex(x[i], y[j]), Complex(0.0), 0
            while count < most and z.squared < 4.0:
                z = z * z + c
                count += 1
            out[i, j] = count + (2.0 * z).re
    return out


def march(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    out = torch.empty(x.shape[0], y.shape[0])
    eye = Vector(0.0, 0.0, -3.0)
    for i in range(x.shape[0]):
        for j in range(y.shape[0]):
            ray = Ray(eye, Vector(x[i], y[j], 1.0))
            t = 0.0
            for _ in range(20):
                distance = ray.at(t).length() - 1.0
                if distance < 0.001:
                    break
                t += distance
            out[i, j] = max(ray.at(t).unit() @ LIGHT.unit(), 0.0) if t < 10 else -1.0
    return out


def boxes(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    unit = Box.unit()
    for i in range(x.shape[0]):
        box = Box(Corner(x[i], 0.0), high=Corner(2.0, x[i] * x[i]))
        out[i] = box.area() + box.count + unit.size.x + Box.twice(x[i])
        out[i] += (Corner(0.5, 1.0) in box) + 2 * (Corner(9.0, 1.0) not in unit) + VIEW.area() + VIEW.low.x
    return out


def nearest(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        best, found = Key(100.0), 0
        for j in range(x.shape[0]):
            key = Key(x[j] - x[i], 3.0)
            if key < best and key != Key(0.0, 3.0):
                best, found = key, j
        out[i] = best.a + found + (best == Key(best.a, 3.0)) + 2 * (best >= Key(0.0))
    return out


def first_above(corner: Corner, x: Any) -> Corner:
    for j in range(x.shape[0]):
        if x[j] > corner.x:
            return Corner(x[j], j)
        for k in range(2):
            if x[j] + k > 3:
                return Corner(-1.0, j)
    return corner


def states(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        corner = first_above(Corner(x[i], 0), x)
        state = (corner, 1)
        for k in range(3):
            state = (Corner(state[0].x + 1, state[0].y * 2), state[1] + k)
        other, count = state
        if x[i] > 0:
            other = Corner(other.y, other.x)
        last = other if x[i] > 0.5 else Corner(7, 8)
        corners = [Corner(1.0, 2.0), other, last, corner]
        chosen = corners[i % 4]
        total = 0.0
        for n, (a, b) in enumerate(corners):
            total += a * b + n
        out[i] = chosen.x + 10 * chosen.y + count + total + other[0] + len(other)
    return out


def specials(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        line = Line(x[i])
        other = line.further(1)
        start, slope = line
        out[i] = line(2.0) + len(line) + abs(line) + float(line) + (1 if line else 0) + 4 * (not line)
        out[i] += (line == other) + 2 * (line < other) + 4 * (line != other) + line[0] + line[i] + start * slope
        out[i] += sum([line, other], 0.5) + max(*line) + line.scale
        if line and x[i] < 1:
            out[i] += 100
        out[i] += isinstance(x[i], float) + 2 * isinstance(i, int) + 4 * isinstance(line, (Line, int))
    return out


def replaced(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        vector = Vector(x[i], 1.0)
        vector += Vector(1, 2, 3)
        other = replace(vector, y=0.5)
        both = [vector, other, -vector]
        total = sum(both, Vector(0, 0, 0))
        out[i] = total.x + total.y * total.z + Complex(x[i])._replace(im=5.0).im + (vector == other)
    return out


class Buffer:
    def __init__(self) -> None:
        self.items = [0.0, 0.0, 0.0, 0.0]

    def __getitem__(self, place: Any) -> Any:
        return self.items[place]

    def __setitem__(self, place: Any, value: Any) -> None:
        self.items[place] = value


def buffers(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i in range(x.shape[0]):
        buffer = Buffer()
        for j in range(x.shape[0]):
            buffer[j % 4] += x[j] * i
            buffer[i % 4] = j
        out[i] = buffer[0] + buffer[1] * 2 + buffer[3]
    return out


class Table:
    def __init__(self, data: Any, width: Any) -> None:
        self.data = data
        self.width = width

    def at(self, place: Any) -> Any:
        return self.data[place % self.width]

    def put(self, place: Any, value: Any) -> None:
        self.data[place] = value


def tables(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    table = Table(x, 3)
    for i in range(x.shape[0]):
        out[i] = table.at(i) + table.data[0]
    return out


X = torch.linspace(-2.0, 1.5, 7)


@pytest.mark.parametrize("function", [boxes, nearest, states, replaced, buffers, tables])
def test_values_with_parts_agree(function: Callable[..., Any]):
    agree(function, X)


def test_methods_that_are_called_without_their_names_agree():
    agree(specials, X, plain=False)  # an element of torch's is no float


def test_values_are_carried_by_loops():
    agree(mandelbrot, X, torch.linspace(-1.0, 1.0, 5), 12)
    agree(march, X, torch.linspace(-1.0, 1.0, 5))


class Noise:
    def __init__(self, scale: Any) -> None:
        self.scale = scale

    def draw(self) -> Any:
        return bw.rand() * self.scale


def noisy(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i in range(x.shape[0]):
        noise = Noise(x[i])
        out[i] = noise.draw() + bw.rand()
    return out


def test_methods_draw_random_numbers():
    operator, key = bw.op(noisy), torch.tensor(5)
    torch.testing.assert_close(operator(X, key=key), operator.python(X, key=key))


class Reader:
    def __init__(self, places: Any) -> None:
        self.places = places

    def __getitem__(self, i: Any) -> Any:
        return self.places[i]


def beyond(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i in range(x.shape[0]):
        reader = Reader((x[i], 1.0, 2.0))
        out[i] = reader[i]
    return out


def test_indices_of_values_are_checked():
    assert failure(beyond, X)[0] is IndexError


def stored_by_way(x: torch.Tensor) -> None:
    table = Table(x, 3)
    for i in range(x.shape[0]):
        table.put(i, 1.0)


def test_no_argument_is_stored_into_that_the_schema_does_not_name():
    with pytest.raises(CompileError, match="stored into by way of an object"):
        bw.op(stored_by_way)(X.clone())


def changing_form(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i in range(x.shape[0]):
        value = Corner(x[i], 1.0)
        for _ in range(3):
            out[i] += value[0]
            value = (x[i], 1.0, 2.0)
    return out


def test_a_name_keeps_its_form_in_a_loop():
    with pytest.raises(CompileError, match="of another form"):
        bw.op(changing_form)(X)


def test_captured_objects_are_those_of_the_decoration():
    shade = Line(0.25)

    def shaded(x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        for i in range(x.shape[0]):
            line = shade
            out[i] = line(x[i])
        return out

    operator = agree(shaded, X)
    before = operator(X)
    shade.start = 7.0
    with pytest.warns(bw.BrickworkWarning, match=r"`shade\.start` was changed"):
        after = operator(X)
    assert torch.equal(before, after)


def smooth(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    out = torch.empty(x.shape[0], y.shape[0], dtype=x.dtype)
    for i in range(x.shape[0]):
        for j in range(y.shape[0]):
            ray = Ray(Vector(0.0, 0.0, -3.0), Vector(x[i], y[j], 1.0))
            z = Complex(x[i], y[j])
            for _ in range(3):
                z = z * z + Complex(0.1, y[j])
            out[i, j] = ray.at(1.5).unit() @ LIGHT + z.re
    return out


def test_gradients_and_samples_pass_through_values():
    operator = bw.op(smooth)
    x = torch.linspace(-0.5, 0.6, 3, dtype=torch.float64, requires_grad=True)
    y = torch.linspace(0.1, 0.5, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(operator, (x, y))
    assert torch.autograd.gradgradcheck(operator, (x, y))
    batch = torch.stack([x.detach(), 2 * x.detach()])
    mapped = torch.vmap(operator, in_dims=(0, None))(batch, y.detach())
    torch.testing.assert_close(mapped[1], operator(batch[1], y.detach()))


class Scaled(NamedTuple):
    box: Corner
    data: Any
    factor: Any = 3


def beside_torch(x: torch.Tensor) -> torch.Tensor:
    scaled = Scaled(Corner(1.0, 2.0), torch.softmax(x, 0))
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        out[i] = scaled.box.x + scaled.box.y * scaled.data[i] + scaled.factor
    return out + 1


def test_a_host_part_in_python_hands_values_to_loops():
    operator = bw.op(beside_torch)
    x = X.clone().requires_grad_()
    found, weights = operator(x), torch.arange(7.0)
    wanted = 5 + 2 * torch.softmax(x, 0)
    torch.testing.assert_close(found, wanted)
    torch.testing.assert_close(operator.python(X), wanted.detach())
    (one,), (other,) = (torch.autograd.grad((item * weights).sum(), x) for item in (found, wanted))
    torch.testing.assert_close(one, other)
    torch.testing.assert_close(torch.compile(operator, fullgraph=True, backend="aot_eager")(X), wanted.detach())
