"""n1's controller, which leads the cluster, and the scheduler that it asks."""

from collections.abc import Sequence

from haclusterd.cib import commands
from haclusterd.cib.changes import Change
from haclusterd.machines.controller import ControllerMachine
from haclusterd.machines.effects import AskForPlan, Effect
from haclusterd.model.graph import Plan, TransitionGraph
from haclusterd.model.instants import Instant
from haclusterd.model.pacer import BrainState, HeardNode, PacerReport
from haclusterd.model.planning import PlanAnswer
from haclusterd.model.timing import derive
from tests.unit.situations import N1, NAMES, TERM, Cluster, life, moment

TIMING = derive(2000)
NOTHING = Plan(TransitionGraph(), {})
FORM = commands.FormCluster("uuid", "test", ())


class Dc:
    """n1's controller, which leads term 1, and the scheduler that it asks."""

    def __init__(self, cluster: Cluster | None = None) -> None:
        self.cluster = cluster or Cluster()
        self.plan: Plan | str = NOTHING
        """What the scheduler answers, or what it dies of."""
        self.planned: list[int] = []
        self.now = 100_000
        self.answers: list[PlanAnswer] = []
        """Plans that are made, and not delivered yet."""
        self.controller = ControllerMachine(N1, life(N1), TIMING, FORM)
        self.controller.leadership_changed(TERM, is_self=True)

    def _make(self, question: AskForPlan) -> None:
        self.planned.append(self.cluster.cib.index)
        if isinstance(self.plan, str):
            self.answers.append(PlanAnswer(question.number, None, self.plan))
        else:
            self.answers.append(PlanAnswer(question.number, self.plan))

    def report(self) -> PacerReport:
        nodes = tuple(
            HeardNode(
                name,
                self.cluster.status(name).incarnation,
                age_ms=50,
                brain=BrainState.ALIVE,
                brain_since_ms=0,
                hears=dict.fromkeys(NAMES, 50),
                heard_at=Instant(self.now - 50),
            )
            for name in NAMES[1:]
        )
        return PacerReport(Instant(self.now), None, nodes)

    def ask(self, *changes: Change, report: PacerReport | None = None) -> list[Effect]:
        """Step once; what is asked for is made, but not delivered."""
        effects = self.controller.step(self.cluster.cib, changes, report or self.report(), moment(self.now))
        for effect in effects:
            if isinstance(effect, AskForPlan):
                self._make(effect)
        return list(effects)

    def tell(self) -> list[Effect]:
        """Tell the plan that was made, and step."""
        self.controller.answered(self.answers.pop(0))
        return self.ask()

    def step(self, *changes: Change) -> list[Effect]:
        """Step, and tell plans as soon as they are made."""
        effects = self.ask(*changes)
        while self.answers:
            effects += self.tell()
        return effects

    def change(self, command: commands.Command) -> Sequence[Effect]:
        """Commit a command and step with what it changed."""
        return self.step(*self.cluster.must(command).changes)
