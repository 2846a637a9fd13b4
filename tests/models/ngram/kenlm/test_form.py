"""What can be asked of a binary file of KenLM."""

from __future__ import annotations

from typing import Any

import pytest

from lmgauge.base.errors import UsageError
from lmgauge.models.ngram.kenlm.form import KenlmForm


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ({"quantize": (8, 8)}, "add --trie"),
        ({"trie": True, "quantize": (8,)}, "as in 8,8; got 8$"),
        ({"trie": True, "quantize": (0, 8)}, "got 0,8"),
        ({"trie": True, "quantize": (8, 1)}, "got 8,1"),
        ({"trie": True, "quantize": (26, 8)}, "got 26,8"),
    ],
)
def test_what_no_file_can_be_is_refused(form: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        KenlmForm(**form)


def test_a_form_is_for_names_of_binary_files() -> None:
    assert KenlmForm().check_name("kn5.klm")
    assert not KenlmForm().check_name("kn5.arpa")
    with pytest.raises(UsageError, match=r"kn5/: trie and quantize are for binary files of KenLM"):
        KenlmForm(trie=True).check_name("kn5/")
