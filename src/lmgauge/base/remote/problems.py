"""What goes wrong with a server: what may be over soon is tried again, with longer and longer pauses."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable
from typing import TypeVar

from lmgauge.base.errors import InputError, LmgaugeError
from lmgauge.base.escaping import visible
from lmgauge.base.remote.addresses import IN_TEXT, shown_name
from lmgauge.base.threads import go_on

PASSING = {408, 425, 429, 500, 502, 503, 504}
"""Statuses of servers that are busy, or not well."""
FIRST_PAUSE = 0.5
"""Seconds before the second try; each pause is twice the one before."""
_TOLD_PAUSE = 2.0  # shorter ones nobody notices
_LOGGER = logging.getLogger(__name__)

T = TypeVar("T")


class NotThereError(InputError):
    """Raised when there is no such file."""


class RewrittenError(InputError):
    """Raised when a file changed while it was read."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name}: changed while it was being read; try again when it no longer changes")


class PassingProblem(Exception):
    """A problem that may be over soon."""

    # after: seconds that the server asks to wait.

    def __init__(self, problem: str, after: float = 0.0) -> None:
        super().__init__(problem)
        self.after = after


class Patience:
    """How often a thing has failed in a row; waits before it may be tried again."""

    tries, longest = 5, 30.0

    def __init__(self, name: str) -> None:
        self.name, self.failures = name, 0

    def wait(self, problem: PassingProblem) -> None:
        """Wait after a failure: half a second first, twice as long each time, or as the server asks, with a limit."""
        go_on()  # a thread whose work nobody waits for any more says nothing
        self.failures += 1
        if self.failures >= self.tries:
            raise self.spent(problem) from None
        seconds = min(max(FIRST_PAUSE * 2.0 ** (self.failures - 1), problem.after), self.longest)
        if seconds >= _TOLD_PAUSE:
            _LOGGER.warning("%s: %s; asking again in %.0f s", self.name, problem, seconds)
        go_on(seconds)

    def spent(self, problem: PassingProblem) -> LmgaugeError:
        """Return the error to end with."""
        return InputError(f"{self.name}: {problem}, after {self.tries} tries; try again later")

    def retried(self, attempt: Callable[[], T]) -> T:
        """Return what a function returns, tried a few times, seconds apart, while its problem may be over soon."""
        while True:
            try:
                return attempt()
            except PassingProblem as problem:
                self.wait(problem)


# -----------------------------------------------------------------------------------------------------------------------
# The errors of fsspec and of the libraries under it, told apart: not there, denied, over soon; in words without secrets.
# They are known by their names and codes: none of these libraries is imported for it.


_SECRETS = re.compile(r"SECRET|TOKEN|PASSWORD|ACCESS_KEY|CREDENTIAL|CONNECTION_STRING|ACCOUNT_KEY")
_PASSING_NAMES = {  # of the error, or of a class that it inherits from
    *("TimeoutError", "ClientPayloadError", "ServerDisconnectedError", "ClientOSError", "IncompleteRead", "HTTPClientError"),
    *("ResponseParserError", "ConnectionError", "ChunkedEncodingError", "RemoteProtocolError", "ReadTimeout"),
    *("ConnectTimeout", "PassingProblem"),
}
_PASSING_WORDS = re.compile(
    "slow ?down|reduce your request rate|internal error|service ?unavailable|try again", re.IGNORECASE
)
_OTHER_REGION = re.compile("PermanentRedirect|AuthorizationHeaderMalformed|must be addressed using|IllegalLocation")
_DENIED_NAMES = {"PermissionError", "GatedRepoError", "HttpForbidden"}
_UNREACHABLE = {"EndpointConnectionError", "ConnectionRefusedError", "ClientConnectorError", "ConnectError", "gaierror"}
_NO_CREDENTIALS = {"NoCredentialsError", "PartialCredentialsError", "CredentialRetrievalError", "DefaultCredentialsError"}
_KEYS = {
    "s3": "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, as for the aws command",
    "gs": "set GOOGLE_APPLICATION_CREDENTIALS, or run gcloud auth application-default login",
    "hf": "set HF_TOKEN, or run hf auth login",
}
_SHOWN = 200


def problem_of(error: Exception, name: str, scheme: str) -> Exception:
    """Return what to raise instead of a library's error.

    >>> problem_of(FileNotFoundError(), "s3://bucket/part.jsonl", "s3")
    NotThereError('s3://bucket/part.jsonl: no such file')
    """
    names = {kind.__name__ for kind in type(error).__mro__}
    words = words_of(error)
    reason = words or type(error).__name__
    causes: list[BaseException] = [error]
    while (cause := causes[-1].__cause__ or causes[-1].__context__) is not None and len(causes) < 5:
        causes.append(cause)
    status = _status_of(causes)
    said = " ".join(f"{type(cause).__name__} {cause}" for cause in causes)
    keys = _KEYS.get({"s3a": "s3", "gcs": "gs"}.get(scheme, scheme), "put a key where the library for these addresses looks")
    if status in (301, 307) or _OTHER_REGION.search(said):
        return InputError(f"{name}: the bucket is in another region: set AWS_DEFAULT_REGION to it")
    if isinstance(error, FileNotFoundError) or status == 404:
        return NotThereError(f"{name}: no such {'bucket' if 'bucket does not exist' in words else 'file'}")
    if names & _NO_CREDENTIALS:
        return InputError(f"{name}: no credentials: {keys}")
    if names & _DENIED_NAMES or status in (401, 403):
        said = f" ({words})" if words else ""
        return InputError(f"{name}: access is denied{said}; {keys}")
    if names & _UNREACHABLE:
        return InputError(f"{name}: no server answers ({reason}); is the network up, and the address right?")
    if status in PASSING or names & _PASSING_NAMES or _PASSING_WORDS.search(said):
        return PassingProblem(reason)
    if status == 400:  # a HEAD has no body to say more in
        return InputError(f"{name}: the store refuses the request ({words}); is the region right, and the key still valid?")
    return InputError(f"{name}: {type(error).__name__}: {words or 'no reason given'}")


def words_of(error: BaseException) -> str:
    """Return the first line of an error's text without addresses' queries, and without what the environment keeps secret."""
    text = str(error.args[1]) if isinstance(error, OSError) and len(error.args) > 1 else str(error)
    text = re.sub(IN_TEXT, lambda match: shown_name(match[0]), text.strip().partition("\n")[0])
    for variable, value in os.environ.items():
        if len(value) > 5 and _SECRETS.search(variable.upper()):
            text = text.replace(value, "***")
    return visible(text)[:_SHOWN]


def _status_of(causes: list[BaseException]) -> int | None:
    for cause in causes:
        response = getattr(cause, "response", None)
        if isinstance(response, dict):  # botocore
            response = response.get("ResponseMetadata", {}).get("HTTPStatusCode")
        coded = (getattr(response, "status_code", None), getattr(cause, "status", None), getattr(cause, "code", None))
        for value in (response, *coded):
            if isinstance(value, int) or (isinstance(value, str) and value.isdecimal()):
                return int(value)
    return None
