#!/usr/bin/python
"""Ansible module: makes the resources of an estate in an AWS account, and writes down their identifiers."""

import json
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = """
module: itbench_estate
short_description: Make an estate in an AWS account
description: Makes all resources of an estate file by ordinary API calls. Bulk work in one process.
options:
  folder: {description: Folder with estate.yaml, type: path, required: true}
  variant: {description: Which variant of the estate, type: str, default: row}
  seed: {description: What the seed draws, type: int, default: 0}
  now: {description: Unix seconds from which ages count back, type: float, required: true}
  endpoint_url: {description: Where the account answers, type: str, required: true}
  access_key: {description: Access key, type: str, required: true}
  secret_key: {description: Its secret, type: str, required: true}
  output: {description: File for the identifiers by name, type: path, required: true}
"""


def run(params: dict[str, object]) -> dict[str, str]:
    """Seed the account; returns identifiers by name."""
    from itbench.cloud.access import Identity
    from itbench.cloud.client import Clients
    from itbench.cloud.estate import read_estate
    from itbench.cloud.seed import Seeder

    estate = read_estate(Path(str(params["folder"])), seed=int(str(params["seed"])), variant=str(params["variant"]))
    identity = Identity("stager", "admin", str(params["access_key"]), str(params["secret_key"]))
    names = Seeder(Clients(str(params["endpoint_url"]), identity), float(str(params["now"]))).seed(estate)
    Path(str(params["output"])).write_text(json.dumps(names))
    return names


def main() -> None:
    """Entry point of the module."""
    spec = {
        "folder": {"type": "path", "required": True},
        "variant": {"type": "str", "default": "row"},
        "seed": {"type": "int", "default": 0},
        "now": {"type": "float", "required": True},
        "endpoint_url": {"type": "str", "required": True},
        "access_key": {"type": "str", "required": True},
        "secret_key": {"type": "str", "required": True, "no_log": True},
        "output": {"type": "path", "required": True},
    }
    module = AnsibleModule(argument_spec=spec)
    try:
        names = run(module.params)
    except Exception as error:
        module.fail_json(msg=f"cannot make the estate: {type(error).__name__}: {error}")
    module.exit_json(changed=True, made=len(names))


if __name__ == "__main__":
    main()
