"""What has to be done: starts, stops, probes, monitors, promotions, migrations, notifications, fencing."""
