"""What `crm` carries out by itself for the person at work: suppositions, views of the past, scripts, services."""
