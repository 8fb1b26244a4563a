"""Tools of Pacemaker's names that ask no daemon: tables in words, of the standard library alone."""
