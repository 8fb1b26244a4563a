"""References to secrets that the judgement names."""

from haclusterd.commands.verify.configuration import verify
from haclusterd.model.configuration import Alert, AttributeSet, Configuration, Operation, Primitive
from haclusterd.model.ids import AgentReference, ResourceId
from haclusterd.reports.codes import Code


def judged(value: str, secrets: "set[str] | None") -> list[tuple[Code, str]]:
    monitor = Operation("o", "monitor", 1000, timeout_ms=20_000, parameters=(AttributeSet("q", (("q", value),)),))
    web = Primitive(ResourceId("web"), AgentReference("ocf", "test", "web"), operations=(monitor,),
                    parameters=(AttributeSet("p", (("password", value),)),))  # fmt: skip
    configuration = Configuration(resources={web.id: web})
    found = verify(configuration, members={}, agents=None, secrets=secrets)
    return [(each.code, each.remedy) for each in found if each.code in (Code.SECRET_UNKNOWN, Code.WITHOUT_EFFECT)]


def test_a_reference_to_nothing_is_named_where_it_stands() -> None:
    assert judged("secret:db", {"db"}) == []
    assert judged("secret:db", {"dbs"}) == [(Code.SECRET_UNKNOWN, "did you mean dbs?")] * 2
    assert judged("secret:db", set()) == [(Code.SECRET_UNKNOWN, "crm secret set db")] * 2
    assert judged("secret:db", None) == []
    assert [code for code, _ in judged("secret:no name", {"db"})] == [Code.WITHOUT_EFFECT] * 2
    assert [code for code, _ in judged("secret:db@7", {"db"})] == [Code.WITHOUT_EFFECT] * 2


def test_alerts_have_none() -> None:
    alert = Alert("mail", "/bin/true", parameters=(AttributeSet("a", (("key", "secret:db"),)),))
    found = verify(Configuration(alerts={"mail": alert}), members={}, agents=None, secrets={"db"})
    assert [each.code for each in found if "key" in each.parameters.get("name", "")] == [Code.BAD_VALUE]
