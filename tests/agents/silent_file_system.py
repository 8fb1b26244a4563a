"""A file system whose server takes every question and never answers: what a dead NFS server looks like to a node."""

SCRIPT = """
import ctypes, os, struct, sys
source, point = sys.argv[1:]
device = os.open("/dev/fuse", os.O_RDWR)
options = f"fd={device},rootmode=40000,user_id=0,group_id=0".encode()
libc = ctypes.CDLL(None, use_errno=True)
if libc.mount(source.encode(), point.encode(), b"fuse", 0, options):
    sys.exit(os.strerror(ctypes.get_errno()))
while True:
    question = os.read(device, 1 << 20)
    _, operation, unique = struct.unpack_from("=IIQ", question)
    if operation == 26:  # FUSE_INIT
        answer = struct.pack("=IIIIHHI", 7, 31, 0, 0, 1, 1, 4096) + bytes(40)
        os.write(device, struct.pack("=IiQ", 16 + len(answer), 0, unique) + answer)
        print("mounted", flush=True)
"""
