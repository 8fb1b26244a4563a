"""What is read of processes that any user may have begun."""

import time

from haclusterd.agents.process_table import INSTANCE_MARK, Marks


def test_of_two_variables_with_one_name_the_first_counts() -> None:
    instances = b"OCF_RESOURCE_INSTANCE=web=1\0OCF_RESOURCE_INSTANCE=db\0"
    marks = Marks(b"A=OCF_RESOURCE_INSTANCE=no\0junk\0" + instances + b"EMPTY=\0Z=end")
    assert marks.get(INSTANCE_MARK) == "web=1"
    assert (marks["EMPTY"], marks["Z"], marks.get("junk"), marks.get("INSTANCE")) == ("", "end", None, None)
    assert dict(marks) == {"A": "OCF_RESOURCE_INSTANCE=no", INSTANCE_MARK: "web=1", "EMPTY": "", "Z": "end"}
    assert dict(Marks(b"")) == {}


def test_a_mark_is_found_without_reading_a_hundred_thousand_other_variables() -> None:
    """Every stop of a service looks at all processes: a user with thousands of these would have each stop fail."""
    data = b"".join(b"A%x=\0" % number for number in range(110_000))
    began = time.process_time()
    names = {item.partition(b"=")[0].decode() for item in data.split(b"\0")}
    whole_s = time.process_time() - began
    assert len(names) > 110_000
    began = time.process_time()
    for _ in range(5):
        assert Marks(data).get(INSTANCE_MARK) is None
    assert time.process_time() - began < whole_s
