"""empty_root.py PROGRAM ROOT MARK   Run in network and mount namespaces of its own (test_empty_root.py): pushes of the static program from
a root that has nothing in it. Prints, for each URL that it was given, what arrived.
"""
import ctypes
import fcntl
import os
import pathlib
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))
from profile_server import ProfileServer

NAME = "collector.test"
MS_BIND, MS_REC = 4096, 16384


def raise_loopback():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        request = struct.pack("16sh14x", b"lo", 0x1 | 0x40)  # IFF_UP, IFF_RUNNING
        fcntl.ioctl(one, 0x8914, request)  # SIOCSIFFLAGS


def answer_names():
    """A DNS server that knows one name, and of that an IPv4 address."""
    port = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    port.bind(("127.0.0.1", 53))

    def serve():
        while True:
            asked, who = port.recvfrom(512)
            at, labels = 12, []
            while asked[at]:
                labels.append(asked[at + 1:at + 1 + asked[at]].decode())
                at += 1 + asked[at]
            question = asked[12:at + 5]
            kind, = struct.unpack(">H", asked[at + 1:at + 3])
            known = ".".join(labels).lower() == NAME
            found = known and kind == 1
            record = b"\xc0\x0c" + struct.pack(">HHIH", 1, 1, 60, 4) + bytes([127, 0, 0, 1]) if found else b""
            head = asked[:2] + struct.pack(">HHHHH", 0x8180 if known else 0x8183, 1, int(found), 0, 0)
            port.sendto(head + question + record, who)

    threading.Thread(target=serve, daemon=True).start()


def certificate(folder, name=NAME):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", folder / "key.pem", "-out", folder / "certificate.pem",
                    "-days", "2", "-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name}"], check=True, capture_output=True)
    return folder / "certificate.pem", folder / "key.pem"


def pushed(root, mark, server, url, **environment):
    before = len(server.taken)
    agent = subprocess.Popen(["/phlox", "agent", "--name", mark, "--interval", "1s", "--state", f"/state-{time.monotonic_ns()}", "--otlp", url],
                             preexec_fn=lambda: (os.chroot(root), os.chdir("/")), stderr=subprocess.PIPE, text=True, env=environment)
    end = time.monotonic() + 30
    while len(server.taken) == before and time.monotonic() < end and agent.poll() is None:
        time.sleep(0.05)
    agent.send_signal(signal.SIGTERM)
    said = agent.communicate(timeout=60)[1]
    return "arrived" if len(server.taken) > before else f"did not arrive: {said}"


def main():
    program, root, mark = sys.argv[1:]
    root = pathlib.Path(root)
    libc = ctypes.CDLL(None, use_errno=True)
    for name in ("proc", "etc"):
        (root / name).mkdir(parents=True)
    if libc.mount(b"/proc", str(root / "proc").encode(), None, MS_BIND | MS_REC, None) != 0:
        sys.exit(f"cannot mount: {os.strerror(ctypes.get_errno())}")
    (root / "phlox").write_bytes(pathlib.Path(program).read_bytes())
    (root / "phlox").chmod(0o755)
    raise_loopback()
    plain, encrypted = ProfileServer(), ProfileServer(certificate=certificate(root))
    at = {server: f"{server.scheme}://%s:{server.http.server_address[1]}" for server in (plain, encrypted)}
    print("by address:", pushed(root, mark, plain, at[plain] % "127.0.0.1"), flush=True)
    (root / "etc/hosts").write_text("127.0.0.1 listed.test\n")
    print("by /etc/hosts:", pushed(root, mark, plain, at[plain] % "listed.test"), flush=True)
    answer_names()
    (root / "etc/resolv.conf").write_text("nameserver 127.0.0.1\n")
    # What an image of another distribution may have: modules that are not there.
    (root / "etc/nsswitch.conf").write_text("hosts: mymachines resolve [!UNAVAIL=return] files dns\npasswd: sss files\n")
    print("by DNS:", pushed(root, mark, plain, at[plain] % NAME), flush=True)
    print("SSL_CERT_FILE:", pushed(root, mark, encrypted, at[encrypted] % NAME, SSL_CERT_FILE="/certificate.pem"), flush=True)
    (root / "etc/pki/tls/certs").mkdir(parents=True)
    (root / "certificate.pem").rename(root / "etc/pki/tls/certs/ca-bundle.crt")
    print("its usual place:", pushed(root, mark, encrypted, at[encrypted] % NAME), flush=True)


if __name__ == "__main__":
    main()
