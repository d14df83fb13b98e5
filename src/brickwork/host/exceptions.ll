; Python exceptions on their way through C++.

; A C++ exception that libtorch_python's `catch (python_error&)` takes for its own: matched by the name of its type, laid
; out as { vtable, type, value, traceback, std::string message }.
@_ZTVN10__cxxabiv120__si_class_type_infoE = external global ptr
@_ZTISt9exception = external global ptr
@bw_type_name = external global i8
@bw_type = constant { ptr, ptr, ptr } {
  ptr getelementptr (i8, ptr @_ZTVN10__cxxabiv120__si_class_type_infoE, i64 16), ptr @bw_type_name, ptr @_ZTISt9exception
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
