"""Numeric kernels: every form of one operation has the signature of its torch reference."""
