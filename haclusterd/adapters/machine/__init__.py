"""This machine: clocks, load, watchdog, files, real-time scheduling, ready threads, how systemd is notified."""
