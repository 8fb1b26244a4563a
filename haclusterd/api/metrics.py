"""`/metrics`: what the daemon answers to `metrics`, in the text format of Prometheus, and what this process adds.

The library writes the format; names, labels and values are the daemon's. A daemon that does not run is
`haclusterd_up 0`: then nobody can judge a token, and nothing else is said.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import cast

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.registry import Collector

from haclusterd.api.problems import Reply
from haclusterd.model.json_value import Json

DOWN: Json = [{"name": "haclusterd_up", "help": "1: the daemon of this node answers.", "kind": "gauge", "labels": [],
               "divisor": 1, "samples": [[0]]}]  # fmt: skip
TEXT = "text/plain"
STREAMS = "haclusterd_api_event_streams", "Event streams that are open."


class _Families:
    """What a registry collects."""

    def __init__(self, families: Sequence[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        """Return it."""
        return self._families


def exposition(families: Json, streams: int) -> Reply:
    """Return the metrics of an answer as text."""
    registry = CollectorRegistry(auto_describe=False)
    own = GaugeMetricFamily(*STREAMS, value=streams)
    registry.register(cast(Collector, _Families([*map(_family, _objects(families)), own])))
    return Reply(200, generate_latest(registry), CONTENT_TYPE_PLAIN_0_0_4)


def _family(data: Mapping[str, Json]) -> Metric:
    name, text, labels = str(data["name"]), str(data["help"]), [str(each) for each in _listed(data["labels"])]
    divisor = data["divisor"]
    assert isinstance(divisor, int)
    samples = [_listed(each) for each in _listed(data["samples"])]
    if data["kind"] == "histogram":
        return _histogram(name, text, labels, samples, divisor)
    made = (CounterMetricFamily if data["kind"] == "counter" else GaugeMetricFamily)(name, text, labels=labels)
    for *values, number in samples:
        made.add_metric([str(each) for each in values], _number(number) / divisor)
    return made


def _histogram(
    name: str, text: str, labels: Sequence[str], samples: Sequence[Sequence[Json]], divisor: int
) -> HistogramMetricFamily:
    """Samples are (labels, limit, count), limits rising; after those of one set of labels comes (labels, sum, sum)."""
    made = HistogramMetricFamily(name, text, labels=labels[:-1])
    buckets: list[tuple[str, float]] = []
    for *values, limit, number in samples:
        if limit == "sum":
            made.add_metric([str(each) for each in values], buckets, _number(number) / divisor)
            buckets = []
        else:
            shown = str(limit) if isinstance(limit, str) else str(_number(limit) / divisor)
            buckets.append((shown, _number(number)))
    return made


def _number(value: Json) -> float:
    assert isinstance(value, int | float | str), value
    return float(value)


def _listed(value: Json) -> Sequence[Json]:
    assert isinstance(value, Sequence), value
    assert not isinstance(value, str), value
    return value


def _objects(value: Json) -> Iterator[Mapping[str, Json]]:
    for each in _listed(value):
        assert isinstance(each, Mapping), each
        yield each
