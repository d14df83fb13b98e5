import ctypes
import struct
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import llvmlite.binding as llvm
import pytest

from brickwork.codegen.archive import packed
from brickwork.runtime import elf, loader
from brickwork.runtime.loader import LoadError, load

llvm.initialize_native_target()
llvm.initialize_native_asmprinter()

TEXT = """
@counter = global i64 5
@table = internal constant [2 x ptr] [ptr @local, ptr @outer]
@far = external global i64
declare i64 @outer(i64)
declare double @cos(double)
define internal i64 @local(i64 %x) { %r = mul i64 %x, 3 ret i64 %r }
define i64 @run(i64 %x) {
  %a = call i64 @outer(i64 %x)
  %b = load i64, ptr @far
  %c = load i64, ptr @counter
  %next = add i64 %c, 1
  store i64 %next, ptr @counter
  %i = and i64 %x, 1
  %p = getelementptr [2 x ptr], ptr @table, i64 0, i64 %i
  %f = load ptr, ptr %p
  %d = call i64 %f(i64 100)
  %ab = add i64 %a, %b
  %cd = add i64 %c, %d
  %r = add i64 %ab, %cd
  ret i64 %r
}
define double @cosine(double %x) { %r = call double @cos(double %x) ret double %r }
define i64 @pick(i64 %x) {
start:
  switch i64 %x, label %d [i64 0, label %a i64 1, label %b i64 2, label %c i64 3, label %e i64 4, label %f]
a: ret i64 17
b: %y = add i64 %x, 3 ret i64 %y
c: %z = call i64 @outer(i64 %x) ret i64 %z
d: ret i64 0
e: ret i64 23
f: %w = call i64 @outer(i64 9) ret i64 %w
}
define <8 x float> @wide(ptr %p) {
  %v = load <8 x float>, ptr %p, align 4
  %r = fadd <8 x float> %v, <float 1.0, float 2.0, float 3.0, float 4.0, float 5.0, float 6.0, float 7.0, float 8.0>
  ret <8 x float> %r
}
"""


AGAIN = """
declare i64 @run(i64)
define i64 @again(i64 %x) { %a = call i64 @run(i64 %x) %b = add i64 %a, 1 ret i64 %b }
"""


def compiled(text=TEXT, reloc="pic", level=2):
    machine = llvm.Target.from_default_triple().create_target_machine(opt=level, reloc=reloc, codemodel="small")
    return machine.emit_object(llvm.parse_assembly(text))


@contextmanager
def outside():
    outer = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(lambda x: x + 1000)
    far = ctypes.c_int64(7)
    table = {"outer": ctypes.cast(outer, ctypes.c_void_p).value, "far": ctypes.addressof(far)}
    yield table
    del outer, far


@pytest.fixture
def symbols():
    with outside() as table:
        yield table


def call(loaded, name, *arguments, result=ctypes.c_int64):
    kinds = [ctypes.c_double if isinstance(value, float) else ctypes.c_int64 for value in arguments]
    return ctypes.CFUNCTYPE(result, *kinds)(loaded.address(name))(*arguments)


@pytest.mark.parametrize("level", [0, 2])
def test_code_data_and_calls_are_linked(symbols, level):
    calls_and_data(load(compiled(level=level), symbols))


def test_llvm_links_alike_and_threads_keep_their_symbols_apart():
    # In a process of its own: LLVM aborts where a large process has no room for sections that are near each other.
    code = "import test_loader; test_loader.link_with_llvm(); test_loader.link_with_llvm_in_threads()"
    subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parent, check=True)


def link_with_llvm():
    with outside() as symbols:
        for level in (0, 2):
            calls_and_data(loader._load_with_llvm(compiled(level=level), symbols))
        both = loader._load_with_llvm(packed((compiled(), compiled(AGAIN))), symbols)
        assert call(both, "again", 0) == 1000 + 7 + 5 + 300 + 1


def calls_and_data(loaded):
    assert call(loaded, "run", 0) == 1000 + 7 + 5 + 300
    assert call(loaded, "run", 1) == 1001 + 7 + 6 + 1100
    assert ctypes.c_int64.from_address(loaded.address("counter")).value == 7
    assert call(loaded, "cosine", 0.0, result=ctypes.c_double) == 1.0
    assert [call(loaded, "pick", x) for x in range(6)] == [17, 4, 1002, 23, 1009, 0]


def test_a_weak_name_that_is_nowhere_is_null():
    loaded = load(compiled("@maybe = extern_weak global i64\ndefine ptr @weak() { ret ptr @maybe }"), {})
    assert not call(loaded, "weak", result=ctypes.c_void_p)


def test_two_copies_do_not_share_data(symbols):
    data = compiled()
    one, two = load(data, symbols), load(data, symbols)
    call(one, "run", 0)
    assert call(two, "run", 0) == 1000 + 7 + 5 + 300


def test_a_name_that_is_nowhere_is_told(symbols):
    del symbols["outer"]
    with pytest.raises(LoadError, match="'outer'"):
        load(compiled(), symbols)
    with pytest.raises(KeyError):
        load(compiled("define void @f() { ret void }"), {}).address("g")


def test_code_is_not_writable(symbols):
    loaded = load(compiled(), symbols)
    address = loaded.address("run")
    for line in Path("/proc/self/maps").read_text().splitlines():
        start, end = (int(word, 16) for word in line.split()[0].split("-"))
        if start <= address < end:
            rights = line.split()[1]
    assert rights == "r-xp"


def test_what_the_linker_does_not_know_goes_to_llvm(symbols, monkeypatch):
    used = []
    monkeypatch.setattr(loader, "_load_with_llvm", lambda data, names: used.append(len(data)))
    load(compiled(reloc="static"), symbols)
    load(compiled("@x = thread_local global i64 3\ndefine ptr @f() { ret ptr @x }"), {})
    load(compiled("@x = common global i64 0\ndefine ptr @f() { ret ptr @x }"), {})
    load(b"no object at all", {})
    assert len(used) >= 3


def test_damaged_objects_raise_and_do_not_end_the_process(symbols):
    data = compiled()
    with pytest.raises(elf.UnsupportedObjectError):
        elf.read(data[:40])
    with pytest.raises(elf.UnsupportedObjectError):
        elf.read(b"\x00" + data[1:])
    for cut in range(64, len(data), 97):
        with pytest.raises((elf.UnsupportedObjectError, ValueError, LookupError, struct.error)):
            elf.link(elf.read(data[:cut]), 1 << 40, lambda name: 1 << 40)


def link_with_llvm_in_threads():
    text = "@cell = external global i64\n@later = external global i64\n"
    text += "define i64 @read() { %a = load i64, ptr @cell %b = load i64, ptr @later %c = add i64 %a, %b ret i64 %c }"
    made, meeting = compiled(text), threading.Barrier(4)
    words = [ctypes.c_int64(number) for number in range(4)]

    class Slow(dict):
        def get(self, name, default=None):
            time.sleep(0.01)
            return super().get(name, default)

    def refuse(*_):
        raise elf.UnsupportedObjectError("as on another machine")

    def read(word):
        address = ctypes.addressof(word)
        meeting.wait()
        found = load(made, Slow(cell=address, later=address))
        return ctypes.CFUNCTYPE(ctypes.c_int64)(found.address("read"))()

    with patch.object(loader, "_load_elf", refuse), ThreadPoolExecutor(4) as pool:
        assert [*pool.map(read, words)] == [0, 2, 4, 6]


def test_loading_needs_no_llvm():
    code = "import sys, brickwork.runtime.loader; assert 'llvmlite' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
