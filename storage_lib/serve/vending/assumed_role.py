"""AWS's token service (STS), or another one with its protocol: temporary credentials of a role (`AssumeRole`).

https://docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRole.html
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import botocore.session
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from storage_lib.errors import InvalidInputError, UnavailableError
from storage_lib.io.remote.object_store_settings import settings_by_store_name
from storage_lib.serve.vending.store_credentials import CredentialsRefusedError, StoreCredentials

_ROLE = re.compile(r"arn:(aws(?:-[a-z]+)*):iam::[0-9]{12}:role/[A-Za-z0-9_+=,.@/-]+")
_OF_CLIENT = {
    "aws_region": "region_name",
    "aws_access_key_id": "aws_access_key_id",
    "aws_secret_access_key": "aws_secret_access_key",
    "aws_session_token": "aws_session_token",
}
"""Settings of the warehouse's store that sign the requests to the service, and botocore's names of them."""
_SERVER_ERROR = 500
"""HTTP statuses from this one on are the service's failures."""
_REGION = "us-east-1"
"""The region of the service's global address."""
_SECONDS_TO_CONNECT, _SECONDS_TO_ANSWER, _TRIES = 2, 5, 2
_TRANSIENT = frozenset({"InternalFailure", "RequestTimeout", "ServiceUnavailable", "Throttling", "ThrottlingException"})


class AssumedRole:
    """A ``TokenService`` that assumes a role. The server's own credentials have to be allowed to."""

    def __init__(self, role: str, options: Mapping[str, str], *, address: str | None = None) -> None:
        """``options`` are the warehouse's; without ``s3.access-key`` in them, AWS's usual places are searched.

        ``address`` is the service's; None: AWS's in the region. Raises ``InvalidInputError`` for an invalid one, and
        for a role that is not ``arn:aws:iam::<account>:role/<name>``.
        """
        matched = _ROLE.fullmatch(role)
        if matched is None:
            message = (
                f"{role!r} is not the name of a role; it has to be arn:aws:iam::<account of 12 digits>:role/<name>"
            )
            raise InvalidInputError(message)
        self.partition = matched[1]
        self._role = role
        settings = settings_by_store_name("s3://", options)
        given = {name: settings[setting] for setting, name in _OF_CLIENT.items() if settings.get(setting)}
        limits = Config(
            connect_timeout=_SECONDS_TO_CONNECT,
            read_timeout=_SECONDS_TO_ANSWER,
            retries={"mode": "standard", "max_attempts": _TRIES},
        )
        session = botocore.session.get_session()
        if "region_name" not in given and not session.get_config_variable("region"):
            given["region_name"] = _REGION
        try:
            self._client: Any = session.create_client("sts", endpoint_url=address, config=limits, **given)
        except (BotoCoreError, ValueError) as error:
            message = f"can't use the token service {address or 'of AWS'}: {error}"
            raise InvalidInputError(message) from error

    def credentials(self, *, session: str, policy: str, seconds: int) -> StoreCredentials:
        """See ``TokenService``."""
        try:
            answer = self._client.assume_role(
                RoleArn=self._role, RoleSessionName=session, Policy=policy, DurationSeconds=seconds
            )
            return _credentials(answer["Credentials"])
        except ClientError as error:
            answered = error.response
            message = f"the token service gave no credentials of the role {self._role}: {error}"
            is_server = answered.get("ResponseMetadata", {}).get("HTTPStatusCode", 0) >= _SERVER_ERROR
            if is_server or answered.get("Error", {}).get("Code") in _TRANSIENT:
                raise UnavailableError(message) from error
            raise CredentialsRefusedError(message) from error
        except BotoCoreError as error:
            message = f"the token service gave no credentials of the role {self._role}: {error}"
            raise UnavailableError(message) from error
        except Exception as error:  # noqa: BLE001  a parser's: any, and its text is the answer, with secrets
            message = (
                f"the token service gave no credentials of the role {self._role}: its answer can't be read "
                f"({type(error).__name__})"
            )
            raise UnavailableError(message) from None


def _credentials(answered: Mapping[str, Any]) -> StoreCredentials:
    expires: datetime = answered["Expiration"]
    return StoreCredentials(
        access_key=answered["AccessKeyId"],
        secret_key=answered["SecretAccessKey"],
        session_token=answered["SessionToken"],
        expires_millis=int(expires.timestamp() * 1000),
    )
