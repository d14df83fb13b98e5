"""The support object: what all entries share, and the gates themselves, as one LLVM module that never changes.

It is compiled once, cached, and loaded once for each operator with these names bound: `bw_next` (the head of the chain:
an address), `bw_table` (see `argument_table`), and the callbacks `bw_on_miss`, `bw_on_autograd`. Handles are owned by
whoever holds the stack; nothing in here throws through a frame of its own: gates jump to what throws.
"""

from __future__ import annotations

from collections.abc import Sequence

from brickwork.host.torch_abi import CPLUSPLUS, RUNTIME, STABLE, UNDEFINED_TENSOR

PLAIN, TENSOR, OPTIONAL_TENSOR, LIST, TENSOR_LIST = range(5)
"""Kinds of stack slots as the support functions tell them apart: who owns what, and where tensors are."""

OTHER_KEYS, REQUIRES_GRAD, FORWARD_GRAD = 1, 2, 4
"""Why the autograd gate asks Python, as bits: keys beyond those of plain tensors, and gradients asked for."""

PARALLEL_FILL = 1 << 15
"""Elements that one thread fills at least."""


def argument_table(
    offset: int, allowed: int, modes: Sequence[int], inplace: int, kinds: Sequence[int]
) -> tuple[int, ...]:
    """Return the words of `bw_table`.

    `offset` is where a TensorImpl keeps its key set (-1: unknown), `allowed` the keys that plain tensors have, `modes`
    four dispatch keys that must not be included by a mode, `inplace` the key ADInplaceOrView (not included: inference
    mode), `kinds` one number a stack slot.
    """
    first, second, third, fourth = modes
    return (offset, ~allowed, first, second, third, fourth, inplace, len(kinds), *kinds)


def support_text() -> str:
    """Return the module as LLVM assembly."""
    declarations = "\n".join(function.declaration() for function in (*STABLE, *CPLUSPLUS, *RUNTIME))
    fills = "".join(_FILL.replace("KIND", kind) for kind in ("i8", "i16", "i32", "i64"))
    allocate = _ALLOCATE.replace("FILLS", fills).replace("GRAIN", str(PARALLEL_FILL))
    return "\n".join((declarations, _GLOBALS, _INSPECT, _SHAPES, allocate, _HANDLES, _AUTOGRAD, _GATES, _EXCEPTION))


_GLOBALS = f"""
@bw_next = external global ptr
@bw_table = external global i64
@{UNDEFINED_TENSOR} = external global ptr
declare i64 @bw_on_miss(ptr, i64, i64)
declare i64 @bw_on_autograd(ptr, i64, i64, i64)
declare i32 @PyGILState_Ensure()
declare void @PyGILState_Release(i32)
declare void @Py_DecRef(ptr)
@empty_like = private unnamed_addr constant [17 x i8] c"aten::empty_like\\00"
@no_name = private unnamed_addr constant [1 x i8] c"\\00"
"""

_INSPECT = """
; Whether the tensor is of the type in %word (codegen/support.py); fills its block.
define i1 @bw_inspect(ptr %handle, i64 %word, ptr %block) {
start:
  %out = alloca i64
  store i64 0, ptr %out
  %r.dim = call i32 @aoti_torch_get_dim(ptr %handle, ptr %out)
  %rank = load i64, ptr %out
  %want.rank = and i64 %word, 255
  %same.rank = icmp eq i64 %rank, %want.rank
  br i1 %same.rank, label %dtype, label %no
dtype:
  %r.dtype = call i32 @aoti_torch_get_dtype(ptr %handle, ptr %out)
  %dtype32 = load i32, ptr %out
  %dtype64 = zext i32 %dtype32 to i64
  %word.dtype = lshr i64 %word, 8
  %want.dtype = and i64 %word.dtype, 255
  %same.dtype = icmp eq i64 %dtype64, %want.dtype
  br i1 %same.dtype, label %device, label %no
device:
  %r.device = call i32 @aoti_torch_get_device_type(ptr %handle, ptr %out)
  %device32 = load i32, ptr %out
  %on.cpu = icmp eq i32 %device32, 0
  br i1 %on.cpu, label %layout, label %no
layout:
  %r.sizes = call i32 @aoti_torch_get_sizes(ptr %handle, ptr %out)
  %sizes = load ptr, ptr %out
  %r.strides = call i32 @aoti_torch_get_strides(ptr %handle, ptr %out)
  %strides = load ptr, ptr %out
  %block.sizes = getelementptr i64, ptr %block, i64 1
  %block.strides = getelementptr i64, ptr %block.sizes, i64 %rank
  br label %head
head:
  %left = phi i64 [%rank, %layout], [%axis, %body]
  %expected = phi i64 [1, %layout], [%expected.next, %body]
  %dense = phi i1 [true, %layout], [%dense.next, %body]
  %empty = phi i1 [false, %layout], [%empty.next, %body]
  %unit = phi i64 [0, %layout], [%unit.next, %body]
  %more = icmp ne i64 %left, 0
  br i1 %more, label %body, label %judge
body:
  %axis = sub i64 %left, 1
  %size.at = getelementptr i64, ptr %sizes, i64 %axis
  %size = load i64, ptr %size.at
  %stride.at = getelementptr i64, ptr %strides, i64 %axis
  %stride = load i64, ptr %stride.at
  %block.size.at = getelementptr i64, ptr %block.sizes, i64 %axis
  store i64 %size, ptr %block.size.at
  %block.stride.at = getelementptr i64, ptr %block.strides, i64 %axis
  store i64 %stride, ptr %block.stride.at
  %single = icmp eq i64 %size, 1
  %fits = icmp eq i64 %stride, %expected
  %fine = or i1 %single, %fits
  %dense.next = and i1 %dense, %fine
  %none = icmp eq i64 %size, 0
  %empty.next = or i1 %empty, %none
  %expected.next = mul i64 %expected, %size
  %adjacent = icmp eq i64 %stride, 1
  %small = icmp sle i64 %size, 1
  %unit.here = or i1 %adjacent, %small
  %unit.unset = icmp eq i64 %unit, 0
  %unit.take = and i1 %unit.here, %unit.unset
  %unit.next = select i1 %unit.take, i64 %left, i64 %unit
  br label %head
judge:
  %contiguous = or i1 %dense, %empty
  %word.contiguous = lshr i64 %word, 16
  %want.contiguous = trunc i64 %word.contiguous to i1
  %differs = xor i1 %contiguous, %want.contiguous
  %word.unit = lshr i64 %word, 24
  %want.unit = and i64 %word.unit, 255
  %same.unit = icmp eq i64 %unit, %want.unit
  %same.contiguous = xor i1 %differs, true
  %same.layout = and i1 %same.unit, %same.contiguous
  br i1 %same.layout, label %data, label %no
data:
  %written.bits = lshr i64 %word, 17
  %written = trunc i64 %written.bits to i1
  br i1 %written, label %mutable, label %constant
mutable:
  %r.mutable = call i32 @aoti_torch_get_data_ptr(ptr %handle, ptr %block)
  %mutable.ok = icmp eq i32 %r.mutable, 0
  ret i1 %mutable.ok
constant:
  %r.constant = call i32 @torch_get_const_data_ptr(ptr %handle, ptr %block)
  %constant.ok = icmp eq i32 %r.constant, 0
  ret i1 %constant.ok
no:
  ret i1 false
}

; Whether an optional key is absent, or an int64 CPU tensor of one element.
define i1 @bw_inspect_key(ptr %optional) {
start:
  %out = alloca i64
  %absent = icmp eq ptr %optional, null
  br i1 %absent, label %yes, label %present
present:
  store i64 0, ptr %out
  %handle = load ptr, ptr %optional
  %r.dtype = call i32 @aoti_torch_get_dtype(ptr %handle, ptr %out)
  %dtype = load i32, ptr %out
  %is.int64 = icmp eq i32 %dtype, 4
  %r.device = call i32 @aoti_torch_get_device_type(ptr %handle, ptr %out)
  %device = load i32, ptr %out
  %on.cpu = icmp eq i32 %device, 0
  %r.numel = call i32 @aoti_torch_get_numel(ptr %handle, ptr %out)
  %numel = load i64, ptr %out
  %is.one = icmp eq i64 %numel, 1
  %typed = and i1 %is.int64, %on.cpu
  %fits = and i1 %typed, %is.one
  ret i1 %fits
yes:
  ret i1 true
}

; The key: the tensor's element, or 63 bits drawn from torch's default generator.
define i64 @bw_read_key(ptr %optional) {
start:
  %out = alloca ptr
  %size = alloca i64
  store i64 1, ptr %size
  %absent = icmp eq ptr %optional, null
  br i1 %absent, label %draw, label %present
present:
  %handle = load ptr, ptr %optional
  %r.data = call i32 @torch_get_const_data_ptr(ptr %handle, ptr %out)
  %data = load ptr, ptr %out
  %given = load i64, ptr %data
  ret i64 %given
draw:
  %r.made = call i32 @aoti_torch_empty_strided(i64 1, ptr %size, ptr %size, i32 4, i32 0, i32 0, ptr %out)
  %made = load ptr, ptr %out
  %r.drawn = call i32 @aoti_torch_cpu_randint_low_out(ptr %made, i64 0, i64 9223372036854775807, ptr %size, i64 1)
  %r.made.data = call i32 @torch_get_const_data_ptr(ptr %made, ptr %out)
  %made.data = load ptr, ptr %out
  %drawn = load i64, ptr %made.data
  %r.deleted = call i32 @aoti_torch_delete_tensor_object(ptr %made)
  ret i64 %drawn
}

; Whether a list has %length items; copies them.
define i1 @bw_inspect_list(ptr %list, i64 %length, ptr %items) {
start:
  %out = alloca i64
  %r.size = call i32 @torch_list_size(ptr %list, ptr %out)
  %size = load i64, ptr %out
  %same = icmp eq i64 %size, %length
  br i1 %same, label %head, label %no
head:
  %index = phi i64 [0, %start], [%next, %body]
  %more = icmp ult i64 %index, %length
  br i1 %more, label %body, label %yes
body:
  %item.at = getelementptr i64, ptr %items, i64 %index
  %r.item = call i32 @torch_list_get_item(ptr %list, i64 %index, ptr %item.at)
  %next = add i64 %index, 1
  br label %head
yes:
  ret i1 true
no:
  ret i1 false
}
"""

_SHAPES = """
; Bytes from the first element of a block to the end of the last; 0 if it is empty.
define internal i64 @extent(ptr %block, i64 %word) {
start:
  %rank = and i64 %word, 255
  %element = lshr i64 %word, 32
  %sizes = getelementptr i64, ptr %block, i64 1
  %strides = getelementptr i64, ptr %sizes, i64 %rank
  br label %head
head:
  %axis = phi i64 [0, %start], [%next, %step]
  %last = phi i64 [0, %start], [%last.next, %step]
  %more = icmp ult i64 %axis, %rank
  br i1 %more, label %body, label %end
body:
  %size.at = getelementptr i64, ptr %sizes, i64 %axis
  %size = load i64, ptr %size.at
  %none = icmp eq i64 %size, 0
  br i1 %none, label %empty, label %step
step:
  %stride.at = getelementptr i64, ptr %strides, i64 %axis
  %stride = load i64, ptr %stride.at
  %steps = sub i64 %size, 1
  %way = mul i64 %steps, %stride
  %last.next = add i64 %last, %way
  %next = add i64 %axis, 1
  br label %head
end:
  %count = add i64 %last, 1
  %bytes = mul i64 %count, %element
  ret i64 %bytes
empty:
  ret i64 0
}

; Whether the memory of two blocks overlaps.
define i1 @bw_overlap(ptr %one, i64 %one.word, ptr %two, i64 %two.word) {
  %one.extent = call i64 @extent(ptr %one, i64 %one.word)
  %two.extent = call i64 @extent(ptr %two, i64 %two.word)
  %one.start = load i64, ptr %one
  %two.start = load i64, ptr %two
  %one.end = add i64 %one.start, %one.extent
  %two.end = add i64 %two.start, %two.extent
  %before = icmp ult i64 %one.start, %two.end
  %after = icmp ult i64 %two.start, %one.end
  %meet = and i1 %before, %after
  %one.some = icmp ne i64 %one.extent, 0
  %two.some = icmp ne i64 %two.extent, 0
  %some = and i1 %one.some, %two.some
  %overlap = and i1 %meet, %some
  ret i1 %overlap
}

; Whether different indices are seen to have different addresses: host/layout.py `is_injective`.
define i1 @bw_injective(ptr %block, i64 %word) {
start:
  %bytes = call i64 @extent(ptr %block, i64 %word)
  %empty = icmp eq i64 %bytes, 0
  %rank = and i64 %word, 255
  %sizes = getelementptr i64, ptr %block, i64 1
  %strides = getelementptr i64, ptr %sizes, i64 %rank
  br i1 %empty, label %yes, label %head
head:
  %axis = phi i64 [0, %start], [%axis.next, %step]
  %more = icmp ult i64 %axis, %rank
  br i1 %more, label %body, label %yes
body:
  %size.at = getelementptr i64, ptr %sizes, i64 %axis
  %size = load i64, ptr %size.at
  %stride.at = getelementptr i64, ptr %strides, i64 %axis
  %stride = load i64, ptr %stride.at
  %single = icmp eq i64 %size, 1
  br i1 %single, label %step, label %inner
inner:
  %other = phi i64 [0, %body], [%other.next, %within]
  %sum = phi i64 [0, %body], [%sum.next, %within]
  %inner.more = icmp ult i64 %other, %rank
  br i1 %inner.more, label %within, label %compare
within:
  %other.size.at = getelementptr i64, ptr %sizes, i64 %other
  %other.size = load i64, ptr %other.size.at
  %other.stride.at = getelementptr i64, ptr %strides, i64 %other
  %other.stride = load i64, ptr %other.stride.at
  %less = icmp slt i64 %other.stride, %stride
  %equal = icmp eq i64 %other.stride, %stride
  %earlier = icmp ult i64 %other, %axis
  %tie = and i1 %equal, %earlier
  %inside = or i1 %less, %tie
  %steps = sub i64 %other.size, 1
  %way = mul i64 %steps, %other.stride
  %counted = select i1 %inside, i64 %way, i64 0
  %sum.next = add i64 %sum, %counted
  %other.next = add i64 %other, 1
  br label %inner
compare:
  %apart = icmp sgt i64 %stride, %sum
  br i1 %apart, label %step, label %no
step:
  %axis.next = add i64 %axis, 1
  br label %head
yes:
  ret i1 true
no:
  ret i1 false
}

; Whether an axis of more than one element has stride 0.
define i1 @bw_expanded(ptr %block, i64 %word) {
start:
  %bytes = call i64 @extent(ptr %block, i64 %word)
  %empty = icmp eq i64 %bytes, 0
  %rank = and i64 %word, 255
  %sizes = getelementptr i64, ptr %block, i64 1
  %strides = getelementptr i64, ptr %sizes, i64 %rank
  br i1 %empty, label %no, label %head
head:
  %axis = phi i64 [0, %start], [%next, %body]
  %more = icmp ult i64 %axis, %rank
  br i1 %more, label %body, label %no
body:
  %size.at = getelementptr i64, ptr %sizes, i64 %axis
  %size = load i64, ptr %size.at
  %stride.at = getelementptr i64, ptr %strides, i64 %axis
  %stride = load i64, ptr %stride.at
  %several = icmp sgt i64 %size, 1
  %still = icmp eq i64 %stride, 0
  %bad = and i1 %several, %still
  %next = add i64 %axis, 1
  br i1 %bad, label %yes, label %head
yes:
  ret i1 true
no:
  ret i1 false
}

; Whether a block has the sizes at %sizes.
define i1 @bw_same_sizes(ptr %block, ptr %sizes, i64 %rank) {
start:
  %mine = getelementptr i64, ptr %block, i64 1
  br label %head
head:
  %axis = phi i64 [0, %start], [%next, %body]
  %more = icmp ult i64 %axis, %rank
  br i1 %more, label %body, label %yes
body:
  %mine.at = getelementptr i64, ptr %mine, i64 %axis
  %mine.size = load i64, ptr %mine.at
  %size.at = getelementptr i64, ptr %sizes, i64 %axis
  %size = load i64, ptr %size.at
  %same = icmp eq i64 %mine.size, %size
  %next = add i64 %axis, 1
  br i1 %same, label %head, label %no
yes:
  ret i1 true
no:
  ret i1 false
}
"""

_ALLOCATE = """
; Row-major dense strides of a block's sizes, by torch's rule for empty tensors.
define internal void @dense(ptr %block, i64 %rank) {
start:
  %sizes = getelementptr i64, ptr %block, i64 1
  %strides = getelementptr i64, ptr %sizes, i64 %rank
  br label %head
head:
  %left = phi i64 [%rank, %start], [%axis, %body]
  %stride = phi i64 [1, %start], [%stride.next, %body]
  %more = icmp ne i64 %left, 0
  br i1 %more, label %body, label %end
body:
  %axis = sub i64 %left, 1
  %stride.at = getelementptr i64, ptr %strides, i64 %axis
  store i64 %stride, ptr %stride.at
  %size.at = getelementptr i64, ptr %sizes, i64 %axis
  %size = load i64, ptr %size.at
  %some = icmp sgt i64 %size, 1
  %factor = select i1 %some, i64 %size, i64 1
  %stride.next = mul i64 %stride, %factor
  br label %head
end:
  ret void
}

; The number of elements of a block, or -1 if a size is negative.
define internal i64 @count(ptr %block, i64 %rank) {
start:
  %sizes = getelementptr i64, ptr %block, i64 1
  br label %head
head:
  %axis = phi i64 [0, %start], [%next, %body]
  %product = phi i64 [1, %start], [%product.next, %body]
  %negative = phi i1 [false, %start], [%negative.next, %body]
  %more = icmp ult i64 %axis, %rank
  br i1 %more, label %body, label %end
body:
  %size.at = getelementptr i64, ptr %sizes, i64 %axis
  %size = load i64, ptr %size.at
  %below = icmp slt i64 %size, 0
  %negative.next = or i1 %negative, %below
  %product.next = mul i64 %product, %size
  %next = add i64 %axis, 1
  br label %head
end:
  %result = select i1 %negative, i64 -1, i64 %product
  ret i64 %result
}

; The strides of torch.empty_like(%like), copied into a block of the same sizes; false where that is not possible.
define internal i1 @like(ptr %block, i64 %word, ptr %like) {
start:
  %out = alloca ptr
  %stack = alloca [6 x i64]
  %rank = and i64 %word, 255
  %bytes = mul i64 %rank, 8
  %block.sizes = getelementptr i64, ptr %block, i64 1
  %block.strides = getelementptr i64, ptr %block.sizes, i64 %rank
  %r.sizes = call i32 @aoti_torch_get_sizes(ptr %like, ptr %out)
  %sizes = load ptr, ptr %out
  %same = call i1 @bw_same_sizes(ptr %block, ptr %sizes, i64 %rank)
  br i1 %same, label %strided, label %no
strided:
  %r.strides = call i32 @aoti_torch_get_strides(ptr %like, ptr %out)
  %strides = load ptr, ptr %out
  call void @llvm.memcpy.p0.p0.i64(ptr %block.strides, ptr %strides, i64 %bytes, i1 false)
  %apart = call i1 @bw_injective(ptr %block, i64 %word)
  %count = call i64 @count(ptr %block, i64 %rank)
  %element = lshr i64 %word, 32
  %tight = mul i64 %count, %element
  %span = call i64 @extent(ptr %block, i64 %word)
  %no.gap = icmp eq i64 %tight, %span
  %some = icmp ne i64 %count, 0
  %exact = and i1 %no.gap, %some
  %dense = and i1 %exact, %apart
  br i1 %dense, label %yes, label %ask
ask:
  call void @llvm.memset.p0.i64(ptr %stack, i8 0, i64 48, i1 false)
  %r.new = call i32 @aoti_torch_new_tensor_handle(ptr %like, ptr %stack)
  %r.like = call i32 @aoti_torch_call_dispatcher(ptr @empty_like, ptr @no_name, ptr %stack)
  %made.ok = icmp eq i32 %r.like, 0
  br i1 %made.ok, label %made, label %no
made:
  %example = load ptr, ptr %stack
  %r.example = call i32 @aoti_torch_get_strides(ptr %example, ptr %out)
  %example.strides = load ptr, ptr %out
  call void @llvm.memcpy.p0.p0.i64(ptr %block.strides, ptr %example.strides, i64 %bytes, i1 false)
  %r.delete = call i32 @aoti_torch_delete_tensor_object(ptr %example)
  %word.unit = lshr i64 %word, 24
  %unit = and i64 %word.unit, 255
  %free = icmp eq i64 %unit, 0
  br i1 %free, label %yes, label %adjacent
adjacent:
  %axis = sub i64 %unit, 1
  %size.at = getelementptr i64, ptr %block.sizes, i64 %axis
  %size = load i64, ptr %size.at
  %stride.at = getelementptr i64, ptr %block.strides, i64 %axis
  %stride = load i64, ptr %stride.at
  %small = icmp sle i64 %size, 1
  %one = icmp eq i64 %stride, 1
  %fits = or i1 %small, %one
  ret i1 %fits
yes:
  ret i1 true
no:
  ret i1 false
}

; Makes a tensor of the block's sizes; fills in its strides and data. %like may be null. Returns 0, or why not.
define i64 @bw_allocate(ptr %block, i64 %word, ptr %like, ptr %out) {
start:
  %rank = and i64 %word, 255
  %count = call i64 @count(ptr %block, i64 %rank)
  %negative = icmp slt i64 %count, 0
  br i1 %negative, label %bad.size, label %order
order:
  %plain = icmp eq ptr %like, null
  br i1 %plain, label %contiguous, label %alike
contiguous:
  call void @dense(ptr %block, i64 %rank)
  br label %make
alike:
  %laid = call i1 @like(ptr %block, i64 %word, ptr %like)
  br i1 %laid, label %make, label %bad.layout
make:
  %sizes = getelementptr i64, ptr %block, i64 1
  %strides = getelementptr i64, ptr %sizes, i64 %rank
  %word.dtype = lshr i64 %word, 8
  %dtype64 = and i64 %word.dtype, 255
  %dtype = trunc i64 %dtype64 to i32
  %r.made = call i32 @aoti_torch_empty_strided(i64 %rank, ptr %sizes, ptr %strides, i32 %dtype, i32 0, i32 0, ptr %out)
  %made = icmp eq i32 %r.made, 0
  br i1 %made, label %data, label %failed
data:
  %handle = load ptr, ptr %out
  %r.data = call i32 @aoti_torch_get_data_ptr(ptr %handle, ptr %block)
  ret i64 0
bad.size:
  ret i64 1
failed:
  store ptr null, ptr %out
  ret i64 2
bad.layout:
  ret i64 3
}

FILLS
; Sets all elements of a dense tensor to the low bytes of %bits.
define void @bw_fill(ptr %block, i64 %word, i64 %bits) {
  %context = alloca [2 x i64]
  %data = load i64, ptr %block
  store i64 %data, ptr %context
  %bits.at = getelementptr i64, ptr %context, i64 1
  store i64 %bits, ptr %bits.at
  %rank = and i64 %word, 255
  %count = call i64 @count(ptr %block, i64 %rank)
  %element = lshr i64 %word, 32
  switch i64 %element, label %fill8 [i64 1, label %fill1 i64 2, label %fill2 i64 4, label %fill4]
fill1:
  %r.1 = call i32 @torch_parallel_for(i64 0, i64 %count, i64 GRAIN, ptr @fill.i8, ptr %context)
  ret void
fill2:
  %r.2 = call i32 @torch_parallel_for(i64 0, i64 %count, i64 GRAIN, ptr @fill.i16, ptr %context)
  ret void
fill4:
  %r.4 = call i32 @torch_parallel_for(i64 0, i64 %count, i64 GRAIN, ptr @fill.i32, ptr %context)
  ret void
fill8:
  %r.8 = call i32 @torch_parallel_for(i64 0, i64 %count, i64 GRAIN, ptr @fill.i64, ptr %context)
  ret void
}

; Sets all elements of any tensor to a number; false if torch refuses.
define i1 @bw_fill_strided(ptr %handle, double %value) {
  %r = call i32 @aoti_torch_cpu_fill__Scalar(ptr %handle, double %value)
  %ok = icmp eq i32 %r, 0
  ret i1 %ok
}
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
"""

_FILL = """
define internal void @fill.KIND(i64 %begin, i64 %end, ptr %context) {
start:
  %data = load ptr, ptr %context
  %bits.at = getelementptr i64, ptr %context, i64 1
  %bits = load KIND, ptr %bits.at
  br label %head
head:
  %index = phi i64 [%begin, %start], [%next, %body]
  %more = icmp slt i64 %index, %end
  br i1 %more, label %body, label %done
body:
  %at = getelementptr KIND, ptr %data, i64 %index
  store KIND %bits, ptr %at
  %next = add i64 %index, 1
  br label %head
done:
  ret void
}
"""

_HANDLES = """
; Tells autograd that a tensor was written.
define void @bw_bump(ptr %handle) {
  %inference = call zeroext i1 @_ZN2at6native12is_inferenceERKNS_6TensorE(ptr %handle)
  br i1 %inference, label %done, label %bump
bump:
  call void @_ZN5torch8autograd4impl12bump_versionERKN2at6TensorE(ptr %handle)
  ret void
done:
  ret void
}

; Whether writing the tensor is forbidden: an inference tensor outside inference mode.
define i1 @bw_forbidden(ptr %handle) {
  %inference = call zeroext i1 @_ZN2at6native12is_inferenceERKNS_6TensorE(ptr %handle)
  br i1 %inference, label %mode, label %no
mode:
  %key.at = getelementptr i64, ptr @bw_table, i64 6
  %key = load i64, ptr %key.at
  %key16 = trunc i64 %key to i16
  %normal = call zeroext i1 @_ZN3c104impl28tls_is_dispatch_key_includedENS_11DispatchKeyE(i16 zeroext %key16)
  ret i1 %normal
no:
  ret i1 false
}

; Another handle on the same tensor.
define ptr @bw_share(ptr %handle) {
  %out = alloca ptr
  %r = call i32 @aoti_torch_new_tensor_handle(ptr %handle, ptr %out)
  %new = load ptr, ptr %out
  ret ptr %new
}

; Gives up a handle, which may be null.
define void @bw_delete(ptr %handle) {
  %none = icmp eq ptr %handle, null
  br i1 %none, label %done, label %some
some:
  %r = call i32 @aoti_torch_delete_tensor_object(ptr %handle)
  ret void
done:
  ret void
}

; Gives up everything on a stack of arguments; slots that hold 0 are skipped.
define void @bw_release(ptr %stack, ptr %table) {
start:
  %out = alloca ptr
  %count.at = getelementptr i64, ptr %table, i64 7
  %count = load i64, ptr %count.at
  br label %head
head:
  %index = phi i64 [0, %start], [%next, %after]
  %more = icmp ult i64 %index, %count
  br i1 %more, label %body, label %end
body:
  %kind.index = add i64 %index, 8
  %kind.at = getelementptr i64, ptr %table, i64 %kind.index
  %kind = load i64, ptr %kind.at
  %slot = getelementptr ptr, ptr %stack, i64 %index
  %value = load ptr, ptr %slot
  %none = icmp eq ptr %value, null
  br i1 %none, label %after, label %some
some:
  switch i64 %kind, label %after [
    i64 1, label %tensor
    i64 2, label %optional
    i64 3, label %list
    i64 4, label %tensors
  ]
tensor:
  %r.tensor = call i32 @aoti_torch_delete_tensor_object(ptr %value)
  br label %after
optional:
  %inner = load ptr, ptr %value
  %r.inner = call i32 @aoti_torch_delete_tensor_object(ptr %inner)
  call void @_ZdlPv(ptr %value)
  br label %after
tensors:
  %r.size = call i32 @torch_list_size(ptr %value, ptr %out)
  %size = load i64, ptr %out
  br label %items
items:
  %item = phi i64 [0, %tensors], [%item.next, %one]
  %item.more = icmp ult i64 %item, %size
  br i1 %item.more, label %one, label %list
one:
  %r.item = call i32 @torch_list_get_item(ptr %value, i64 %item, ptr %out)
  %handle = load ptr, ptr %out
  %r.handle = call i32 @aoti_torch_delete_tensor_object(ptr %handle)
  %item.next = add i64 %item, 1
  br label %items
list:
  %r.list = call i32 @torch_delete_list(ptr %value)
  br label %after
after:
  %next = add i64 %index, 1
  br label %head
end:
  ret void
}
"""

_AUTOGRAD = f"""
; What one tensor says: its keys in the first half, whether gradients are asked for in the second.
define internal {{i64, i64}} @examine(ptr %handle, i64 %offset) {{
  %impl = load ptr, ptr %handle
  %keys.at = getelementptr i8, ptr %impl, i64 %offset
  %keys = load i64, ptr %keys.at
  %requires = call zeroext i1 @_ZNK3c1010TensorImpl13requires_gradEv(ptr %impl)
  %requires64 = select i1 %requires, i64 {REQUIRES_GRAD}, i64 0
  %tangent.at = call ptr @_ZNK3c1010TensorImpl8_fw_gradEmRKN2at10TensorBaseE(ptr %impl, i64 0, ptr %handle)
  %tangent = load ptr, ptr %tangent.at
  %defined = icmp ne ptr %tangent, @{UNDEFINED_TENSOR}
  %forward64 = select i1 %defined, i64 {FORWARD_GRAD}, i64 0
  %asked = or i64 %requires64, %forward64
  %first = insertvalue {{i64, i64}} poison, i64 %keys, 0
  %second = insertvalue {{i64, i64}} %first, i64 %asked, 1
  ret {{i64, i64}} %second
}}

; 0 if the chain may run on these arguments as they are, else the reasons why not.
define internal i64 @guard(ptr %stack) {{
start:
  %out = alloca ptr
  %offset = load i64, ptr @bw_table
  %unknown = icmp slt i64 %offset, 0
  br i1 %unknown, label %ask, label %begin
ask:
  ret i64 {OTHER_KEYS}
begin:
  %count.at = getelementptr i64, ptr @bw_table, i64 7
  %count = load i64, ptr %count.at
  br label %head
head:
  %index = phi i64 [0, %begin], [%next, %after]
  %keys = phi i64 [0, %begin], [%keys.after, %after]
  %asked = phi i64 [0, %begin], [%asked.after, %after]
  %more = icmp ult i64 %index, %count
  br i1 %more, label %body, label %judge
body:
  %kind.index = add i64 %index, 8
  %kind.at = getelementptr i64, ptr @bw_table, i64 %kind.index
  %kind = load i64, ptr %kind.at
  %slot = getelementptr ptr, ptr %stack, i64 %index
  %value = load ptr, ptr %slot
  %none = icmp eq ptr %value, null
  br i1 %none, label %after, label %some
some:
  switch i64 %kind, label %after [
    i64 1, label %tensor
    i64 2, label %optional
    i64 4, label %tensors
  ]
optional:
  %inner = load ptr, ptr %value
  br label %tensor
tensor:
  %handle = phi ptr [%value, %some], [%inner, %optional]
  %fact = call {{i64, i64}} @examine(ptr %handle, i64 %offset)
  %fact.keys = extractvalue {{i64, i64}} %fact, 0
  %fact.asked = extractvalue {{i64, i64}} %fact, 1
  %keys.tensor = or i64 %keys, %fact.keys
  %asked.tensor = or i64 %asked, %fact.asked
  br label %after
tensors:
  %r.size = call i32 @torch_list_size(ptr %value, ptr %out)
  %size = load i64, ptr %out
  br label %items
items:
  %item = phi i64 [0, %tensors], [%item.next, %one]
  %keys.items = phi i64 [%keys, %tensors], [%keys.one, %one]
  %asked.items = phi i64 [%asked, %tensors], [%asked.one, %one]
  %item.more = icmp ult i64 %item, %size
  br i1 %item.more, label %one, label %after
one:
  %r.item = call i32 @torch_list_get_item(ptr %value, i64 %item, ptr %out)
  %item.handle = load ptr, ptr %out
  %item.fact = call {{i64, i64}} @examine(ptr %item.handle, i64 %offset)
  %item.keys = extractvalue {{i64, i64}} %item.fact, 0
  %item.asked = extractvalue {{i64, i64}} %item.fact, 1
  %keys.one = or i64 %keys.items, %item.keys
  %asked.one = or i64 %asked.items, %item.asked
  %item.next = add i64 %item, 1
  br label %items
after:
  %keys.after = phi i64 [%keys, %body], [%keys, %some], [%keys.tensor, %tensor], [%keys.items, %items]
  %asked.after = phi i64 [%asked, %body], [%asked, %some], [%asked.tensor, %tensor], [%asked.items, %items]
  %next = add i64 %index, 1
  br label %head
judge:
  %forbidden.at = getelementptr i64, ptr @bw_table, i64 1
  %forbidden = load i64, ptr %forbidden.at
  %strange = and i64 %keys, %forbidden
  %other = icmp ne i64 %strange, 0
  br label %modes
modes:
  %mode = phi i64 [2, %judge], [%mode.next, %modes]
  %included.any = phi i1 [%other, %judge], [%included.next, %modes]
  %mode.at = getelementptr i64, ptr @bw_table, i64 %mode
  %key = load i64, ptr %mode.at
  %key16 = trunc i64 %key to i16
  %included = call zeroext i1 @_ZN3c104impl28tls_is_dispatch_key_includedENS_11DispatchKeyE(i16 zeroext %key16)
  %included.next = or i1 %included.any, %included
  %mode.next = add i64 %mode, 1
  %modes.more = icmp ult i64 %mode.next, 6
  br i1 %modes.more, label %modes, label %gradients
gradients:
  %other64 = select i1 %included.next, i64 {OTHER_KEYS}, i64 0
  %forward = and i64 %asked, {FORWARD_GRAD}
  %requires = and i64 %asked, {REQUIRES_GRAD}
  %some.require = icmp ne i64 %requires, 0
  br i1 %some.require, label %enabled, label %end
enabled:
  %on = call zeroext i1 @aoti_torch_grad_mode_is_enabled()
  %backward = select i1 %on, i64 {REQUIRES_GRAD}, i64 0
  br label %end
end:
  %backward.end = phi i64 [0, %gradients], [%backward, %enabled]
  %gradient = or i64 %backward.end, %forward
  %reasons = or i64 %gradient, %other64
  ret i64 %reasons
}}
"""

_GATES = """
; What the dispatcher calls at a backend key.
define void @bw_gate(ptr %stack, i64 %inputs, i64 %outputs) {
  %head = load atomic ptr, ptr @bw_next acquire, align 8
  musttail call void %head(ptr %stack, i64 %inputs, i64 %outputs)
  ret void
}

; What the dispatcher calls at an autograd key.
define void @bw_autograd(ptr %stack, i64 %inputs, i64 %outputs) {
  %reasons = call i64 @guard(ptr %stack)
  %none = icmp eq i64 %reasons, 0
  br i1 %none, label %run, label %ask
run:
  %head = load atomic ptr, ptr @bw_next acquire, align 8
  musttail call void %head(ptr %stack, i64 %inputs, i64 %outputs)
  ret void
ask:
  %exception = call i64 @bw_on_autograd(ptr %stack, i64 %inputs, i64 %outputs, i64 %reasons)
  %done = icmp eq i64 %exception, 0
  br i1 %done, label %end, label %raise
raise:
  %pointer = inttoptr i64 %exception to ptr
  musttail call void @bw_throw(ptr %pointer, i64 0, i64 0)
  ret void
end:
  ret void
}

; The end of the chain.
define void @bw_miss(ptr %stack, i64 %inputs, i64 %outputs) {
  %exception = call i64 @bw_on_miss(ptr %stack, i64 %inputs, i64 %outputs)
  %done = icmp eq i64 %exception, 0
  br i1 %done, label %again, label %raise
again:
  %head = load atomic ptr, ptr @bw_next acquire, align 8
  musttail call void %head(ptr %stack, i64 %inputs, i64 %outputs)
  ret void
raise:
  %pointer = inttoptr i64 %exception to ptr
  musttail call void @bw_throw(ptr %pointer, i64 0, i64 0)
  ret void
}
"""

_EXCEPTION = """
; A C++ exception that libtorch_python's `catch (python_error&)` takes for its own: matched by the name of its type, laid
; out as { vtable, type, value, traceback, std::string message }.
@_ZTVN10__cxxabiv120__si_class_type_infoE = external global ptr
@_ZTISt9exception = external global ptr
@type_name = private unnamed_addr constant [16 x i8] c"12python_error\\00\\00"
@bw_type = constant { ptr, ptr, ptr } {
  ptr getelementptr (i8, ptr @_ZTVN10__cxxabiv120__si_class_type_infoE, i64 16), ptr @type_name, ptr @_ZTISt9exception
}
@vtable = internal constant { i64, ptr, ptr, ptr, ptr } { i64 0, ptr @bw_type, ptr @destroy, ptr @dispose, ptr @what }

define internal void @destroy(ptr %self) {
  %text.at = getelementptr i64, ptr %self, i64 4
  %text = load ptr, ptr %text.at
  call void @_ZdlPv(ptr %text)
  %kind.at = getelementptr i64, ptr %self, i64 1
  %kind = load ptr, ptr %kind.at
  %taken = icmp eq ptr %kind, null
  br i1 %taken, label %end, label %drop
drop:
  %value.at = getelementptr i64, ptr %self, i64 2
  %value = load ptr, ptr %value.at
  %trace.at = getelementptr i64, ptr %self, i64 3
  %trace = load ptr, ptr %trace.at
  %state = call i32 @PyGILState_Ensure()
  call void @Py_DecRef(ptr %kind)
  call void @Py_DecRef(ptr %value)
  call void @Py_DecRef(ptr %trace)
  call void @PyGILState_Release(i32 %state)
  ret void
end:
  ret void
}

define internal void @dispose(ptr %self) {
  call void @destroy(ptr %self)
  call void @_ZdlPv(ptr %self)
  ret void
}

define internal ptr @what(ptr %self) {
  %text.at = getelementptr i64, ptr %self, i64 4
  %text = load ptr, ptr %text.at
  ret ptr %text
}

; Makes the exception from owned references (the traceback may be null) and a text of %length bytes.
define ptr @bw_exception(ptr %kind, ptr %value, ptr %trace, ptr %text, i64 %length) {
  %self = call ptr @__cxa_allocate_exception(i64 64)
  store ptr getelementptr (i8, ptr @vtable, i64 16), ptr %self
  %kind.at = getelementptr i64, ptr %self, i64 1
  store ptr %kind, ptr %kind.at
  %value.at = getelementptr i64, ptr %self, i64 2
  store ptr %value, ptr %value.at
  %trace.at = getelementptr i64, ptr %self, i64 3
  store ptr %trace, ptr %trace.at
  %bytes = add i64 %length, 1
  %copy = call ptr @_Znwm(i64 %bytes)
  call void @llvm.memcpy.p0.p0.i64(ptr %copy, ptr %text, i64 %bytes, i1 false)
  %text.at = getelementptr i64, ptr %self, i64 4
  store ptr %copy, ptr %text.at
  %length.at = getelementptr i64, ptr %self, i64 5
  store i64 %length, ptr %length.at
  %capacity.at = getelementptr i64, ptr %self, i64 6
  store i64 %length, ptr %capacity.at
  ret ptr %self
}

; Throws it; jumped to, never called, so that no frame of ours is unwound.
define void @bw_throw(ptr %exception, i64 %inputs, i64 %outputs) {
  %type = ptrtoint ptr @bw_type to i64
  %destroy = ptrtoint ptr @destroy to i64
  musttail call void @__cxa_throw(ptr %exception, i64 %type, i64 %destroy)
  ret void
}
"""
