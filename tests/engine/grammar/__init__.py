"""Tests of constrained decoding by our own automaton."""
