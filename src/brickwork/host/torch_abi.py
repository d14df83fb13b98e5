"""The only list of functions that brickwork's native code takes from libtorch, the C++ runtime and NVIDIA's driver.

Two kinds: the stable C interface (`aoti_torch_*`, `torch_*`), which says since which release it exists, and a few C++
functions by their Itanium-mangled names. The C++ ones are only asked about state; a gate that cannot find one of them
leaves the question to Python (`pytorch/gate.py`).
"""

from __future__ import annotations

from brickwork.records import dataclass


@dataclass(frozen=True, slots=True)
class NativeFunction:
    """A function by its symbol, with its LLVM type and the torch release that brought it ("" for older than 2.9)."""

    symbol: str
    result: str
    parameters: tuple[str, ...]
    since: str = ""

    def declaration(self) -> str:
        """Return the LLVM declaration."""
        return f"declare {self.result} @{self.symbol}({', '.join(self.parameters)})"


STABLE = (
    NativeFunction("aoti_torch_get_dim", "i32", ("ptr", "ptr")),
    NativeFunction("aoti_torch_get_dtype", "i32", ("ptr", "ptr")),
    NativeFunction("aoti_torch_get_device_type", "i32", ("ptr", "ptr")),
    NativeFunction("aoti_torch_get_sizes", "i32", ("ptr", "ptr")),
    NativeFunction("aoti_torch_get_strides", "i32", ("ptr", "ptr")),
    NativeFunction("aoti_torch_get_numel", "i32", ("ptr", "ptr")),
    NativeFunction("aoti_torch_get_data_ptr", "i32", ("ptr", "ptr")),
    NativeFunction("torch_get_const_data_ptr", "i32", ("ptr", "ptr"), "2.10"),
    NativeFunction("aoti_torch_empty_strided", "i32", ("i64", "ptr", "ptr", "i32", "i32", "i32", "ptr")),
    NativeFunction("aoti_torch_new_tensor_handle", "i32", ("ptr", "ptr")),
    NativeFunction("aoti_torch_delete_tensor_object", "i32", ("ptr",)),
    NativeFunction("aoti_torch_call_dispatcher", "i32", ("ptr", "ptr", "ptr")),
    NativeFunction("aoti_torch_cpu_fill__Scalar", "i32", ("ptr", "double")),
    NativeFunction("aoti_torch_cpu_randint_low_out", "i32", ("ptr", "i64", "i64", "ptr", "i64")),
    NativeFunction("aoti_torch_grad_mode_is_enabled", "zeroext i1", ()),
    NativeFunction("torch_list_size", "i32", ("ptr", "ptr"), "2.10"),
    NativeFunction("torch_list_get_item", "i32", ("ptr", "i64", "ptr"), "2.10"),
    NativeFunction("torch_delete_list", "i32", ("ptr",), "2.10"),
    NativeFunction("torch_string_length", "i32", ("ptr", "ptr"), "2.10"),
    NativeFunction("torch_string_c_str", "i32", ("ptr", "ptr"), "2.10"),
    NativeFunction("torch_delete_string", "i32", ("ptr",), "2.10"),
    NativeFunction("torch_parallel_for", "i32", ("i64", "i64", "i64", "ptr", "ptr"), "2.10"),
)
"""The stable C interface as native code calls it; a result of 0 means success."""

CUDA_STABLE = (
    NativeFunction("aoti_torch_get_device_index", "i32", ("ptr", "ptr")),
    NativeFunction("aoti_torch_get_current_cuda_stream", "i32", ("i32", "ptr")),
    NativeFunction("aoti_torch_cuda_randint_low_out", "i32", ("ptr", "i64", "i64", "ptr", "i64")),
)
"""The stable C interface for CUDA; the last two are libtorch_cuda's."""

DRIVER = (
    NativeFunction("cuCtxGetCurrent", "i32", ("ptr",)),
    NativeFunction("cuCtxPushCurrent_v2", "i32", ("ptr",)),
    NativeFunction("cuCtxPopCurrent_v2", "i32", ("ptr",)),
    NativeFunction("cuMemsetD32Async", "i32", ("i64", "i32", "i64", "ptr")),
    NativeFunction("cuLaunchKernel", "i32", ("ptr", *("i32",) * 7, "ptr", "ptr", "ptr")),
    NativeFunction("cuLaunchKernelEx", "i32", ("ptr", "ptr", "ptr", "ptr")),
)
"""NVIDIA's driver (libcuda); a result of 0 means success."""

REGISTRATION = (
    NativeFunction("aoti_torch_library_init_impl", "i32", ("ptr", "ptr", "ptr", "i32", "ptr")),
    NativeFunction("torch_library_impl", "i32", ("ptr", "ptr", "ptr", "i64"), "2.10"),
    NativeFunction("aoti_torch_abi_version", "i64", ()),
    NativeFunction("aoti_torch_delete_library_object", "i32", ("ptr",)),
)
"""What Python calls to register gates, and to take out those of overrides."""

CPLUSPLUS = (
    NativeFunction("_ZNK3c1010TensorImpl13requires_gradEv", "zeroext i1", ("ptr",)),
    NativeFunction("_ZNK3c1010TensorImpl8_fw_gradEmRKN2at10TensorBaseE", "ptr", ("ptr", "i64", "ptr")),
    NativeFunction("_ZN3c104impl28tls_is_dispatch_key_includedENS_11DispatchKeyE", "zeroext i1", ("i16 zeroext",)),
    NativeFunction("_ZN3c1031get_default_dtype_as_scalartypeEv", "i8", ()),
    NativeFunction("_ZN5torch8autograd4impl12bump_versionERKN2at6TensorE", "void", ("ptr",)),
    NativeFunction("_ZN2at6native12is_inferenceERKNS_6TensorE", "zeroext i1", ("ptr",)),
)
"""c10::TensorImpl::requires_grad and _fw_grad, c10::impl::tls_is_dispatch_key_included,
c10::get_default_dtype_as_scalartype, torch::autograd::impl::bump_version, at::native::is_inference."""

CUDA_CPLUSPLUS = (
    NativeFunction("_ZN2at13globalContextEv", "ptr", ()),
    NativeFunction("_ZNK2at7Context23deterministicAlgorithmsEv", "zeroext i1", ("ptr",)),
    NativeFunction("_ZNK2at7Context31deterministicAlgorithmsWarnOnlyEv", "zeroext i1", ("ptr",)),
)
"""at::globalContext, at::Context::deterministicAlgorithms and deterministicAlgorithmsWarnOnly."""

UNDEFINED_TENSOR = "_ZN3c1019UndefinedTensorImpl10_singletonE"
"""The TensorImpl that an undefined tensor points to."""

RUNTIME = (
    NativeFunction("__cxa_allocate_exception", "ptr", ("i64",)),
    NativeFunction("__cxa_throw", "void", ("ptr", "i64", "i64")),
    NativeFunction("_Znwm", "ptr", ("i64",)),
    NativeFunction("_ZdlPv", "void", ("ptr",)),
)
"""The C++ runtime. `__cxa_throw` takes three pointers; integers are the same to the machine and fit a tail call."""
