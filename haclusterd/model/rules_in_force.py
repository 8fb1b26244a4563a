"""Which safety rules are in force: all of them, always, except where the simulator proves that one is needed.

Each rule of safety.md was written against a concrete way to lose data. A rule that can be switched off without being
missed by any scenario is either not implemented or not needed. So the simulator runs each rule's scenario a second time
without it and demands that a checker objects (docs/design/0004-rules-and-scenarios.md). The real entry points have no
way to hand in anything but `ALL_RULES`.
"""

from haclusterd.model.records import dataclass


@dataclass(frozen=True, slots=True)
class SafetyRules:
    """One boolean for each rule; True: in force."""

    own_join_first: bool = True
    """An executor considers orders only after it has applied its own process's Join (safety.md §1)."""
    order_names_incarnation: bool = True
    """An executor runs only orders that carry its own incarnation (safety.md §1)."""
    lease_before_exec: bool = True
    """A start, promote or migrate begins only under a fresh lease (safety.md §1, §2)."""
    order_still_open_before_exec: bool = True
    """Just before the exec the order must still be open and not voided in the newest applied CIB (safety.md §1)."""
    order_deadline: bool = True
    """An activating order that has not begun by its deadline after receipt never begins (safety.md §1)."""
    open_orders_possibly_active: bool = True
    """An open order to start, voided or not, counts as active until its terminal record (safety.md §1)."""
    migration_counts_on_both: bool = True
    """What is being migrated live, or was and nobody knows how it ended, may be active on both nodes (safety.md §1)."""
    restart_keeps_orders: bool = True
    """A daemon's restart ends no order that can make something active; its successor answers it (safety.md §1)."""
    unverified_may_be_promoted: bool = True
    """An instance whose last action may have had any outcome may be promoted until a probe answers (safety.md §1)."""
    one_active_copy: bool = True
    """`apply` refuses a start of what may be active on another node, and a plan that an older order overtakes ends."""
    asked_as_started: bool = True
    """What may run is probed, watched and stopped by the agent and parameters that started it (safety.md §1)."""
    reload_keeps_both: bool = True
    """After a reload that did not succeed, what runs is looked for by the older parameters and by the newer (§1)."""
    own_orders_are_known: bool = True
    """A DC executes no plan that was made while orders of its own were on their way into the log (safety.md §1)."""
    refuse_old_term: bool = True
    """`apply` refuses orders of another term than the designated controller's (safety.md §1)."""
    close_orders_of_older_incarnations: bool = True
    """Results of older incarnations are refused from the `apply` of `Lost` or `Join` on (safety.md §1)."""
    adopt_running_agents: bool = True
    """A new incarnation of the same boot runs nothing on a resource whose recorded agent still runs (safety.md §1)."""
    echo_send_time: bool = True
    """A lease counts from the send time of the echoed heartbeat, not from the echo's arrival (safety.md §2)."""
    withdraw_echo: bool = True
    """A voter stops echoing a node before it acknowledges the entry that declares it lost (safety.md §2)."""
    rebuild_withdrawn_set: bool = True
    """A restarted voter echoes nobody until the withdrawn set is rebuilt from its journal (safety.md §2)."""
    feed_needs_lease: bool = True
    """The watchdog is fed only with a valid lease and a daemon that lives, or on a proven empty node (safety.md §2)."""
    wait_covers_held_back_feed: bool = True
    """Survivors wait for a watchdog so long that a feed held back by a stopped feeder counts as well (safety.md §2)."""
    wait_has_reserve: bool = True
    """Survivors wait R longer: from a watchdog's expiry to the reset passes a moment (safety.md §2)."""
    new_dc_waits_again: bool = True
    """A new DC waits for a watchdog from when it saw the loss itself (safety.md §2)."""
    ruled_lease_is_recorded: bool = True
    """A lease that a rule on dates makes longer counts in the wait for a watchdog, like any other (safety.md §2)."""
    stop_on_lease_end: bool = True
    """A node without a lease stops its resources by itself (safety.md §4)."""
    unmanaged_is_not_empty: bool = True
    """A node on which something unmanaged runs on does not say that it is empty (safety.md §4)."""
    recorded_death_ends_all: bool = True
    """A node that sees its own boot recorded as fenced stops all that it runs, unmanaged or not (safety.md §4)."""
    silence_clocks_restart_after_stall: bool = True
    """After an own stall all silence clocks start again (safety.md §4)."""
    lost_needs_whole_quorum: bool = True
    """A node is lost only when no voter in the DC's quorum hears it (safety.md §4)."""
    heard_must_take_part: bool = True
    """A node that is heard, but whose daemon takes no part in Raft for brain-timeout, is lost (safety.md §4)."""
    linked_node_leads_first: bool = True
    """Before that, the DC goes to a node whose daemon has a session with that one (safety.md §4)."""
    dc_needs_fresh_lease: bool = True
    """Only a DC whose own lease is fresh declares a node lost (safety.md §4)."""
    fence_before_recovery: bool = True
    """Nothing of a lost node is recovered before its fencing is recorded (architecture: decision 5)."""
    heard_after_fence_is_a_lie: bool = True
    """A node that is heard after its fence agent ended was not fenced (safety.md §5)."""
    same_boot_disproves_fencing: bool = True
    """A node that joins in the boot that a device was recorded to have ended is fenced again first (safety.md §5)."""
    join_held_while_fencing: bool = True
    """A Join is held while a fence order on the node is unfinished (safety.md §5)."""
    abandoned_agent_holds_join: bool = True
    """A Join is held while the fence agent of a lost executor may still hit that node (safety.md §5)."""
    executor_answers_before_leaving: bool = True
    """A node that is to fence another one does not leave before it has answered (safety.md §5)."""
    abandoned_agent_holds_fencing: bool = True
    """A node is not fenced while the agent of a lost executor may still let it in afterwards (safety.md §5)."""
    device_is_held_once: bool = True
    """`apply` refuses orders for devices that another resource holds, or for more memory than one has (§11)."""
    release_is_proven: bool = True
    """A claim ends by proof on its node that nothing uses the device, or by a boot, never by a stop (safety.md §11)."""
    device_is_free_at_start: bool = True
    """Nothing starts on devices before its node has proven that nothing but sharers uses them (safety.md §11)."""
    recovery_needs_no_claim: bool = True
    """`apply` refuses a recovery of a device that is claimed, and a claim of one that is being recovered (§11)."""
    device_is_free_at_recovery: bool = True
    """Nothing is done to a device before its node has proven that nothing uses it (safety.md §11)."""
    reboot_clears_history: bool = True
    """A Join with a new boot id clears what the old boot ran (safety.md §6)."""
    unverified_is_probed: bool = True
    """After a daemon's restart in the same boot, or an unknown outcome, a probe comes before any order (§6)."""
    unseen_is_fenced: bool = True
    """A member not seen since the cluster formed is fenced before what may run there starts (safety.md §6)."""
    members_followed_first: bool = True
    """The members change again only when everybody online follows the change before (safety.md §7)."""
    retired_before_dropped: bool = True
    """Who is dropped from the members has left or was fenced, and can join no more (safety.md §7)."""
    safe_mode_after_crash_loop: bool = True
    """The third crash of the controller at one index leads to safe mode (safety.md §4)."""
    raising_apply_is_a_refusal: bool = True
    """A command whose `apply` raises is recorded as a refusal on every node (safety.md §4)."""


ALL_RULES = SafetyRules()
