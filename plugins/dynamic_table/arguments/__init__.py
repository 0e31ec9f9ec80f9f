"""Operators' arguments after templating, checked before they are used."""
