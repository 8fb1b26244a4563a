"""The alert agents webhook and mail, called as a cluster calls them, against real servers of HTTP, TLS and SMTP."""

import base64
import contextlib
import hashlib
import hmac
import json
import os
import socketserver
import ssl
import subprocess
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.documents import CHECKOUT

AGENTS = CHECKOUT / "alert_agents"
EVENT = {
    "CRM_alert_version": "2.1.5", "CRM_alert_kind": "resource", "CRM_alert_node": "n2", "CRM_alert_rsc": "web",
    "CRM_alert_task": "monitor", "CRM_alert_interval": "10000", "CRM_alert_desc": "not running", "CRM_alert_rc": "7",
    "CRM_alert_target_rc": "0", "CRM_alert_exec_time": "12", "CRM_alert_status": "0",
    "CRM_alert_node_sequence": "41", "CRM_alert_timestamp_epoch": "1780000000", "CRM_alert_timestamp_usec": "123000",
}  # fmt: skip
OURS = {"CRM_alert_incident": "uuid-7", "CRM_alert_repeated": "true"}


def called(agent: str, recipient: str, **more: str) -> "subprocess.CompletedProcess[str]":
    environment = {"PATH": os.environ["PATH"], **EVENT, "CRM_alert_recipient": recipient, **more}
    return subprocess.run(
        [AGENTS / agent], env=environment, capture_output=True, text=True, timeout=60, check=False
    )  # fmt: skip


def file_of(path: Path, text: str, mode: int = 0o600) -> str:
    path.write_text(text)
    path.chmod(mode)
    return str(path)


# -- webhook -----------------------------------------------------------------------------------------------------------


class Hook:
    """A server that notes requests, and answers with these statuses in turn, the last one again and again."""

    def __init__(self, *statuses: int, tls: ssl.SSLContext | None = None) -> None:
        self.requests: list[tuple[str, Mapping[str, str], bytes]] = []
        self.statuses = list(statuses)
        hook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                hook.requests.append((self.path, dict(self.headers.items()), body))
                status = hook.statuses.pop(0) if len(hook.statuses) > 1 else hook.statuses[0]
                self.send_response(status)
                self.send_header("Location", "/other")
                self.end_headers()
                self.wfile.write(b"what it says")

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        if tls is not None:
            self.server.socket = tls.wrap_socket(self.server.socket, server_side=True)
        self.port = self.server.server_address[1]

    def document(self) -> Any:
        return json.loads(self.requests[-1][2])


@contextlib.contextmanager
def serving(server: socketserver.BaseServer) -> Iterator[None]:
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_a_post_says_everything_and_is_signed(tmp_path: Path) -> None:
    hook = Hook(204)
    key = file_of(tmp_path / "key", "secret\n")
    headers = file_of(tmp_path / "headers", "Authorization: Bearer abc\n\n")
    with serving(hook.server):
        done = called("webhook", f"http://127.0.0.1:{hook.port}/hook?team=a", webhook_key_file=key,
                      webhook_headers_file=headers, **OURS)  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "delivered, try 1\n"), done.stderr
    path, found, body = hook.requests[0]
    assert (path, found["Authorization"], found["Idempotency-Key"]) == ("/hook?team=a", "Bearer abc", "uuid-7-41-41")
    signed = hmac.new(b"secret", found["X-Haclusterd-Timestamp"].encode() + b"." + body, hashlib.sha256).hexdigest()
    assert found["X-Haclusterd-Signature"] == f"sha256={signed}"
    assert json.loads(body) == {
        "schema": "haclusterd.alert/1", "incident": "uuid-7", "repeated": True, "test": False, "alike": 0,
        "text": "web on n2: monitor (10000 ms): not running",
        "events": [{
            "sequence": 41, "at": "2026-05-28T20:26:40.123Z", "kind": "resource", "node": "n2", "resource": "web",
            "description": "not running", "task": "monitor", "interval_ms": 10000, "exit_code": 7,
            "target_exit_code": 0, "executed_ms": 12, "incident": "uuid-7",
        }],
    }  # fmt: skip


def test_a_group_is_one_post() -> None:
    hook = Hook(200)
    names = ("kind", "node", "desc", "node_sequence", "timestamp_epoch")
    events = [dict(zip(names, ("node", f"n{number}", "lost", str(number), "1"), strict=True)) for number in (5, 6)]
    with serving(hook.server):
        done = called("webhook", f"http://127.0.0.1:{hook.port}", CRM_alert_events=json.dumps(events))
    assert done.returncode == 0, done.stderr
    assert [(each["sequence"], each["node"]) for each in hook.document()["events"]] == [(5, "n5"), (6, "n6")]
    assert hook.requests[0][1]["Idempotency-Key"] == "19700101000001000-5-6", "nothing another cluster could send"


@pytest.mark.parametrize(
    ("statuses", "tries", "code", "requests", "said"),
    [
        ((503, 200), "3", 0, 2, "delivered, try 2"),
        ((503,), "2", 1, 2, "503 Service Unavailable: what it says (try 2 of 2)"),
        ((429, 202), "2", 0, 2, "delivered, try 2"),
        ((403,), "3", 1, 1, "403 Forbidden"),
        ((302,), "3", 1, 1, "302 Found"),
    ],
)
def test_what_may_help_is_tried_again(
    statuses: tuple[int, ...], tries: str, code: int, requests: int, said: str
) -> None:
    hook = Hook(*statuses)
    with serving(hook.server):
        done = called("webhook", f"http://127.0.0.1:{hook.port}", webhook_tries=tries)
    assert (done.returncode, len(hook.requests)) == (code, requests)
    assert said in done.stdout + done.stderr
    assert len({each["Idempotency-Key"] for _, each, _ in hook.requests}) == 1


def test_a_server_that_does_not_answer_is_not_waited_for() -> None:
    class Silent(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.recv(1)
            while self.request.recv(65536):
                pass

    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Silent)
    with serving(server):
        url = f"http://127.0.0.1:{server.server_address[1]}"
        slow = called("webhook", url, webhook_timeout="0.2", webhook_tries="1")
        late = called("webhook", url, webhook_deadline="0.3s")
    assert (slow.returncode, slow.stderr) == (1, "no answer within 0.2 s (try 1 of 1)\n")
    assert (late.returncode, late.stderr) == (1, "not delivered within 0.3 s\n")


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> tuple[ssl.SSLContext, str]:
    """A server's side for 127.0.0.1, and the file of the authority that a client has to believe in."""
    place = tmp_path_factory.mktemp("tls")
    key, certificate = place / "key.pem", place / "certificate.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
               "-subj", "/CN=test", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2",
               "-keyout", str(key), "-out", str(certificate)]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context, str(certificate)


def test_the_other_side_is_verified(tls: tuple[ssl.SSLContext, str]) -> None:
    context, authority = tls
    hook = Hook(200, tls=context)
    with serving(hook.server):
        believed = called("webhook", f"https://127.0.0.1:{hook.port}", webhook_ca_file=authority)
        unknown = called("webhook", f"https://127.0.0.1:{hook.port}")
    assert believed.returncode == 0, believed.stderr
    assert unknown.returncode == 1
    assert "the certificate of 127.0.0.1 is not accepted" in unknown.stderr
    assert len(hook.requests) == 1


@pytest.mark.parametrize(
    ("recipient", "settings", "said"),
    [
        ("ftp://x", {}, "no URL of http or https"),
        ("https://user:pw@x/", {}, "use webhook_headers_file"),
        ("https://x/", {"webhook_tries": "many"}, "webhook_tries=many"),
        ("https://x/", {"webhook_timeout": "-1"}, "webhook_timeout=-1"),
        ("https://x/", {"webhook_key_file": "/nonexistent"}, "webhook_key_file=/nonexistent: No such file"),
        ("https://x/", {"webhook_ca_file": "/nonexistent"}, "webhook_ca_file=/nonexistent"),
        ("https://x/", {"CRM_alert_kind": ""}, "CRM_alert_kind is not set"),
        ("https://x/", {"CRM_alert_events": "["}, "CRM_alert_events is no JSON"),
    ],
)
def test_a_wrong_setting_has_its_remedy(recipient: str, settings: dict[str, str], said: str) -> None:
    done = called("webhook", recipient, **settings)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_secret_that_others_may_read_is_refused(tmp_path: Path) -> None:
    key = file_of(tmp_path / "key", "hunter2", 0o644)
    done = called("webhook", "http://127.0.0.1:1", webhook_key_file=key)
    assert (done.returncode, f"chmod 600 {key}" in done.stderr, "hunter2" in done.stderr) == (2, True, False)


# -- mail ------------------------------------------------------------------------------------------------------------


class Mailbox:
    """A server of SMTP with STARTTLS and AUTH PLAIN, as far as a client of smtplib needs it."""

    def __init__(self, tls: ssl.SSLContext | None = None, *, refuses: bool = False) -> None:
        self.mails: list[str] = []
        self.logins: list[str] = []
        box = self

        class Handler(socketserver.StreamRequestHandler):
            def say(self, *lines: str) -> None:
                self.wfile.write("".join(f"{line}\r\n" for line in lines).encode())

            def handle(self) -> None:
                self.say("220 test")
                while line := self.rfile.readline().decode().strip():
                    word = line.split()[0].upper()
                    if word == "EHLO":
                        self.say("250-test", "250-AUTH PLAIN", *(["250-STARTTLS"] if tls else []), "250 8BITMIME")
                    elif word == "STARTTLS" and tls is not None:
                        self.say("220 go on")
                        self.request = tls.wrap_socket(self.request, server_side=True)
                        self.rfile, self.wfile = self.request.makefile("rb"), self.request.makefile("wb", 0)
                    elif word == "AUTH":
                        box.logins.append(base64.b64decode(line.split()[2]).decode())
                        self.say("235 welcome")
                    elif word == "RCPT" and refuses:
                        self.say("550 nobody of that name")
                    elif word == "DATA":
                        self.say("354 go on")
                        text = b"".join(iter(self.rfile.readline, b".\r\n"))
                        box.mails.append(text.decode())
                        self.say("250 taken")
                    elif word == "QUIT":
                        self.say("221 bye")
                        break
                    else:
                        self.say("250 well")
                for each in (self.rfile, self.wfile, self.request):
                    each.close()

        self.server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]


def test_a_mail_by_a_server_with_a_password(tls: tuple[ssl.SSLContext, str], tmp_path: Path) -> None:
    box = Mailbox(tls[0])
    credentials = file_of(tmp_path / "credentials", "hal\nopen the doors\n")
    with serving(box.server):
        done = called("mail", "a@example.org, b@example.org", mail_server=f"127.0.0.1:{box.port}", mail_ca_file=tls[1],
                      mail_credentials_file=credentials, **OURS)  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "accepted by 127.0.0.1\n"), done.stderr
    assert box.logins == ["\0hal\0open the doors"]
    (mail,) = box.mails
    head, _, body = mail.partition("\r\n\r\n")
    assert "Subject: [haclusterd] repeated: web on n2: monitor (10000 ms): not running" in head.replace("\r\n ", " ")
    assert "References: <uuid-7@haclusterd>" in head
    assert "Auto-Submitted: auto-generated" in head
    assert "2026-05-28T20:26:40.123Z  web on n2: monitor (10000 ms): not running" in body


def test_a_server_that_is_not_believed_gets_no_password(tls: tuple[ssl.SSLContext, str], tmp_path: Path) -> None:
    box = Mailbox(tls[0])
    credentials = file_of(tmp_path / "credentials", "hal\npw\n")
    with serving(box.server):
        done = called("mail", "a@example.org", mail_server=f"127.0.0.1:{box.port}", mail_credentials_file=credentials)
        plain = called("mail", "a@example.org", mail_server=f"127.0.0.1:{box.port}", mail_security="none",
                       mail_credentials_file=credentials)  # fmt: skip
    assert (done.returncode, "is not accepted" in done.stderr) == (1, True)
    assert (plain.returncode, "as it is" in plain.stderr) == (2, True)
    assert (box.logins, box.mails) == ([], [])


def test_a_server_that_refuses() -> None:
    box = Mailbox(refuses=True)
    with serving(box.server):
        done = called("mail", "a@example.org", mail_server=f"127.0.0.1:{box.port}", mail_security="none")
    assert (done.returncode, "nobody of that name" in done.stderr) == (1, True)


def test_a_mail_by_sendmail_whose_headers_cannot_be_forged(tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    sendmail = file_of(tmp_path / "sendmail", f'#!/bin/sh\necho "$@" >{taken}.arguments\ncat >{taken}\n', 0o755)
    done = called("mail", "a@example.org", mail_sendmail=sendmail, CRM_alert_desc="bad\nBcc: everybody@example.org",
                  CRM_alert_test="true")  # fmt: skip
    assert (done.returncode, Path(f"{taken}.arguments").read_text()) == (0, "-t -i\n"), done.stderr
    head = taken.read_text().partition("\n\n")[0]
    assert "\nBcc:" not in head
    assert "Subject: [haclusterd] TEST: web on n2" in head
    fails = file_of(tmp_path / "fails", "#!/bin/sh\ncat >/dev/null\necho later\nexit 75\n", 0o755)
    failed = called("mail", "a@example.org", mail_sendmail=fails)
    assert (failed.returncode, "ended with 75: later" in failed.stderr) == (1, True)


@pytest.mark.parametrize(
    ("recipient", "settings", "said"),
    [
        ("nobody", {}, "no address of e-mail"),
        ("a@b", {"mail_server": "x:y"}, "mail_server=x:y"),
        ("a@b", {"mail_server": "x", "mail_security": "some"}, "mail_security=some"),
        ("a@b", {"mail_sendmail": "/nonexistent"}, "set mail_server"),
    ],
)
def test_a_wrong_setting_of_mail(recipient: str, settings: dict[str, str], said: str) -> None:
    done = called("mail", recipient, **settings)
    assert (done.returncode, said in done.stderr, "Traceback" in done.stderr) == (2, True, False)


@pytest.mark.parametrize("agent", ["webhook", "mail"])
def test_help(agent: str) -> None:
    shown = subprocess.run([AGENTS / agent, "--help"], capture_output=True, text=True, check=True).stdout
    assert shown.startswith(f"usage: {agent}\n")
    assert max(map(len, shown.splitlines())) <= 80
    assert subprocess.run([AGENTS / agent, "x"], capture_output=True, check=False).returncode == 2
