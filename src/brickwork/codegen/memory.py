"""Loads and stores of elements: addresses from the forms of the indices, and conversions between memory and values.

A run of adjacent elements is one vector access, a reversed run one with a permutation, a run that wraps two with masks;
the rest are gathers and scatters. Nothing but elements of active lanes is ever touched.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

from brickwork.codegen import arrays, lane_access, lanes, pair_access, wide_loads
from brickwork.codegen.elements import narrowed, widened
from brickwork.codegen.emitter_state import State
from brickwork.codegen.lane_access import Place
from brickwork.codegen.lane_values import (
    Ramp,
    Strided,
    Uniform,
    Value,
    Varying,
    Wrapped,
    memory_type,
    type_suffix,
    vector_type,
)
from brickwork.ir.dtypes import INT64, value_dtype
from brickwork.ir.nodes import Tensor
from brickwork.ir.signature import ALIGNMENT
from brickwork.legality import legality

SHARED = "ptr addrspace(3)"
"""The type of an address in a block's shared memory."""
_FULL = "splat (i1 true)"
_FIRST = Uniform("0", INT64)
_NARROW = frozenset({"i8", "i16", "i32"})
"""Integers in memory that values are narrowed to."""


def size(state: State, tensor: Tensor, axis: int) -> str:
    """Return the extent of an axis, as i64."""
    if tensor.is_local:
        return str(tensor.sizes[axis])
    if tensor.type.pairs and axis == tensor.type.rank - 1:
        return "2"
    return state.slot_value(state.layout.tensors[tensor].sizes[axis])


def element_load(state: State, tensor: Tensor, indices: tuple[Value, ...]) -> Value:
    """Return the element at `indices`, widened to its value type."""
    if tensor in state.rows:
        return value_of(state, tensor, [raw_element(state, tensor, indices)])
    kind, offset = memory_type(tensor.type.dtype), element_offset(state, tensor, indices)
    if (array := arrays.lane_array(state, tensor)) is not None:
        text = arrays.load_item(state, array, tensor, offset)
        return Varying(widened(state, text, tensor.type.dtype, state.width), value_dtype(tensor.type.dtype))
    if (items := _from_chunks(state, tensor, offset)) is not None:
        return value_of(state, tensor, items)
    if isinstance(offset, Uniform):
        return value_of(state, tensor, [raw_element(state, tensor, indices)])
    if state.target.grid and not (_is_run(offset) and state.mask is None):
        places, note = _places(state, tensor, indices, offset), _scope(state, tensor)
        text = lane_access.load_lanes(state, kind, places, state.mask, note, _pointer(state, tensor))
    elif isinstance(offset, Strided) and abs(offset.stride) == 1:
        text = _load_run(state, tensor, offset, state.mask)
    elif isinstance(offset, Wrapped) and abs(offset.stride) == 1:
        text = _load_wrapped(state, tensor, offset)
    elif (part := pair_access.part_at(tensor, indices)) is not None and pair_access.are_neighbours(offset):
        text = _load_part(state, tensor, element_offset(state, tensor, (*indices[:-1], _FIRST)), part)
    elif isinstance(offset, Ramp):
        text = _load_ramp(state, tensor, offset)
    else:
        text = _gather(state, tensor, offset)
    return Varying(widened(state, text, tensor.type.dtype, state.width), value_dtype(tensor.type.dtype))


def _load_part(state: State, tensor: Tensor, start: Value, part: int) -> str:
    """Return one part of neighbouring complex elements, out of one load of both parts."""
    kind, width = memory_type(tensor.type.dtype), 2 * state.width
    base = start.base if isinstance(start, Strided) else "0"
    address, scope = _address(state, tensor, base, inside=state.mask is None), _scope(state, tensor)
    whole = f"<{width} x {kind}>"
    if state.mask is None:
        note = f", align {tensor.type.dtype.size}{scope}"
        both = state.writer.load(whole, address, note, pointer=_pointer(state, tensor))
    else:
        name, mask = f"@llvm.masked.load.{type_suffix(kind, width)}.p0", pair_access.doubled(state, state.mask)
        places = f"ptr align {tensor.type.dtype.size} {address}"
        both = state.writer.emit(
            f"call {whole} {name}({places}, <{width} x i1> {mask}, {whole} zeroinitializer){scope}"
        )
    return pair_access.taken(state, kind, both, part)


def pair_store(state: State, tensor: Tensor, indices: tuple[Value, ...], parts: tuple[Value, Value]) -> None:
    """Store both parts of complex elements; `indices` are those of the real part."""
    offset = element_offset(state, tensor, indices)
    if not pair_access.are_neighbours(offset) or not isinstance(offset, Strided):
        element_store(state, tensor, indices, parts[0])
        element_store(state, tensor, (*indices[:-1], Uniform("1", INT64)), parts[1])
        return
    kind, width, scope = memory_type(tensor.type.dtype), 2 * state.width, _scope(state, tensor)
    texts = [narrowed(state, lanes.vector(state, part), tensor.type.dtype, state.width) for part in parts]
    both, whole = pair_access.together(state, kind, texts[0], texts[1]), f"<{width} x {kind}>"
    address = _address(state, tensor, offset.base, inside=state.mask is None)
    if state.mask is None:
        note = f", align {tensor.type.dtype.size}{scope}"
        state.writer.store(whole, both, address, note, pointer=_pointer(state, tensor))
        return
    name, mask = f"@llvm.masked.store.{type_suffix(kind, width)}.p0", pair_access.doubled(state, state.mask)
    places = f"ptr align {tensor.type.dtype.size} {address}"
    state.writer.effect(f"call void {name}({whole} {both}, {places}, <{width} x i1> {mask}){scope}")


def raw_element(state: State, tensor: Tensor, indices: tuple[Value, ...]) -> str:
    """Return the element at `indices` as it lies in memory, for code of one lane."""
    if tensor in state.rows:
        return state.writer.load(memory_type(tensor.type.dtype), _in_row(state, tensor, indices), pointer=SHARED)
    offset = element_offset(state, tensor, indices)
    if not isinstance(offset, Uniform):
        msg = "an element of one lane lies at several places"
        raise TypeError(msg)
    note = f", align {_least_alignment(state, tensor, indices)}{_scope(state, tensor)}"
    address = _address(state, tensor, offset.text)
    return state.writer.load(memory_type(tensor.type.dtype), address, note, pointer=_pointer(state, tensor))


def value_of(state: State, tensor: Tensor, items: Sequence[str]) -> Value:
    """Return the value of elements that were read lane by lane, or of one for all lanes."""
    dtype = tensor.type.dtype
    text = widened(state, lanes.gathered(state, memory_type(dtype), items), dtype, len(items))
    return (Varying if len(items) > 1 else Uniform)(text, value_dtype(dtype))


def element_store(state: State, tensor: Tensor, indices: tuple[Value, ...], value: Value) -> None:
    """Store `value` at `indices`, narrowed to the element type; of lanes at one place the last one stays."""
    if tensor in state.rows:
        address, text = _in_row(state, tensor, indices), lanes.vector(state, value)
        text = narrowed(state, text, tensor.type.dtype, 1)
        state.writer.store(memory_type(tensor.type.dtype), text, address, pointer=SHARED)
        return
    dtype, offset = tensor.type.dtype, element_offset(state, tensor, indices)
    kind, note = memory_type(dtype), f", align {dtype.size}{_scope(state, tensor)}"
    if (array := arrays.lane_array(state, tensor)) is not None:
        text = narrowed(state, lanes.vector(state, value), dtype, state.width)
        arrays.store_item(state, array, tensor, offset, text)
        return
    if isinstance(offset, Uniform):
        text, width = (value.text, 1) if isinstance(value, Uniform) else (lanes.vector(state, value), state.width)
        text = narrowed(state, text, dtype, width)
        if width > 1:
            text = lanes.pick(state, kind, text, lanes.last_active(state))
        alignment = max(_alignment_at(state, tensor, offset.text), _least_alignment(state, tensor, indices))
        note = f", align {alignment}{_scope(state, tensor)}"
        state.writer.store(kind, text, _address(state, tensor, offset.text), note, pointer=_pointer(state, tensor))
        return
    text = narrowed(state, lanes.vector(state, value), dtype, state.width)
    whole = f"<{state.width} x {kind}>"
    if state.target.grid and not (_is_run(offset) and state.mask is None):
        places, note = _places(state, tensor, indices, offset), _scope(state, tensor)
        lane_access.store_lanes(state, kind, text, places, state.mask, note, _pointer(state, tensor))
        return
    if isinstance(offset, Strided) and abs(offset.stride) == 1:
        address, mask = _run(state, tensor, offset, state.mask)
        if offset.stride < 0:
            text = _reversed(state, text, kind)
        if mask is None:
            note = f", align {_alignment(state, tensor, offset)}{_scope(state, tensor)}"
            state.writer.store(whole, text, address, note, pointer=_pointer(state, tensor))
            return
        if state.target.mask_registers and kind in _NARROW:
            mask = _unknown(state, mask)
        name = f"@llvm.masked.store.{type_suffix(kind, state.width)}.p0"
        arguments = f"{whole} {text}, ptr align {dtype.size} {address}, <{state.width} x i1> {mask}"
        state.writer.effect(f"call void {name}({arguments}){_scope(state, tensor)}")
        return
    addresses = f"<{state.width} x ptr> {_addresses(state, tensor, offset)}"
    mask = state.mask or _FULL
    name = f"@llvm.masked.scatter.{type_suffix(kind, state.width)}.v{state.width}p0"
    places = addresses.replace("> ", f"> align {dtype.size} ", 1)
    state.writer.effect(
        f"call void {name}({whole} {text}, {places}, {mask_argument(state, mask)}){_scope(state, tensor)}"
    )


def _unknown(state: State, mask: str) -> str:
    """Return a mask whose lanes LLVM cannot know.

    A store of narrowed integers under a mask that is known to have one lane would write the wide integer with LLVM 22:
    beyond the element, and beyond the tensor.
    """
    width, bits = state.width, max(state.width, 8)
    text = state.writer.emit(f"bitcast <{width} x i1> {mask} to i{width}")
    if width < bits:
        text = state.writer.emit(f"zext i{width} {text} to i{bits}")
    text = state.writer.emit(f'call i{bits} asm "", "=k,0"(i{bits} {text})')
    if width < bits:
        text = state.writer.emit(f"trunc i{bits} {text} to i{width}")
    return state.writer.emit(f"bitcast i{width} {text} to <{width} x i1>")


def _from_chunks(state: State, tensor: Tensor, offset: Value) -> list[str] | None:
    """Return the elements, lane by lane, out of aligned chunks, where an unrolled loop reads such chunks."""
    whole, active = ALIGNMENT // tensor.type.dtype.size, lanes.known_lanes(state.mask, state.width)
    place = _within_chunks(state, tensor, offset)
    if place is None or active is None:
        return None
    root, constant, stride = place
    steps = [stride * lane for lane in range(state.width)] if isinstance(offset, Strided) else [0]
    if max(map(abs, steps)) >= len(steps):
        return None
    kind, start = memory_type(tensor.type.dtype), offset_address(state, tensor, root)
    items: list[str] = []
    for step, read in zip(steps, active if len(steps) > 1 else (True,), strict=True):
        if not read:
            items.append("zeroinitializer")
            continue
        item = (constant + step) % whole
        chunk = load_chunk(state, tensor, start, constant + step - item)
        items.append(state.writer.emit(f"extractelement <{whole} x {kind}> {chunk}, i64 {item}"))
    return items


def place_in_chunks(state: State, tensor: Tensor, indices: tuple[Value, ...]) -> tuple[str, int, int] | None:
    """Return where the first lane accesses a tensor, as a multiple of a chunk and a constant, and the lanes' stride.

    None where chunks cannot be read, or the place in them is not known.
    """
    return _within_chunks(state, tensor, element_offset(state, tensor, indices))


@legality
def _within_chunks(state: State, tensor: Tensor, offset: Value) -> tuple[str, int, int] | None:
    if not isinstance(offset, Uniform | Strided) or not wide_loads.has_chunks(state, tensor):
        return None
    root, constant = state.writer.parts(offset.text if isinstance(offset, Uniform) else offset.base)
    if state.writer.known(root).multiple % (ALIGNMENT // tensor.type.dtype.size):
        return None
    return root, constant, offset.stride if isinstance(offset, Strided) else 0


def load_chunk(state: State, tensor: Tensor, start: str, distance: int) -> str:
    """Return the chunk that lies so many elements from an address."""
    kind, pointer = memory_type(tensor.type.dtype), _pointer(state, tensor)
    address = state.writer.emit(f"getelementptr {kind}, {pointer} {start}, i64 {distance}")
    note = f", align {ALIGNMENT}{_scope(state, tensor)}"
    return state.writer.load(f"<{ALIGNMENT // tensor.type.dtype.size} x {kind}>", address, note, pointer=pointer)


def _is_run(offset: Value) -> bool:
    return isinstance(offset, Strided) and abs(offset.stride) == 1


def mask_argument(state: State, mask: str) -> str:
    """Return a mask with its type."""
    return f"<{state.width} x i1> {mask}"


def element_addresses(state: State, tensor: Tensor, indices: tuple[Value, ...]) -> str:
    """Return the addresses of elements as a vector of pointers; at width 1, as a pointer."""
    offset = element_offset(state, tensor, indices)
    if state.width == 1 and isinstance(offset, Uniform):
        return _address(state, tensor, offset.text)
    return _addresses(state, tensor, offset)


def element_offset(state: State, tensor: Tensor, indices: tuple[Value, ...]) -> Value:
    """Return the distance in elements from the tensor's first element; what leads to it may be modulo 2**32."""
    with state.writer.modular(narrow=tensor.is_local or tensor in state.kernel.narrow):
        return _distance(state, tensor, indices)


def _distance(state: State, tensor: Tensor, indices: tuple[Value, ...]) -> Value:
    offset: Value = Uniform("0", INT64)
    for axis, index in enumerate(indices):
        if tensor.type.contiguous and axis:
            offset = _multiply(state, offset, Uniform(size(state, tensor, axis), INT64))
        step: Value = index
        if not tensor.type.contiguous and axis != tensor.type.unit_axis:
            stride = state.slot_value(state.layout.tensors[tensor].strides[axis])
            step = _multiply(state, index, Uniform(stride, INT64))
        offset = step if offset == Uniform("0", INT64) else sum_of(state, offset, step)
    return offset


def _in_row(state: State, tensor: Tensor, indices: tuple[Value, ...]) -> str:
    """Return the address of an element in shared memory."""
    row = state.rows[tensor]
    with state.writer.modular():
        place, *rest = indices[row.axes :]
        for axis, index in enumerate(rest, row.axes + 1):
            place = sum_of(state, _multiply(state, place, Uniform(size(state, tensor, axis), INT64)), index)
        offset = lanes.subtract(state, place, Uniform(row.first, INT64))
    if not isinstance(offset, Uniform):
        raise TypeError("an element of one lane lies at several places")
    return state.writer.emit(
        f"getelementptr {memory_type(tensor.type.dtype)}, {SHARED} {row.address}, i64 {offset.text}"
    )


def sum_of(state: State, left: Value, right: Value) -> Value:
    """Return the sum of two int64, lane by lane."""
    kind = vector_type("i64", state.width)
    return lanes.add(state, left, right) or Varying(
        state.writer.emit(f"add {kind} {lanes.vector(state, left)}, {lanes.vector(state, right)}"), INT64
    )


def _multiply(state: State, left: Value, right: Value) -> Value:
    if left == Uniform("0", INT64):
        return left
    kind = vector_type("i64", state.width)
    return lanes.multiply(state, left, right) or Varying(
        state.writer.emit(f"mul {kind} {lanes.vector(state, left)}, {lanes.vector(state, right)}"), INT64
    )


def offset_address(state: State, tensor: Tensor, offset: str) -> str:
    """Return the address at a distance in elements, which may be beyond the tensor."""
    return _address(state, tensor, offset, inside=False)


def _address(state: State, tensor: Tensor, offset: str, *, inside: bool = True) -> str:
    """Return an element's address; not `inside` where the first lane is masked out and may be beyond the tensor."""
    kind = f"getelementptr{' inbounds' if inside else ''} {memory_type(tensor.type.dtype)}"
    return state.writer.emit(f"{kind}, {_pointer(state, tensor)} {_data(state, tensor)}, i64 {offset}")


def _data(state: State, tensor: Tensor) -> str:
    """Return the address of a tensor's first element."""
    if tensor.is_local:
        return state.arrays[tensor].address
    return state.slot_value(state.layout.tensors[tensor].data, "ptr")


def _pointer(state: State, tensor: Tensor) -> str:
    """Return the LLVM type of an address in a tensor."""
    return state.arrays[tensor].pointer if tensor.is_local else state.pointer


def _addresses(state: State, tensor: Tensor, offset: Value) -> str:
    emit, kind = state.writer.emit, memory_type(tensor.type.dtype)
    if isinstance(offset, Uniform | Strided):
        base = offset.text if isinstance(offset, Uniform) else offset.base
        first = _address(state, tensor, base, inside=state.mask is None)
        steps = lanes.lane_numbers(state.width, stride=offset.stride if isinstance(offset, Strided) else 0)
        return emit(f"getelementptr {kind}, {_pointer(state, tensor)} {first}, <{state.width} x i64> {steps}")
    if isinstance(offset, Ramp):
        first, steps = _address(state, tensor, offset.base, inside=state.mask is None), lanes.ramp_steps(state, offset)
        return emit(f"getelementptr {kind}, {_pointer(state, tensor)} {first}, <{state.width} x i64> {steps}")
    data = _data(state, tensor)
    if state.target.grid and isinstance(offset, Wrapped):
        with state.writer.modular(narrow=tensor in state.kernel.narrow):
            places = lane_access.wrapped_offsets(state, offset)
    else:
        places = lanes.vector(state, offset)
    return emit(f"getelementptr {kind}, {_pointer(state, tensor)} {data}, <{state.width} x i64> {places}")


def _places(state: State, tensor: Tensor, indices: tuple[Value, ...], offset: Value) -> list[Place]:
    """Return where the lanes of a thread access a tensor: scalar addresses, so that LLVM sees which are neighbours."""
    emit, size = state.writer.emit, tensor.type.dtype.size
    if any(isinstance(index, Varying | Wrapped) for index in indices) or state.mask is not None:
        places, whole = _addresses(state, tensor, offset), f"<{state.width} x {_pointer(state, tensor)}>"
        return [Place(emit(f"extractelement {whole} {places}, i64 {lane}"), size) for lane in range(state.width)]
    result: list[Place] = []
    for lane in range(state.width):
        here = tuple(_in_lane(state, index, lane) for index in indices)
        found = element_offset(state, tensor, here)
        base = found.text if isinstance(found, Uniform) else "0"
        result.append(Place(_address(state, tensor, base), _alignment(state, tensor, Strided(base, 1))))
    return result


def _in_lane(state: State, index: Value, lane: int) -> Value:
    if isinstance(index, Strided):
        return Uniform(state.writer.emit(f"add i64 {index.base}, {index.stride * lane}"), INT64)
    return index


def _run(state: State, tensor: Tensor, offset: Strided, mask: str | None) -> tuple[str, str | None]:
    """Return the lowest address of a run of stride 1 or -1, and the mask in the order of addresses."""
    if offset.stride > 0:
        return _address(state, tensor, offset.base, inside=mask is None), mask
    low = state.writer.emit(f"sub i64 {offset.base}, {state.width - 1}")
    return _address(state, tensor, low, inside=mask is None), None if mask is None else _reversed(state, mask, "i1")


def _alignment(state: State, tensor: Tensor, offset: Strided) -> int:
    """Return the bytes of which the lowest address of a run is known to be a multiple."""
    size = tensor.type.dtype.size
    if tensor not in state.kernel.aligned:
        return size
    first = gcd(state.writer.known(offset.base).multiple, 1 if offset.stride < 0 else ALIGNMENT)
    return max(size, gcd(first * size, ALIGNMENT))


def _alignment_at(state: State, tensor: Tensor, offset: str) -> int:
    """Return the bytes of which the address of an element is known to be a multiple: LLVM joins neighbouring stores."""
    size = tensor.type.dtype.size
    if tensor not in state.kernel.aligned or not state.writer.is_folding:
        return size
    root, constant = state.writer.parts(offset)
    return max(size, gcd(state.writer.known(root).multiple * size, constant * size, ALIGNMENT))


@legality
def _least_alignment(state: State, tensor: Tensor, indices: Sequence[Value]) -> int:
    """Return the bytes of which an element's address is a multiple: a complex one lies at a multiple of its own size.

    So it does where the tensor begins at a multiple of what holds it.
    """
    size = tensor.type.dtype.size
    whole = tensor in state.kernel.aligned and pair_access.part_at(tensor, indices) == 0
    return 2 * size if whole else size


def _reversed(state: State, text: str, kind: str) -> str:
    whole, picks = f"<{state.width} x {kind}>", ", ".join(f"i32 {lane}" for lane in reversed(range(state.width)))
    return state.writer.emit(f"shufflevector {whole} {text}, {whole} poison, <{state.width} x i32> <{picks}>")


def _load_run(state: State, tensor: Tensor, offset: Strided, mask: str | None, otherwise: str | None = None) -> str:
    """Return the run of stride 1 or -1 at `offset`; lanes out of `mask` take those of `otherwise`."""
    kind, dtype = memory_type(tensor.type.dtype), tensor.type.dtype
    whole = f"<{state.width} x {kind}>"
    address, mask = _run(state, tensor, offset, mask)
    if mask is None:
        alignment = _alignment(state, tensor, offset)
        note = f", align {alignment}{_scope(state, tensor)}"
        text = state.writer.load(whole, address, note, pointer=_pointer(state, tensor))
    else:
        # Zeros, not poison: masked lanes go through the same arithmetic, where they must not trap or spread.
        passed = otherwise or "zeroinitializer"
        if otherwise and offset.stride < 0:
            passed = _reversed(state, otherwise, kind)
        name = f"@llvm.masked.load.{type_suffix(kind, state.width)}.p0"
        arguments = f"ptr align {dtype.size} {address}, {mask_argument(state, mask)}, {whole} {passed}"
        text = state.writer.emit(f"call {whole} {name}({arguments}){_scope(state, tensor)}")
    return _reversed(state, text, kind) if offset.stride < 0 else text


def _load_wrapped(state: State, tensor: Tensor, offset: Wrapped) -> str:
    """Return a run that jumps where lanes wrap: two masked loads where they wrap at most once, else a gather."""
    writer, width = state.writer, state.width
    kind = f"<{width} x {memory_type(tensor.type.dtype)}>"
    once, often, after = writer.label("once"), writer.label("often"), writer.label("loaded")
    writer.branch_if(writer.emit(f"icmp sge i32 {offset.wraps.period}, {width - 1}"), once, often)
    writer.place(once)
    wrapped = lanes.wrapped_lanes(state, offset.wraps)
    straight = writer.emit(f"xor <{width} x i1> {wrapped}, splat (i1 true)")
    near = _load_run(state, tensor, Strided(offset.base, offset.stride), lanes.both(state, state.mask, straight))
    beyond = writer.emit(f"add i64 {offset.base}, {offset.jump}")
    far = _load_run(state, tensor, Strided(beyond, offset.stride), lanes.both(state, state.mask, wrapped), near)
    block = writer.block
    writer.branch(after)
    writer.place(often)
    gathered = _gather(state, tensor, offset)
    other = writer.block
    writer.place(after)
    return writer.emit(f"phi {kind} [{far}, %{block}], [{gathered}, %{other}]")


def _load_ramp(state: State, tensor: Tensor, offset: Ramp) -> str:
    """Return elements at a distance that is known at run time: a run where that is one, else a gather."""
    writer, kind = state.writer, f"<{state.width} x {memory_type(tensor.type.dtype)}>"
    near, far, after = writer.label("near"), writer.label("far"), writer.label("loaded")
    writer.branch_if(writer.emit(f"icmp eq i64 {offset.step}, 1"), near, far)
    writer.place(near)
    run, first = _load_run(state, tensor, Strided(offset.base, 1), state.mask), writer.block
    writer.branch(after)
    writer.place(far)
    gathered, second = _gather(state, tensor, offset), writer.block
    writer.place(after)
    return writer.emit(f"phi {kind} [{run}, %{first}], [{gathered}, %{second}]")


def _gather(state: State, tensor: Tensor, offset: Value) -> str:
    kind = memory_type(tensor.type.dtype)
    whole, places = f"<{state.width} x {kind}>", _addresses(state, tensor, offset)
    name = f"@llvm.masked.gather.{type_suffix(kind, state.width)}.v{state.width}p0"
    pointers = f"<{state.width} x ptr> align {tensor.type.dtype.size} {places}"
    mask = mask_argument(state, state.mask or _FULL)
    return state.writer.emit(f"call {whole} {name}({pointers}, {mask}, {whole} zeroinitializer){_scope(state, tensor)}")


def _scope(state: State, tensor: Tensor) -> str:
    """Return the note that accesses of different tensors do not meet; those that change places share one."""
    if state.kernel.may_alias or tensor.is_local:
        return ""
    module, name = state.module, state.kernel.name
    domain = module.metadata(f'distinct !{{!"{name}"}}')
    moving = state.layout.handles if state.moving else {}
    owners = {item: "moving" if item in moving else item.number for item in state.kernel.tensors}
    scopes = {item: module.metadata(f'distinct !{{!"{name} {owner}", {domain}}}') for item, owner in owners.items()}
    others = ", ".join(dict.fromkeys(scope for item, scope in scopes.items() if owners[item] != owners[tensor]))
    own = module.metadata(f"!{{{scopes[tensor]}}}")
    return f", !alias.scope {own}, !noalias {module.metadata(f'!{{{others}}}')}"
