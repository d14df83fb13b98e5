; CUDA: which device, and launches on torch's current stream. Only in a process that has the driver.


@bw_devices = external global i64
declare i64 @bw_cuda_load(ptr, ptr)

; The index of the tensor's device.
define i32 @bw_cuda_device(ptr %handle) {
  %out = alloca i32
  store i32 -1, ptr %out
  %r = call i32 @aoti_torch_get_device_index(ptr %handle, ptr %out)
  %index = load i32, ptr %out
  ret i32 %index
}

; Whether the device is ready, and of this architecture (host/support.py `device_table`).
define i1 @bw_cuda_serves(i32 %device, i64 %architecture) {
  %count = load i64, ptr @bw_devices
  %index = zext i32 %device to i64
  %known = icmp ult i64 %index, %count
  br i1 %known, label %look, label %no
look:
  %twice = shl i64 %index, 1
  %architecture.index = add i64 %twice, 1
  %architecture.at = getelementptr i64, ptr @bw_devices, i64 %architecture.index
  %here = load i64, ptr %architecture.at
  %same = icmp eq i64 %here, %architecture
  %context.index = add i64 %twice, 2
  %context.at = getelementptr i64, ptr @bw_devices, i64 %context.index
  %context = load atomic i64, ptr %context.at acquire, align 8
  %ready = icmp ne i64 %context, 0
  %serves = and i1 %same, %ready
  ret i1 %serves
no:
  ret i1 false
}

; Whether sizes, strides, places of elements and their number are small: host/layout.py `is_narrow`.
define i1 @bw_narrow(ptr %block, i64 %word) {
start:
  %rank = and i64 %word, 255
  %sizes = getelementptr i64, ptr %block, i64 1
  %strides = getelementptr i64, ptr %sizes, i64 %rank
  br label %head
head:
  %axis = phi i64 [0, %start], [%next, %step]
  %last = phi i64 [0, %start], [%last.next, %step]
  %empty = phi i1 [false, %start], [%empty.next, %step]
  %count = phi i64 [1, %start], [%count.next, %step]
  %more = icmp ult i64 %axis, %rank
  br i1 %more, label %body, label %end
body:
  %size.at = getelementptr i64, ptr %sizes, i64 %axis
  %size = load i64, ptr %size.at
  %stride.at = getelementptr i64, ptr %strides, i64 %axis
  %stride = load i64, ptr %stride.at
  %none = icmp eq i64 %size, 0
  %factor = select i1 %none, i64 1, i64 %size
  %count.next = mul i64 %count, %factor
  %size.small = icmp ult i64 %size, NARROW_SIZE
  %stride.small = icmp ult i64 %stride, NARROW_EXTENT
  %count.small = icmp ult i64 %count.next, NARROW_EXTENT
  %both.small = and i1 %size.small, %stride.small
  %small = and i1 %both.small, %count.small
  br i1 %small, label %step, label %no
step:
  %empty.next = or i1 %empty, %none
  %steps = sub i64 %size, 1
  %way = mul i64 %steps, %stride
  %last.next = add i64 %last, %way
  %next = add i64 %axis, 1
  br label %head
end:
  %near = icmp slt i64 %last, NARROW_EXTENT
  %narrow = or i1 %near, %empty
  ret i1 %narrow
no:
  ret i1 false
}

; Whether the data begins at a multiple of 16 bytes: host/layout.py `is_aligned`.
define i1 @bw_aligned(ptr %block) {
  %data = load i64, ptr %block
  %rest = and i64 %data, ALIGNMENT_MASK
  %aligned = icmp eq i64 %rest, 0
  ret i1 %aligned
}

; Whether an optional key is absent, or an int64 tensor of one element on the CPU or on this device.
define i1 @bw_cuda_inspect_key(ptr %optional, i32 %device) {
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
  %r.numel = call i32 @aoti_torch_get_numel(ptr %handle, ptr %out)
  %numel = load i64, ptr %out
  %is.one = icmp eq i64 %numel, 1
  %fits = and i1 %is.int64, %is.one
  br i1 %fits, label %place, label %no
place:
  %r.device = call i32 @aoti_torch_get_device_type(ptr %handle, ptr %out)
  %kind = load i32, ptr %out
  switch i32 %kind, label %no [
    i32 0, label %yes
    i32 1, label %cuda
  ]
cuda:
  %index = call i32 @bw_cuda_device(ptr %handle)
  %same = icmp eq i32 %index, %device
  ret i1 %same
yes:
  ret i1 true
no:
  ret i1 false
}

; Puts the address of the key into a block: the caller's tensor on the device, or a new one at %out that holds the
; caller's value, or 63 bits drawn from the device's default generator. Returns 0, the driver's error, -1 (no memory)
; or -2 (torch does not draw).
define i64 @bw_cuda_key(ptr %optional, i32 %device, ptr %block, ptr %out, ptr %session) {
start:
  %size = alloca i64
  %kind.at = alloca i32
  %data.at = alloca ptr
  store i64 1, ptr %size
  %absent = icmp eq ptr %optional, null
  br i1 %absent, label %make, label %present
present:
  %handle = load ptr, ptr %optional
  %r.kind = call i32 @aoti_torch_get_device_type(ptr %handle, ptr %kind.at)
  %kind = load i32, ptr %kind.at
  %on.cuda = icmp eq i32 %kind, 1
  br i1 %on.cuda, label %given, label %make
given:
  %r.given = call i32 @torch_get_const_data_ptr(ptr %handle, ptr %block)
  ret i64 0
make:
  %r.made = call i32 @aoti_torch_empty_strided(i64 1, ptr %size, ptr %size, i32 4, i32 1, i32 %device, ptr %out)
  %no.memory = icmp ne i32 %r.made, 0
  br i1 %no.memory, label %full, label %made
full:
  store ptr null, ptr %out
  ret i64 -1
made:
  %cell = load ptr, ptr %out
  %r.cell = call i32 @aoti_torch_get_data_ptr(ptr %cell, ptr %block)
  br i1 %absent, label %draw, label %set
draw:
  %r.drawn = call i32 @aoti_torch_cuda_randint_low_out(ptr %cell, i64 0, i64 9223372036854775807, ptr %size, i64 1)
  %refused = icmp ne i32 %r.drawn, 0
  %drawn = select i1 %refused, i64 -2, i64 0
  ret i64 %drawn
set:
  %caller = load ptr, ptr %optional
  %r.data = call i32 @torch_get_const_data_ptr(ptr %caller, ptr %data.at)
  %data = load ptr, ptr %data.at
  %value = load i64, ptr %data
  %low = trunc i64 %value to i32
  %upper = lshr i64 %value, 32
  %high = trunc i64 %upper to i32
  %stream = load ptr, ptr %session
  %address = load i64, ptr %block
  %r.low = call i32 @cuMemsetD32Async(i64 %address, i32 %low, i64 1, ptr %stream)
  %above = add i64 %address, 4
  %r.high = call i32 @cuMemsetD32Async(i64 %above, i32 %high, i64 1, ptr %stream)
  %error32 = or i32 %r.low, %r.high
  %error = zext i32 %error32 to i64
  ret i64 %error
}

; Makes the device's primary context current and asks for torch's stream: %session is the stream, and 1 if a context was
; pushed. Returns 0 or the driver's error.
define i64 @bw_cuda_begin(i32 %device, ptr %session) {
start:
  %current.at = alloca ptr
  %index = zext i32 %device to i64
  %twice = shl i64 %index, 1
  %context.index = add i64 %twice, 2
  %context.at = getelementptr ptr, ptr @bw_devices, i64 %context.index
  %context = load ptr, ptr %context.at
  %pushed.at = getelementptr i64, ptr %session, i64 1
  store ptr null, ptr %current.at
  store i64 0, ptr %pushed.at
  %r.current = call i32 @cuCtxGetCurrent(ptr %current.at)
  %current = load ptr, ptr %current.at
  %same = icmp eq ptr %current, %context
  br i1 %same, label %stream, label %push
push:
  %r.push = call i32 @cuCtxPushCurrent_v2(ptr %context)
  %failed = icmp ne i32 %r.push, 0
  br i1 %failed, label %bad, label %pushed
pushed:
  store i64 1, ptr %pushed.at
  br label %stream
stream:
  %r.stream = call i32 @aoti_torch_get_current_cuda_stream(i32 %device, ptr %session)
  %refused = icmp ne i32 %r.stream, 0
  br i1 %refused, label %back, label %good
good:
  ret i64 0
back:
  call void @bw_cuda_end(ptr %session)
  ret i64 999
bad:
  %error = zext i32 %r.push to i64
  ret i64 %error
}

; Launches the kernel of a cell with a context as its parameters and so many bytes of shared memory, `together` blocks
; along x as a cluster; Python loads it if the cell has none yet.
; Returns 0, the driver's error, or -3 (it cannot be loaded).
define i64 @bw_cuda_launch(ptr %cell, i32 %x, i32 %y, i32 %block, i32 %teams, i32 %shared, i32 %together,
  ptr %context, i64 %bytes, ptr %session) {
  %bytes.at = alloca i64
  %extra = alloca [5 x ptr]
  store i64 %bytes, ptr %bytes.at
  store ptr inttoptr (i64 1 to ptr), ptr %extra
  %extra.1 = getelementptr ptr, ptr %extra, i64 1
  store ptr %context, ptr %extra.1
  %extra.2 = getelementptr ptr, ptr %extra, i64 2
  store ptr inttoptr (i64 2 to ptr), ptr %extra.2
  %extra.3 = getelementptr ptr, ptr %extra, i64 3
  store ptr %bytes.at, ptr %extra.3
  %extra.4 = getelementptr ptr, ptr %extra, i64 4
  store ptr null, ptr %extra.4
  %stream = load ptr, ptr %session
  %there = load atomic ptr, ptr %cell acquire, align 8
  %absent = icmp eq ptr %there, null
  br i1 %absent, label %load, label %launch
load:
  %r.load = call i64 @bw_cuda_load(ptr %cell, ptr %stream)
  %unloadable = icmp ne i64 %r.load, 0
  br i1 %unloadable, label %bad, label %launch
bad:
  ret i64 %r.load
launch:
  %kernel = load ptr, ptr %cell
  %single = icmp eq i32 %together, 1
  br i1 %single, label %alone, label %cluster
alone:
  %r = call i32 @cuLaunchKernel(ptr %kernel, i32 %x, i32 %y, i32 1, i32 %block, i32 %teams, i32 1, i32 %shared, ptr %stream,
    ptr null, ptr %extra)
  %error = zext i32 %r to i64
  ret i64 %error
cluster:
  ; CUlaunchAttribute CLUSTER_DIMENSION (4) and CUlaunchConfig, as cuda.h lays them out.
  %attribute = alloca {i32, i32, i32, i32, i32, [52 x i8]}, align 8
  store {i32, i32, i32, i32, i32, [52 x i8]} zeroinitializer, ptr %attribute
  store i32 4, ptr %attribute
  %wide = getelementptr i32, ptr %attribute, i64 2
  store i32 %together, ptr %wide
  %high = getelementptr i32, ptr %attribute, i64 3
  store i32 1, ptr %high
  %deep = getelementptr i32, ptr %attribute, i64 4
  store i32 1, ptr %deep
  %config = alloca {[3 x i32], [3 x i32], i32, ptr, ptr, i32}, align 8
  %config.0 = insertvalue {[3 x i32], [3 x i32], i32, ptr, ptr, i32} zeroinitializer, i32 %x, 0, 0
  %config.1 = insertvalue {[3 x i32], [3 x i32], i32, ptr, ptr, i32} %config.0, i32 %y, 0, 1
  %config.2 = insertvalue {[3 x i32], [3 x i32], i32, ptr, ptr, i32} %config.1, i32 1, 0, 2
  %config.3 = insertvalue {[3 x i32], [3 x i32], i32, ptr, ptr, i32} %config.2, i32 %block, 1, 0
  %config.4 = insertvalue {[3 x i32], [3 x i32], i32, ptr, ptr, i32} %config.3, i32 %teams, 1, 1
  %config.5 = insertvalue {[3 x i32], [3 x i32], i32, ptr, ptr, i32} %config.4, i32 1, 1, 2
  %config.6 = insertvalue {[3 x i32], [3 x i32], i32, ptr, ptr, i32} %config.5, i32 %shared, 2
  %config.7 = insertvalue {[3 x i32], [3 x i32], i32, ptr, ptr, i32} %config.6, ptr %stream, 3
  %config.8 = insertvalue {[3 x i32], [3 x i32], i32, ptr, ptr, i32} %config.7, ptr %attribute, 4
  %config.9 = insertvalue {[3 x i32], [3 x i32], i32, ptr, ptr, i32} %config.8, i32 1, 5
  store {[3 x i32], [3 x i32], i32, ptr, ptr, i32} %config.9, ptr %config
  %r.cluster = call i32 @cuLaunchKernelEx(ptr %config, ptr %kernel, ptr null, ptr %extra)
  %error.cluster = zext i32 %r.cluster to i64
  ret i64 %error.cluster
}

; Makes the context current that was so before `bw_cuda_begin`.
define void @bw_cuda_end(ptr %session) {
  %out = alloca ptr
  %pushed.at = getelementptr i64, ptr %session, i64 1
  %pushed = load i64, ptr %pushed.at
  %none = icmp eq i64 %pushed, 0
  br i1 %none, label %done, label %pop
pop:
  store i64 0, ptr %pushed.at
  %r = call i32 @cuCtxPopCurrent_v2(ptr %out)
  ret void
done:
  ret void
}

; Whether torch is to raise where results depend on the order of threads.
define i1 @bw_cuda_deterministic() {
  %settings = call ptr @_ZN2at13globalContextEv()
  %strict = call zeroext i1 @_ZNK2at7Context23deterministicAlgorithmsEv(ptr %settings)
  %lenient = call zeroext i1 @_ZNK2at7Context31deterministicAlgorithmsWarnOnlyEv(ptr %settings)
  %severe = xor i1 %lenient, true
  %raise = and i1 %strict, %severe
  ret i1 %raise
}
