"""The coordinator of a group or a transactional id: the broker that is asked about it, looked up again if it
moves."""

from collections.abc import Hashable
from typing import Any

from tidelog.client.cluster import SHARED, Cluster
from tidelog.client.errors import ClientError, check
from tidelog.wire.apis import BY_NAME
from tidelog.wire.error_codes import ErrorCode
from tidelog.wire.generated.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from tidelog.wire.primitives import Struct

GROUP, TRANSACTION = 0, 1
_CALLED = {GROUP: "group", TRANSACTION: "transactional id"}
_FIRST_FOR_MANY = 4  # from this version on a request asks for several coordinators
_MOVED = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)


class Coordinator:
    """Requests are tried once; after an error the next request looks up the coordinator again."""

    def __init__(self, cluster: Cluster, name: str, lane: Hashable = SHARED, *, kind: int = GROUP) -> None:
        self._name = name
        self._kind = kind
        self._cluster = cluster
        self._lane = lane
        self._node: int | None = None

    async def request(
        self, api: str, message: Struct, *, timeout_ms: int | None = None, at_most: int | None = None
    ) -> Any:  # noqa: ANN401  (one of the response classes)
        try:
            if self._node is None:
                self._node = await self._find()
            return await self._cluster.request(
                api, message, node=self._node, lane=self._lane, timeout_ms=timeout_ms, at_most=at_most
            )
        except ClientError:
            self._node = None
            raise

    def check(self, code: int, tried: str, message: str | None = None) -> None:
        """Raise the error of a code in a response of the coordinator, if it is one."""
        if code in _MOVED:
            self._node = None
        check(code, tried, message)

    async def _find(self) -> int:
        connection = await self._cluster.connection()
        if connection.version_of(BY_NAME["FindCoordinator"]) >= _FIRST_FOR_MANY:
            request = FindCoordinatorRequest(key_type=self._kind, coordinator_keys=[self._name])
        else:
            request = FindCoordinatorRequest(key_type=self._kind, key=self._name)
        response: FindCoordinatorResponse = await self._cluster.request("FindCoordinator", request)
        tried = f"looking for the coordinator of {_CALLED[self._kind]} {self._name!r}"
        if response.coordinators:
            found = response.coordinators[0]
            check(found.error_code, tried, found.error_message)
            return found.node_id
        check(response.error_code, tried, response.error_message)
        return response.node_id
