"""The fault matrix: every kind of fault, from the harmless to the worst."""

from tests.lab import (
    faults_control,
    faults_machines,
    faults_migration,
    faults_network,
    faults_power,
    faults_processes,
    faults_promotion,
    faults_protocols,
    faults_watchdog,
)

FAULTS = (
    *faults_control.FAULTS,
    *faults_processes.FAULTS,
    *faults_machines.FAULTS,
    *faults_network.FAULTS,
    *faults_protocols.FAULTS,
    *faults_power.FAULTS,
    *faults_watchdog.FAULTS,
    *faults_migration.FAULTS,
    *faults_promotion.FAULTS,
)
