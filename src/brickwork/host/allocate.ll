; New tensors, laid out as torch would, and their first contents.

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
  %any.unit = icmp eq i64 %unit, 0
  %empty = xor i1 %some, true
  %free = or i1 %any.unit, %empty
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

; Makes a tensor of the block's sizes on a CUDA device (-1: the CPU); fills in its strides and data. %like may be null.
; Returns 0, or why not.
define i64 @bw_allocate(ptr %block, i64 %word, ptr %like, ptr %out, i32 %device) {
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
  %on.cuda = icmp sge i32 %device, 0
  %kind = zext i1 %on.cuda to i32
  %index = select i1 %on.cuda, i32 %device, i32 0
  %r.made = call i32 @aoti_torch_empty_strided(
    i64 %rank, ptr %sizes, ptr %strides, i32 %dtype, i32 %kind, i32 %index, ptr %out)
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
  %r.1 = call i32 @torch_parallel_for(i64 0, i64 %count, i64 262144, ptr @fill.i8, ptr %context)
  ret void
fill2:
  %r.2 = call i32 @torch_parallel_for(i64 0, i64 %count, i64 131072, ptr @fill.i16, ptr %context)
  ret void
fill4:
  %r.4 = call i32 @torch_parallel_for(i64 0, i64 %count, i64 65536, ptr @fill.i32, ptr %context)
  ret void
fill8:
  %r.8 = call i32 @torch_parallel_for(i64 0, i64 %count, i64 32768, ptr @fill.i64, ptr %context)
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
