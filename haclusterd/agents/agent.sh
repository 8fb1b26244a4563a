# The frame of a resource agent in POSIX shell: parameters, meta-data, exit codes, one reason for every failure, and
# processes known by id and start time. An agent reads this file, says what it is, and calls ha_main:
#
#     . "${HACLUSTERD_AGENT_LIBRARY:-/usr/share/haclusterd/python}/haclusterd/agents/agent.sh"
#     ha_agent pump 1.0 "A pump" "Pumps water from a well."
#     ha_param port integer 80 "Where it listens"
#     ha_param url string "" "Where it delivers" required
#     ha_timeouts start=60s stop=60s monitor=20s
#     agent_start() { ha_start_process "$(ha_state pid)" pumpd --port "$OCF_RESKEY_port"; }
#     agent_stop() { ha_stop_process "$(ha_state pid)"; }
#     agent_monitor() { ha_process_runs "$(ha_state pid)" || return "$HA_NOT_RUNNING"; }
#     ha_main "$@"
#
# The actions are functions named agent_ACTION, with `_` for `-`: start, stop and monitor must be there; promote, demote,
# notify, reload_agent, migrate_to, migrate_from and validate are offered where they are there. Each returns an exit
# code. It works without a cluster and beside ocf-shellfuncs; all its names begin with ha_, HA_ or _ha_.

HA_OK=0 HA_ERROR=1 HA_UNIMPLEMENTED=3 HA_NOT_INSTALLED=5 HA_NOT_CONFIGURED=6 HA_NOT_RUNNING=7
HA_PROMOTED=8 HA_FAILED_PROMOTED=9 HA_DEGRADED=190 HA_DEGRADED_PROMOTED=191
_ha_parameters='' _ha_required='' _ha_typed='' _ha_reloadable='' _ha_service=''
_ha_start=60s _ha_stop=60s _ha_monitor=20s _ha_promote=60s _ha_demote=60s _ha_notify=60s _ha_interval=10
_ha_migrate_to=120s _ha_migrate_from=120s
_ha_begun=$(date +%s) _ha_asked=${1:-}

# Say what the agent is: its name, its version, one line, and what it does.
ha_agent() {
    _ha_name=$1 _ha_version=$2 _ha_short=$3 _ha_long=${4:-$3}
}

# Declare a parameter: name, type (string, integer, boolean, time), default, one line; then any of the words required,
# unique, private, reloadable. Afterwards OCF_RESKEY_NAME is its value or its default.
ha_param() {
    _ha_p=$1 _ha_type=$2 _ha_default=$3 _ha_doc=$4
    shift 4
    _ha_flags=''
    for _ha_word in "$@"; do
        case $_ha_word in
        required) _ha_required="$_ha_required $_ha_p" ;;
        reloadable) _ha_reloadable="$_ha_reloadable $_ha_p" ;;
        unique | private) : ;;
        *) ha_fail soft "defect in the agent: ha_param $_ha_p: unknown word $_ha_word" ;;
        esac
        _ha_flags="$_ha_flags $_ha_word=\"1\""
    done
    _ha_typed="$_ha_typed $_ha_p=$_ha_type"
    eval "[ -n \"\${OCF_RESKEY_$_ha_p:-}\" ] || OCF_RESKEY_$_ha_p=\$_ha_default"
    [ "$_ha_asked" = meta-data ] || return 0
    _ha_doc=$(_ha_escape "$_ha_doc") _ha_value=''
    [ -z "$_ha_default" ] || _ha_value=" default=\"$(_ha_escape "$_ha_default")\""
    _ha_parameters="$_ha_parameters
    <parameter name=\"$_ha_p\"$_ha_flags>
      <longdesc lang=\"en\">$_ha_doc</longdesc>
      <shortdesc lang=\"en\">$_ha_doc</shortdesc>
      <content type=\"$_ha_type\"$_ha_value/>
    </parameter>"
}

# Say how long actions may take, and how often to monitor: start=60s stop=60s monitor=20s interval=10 (seconds).
ha_timeouts() {
    for _ha_word in "$@"; do
        eval "_ha_${_ha_word%%=*}=\${_ha_word#*=}"
    done
}

# Print the reason of a failure where the cluster looks for it.
ha_reason() {
    printf '%s' "${OCF_EXIT_REASON_PREFIX:-ocf-exit-reason:}$*" | tr '\n' ' ' >&2
    echo >&2
}

# End the action: `config` is wrong on every node (6), `node` on this one (5), `soft` may go better next time (1).
ha_fail() {
    _ha_kind=$1
    shift
    ha_reason "$*"
    case $_ha_kind in
    config) exit "$HA_NOT_CONFIGURED" ;;
    node) exit "$HA_NOT_INSTALLED" ;;
    *) exit "$HA_ERROR" ;;
    esac
}

# End a monitor: the resource is active, and not as it should be.
ha_degraded() {
    ha_reason "$*"
    exit "$HA_DEGRADED"
}

# End the action unless this node has a program.
ha_need() {
    command -v "$1" >/dev/null 2>&1 || ha_fail node "program '$1' is not installed"
}

# Print the path of a file of this instance that a reboot takes away.
ha_state() {
    _ha_instance=$(printf %s "${OCF_RESOURCE_INSTANCE:-default}" | tr / _)
    echo "${HA_RSCTMP:-/run/resource-agents}/$_ha_name-$_ha_instance.$1"
}

# Tell whether this monitor only asks what is there.
ha_is_probe() {
    [ "${OCF_RESKEY_CRM_meta_interval:-0}" = 0 ]
}

# Print how many whole seconds are left until this action is killed; a minute when nobody said.
ha_remaining() {
    echo $((${OCF_RESKEY_CRM_meta_timeout:-60000} / 1000 - $(date +%s) + _ha_begun))
}

# Run a command again and again until it succeeds; fail when the action's time is nearly over. The action fails at once
# when the process that it has started ends: what answers then is another's.
ha_wait() {
    until "$@"; do
        _ha_still_runs
        [ "$(ha_remaining)" -gt 1 ] || return 1
        sleep 0.1
    done
    _ha_still_runs
}

_ha_still_runs() {
    [ -z "$_ha_service" ] || ha_process_runs "$_ha_service" ||
        ha_fail soft "the service ended while starting$(_ha_last_words)"
}

# Print what a service that ended has written last.
_ha_last_words() {
    if [ -z "${HA_LOG:-}" ]; then
        echo '; what it printed is lost: set HA_LOG in the agent'
    elif [ -s "$HA_LOG" ]; then
        echo "; its log ends with: $(tail -n 1 "$HA_LOG" | cut -c 1-300)"
    fi
}

# Print when a process began, in ticks since boot: with it a process id means one process only.
_ha_began() {
    { IFS= read -r _ha_stat <"/proc/$1/stat"; } 2>/dev/null || return 1
    # shellcheck disable=SC2086 # Words are wanted.
    set -- ${_ha_stat##*) }
    [ "$1" != Z ] && [ "$1" != X ] && echo "${20}"
}

# Start a command in the background, in a session of its own, and record it in a file. Its output is dropped unless
# HA_LOG names a file. What it starts belongs to its session, by which ha_stop_process finds it. If this action is
# killed meanwhile, either the process is recorded by then, or it never becomes the service: a stop that comes next must
# not find nothing, and the service begin after it. So the process records itself first, and asks then whether the
# action still lives; and it replaces no record, which would be that of a later start.
ha_start_process() {
    _ha_file=$1
    shift
    ha_process_runs "$_ha_file" && _ha_service=$_ha_file && return 0
    ha_need "$1"
    mkdir -p "$(dirname "$_ha_file")" || ha_fail soft "cannot write $_ha_file"
    rm -f "$_ha_file"
    # shellcheck disable=SC2016 # The inner shell expands it: it becomes the service, after it has recorded itself.
    setsid sh -c '
        began() {
            IFS= read -r stat <"/proc/$1/stat" || return 1
            set -f
            set -- ${stat##*) }
            set +f
            [ "$1" != Z ] && [ "$1" != X ] && echo "${20}"
        }
        file=$1 action=$2 when=$3
        shift 3
        [ "$(began "$action")" = "$when" ] || exit 1
        echo "$$ $(began $$) $(cat /proc/sys/kernel/random/boot_id)" >"$file.$$" && ln "$file.$$" "$file"
        [ $? = 0 ] && [ "$(began "$action")" = "$when" ]
        may_begin=$?
        rm -f "$file.$$"
        [ "$may_begin" = 0 ] || exit 1
        unset HACLUSTERD_ORDER HACLUSTERD_ORDER_SEAL HACLUSTERD_SOCKET HACLUSTERD_PYTHON HACLUSTERD_AGENT_LIBRARY
        exec "$@"' sh "$_ha_file" "$$" "$(_ha_began "$$")" "$@" </dev/null >>"${HA_LOG:-/dev/null}" 2>&1 &
    _ha_child=$!
    # The process records itself, and has asked for the action once its own file is gone; one that ends before has failed.
    while ! ha_process_runs "$_ha_file" || [ -e "$_ha_file.$_ha_pid" ]; do
        kill -0 "$_ha_child" 2>/dev/null || ha_fail soft "$1 ended at once$(_ha_last_words)"
        [ "$(ha_remaining)" -gt 1 ] || ha_fail soft "$1 did not start in time"
        sleep 0.02
    done
    _ha_service=$_ha_file
}

# Tell whether the recorded process runs.
ha_process_runs() {
    { read -r _ha_pid _ha_when _ha_boot <"$1"; } 2>/dev/null || return 1
    [ "$_ha_boot" = "$(cat /proc/sys/kernel/random/boot_id)" ] && [ "$(_ha_began "$_ha_pid")" = "$_ha_when" ]
}

# Send a signal to all processes of the recorded one's session; fail when there is none.
_ha_signal() {
    _ha_found=1
    for _ha_dir in /proc/[0-9]*; do
        { IFS= read -r _ha_stat <"$_ha_dir/stat"; } 2>/dev/null || continue
        # shellcheck disable=SC2086 # Words are wanted.
        set -- "$1" "$2" ${_ha_stat##*) }
        [ "$3" != Z ] && [ "$6" = "$1" ] || continue
        kill "-$2" "${_ha_dir#/proc/}" 2>/dev/null && _ha_found=0
    done
    return "$_ha_found"
}

# End the recorded process and its session: a signal (TERM), after some seconds (20) KILL. Returns when none is left.
ha_stop_process() {
    _ha_file=$1 _ha_first=${2:-TERM} _ha_patience=${3:-20} _ha_service=''
    { read -r _ha_leader _ha_when _ha_boot <"$_ha_file"; } 2>/dev/null || return 0
    _ha_now=$(_ha_began "$_ha_leader")
    # A session's number is given to no new process while anybody is in it; one with another leader is not ours.
    if [ "$_ha_boot" = "$(cat /proc/sys/kernel/random/boot_id)" ] && { [ -z "$_ha_now" ] || [ "$_ha_now" = "$_ha_when" ]; }
    then
        [ "$_ha_patience" -lt "$(($(ha_remaining) - 5))" ] || _ha_patience=$(($(ha_remaining) / 2))
        _ha_end=$(($(date +%s) + _ha_patience))
        _ha_signal "$_ha_leader" "$_ha_first" && _ha_signal "$_ha_leader" CONT
        while _ha_signal "$_ha_leader" 0; do
            [ "$(date +%s)" -lt "$_ha_end" ] || _ha_signal "$_ha_leader" KILL
            [ "$(ha_remaining)" -gt 0 ] || ha_fail soft "processes of session $_ha_leader do not die"
            sleep 0.05
        done
    fi
    rm -f "$_ha_file"
}

# Say how much this node wants to be promoted, until it boots again; `none`: not at all, which never fails, because a
# stop must not fail when nobody hears it.
ha_score() {
    if [ "$1" = none ]; then
        crm_attribute --promotion --lifetime reboot --delete >/dev/null || :
    else
        crm_attribute --promotion --lifetime reboot --update "$1" >/dev/null || ha_fail soft "the promotion score is not set"
    fi
}

# Set an attribute of this node, until it boots again.
ha_attribute() {
    attrd_updater -n "$1" -U "$2" >/dev/null || ha_fail soft "the attribute $1 is not set"
}

_ha_escape() {
    printf %s "$1" | sed 's/&/\&amp;/g; s/</\&lt;/g; s/>/\&gt;/g; s/"/\&quot;/g'
}

_ha_has() {
    command -v "agent_$1" >/dev/null 2>&1
}

_ha_actions() {
    for _ha_a in start stop promote demote notify migrate_to migrate_from; do
        _ha_has "$_ha_a" && eval "echo \"    <action name=\\\"$_ha_a\\\" timeout=\\\"\$_ha_$_ha_a\\\"/>\""
    done
    if _ha_has promote; then
        echo "    <action name=\"monitor\" timeout=\"$_ha_monitor\" interval=\"$((_ha_interval - 1))s\" depth=\"0\" role=\"Promoted\"/>"
        echo "    <action name=\"monitor\" timeout=\"$_ha_monitor\" interval=\"${_ha_interval}s\" depth=\"0\" role=\"Unpromoted\"/>"
    else
        echo "    <action name=\"monitor\" timeout=\"$_ha_monitor\" interval=\"${_ha_interval}s\" depth=\"0\"/>"
    fi
    [ -z "$_ha_reloadable" ] || echo '    <action name="reload-agent" timeout="20s"/>'
    echo '    <action name="validate-all" timeout="20s"/>'
    echo '    <action name="meta-data" timeout="5s"/>'
}

_ha_metadata() {
    cat <<END
<?xml version="1.0"?>
<!DOCTYPE resource-agent SYSTEM "ra-api-1.dtd" [
  <!ATTLIST action name NMTOKEN #REQUIRED>
  <!ATTLIST parameter private (0|1) #IMPLIED reloadable (0|1) #IMPLIED>
]>
<resource-agent name="$_ha_name" version="$_ha_version">
  <version>1.1</version>
  <longdesc lang="en">$(_ha_escape "$_ha_long")</longdesc>
  <shortdesc lang="en">$(_ha_escape "$_ha_short")</shortdesc>
  <parameters>$_ha_parameters
  </parameters>
  <actions>
$(_ha_actions)
  </actions>
</resource-agent>
END
}

_ha_check() {
    for _ha_p in $_ha_required; do
        eval "[ -n \"\$OCF_RESKEY_$_ha_p\" ]" || ha_fail config "required parameter '$_ha_p' is missing"
    done
    for _ha_word in $_ha_typed; do
        _ha_p=${_ha_word%%=*}
        eval "_ha_value=\$OCF_RESKEY_$_ha_p"
        [ -n "$_ha_value" ] || continue
        case ${_ha_word#*=} in
        integer) case ${_ha_value#-} in '' | *[!0-9]*) ha_fail config "$_ha_p: not an integer: '$_ha_value'" ;; esac ;;
        boolean)
            case $(printf %s "$_ha_value" | tr '[:upper:]' '[:lower:]') in
            1 | true | yes | on | 0 | false | no | off) : ;;
            *) ha_fail config "$_ha_p: not a boolean: '$_ha_value'" ;;
            esac
            ;;
        time)
            _ha_number=${_ha_value%%[!0-9]*}
            case $_ha_number/$(printf %s "${_ha_value#"$_ha_number"}" | tr '[:upper:]' '[:lower:]') in
            [0-9]*/ | [0-9]*/s | [0-9]*/sec | [0-9]*/ms | [0-9]*/m | [0-9]*/min | [0-9]*/h) : ;;
            *) ha_fail config "$_ha_p: not a duration: '$_ha_value'" ;;
            esac
            ;;
        esac
    done
    ! _ha_has validate || agent_validate
}

# Run the action that the command line names, and end with its exit code.
ha_main() {
    _ha_action=${1:-}
    case $_ha_action in
    meta-data) _ha_metadata && exit 0 ;;
    validate-all) _ha_check && exit 0 || exit $? ;;
    status) _ha_action=monitor ;;
    reload-agent)
        [ -n "$_ha_reloadable" ] || _ha_action=
        # What every monitor reads from its environment needs nothing to be taken over.
        [ -z "$_ha_action" ] || _ha_has reload_agent || { _ha_check && exit 0 || exit $?; }
        ;;
    start | stop | monitor | promote | demote | notify | migrate_to | migrate_from) : ;;
    *) _ha_action= ;;
    esac
    _ha_function=$(printf %s "$_ha_action" | tr - _)
    if [ -z "$_ha_action" ] || ! _ha_has "$_ha_function"; then
        _ha_words=''
        for _ha_a in start stop monitor promote demote notify migrate_to migrate_from; do
            ! _ha_has "$_ha_a" || _ha_words="$_ha_words$_ha_a|"
        done
        echo "usage: $_ha_name $_ha_words${_ha_reloadable:+reload-agent|}validate-all|meta-data" >&2
        exit "$HA_UNIMPLEMENTED"
    fi
    [ "$_ha_action" = stop ] || _ha_check || exit $?
    "agent_$_ha_function"
    exit $?
}
