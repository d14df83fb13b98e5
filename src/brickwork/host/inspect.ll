; Arguments: do they fit a specialisation, and what is in them.

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
  %device64 = zext i32 %device32 to i64
  %word.device = lshr i64 %word, 18
  %want.device = and i64 %word.device, 1
  %same.device = icmp eq i64 %device64, %want.device
  br i1 %same.device, label %layout, label %no
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
  %is.unit = icmp eq i64 %unit, %want.unit
  %any.unit = icmp eq i64 %want.unit, 255
  %same.unit = or i1 %is.unit, %any.unit
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

; Whether a text has these bytes.
define i1 @bw_is_text(ptr %text, ptr %bytes, i64 %length) {
start:
  %out = alloca i64
  %r.length = call i32 @torch_string_length(ptr %text, ptr %out)
  %found = load i64, ptr %out
  %same = icmp eq i64 %found, %length
  br i1 %same, label %read, label %no
read:
  %r.data = call i32 @torch_string_c_str(ptr %text, ptr %out)
  %data = load ptr, ptr %out
  br label %head
head:
  %index = phi i64 [0, %read], [%next, %body]
  %more = icmp ult i64 %index, %length
  br i1 %more, label %body, label %yes
body:
  %one.at = getelementptr i8, ptr %data, i64 %index
  %other.at = getelementptr i8, ptr %bytes, i64 %index
  %one = load i8, ptr %one.at
  %other = load i8, ptr %other.at
  %next = add i64 %index, 1
  %equal = icmp eq i8 %one, %other
  br i1 %equal, label %head, label %no
yes:
  ret i1 true
no:
  ret i1 false
}

; The number of torch's default dtype (codegen/support.py).
define i64 @bw_default_dtype() {
  %dtype = call i8 @_ZN3c1031get_default_dtype_as_scalartypeEv()
  %number = zext i8 %dtype to i64
  ret i64 %number
}
