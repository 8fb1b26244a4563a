"""A terminal of xterm's kind for tests: what a program writes to it, as the lines that a person would see."""

import re

_SEQUENCE = re.compile(r"\x1b(?:\[([?>]?)([\d;]*)([@-~])|[()][0-9A-Za-z]|[=>78cDEHM])|[\x00-\x1f]|[^\x00-\x1f\x1b]")


class EmulatedTerminal:
    """The screen of a terminal; what it does not know is an error, so that no screen is believed that is wrong."""

    def __init__(self, columns: int, rows: int) -> None:
        self.is_alternate = False
        self._rest = ""
        self.resize(columns, rows)

    def resize(self, columns: int, rows: int) -> None:
        """Change the size; what is shown is drawn again by the program."""
        self.columns, self.rows = columns, rows
        self._cells = [[" "] * columns for _ in range(rows)]
        self._row = self._column = 0
        self._last = " "
        self._region = (0, rows)
        """The lines that scroll: the first, and the one behind the last."""

    def lines(self) -> list[str]:
        """Return what is shown."""
        return ["".join(row).rstrip() for row in self._cells]

    def feed(self, text: str) -> None:
        """Take what a program writes; a sequence may come in parts."""
        text = self._rest + text
        end = 0
        for found in _SEQUENCE.finditer(text):
            if found.start() != end:
                break
            end = found.end()
            if found[3]:
                self._carry_out(found[3], [int(each or 0) for each in found[2].split(";")], private=found[1])
            elif len(found[0]) == 1:
                self._put(found[0])
            elif found[0] in ("\x1bM", "\x1bD"):
                self._index(-1 if found[0][1] == "M" else 1)
        self._rest = text[end:]
        assert len(self._rest) < 20, f"not known: {self._rest[:40]!r}"

    def _put(self, char: str) -> None:
        if char == "\r":
            self._column = 0
        elif char == "\n":
            self._index(1)
        elif char == "\b":
            self._column = max(0, self._column - 1)
        elif char == "\t":
            self._column = min(self.columns - 1, (self._column // 8 + 1) * 8)
        elif char.isprintable():
            if self._column == self.columns:
                self._put("\r")
                self._put("\n")
            self._cells[self._row][self._column] = self._last = char
            self._column += 1

    def _index(self, step: int) -> None:
        """Go a line down or up; at the end of the region it scrolls."""
        first, end = self._region
        if self._row == (end - 1 if step > 0 else first):
            self._scroll(first, end, step)
        else:
            self._move(self._row + step, self._column)

    def _scroll(self, first: int, end: int, lines: int) -> None:
        """Move the lines of a region up, or down where `lines` is negative."""
        empty = [[" "] * self.columns for _ in range(min(abs(lines), end - first))]
        kept = self._cells[first:end]
        moved = [*kept[len(empty) :], *empty] if lines > 0 else [*empty, *kept[: len(kept) - len(empty)]]
        self._cells[first:end] = moved

    def _carry_out(self, what: str, numbers: list[int], *, private: str) -> None:
        if private:
            if numbers[0] == 1049:
                self.is_alternate = what == "h"
            return
        first = numbers[0]
        count = max(1, first)
        row = self._cells[min(self._row, self.rows - 1)]
        match what:
            case "H":
                self._move(count - 1, max(1, numbers[1] if len(numbers) > 1 else 1) - 1)
            case "A" | "B":
                self._move(self._row + (count if what == "B" else -count), self._column)
            case "C" | "D":
                self._move(self._row, self._column + (count if what == "C" else -count))
            case "G":
                self._move(self._row, count - 1)
            case "d":
                self._move(count - 1, self._column)
            case "K":
                begin, end = {0: (self._column, self.columns), 1: (0, self._column + 1), 2: (0, self.columns)}[first]
                row[begin:end] = [" "] * (end - begin)
            case "J":
                self._clear(first)
            case "X":
                end = min(self.columns, self._column + count)
                row[self._column : end] = [" "] * (end - self._column)
            case "P":
                del row[self._column : self._column + count]
                row += [" "] * (self.columns - len(row))
            case "@":
                row[self._column : self._column] = [" "] * count
                del row[self.columns :]
            case "b":
                for _ in range(count):
                    self._put(self._last)
            case "S" | "T":
                self._scroll(*self._region, count if what == "S" else -count)
            case "L" | "M":
                self._scroll(self._row, self._region[1], count if what == "M" else -count)
            case "r":
                self._region = (count - 1, numbers[1] if len(numbers) > 1 and numbers[1] else self.rows)
                self._move(0, 0)
            case "m" | "h" | "l" | "t":
                pass
            case _:
                raise AssertionError(f"not known: {what} {numbers}")

    def _move(self, row: int, column: int) -> None:
        self._row = max(0, min(row, self.rows - 1))
        self._column = max(0, min(column, self.columns - 1))

    def _clear(self, which: int) -> None:
        if which == 2:
            self._cells = [[" "] * self.columns for _ in range(self.rows)]
            return
        assert which == 0
        self._cells[self._row][self._column :] = [" "] * (self.columns - self._column)
        for number in range(self._row + 1, self.rows):
            self._cells[number] = [" "] * self.columns
