; Who owns what, and what autograd has to know of a write.

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

; Gives up everything on a stack of arguments; slots that hold 0 are skipped. Where each tensor would take Python's lock
; by itself, it is taken once.
define void @bw_release(ptr %stack, ptr %table) {
  %count.at = getelementptr i64, ptr %table, i64 7
  %counts = load i64, ptr %count.at
  %count = and i64 %counts, 4294967295
  %locks = icmp ne i64 %count, %counts
  br i1 %locks, label %locked, label %free
locked:
  %state = call i32 @PyGILState_Ensure()
  call void @release(ptr %stack, ptr %table, i64 %count)
  call void @PyGILState_Release(i32 %state)
  ret void
free:
  call void @release(ptr %stack, ptr %table, i64 %count)
  ret void
}

define internal void @release(ptr %stack, ptr %table, i64 %count) {
start:
  %out = alloca ptr
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
    i64 5, label %number
    i64 6, label %text
  ]
text:
  %r.text = call i32 @torch_delete_string(ptr %value)
  br label %after
number:
  call void @_ZdlPv(ptr %value)
  br label %after
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
