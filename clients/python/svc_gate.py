"""The svc-gate client for Python 3.9 and later: asks the gate whether an agent's tool call may run.

    gate = SvcGate("https://gate.example/t/acme", api_key=key, session_id=run_id)
    verdict = gate.check("payment.send", {"amount": 10}, platform_state=snapshot)
    if verdict.allowed: ...      # run the tool
    elif verdict.escalated: ...  # park the call, or wait for a person with gate.settle(...)
    elif verdict.unreached: ...  # no verdict: stop the run, show verdict.reason to operations, not to the model
    else: ...                    # refuse the call, show verdict.reason

Put the call where tool calls are executed, not among the agent's tools. One file, the standard library only. The client
has no rules: it carries the question and the answer, and refuses without an answer. It is safe to use from
several threads at once; for asyncio, use svc_gate_async.py. Proxy variables in the environment are ignored: the key goes
only to the configured address.

spec/client.md defines a client's behaviour, case by case. This file reads HTTP itself, because ``http.client`` restarts
its time-out with every byte, trusts the first of two lengths, and keeps a connection after an interim answer.
"""

from __future__ import annotations

import collections
import hashlib
import itertools
import json
import math
import os
import random
import re
import socket
import ssl
import threading
import time
import uuid
from dataclasses import dataclass, replace
from typing import Any, Callable, Iterator, Optional, Union
from urllib.parse import urlencode, urlsplit

__all__ = ["SvcGate", "SvcGateError", "Verdict"]
__version__ = "1.0.0"

_REQUEST_MAX = 262144  # bytes: the gate's own limit; past it the agent could choose an error instead of a verdict
_VERDICT_MAX = 1048576  # bytes of an answer to a check
_ANSWER_MAX = 67108864  # bytes of another answer: a thousand receipts with their snapshots
_HEAD_MAX = 16384  # bytes of an answer's head, as in Node
_DEPTH_MAX = 64  # levels of an input, as at the gate
_ANSWER_DEPTH_MAX = 128  # levels of an answer: receipts contain inputs
_IDLE_MAX = 4.0  # seconds a connection is kept without use: servers close at 5 and later
_KEPT_MAX = 64  # idle connections
_TIMEOUT_MAX = 2147483.0  # seconds: a JavaScript timer's range, so that both clients have one limit
_INT_BITS_MAX = 8192  # the interpreter itself refuses to write some thousand digits, the gate over 40
_FLOAT_EXACT = 2.0**53  # from here on a float represents several whole numbers
_STOP_WITHIN = 0.25  # seconds until a thread that waits for an answer notices its stop
_WAIT_MAX = 30  # seconds of one wait for a person: many proxies end a request after 60
_STOPPED = "the wait for a person was stopped"
_BUT = "a person decided, but not for this call, and "
_ENDS = {  # a status that ends the wait for a person, and the words for it
    "denied": "a person denied this call", "expired": "the approval of this call has expired",
    "cancelled": "the approval of this call was cancelled", "used": "the approval of this call was already used",
    "superseded": "the approval of this call was replaced by another", "unknown": "the gate does not know the approval",
}
_Stop = Optional[threading.Event]


@dataclass(frozen=True)
class Verdict:
    """The answer to a check. Its truth value is ``allowed``.

    ``verdict`` is "ALLOW", "BLOCK" or "ESCALATE", ``reason`` one sentence for a person, ``mode`` "observe", "assist" or
    "enforce" (None if the gate did not answer). ``unreached`` is True if the client made the verdict itself because the
    gate gave none; then no receipt exists, and ``reason`` is for operations, not for the model. ``receipt`` is the gate's
    ``{"seq", "hash", "request"}`` or None. ``approval`` is the gate's ``{"id", "status", "next", ...}`` or None.
    """

    verdict: str
    reason: str
    mode: Optional[str]
    unreached: bool = False
    receipt: Optional[dict[str, Any]] = None
    approval: Optional[dict[str, Any]] = None

    @property
    def allowed(self) -> bool:
        """True if the verdict is ALLOW: the action may run."""
        return self.verdict == "ALLOW"

    @property
    def escalated(self) -> bool:
        """True if the verdict is ESCALATE: the action waits for a person."""
        return self.verdict == "ESCALATE"

    def __bool__(self) -> bool:
        return self.allowed


class SvcGateError(Exception):
    """A route other than check gave no result.

    ``status`` is the HTTP status, None if no answer came; ``code`` and ``detail`` are the gate's own words, or None.
    """

    def __init__(self, message: str, status: Optional[int] = None, code: Optional[str] = None, detail: Optional[str] = None):
        super().__init__(message)
        self.status, self.code, self.detail = status, code, detail


class _Secret:
    """Holds the key, so that printing the attributes of a SvcGate does not show it."""

    __slots__ = ("text",)

    def __init__(self, text: Optional[str]) -> None:
        self.text = text

    def __repr__(self) -> str:
        return "<api_key>"


class SvcGate:
    """A gate at ``url``, which may have a path prefix and a trailing slash.

    ``api_key`` is the bearer key, sent with every call but health. ``session_id`` groups the calls of one agent run
    (1 to 256 bytes); without it every instance has a new one, and no rule about sequences can fire over two instances.
    ``timeout`` is the number of seconds for one attempt, from the look-up of the name to the last byte. ``retries`` is the
    number of more attempts after a transport error; a call with an answer is never repeated. The longest wait is
    ``timeout * (1 + retries)`` and 0.15 s for each retry. ``fail_open`` lets actions run while the gate cannot be reached or
    refuses the key: only for the observe phase. To end such an agent, stop its key and do not revoke it. ``ssl_context``
    replaces the default one for https, for a CA of your own. With ``idempotent`` a retry of a check adds no second row: the
    gate answers it as the first attempt.
    Raises TypeError or ValueError for invalid options, because they are mistakes in the program.
    """

    def __init__(
        self, url: str, api_key: Optional[str] = None, session_id: Optional[str] = None,
        timeout: float = 10.0, retries: int = 1, fail_open: bool = False, ssl_context: Optional[ssl.SSLContext] = None,
        idempotent: bool = False,
    ) -> None:
        self._secure, self._host, self._port, self._authority, self._prefix = _address(url)
        self._origin = ("https://" if self._secure else "http://") + self._authority
        if api_key is not None and not (type(api_key) is str and re.fullmatch(r"[\x21-\x7e]+", api_key)):
            raise ValueError("api_key must be one or more visible ASCII characters, without spaces or line breaks")
        if session_id is not None and not _is_session(session_id):
            raise ValueError("session_id must be a text of 1 to 256 bytes in UTF-8 without NUL")
        if type(timeout) not in (int, float) or not 0 < timeout <= _TIMEOUT_MAX:
            raise ValueError("timeout must be a number of seconds over 0, at most %d" % _TIMEOUT_MAX)
        if type(retries) is not int or not 0 <= retries <= 100:
            raise ValueError("retries must be a whole number from 0 to 100")
        for name, value in (("fail_open", fail_open), ("idempotent", idempotent)):
            if type(value) is not bool:
                raise TypeError(name + " must be True or False")
        if not isinstance(ssl_context, (ssl.SSLContext, type(None))):
            raise TypeError("ssl_context must be an ssl.SSLContext or None")
        self.session_id = str(uuid.uuid4()) if session_id is None else session_id
        self._secret = _Secret(api_key)
        self._timeout, self._retries, self._fail_open, self._idempotent = timeout, retries, fail_open, idempotent
        self._tls = (ssl_context or ssl.create_default_context()) if self._secure else None
        self._idle: collections.deque[_Connection] = collections.deque()  # its operations are atomic: no lock to fork
        self._open = True

    def check(
        self, tool_name: str, tool_input: dict[str, Any], platform_state: Optional[dict[str, Any]] = None, approval: Optional[str] = None,
    ) -> Verdict:
        """Asks whether this tool call may run. Never raises: a failure is a verdict with ``unreached``.

        ``tool_input`` and ``platform_state`` contain plain JSON data: dict with text keys, list, tuple, str, int, float, bool
        and None, of exactly these types. Anything else, NaN, and a float of 2**53 or more is a BLOCK that names the member.
        ``approval`` is the id of an approval of this call; ``settle`` sends it itself.
        """
        return self._checked(tool_name, tool_input, platform_state, approval, self._idempotent)

    def _checked(
        self, tool_name: Any, tool_input: Any, platform_state: Any, approval: Any, idempotent: bool, stop: _Stop = None
    ) -> Verdict:
        try:
            call_id = os.urandom(16).hex() if idempotent else None
            body = _request_body(tool_name, tool_input, self.session_id, platform_state, approval, call_id)
            answer = self._ask("POST", "/check", body, _VERDICT_MAX, whole=False, stop=stop)
            return _verdict_in(answer, hashlib.sha256(body).hexdigest())
        except _Trouble as trouble:
            return self._unreached(trouble.what, trouble.fails_open and self._fail_open)
        except Exception:
            return self._unreached("the client itself failed", False)

    def settle(
        self, verdict: Verdict, tool_name: str, tool_input: dict[str, Any],
        facts: Union[None, dict[str, Any], Callable[[], Optional[dict[str, Any]]]] = None, timeout: float = 900.0,
        stop: Optional[threading.Event] = None,
    ) -> Verdict:
        """Waits until a person decides the ESCALATE of this call, then checks the call again. Never raises.

        ``facts`` is the platform_state of that check, or a function that returns it. The result is a BLOCK if a person denies the
        call, or nobody approves it within ``timeout`` seconds. ``fail_open`` does not apply to the wait.
        A verdict that is not ESCALATE is returned unchanged. If another thread sets ``stop``, the result is a BLOCK, soon.
        """
        try:
            end, pause, but = time.monotonic() + timeout, 1.0, ""
            while verdict.escalated:
                verdict = self._decided(verdict, end, stop, but)
                if verdict.escalated and verdict.approval is not None:
                    state, decided = facts() if callable(facts) else facts, verdict.approval["id"]
                    verdict = self._checked(tool_name, tool_input, state, decided, True, stop)
                    but = "" if (verdict.approval or {}).get("id") == decided else _BUT
                    if stop and stop.is_set():
                        return _ended(verdict, _STOPPED)
                    if verdict.escalated:
                        _pause(min(pause, end - time.monotonic()), stop)
                        pause = min(2 * pause, _WAIT_MAX)  # each check adds a row to the ledger
            return verdict
        except Exception as error:
            return self._unreached(error.what if isinstance(error, _Trouble) else "the client itself failed", False)

    def _decided(self, verdict: Verdict, end: float, stop: _Stop, but: str) -> Verdict:
        """Waits for a decision. Returns the verdict with its approved approval, or a BLOCK."""
        name, late = (verdict.approval or {}).get("id"), None
        if type(name) is not str or not re.fullmatch("[0-9A-Za-z_-]{1,100}", name):
            return _ended(verdict, but + "no approval is open for this call")
        while (left := end - time.monotonic()) > 0:
            if stop and stop.is_set():
                return _ended(verdict, _STOPPED)
            wait, pause, late = math.ceil(min(_WAIT_MAX, left)), 1.0, None
            try:
                answer = self._ask("GET", "/approvals/%s?wait=%d" % (name, wait), None, _VERDICT_MAX, whole=False, wait=wait, stop=stop)
                found = _approval_in(answer, name)
                verdict = replace(verdict, approval=found)
                if found["status"] in _ENDS:
                    said = found.get("comment")
                    return _ended(verdict, _ENDS[found["status"]] + (": " + said if type(said) is str and said else ""))
                if found["status"] == "approved" and found.get("next") != "wait":
                    return verdict
                pause = 0.2 if found["status"] == "pending" else 1.0
            except _Transport as trouble:
                late = trouble
            _pause(min(pause, end - time.monotonic()), stop)
        return _ended(verdict, but + "nobody decided this call in time") if late is None else self._unreached(late.what, False)

    def outcome(
        self, verdict: Verdict, status: str, amount: Union[None, int, float] = None, ref: Optional[str] = None,
    ) -> Optional[str]:
        """Reports what became of an allowed call: "done", "failed" or "unknown". Never raises.

        After a time-out, or an error once the tool had started, it is "unknown". ``amount`` is what the tool really used, ``ref``
        your own reference. Returns None if the gate recorded the outcome, else a sentence that says why not.
        """
        try:
            if verdict.receipt is None:
                raise _Trouble("the verdict has no receipt")
            receipt = {name: verdict.receipt.get(name) for name in ("seq", "hash")}
            members = dict(receipt=receipt, status=status, amount=amount, ref=ref)
            body = _json_body({name: value for name, value in members.items() if value is not None})
            answer = self._ask("POST", "/outcomes", body, _VERDICT_MAX, whole=True)
            if answer.status == 200:
                return None
            _, detail = answer.problem(self._secret.text)
            what = "$GATE answered %d%s" % (answer.status, "" if detail is None else ": " + detail)
        except Exception as error:
            what = error.what if isinstance(error, _Trouble) else "the client itself failed"
        return "Svc: %s; the outcome was not recorded." % what.replace("$GATE", "the gate at " + self._origin)

    def health(self) -> dict[str, Any]:
        """``{"status": "ok", "mode"}``. The key is not sent. Raises SvcGateError, with status 503 if it is not healthy."""
        return self._result("/health", _Answer.object)

    def rules(self) -> str:
        """The text in force, verbatim. Raises SvcGateError."""
        return self._result("/rules", _Answer.text)

    def receipts(
        self, limit: Optional[int] = None, before: Optional[int] = None, session_id: Optional[str] = None,
        tool_name: Optional[str] = None, verdict: Optional[str] = None, kind: Optional[str] = None,
    ) -> dict[str, Any]:
        """``{"receipts": [...], "next"}``, newest first: ``limit`` rows (the gate's default is 50) before row ``before``.

        The other arguments keep only the rows that have them. ``kind`` is ``check`` (the gate's default), ``change``, ``result``
        or ``all``. Raises SvcGateError.
        """
        asked = dict(limit=limit, before=before, session_id=session_id, tool_name=tool_name, verdict=verdict, kind=kind)
        given = {name: value for name, value in asked.items() if value is not None}
        return self._result("/receipts" + ("?" + urlencode(given) if given else ""), _Answer.object)

    def verify(self) -> dict[str, Any]:
        """``{"ok": True, "rows", "head"}``, or ``{"ok": False, "rows", "first_broken"}``. Raises SvcGateError."""
        return self._result("/ledger/verify", _Answer.object)

    def close(self) -> None:
        """Closes the idle connections. Later calls open new ones."""
        self._open = False
        while self._idle:
            try:
                self._idle.pop().close()
            except IndexError:
                return

    def __reduce__(self) -> Any:
        """Raises TypeError, because a copy or a pickle would contain the key."""
        raise TypeError("a SvcGate cannot be copied or pickled: it contains the API key; make one in each process")

    def __enter__(self) -> SvcGate:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _unreached(self, what: str, allow: bool) -> Verdict:
        what = what.replace("$GATE", "the gate at " + self._origin)
        if allow:
            return Verdict("ALLOW", "Svc: %s; fail-open is set, so the action runs unjudged." % what, None, True)
        return Verdict("BLOCK", "Svc: %s; without a verdict the action is blocked." % what, None, True)

    def _result(self, path: str, read: Callable[[_Answer], Any]) -> Any:
        answer = None
        try:
            answer = self._ask("GET", path, None, _ANSWER_MAX, whole=True)
            if answer.status == 200:
                return read(answer)
        except _Trouble as trouble:
            message = trouble.what.replace("$GATE", "the gate at " + self._origin)
            raise SvcGateError(message, answer and answer.status) from None
        code, detail = answer.problem(self._secret.text)
        said = "" if detail is None else ": " + detail
        raise SvcGateError("the gate at %s answered %d%s" % (self._origin, answer.status, said), answer.status, code, detail)

    def _ask(self, method: str, path: str, body: Optional[bytes], limit: int, whole: bool, wait: int = 0, stop: _Stop = None) -> _Answer:
        head = ["%s %s%s HTTP/1.1" % (method, self._prefix, path), "Host: " + self._authority]
        head += ["Accept-Encoding: identity", "User-Agent: svc-gate-python/" + __version__]
        if self._secret.text is not None and path != "/health":
            head.append("Authorization: Bearer " + self._secret.text)
        if body is not None:
            head += ["Content-Type: application/json", "Content-Length: %d" % len(body)]
        request = "\r\n".join(head + ["", ""]).encode("ascii") + (body or b"")
        for attempt in itertools.count():
            try:
                answer = self._attempt(request, limit, whole, _Deadline(self._timeout + wait, stop))
                answer.is_first = attempt == 0
                return answer
            except _Transport:
                if attempt == self._retries or wait > 0:
                    raise
            _pause(0.05 + random.random() / 10, stop)

    def _attempt(self, request: bytes, limit: int, whole: bool, deadline: _Deadline) -> _Answer:
        connection = self._kept() or _connect(self._host, self._port, self._tls, deadline)
        reusable = False
        try:
            connection.send(request, deadline)
            answer, reusable = connection.receive(limit, whole, deadline)
            return answer
        except socket.timeout:
            raise deadline.passed() from None
        except (OSError, EOFError):
            raise _Transport("the connection to $GATE broke before a whole answer arrived") from None
        finally:
            if reusable and self._open and len(self._idle) < _KEPT_MAX:
                self._idle.append(connection)
            else:
                connection.close()

    def _kept(self) -> Optional[_Connection]:
        while True:
            try:
                connection = self._idle.pop()
            except IndexError:
                return None
            if connection.is_fresh():
                return connection
            connection.close()


class _Trouble(Exception):
    """Why the gate gave no verdict: a clause for the reason, with $GATE instead of the gate's address."""

    def __init__(self, what: str, fails_open: bool = True):
        super().__init__(what)
        self.what, self.fails_open = what, fails_open


class _Transport(_Trouble):
    """No answer came: only this failure is tried again."""


class _Deadline:
    def __init__(self, seconds: float, stop: _Stop):
        self._seconds, self._at, self._stop = seconds, time.monotonic() + seconds, stop

    def left(self) -> float:
        if self._stop and self._stop.is_set():
            raise _Transport(_STOPPED, fails_open=False)
        left = self._at - time.monotonic()
        if left <= 0:
            raise self.passed()
        return left

    def turn(self) -> float:
        """The seconds of one wait for bytes: few if the call can be stopped."""
        return min(self.left(), _STOP_WITHIN) if self._stop else self.left()

    def passed(self) -> _Transport:
        return _Transport("$GATE did not answer within %d ms" % round(self._seconds * 1000))


class _Connection:
    """One kept-alive connection. The thread that took it from the idle ones owns it until it is put back or closed."""

    def __init__(self, raw: socket.socket):
        self._socket, self._process, self._idle_since, self._read = raw, os.getpid(), 0.0, bytearray()

    def close(self) -> None:
        self._socket.close()

    def is_fresh(self) -> bool:
        """Returns False for a connection of the parent process, a long idle one, a closed one, and one with unread bytes."""
        if self._process != os.getpid() or time.monotonic() - self._idle_since > _IDLE_MAX:
            return False
        try:
            self._socket.settimeout(0)
            self._socket.recv(1)
        except (BlockingIOError, ssl.SSLWantReadError):
            return True
        except OSError:
            pass
        return False

    def send(self, data: bytes, deadline: _Deadline) -> None:
        rest = memoryview(data)
        while rest:
            self._socket.settimeout(deadline.left())
            rest = rest[self._socket.send(rest) :]

    def receive(self, limit: int, whole: bool, deadline: _Deadline) -> tuple[_Answer, bool]:
        """Returns the answer, and whether the connection can be used again. Reads the body only of a 200, unless ``whole``.

        The status alone decides the meaning of another answer, so its body may be missing.
        """
        status = 0
        while status < 200:  # interim answers
            version, status, fields = _parsed_head(bytes(self._until(b"\r\n\r\n", _HEAD_MAX, deadline)))
        if status != 200 and not whole:
            return _Answer(status, b"", None), False
        if fields.get("content-encoding", "identity") != "identity":
            return _Answer(status, b"", "it is encoded"), False
        try:
            body, ended = self._body(fields, limit, deadline)
        except (OSError, EOFError, _Transport):
            if status == 200:
                raise
            return _Answer(status, b"", None), False
        if body is None:
            return _Answer(status, b"", "it is over %d bytes" % limit), False
        self._idle_since = time.monotonic()
        lasting = version == b"1" and "close" not in fields.get("connection", "").lower()
        return _Answer(status, body, None), ended and lasting and not self._read

    def _body(self, fields: dict[str, str], limit: int, deadline: _Deadline) -> tuple[Optional[bytes], bool]:
        """Returns the body, None if it is over the limit, and whether its end is certain."""
        length, coding = fields.get("content-length"), fields.get("transfer-encoding")
        if coding is not None:
            if length is not None or coding.lower() != "chunked":
                raise EOFError
            return self._chunks(limit, deadline), True
        if length is not None:
            if not re.fullmatch(r"[0-9]{1,15}", length):
                raise EOFError
            return (self._exactly(int(length), deadline) if int(length) <= limit else None), True
        while len(self._read) <= limit:
            if not self._more(deadline):
                return bytes(self._read), False
        return None, False

    def _chunks(self, limit: int, deadline: _Deadline) -> Optional[bytes]:
        body = bytearray()
        while True:
            size = re.fullmatch(rb"([0-9A-Fa-f]{1,8})[ \t]*(?:;[^\r\n]*)?\r\n", self._until(b"\r\n", _HEAD_MAX, deadline))
            if size is None:
                raise EOFError
            if int(size[1], 16) == 0:
                break
            if len(body) + int(size[1], 16) > limit:
                return None
            body += self._exactly(int(size[1], 16), deadline)
            if self._exactly(2, deadline) != b"\r\n":
                raise EOFError
        while self._until(b"\r\n", _HEAD_MAX, deadline) != b"\r\n":  # trailers
            pass
        return bytes(body)

    def _until(self, end: bytes, most: int, deadline: _Deadline) -> bytes:
        while True:
            at = self._read.find(end)
            if 0 <= at <= most:
                return self._exactly(at + len(end), deadline)
            if at > most or len(self._read) > most or not self._more(deadline):
                raise EOFError

    def _exactly(self, length: int, deadline: _Deadline) -> bytes:
        while len(self._read) < length:
            if not self._more(deadline):
                raise EOFError
        taken = bytes(self._read[:length])
        del self._read[:length]
        return taken

    def _more(self, deadline: _Deadline) -> bool:
        while True:
            self._socket.settimeout(deadline.turn())
            try:
                received = self._socket.recv(65536)
            except socket.timeout:
                deadline.left()
                continue
            self._read += received
            return bool(received)


def _parsed_head(head: bytes) -> tuple[bytes, int, dict[str, str]]:
    """Returns the minor version, the status, and the fields by their names in lower case. Refuses invalid HTTP/1.1."""
    first, *lines = head[:-4].split(b"\r\n")
    start = re.fullmatch(rb"HTTP/1\.([01]) ([1-9][0-9]{2})(?: [^\0\r\n]*)?", first)
    if start is None or start[2] in (b"100", b"101"):  # the request wanted neither to continue nor to upgrade
        raise EOFError
    fields: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.decode("latin-1").partition(":")
        if not colon or not re.fullmatch(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+", name) or re.search("[\0\r\n]", value):
            raise EOFError
        name, value = name.lower(), value.strip(" \t")
        fields[name] = fields[name] + ", " + value if name in fields else value
    return start[1], int(start[2]), fields


def _connect(host: str, port: int, tls: Optional[ssl.SSLContext], deadline: _Deadline) -> _Connection:
    failed: Exception = OSError()
    addresses = _resolved(host, port, deadline)
    for tried, (family, kind, protocol, _, address) in enumerate(addresses):
        raw = None
        try:
            raw = socket.socket(family, kind, protocol)
            raw.settimeout(deadline.left() / (len(addresses) - tried))  # a dead first address leaves time for the next
            raw.connect(address)
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if tls is not None:
                raw.settimeout(deadline.left())
                raw = tls.wrap_socket(raw, server_hostname=host)
            return _Connection(raw)
        except BaseException as error:
            if raw is not None:
                raw.close()
            if not isinstance(error, OSError):
                raise
            failed = error
    if isinstance(failed, socket.timeout):
        raise deadline.passed()
    if isinstance(failed, (ssl.SSLEOFError, ConnectionResetError)):
        raise _Transport("the connection to $GATE broke before a whole answer arrived")
    why = "TLS failed" if isinstance(failed, ssl.SSLError) else "no route"
    raise _Transport("$GATE could not be reached (%s)" % ("refused" if isinstance(failed, ConnectionRefusedError) else why))


def _resolved(host: str, port: int, deadline: _Deadline) -> list[Any]:
    """Returns the host's addresses. The look-up cannot be cancelled, so a separate thread waits for it."""
    found: list[Any] = []

    def look_up() -> None:
        try:
            found.append(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except Exception as error:
            found.append(error)

    thread = threading.Thread(target=look_up, daemon=True)
    thread.start()
    thread.join(deadline.left())
    if not found:
        raise deadline.passed()
    if isinstance(found[0], Exception):
        raise _Transport("$GATE could not be reached (unknown name)")
    return found[0]


class _Answer:
    def __init__(self, status: int, body: bytes, unreadable: Optional[str]):
        self.status, self._body, self._unreadable, self.is_first = status, body, unreadable, True

    def text(self) -> str:
        if self._unreadable is not None:
            raise _unreadable(self._unreadable)
        try:
            return self._body.decode("utf-8")
        except UnicodeDecodeError:
            raise _unreadable("it is not UTF-8") from None

    def object(self) -> dict[str, Any]:
        text = self.text()
        try:
            _refuse_deep(text)
            # int refuses NaN and Infinity
            found = json.loads(text, parse_constant=int, object_pairs_hook=_once_each)
        except ValueError:
            raise _unreadable("it is not JSON") from None
        if type(found) is not dict:
            raise _unreadable("it is not an object")
        return found

    def problem(self, key: Optional[str]) -> tuple[Optional[str], Optional[str]]:
        """The refusal's code and detail, without the key."""
        try:
            found = self.object()
        except _Trouble:
            return None, None
        texts = (found.get(name) for name in ("code", "detail"))
        code, detail = (t.replace(key or "\0", "[key]")[:1000] if type(t) is str else None for t in texts)
        return code, detail


def _unreadable(why: str) -> _Trouble:
    return _Trouble("$GATE sent an answer that cannot be read: " + why)


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _unreadable("it repeats a member")
    return found


def _refuse_deep(text: str) -> None:
    depth = 0
    for mark in re.findall(r"[{}\[\]]", re.sub(r'"(?:[^"\\]|\\.)*"', "", text, flags=re.DOTALL)):
        depth += 1 if mark in "{[" else -1
        if depth > _ANSWER_DEPTH_MAX:
            raise _unreadable("it is nested over %d deep" % _ANSWER_DEPTH_MAX)


def _verdict_in(answer: _Answer, request_digest: str) -> Verdict:
    if answer.status != 200:
        raise _refusal(answer.status)
    found = answer.object()
    verdict, reason, mode, receipt, approval = map(found.get, ("verdict", "reason", "mode", "receipt", "approval"))
    if type(verdict) is not str or verdict not in ("ALLOW", "BLOCK", "ESCALATE"):
        raise _unreadable("its verdict is not ALLOW, BLOCK or ESCALATE")
    if type(reason) is not str or not reason or not _is_unicode(reason):
        raise _unreadable("it has no reason")
    if type(mode) is not str or mode not in ("observe", "assist", "enforce"):
        raise _unreadable("its mode is not observe, assist or enforce")
    for name, part in (("receipt", receipt), ("approval", approval)):
        if part is not None and type(part) is not dict:
            raise _unreadable("its %s is not an object" % name)
    if receipt is not None and "request" in receipt and receipt["request"] != request_digest:
        raise _Trouble("$GATE answered another request than the one sent")
    if answer.is_first and found.get("repeated") is True:
        raise _Trouble("$GATE repeated an answer that this check did not ask for")
    return Verdict(verdict, reason, mode, False, receipt, approval)


def _approval_in(answer: _Answer, name: str) -> dict[str, Any]:
    if answer.status == 404:
        return {"id": name, "status": "unknown"}
    if answer.status != 200:
        refusal = _refusal(answer.status)  # the gate may be starting, or have too many waiting requests
        raise _Transport(refusal.what) if answer.status == 429 or answer.status >= 500 else refusal
    found = answer.object()
    if found.get("id") != name or found.get("status") not in ("pending", "approved", *_ENDS):
        raise _unreadable("it is not this approval, or its status is not known")
    return found


def _pause(seconds: float, stop: _Stop) -> None:
    """Sleeps that long, or until the stop."""
    (stop.wait if stop else time.sleep)(max(0.0, seconds))


def _ended(verdict: Verdict, what: str) -> Verdict:
    return replace(verdict, verdict="BLOCK", reason="Svc: %s; the action is blocked." % what)


def _refusal(status: int) -> _Trouble:
    if status in (401, 403):
        return _Trouble("$GATE refused the key (%d)" % status)
    if status in (400, 409, 413, 415, 422, 429):
        return _Trouble("$GATE refused the request (%d)" % status, fails_open=False)
    if 300 <= status < 400:
        return _Trouble("$GATE answered with a redirect (%d), which is never followed" % status)
    return _Trouble("$GATE answered %d instead of a verdict" % status)


def _request_body(tool_name: Any, tool_input: Any, session_id: str, platform_state: Any, approval: Any, call_id: Any) -> bytes:
    members = {"tool_name": tool_name, "tool_input": tool_input, "session_id": session_id}
    if platform_state is not None:
        members["platform_state"] = platform_state
    if approval is not None:
        members["approval"] = {"id": approval}
    for name, value in members.items():
        if type(value) is not (str if name in ("tool_name", "session_id") else dict):
            raise _not_plain((name,), "is not a text" if name == "tool_name" else "is not an object")
    return _json_body(members, {} if call_id is None else {"call_id": call_id})


def _json_body(members: dict[str, Any], more: Optional[dict[str, str]] = None) -> bytes:
    for name, value in members.items():
        _refuse_unplain(value, (name,), itertools.count())
    members.update(more or {})
    body = json.dumps(members, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode("utf-8")
    if len(body) > _REQUEST_MAX:
        raise _too_long()
    return body


def _refuse_unplain(value: Any, path: tuple[Any, ...], counted: Iterator[int]) -> None:
    """Checks that JSON expresses the whole value. Types are exact, because a subclass may answer differently."""
    kind = type(value)
    if next(counted) > _REQUEST_MAX:  # a list that occurs many times is short in memory and long on the wire
        raise _too_long()
    if kind is dict or kind is list or kind is tuple:
        if len(path) > _DEPTH_MAX:
            raise _not_plain(path[:2], "is nested over %d deep, or contains itself" % _DEPTH_MAX)
        for part, item in list(value.items() if kind is dict else enumerate(value)):
            if kind is dict and (type(part) is not str or not _is_unicode(part)):
                raise _not_plain(path, "has a name that is not a text")
            _refuse_unplain(item, path + (part,), counted)
    elif kind is str and not _is_unicode(value):
        raise _not_plain(path, "has an unpaired surrogate")
    elif kind is float and not abs(value) < _FLOAT_EXACT:
        raise _not_plain(path, "is not a finite number" if value - value else "is too large to be exact; send it as text")
    elif kind is int and value.bit_length() > _INT_BITS_MAX:
        raise _not_plain(path, "has too many digits")
    elif kind not in (str, float, int, bool, type(None)):
        raise _not_plain(path, "is not plain JSON data (%s)" % _quoted(kind.__name__)[1:-1])


def _not_plain(path: tuple[Any, ...], why: str) -> _Trouble:
    place = path[0]
    for part in path[1:]:
        is_name = type(part) is str and re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,63}", part)
        place += "." + part if is_name else "[%s]" % (_quoted(part) if type(part) is str else part)
    place = place if len(place) <= 200 else place[:200] + "..."
    return _Trouble("the call was not sent, because %s %s" % (place, why), fails_open=False)


def _too_long() -> _Trouble:
    return _Trouble("the call was not sent, because it is over %d bytes" % _REQUEST_MAX, fails_open=False)


def _quoted(text: str) -> str:
    return json.dumps(text if len(text) <= 64 else text[:64] + "...").replace("\x7f", "\\u007f")


def _is_unicode(text: str) -> bool:
    return re.search(r"[\ud800-\udfff]", text) is None


def _is_session(value: Any) -> bool:
    return type(value) is str and _is_unicode(value) and 0 < len(value.encode("utf-8")) <= 256 and "\0" not in value


def _address(url: Any) -> tuple[bool, str, int, str, str]:
    """Whether TLS, the host, the port, the authority and the path's prefix. No error shows the address: it may contain secrets."""
    if type(url) is not str or not re.fullmatch(r"[\x21-\x7e]+", url) or re.search(r'["<>\\^`{|}]', url):
        raise ValueError("url must be a text of ASCII characters that URLs have")
    try:
        parts = urlsplit(url)
        port, host = parts.port, parts.hostname
    except ValueError:
        raise ValueError("url must have a host, and a port from 1 to 65535 if any") from None
    if parts.scheme not in ("http", "https") or not host or port == 0:
        raise ValueError("url must start with http:// or https:// and a host")
    if "@" in parts.netloc or "?" in url or "#" in url:
        raise ValueError("url must not have a user, a query or a fragment: the key is an option of its own")
    secure = parts.scheme == "https"
    shown = "[%s]" % host if ":" in host else host
    usual = 443 if secure else 80
    authority = shown if port in (None, usual) else "%s:%d" % (shown, port)
    return secure, host, port or usual, authority, parts.path.rstrip("/")
