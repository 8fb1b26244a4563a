"""The simulated world as it truly is: hosts, clocks, disks, networks, watchdogs, devices and what runs."""
