"""A sample of `make fuzz-decoders`."""

from tests.fuzzing.decoders import decoders, fuzz


def test_damaged_input_is_read_or_refused_by_its_one_error() -> None:
    found = fuzz(10, seed=7)
    assert found.violations == []
    assert set(found.inputs) == {each.name for each in decoders()}
    assert min(found.inputs.values()) > 20
