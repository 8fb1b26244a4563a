"""Configurations of the kinds that vendors' guides give come in as they are, in our own words.

Each has what its guides have: Pacemaker's own properties, roles by their old names, record-pending, an agent's own
block of properties, several monitors. What keeps the last one out are bundles, and nothing else.
"""

from typing import Any

import pytest

from haclusterd.commands import registry
from haclusterd.commands.configure.showing import show_document
from haclusterd.commands.context import Context
from haclusterd.commands.migration_check import MAY_NOT_COME_IN, check_migration
from haclusterd.commands.outcome import Outcome
from haclusterd.formats.cib_xml.document import read_cib
from haclusterd.formats.cib_xml.writer import write_cib
from haclusterd.formats.crm.syntax import assemble, parse_script
from haclusterd.model.agents import AgentFacts, ParameterFacts
from haclusterd.model.cluster import Cib, Member, NodeState, NodeStatus, Status
from haclusterd.model.configuration import effective
from haclusterd.reports.codes import Severity
from tests.administered_clusters import NOW, Cluster, formed

NFS_ON_DRBD = r"""
node n1
node n2
primitive p_drbd_r0 ocf:linbit:drbd \
    params drbd_resource=r0 \
    op start interval=0s timeout=240s op stop interval=0s timeout=100s \
    op monitor interval=29s role=Master op monitor interval=31s role=Slave
primitive p_fs_work ocf:heartbeat:Filesystem \
    params device="/dev/drbd0" directory="/srv/nfs/work" fstype=xfs options="noatime,nodiratime" \
    op monitor interval=10s timeout=40s
primitive p_nfsserver ocf:heartbeat:nfsserver params nfs_shared_infodir="/srv/nfs/state" nfs_ip=10.9.9.180 \
    op monitor interval=30s op start timeout=40s interval=0s op stop timeout=20s interval=0s
primitive p_exportfs_work ocf:heartbeat:exportfs \
    params directory="/srv/nfs/work" options="rw,mountpoint" \
    clientspec="10.9.9.0/24" fsid=100 wait_for_leasetime_on_stop=true \
    op monitor interval=30s
primitive p_ip_nfs ocf:heartbeat:IPaddr2 params ip=10.9.9.180 cidr_netmask=24 op monitor interval=10s
primitive stonith-sbd stonith:fence_sbd params pcmk_delay_max=30s op monitor interval=30s
group g_nfs p_fs_work p_nfsserver p_exportfs_work p_ip_nfs
ms ms_drbd_r0 p_drbd_r0 \
    meta master-max=1 master-node-max=1 clone-max=2 clone-node-max=1 notify=true target-role=Started
colocation co_nfs_with_drbd inf: g_nfs:Started ms_drbd_r0:Master
order o_drbd_before_nfs Mandatory: ms_drbd_r0:promote g_nfs:start
property cib-bootstrap-options: \
    have-watchdog=true dc-version="2.1.5+20221208" cluster-infrastructure=corosync cluster-name=nfs \
    no-quorum-policy=Stop stonith-enabled=TRUE stonith-timeout=43200s last-lrm-refresh=1690000000
rsc_defaults rsc-options: resource-stickiness=200 migration-threshold=3
op_defaults op-options: timeout=600 record-pending=true
"""

POSTGRES_PAF = r"""
node 1: n1
node 2: n2
node 3: n3
primitive fence_n1 stonith:fence_virsh \
    params pcmk_host_check=static-list pcmk_host_list=n1 ipaddr=192.168.122.1 login=root port=n1 action=off \
    op monitor interval=60s
location fence_n1-avoids fence_n1 -inf: n1
primitive pgsqld ocf:heartbeat:pgsqlms \
    params bindir="/usr/lib/postgresql/12/bin" pgdata="/etc/postgresql/12/main" datadir="/var/lib/postgresql/12/main" \
    op start timeout=60s interval=0 op stop timeout=60s interval=0 op promote timeout=30s interval=0 \
    op demote timeout=120s interval=0 \
    op monitor interval=15s timeout=10s role="Master" op monitor interval=16s timeout=10s role="Slave" \
    op notify timeout=60s interval=0 op reload timeout=20 interval=0 op methods interval=0 timeout=5
ms pgsql-ha pgsqld meta notify=true target-role="Master"
primitive pgsql-pri-ip ocf:heartbeat:IPaddr2 params ip=192.168.122.50 cidr_netmask=24 op monitor interval=10s \
    meta migration-threshold=3
colocation pgsql-pri-ip-with-primary inf: pgsql-pri-ip pgsql-ha:Master
order promote-before-ip Mandatory: pgsql-ha:promote pgsql-pri-ip:start symmetrical=false
order demote-before-stop-ip Mandatory: pgsql-ha:demote pgsql-pri-ip:stop symmetrical=false
rsc_defaults rsc-options: migration-threshold=5 resource-stickiness=10
property cib-bootstrap-options: have-watchdog=false dc-version=2.0.1 \
    cluster-infrastructure=corosync stonith-enabled=true
"""

SAP_ENSA2 = r"""
node 1: n1
node 2: n2
primitive stonith-azure stonith:fence_azure_arm \
    params subscriptionId=s resourceGroup=g tenantId=t login=l passwd=p \
    pcmk_monitor_retries=4 pcmk_action_limit=3 power_timeout=240 pcmk_reboot_timeout=900 pcmk_delay_max=15 \
    pcmk_host_map="n1:vm1;n2:vm2" \
    op monitor interval=3600 timeout=120
primitive fs_NW1_ASCS ocf:heartbeat:Filesystem params device="nfs:/ascs" directory="/usr/sap/NW1/ASCS00" fstype=nfs4 \
    op start timeout=60s interval=0 op stop timeout=60s interval=0 op monitor interval=20s timeout=40s
primitive vip_NW1_ASCS ocf:heartbeat:IPaddr2 params ip=10.90.90.10 op monitor interval=10 timeout=20
primitive nc_NW1_ASCS ocf:heartbeat:azure-lb params port=62000 op monitor timeout=20s interval=10
primitive rsc_sap_NW1_ASCS00 ocf:heartbeat:SAPInstance operations $id=rsc_sap_NW1_ASCS00-operations \
    op monitor interval=11 timeout=60 on-fail=restart \
    params InstanceName=NW1_ASCS00_sapascs START_PROFILE="/sapmnt/NW1/profile/NW1_ASCS00_sapascs" \
    AUTOMATIC_RECOVER=false MINIMAL_PROBE=true \
    meta resource-stickiness=5000 priority=100
primitive vip_NW1_ERS ocf:heartbeat:IPaddr2 params ip=10.90.90.9 op monitor interval=10 timeout=20
primitive rsc_sap_NW1_ERS02 ocf:heartbeat:SAPInstance operations $id=rsc_sap_NW1_ERS02-operations \
    op monitor interval=11 timeout=60 on-fail=restart \
    params InstanceName=NW1_ERS02_sapers START_PROFILE="/sapmnt/NW1/profile/NW1_ERS02_sapers" \
    AUTOMATIC_RECOVER=false IS_ERS=true MINIMAL_PROBE=true
group g-NW1_ASCS fs_NW1_ASCS nc_NW1_ASCS vip_NW1_ASCS rsc_sap_NW1_ASCS00 meta resource-stickiness=3000
group g-NW1_ERS vip_NW1_ERS rsc_sap_NW1_ERS02
colocation col_sap_NW1_no_both -5000: g-NW1_ERS g-NW1_ASCS
order ord_sap_NW1_first_start_ascs Optional: rsc_sap_NW1_ASCS00:start rsc_sap_NW1_ERS02:stop symmetrical=false
property $id="cib-bootstrap-options" maintenance-mode="false" stonith-enabled="true" concurrent-fencing=true \
    priority-fencing-delay=30 stonith-timeout=900 have-watchdog=false placement-strategy=balanced \
    dc-version="2.1.2" cluster-infrastructure="corosync" cluster-name=hacluster
rsc_defaults $id="rsc-options" resource-stickiness="1" migration-threshold="3"
op_defaults $id="op-options" timeout="600" record-pending="true"
"""

SAP_HANA = r"""
node 1: n1 attributes hana_ha1_remoteHost=n2 hana_ha1_site=WDF hana_ha1_vhost=n1 lpa_ha1_lpt=1700000000
node 2: n2 attributes hana_ha1_remoteHost=n1 hana_ha1_site=ROT hana_ha1_vhost=n2 lpa_ha1_lpt=30
primitive rsc_SAPHanaTopology_HA1_HDB10 ocf:suse:SAPHanaTopology \
    operations $id=rsc_sap2_HA1_HDB10-operations \
    op monitor interval=10 timeout=600 op start interval=0 timeout=600 op stop interval=0 timeout=300 \
    params SID=HA1 InstanceNumber=10
primitive rsc_SAPHana_HA1_HDB10 ocf:suse:SAPHana operations $id=rsc_sap_HA1_HDB10-operations \
    op start interval=0 timeout=3600 op stop interval=0 timeout=3600 op promote interval=0 timeout=3600 \
    op monitor interval=60 role=Master timeout=700 op monitor interval=61 role=Slave timeout=700 \
    params SID=HA1 InstanceNumber=10 PREFER_SITE_TAKEOVER=true DUPLICATE_PRIMARY_TIMEOUT=7200 AUTOMATED_REGISTER=false
primitive rsc_ip_HA1_HDB10 ocf:heartbeat:IPaddr2 op monitor interval=10s timeout=20s params ip=192.168.10.12
primitive stonith-sbd stonith:fence_sbd params pcmk_delay_max=15 op monitor interval=3600
ms msl_SAPHana_HA1_HDB10 rsc_SAPHana_HA1_HDB10 \
    meta clone-max=2 clone-node-max=1 interleave=true maintenance=false target-role=Started
clone cln_SAPHanaTopology_HA1_HDB10 rsc_SAPHanaTopology_HA1_HDB10 meta clone-node-max=1 interleave=true
colocation col_saphana_ip_HA1_HDB10 2000: rsc_ip_HA1_HDB10:Started msl_SAPHana_HA1_HDB10:Master
order ord_SAPHana_HA1_HDB10 Optional: cln_SAPHanaTopology_HA1_HDB10 msl_SAPHana_HA1_HDB10
property SAPHanaSR: hana_ha1_site_srHook_ROT=SOK hana_ha1_glob_srmode=sync
property cib-bootstrap-options: stonith-enabled=true stonith-action=reboot stonith-timeout=150 have-watchdog=true \
    dc-version="1.1.24" cluster-infrastructure=corosync cluster-name=hana last-lrm-refresh=1700000001 \
    concurrent-fencing=false
rsc_defaults rsc-options: resource-stickiness=1000 migration-threshold=5000
op_defaults op-options: timeout=600 record-pending=true
"""

ORACLE_WITH_LVM = """
<cib crm_feature_set="3.16.2" validate-with="pacemaker-3.8" epoch="40" num_updates="3" admin_epoch="0" have-quorum="1"
     cib-last-written="Mon Jan  1 00:00:00 2024" update-origin="n1" update-client="cibadmin"
     update-user="root" dc-uuid="1">
 <configuration>
  <crm_config>
   <cluster_property_set id="cib-bootstrap-options">
    <nvpair id="o1" name="have-watchdog" value="false"/>
    <nvpair id="o2" name="dc-version" value="2.1.4-5.el9"/>
    <nvpair id="o3" name="cluster-infrastructure" value="corosync"/>
    <nvpair id="o4" name="cluster-name" value="oracle"/>
    <nvpair id="o5" name="last-lrm-refresh" value="1700000000"/>
   </cluster_property_set>
  </crm_config>
  <nodes>
   <node id="1" uname="n1"><instance_attributes id="nodes-1"/></node>
   <node id="2" uname="n2"/>
  </nodes>
  <resources>
   <primitive id="fence_both" class="stonith" type="fence_ipmilan">
    <instance_attributes id="fence_both-instance_attributes">
     <nvpair id="f1" name="ip" value="10.0.0.9"/><nvpair id="f2" name="pcmk_host_list" value="n1,n2"/>
     <nvpair id="f3" name="lanplus" value="1"/>
    </instance_attributes>
    <operations><op id="fence_both-monitor-interval-60s" name="monitor" interval="60s"/></operations>
   </primitive>
   <group id="oracle">
    <primitive id="ora_vg" class="ocf" provider="heartbeat" type="LVM-activate">
     <instance_attributes id="ora_vg-instance_attributes">
      <nvpair id="v1" name="vgname" value="vg_ora"/><nvpair id="v2" name="vg_access_mode" value="system_id"/>
     </instance_attributes>
     <operations>
      <op id="ora_vg-monitor-interval-30s" name="monitor" interval="30s" timeout="90s"/>
      <op id="ora_vg-start-interval-0s" name="start" interval="0s" timeout="90s"/>
      <op id="ora_vg-stop-interval-0s" name="stop" interval="0s" timeout="90s"/>
     </operations>
    </primitive>
    <primitive id="ora_fs" class="ocf" provider="heartbeat" type="Filesystem">
     <instance_attributes id="ora_fs-instance_attributes">
      <nvpair id="s1" name="device" value="/dev/vg_ora/lv"/><nvpair id="s2" name="directory" value="/u01"/>
      <nvpair id="s3" name="fstype" value="xfs"/>
     </instance_attributes>
     <operations>
      <op id="ora_fs-monitor-interval-20s" name="monitor" interval="20s" timeout="40s"/>
      <op id="ora_fs-monitor-again" name="monitor" interval="20s" timeout="40s">
       <instance_attributes id="ora_fs-monitor-again-ia">
        <nvpair id="s4" name="OCF_CHECK_LEVEL" value="10"/></instance_attributes>
      </op>
     </operations>
    </primitive>
    <primitive id="ora_vip" class="ocf" provider="heartbeat" type="IPaddr2">
     <instance_attributes id="ora_vip-instance_attributes">
      <nvpair id="p1" name="ip" value="10.0.0.50"/></instance_attributes>
     <operations><op id="ora_vip-monitor-interval-10s" name="monitor" interval="10s" timeout="20s"/></operations>
    </primitive>
    <primitive id="ora_db" class="ocf" provider="heartbeat" type="oracle">
     <instance_attributes id="ora_db-instance_attributes">
      <nvpair id="d1" name="sid" value="ORCL"/></instance_attributes>
     <meta_attributes id="ora_db-meta_attributes"><nvpair id="d2" name="target-role" value="started"/></meta_attributes>
     <operations>
      <op id="ora_db-monitor-interval-120s" name="monitor" interval="120s" timeout="30s"/>
      <op id="ora_db-methods-interval-0s" name="methods" interval="0s" timeout="5s"/>
     </operations>
    </primitive>
    <primitive id="ora_lsnr" class="ocf" provider="heartbeat" type="oralsnr">
     <instance_attributes id="ora_lsnr-instance_attributes">
      <nvpair id="l1" name="sid" value="ORCL"/></instance_attributes>
     <operations><op id="ora_lsnr-monitor-interval-10s" name="monitor" interval="10s" timeout="30s"/></operations>
    </primitive>
   </group>
  </resources>
  <constraints/>
  <rsc_defaults>
   <meta_attributes id="build-resource-defaults">
    <nvpair id="r1" name="resource-stickiness" value="1"/></meta_attributes></rsc_defaults>
  <op_defaults>
   <meta_attributes id="op_defaults-meta_attributes">
    <nvpair id="q1" name="record-pending" value="true"/></meta_attributes></op_defaults>
 </configuration>
 <status/>
</cib>
"""

TRIPLEO = r"""
node n1 attributes galera-role=true redis-role=true
node n2 attributes galera-role=true redis-role=true
primitive galera ocf:heartbeat:galera \
    params additional_parameters="--open-files-limit=16384" enable_creation=true wsrep_cluster_address="gcomm://n1,n2" \
    meta master-max=2 ordered=true container-attribute-target=host \
    op monitor interval=10s role=Master timeout=30s op monitor interval=20s timeout=30s \
    op promote on-fail=block interval=0 timeout=300s
bundle galera-bundle podman image="registry/mariadb:pcmklatest" replicas=2 promoted-max=2 network=host \
    options="--user=root" run-command="/bin/bash" \
    network control-port=3123 primitive galera
property redis_replication: redis_REPL_INFO=n1
property cib-bootstrap-options: cluster-recheck-interval=60s have-watchdog=false stonith-enabled=false dc-version=2.1
"""


def load(cluster: Cluster, text: str, source: str) -> Outcome:
    context = Context(cluster.cib, NOW, "root@n1", live=cluster.live, is_forced=True)
    return registry.run("configure.load", {"mode": "replace", "text": text.strip(), "source": source}, context)


def refusals(outcome: Outcome) -> list[str]:
    return [f"{each.place}: {each.message}" for each in outcome.reports if each.severity is Severity.ERROR]


@pytest.mark.parametrize(
    ("text", "source"),
    [
        (NFS_ON_DRBD, "nfs.crm"), (POSTGRES_PAF, "paf.crm"), (SAP_ENSA2, "ensa2.crm"), (SAP_HANA, "hana.crm"),
        (ORACLE_WITH_LVM, "oracle.xml"),
    ],
    ids=["NFS on DRBD", "PostgreSQL with PAF", "SAP ENSA2", "SAP HANA", "Oracle with LVM"],
)  # fmt: skip
def test_it_comes_in_as_it_is_and_what_is_shown_of_it_comes_in_again(text: str, source: str) -> None:
    cluster = formed()
    outcome = load(cluster, text, source)
    assert refusals(outcome) == []
    for command in outcome.commands:
        cluster.do(command)
    before = cluster.cib.configuration
    again = load(cluster, show_document(before), "shown.crm")
    assert refusals(again) == []
    for command in again.commands:
        cluster.do(command)
    assert cluster.cib.configuration == before


def test_a_property_under_its_former_name_is_kept_under_todays() -> None:
    cluster = formed()
    outcome = load(cluster, "property cib-bootstrap-options: crmd-transition-delay=2s stonith-enabled=false", "a.crm")
    assert refusals(outcome) == []
    for command in outcome.commands:
        cluster.do(command)
    (block,) = cluster.cib.configuration.properties
    assert block.pairs == (("transition-delay", "2s"), ("stonith-enabled", "false"))
    assert "crmd-transition-delay=2s is kept as transition-delay" in [each.message for each in outcome.reports]


def test_a_former_name_of_what_only_pacemaker_reads_is_left_out() -> None:
    outcome = load(formed(), "property crmd-integration-timeout=3min stonith-enabled=false", "a.crm")
    assert refusals(outcome) == []
    assert any("left out: the property join-integration-timeout=3min" in each.message for each in outcome.reports)


def test_a_known_property_with_underscores_is_refused_as_by_pacemaker() -> None:
    outcome = load(formed(), "property stonith_enabled=false redis_REPL_INFO=n1", "a.crm")
    assert refusals(outcome) == ["a.crm:1:10: unknown cluster property stonith_enabled"]


def migration_of(text: str) -> dict[str, Any]:
    """Ask for the migration of a vendor's configuration as cibadmin would print it, on a machine that has all agents.

    All nodes are online, and nothing runs.
    """
    if not text.strip().startswith("<cib"):
        configuration = assemble(parse_script(text, "vendor.crm").statements).configuration
        nodes = {name: NodeStatus(name, NodeState.ONLINE) for name in configuration.nodes}
        members = {name: Member(name, ()) for name in configuration.nodes}
        vendors = Cib(members=members, configuration=configuration, status=Status(nodes=nodes))
        text = write_cib(vendors, has_quorum=True, controller=None)
    text = text.strip()
    agents: dict[str, AgentFacts] = {}
    for primitive in read_cib(text, "cib.xml").cib.configuration.primitives():
        before = agents.get(str(primitive.agent), AgentFacts()).parameters
        taken = {name: ParameterFacts() for name in effective(primitive.parameters)}
        agents[str(primitive.agent)] = AgentFacts(parameters={**before, **taken})
    outcome = check_migration(text, "cib.xml", agents, NOW)
    assert isinstance(outcome.data, dict), outcome.reports
    return {**outcome.data, "exit_status": outcome.exit_status}


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        (NFS_ON_DRBD, ["left out: the property have-watchdog=true"]), (POSTGRES_PAF, []), (SAP_ENSA2, []),
        (SAP_HANA, ["left out: the property have-watchdog=true"]),
        (ORACLE_WITH_LVM, ["ora_fs: two monitors have the interval 20s"]),
    ],
    ids=["NFS on DRBD", "PostgreSQL with PAF", "SAP ENSA2", "SAP HANA", "Oracle with LVM"],
)  # fmt: skip
def test_its_migration_check_says_yes_and_what_means_something_else(text: str, changed: list[str]) -> None:
    found = migration_of(text)
    assert (found["exit_status"], found["objections"]) == (0, [])
    messages = [each["message"] for each in found["changed"]]
    assert len(messages) == len(changed)
    assert all(message.startswith(start) for message, start in zip(messages, changed, strict=True)), messages
    assert found["plan"]["differences"] == []


def test_the_migration_check_says_no_to_tripleo_for_its_bundles() -> None:
    found = migration_of(TRIPLEO)
    assert found["exit_status"] == MAY_NOT_COME_IN
    assert all("bundle" in each["message"] or "container" in each["message"] for each in found["refused"])


def test_only_bundles_keep_tripleo_out() -> None:
    found = refusals(load(formed(), TRIPLEO, "tripleo.crm"))
    assert found
    assert all("bundle" in line or "container-attribute-target" in line for line in found)
