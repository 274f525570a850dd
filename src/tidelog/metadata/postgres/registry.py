"""`PostgresRegistry`: the registry in PostgreSQL. Each change is one call of a function (`registry_schema.py`)."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tidelog.errors import Fenced
from tidelog.metadata.postgres.registry_schema import DELETIONS_KEPT, REGISTRY
from tidelog.metadata.postgres.tables import METADATA
from tidelog.metadata.registry import (
    CONTROLLER,
    DEAD_AFTER_S,
    Address,
    Beat,
    Changes,
    Leadership,
    Lease,
    Membership,
    Registry,
    UnknownBroker,
    no_other,
)
from tidelog.metadata.store import Fence
from tidelog.postgres import Component, PostgresSettings, Session

_PAGE = 2_000  # leaderships that are read at once, so that the event loop is not blocked
_BEAT_DEADLINE = 3 / 8
"""For one beat, as a share of the time after which a broker is presumed dead: there must be time for a second one."""

_HEAD = """
SELECT registry.version,
    (SELECT coalesce(json_agg(each ORDER BY broker_id), '[]')::text
        FROM (SELECT broker_id, incarnation, addresses, rack, is_draining FROM brokers) AS each) AS brokers,
    (SELECT coalesce(json_agg(json_build_array(scope, broker_id, epoch) ORDER BY scope), '[]')::text
        FROM leases) AS leases,
    (SELECT coalesce(array_agg(topic_id), '{}') FROM deleted_topics WHERE version > $1) AS deleted,
    (SELECT coalesce(array_agg(broker_id ORDER BY broker_id), '{}') FROM drained_brokers) AS drained
FROM registry
"""
# The next page begins after the last row of this one. A row that changes meanwhile moves to the end.
_LEADERSHIPS = """
SELECT version, log_id, topic_id, partition, leader, leader_epoch FROM logs
WHERE (version, log_id) > ($1::bigint, $2::bigint) ORDER BY version, log_id LIMIT $3
"""


class PostgresRegistry(Registry):
    """Beats, and what follows from them, go over a session of their own: nothing that takes long delays them."""

    def __init__(self, beats: Session, others: Session, dead_after_s: float) -> None:
        """Use `open`."""
        self._beats = beats
        self._others = others
        self._dead_after = dead_after_s

    @classmethod
    async def open(
        cls, settings: PostgresSettings, logs: Component, *, dead_after_s: float = DEAD_AFTER_S
    ) -> "PostgresRegistry":
        """`logs` is the component of the storage engine that has the table of logs. Creates what is missing. Fails as
        `Session.open` does: only if an operator has to correct something."""
        components = [METADATA, logs, REGISTRY]
        others = await Session.open(settings, components, name="tidelog controller")
        try:
            quick = replace(settings, deadline_s=min(settings.deadline_s, dead_after_s * _BEAT_DEADLINE))
            beats = await Session.open(quick, components, name="tidelog beats")
        except BaseException:
            await others.close()
            raise
        return cls(beats, others, dead_after_s)

    async def register(self, me: Membership) -> None:
        addresses = json.dumps({name: list(address) for name, address in sorted(me.addresses.items())})
        is_registered = await self._change(
            "SELECT registry_register($1, $2, $3, $4, $5, $6)",
            *(me.broker_id, me.incarnation, addresses, me.rack, me.is_draining, self._dead_after),
        )
        if not is_registered:
            raise Fenced(f"another broker with the id {me.broker_id} is up; give this one another id")

    async def beat(self, me: Membership) -> Beat:
        row = await self._beats.statement(
            lambda connection: connection.fetchrow(
                "SELECT * FROM registry_beat($1, $2, $3)", me.broker_id, me.incarnation, self._dead_after
            )
        )
        assert row is not None
        if row["version"] is None:
            raise Fenced(f"broker {me.broker_id} was presumed dead, or replaced by another process")
        return Beat(row["version"], row["now"], row["has_controller"])

    async def leave(self, me: Membership) -> None:
        await self._change("SELECT registry_leave($1, $2)", me.broker_id, me.incarnation)

    async def drain(self, broker_id: int, draining: bool) -> None:
        if not await self._change("SELECT registry_drain($1, $2)", broker_id, draining):
            raise UnknownBroker(f"broker {broker_id} is not registered")

    async def set_drained(self, broker_id: int, is_drained: bool) -> None:
        verdict = await self._change(
            "SELECT registry_set_drained($1, $2, $3)", broker_id, is_drained, self._dead_after
        )
        if verdict == "unknown":
            raise UnknownBroker(f"broker {broker_id} is not registered")
        if verdict == "no other":
            raise no_other(broker_id)

    async def changes_since(self, version: int) -> Changes:
        head = await self._beats.read(lambda connection: connection.fetchrow(_HEAD, version))
        assert head is not None
        newest: int = head["version"]
        is_whole = not max(0, newest - DELETIONS_KEPT) <= version <= newest
        leaderships: list[Leadership] = []
        after = (-1 if is_whole else version, 1 << 62)
        while True:
            page = await self._page(*after)
            leaderships += [Leadership(*row[2:]) for row in page]
            if len(page) < _PAGE:
                break
            after = (page[-1][0], page[-1][1])
        return Changes(
            newest,
            [_membership(each) for each in json.loads(head["brokers"])],
            [Lease(*each) for each in json.loads(head["leases"])],
            leaderships,
            [] if is_whole else head["deleted"],
            is_whole,
            head["drained"],
        )

    async def _page(self, version: int, log_id: int) -> list[Any]:
        return await self._beats.read(lambda connection: connection.fetch(_LEADERSHIPS, version, log_id, _PAGE))

    async def stand_for_controller(self, me: Membership) -> Fence | None:
        epoch = await self._change(
            "SELECT registry_stand($1, $2, $3)", me.broker_id, me.incarnation, self._dead_after
        )
        if epoch is None:
            raise Fenced(f"broker {me.broker_id} was presumed dead, or replaced by another process")
        return Fence(CONTROLLER, epoch) if epoch else None

    async def bury(self, controller: Fence) -> list[int]:
        dead: list[int] | None = await self._change(
            "SELECT registry_bury($1, $2)", controller.epoch, self._dead_after
        )
        if dead is None:
            raise _replaced(controller)
        return dead

    async def assign(
        self, controller: Fence, leases: Sequence[tuple[str, int]], leaders: Sequence[tuple[bytes, int, int]]
    ) -> None:
        scopes, owners = zip(*leases, strict=True) if leases else ((), ())
        topics, partitions, brokers = zip(*leaders, strict=True) if leaders else ((), (), ())
        is_controller = await self._change(
            "SELECT registry_assign($1, $2, $3, $4, $5, $6)",
            *(controller.epoch, scopes, owners, topics, partitions, brokers),
        )
        if not is_controller:
            raise _replaced(controller)

    async def close(self) -> None:
        await self._beats.close()
        await self._others.close()

    async def _change(self, sql: str, *arguments: Any) -> Any:  # noqa: ANN401
        return await self._others.statement(lambda connection: connection.fetchval(sql, *arguments))


def _membership(row: dict[str, Any]) -> Membership:
    addresses = {name: Address(*address) for name, address in json.loads(row["addresses"]).items()}
    return Membership(row["broker_id"], row["incarnation"], addresses, row["rack"], row["is_draining"])


def _replaced(controller: Fence) -> Fenced:
    return Fenced(f"another broker is the controller, this one was at epoch {controller.epoch}")
