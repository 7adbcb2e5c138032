"""Takes memory of a GPU through the driver alone (libcuda.so.1, no toolkit) and holds it until it is killed.

usage: python3 hold-gpu-memory.py GIB [GPU-INDEX]
Ignores SIGTERM, as a stuck server does. Prints `holding N bytes` when it does; exit 1 with a sentence where it cannot.
"""
import ctypes
import signal
import sys
import time


def main() -> None:
    gib = float(sys.argv[1])
    index = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        sys.exit(f"the driver's library cannot be loaded: {error}")

    def call(name, *args):
        status = getattr(cuda, name)(*args)
        if status != 0:
            text = ctypes.c_char_p()
            cuda.cuGetErrorString(status, ctypes.byref(text))
            sys.exit(f"{name} answered {status}: {(text.value or b'').decode()}")

    device, context, pointer = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint64()
    call("cuInit", 0)
    call("cuDeviceGet", ctypes.byref(device), index)
    # The primary context, as every runtime uses; its functions are the same in all versions of the driver.
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    call("cuCtxSetCurrent", context)
    size = int(gib * 2**30)
    call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(size))
    call("cuMemsetD8_v2", pointer, ctypes.c_ubyte(0), ctypes.c_size_t(size))
    call("cuCtxSynchronize")
    print(f"holding {size} bytes", flush=True)
    while True:
        time.sleep(1000)


main()
