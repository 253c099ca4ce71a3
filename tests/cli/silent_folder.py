"""A file system with one file (FUSE, by hand: include/uapi/linux/fuse.h) that answers until it gets the order to be silent.

    silent_folder.py FOLDER FILE SILENT     # mounts on FOLDER; silent as soon as the path SILENT exists
"""
import ctypes
import errno
import os
import select
import signal
import stat
import struct
import sys

LOOKUP, FORGET, GETATTR, OPEN, READ, STATFS, RELEASE, INIT, INTERRUPT, BATCH_FORGET = 1, 2, 3, 14, 15, 17, 18, 26, 36, 42
ROOT, FILE = 1, 2


def attributes(node, size):
    mode = stat.S_IFDIR | 0o755 if node == ROOT else stat.S_IFREG | 0o755
    return struct.pack("<6Q10I", node, size, size // 512, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)


def answer(operation, node, body, name, contents):
    """The bytes of the answer, or an error number."""
    if operation == INIT:
        return struct.pack("<4I2H2I2HI7I", 7, 31, 1 << 17, 0, 16, 12, 1 << 17, 1, 0, 0, 0, *[0] * 7)
    if operation == LOOKUP and body.rstrip(b"\0") == name:
        return struct.pack("<4Q2I", FILE, 0, 1, 1, 0, 0) + attributes(FILE, len(contents))
    if operation == LOOKUP:
        return errno.ENOENT
    if operation == GETATTR:
        return struct.pack("<Q2I", 1, 0, 0) + attributes(node, len(contents))
    if operation == OPEN:
        return struct.pack("<Q2I", 0, 0, 0)
    if operation == READ:
        _, offset, size = struct.unpack_from("<QQI", body)
        return contents[offset:offset + size]
    if operation == STATFS:
        return bytes(40) + struct.pack("<4I", 4096, 255, 4096, 0) + bytes(24)
    return b"" if operation == RELEASE else errno.ENOSYS


def main(folder, file, silent):
    device = os.open("/dev/fuse", os.O_RDWR)
    libc = ctypes.CDLL(None, use_errno=True)
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0,allow_other".encode()
    if libc.mount(b"silent", os.fsencode(folder), b"fuse", 0, options) != 0:
        raise OSError(ctypes.get_errno(), "mount")
    with open(file, "rb") as whole:
        contents = whole.read()
    name = os.fsencode(os.path.basename(file))
    print("ready", flush=True)
    while not os.path.exists(silent):
        # A question that was read and is not answered, nothing ends but the end of this program.
        if not select.select([device], [], [], 0.05)[0]:
            continue
        request = os.read(device, (1 << 17) + 4096)
        _, operation, unique, node = struct.unpack_from("<IIQQ", request)
        if operation in (FORGET, BATCH_FORGET, INTERRUPT):
            continue
        said = answer(operation, node, request[40:], name, contents)
        error, body = (-said, b"") if isinstance(said, int) else (0, said)
        os.write(device, struct.pack("<IiQ", 16 + len(body), error, unique) + body)
    print("silent", flush=True)
    signal.pause()


if __name__ == "__main__":
    main(*sys.argv[1:])
