"""The benches of monitors: what they read of records, and of a bus."""

from tests.benchmarks import monitors, unit_monitors


def test_delays_are_what_lies_beyond_the_interval() -> None:
    runs = ("10 n1 r0 start", "2000 n1 r0 monitor", "2500 n2 r0 monitor", "12030 n1 r0 monitor", "22130 n1 r0 monitor")
    assert monitors.delays_ms("".join(f"{run} 0\n" for run in runs), 10_000, 2000) == [30, 100]


def test_questions_about_other_units_and_answers_do_not_count() -> None:
    path = "/org/freedesktop/systemd1/unit/many_400_2eservice"
    lines = [
        "#type\ttimestamp\tserial\tsender\tdestination\tpath\tinterface\tmember",
        f"mc\t100.000\t7\t:1.3\torg.freedesktop.systemd1\t{path}\torg.freedesktop.DBus.Properties\tGet",
        "mc\t105.000\t8\t:1.3\torg.freedesktop.systemd1\t/another\torg.freedesktop.DBus.Properties\tGet",
        f"mr\t106.000\t9\t:1.1\t:1.3\t{path}",
        f"mc\t110.040\t9\t:1.3\torg.freedesktop.systemd1\t{path}\torg.freedesktop.DBus.Properties\tGet",
    ]
    assert unit_monitors.delays_ms("\n".join(lines), 1, 10_000) == [40]


def test_each_unit_is_at_home_on_one_node() -> None:
    lines = unit_monitors.configuration(2, 10, "n1").splitlines()
    assert [line.split()[:3] for line in lines if line.startswith("primitive")] == [
        ["primitive", f"many{number}", f"systemd:many@{number}"] for number in range(2)
    ]
    assert sum("inf: n1" in line for line in lines) == 2
