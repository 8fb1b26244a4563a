"""The Ansible collection, tried by Ansible itself on real daemons."""
