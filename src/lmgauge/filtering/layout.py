"""Where the records of files go: one file, or a folder with a file for each that was read."""

from __future__ import annotations

import hashlib
import os
import posixpath
from collections.abc import Sequence

from lmgauge.choices import Format
from lmgauge.errors import UsageError
from lmgauge.filtering.plan import FileJob
from lmgauge.places import exists, is_remote
from lmgauge.records.formats import format_of, split_compression
from lmgauge.records.sources import STDIN, Source
from lmgauge.remote.addresses import joined

RECORDS = "_lmgauge"
"""Folder within the outputs for what is remembered of them; other programs skip names that begin with an underscore."""
_LONGEST_NAME = 200
"""Bytes: most systems allow 255, and what is added takes some."""


def jobs_of(
    sources: Sequence[Source], output: str, *, buckets: Sequence[str] = (), columns: bool, rejects: str | None = None
) -> tuple[list[FileJob], bool]:
    """Return what is to be done to each file, and True if the output is a folder."""
    # A file that is alone goes into the file that the output names; everything else goes into a folder, a file each.
    # columns: True if the scores of a document must be in what is written: lines of text then become JSONL.
    is_folder = output.endswith(("/", os.sep)) or os.path.isdir(output) or len(sources) > 1 or bool(buckets)
    if not is_folder:
        form: Format = format_of(output, _form(sources[0], columns))
        if columns and form == "text":
            raise UsageError(f"-o {output}: lines of text have no place for scores; give it a name that ends in .jsonl")
        return [FileJob(sources[0], "", {"": output}, form, rejects)], False
    if output == STDIN or (exists(output) and not os.path.isdir(output)):
        raise UsageError(f"-o {output}: several files are written, into a folder; name one, with a slash at its end")
    if any(source.path == STDIN for source in sources):
        raise UsageError("standard input has no name for its file in a folder: give -o a file")
    return [
        _job(source, name, output, buckets, columns) for source, name in zip(sources, _names(sources), strict=True)
    ], True


def _job(source: Source, name: str, output: str, buckets: Sequence[str], columns: bool) -> FileJob:
    form = _form(source, columns)
    if form != source.format:
        bare, packed = split_compression(name)
        name = os.path.splitext(bare)[0] + f".{form}" + packed
    outputs = {bucket: joined(output, *([bucket] * bool(bucket)), name) for bucket in buckets or [""]}
    flat = _flat(name)
    # Not a name of JSONL: nobody who reads all JSONL files of a folder is to read these.
    rejects, record = joined(output, RECORDS, "rejects", f"{flat}.rejects"), joined(output, RECORDS, "files", f"{flat}.json")
    return FileJob(source, name, outputs, form, rejects, record)


def _flat(name: str) -> str:
    flat = name.replace("%", "%25").replace("/", "%2F")
    if len(os.fsencode(flat)) <= _LONGEST_NAME:
        return flat
    return f"{flat[-_LONGEST_NAME // 8 :]}-{hashlib.sha256(os.fsencode(name)).hexdigest()[:32]}"


def _form(source: Source, columns: bool) -> Format:
    return "jsonl" if columns and source.format == "text" else source.format


def _names(sources: Sequence[Source]) -> list[str]:
    # Name of the output of each file: its path below the folder that all of them are in.
    paths = [_absolute(source.name) for source in sources]
    if len(set(paths)) < len(paths):
        raise UsageError(f"{sources[next(i for i, path in enumerate(paths) if paths.count(path) > 1)].name}: is named twice")
    roots = {source.name.partition("://")[0] if is_remote(source.name) else "" for source in sources}
    folder = posixpath.commonpath([posixpath.dirname(path) for path in paths]) if len(roots) == 1 else ""
    return [path[len(folder) :].lstrip("/") for path in paths]


def _absolute(path: str) -> str:
    if is_remote(path):
        return posixpath.normpath("/" + path.partition("://")[2])
    return os.path.abspath(path).replace(os.sep, "/")
