"""This machine: clocks, load, watchdog, files, real-time scheduling, ready threads, notification of systemd."""
