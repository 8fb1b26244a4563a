"""How the deb and rpm packages are made (docs/design/0012-packages.md): `make packages`."""
