"""Runs of HELM: `per_instance_stats.json`; beside it `run_spec.json` (what was run) and `scenario_state.json` (prompts)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from lmgauge.base.files import digest
from lmgauge.scores.imports.log import LogFile
from lmgauge.tasks.items.logs import LoggedItem, beside


def helm(file: LogFile) -> Iterator[LoggedItem]:
    """Read per_instance_stats.json of HELM."""
    if not re.match(rb'\s*\[\s*\{\s*"instance_id"\s*:', file.head):
        return
    spec = beside(file, "run_spec.json")
    name = spec.get("name") or file.path.absolute().parent.name  # such as mmlu:subject=anatomy,model=openai_gpt2
    model = spec.get("adapter_spec", {}).get("model") or "".join(re.findall("model=([^,]*)", name))
    task = re.sub("[,:]model[^,]*", "", name)
    states = beside(file, "scenario_state.json").get("request_states", [])
    asked = {_key(one["instance"], one["instance"]["id"], one): one for one in reversed(states)}
    for where, entry in file.values():
        _, trial, changed = key = _key(entry, entry["instance_id"], entry)
        state = asked.get(key, {"instance": {}, "request": {"prompt": ""}})
        prompt = state["request"].get("messages") or state["request"]["prompt"]
        named = {"split": next((stat["name"].get("split") for stat in entry["stats"]), None), "perturbation": changed}
        subset = task + "".join(f",{part}={one}" for part, one in named.items() if one)
        scores = {stat["name"]["name"]: stat["mean"] if stat["count"] else None for stat in entry["stats"]}
        about: dict[str, Any] = {
            "sample": trial,
            "subset": subset,
            "model": model,
            "prompt": digest([prompt]) if prompt else "",
        }
        yield LoggedItem(where, entry["instance_id"], scores, state["instance"] | entry, **about)


def _key(instance: Mapping[str, Any], name: str, state: Mapping[str, Any]) -> tuple[str, int, str]:
    # An instance, the trial, and how its text was changed: "" for the original.
    return name, state["train_trial_index"], (instance.get("perturbation") or {}).get("name", "")
