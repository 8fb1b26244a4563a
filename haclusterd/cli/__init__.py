"""The crm command line."""
