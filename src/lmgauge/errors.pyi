"""The public names of `lmgauge.errors` and their homes."""

from lmgauge.base.errors import CheckFailedError as CheckFailedError
from lmgauge.base.errors import InputError as InputError
from lmgauge.base.errors import MissingExtraError as MissingExtraError
from lmgauge.base.errors import ModelFileError as ModelFileError
from lmgauge.base.errors import UsageError as UsageError

__all__: list[str]
