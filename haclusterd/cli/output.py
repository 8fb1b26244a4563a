"""What `crm` writes to: an output that cannot be written is an error, a message that reaches nobody is none.

A full disk behind the standard output leaves the answer half shown: that has an exit status. A message that cannot be
written must not hide how the command ended. A stream that was closed reads and writes nothing.
"""

import io
import os
from io import TextIOWrapper
from typing import TextIO


class OutputFailedError(Exception):
    """The standard output cannot be written; the argument says why. Of a reader that has gone away: BrokenPipeError."""


class _Output(TextIOWrapper):
    def write(self, text: str) -> int:
        """Write a text; raises OutputFailedError."""
        try:
            return super().write(text)
        except OSError as error:
            raise _failure(error) from None

    def flush(self) -> None:
        """Write what is buffered; raises OutputFailedError."""
        try:
            super().flush()
        except OSError as error:
            raise _failure(error) from None


class _Messages(TextIOWrapper):
    def write(self, text: str) -> int:
        """Write a text, if it can be written."""
        try:
            return super().write(text)
        except OSError:
            return len(text)

    def flush(self) -> None:
        """Write what is buffered, if it can be written."""
        try:
            super().flush()
        except OSError:
            return


def _failure(error: OSError) -> Exception:
    return error if isinstance(error, BrokenPipeError) else OutputFailedError(error.strerror or str(error))


def readable(stdin: TextIO | None) -> TextIO:
    """Return the standard input of this process; None: it was started with the stream closed."""
    return open(os.devnull, encoding="utf-8") if stdin is None else stdin


def output(stdout: TextIO | None) -> TextIO:
    """Return what writes to the standard output, or raises OutputFailedError; None as above."""
    return _over(stdout, _Output)


def messages(stderr: TextIO | None) -> TextIO:
    """Return what writes to the standard error, where that can be written; None as above."""
    return _over(stderr, _Messages)


def _over(stream: TextIO | None, kind: type[TextIOWrapper]) -> TextIO:
    """Return a stream of another kind over the same file; what is no file stays as it is."""
    if stream is None:
        return open(os.devnull, "w", encoding="utf-8")
    try:
        handle = stream.fileno()
    except io.UnsupportedOperation:
        return stream
    file = io.BufferedWriter(io.FileIO(handle, "wb", closefd=False))
    is_by_line = kind is _Messages or stream.isatty()
    # A terminal of another locale may lack what a description is written in.
    return kind(file, encoding=stream.encoding, errors="backslashreplace", line_buffering=is_by_line)


def let_go(stream: TextIO) -> None:
    """Write what is buffered; what cannot be written is dropped, so that the end of the process is no failure."""
    try:
        stream.flush()
    except (BrokenPipeError, OutputFailedError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
