"""The crm language: tokens, statements, reading and writing."""
