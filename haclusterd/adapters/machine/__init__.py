"""This machine: its clocks, its load, its watchdog, its files, real-time scheduling, and how systemd is notified."""
