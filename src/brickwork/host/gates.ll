; What the dispatcher calls, and the end of the chain. The reasons to ask Python are 1: keys beyond those of plain
; tensors, 2: an argument requires grad in grad mode, 4: one has a forward gradient (host/support.py).

; What one tensor says: its keys in the first half, whether gradients are asked for in the second.
define internal {i64, i64} @examine(ptr %handle, i64 %offsets) {
  %impl = load ptr, ptr %handle
  %offset = and i64 %offsets, 4294967295
  %keys.at = getelementptr i8, ptr %impl, i64 %offset
  %keys = load i64, ptr %keys.at
  %first = insertvalue {i64, i64} poison, i64 %keys, 0
  %place = lshr i64 %offsets, 32
  %unknown = icmp eq i64 %place, 0
  br i1 %unknown, label %ask, label %look
look:
  %meta.at = getelementptr i8, ptr %impl, i64 %place
  %meta = load ptr, ptr %meta.at
  %none = icmp eq ptr %meta, null
  br i1 %none, label %plain, label %ask
plain:
  %nothing = insertvalue {i64, i64} %first, i64 0, 1
  ret {i64, i64} %nothing
ask:
  %requires = call zeroext i1 @_ZNK3c1010TensorImpl13requires_gradEv(ptr %impl)
  %requires64 = select i1 %requires, i64 2, i64 0
  %tangent.at = call ptr @_ZNK3c1010TensorImpl8_fw_gradEmRKN2at10TensorBaseE(ptr %impl, i64 0, ptr %handle)
  %tangent = load ptr, ptr %tangent.at
  %defined = icmp ne ptr %tangent, @_ZN3c1019UndefinedTensorImpl10_singletonE
  %forward64 = select i1 %defined, i64 4, i64 0
  %asked = or i64 %requires64, %forward64
  %second = insertvalue {i64, i64} %first, i64 %asked, 1
  ret {i64, i64} %second
}

; 0 if the chain may run on these arguments as they are, else the reasons why not.
define internal i64 @guard(ptr %stack) {
start:
  %out = alloca ptr
  %offset = load i64, ptr @bw_table
  %unknown = icmp slt i64 %offset, 0
  br i1 %unknown, label %ask, label %begin
ask:
  ret i64 1
begin:
  %count.at = getelementptr i64, ptr @bw_table, i64 7
  %counts = load i64, ptr %count.at
  %count = and i64 %counts, 4294967295
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
  %fact = call {i64, i64} @examine(ptr %handle, i64 %offset)
  %fact.keys = extractvalue {i64, i64} %fact, 0
  %fact.asked = extractvalue {i64, i64} %fact, 1
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
  %item.fact = call {i64, i64} @examine(ptr %item.handle, i64 %offset)
  %item.keys = extractvalue {i64, i64} %item.fact, 0
  %item.asked = extractvalue {i64, i64} %item.fact, 1
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
  %other64 = select i1 %included.next, i64 1, i64 0
  %forward = and i64 %asked, 4
  %requires = and i64 %asked, 2
  %some.require = icmp ne i64 %requires, 0
  br i1 %some.require, label %enabled, label %end
enabled:
  %on = call zeroext i1 @aoti_torch_grad_mode_is_enabled()
  %backward = select i1 %on, i64 2, i64 0
  br label %end
end:
  %backward.end = phi i64 [0, %gradients], [%backward, %enabled]
  %gradient = or i64 %backward.end, %forward
  %reasons = or i64 %gradient, %other64
  ret i64 %reasons
}

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

; The end of the chain in place of another operator: Python answers the call.
define void @bw_serve(ptr %stack, i64 %inputs, i64 %outputs) {
  %exception = call i64 @bw_on_autograd(ptr %stack, i64 %inputs, i64 %outputs, i64 0)
  %done = icmp eq i64 %exception, 0
  br i1 %done, label %end, label %raise
raise:
  %pointer = inttoptr i64 %exception to ptr
  musttail call void @bw_throw(ptr %pointer, i64 0, i64 0)
  ret void
end:
  ret void
}
