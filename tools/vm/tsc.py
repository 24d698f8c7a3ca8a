# SPDX-License-Identifier: GPL-2.0
"""The frequency of this machine's time stamp counter.

A guest of QEMU's TCG sees the host's counter, and measures its frequency when it boots: for
some milliseconds, against a timer that QEMU serves. On a busy host it can come out twenty
times too small, and the guest's clock then runs twenty times too fast.  So it is measured
here, against the host's clock, and told on the guest's command line (tsc_early_khz).
"""
import ctypes
import mmap
import time

# rdtsc; shl $32,%rdx; or %rdx,%rax; ret
CODE = bytes.fromhex("0f31 48c1e220 4809d0 c3")


def _reader():
    page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(CODE)
    at = ctypes.addressof(ctypes.c_char.from_buffer(page))
    function = ctypes.CFUNCTYPE(ctypes.c_uint64)(at)
    function.page = page        # lives as long as the function
    return function


def _sample(read):
    """The counter and the time (ns) that belongs to it: the closest of some tries."""
    best = None
    for _ in range(50):
        before = time.monotonic_ns()
        ticks = read()
        after = time.monotonic_ns()
        if best is None or after - before < best[0]:
            best = after - before, ticks, (before + after) // 2
    return best[1], best[2]


def khz():
    read = _reader()
    ticks, begin = _sample(read)
    time.sleep(0.05)
    more, end = _sample(read)
    return (more - ticks) * 1000000 // (end - begin)


if __name__ == "__main__":
    print(khz())
