"""`crm monitor`: the cluster on a whole terminal, as it changes."""
