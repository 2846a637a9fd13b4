"""A checkup with everything in it, made without looking at the machine."""

from __future__ import annotations

from lmgauge.api.doctor import Checkup, Extra, Library


def checkup(name: str = "gguf", error: str = "ImportError: no") -> Checkup:
    """One problem of each kind, whose names and words are those that are given."""
    broken = Library(name, ">=2.40", "2.50", "broken", error, (name,))
    return Checkup(
        versions={"lmgauge": "0.2.0", "numbers": "0.2.0", "python": error, "platform": error},
        kernels="ok",
        core=(Library("numpy", ">=1.26", "2.4", "ok"),),
        extras=(Extra(name, error, (broken,)), Extra("audit", "a check", (Library("constriction", ">=0.4"),))),
        problems=(error,),
        notes=(error,),
    )
