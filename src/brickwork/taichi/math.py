"""`ti.math`: constants, types of short vectors, and functions of numbers, vectors and matrices.

The functions are Python: kernels compile them where they are called.
"""

from __future__ import annotations

import math as standard
from typing import Any

from brickwork.taichi import compound, operations
from brickwork.taichi.arithmetic import type_of
from brickwork.taichi.loops import static
from brickwork.taichi.matrix import Matrix, Vector
from brickwork.taichi.operations import (
    acos,
    asin,
    atan2,
    ceil,
    cos,
    exp,
    floor,
    isinf,
    isnan,
    log,
    max,
    min,
    pow,
    round,
    sin,
    sqrt,
    tan,
    tanh,
)
from brickwork.taichi.scalars import i32, uint

pi, e, inf, nan = standard.pi, standard.e, standard.inf, standard.nan
vec2, vec3, vec4 = (compound.vector(size, float) for size in (2, 3, 4))
ivec2, ivec3, ivec4 = (compound.vector(size, int) for size in (2, 3, 4))
uvec2, uvec3, uvec4 = (compound.vector(size, uint) for size in (2, 3, 4))
mat2, mat3, mat4 = (compound.matrix(size, size, float) for size in (2, 3, 4))


def mix(x: Any, y: Any, a: Any) -> Any:
    """Return what lies between two values."""
    return x * (1.0 - a) + y * a


def clamp(x: Any, xmin: Any, xmax: Any) -> Any:
    """Return the value, or the limit that it is beyond."""
    return operations.min(xmax, operations.max(xmin, x))


def step(edge: Any, x: Any) -> Any:
    """Return 0 below the edge, else 1."""
    return operations.cast(x >= edge, float)


def fract(x: Any) -> Any:
    """Return the part behind the point."""
    return x - operations.floor(x)


def smoothstep(edge0: Any, edge1: Any, x: Any) -> Any:
    """Return a smooth step between two edges."""
    t = clamp((x - edge0) / (edge1 - edge0), 0.0, 1.0)
    return t * t * (3.0 - 2.0 * t)


def sign(x: Any) -> Any:
    """Return -1, 0 or 1."""
    return operations.cast((x >= 0.0), float) - operations.cast((x <= 0.0), float)


def degrees(x: Any) -> Any:
    """Return an angle in degrees."""
    return x * 180.0 / pi


def radians(x: Any) -> Any:
    """Return an angle in radians."""
    return x * pi / 180.0


def log2(x: Any) -> Any:
    """Return the logarithm to base 2."""
    return operations.log(x) * 1.4426950408889634


def mod(x: Any, y: Any) -> Any:
    """Return x - y * floor(x / y)."""
    return x - y * operations.floor(x / y)


def length(x: Any) -> Any:
    """Return the length of a vector."""
    return x.norm()


def dot(x: Any, y: Any) -> Any:
    """Return the sum of the products."""
    return x.dot(y)


def cross(x: Any, y: Any) -> Any:
    """Return the cross product."""
    return x.cross(y)


def distance(x: Any, y: Any) -> Any:
    """Return how far two points are apart."""
    return (x - y).norm()


def normalize(v: Any) -> Any:
    """Return the vector of length 1."""
    return v / v.norm()


def reflect(x: Any, n: Any) -> Any:
    """Return a ray that a surface with this normal throws back."""
    return x - 2.0 * x.dot(n) * n


def refract(x: Any, n: Any, eta: Any) -> Any:
    """Return a ray that goes through a surface."""
    dxn = x.dot(n)
    rest = 1.0 - eta * eta * (1.0 - dxn * dxn)
    result = x * 0.0
    if rest > 0.0:
        result = eta * x - (eta * dxn + operations.sqrt(rest)) * n
    return result


def inverse(mat: Any) -> Any:
    """Return the inverse."""
    return mat.inverse()


def determinant(m: Any) -> Any:
    """Return the determinant."""
    return m.determinant()


def translate(dx: Any, dy: Any, dz: Any) -> Any:
    """Return the matrix that moves points."""
    return mat4([[1.0, 0.0, 0.0, dx], [0.0, 1.0, 0.0, dy], [0.0, 0.0, 1.0, dz], [0.0, 0.0, 0.0, 1.0]])


def scale(sx: Any, sy: Any, sz: Any) -> Any:
    """Return the matrix that stretches axes."""
    return mat4([[sx, 0.0, 0.0, 0.0], [0.0, sy, 0.0, 0.0], [0.0, 0.0, sz, 0.0], [0.0, 0.0, 0.0, 1.0]])


def rotation2d(ang: Any) -> Any:
    """Return the matrix that turns a plane."""
    ca, sa = operations.cos(ang), operations.sin(ang)
    return mat2([[ca, -sa], [sa, ca]])


def rot_by_axis(axis: Any, ang: Any) -> Any:
    """Return the matrix that turns space around an axis."""
    c = operations.cos(ang)
    s = operations.sin(ang)
    n = axis / axis.norm()
    t = (1.0 - c) * n
    return mat4(
        [
            [c + t[0] * n[0], t[0] * n[1] - s * n[2], t[0] * n[2] + s * n[1], 0.0],
            [t[1] * n[0] + s * n[2], c + t[1] * n[1], t[1] * n[2] - s * n[0], 0.0],
            [t[2] * n[0] - s * n[1], t[2] * n[1] + s * n[0], c + t[2] * n[2], 0.0],
            [0.0, 0.0, 0.0, 1.0],
        ]
    )


def rot_yaw_pitch_roll(yaw: Any, pitch: Any, roll: Any) -> Any:
    """Return the matrix that turns space by three angles."""
    ch, sh = operations.cos(yaw), operations.sin(yaw)
    cp, sp = operations.cos(pitch), operations.sin(pitch)
    cb, sb = operations.cos(roll), operations.sin(roll)
    return mat4(
        [
            [ch * cb + sh * sp * sb, sb * cp, -sh * cb + ch * sp * sb, 0.0],
            [-ch * sb + sh * sp * cb, cb * cp, sb * sh + ch * sp * cb, 0.0],
            [sh * cp, -sp, ch * cp, 0.0],
            [0.0, 0.0, 0.0, 1.0],
        ]
    )


def rotation3d(ang_x: Any, ang_y: Any, ang_z: Any) -> Any:
    """Return the matrix that turns space by three angles."""
    return rot_yaw_pitch_roll(ang_z, ang_x, ang_y)


def eye(n: int) -> Any:
    """Return the identity."""
    return Matrix.identity(float, n)


def vdir(ang: Any) -> Any:
    """Return the direction of an angle."""
    return Vector([operations.cos(ang), operations.sin(ang)])


def cmul(x: Any, y: Any) -> Any:
    """Return the product of two vectors as complex numbers."""
    return Vector([x[0] * y[0] - x[1] * y[1], x[0] * y[1] + x[1] * y[0]])


def cconj(x: Any) -> Any:
    """Return the conjugate of a vector as a complex number."""
    return Vector([x[0], -x[1]])


def cdiv(x: Any, y: Any) -> Any:
    """Return the quotient of two vectors as complex numbers."""
    return cmul(x, cconj(y)) / y.dot(y)


def cinv(x: Any) -> Any:
    """Return the inverse of a vector as a complex number."""
    return cconj(x) / x.dot(x)


def cexp(x: Any) -> Any:
    """Return the exponential of a vector as a complex number."""
    return operations.exp(x[0]) * vdir(x[1])


def clog(x: Any) -> Any:
    """Return the logarithm of a vector as a complex number."""
    return Vector([operations.log(x.norm()), operations.atan2(x[1], x[0])])


def cpow(x: Any, n: Any) -> Any:
    """Return a power of a vector as a complex number: 0 of 0, as Taichi has it."""
    size = operations.select(x.dot(x) > 0.0, operations.pow(x.norm(), n), 0.0)
    return size * vdir(n * operations.atan2(x[1], x[0]))


def csqrt(x: Any) -> Any:
    """Return the square root of a vector as a complex number."""
    return cpow(x, 0.5)


def popcnt(x: Any) -> Any:
    """Return how many bits are set."""
    count = 0
    for place in static(range(type_of(x).bits)):
        count += operations.cast(operations.bit_shr(x, place) & 1, i32)
    return count


def clz(x: Any) -> Any:
    """Return how many bits above the highest one are clear."""
    count = 0
    found = 0
    for place in static(range(type_of(x).bits - 1, -1, -1)):
        found |= operations.cast(operations.bit_shr(x, place) & 1, i32)
        count += 1 - found
    return count


__all__ = [
    "acos",
    "asin",
    "atan2",
    "cconj",
    "cdiv",
    "ceil",
    "cexp",
    "cinv",
    "clamp",
    "clog",
    "clz",
    "cmul",
    "cos",
    "cpow",
    "cross",
    "csqrt",
    "degrees",
    "determinant",
    "distance",
    "dot",
    "e",
    "exp",
    "eye",
    "floor",
    "fract",
    "inf",
    "inverse",
    "isinf",
    "isnan",
    "ivec2",
    "ivec3",
    "ivec4",
    "length",
    "log",
    "log2",
    "mat2",
    "mat3",
    "mat4",
    "max",
    "min",
    "mix",
    "mod",
    "nan",
    "normalize",
    "pi",
    "popcnt",
    "pow",
    "radians",
    "reflect",
    "refract",
    "rot_by_axis",
    "rot_yaw_pitch_roll",
    "rotation2d",
    "rotation3d",
    "round",
    "scale",
    "sign",
    "sin",
    "smoothstep",
    "sqrt",
    "step",
    "tan",
    "tanh",
    "translate",
    "uvec2",
    "uvec3",
    "uvec4",
    "vdir",
    "vec2",
    "vec3",
    "vec4",
]
