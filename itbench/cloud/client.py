"""Clients of an AWS account for seeding and for describing it. The only importer of boto3 in the cloud room.

Used by the Ansible module `itbench_estate` and by the account driver; works with any endpoint.
"""

from typing import Any

from itbench.cloud.access import Identity
from itbench.cloud.wire import TIME_HEADER


class Clients:
    """boto3 clients by service and region, for one identity; nothing is read from the host's AWS configuration.

    Args:
        url: endpoint of the account.
        identity: whose keys are used.
    """

    def __init__(self, url: str, identity: Identity) -> None:
        import boto3
        import botocore.session
        from botocore.config import Config

        nowhere = {
            "profile": (None, None, None, None),
            "config_file": (None, None, "/dev/null", None),
            "credentials_file": (None, None, "/dev/null", None),
        }
        self._session = boto3.Session(
            aws_access_key_id=identity.key,
            aws_secret_access_key=identity.secret,
            region_name="us-east-1",
            botocore_session=botocore.session.Session(session_vars=nowhere),
        )
        self._config = Config(retries={"total_max_attempts": 1}, proxies={}, read_timeout=300)
        self._url = url
        self._made: dict[tuple[str, str], Any] = {}
        self.moment: float | None = None
        """Staging: Unix seconds at which what is made next was made; None: now."""

    def get(self, service: str, region: str = "us-east-1") -> Any:
        """The client of a service in a region."""
        if (service, region) not in self._made:
            client = self._session.client(service, region_name=region, endpoint_url=self._url, config=self._config)
            client.meta.events.register("before-call", self._stamp)
            self._made[service, region] = client
        return self._made[service, region]

    def _stamp(self, params: dict[str, Any], **_: Any) -> None:
        if self.moment is not None:
            params["headers"][TIME_HEADER] = repr(self.moment)
